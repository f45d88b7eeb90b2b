/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A full file system stops every VM on it: after all that the plan will allocate, the larger of 10 % and 10 GiB stays
 * free. */
#ifndef SAFETY_SPACE_H
#define SAFETY_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/target.h"

struct space_claim {
    const struct member *member;
    uint64_t bytes; /* that will be allocated at most; 0: none */
    char fs[160];   /* set by space_check: which file system */
    bool refused;   /* set by space_check, with the reason: */
    char why[300];
};

/* Claims on one file system add up. Two claims on one file (the same URL) count once. */
void space_check(struct space_claim *claims, size_t n, bool allow_full);
/* The same URL but for its access keys. */
bool space_same_file(const char *a, const char *b);
/* The path of a file: or bare-path URL, malloc'd; NULL for other schemes. */
char *space_local_path(const char *url);

#endif
