/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What session.c (what is done, in which order) and session_progress.c (what is shown of it) share. */
#ifndef ENGINE_SESSION_STATE_H
#define ENGINE_SESSION_STATE_H

#include <stdbool.h>

#include "engine/ping.h"
#include "engine/session.h"

struct place {          /* what the session remembers of a target */
    int64_t idle_ns;    /* depth-1 read before the first run */
    int64_t prepare_ns; /* goes to the target's first record */
    bool written;       /* there was a first write */
    bool dirty;         /* written since the last flush */
    bool prepared;      /* as far as that was wanted */
    bool refused;       /* by before_write: it is asked again before anything else is done */
    unsigned lost_in;   /* the round; 0: in its preparation */
    bool unprepared;    /* filling failed: its runs have errors, though the target is there */
    double *holes;      /* per pattern; NAN: unknown */
    unsigned sampled, zeros; /* blocks that prepare_check read, and those of them with nothing but zeros */
    struct ping_idle idle_ping;
};

struct session {
    struct plan *plan;
    struct clock *clock;
    const struct session_hooks *hooks;
    volatile sig_atomic_t *interrupted;
    struct place *place; /* per target */
    double *own_cost;    /* per pattern: CPU ns per I/O of samedisk itself; NAN: unknown */
    uint64_t from, to;   /* union of all working sets */
    int64_t began, phase_began;
    struct session_progress progress;
    uint64_t last_ios, last_bytes, last_lat;
    int64_t last_tick;
    enum status status;
    struct err first; /* the first cause of a status that is not OK */
};

/* Shows where the session stands. */
void session_enter(struct session *s, enum session_phase phase, const struct target *t);
/* Callbacks of prepare.h and run.h; `arg` is the session. */
void session_on_bytes(void *arg, uint64_t done, uint64_t total);
void session_on_tick(void *arg, enum session_phase phase, int64_t elapsed, int64_t phase_ns, uint64_t ios,
                     uint64_t bytes, uint64_t lat, uint64_t errors);

#endif
