/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Executes a validated, consented plan: prepare, and per round and pattern all targets in balanced order, each run with
 * flush, settle, cache policy, ramp, window, drain. One session at a time per process. */
#ifndef ENGINE_SESSION_H
#define ENGINE_SESSION_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/plan.h"
#include "result/record.h"

enum session_phase {
    PHASE_IDLE,
    PHASE_LOOK, /* at what lies there, right before it is written */
    PHASE_FILL,
    PHASE_CHECK,
    PHASE_HOLES,      /* asks what has storage behind it */
    PHASE_IDLE_READS, /* one at a time, before any load */
    PHASE_PINGS,
    PHASE_FLUSH,
    PHASE_SETTLE,
    PHASE_CACHE,
    PHASE_RAMP,
    PHASE_WINDOW,
    PHASE_DRAIN
};
const char *session_phase_name(enum session_phase phase);

struct session_progress {
    enum session_phase phase;
    const char *pattern, *target;
    unsigned round, rounds, run, runs;          /* run: 1 .. runs */
    int64_t phase_elapsed_ns, phase_ns;         /* phase_ns 0: unknown */
    uint64_t done_bytes, total_bytes;           /* fill, check, cache */
    double iops, bytes_per_second, lat_mean_ns; /* of the last second */
    uint64_t errors;
    int64_t left_ns; /* of the whole plan, estimated */
};

struct session_hooks {
    void *arg;
    /* About four times a second and at each change of phase, from the coordinating thread. May be NULL. */
    void (*progress)(void *arg, const struct session_progress *p);
    /* A run is over. The record is handed over: the callee frees it. Nonzero stops the session (disk full, say). */
    int (*run_done)(void *arg, struct record *record);
    /* Something the user should know now ("nfs: 3 of 256 sampled blocks are holes"). One line, safe to print. May be
     * NULL. */
    void (*say)(void *arg, const char *line);
    /* Right before a target's first write (`first`; also the first one
     * after it was lost), and before each later run that writes to it: may it? -1: the target
     * is lost, with the reason in `err`; 1: interrupted. plan->same may have learned something. May be NULL. */
    int (*before_write)(void *arg, unsigned target, bool first, struct err *err);
    /* A target could not be filled to the end. May be NULL. */
    void (*not_filled)(void *arg, unsigned target);
};

/* Returns STATUS_OK, _IO (errors in some run), _TARGET (a target was lost or could not be attached), _INTERRUPTED. A
 * lost target's remaining runs of the round are recorded as lost; the others go on. It is tried once more in each later
 * round, as soon as its turn comes, unless it could not be filled. `interrupted` is set by a signal handler: 1: an
 * orderly end; 2: at once, nothing that is out is waited for. `err`
 * holds the first cause when the status is not OK. */
enum status session_run(struct plan *plan, struct clock *clock, const struct session_hooks *hooks,
                        volatile sig_atomic_t *interrupted, struct err *err);

#endif
