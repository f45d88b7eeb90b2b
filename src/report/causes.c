/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/causes.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "report/figure.h"
#include "result/view.h"

#define STALL_NS     NS_PER_SEC
#define STALL_SHORT  (250 * NS_PER_MS) /* a stall, if it is STALL_SHARE of the window */
#define STALL_SHARE  0.05
#define STALL_TIMES  10  /* as long as an I/O takes on average */
#define CLIFF_POINTS 8   /* of the series; fewer show no shape */
#define CLIFF_SIDE   2   /* points on each side of a cliff, and a tenth of all, at least */
#define CLIFF_RATIO  1.5
#define CLIFF_ODD    0.1 /* of a side's points may lie on the other side */

/* ---- a stall ---- */

/* Each second has one ping, of the kinds in turn. */
static bool answered_in(const json_t *series, size_t i) {
    const char *kind;
    json_t *values;
    json_object_foreach((json_t *)(uintptr_t)series, kind, values)
        if (json_is_number(json_array_get(values, i))) return true;
    return false;
}

/* Pings that came back in [from, to) of the window; *due: seconds of it that had one due. */
static unsigned pings_between(const json_t *run, double from, double to, unsigned *due) {
    const char *by = view_text(run, "ping/by");
    const json_t *series = view_at(run, "series/ping");
    size_t n = by ? json_array_size(json_object_get(series, by)) : 0;
    double interval = view_number(run, "series/interval_ns");
    unsigned answered = 0;
    *due = 0;
    for (size_t i = 0; i < n; i++) {
        /* Pings are sent a tenth of a second behind the beginning of each. */
        double at = (double)i * interval + NS_PER_SEC / 10;
        if (at < from || at >= to) continue;
        (*due)++;
        answered += answered_in(series, i);
    }
    return answered;
}

static double cause_stall(const json_t *run, char *buf, size_t len) {
    double ns = view_number(run, "stall/longest_ns"), at = view_number(run, "stall/at_ns");
    double window = view_number(run, "window_ns"), mean = view_number(run, "total/clat_ns/mean");
    double of = view_number(run, "workers"), share = ns / window;
    char took[40], when[40], percent[40], who[80] = "nothing";
    unsigned due, answered;

    if (!(ns >= STALL_NS || (ns >= STALL_SHORT && share >= STALL_SHARE)) || ns < STALL_TIMES * mean) return 0;
    if (of > 1 && view_number(run, "stall/workers") < of)
        snprintf(who, sizeof who, "for %.0f of %.0f workers nothing", view_number(run, "stall/workers"), of);
    snprintf(buf, len, "a stall: %s came back for %s, from %s of the window on (%s %% of it), although I/Os were out", who,
             figure_time(took, sizeof took, ns), figure_time(when, sizeof when, at),
             figure(percent, sizeof percent, 100 * share, 2));
    answered = pings_between(run, at, at + ns, &due);
    size_t n = strlen(buf);
    if (due && n < len)
        snprintf(buf + n, len - n, "; %u of %u pings were answered meanwhile: %s", answered, due,
                 2 * answered > due ? "the network and the server's protocol were alive, its storage or this connection was not"
                                    : "server or network stood still");
    return share;
}

/* The clock went on while nothing of this client ran: rate, mean and maximum hold that time, and not the target's. */
static double cause_standstill(const json_t *run, char *buf, size_t len) {
    double ns = view_number(run, "standstill/ns"), at = view_number(run, "standstill/at_ns");
    uint64_t times = view_uint(run, "standstill/times");
    char took[40], when[40], longest[40], more[100] = "";

    if (!(ns > 0)) return 0;
    if (times > 1)
        snprintf(more, sizeof more, " in all, %" PRIu64 " times, the longest %s", times,
                 figure_time(longest, sizeof longest, view_number(run, "standstill/longest_ns")));
    snprintf(buf, len,
             "this client stood still for %s%s (stopped, suspended or starved of CPU), from %s of the window on: the row "
             "counts it, as a lower rate and longer latencies than the target's",
             figure_time(took, sizeof took, ns), more, figure_time(when, sizeof when, at));
    return ns / view_number(run, "window_ns");
}

/* ---- a cliff ---- */

struct points {
    double *rate;    /* per second; owned */
    double *ends;    /* ns from the window's start; the second half of the same memory */
    size_t n;
    double interval; /* ns */
};

static bool within(double at, double ns, double from, double to) {
    return ns >= STALL_SHORT && at < to && at + ns > from;
}

/* A stall has a line of its own, and its intervals show nothing else; so has a standstill of this client. */
static bool stalled(const json_t *run, double from, double to) {
    return within(view_number(run, "stall/at_ns"), view_number(run, "stall/longest_ns"), from, to) ||
           within(view_number(run, "standstill/at_ns"), view_number(run, "standstill/longest_ns"), from, to);
}

