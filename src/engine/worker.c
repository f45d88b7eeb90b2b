/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "engine/worker.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "engine/account.h"
#include "engine/cpu.h"
#include "engine/seal.h"
#include "target/confirm.h"

/* What is out when a run was stopped gets so long to come back: a few times what I/Os took so far, within these. */
#define STOPPED_LEAST (500 * NS_PER_MS)
#define STOPPED_MOST  (3 * NS_PER_SEC)

/* The longest wait in one reap: how late a stop request is seen. */
#define REAP_LIMIT (100 * NS_PER_MS)

static int allocate(struct worker *w, struct err *err) {
    unsigned depth = w->depth_limit;
    w->stride = (pattern_max_io(w->pattern) + 4095u) & ~(size_t)4095u;
    w->requests = calloc(depth, sizeof *w->requests);
    w->free = calloc(depth, sizeof(struct request *));
    w->batch = calloc(depth, sizeof(struct request *));
    w->done = calloc(depth, sizeof *w->done);
    w->points = calloc(w->n_points ? w->n_points : 1, sizeof *w->points);
    w->buffers = aligned_alloc(4096, depth * w->stride);
    if (!w->requests || !w->free || !w->batch || !w->done || !w->points || !w->buffers)
        return err_set(err, STATUS_TARGET, "no memory for %u buffers of %zu bytes", depth, w->stride);
    memset(w->buffers, 0, depth * w->stride); /* pages are there before the clock starts */
    for (unsigned i = 0; i < depth; i++) {
        struct request *r = &w->requests[i];
        r->slot = depth - 1 - i;
        r->buf = w->buffers + r->slot * w->stride;
        r->sync = (uint8_t)w->pattern->sync;
        w->free[i] = r;
    }
    w->n_free = depth;
    return 0;
}

int worker_attach(struct worker *w, struct err *err) {
    const struct pattern *p = w->pattern;
    prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0);
    if (p->cpus.n && !clock_is_virtual(w->clock)) { /* in virtual time all workers are one thread, the caller's */
        unsigned cpu = p->cpus.cpu[w->index % p->cpus.n];
        int e = cpu_pin(cpu);
        if (e) return err_set(err, STATUS_TARGET, "cpus_allowed: cannot be pinned to CPU %u: %s", cpu, strerror(-e));
    }
    w->depth_limit = (unsigned)p->iodepth;
    w->reads_only = !pattern_writes(p);
    for (int op = 0; op < IO_OPS; op++) {
        hist_init(&w->counts.op[op].clat);
        hist_init(&w->counts.op[op].lat);
    }
    if (allocate(w, err) != 0) return -1;
    if (stream_init(&w->stream, p, w->base, w->size, w->seed, w->round, w->index, w->workers, err) != 0) return -1;
    struct attach_how how = {.depth = w->depth_limit,
                             .max_io = pattern_max_io(p),
                             .buffers = w->buffers,
                             .stride = w->stride,
                             .clock = w->clock,
                             .kinds = &w->kinds,
                             .write = pattern_writes(p),
                             .seal = seal_of_note(w->note)};
    if (w->backend->attach(w->handle, &how, &w->context, err) != 0) {
        w->context = NULL;
        return -1;
    }
    data_init(&w->data, w->run_tag, (uint64_t)w->index << 48, w->note);
    data_choose(&w->data, &p->data);
    if (tracks_init(&w->tracks, w->backend, w->handle, w->n_points, w->series_interval_ns) != 0)
        return err_set(err, STATUS_TARGET, "no memory for the protocol's values");
    return 0;
}

static void publish(struct worker *w) {
    atomic_store_explicit(&w->live.ios, w->seen_ios, memory_order_relaxed);
    atomic_store_explicit(&w->live.bytes, w->seen_bytes, memory_order_relaxed);
    atomic_store_explicit(&w->live.lat_sum, w->seen_lat, memory_order_relaxed);
    atomic_store_explicit(&w->live.errors, w->seen_errors, memory_order_relaxed);
}

