/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The open loop: I/Os fall due at evenly spaced times, whatever the target does. The due times of a target's workers
 * interleave: worker w's k-th I/O is due at start + (k W + w) / rate. A backlog over its cap is given up and counted: for
 * a user whose own requests expire. One thread. */
#ifndef ENGINE_RATE_H
#define ENGINE_RATE_H

#include <stdint.h>

struct rate {
    uint64_t iops; /* of the target; 0: closed loop */
    unsigned worker, workers;
    int64_t start;
    uint64_t k;   /* next I/O of this worker */
    uint64_t cap; /* I/Os of backlog */
    int64_t due;  /* when I/O k is due */
};

static inline int64_t rate_due(const struct rate *r, uint64_t k) {
    return r->start + (int64_t)((unsigned __int128)(k * r->workers + r->worker) * 1000000000u / r->iops);
}

/* `backlog`: ns worth of I/Os that may be owed, at least one I/O; 0: no cap. */
static inline void rate_init(struct rate *r, uint64_t iops, unsigned worker, unsigned workers, int64_t start,
                             uint64_t backlog) {
    uint64_t cap = (uint64_t)((unsigned __int128)backlog * iops / 1000000000u / (workers ? workers : 1));
    *r = (struct rate){.iops = iops,
                       .worker = worker,
                       .workers = workers,
                       .start = start,
                       .cap = !backlog ? UINT64_MAX : cap ? cap : 1};
    if (iops) r->due = rate_due(r, 0);
}

static inline void rate_next(struct rate *r) {
    r->due = rate_due(r, ++r->k);
}

/* I/Os that are due at `now` and were not issued. */
static inline uint64_t rate_owed(const struct rate *r, int64_t now) {
    if (now < r->due) return 0;
    return (uint64_t)((unsigned __int128)(uint64_t)(now - r->due) * r->iops / 1000000000u / r->workers) + 1;
}

/* Drops what is due over the cap at `now`; returns how many. */
static inline uint64_t rate_drop(struct rate *r, int64_t now) {
    if (now <= r->due) return 0;
    uint64_t owed = rate_owed(r, now);
    if (owed <= r->cap) return 0;
    r->k += owed - r->cap;
    r->due = rate_due(r, r->k);
    return owed - r->cap;
}

#endif
