/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Several values of one track (backend.h) become one: those of connections, members, workers. */
#ifndef BACKENDS_TRACK_H
#define BACKENDS_TRACK_H

#include <math.h>

#include "backends/backend.h"

struct track_sum { /* zeroed: nothing yet */
    double value;
    unsigned n;
};

/* What is unknown takes no part. */
static inline void track_add(struct track_sum *s, enum track_merge merge, double value) {
    if (isnan(value)) return;
    if (s->n++ == 0) s->value = value;
    else if (merge == TRACK_MIN) s->value = value < s->value ? value : s->value;
    else if (merge == TRACK_MAX) s->value = value > s->value ? value : s->value;
    else s->value += value;
}

static inline double track_value(const struct track_sum *s, enum track_merge merge) {
    if (s->n == 0) return NAN;
    return merge == TRACK_MEAN ? s->value / s->n : s->value;
}

#endif