/* One reap of at most `timeout`; false when the context is lost. */
static bool reap(struct worker *w, int64_t timeout, int64_t *now) {
    int n = w->backend->reap(w->context, w->done, w->depth_limit, 1, timeout);
    if (n < 0) {
        w->lost = n;
        return false;
    }
    account(w, w->done, (unsigned)n);
    if (n > 0) {
        *now = w->done[n - 1].t_done;
        publish(w);
    } else {
        *now = clock_now(w->clock);
        account_nothing(w, *now);
    }
    if (w->since_pause >= w->pattern->thinktime_blocks && w->pattern->thinktime) {
        w->since_pause = 0;
        w->pause_until = *now + (int64_t)w->pattern->thinktime;
    }
    return true;
}

/* ---- issuing ---- */

static inline void make_flush(struct worker *w) {
    struct request *r = w->free[--w->n_free];
    r->op = IO_FLUSH;
    r->len = 0;
    r->offset = 0;
    r->t_due = 0;
    w->batch[w->n_batch++] = r;
}

/* One for each N writes, also where many complete at once: else a target whose answers come in bunches would have less
 * to do than others. */
static inline bool flush_is_due(const struct worker *w) {
    return w->pattern->fsync && w->writes_since_flush >= w->pattern->fsync;
}

/* Free requests on their way into the batch. On the stack: what is not in the worker stays in registers. */
struct filling {
    struct worker *worker;
    struct request **from, **to; /* the next free one is below `from` */
};

static inline struct request *put_any(struct filling *f, const struct stream_io *io) {
    struct request *r = *--f->from;
    r->op = (uint8_t)io->op;
    r->len = io->len;
    r->offset = io->offset;
    return *f->to++ = r;
}

static inline void put_read(void *arg, const struct stream_io *io) {
    put_any(arg, io);
}

static inline void put_io(void *arg, const struct stream_io *io) {
    struct filling *f = arg;
    struct request *r = put_any(f, io);
    if (io->op == IO_WRITE) data_make(&f->worker->data, r->buf, io->offset, io->len);
}

static inline __attribute__((always_inline)) void fill_many(struct worker *w, unsigned n) {
    struct filling f = {w, w->free + w->n_free, w->batch + w->n_batch};
    if (w->reads_only) stream_each(&w->stream, n, put_read, &f);
    else stream_each(&w->stream, n, put_io, &f);
    w->n_free -= n;
    w->n_batch += n;
}

/* The plain case: no due times, no amount to keep to. */
static void fill_all(struct worker *w) {
    fill_many(w, w->n_free);
}

/* One I/O more, if the amount to do allows it; only I/Os of the window draw on the amount. */
static bool fill_one(struct worker *w, int64_t due, bool in_window) {
    bool pays = w->budget != UINT64_MAX && in_window;
    if (w->n_free == 0 || (pays && w->budget == 0)) return false;
    struct request *r = w->free[w->n_free - 1];
    r->t_due = due;
    r->in_window = in_window;
    fill_many(w, 1);
    if (pays) w->budget = w->budget > r->len ? w->budget - r->len : 0;
    return true;
}

static void fill(struct worker *w, int64_t now) {
    bool in_window = now >= w->t_window;
    for (; flush_is_due(w) && w->n_free; w->writes_since_flush -= w->pattern->fsync) make_flush(w);
    if (now < w->pause_until) return;
    if (!w->rate.iops) {
        if (w->budget == UINT64_MAX)
            fill_all(w);
        else
            while (fill_one(w, 0, in_window)) {}
        return;
    }
    uint64_t first = w->rate.k, dropped = rate_drop(&w->rate, now);
    if (__builtin_expect(dropped && in_window, 0)) {
        w->counts.rate_missed += dropped;
        account_unsent(w, first, dropped, now);
    }
    while (w->rate.due <= now && fill_one(w, w->rate.due, in_window)) rate_next(&w->rate);
}

