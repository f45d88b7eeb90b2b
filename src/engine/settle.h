/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Between runs, untimed: what the previous run left behind is flushed, and the next target has come to rest. */
#ifndef ENGINE_SETTLE_H
#define ENGINE_SETTLE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "target/target.h"

struct settle {
    int64_t waited_ns, read_ns; /* how long, and the last depth-1 read latency seen (median of 5) */
    bool settled;               /* within twice the idle latency before the deadline of 30 s */
};

#define SETTLE_UNKNOWN (-1) /* idle latency: no read worked */

/* Median latency of those of 15 reads of 4 KiB at depth 1 that work, at random offsets of [from, to); of 3 at least where
 * they take longer than 2 s. None: -1 with
 * STATUS_IO, and *ns is SETTLE_UNKNOWN; other errors: the target is lost. */
int settle_idle(const struct target *t, uint64_t from, uint64_t to, uint64_t seed, int64_t *ns, struct err *err);
/* What the plan's duration is estimated from: how long a context and a read take, into `t`. Of the first member, as it was
 * opened, without a delay that was asked for. Where it does not exist a protocol ping stands in for the read; without
 * pings, or where it cannot be read, that stays unknown. */
void settle_first_look(struct target *t, uint64_t seed);
/* Waits until the median of 5 such reads (of 2 at least) is within twice `idle_ns`, at most 30 s; stops early when interrupted. With
 * SETTLE_UNKNOWN it does not wait at all. */
int settle_wait(const struct target *t, uint64_t from, uint64_t to, uint64_t seed, int64_t idle_ns,
                volatile sig_atomic_t *interrupted, struct settle *out, struct err *err);
/* A flush on a context of its own; `ns` gets its latency. Targets without a flush: 0. */
int settle_flush(const struct target *t, int64_t *ns, struct err *err);

#endif
