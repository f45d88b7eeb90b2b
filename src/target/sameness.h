/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is known of any two of a plan's targets (or members) being one object. Made where they are examined, completed
 * while they are written, asked by whoever would do a thing once for both. Nothing stands here that was not seen. */
#ifndef TARGET_SAMENESS_H
#define TARGET_SAMENESS_H

#include <stdbool.h>
#include <stdint.h>

enum sameness_verdict {
    SAMENESS_NOT_LOOKED,  /* nobody looked */
    SAMENESS_NO_SIGN,     /* looked, and no block of the one was found in the other */
    SAMENESS_DIFFERENT,   /* one identity, but different contents: two objects */
    SAMENESS_UNCONFIRMED, /* one identity, and nothing in them that could confirm it */
    SAMENESS_EQUAL_DATA,  /* no identity in common, equal data at equal places: one object, or a copy */
    SAMENESS_SHARED,      /* blocks of the one are blocks of the other, at other places or not all of them */
    SAMENESS_ONE          /* one object */
};
/* "not looked into" "no sign" "different objects" "not confirmed" "equal data" "shared blocks" "one object" */
const char *sameness_name(enum sameness_verdict v);

struct sameness_pair {
    enum sameness_verdict verdict;
    bool by_content;       /* ONE: because identity and sampled blocks agree, which a copy's would too */
    uint64_t blocks;       /* that were looked at */
    char how[160];         /* what was seen, in words */
};

struct sameness {
    unsigned n;
    struct sameness_pair *pair; /* n x n; owned */
};

int sameness_init(struct sameness *s, unsigned n); /* -1: no memory; all pairs NOT_LOOKED */
void sameness_free(struct sameness *s);
/* a != b; in either order. */
struct sameness_pair *sameness_of(const struct sameness *s, unsigned a, unsigned b);
/* What was seen later: a stronger verdict replaces a weaker one, blocks add up. */
void sameness_note(struct sameness *s, unsigned a, unsigned b, enum sameness_verdict v, uint64_t blocks,
                   const char *how);
/* `s` may be NULL: nothing is known, so they are two. */
bool sameness_is_one(const struct sameness *s, unsigned a, unsigned b);
/* Do any two share what they store, or may they? Then one warms or chills the other's cache. */
bool sameness_any(const struct sameness *s);

#endif
