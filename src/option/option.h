/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One table is the only place where a key exists: parsing, defaults, ranges, help, the manual's check and the echo of
 * the effective values all read it. Pattern keys (load) and the access keys of each backend are such tables. */
#ifndef OPTION_OPTION_H
#define OPTION_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

enum option_type {
    OPTION_UINT,    /* uint64_t */
    OPTION_SIZE,    /* uint64_t, bytes */
    OPTION_TIME,    /* uint64_t, ns */
    OPTION_BOOL,    /* bool; a bare key means true */
    OPTION_ENUM,    /* int: index into `names` */
    OPTION_TEXT,    /* char *, owned by the configuration */
    OPTION_SECRET,  /* char *, owned; never shown */
    OPTION_CUSTOM   /* anything: `parse` and `show` */
};

struct option_entry {
    const char *name;           /* fio's or the field's term, lower case, '_' between words */
    const char *alias;          /* second accepted name, or NULL */
    enum option_type type;
    size_t offset;              /* of the field in the configuration struct */
    uint64_t min, max;          /* UINT, SIZE, TIME: inclusive; max 0: no upper limit */
    const char *def;            /* as text, parsed by the same code; NULL: zero, NULL, false */
    const char *const *names;   /* ENUM: NULL-terminated */
    const char *value;          /* placeholder in help: "SIZE", "N", "read|write|..." */
    const char *help;           /* one sentence, no full stop */
    int (*parse)(const char *value, void *field, void *conf, struct err *err); /* CUSTOM; adds or replaces. value is
                                   never NULL: a bare key is refused before */
    int (*show)(const void *field, const void *conf, char *buf, size_t len); /* CUSTOM: parses back; 0: unset */
};

/* Tables end with an entry whose name is NULL. */

/* Puts every entry's default. `conf` is zeroed by the caller. */
int option_defaults(const struct option_entry *table, void *conf, struct err *err);
/* Sets one key. value NULL is a bare key. Names match exactly, with '-' the same as '_'. Errors (USAGE): unknown key
 * with the nearest name, "KEY: " and the bad value with what would be right and the range. No position: the caller
 * prefixes it. After an error the field is as it was (CUSTOM: as its parser leaves it). */
int option_set(const struct option_entry *table, void *conf, const char *key, const char *value, struct err *err);
const struct option_entry *option_find(const struct option_entry *table, const char *key); /* NULL: unknown */
const char *option_nearest(const struct option_entry *table, const char *key);             /* NULL: none near */
/* The same of a NULL-terminated list. */
const char *option_nearest_name(const char *key, const char *const *names);
/* The effective value as text that parses back, into buf. False if unset (NULL text, CUSTOM that says so), secret, or
 * too long for buf: what is cut does not parse back. */
bool option_show(const struct option_entry *e, const void *conf, char *buf, size_t len);
void option_free(const struct option_entry *table, void *conf);                            /* TEXT and SECRET fields */
void option_help(const struct option_entry *table, const char *prefix, FILE *out);       /* aligned lines for --help */

#endif