/* A device that is stuck holds on to who submits. */
static __attribute__((noinline, cold)) void was_held(struct worker *w, int64_t from, int64_t to) {
    struct worker_counts *c = &w->counts;
    if (to - from >= NS_PER_SEC) w->looked = to;
    w->submit_from = from;
    w->submit_to = to;
    if (to - from <= c->held_to - c->held_from) return;
    c->held_from = from;
    c->held_to = to;
}

/* False when the context is lost. What is not taken stays in the batch and is stamped when it is. */
static bool submit(struct worker *w, int64_t *now) {
    int64_t t1 = clock_now(w->clock);
    for (unsigned i = 0; i < w->n_batch; i++) w->batch[i]->t_submit = t1;
    int n = w->backend->submit(w->context, w->batch, w->n_batch);
    int64_t t2 = clock_now(w->clock);
    *now = t2;
    if (__builtin_expect(t2 - t1 >= STANDSTILL, 0)) was_held(w, t1, t2);
    if (t1 >= w->t_window && t2 <= w->t_end) w->counts.submit_ns += t2 - t1;
    if (n < 0) {
        w->lost = n;
        return false;
    }
    if (w->depth.outstanding == 0) w->quiet_since = t1;
    depth_change(&w->depth, t1, n);
    w->n_batch -= (unsigned)n;
    w->no_room = n == 0;
    if (w->n_batch) memmove(w->batch, w->batch + n, w->n_batch * sizeof *w->batch);
    return true;
}

static int64_t next_event(const struct worker *w, int64_t now) {
    int64_t until = now + REAP_LIMIT;
    if (w->t_end < until) until = w->t_end;
    if (now < w->t_window && w->t_window < until) until = w->t_window;
    if (w->n_free == 0) return until;
    if (now < w->pause_until) return w->pause_until < until ? w->pause_until : until;
    if (w->rate.iops && w->rate.due < until) until = w->rate.due;
    return until;
}

static bool over(const struct worker *w, int64_t now) {
    if (now >= w->t_end || w->gave_up || atomic_load_explicit(&w->stop, memory_order_relaxed)) return true;
    return w->budget == 0 && w->depth.outstanding == 0 && w->n_batch == 0 && !flush_is_due(w);
}

/* Requests in the batch were never sent: they are not I/Os. */
static void drop_batch(struct worker *w) {
    while (w->n_batch) w->free[w->n_free++] = w->batch[--w->n_batch];
}

static int64_t patience(const struct worker *w) {
    int64_t ns = w->seen_ios ? 4 * (int64_t)(w->seen_lat / w->seen_ios) : 0;
    if (atomic_load_explicit(&w->hurry, memory_order_relaxed)) return 0;
    for (int op = 0; op < IO_OPS; op++)
        if (w->counts.op[op].clat.n && 2 * w->counts.op[op].clat.max > ns) ns = 2 * w->counts.op[op].clat.max;
    return ns < STOPPED_LEAST ? STOPPED_LEAST : ns < STOPPED_MOST ? ns : STOPPED_MOST;
}

/* What is still out is left behind: how old it is by now is what anybody will ever know of it. */
static void leave_behind(struct worker *w, int64_t now) {
    struct record_tail *tail = &w->counts.tail;
    tail->abandoned = w->depth.outstanding;
    for (unsigned i = 0; i < w->n_free; i++) w->free[i]->t_submit = INT64_MAX;
    for (unsigned i = 0; i < w->depth_limit; i++) {
        const struct request *r = &w->requests[i];
        if (r->t_submit == INT64_MAX) continue;
        int64_t age = now - (w->rate.iops && r->op != IO_FLUSH ? r->t_due : r->t_submit);
        if (age > tail->abandoned_ns) tail->abandoned_ns = age;
    }
    if (tail->abandoned_ns > tail->longest_ns) tail->longest_ns = tail->abandoned_ns;
}

