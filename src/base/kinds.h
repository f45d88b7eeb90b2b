/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Kinds of I/O errors: a short stable name ("NFS3ERR_NOSPC", "MEDIUM ERROR 11/00", "timeout", "short read") and the
 * library's or server's own words, kept once per kind. One table per context; one thread. */
#ifndef BASE_KINDS_H
#define BASE_KINDS_H

#include <stdint.h>

#define KINDS_MAX 32

struct kind {
    char name[48];
    char text[340];
    uint64_t count; /* the engine's */
};

struct kinds {
    unsigned n; /* zero-initialised: empty */
    unsigned lost; /* 1 + the index of the kind for which the context was given up; 0: none was named */
    struct kind kind[KINDS_MAX];
};

/* Index of `name`, added with `text` if new; when the table is full, the index of the last entry, named "other". */
unsigned kinds_note(struct kinds *kinds, const char *name, const char *text);
/* The same for the reason why the context is given up; the first one stays. */
unsigned kinds_lost(struct kinds *kinds, const char *name, const char *text);
/* Adds counts and unseen kinds of `from`. */
void kinds_merge(struct kinds *into, const struct kinds *from);

#endif
