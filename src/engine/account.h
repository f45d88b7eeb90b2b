/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What completions mean for the figures: which phase they fall into, what they add to histograms, series, counts and
 * depth. The other half of the worker's loop (worker.c issues, waits and ends). */
#ifndef ENGINE_ACCOUNT_H
#define ENGINE_ACCOUNT_H

#include "engine/worker.h"

/* Counts the `n` completions of one reap, in order, and gives their requests back to the free list. Owner thread. */
void account(struct worker *w, const struct completion *c, unsigned n);
/* I/O `k` of the schedule and the n - 1 after it were due and will never be sent: how long they were owed until `until` is
 * in the latency from the due time. What they would have been, reads or writes, is drawn as the load draws it. */
void account_unsent(struct worker *w, uint64_t k, uint64_t n, int64_t until);

/* A reap that brought nothing, at `now`. */
void account_nothing(struct worker *w, int64_t now);
/* Nothing has come back from w->quiet_since to `until`, although I/Os were out. What lies in the window of it counts. */
void account_gap(struct worker *w, int64_t until);
/* This client did not run from `from` to `to`: what lies in the window of it is in the row, and no fault of the target's. */
void account_standstill(struct worker *w, int64_t from, int64_t to);

#endif
