/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One run: the workers of one pattern on one target, their common start, window and end, and the record they add up to.
 */
#ifndef ENGINE_RUN_H
#define ENGINE_RUN_H

#include <signal.h>

#include "engine/ping.h"
#include "engine/session.h"
#include "pattern/data.h"
#include "pattern/pattern.h"
#include "result/record.h"
#include "target/target.h"

struct run {
    const struct pattern *pattern;
    struct target *target;
    uint64_t seed;
    unsigned round;
    uint32_t run_tag;
    const struct data_note *note; /* what all writes over its block carry; NULL: none; not owned */
    struct clock *clock; /* virtual: workers run one after another, each on a copy */
    volatile sig_atomic_t *interrupted;
    const struct ping_idle *idle_ping; /* NULL: no pings beside the load */
    /* Called about four times a second with the phase and the totals of all workers so far. May be NULL. */
    void (*tick)(void *arg, enum session_phase phase, int64_t elapsed_ns, int64_t phase_ns, uint64_t ios,
                 uint64_t bytes, uint64_t lat_sum, uint64_t errors);
    void *arg;
};

/* Fills the measured part of `record`. -1: the workers could not be attached (err: why; nothing was measured). A target
 * lost in mid-run is not an error of this call: record->status says it. */
int run_execute(const struct run *run, struct record *record, struct err *err);

#endif
