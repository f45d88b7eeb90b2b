/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "engine/run.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "engine/cpu.h"
#include "engine/gather.h"
#include "engine/ping.h"
#include "engine/seal.h"
#include "engine/worker.h"
#include "target/confirm.h"
#include "target/filter.h"

#define TICK        (250 * NS_PER_MS)
#define START_DELAY (2 * NS_PER_MS)   /* so that all workers wait at the start, none is late */
#define POINTS      3600              /* of a run of unknown length, before its series is folded */
#define PING        NS_PER_SEC
#define DRAIN_LIMIT (60 * NS_PER_SEC) /* above every backend's own time-out */

/* Where workers and coordinator meet; never touched between start and end. */
struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned attached, failed, over, bad; /* bad: over before its time, lost or given up */
    bool open, give_up;
    struct err err; /* of the first that failed */
};

struct crew {
    struct filter filter;
    const struct run *run;
    struct worker *workers;
    pthread_t *threads;
    unsigned n, started;
    struct gate gate;
    int64_t t_start, t_window, t_end;
    struct samples samples;
    bool began, ended;
    struct pinging *pinging; /* NULL: none */
};

struct seat { /* a thread's argument */
    struct crew *crew;
    struct worker *worker;
};

static void gate_report(struct gate *g, unsigned *counter, const struct err *err) {
    pthread_mutex_lock(&g->lock);
    if (err && g->failed == 0) g->err = *err;
    (*counter)++;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->lock);
}

static bool gate_wait_open(struct gate *g) {
    pthread_mutex_lock(&g->lock);
    while (!g->open) pthread_cond_wait(&g->changed, &g->lock);
    bool go = !g->give_up;
    pthread_mutex_unlock(&g->lock);
    return go;
}

static void gate_open(struct gate *g, bool give_up) {
    pthread_mutex_lock(&g->lock);
    g->open = true;
    g->give_up = give_up;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->lock);
}

/* Waits until a worker reports or `until` has come. */
static void gate_wait(struct gate *g, int64_t until) {
    struct timespec ts = {.tv_sec = until / NS_PER_SEC, .tv_nsec = until % NS_PER_SEC};
    pthread_cond_timedwait(&g->changed, &g->lock, &ts);
}

static void gate_init(struct gate *g) {
    pthread_condattr_t attr;
    pthread_mutex_init(&g->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&g->changed, &attr);
    pthread_condattr_destroy(&attr);
}

static void gate_destroy(struct gate *g) {
    pthread_cond_destroy(&g->changed);
    pthread_mutex_destroy(&g->lock);
}

static void *worker_main(void *arg) {
    struct seat *seat = arg;
    struct worker *w = seat->worker;
    const struct run *run = seat->crew->run;
    struct gate *g = &seat->crew->gate;
    struct err err;
    free(seat);
    backend_heed(run->interrupted);
    int failed = worker_attach(w, &err);
    gate_report(g, failed ? &g->failed : &g->attached, failed ? &err : NULL);
    if (gate_wait_open(g)) {
        worker_loop(w);
        if (w->lost || w->gave_up) gate_report(g, &g->bad, NULL);
        gate_report(g, &g->over, NULL);
    }
    worker_detach(w);
    return NULL;
}

static int start_threads(struct crew *c, struct err *err) {
    for (; c->started < c->n; c->started++) {
        struct seat *seat = malloc(sizeof *seat);
        if (!seat) return err_set(err, STATUS_TARGET, "no memory for worker %u", c->started);
        *seat = (struct seat){c, &c->workers[c->started]};
        int e = pthread_create(&c->threads[c->started], NULL, worker_main, seat);
        if (e) {
            free(seat);
            return err_set(err, STATUS_TARGET, "cannot start worker thread %u of %u: %s", c->started + 1, c->n,
                           strerror(e));
        }
    }
    return 0;
}

static void set_times(struct crew *c, int64_t start) {
    const struct pattern *p = c->run->pattern;
    c->t_start = start;
    c->t_window = start + (int64_t)p->ramp_time;
    c->t_end = p->runtime ? c->t_window + (int64_t)p->runtime
                          : INT64_MAX; /* none where an amount decides, and no limit was given */
    for (unsigned i = 0; i < c->n; i++) {
        c->workers[i].t_start = c->t_start;
        c->workers[i].t_window = c->t_window;
        c->workers[i].t_end = c->t_end;
    }
}

