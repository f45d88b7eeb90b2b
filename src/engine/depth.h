/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The time integral of the outstanding count over a window, kept apart from every latency figure, so that Little's law
 * (L = lambda W; Little 1961) compares two independent measurements. One thread. */
#ifndef ENGINE_DEPTH_H
#define ENGINE_DEPTH_H

#include <stdint.h>

struct depth {
    int64_t from, to; /* the window; `to` may be INT64_MAX while it is not known */
    int64_t last;     /* time of the last change */
    uint64_t outstanding;
    uint64_t area; /* outstanding x ns inside the window */
};

static inline void depth_init(struct depth *d, int64_t from, int64_t to) {
    *d = (struct depth){.from = from, .to = to, .last = from};
}

/* `change` I/Os more are outstanding since `t`. Times do not decrease; one that does counts as the last. */
static inline void depth_change(struct depth *d, int64_t t, int64_t change) {
    int64_t upto = t < d->to ? t : d->to;
    if (upto > d->last) {
        d->area += d->outstanding * (uint64_t)(upto - d->last);
        d->last = upto;
    }
    d->outstanding += (uint64_t)change;
}

#endif