/* What the schedule still owes when the window ends: the target's users wait for it. */
static void end_rate(struct worker *w, int64_t now) {
    int64_t end = now < w->t_end ? now : w->t_end;
    if (!w->rate.iops || end <= w->t_window || w->budget == 0) return;
    uint64_t owed = rate_owed(&w->rate, end - 1), left = UINT64_MAX;
    if (w->budget != UINT64_MAX) left = w->budget / pattern_max_io(w->pattern) + 1;
    if (owed > left) owed = left;
    account_unsent(w, w->rate.k, owed, end);
    w->counts.rate_unsent = owed;
    for (unsigned i = 0; i < w->n_batch; i++) {
        const struct request *r = w->batch[i];
        if (r->op == IO_FLUSH) continue;
        hist_record(&w->counts.op[r->op].lat, end - r->t_due);
        w->counts.rate_unsent++;
    }
}

static void drain(struct worker *w, int64_t now) {
    int64_t deadline = now + w->drain_limit;
    drop_batch(w);
    while (w->depth.outstanding && now < deadline) {
        int64_t left = deadline - now;
        if (!reap(w, left < REAP_LIMIT ? left : REAP_LIMIT, &now)) return;
        /* Whoever asked for an early end does not want to wait for a server that hangs. */
        if (atomic_load_explicit(&w->stop, memory_order_relaxed) && deadline > now + patience(w))
            deadline = now + patience(w);
    }
    if (w->depth.outstanding) leave_behind(w, now);
}

/* end_fsync: one flush of this worker's writes, all of which have completed. Not an I/O of the window. */
static void end_flush(struct worker *w) {
    if (!w->pattern->end_fsync || w->depth.outstanding) return;
    uint64_t before = w->counts.flushes;
    int64_t from = clock_now(w->clock), now = from;
    w->flushing_end = true;
    make_flush(w);
    w->batch[0]->in_window = false;
    while (w->n_batch && now < from + w->drain_limit)
        if (!submit(w, &now)) return;
    while (w->depth.outstanding && now < from + w->drain_limit)
        if (!reap(w, REAP_LIMIT, &now)) return;
    if (w->counts.flushes > before) w->end_flush_ns = now - from;
}

/* A lost context still hands back what was lent: those I/Os failed, and are counted. */
static int64_t collect_lost(struct worker *w) {
    int64_t now = clock_now(w->clock), deadline = now + w->drain_limit;
    int first = w->lost;
    while (w->depth.outstanding && now < deadline)
        if (!reap(w, REAP_LIMIT, &now)) break;
    w->lost = first;
    drop_batch(w);
    return now;
}

/* Once for each interval of the series: what the protocol has to show. */
static __attribute__((noinline)) void watch(struct worker *w, int64_t now) {
    tracks_sample(&w->tracks, w->backend, w->context, w->t_window, now);
}

static void end_watch(struct worker *w, int64_t now) {
    int64_t end = now < w->t_end ? now : w->t_end;
    tracks_end(&w->tracks, w->backend, w->context, w->t_window, w->budget == UINT64_MAX ? end : w->t_over);
}

static void begin(struct worker *w) {
    const struct pattern *p = w->pattern;
    rate_init(&w->rate, p->rate_iops, w->index, w->workers, w->t_start, p->rate_backlog ? p->rate_backlog : p->runtime);
    w->unsent = w->stream;
    w->t_over = w->t_end;
    w->budget = UINT64_MAX;
    uint64_t amount = p->io_size ? p->io_size : p->loops * w->size;
    if (amount) {
        w->budget = amount / w->workers + (w->index < amount % w->workers);
        w->t_over = w->t_window;
    }
    depth_init(&w->depth, w->t_window, amount ? INT64_MAX : w->t_end);
    w->point_from = w->point_to = 0;
    w->tracks.due = w->tracks.list ? w->t_window : INT64_MAX;
}

