/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "target/sameness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *sameness_name(enum sameness_verdict v) {
    static const char *const names[] = {
        [SAMENESS_NOT_LOOKED] = "not looked into", [SAMENESS_NO_SIGN] = "no sign",
        [SAMENESS_DIFFERENT] = "different objects", [SAMENESS_UNCONFIRMED] = "not confirmed",
        [SAMENESS_EQUAL_DATA] = "equal data", [SAMENESS_SHARED] = "shared blocks", [SAMENESS_ONE] = "one object"};
    return names[v];
}

int sameness_init(struct sameness *s, unsigned n) {
    s->n = n;
    s->pair = calloc((size_t)n * n + 1, sizeof(*s->pair));
    return s->pair ? 0 : -1;
}

void sameness_free(struct sameness *s) {
    free(s->pair);
    memset(s, 0, sizeof(*s));
}

struct sameness_pair *sameness_of(const struct sameness *s, unsigned a, unsigned b) {
    unsigned low = a < b ? a : b, high = a < b ? b : a;

    return &s->pair[(size_t)high * s->n + low];
}

void sameness_note(struct sameness *s, unsigned a, unsigned b, enum sameness_verdict v, uint64_t blocks,
                   const char *how) {
    struct sameness_pair *p = sameness_of(s, a, b);

    p->blocks += blocks;
    if (v < p->verdict && p->verdict >= SAMENESS_SHARED) return;
    /* Two objects with one identity stay that when nothing of the one is found in the other. */
    if (v == SAMENESS_NO_SIGN && p->verdict == SAMENESS_DIFFERENT) return;
    p->verdict = v;
    p->by_content = false;
    snprintf(p->how, sizeof(p->how), "%s", how);
}

bool sameness_is_one(const struct sameness *s, unsigned a, unsigned b) {
    return s && s->pair && a != b && sameness_of(s, a, b)->verdict == SAMENESS_ONE;
}

bool sameness_any(const struct sameness *s) {
    for (unsigned a = 0; s && s->pair && a < s->n; a++)
        for (unsigned b = 0; b < a; b++)
            if (sameness_of(s, a, b)->verdict >= SAMENESS_EQUAL_DATA) return true;
    return false;
}
