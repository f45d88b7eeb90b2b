/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "engine/account.h"

#include <string.h>

/* So many failures without one success between them: the target refuses the load, and hammering on tells nothing more.
 */
#define FAILURES_GIVE_UP 1000

/* A worker looks every 100 ms. One that did not for so long did not run itself: what came meanwhile, it cannot know. */
#define BLIND (200 * NS_PER_MS)

/* Where a completion falls: in the ramp, in the window, in the tail. */
enum when { WHEN_BEFORE, WHEN_INSIDE, WHEN_AFTER };

/* A run of unknown length outgrows its series: neighbours are added up and the interval doubles. */
static void fold_points(struct worker *w) {
    unsigned half = w->n_points / 2;
    for (unsigned i = 0; i < half; i++) {
        struct record_point sum = w->points[2 * i];
        record_point_add(&sum, &w->points[2 * i + 1]);
        w->points[i] = sum;
    }
    memset(w->points + half, 0, (w->n_points - half) * sizeof *w->points);
    w->series_interval_ns *= 2;
}

static struct record_point *point_at(struct worker *w, int64_t t) {
    while ((uint64_t)(t - w->t_window) / (uint64_t)w->series_interval_ns >= w->n_points) fold_points(w);
    int64_t i = (t - w->t_window) / w->series_interval_ns;
    w->point_from = w->t_window + i * w->series_interval_ns;
    w->point_to = w->point_from + w->series_interval_ns;
    return w->point = &w->points[i];
}

static inline struct record_point *point_now(struct worker *w, int64_t t) {
    if (__builtin_expect(t >= w->point_from && t < w->point_to, 1)) return w->point;
    return point_at(w, t);
}

static __attribute__((noinline)) void failed(struct worker *w, const struct completion *c, enum when when) {
    const struct request *r = c->request;
    unsigned kind = c->kind;
    if (c->result >= 0) {
        kind = kinds_note(&w->kinds, r->op == IO_READ ? "short read" : "short write",
                          "fewer bytes were moved than asked for");
        w->counts.short_ios += when == WHEN_INSIDE;
    }
    w->kinds.kind[kind].count++;
    w->last_kind = kind;
    w->seen_errors++;
    if (when == WHEN_INSIDE) {
        w->counts.failed++;
        int64_t held = c->t_done - r->t_submit;
        w->counts.failed_ns += held;
        if (held > w->counts.failed_longest_ns) w->counts.failed_longest_ns = held;
        point_now(w, c->t_done)->errors++;
    } else if (when == WHEN_AFTER) {
        w->counts.tail.errors++;
    }
    if (++w->failures_in_row >= FAILURES_GIVE_UP) w->gave_up = true;
}

/* ---- groups of completions: one stamp, one phase ---- */

/* What a group adds up to, kept close until it is over. */
struct group {
    enum when when;
    int64_t t;
    uint64_t ios[IO_OPS], bytes[IO_OPS], lat_sum, stable;
    int64_t lat_max;
};

/* A member of the group whose first completion is `a`: one stamp; where an amount ends the run, one kind of I/O too. */
static inline bool in_group(const struct worker *w, const struct completion *a, const struct completion *c) {
    if (a->t_done != c->t_done) return false;
    return w->budget == UINT64_MAX || a->request->in_window == c->request->in_window;
}

static inline enum when when_of(const struct worker *w, const struct completion *c) {
    if (c->t_done < w->t_window) return WHEN_BEFORE;
    if (w->budget != UINT64_MAX) return c->request->in_window ? WHEN_INSIDE : WHEN_BEFORE;
    return c->t_done < w->t_end ? WHEN_INSIDE : WHEN_AFTER;
}

/* `n` completions of direction `op` that were sent under one stamp too: one latency. */
static inline void take_alike(struct worker *w, struct group *g, unsigned op, int64_t clat, unsigned n) {
    g->ios[op] += n;
    if (g->when == WHEN_INSIDE) hist_record_many(&w->counts.op[op].clat, clat, n);
    if (op == IO_FLUSH) return;
    g->lat_sum += (uint64_t)clat * n;
    if (clat > g->lat_max) g->lat_max = clat;
}

/* The group that begins with `c`; returns its end. Runs of completions that were sent together cost little each; where
 * every I/O has a due time, or an amount to be counted against, a run is one. A flush has length and result 0, so that
 * one comparison finds every failure. */
