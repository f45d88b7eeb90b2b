/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Values of the protocol while a load runs (backend.h, struct track): one worker's samples at the window's start, at the
 * end of every interval of its series, and at the window's end; and their sum over the workers. */
#ifndef ENGINE_TRACKS_H
#define ENGINE_TRACKS_H

#include "backends/backend.h"
#include "result/record.h"

struct worker;

struct tracks {                /* zeroed: nothing is watched */
    const struct track *list;  /* NULL: nothing */
    unsigned n, n_points, used; /* used: points up to the last that was sampled */
    int64_t interval_ns;
    int64_t due;               /* when to sample next; INT64_MAX: never again */
    double *points;            /* [point * n + track]: as sampled at the interval's end; NAN: was not; owned */
    double *first, *last, *now; /* parts of the same memory */
    bool began;
};

/* After attach; `due` is set when the window is known. 0, or -1 when there is no memory. */
int tracks_init(struct tracks *t, const struct backend *backend, const struct handle *h, unsigned n_points,
                int64_t interval_ns);
/* When now >= t->due. Owner thread. */
void tracks_sample(struct tracks *t, const struct backend *backend, struct context *c, int64_t t_window, int64_t now);
/* The window is over. */
void tracks_end(struct tracks *t, const struct backend *backend, struct context *c, int64_t t_window, int64_t now);
void tracks_free(struct tracks *t);

/* The workers' together into the record, whose series has its interval and number of points already. */
void tracks_gather(struct record *r, const struct worker *workers, unsigned n);

#endif