static void stop_all(struct crew *c, bool hurry) {
    for (unsigned i = 0; i < c->n; i++) {
        atomic_store(&c->workers[i].hurry, hurry);
        atomic_store(&c->workers[i].stop, true);
    }
}

static void tick(const struct crew *c, int64_t now) {
    uint64_t ios = 0, bytes = 0, lat = 0, errors = 0;
    if (!c->run->tick) return;
    for (unsigned i = 0; i < c->n; i++) {
        struct worker_live *l = &c->workers[i].live;
        ios += atomic_load_explicit(&l->ios, memory_order_relaxed);
        bytes += atomic_load_explicit(&l->bytes, memory_order_relaxed);
        lat += atomic_load_explicit(&l->lat_sum, memory_order_relaxed);
        errors += atomic_load_explicit(&l->errors, memory_order_relaxed);
    }
    if (now < c->t_window)
        c->run->tick(c->run->arg, PHASE_RAMP, now - c->t_start, c->t_window - c->t_start, ios, bytes, lat, errors);
    else if (now < c->t_end)
        c->run->tick(c->run->arg, PHASE_WINDOW, now - c->t_window, c->t_end == INT64_MAX ? 0 : c->t_end - c->t_window,
                     ios, bytes, lat, errors);
    else
        c->run->tick(c->run->arg, PHASE_DRAIN, now - c->t_end, 0, ios, bytes, lat, errors);
}

static void sample_edges(struct crew *c, int64_t now, bool last) {
    if (!c->began && (now >= c->t_window || last)) {
        samples_take(&c->samples.from, c->run->target);
        c->began = true;
    }
    if (c->began && !c->ended && (now >= c->t_end || last)) {
        samples_take(&c->samples.to, c->run->target);
        c->ended = true;
    }
}

static void see_late(struct samples *s, int64_t due, int64_t now) {
    if (now - due <= s->late_to - s->late_from) return;
    s->late_from = due;
    s->late_to = now;
}

/* From the open gate until every worker is over. */
static void watch(struct crew *c) {
    struct gate *g = &c->gate;
    pthread_mutex_lock(&g->lock);
    for (;;) {
        int64_t now = clock_now(c->run->clock), until = now + TICK;
        bool all = g->over == c->n, bad = g->bad > 0;
        pthread_mutex_unlock(&g->lock);
        sample_edges(c, now, all);
        if (all) return;
        /* Without one of its workers, what the others would measure is another load. */
        if (*c->run->interrupted || bad) stop_all(c, *c->run->interrupted > 1);
        tick(c, now);
        if (!c->began && c->t_window < until) until = c->t_window;
        if (!c->ended && c->t_end < until) until = c->t_end;
        pthread_mutex_lock(&g->lock);
        if (g->over == c->n) continue;
        int64_t from = clock_now(c->run->clock);
        gate_wait(g, until);
        see_late(&c->samples, from > until ? from : until, clock_now(c->run->clock));
    }
}

static int run_threads(struct crew *c, struct err *err) {
    struct gate *g = &c->gate;
    const struct ping_idle *idle = c->run->idle_ping;
    gate_init(g);
    int failed = start_threads(c, err);
    pthread_mutex_lock(&g->lock);
    while (g->attached + g->failed < c->started) pthread_cond_wait(&g->changed, &g->lock);
    if (!failed && g->failed) {
        failed = -1;
        *err = g->err;
    }
    pthread_mutex_unlock(&g->lock);
    /* Only now: a target may take one session, or few, and the load needs them. */
    if (!failed && idle && idle->kinds && !idle->why[0]) c->pinging = pinging_start(c->run->target, PING);
    set_times(c, clock_now(c->run->clock) + START_DELAY);
    pinging_window(c->pinging, c->t_window);
    gate_open(g, failed != 0);
    if (!failed) watch(c);
    pinging_stop(c->pinging, failed || *c->run->interrupted);
    for (unsigned i = 0; i < c->started; i++) pthread_join(c->threads[i], NULL);
    gate_destroy(g);
    return failed;
}

