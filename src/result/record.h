/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the engine knows of one run (one pattern on one target in one round) when it is over: counts, times, histograms.
 * No percentages, no strings for people: result/json.c makes the canonical document from it. */
#ifndef RESULT_RECORD_H
#define RESULT_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hist.h"
#include "base/io.h"
#include "base/kinds.h"
#include "base/kv.h"

enum run_status { RUN_OK, RUN_ERRORS, RUN_LOST, RUN_INTERRUPTED };
const char *run_status_name(enum run_status s); /* "ok" "errors" "lost" "interrupted" */

struct record_op {           /* reads, writes or flushes that completed whole inside the window */
    uint64_t ios, bytes;
    struct hist clat;        /* T3 - T1 */
    struct hist lat;         /* T3 - T0; without a rate the same as clat (has_due false: left empty) */
};

struct record_point {        /* one interval of the series, by time of completion */
    uint64_t ios[2], bytes[2]; /* [IO_READ], [IO_WRITE] */
    uint64_t lat_sum;        /* ns, both directions */
    int64_t lat_max;
    uint64_t errors;
};

/* A protocol's value over time, beside the points of the series: an interval's increment where it is cumulative, else the
 * value at its end; NAN: unknown. */
struct record_track {
    char name[32];
    bool cumulative;
    double *values;          /* one for each point; NAN: unknown; owned */
    double first, last;      /* at the window's start and end; NAN: unknown */
    double total;            /* cumulative: what the whole window added; NAN: unknown */
};
#define RECORD_TRACKS 32

/* One kind of protocol ping (NULL RPC, NOP-Out ...) on a connection of its own. */
struct record_ping {
    char kind[32];
    int64_t idle_min, idle_median; /* ns, before the first run; 0: unknown */
    unsigned idle_n;
    unsigned n, lost;        /* answered inside the window; not answered until the next was due */
    int64_t min, median, max; /* ns, of those answered in the window; 0: none */
    unsigned after_n;        /* when the load was over */
    int64_t after_median;
    double *values;          /* for each point of the series the mean of its pings, ns; NAN: none; owned */
};
#define RECORD_PINGS 4

struct record_tail {         /* outstanding at the window's end, drained afterwards; not in IOPS */
    uint64_t ios, errors;
    int64_t longest_ns;      /* largest latency among them */
    int64_t drain_ns;        /* from the window's end to the last of them */
    uint64_t abandoned;      /* still out when the drain's deadline came */
    int64_t abandoned_ns;    /* how old the oldest of them was then; in longest_ns, too */
};

/* The longest time within the window in which nothing came back, although I/Os were out. */
struct record_stall {
    int64_t ns, at;          /* how long, and when it began, from the window's start; ns 0: none */
    unsigned workers;        /* that had no completion for most of it; 1 of several: only that one's */
};

/* Times within the window in which this client did not run at all: of the worker that lost most by it. */
struct record_standstill {
    int64_t ns, longest_ns, at; /* in all; the longest, and when it began, from the window's start; ns 0: none */
    unsigned times;
};

struct record_cpu {
    int64_t user_ns, system_ns;       /* of the process, over the window */
    int64_t host_busy_ns, host_ns;    /* of all CPUs: everything but idle and iowait; and elapsed times the CPUs. 0: unknown */
};

struct record_data {         /* what is written, or was */
    bool known;              /* false: nothing, or nobody knows */
    bool zeros;              /* else random, but for: */
    unsigned compress, dedupe; /* percent of each sector that is zeros; of the writes that repeat another's data */
};

#define RECORD_MARKS 48

struct record {
    char *pattern, *target;  /* owned */
    unsigned round, order;   /* from 1 */
    enum run_status status;
    char error[512];         /* "": none */

    int64_t started_ns;      /* on the plan's clock, since the plan began */
    int64_t prepare_ns, flush_ns, settle_ns, ramp_ns, window_ns; /* window_ns: measured */
    int64_t settle_read_ns, idle_read_ns;   /* depth-1 read when settled, and idle at the plan's start; 0: not done */
    uint64_t prepare_retries, prepare_retry_ns; /* answers "not now" to what prepared the target, and the pauses */
    bool settled;            /* within twice the idle latency before the deadline */
    int64_t end_flush_ns;    /* end_fsync: the flush after the drain; 0: none */

    unsigned n_marks;        /* fingerprint: hash over all workers after 2^k I/Os each, k < n_marks */
    uint64_t mark[RECORD_MARKS];
    unsigned workers;
    uint64_t depth_requested;   /* iodepth x numjobs */
    double depth_achieved;      /* time integral of the outstanding count over the window / window */
    double depth_little;        /* all latencies of the window (flushes and failed I/Os too) / window: should be the same */
    uint64_t ios_generated;

    enum io_durability durability;
    struct record_data written; /* by this run */
    struct record_data filled;  /* into the working set, by the plan before its first run */
    uint32_t io_align;       /* offsets and lengths are multiples of it */
    uint64_t physical_block, physical_offset; /* of the device, and how far behind the edge of one it begins; 0: unknown */
    int cache;               /* enum pattern_cache as it was in effect */
    double holes;            /* share of the working set without storage behind it; NAN: unknown */
    unsigned blocks_sampled, zeros_sampled; /* looked at before the first run, and zeros among them; 0, 0: not looked */

    bool has_due;            /* rate_iops was given */
    bool pauses;             /* thinktime was given */
    struct record_op op[IO_OPS];
    uint64_t failed, failed_ns;  /* I/Os of the window that failed or were short, and the time they held a slot */
    int64_t failed_longest_ns;   /* ... each, at most */
    uint64_t short_ios;
    struct kinds errors;     /* counts by kind, ramp and tail included */
    struct record_tail tail;
    struct record_stall stall;
    struct record_standstill standstill;
    uint64_t rate_missed;    /* due I/Os that were given up over rate_backlog */
    uint64_t rate_unsent;    /* due and not yet sent at the window's end; both count in `lat` until then */
    bool lat_lower_bound;    /* ... and are so many that its figures are lower bounds */
    int64_t submit_ns;       /* inside submit, sum over the workers, in the window */
    struct record_cpu cpu;
    double own_ns_per_io;    /* CPU ns per I/O that samedisk's own loop takes, measured without I/O; NAN: unknown */
    double wire_ios_per_io;  /* requests that reached the wire or device per I/O; NAN: unknown */
    struct kv protocol;
    int worker_cpu[64];      /* CPU each worker last ran on, first 64 workers */

    int64_t series_interval_ns;
    unsigned n_points;
    struct record_point *points; /* owned */
    unsigned n_tracks;
    struct record_track track[RECORD_TRACKS];
    unsigned n_pings;
    struct record_ping ping[RECORD_PINGS];
    int64_t ping_floor_ns;   /* the smallest round trip the pings' TCP saw: the network's share; 0: unknown */
    char ping_error[256];    /* why there are no (more) pings; "": none of that */
};

void record_point_add(struct record_point *into, const struct record_point *from);
struct record *record_new(const char *pattern, const char *target); /* NULL: no memory */
void record_free(struct record *r);

#endif
