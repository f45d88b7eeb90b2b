/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Nothing is written unless the plan says what, and the user agreed. All checks for all targets come before the first
 * I/O of the plan. This module decides, per member, what may be done; it reads, and writes nothing before safety_apply.
 */
#ifndef SAFETY_SAFETY_H
#define SAFETY_SAFETY_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "target/sameness.h"
#include "target/target.h"

struct content;

struct safety_destroy {
    const char *label, *what;
}; /* --destroy LABEL[=WHAT]; NULL: no WHAT. An empty WHAT is refused */

struct safety_wish {
    struct target **targets; /* opened with target_open_read */
    unsigned n_targets;
    bool writes;                   /* does the plan write at all? if not, only sizes are checked */
    uint64_t needed_size;          /* a created file gets this size; an existing object must have it (per target) */
    uint64_t write_from, write_to; /* range that will be written (fill included) */
    uint32_t overrun;              /* several members: bytes by which an I/O may run past the end of its stripe (see
                                      backends/stripe.h); 0 where sizes and alignment keep all inside */
    const struct safety_destroy *destroy;
    size_t n_destroy;
    bool allow_full;
    volatile sig_atomic_t *interrupted; /* NULL: never; looking is given up */
    /* About once a second while a large range is looked at. NULL: nobody wants to know. */
    void (*looking)(void *arg, const char *label, uint64_t done, uint64_t total);
    void *arg;
    const char *sysfs, *proc; /* "/sys", "/proc"; tests give made-up ones */
};

enum safety_verdict { SAFETY_READ, SAFETY_CREATE, SAFETY_OWN_DATA, SAFETY_CONSENTED, SAFETY_REFUSED };

struct safety_decision { /* one per member, in order of targets and members */
    unsigned target, member;
    enum safety_verdict verdict;
    uint64_t create_size; /* SAFETY_CREATE */
    bool borrowed;        /* SAFETY_CONSENTED by words for another label of one object */
    uint64_t from, to;    /* of the member, that will be written */
    struct content *content; /* what was found; owned; NULL: nothing was there, or it was not looked at */
    char found[400];      /* what is there: "ext4 file system \"data\" at 0 (libblkid)" "all zeros (all of it was read)" "samedisk data" */
    char text[900];       /* what will be done, or why not and what to type; fit to print */
};

struct safety_report {
    struct safety_decision *decision; /* owned */
    size_t n;
    unsigned refused;
    struct sameness same; /* of the targets; owned */
};

/* Examines everything. 0: may go on (report filled). -1: refused or failed; the report holds all refusals, `err` their
 * texts joined (STATUS_USAGE), or the failure of a target (STATUS_TARGET). */
int safety_examine(const struct safety_wish *wish, struct safety_report *report, struct err *err);
/* Reopens for writing, creates files. Only after safety_examine said 0. */
int safety_apply(const struct safety_wish *wish, const struct safety_report *report, struct err *err);
/* --cleanup: removes what this invocation created, if it still is the same object. Texts of what was (not) removed go
 * to `say`. */
int safety_cleanup(struct target **targets, unsigned n_targets, void (*say)(void *arg, const char *line), void *arg,
                   struct err *err);
/* Removes what this invocation created for `t`, if that was not filled to the end (target.unfilled); `keep`: only says
 * that it is there. */
void safety_remove_unfilled(struct target *t, bool keep, void (*say)(void *arg, const char *line), void *arg);
void safety_report_free(struct safety_report *report);

#endif