/* What it is about to write to may be another object by now. */
static bool confirmed(struct worker *w, int64_t stood, int64_t *now) {
    const struct seal seal = seal_of_note(w->note);
    char text[sizeof(struct err) + 100];
    struct err err;

    if (w->reads_only || w->backend->asks_after_standstill) return true;
    int rc = confirm_object(w->backend, w->handle, w->facts, w->clock, &seal, &err);
    *now = clock_now(w->clock);
    if (rc == 0) return true;
    snprintf(text, sizeof text, "after this client stood still for %.1f s: %s", (double)stood / NS_PER_SEC, err.msg);
    kinds_lost(&w->kinds, "another object", text);
    w->lost = -ENODEV;
    return false;
}

/* From one step of the loop to the next; but for a submit in which the device may have held it. */
static void note_standstill(struct worker *w, int64_t last, int64_t now) {
    bool held = w->submit_to > last;
    if (clock_is_virtual(w->clock)) return;
    if (held) account_standstill(w, last, w->submit_from);
    account_standstill(w, held ? w->submit_to : last, now);
}

/* This client stood still, or its device held it. False when the context is lost. */
static __attribute__((noinline, cold)) bool go_on(struct worker *w, int64_t last, int64_t *now) {
    note_standstill(w, last, *now);
    return *now - last < CONFIRM_STANDSTILL || clock_is_virtual(w->clock) || confirmed(w, *now - last, now);
}

void worker_loop(struct worker *w) {
    begin(w);
    clock_wait_until(w->clock, w->t_start);
    int64_t now = clock_now(w->clock), last = now;
    while (!over(w, now)) {
        if (__builtin_expect(now - last >= STANDSTILL, 0) && !go_on(w, last, &now)) break;
        last = now;
        if (__builtin_expect(now >= w->tracks.due, 0)) watch(w, now);
        fill(w, now);
        if (w->n_batch && !submit(w, &now)) break;
        int64_t timeout = next_event(w, now) - now;
        /* A part was taken: see what has come, and go on. Nothing was: wait, but nothing may be out that would wake us.
         */
        if (w->n_batch) timeout = !w->no_room ? 0 : timeout < NS_PER_MS ? timeout : NS_PER_MS;
        if (!reap(w, timeout > 0 ? timeout : 0, &now)) break;
    }
    if (now - last >= STANDSTILL) note_standstill(w, last, now);
    end_watch(w, now);
    end_rate(w, now);
    if (w->depth.outstanding) account_gap(w, now);
    if (w->lost) now = collect_lost(w);
    if (w->budget == UINT64_MAX && now < w->t_end)
        w->depth.to = w->t_over = w->t_end = now; /* the window is what was measured */
    if (!w->lost) drain(w, now);
    /* A lost context first gives back all that was lent, and then says so: was a loss the reason of failures? */
    if (!w->lost && w->seen_errors && !w->depth.outstanding) reap(w, 0, &now);
    depth_change(&w->depth, w->t_over, 0);
    w->depth.to = w->t_over; /* the flush at the end is no part of it, however the window's end came about */
    if (!w->lost) end_flush(w);
    w->cpu = sched_getcpu();
}

void worker_detach(struct worker *w) {
    if (!w->context) return;
    if (w->backend->counters) w->backend->counters(w->context, &w->protocol);
    w->backend->detach(w->context);
    w->context = NULL;
}

void worker_free(struct worker *w) {
    free(w->requests);
    free(w->free);
    free(w->batch);
    free(w->done);
    free(w->points);
    free(w->buffers);
    kv_free(&w->protocol);
    tracks_free(&w->tracks);
    w->requests = NULL;
    w->free = w->batch = NULL;
    w->done = NULL;
    w->points = NULL;
    w->buffers = NULL;
}
