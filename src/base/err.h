/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Errors of the control path: one message made where the cause is known, and the exit status it leads to.
 * Functions that take a struct err return 0 (or a count) for success and -1 after filling it. The data path does
 * not use it: it returns negative errno. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

/* Values are the program's exit statuses. */
enum status {
    STATUS_OK = 0,
    STATUS_USAGE = 1,       /* usage, bad pattern, refused plan */
    STATUS_IO = 2,          /* I/Os failed, or data was wrong */
    STATUS_TARGET = 3,      /* a target could not be opened, or was lost */
    STATUS_CRITERIA = 4,    /* criteria missed, audit findings of severity error */
    STATUS_INTERRUPTED = 130
};

struct err {
    enum status status;
    char msg[1200]; /* no newline at the end; several lines are allowed */
};

/* Fills `err` (cut to fit); always returns -1, so that `return err_set(...)` reads well. `err` may not be NULL. */
int err_set(struct err *err, enum status status, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Puts "prefix: " before the message that is there; returns -1. */
int err_prefix(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The more important of two exit statuses: 130, 3, 2, 4, 1, 0 in this order. */
enum status status_worse(enum status a, enum status b);

#endif