/* Virtual time: no two threads can share a clock that jumps, so workers run one after another, each from the same
 * start. */
static int run_virtual(struct crew *c, struct err *err) {
    int64_t start = clock_now(c->run->clock), end = start;
    struct clock_virtual *clocks = calloc(c->n, sizeof *clocks);
    if (!clocks) return err_set(err, STATUS_TARGET, "no memory");
    set_times(c, start);
    int failed = 0;
    for (unsigned i = 0; i < c->n && !failed; i++) {
        clock_virtual_init(&clocks[i], start);
        c->workers[i].clock = &clocks[i].clock;
        failed = worker_attach(&c->workers[i], err);
        if (!failed) worker_loop(&c->workers[i]);
        worker_detach(&c->workers[i]);
        if (clocks[i].t > end) end = clocks[i].t;
    }
    clock_wait_until(c->run->clock, end);
    free(clocks);
    return failed;
}

static int make_workers(struct crew *c, struct err *err) {
    const struct run *run = c->run;
    const struct pattern *p = run->pattern;
    c->n = (unsigned)p->numjobs;
    c->workers = calloc(c->n, sizeof *c->workers);
    c->threads = calloc(c->n, sizeof *c->threads);
    if (!c->workers || !c->threads) return err_set(err, STATUS_TARGET, "no memory for %u workers", c->n);
    for (unsigned i = 0; i < c->n; i++) {
        struct worker *w = &c->workers[i];
        w->backend = c->filter.backend;
        w->handle = c->filter.handle;
        w->facts = &run->target->facts;
        w->pattern = p;
        w->base = p->offset + p->kept;
        w->size = p->size - p->kept;
        w->seed = run->seed;
        w->round = run->round;
        w->index = i;
        w->workers = c->n;
        w->run_tag = run->run_tag;
        w->note = run->note;
        w->clock = run->clock;
        w->drain_limit = DRAIN_LIMIT;
        w->series_interval_ns = NS_PER_SEC;
        w->n_points = p->runtime ? (unsigned)(p->runtime / (uint64_t)NS_PER_SEC) + 1 : POINTS;
    }
    return 0;
}

/* After the last write: did all of them go to the object that they were meant for? */
static void confirm(const struct run *run, struct record *r) {
    const struct target *t = run->target;
    const struct seal seal = seal_of_note(run->note);
    char text[sizeof r->error];
    struct err err;

    if (!pattern_writes(run->pattern) || *run->interrupted || (r->status != RUN_OK && r->status != RUN_ERRORS)) return;
    if (confirm_object(t->backend, t->handle, &t->facts, run->clock, &seal, &err) == 0 || *run->interrupted) return;
    r->status = RUN_LOST;
    snprintf(text, sizeof text, "asked after the last write, so that what this run wrote may be in another object: %.400s", err.msg);
    text_safe(r->error, sizeof r->error, text, strlen(text));
}

int run_execute(const struct run *run, struct record *record, struct err *err) {
    const struct pattern *p = run->pattern;
    struct crew crew = {.run = run};
    struct filter_load load = {.readahead = p->readahead,
                               .to = p->offset + p->size,
                               .workers = (unsigned)p->numjobs,
                               .writes = pattern_writes(p)};
    int failed = filter_open(run->target, &load, &crew.filter, err);
    if (!failed) failed = make_workers(&crew, err);
    if (!failed) failed = clock_is_virtual(run->clock) ? run_virtual(&crew, err) : run_threads(&crew, err);
    if (!failed) {
        gather(record, run, crew.workers, crew.n, &crew.samples);
        pinging_gather(crew.pinging, run->idle_ping, crew.t_window, record);
        if (*run->interrupted && record->status != RUN_LOST) record->status = RUN_INTERRUPTED;
        confirm(run, record);
    }
    for (unsigned i = 0; i < crew.n && crew.workers; i++) worker_free(&crew.workers[i]);
    pinging_free(crew.pinging);
    free(crew.workers);
    free(crew.threads);
    filter_close(&crew.filter);
    return failed;
}