static inline const struct completion *take_group(struct worker *w, const struct completion *c,
                                                  const struct completion *end, struct group *g) {
    const struct completion *const first = c;
    const bool due = w->rate.iops != 0, single = due || w->budget != UINT64_MAX;
    struct request **free = w->free + w->n_free;
    while (c < end && in_group(w, first, c)) {
        const struct completion *const limit = single ? c + 1 : end;
        const struct request *const head = c->request;
        const int64_t t_done = g->t, sent = head->t_submit;
        const unsigned op = head->op;
        uint64_t bytes = 0, stable = 0;
        unsigned alike = 0;
        do {
            struct request *r = c->request;
            if (r->t_submit != sent || r->op != op) break;
            *free++ = r;
            if (__builtin_expect(c->result != (int64_t)r->len, 0)) {
                failed(w, c, g->when);
                continue;
            }
            alike++;
            bytes += r->len;
            stable += c->stable;
        } while (++c < limit && c->t_done == t_done);
        g->bytes[op] += bytes;
        g->stable += stable;
        if (!alike) continue;
        take_alike(w, g, op, t_done - sent, alike);
        if (due && g->when == WHEN_INSIDE && op != IO_FLUSH)
            hist_record(&w->counts.op[op].lat, t_done - head->t_due);
    }
    w->n_free += (unsigned)(c - first);
    return c;
}

static void add_to_window(struct worker *w, const struct group *g) {
    struct record_point *p = point_now(w, g->t);
    for (int op = 0; op < IO_OPS; op++) {
        w->counts.op[op].ios += g->ios[op];
        w->counts.op[op].bytes += g->bytes[op];
    }
    for (int op = IO_READ; op <= IO_WRITE; op++) {
        p->ios[op] += g->ios[op];
        p->bytes[op] += g->bytes[op];
    }
    p->lat_sum += g->lat_sum;
    if (g->lat_max > p->lat_max) p->lat_max = g->lat_max;
}

/* What was out at the window's end; failed I/Os too: how long they held on is known as well. */
static void add_to_tail(struct worker *w, const struct completion *c, unsigned n) {
    struct record_tail *tail = &w->counts.tail;
    for (unsigned i = 0; i < n; i++) {
        int64_t lat = c[i].t_done - (w->rate.iops ? c[i].request->t_due : c[i].request->t_submit);
        tail->ios++;
        if (lat > tail->longest_ns) tail->longest_ns = lat;
        if (c[i].t_done - w->t_over > tail->drain_ns) tail->drain_ns = c[i].t_done - w->t_over;
    }
}

void account_gap(struct worker *w, int64_t until) {
    int64_t from = w->quiet_since > w->t_window ? w->quiet_since : w->t_window;
    int64_t looked = w->looked > from ? w->looked : from;
    if (until - looked > BLIND) until = looked;
    if (until > w->t_end) until = w->t_end;
    if (until - from <= w->counts.gap_ns) return;
    w->counts.gap_ns = until - from;
    w->counts.gap_from = from;
}

void account_standstill(struct worker *w, int64_t from, int64_t to) {
    struct record_standstill *still = &w->counts.still;
    if (from < w->t_window) from = w->t_window;
    if (to > w->t_end) to = w->t_end;
    if (to - from < STANDSTILL) return;
    still->times++;
    still->ns += to - from;
    if (to - from <= still->longest_ns) return;
    still->longest_ns = to - from;
    still->at = from - w->t_window;
}

void account_nothing(struct worker *w, int64_t now) {
    int64_t looked = w->looked > w->quiet_since ? w->looked : w->quiet_since;
    if (now - looked > BLIND) {
        account_gap(w, now);
        w->quiet_since = now;
    }
    w->looked = now;
}

static const struct completion *complete(struct worker *w, const struct completion *c, const struct completion *end) {
    struct group g = {.when = when_of(w, c), .t = c->t_done};
    const struct completion *first = c;
    if (__builtin_expect(g.t - w->quiet_since > w->counts.gap_ns, 0)) account_gap(w, g.t);
    c = take_group(w, c, end, &g);
    unsigned n = (unsigned)(c - first);
    depth_change(&w->depth, g.t, -(int64_t)n);
    w->quiet_since = g.t;
    if (g.when == WHEN_AFTER && !w->flushing_end) add_to_tail(w, first, n);
    if (g.when == WHEN_INSIDE && w->budget != UINT64_MAX) w->t_over = g.t;
    if (g.when == WHEN_INSIDE) add_to_window(w, &g);
    if (g.ios[IO_READ] | g.ios[IO_WRITE] | g.ios[IO_FLUSH]) w->failures_in_row = 0;
    w->counts.ios_completed += n;
    w->counts.writes += g.ios[IO_WRITE];
    w->counts.writes_stable += g.stable;
    w->counts.flushes += g.ios[IO_FLUSH];
    w->writes_since_flush += g.ios[IO_WRITE];
    w->since_pause += n - g.ios[IO_FLUSH];
    w->seen_ios += g.ios[IO_READ] + g.ios[IO_WRITE];
    w->seen_bytes += g.bytes[IO_READ] + g.bytes[IO_WRITE];
    w->seen_lat += g.lat_sum;
    return c;
}

__attribute__((noinline)) void account_unsent(struct worker *w, uint64_t k, uint64_t n, int64_t until) {
    for (; n > 0; n--, k++) {
        struct stream_io io;
        stream_next(&w->unsent, &io);
        hist_record(&w->counts.op[io.op].lat, until - rate_due(&w->rate, k));
    }
}

void account(struct worker *w, const struct completion *c, unsigned n) {
    for (const struct completion *end = c + n; c < end;) c = complete(w, c, end);
}
