/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How long one of several connections sent nothing while an answer was due on it: the mark of one that is stuck. */
#ifndef BACKENDS_NET_SILENCE_H
#define BACKENDS_NET_SILENCE_H

#include <stdint.h>

struct silence { /* zeroed: nothing was due yet; times of the stamp's clock, ns */
    int64_t since, longest;
};

/* Something is due from `t` on; before that nothing was. */
static inline void silence_begins(struct silence *s, int64_t t) {
    s->since = t;
}

/* Something came at `t`, or the wait is over. Only while something is due. */
static inline void silence_ends(struct silence *s, int64_t t) {
    if (__builtin_expect(t - s->since > s->longest, 0)) s->longest = t - s->since;
    s->since = t;
}

#endif
