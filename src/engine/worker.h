/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One worker: one thread, one context, one stream. It owns all that its loop touches; the coordinator sees it only
 * through `live` and the gate. */
#ifndef ENGINE_WORKER_H
#define ENGINE_WORKER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "backends/backend.h"
#include "engine/depth.h"
#include "engine/rate.h"
#include "engine/tracks.h"
#include "pattern/data.h"
#include "pattern/pattern.h"
#include "pattern/stream.h"
#include "result/record.h"

/* A worker never waits so long between two steps of its loop: if it took so long, this client stood still. */
#define STANDSTILL (500 * NS_PER_MS)

/* What the coordinator may read while the loop runs: totals since the start, stored once per batch. */
struct worker_live {
    _Atomic uint64_t ios, bytes, lat_sum, errors;
};

struct worker_counts { /* what the window, the tail and the whole run add up to */
    struct record_op op[IO_OPS];
    uint64_t failed, short_ios;
    int64_t failed_ns, failed_longest_ns;
    struct record_tail tail;
    uint64_t rate_missed, rate_unsent; /* due and never sent: given up over rate_backlog; owed at the end */
    int64_t submit_ns;
    uint64_t writes, writes_stable, flushes; /* completed well, in any phase: for the durability class */
    uint64_t ios_completed;                  /* in any phase, flushes included */
    int64_t gap_ns, gap_from;                /* the longest time without a completion while I/Os were out, in the window */
    struct record_standstill still;          /* outside of submit */
    int64_t held_from, held_to;              /* the longest submit, where it took STANDSTILL or more */
};

struct worker {
    /* set before worker_attach */
    const struct backend *backend;
    struct handle *handle;
    const struct facts *facts;
    const struct pattern *pattern;
    uint64_t base, size, seed;
    unsigned round, index, workers;
    uint32_t run_tag;    /* in the marks of this run's data */
    const struct data_note *note; /* NULL: none; not owned */
    struct clock *clock; /* virtual: the worker's own */
    int64_t drain_limit; /* ns after the end for the drain */
    int64_t series_interval_ns;
    unsigned n_points;
    struct record_point *points; /* owned */

    /* set before worker_loop, equal for all workers of a run */
    int64_t t_start, t_window, t_end; /* t_end: INT64_MAX when the amount decides, not the time */

    _Atomic bool stop;  /* the coordinator asks to end early */
    _Atomic bool hurry; /* and waits for nothing that is out */
    struct worker_live live;

    /* results */
    struct worker_counts counts;
    struct kinds kinds;
    unsigned last_kind; /* of the last failure */
    struct depth depth;
    int64_t submit_from, submit_to; /* of the last submit that took STANDSTILL or more */
    int64_t looked;      /* when nothing had come, last */
    int64_t quiet_since; /* the last completion, or the submission when nothing else was out */
    struct kv protocol;
    int64_t t_over;       /* when this worker's window ended: t_end, or the last completion */
    int lost;             /* negative errno: the context was lost */
    bool gave_up;         /* too many failures in a row */
    int64_t end_flush_ns; /* end_fsync; 0: none, or it failed */
    int cpu;

    /* the loop's own */
    struct stream stream;
    struct rate rate;
    struct stream unsent; /* of I/Os that are due and never sent: only their kind counts */
    struct context *context;
    struct request *requests, **free, **batch;
    struct completion *done;
    unsigned n_free, n_batch, depth_limit;
    char *buffers;
    size_t stride;
    struct data data; /* of what it writes */
    uint64_t budget; /* bytes still to issue in the window; UINT64_MAX: no limit */
    uint64_t writes_since_flush, since_pause;
    int64_t pause_until;
    int64_t point_from, point_to; /* the current interval of the series */
    struct record_point *point;
    struct tracks tracks;
    unsigned failures_in_row;
    bool flushing_end, no_room, reads_only;
    uint64_t seen_ios, seen_bytes, seen_lat, seen_errors;

    char apart[128]; /* workers stand in an array: no cache line of one is another's */
};

/* In the worker's thread: memory, stream, context. Errors: STATUS_TARGET, prefixed by nothing. */
int worker_attach(struct worker *w, struct err *err);
/* From t_start to the end of the drain. No malloc, no lock, no system call but the backend's. */
void worker_loop(struct worker *w);
void worker_detach(struct worker *w); /* same thread; results stay */
void worker_free(struct worker *w);

#endif