/* Whole intervals only. */
static struct points points_of(const json_t *run) {
    const json_t *reads = view_at(run, "series/read_ios"), *writes = view_at(run, "series/write_ios");
    struct points p = {.interval = view_number(run, "series/interval_ns")};
    double window = view_number(run, "window_ns");
    size_t all = json_array_size(reads);
    p.rate = calloc(2 * all + 1, sizeof *p.rate);
    p.ends = p.rate ? p.rate + all : NULL;
    for (size_t i = 0; p.rate && i < all && (double)(i + 1) * p.interval <= window; i++) {
        double from = (double)i * p.interval, to = from + p.interval;
        if (stalled(run, from, to)) continue;
        double ios = json_number_value(json_array_get(reads, i)) + json_number_value(json_array_get(writes, i));
        p.rate[p.n] = ios * NS_PER_SEC / p.interval;
        p.ends[p.n++] = to;
    }
    return p;
}

static double mean_of(const double *v, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += v[i];
    return sum / (double)n;
}

/* Do nearly all of them lie on one side of the middle between the two levels? */
static bool keeps_to(const double *v, size_t n, double middle, bool above) {
    size_t odd = 0;
    for (size_t i = 0; i < n; i++) odd += (v[i] > middle) != above;
    return (double)odd <= CLIFF_ODD * (double)n;
}

/* The place where two levels explain the series best: it has the least squares around them. */
static size_t best_cut(const struct points *p, size_t side) {
    size_t best = 0;
    double most = -1;
    for (size_t cut = side; cut + side <= p->n; cut++) {
        double a = mean_of(p->rate, cut), b = mean_of(p->rate + cut, p->n - cut);
        double between = (a - b) * (a - b) * (double)cut * (double)(p->n - cut);
        if (between > most) {
            most = between;
            best = cut;
        }
    }
    return best;
}

static double put_cliff(const struct points *p, char *buf, size_t len) {
    size_t side = p->n / 10 > CLIFF_SIDE ? p->n / 10 : CLIFF_SIDE, cut = best_cut(p, side);
    double a = mean_of(p->rate, cut), b = mean_of(p->rate + cut, p->n - cut), middle = (a + b) / 2;
    char before[40], after[40], first[40];

    if (!(fmin(a, b) > 0) || !(fmax(a / b, b / a) >= CLIFF_RATIO)) return 0; /* to nothing: a stall */
    if (!keeps_to(p->rate, cut, middle, a > b) || !keeps_to(p->rate + cut, p->n - cut, middle, b > a)) return 0;
    snprintf(buf, len, "the rate %s within the window: %s IOPS in its first %s, %s IOPS after that; the row's "
             "average is neither: %s", a > b ? "fell" : "rose", figure(before, sizeof before, a, 3),
             figure_time(first, sizeof first, p->ends[cut - 1]), figure(after, sizeof after, b, 3),
             a > b ? "as when something runs full or out (a write cache, a burst credit, a thin pool) or another load begins; a "
                     "longer ramp_time= shows what lasts"
                   : "as when something warms up (a cache, a tier) or another load ends; a longer ramp_time= shows what "
                     "lasts");
    return fmax(a / b, b / a);
}

static double cause_cliff(const json_t *run, char *buf, size_t len) {
    struct points p = points_of(run);
    double bad = p.rate && p.n >= CLIFF_POINTS ? put_cliff(&p, buf, len) : 0;
    free(p.rate);
    return bad;
}

/* ---- alignment ---- */

/* Every I/O is as long as what all keep to: in a larger physical block none crosses an edge. */
static bool all_within(const json_t *run, uint64_t block, uint64_t align) {
    double ios = view_number(run, "total/ios");
    return block % align == 0 && view_number(run, "total/bytes") == ios * (double)align;
}

/* Where the physical block is larger than what offsets and lengths keep to, or the device does not begin on one. A read
 * that lies within a block costs nothing. */
static double cause_alignment(const json_t *run, char *buf, size_t len) {
    uint64_t block = view_uint(run, "physical_block"), align = view_uint(run, "io_align");
    uint64_t off = view_uint(run, "physical_offset"), writes = view_uint(run, "write/ios");
    char physical[40], own[40], size[40], why[200] = "";

    if (!block || !align || !view_uint(run, "total/ios")) return 0;
    off %= block;
    if (off % align == 0 && off && all_within(run, block, align) && !writes) return 0;
    if (align % block && (writes || !all_within(run, block, align)))
        snprintf(why, sizeof why, "offsets and lengths keep to %s only (bs=, blockalign=, offset=)",
                 units_size_human(own, sizeof own, align));
    if (off) {
        size_t at = strlen(why);
        snprintf(why + at, sizeof why - at, "%sthe device begins %s behind the edge of one (where its partition starts)",
                 at ? ", and " : "", units_size_human(size, sizeof size, off));
    }
    if (!why[0]) return 0;
    snprintf(buf, len, "I/Os do not fit the device's physical blocks of %s: %s%s", units_size_human(physical, sizeof physical, block),
             why, writes ? "; a block that is written in part has to be read first" : "");
    return 1;
}

const struct cause causes[] = {
    {cause_stall, 0},
    {cause_standstill, 0},
    {cause_cliff, 0},
    {cause_stuck_connection, 0},
    {cause_black_hole, 0},
    {cause_loss, 0},
    {cause_r2t, 0},
    {cause_one_path, 0},
    {cause_alignment, 0},
    {NULL, 0},
};
