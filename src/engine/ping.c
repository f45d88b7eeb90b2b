/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "engine/ping.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/text.h"

#define IDLE_LIMIT  (300 * NS_PER_MS) /* for all pings of an idle target together */
#define AFTER_COUNT 5u
#define AFTER_LIMIT (200 * NS_PER_MS)
#define PATIENCE    (300 * NS_PER_MS) /* of the coordinator's at the end; above AFTER_LIMIT */
#define HURRIED     (50 * NS_PER_MS)

struct sample {
    int64_t t;      /* answered, or given up */
    int64_t ns;     /* -1: not answered in time */
    unsigned kind;
};

struct pinging {
    const struct backend *backend;
    struct handle *handle;
    struct clock *clock;
    unsigned kinds;
    int64_t interval;
    pthread_t thread;
    bool started;
    /* the thread's until it is joined, then the coordinator's */
    struct sample *samples;
    size_t n, room;
    int64_t after[RECORD_PINGS][AFTER_COUNT];
    unsigned after_n[RECORD_PINGS];
    int64_t floor;
    char why[256];
    bool unwanted;          /* by the user */
    /* under the lock */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct pinger *pinger;  /* NULL: not open, or to be closed */
    int64_t t_window;       /* INT64_MIN: not known yet */
    bool stop, hurry, over;
};

/* ---- figures ---- */

static int compare_ns(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Sorts them; 0: there is none. */
static int64_t median(int64_t *ns, size_t n) {
    if (n == 0) return 0;
    qsort(ns, n, sizeof *ns, compare_ns);
    return n % 2 ? ns[n / 2] : (ns[n / 2 - 1] + ns[n / 2]) / 2;
}

static unsigned kinds_of(const struct backend *b) {
    unsigned n = 0;
    while (b->pings && n < RECORD_PINGS && b->pings[n]) n++;
    return n;
}

static const char *words(char *buf, size_t len, int64_t error) {
    snprintf(buf, len, "the pings were given up: %s", strerror((int)-error));
    return buf;
}

/* ---- the idle target ---- */

/* Takes turns, so that a drift meets all kinds alike. False: the pinger is broken. */
static bool ask(const struct backend *b, struct pinger *pinger, struct clock *clock, unsigned kinds, unsigned count,
                int64_t limit, int64_t (*ns)[PING_IDLE_COUNT], unsigned *n, int64_t *error) {
    int64_t now = clock_now(clock), end = now + limit;
    for (unsigned i = 0; i < count * kinds && now < end; i++) {
        unsigned kind = i % kinds;
        int64_t took = b->ping(pinger, kind, end - now);
        now = clock_now(clock);
        if (took >= 0) ns[kind][n[kind]++] = took;
        else if ((*error = took) != -ETIMEDOUT) return false;
    }
    return true;
}

void ping_idle(const struct target *t, unsigned count, struct ping_idle *out) {
    const struct member *m = &t->member[0];
    unsigned kinds = kinds_of(m->backend), n[RECORD_PINGS] = {0};
    int64_t ns[RECORD_PINGS][PING_IDLE_COUNT], error = 0;
    struct pinger *pinger = NULL;
    struct err err;

    memset(out, 0, sizeof *out);
    if (kinds == 0 || !m->handle || clock_is_virtual(t->clock)) return;
    if (m->backend->ping_open(m->handle, &pinger, &err) != 0) {
        text_safe(out->why, sizeof out->why, err.msg, strlen(err.msg));
        out->kinds = kinds;
    }
    if (!pinger) return;
    if (count > PING_IDLE_COUNT) count = PING_IDLE_COUNT;
    if (!ask(m->backend, pinger, t->clock, kinds, count, IDLE_LIMIT, ns, n, &error))
        words(out->why, sizeof out->why, error);
    out->kinds = kinds;
    out->floor_ns = m->backend->ping_floor(pinger);
    m->backend->ping_close(pinger);
    for (unsigned k = 0; k < kinds; k++) {
        struct record_ping *p = &out->ping[k];
        snprintf(p->kind, sizeof p->kind, "%s", m->backend->pings[k]);
        p->idle_n = n[k];
        p->idle_median = median(ns[k], n[k]);
        if (n[k]) p->idle_min = ns[k][0];
    }
}

/* ---- the thread ---- */

/* A ping has the time until the next one is due. False: the pinger is broken. */
static bool ping_once(struct pinging *p, unsigned kind, int64_t timeout) {
    if (p->n == p->room) {
        size_t room = p->room ? 2 * p->room : 256;
        struct sample *more = realloc(p->samples, room * sizeof *more);
        if (!more) return true;
        p->samples = more;
        p->room = room;
    }
    int64_t ns = p->backend->ping(p->pinger, kind, timeout);
    if (ns < 0 && ns != -ETIMEDOUT) {
        pthread_mutex_lock(&p->lock);
        bool by_us = p->stop && ns == -ECONNRESET; /* the coordinator has cut its connection */
        pthread_mutex_unlock(&p->lock);
        if (!by_us) words(p->why, sizeof p->why, ns);
        return false;
    }
    p->samples[p->n++] = (struct sample){.t = clock_now(p->clock), .ns = ns < 0 ? -1 : ns, .kind = kind};
    return true;
}

/* After the one at `last`: a tenth of an interval behind the window's beginning, and every interval before and behind
 * that. Under the lock. */
static int64_t next_due(const struct pinging *p, int64_t last) {
    if (p->t_window == INT64_MIN) return last + p->interval;
    int64_t phase = (last - (p->t_window + p->interval / 10)) % p->interval;
    return last + p->interval - (phase < 0 ? phase + p->interval : phase);
}

/* Sleeps until a ping is due: moves *last on to it, and returns the time it has. 0: the run is over. */
static int64_t wait_due(struct pinging *p, int64_t *last) {
    int64_t now = clock_now(p->clock), due;
    pthread_mutex_lock(&p->lock);
    while (!p->stop && now < (due = next_due(p, *last))) {
        struct timespec ts = {.tv_sec = due / NS_PER_SEC, .tv_nsec = due % NS_PER_SEC};
        pthread_cond_timedwait(&p->changed, &p->lock, &ts);
        now = clock_now(p->clock);
    }
    int64_t left = p->stop ? 0 : next_due(p, now) - now;
    pthread_mutex_unlock(&p->lock);
    *last = now;
    return left;
}

static void ping_after(struct pinging *p) {
    int64_t ns[RECORD_PINGS][PING_IDLE_COUNT], error = 0;
    pthread_mutex_lock(&p->lock);
    bool hurry = p->hurry;
    pthread_mutex_unlock(&p->lock);
    if (hurry) return;
    ask(p->backend, p->pinger, p->clock, p->kinds, AFTER_COUNT, AFTER_LIMIT, ns, p->after_n, &error);
    for (unsigned k = 0; k < p->kinds; k++) memcpy(p->after[k], ns[k], p->after_n[k] * sizeof ns[k][0]);
}

static void over(struct pinging *p, struct pinger *pinger) {
    pthread_mutex_lock(&p->lock);
    p->pinger = NULL; /* from now on nobody else touches it */
    pthread_mutex_unlock(&p->lock);
    if (pinger) p->backend->ping_close(pinger);
    pthread_mutex_lock(&p->lock);
    p->over = true;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

static void *ping_main(void *arg) {
    struct pinging *p = arg;
    struct pinger *pinger = NULL;
    struct err err;
    int64_t last, left;
    bool well = true;

    prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0);
    if (p->backend->ping_open(p->handle, &pinger, &err) != 0) {
        text_safe(p->why, sizeof p->why, err.msg, strlen(err.msg));
        pinger = NULL;
    }
    p->unwanted = !pinger && !p->why[0];
    pthread_mutex_lock(&p->lock);
    p->pinger = pinger;
    pthread_mutex_unlock(&p->lock);
    last = clock_now(p->clock);
    for (unsigned k = 0; pinger && well && (left = wait_due(p, &last)) > 0; k++)
        well = ping_once(p, k % p->kinds, left);
    if (pinger && well) ping_after(p);
    if (pinger) p->floor = p->backend->ping_floor(pinger);
    over(p, pinger);
    return NULL;
}

/* ---- the coordinator ---- */

static void condition_init(pthread_cond_t *c) {
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(c, &attr);
    pthread_condattr_destroy(&attr);
}

struct pinging *pinging_start(const struct target *t, int64_t interval_ns) {
    const struct member *m = &t->member[0];
    unsigned kinds = kinds_of(m->backend);
    if (kinds == 0 || !m->handle || clock_is_virtual(t->clock)) return NULL;
    struct pinging *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    p->backend = m->backend;
    p->handle = m->handle;
    p->clock = t->clock;
    p->kinds = kinds;
    p->interval = interval_ns;
    p->t_window = INT64_MIN;
    pthread_mutex_init(&p->lock, NULL);
    condition_init(&p->changed);
    p->started = pthread_create(&p->thread, NULL, ping_main, p) == 0;
    if (!p->started) snprintf(p->why, sizeof p->why, "no thread for pings");
    return p;
}

void pinging_window(struct pinging *p, int64_t t_window) {
    if (!p) return;
    pthread_mutex_lock(&p->lock);
    p->t_window = t_window;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

void pinging_stop(struct pinging *p, bool hurry) {
    if (!p || !p->started) return;
    int64_t until = clock_now(p->clock) + (hurry ? HURRIED : PATIENCE);
    struct timespec ts = {.tv_sec = until / NS_PER_SEC, .tv_nsec = until % NS_PER_SEC};
    pthread_mutex_lock(&p->lock);
    p->stop = true;
    p->hurry = hurry;
    pthread_cond_broadcast(&p->changed);
    while (!p->over && pthread_cond_timedwait(&p->changed, &p->lock, &ts) != ETIMEDOUT) {}
    if (p->pinger && !p->over) p->backend->ping_abort(p->pinger);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    p->started = false;
}

void pinging_free(struct pinging *p) {
    if (!p) return;
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    free(p->samples);
    free(p);
}

/* ---- the record ---- */

static void gather_kind(const struct pinging *p, unsigned kind, int64_t from, int64_t *ns, struct record *r) {
    struct record_ping *out = &r->ping[kind];
    int64_t after[AFTER_COUNT];
    unsigned *counts = calloc(r->n_points ? r->n_points : 1, sizeof *counts);

    snprintf(out->kind, sizeof out->kind, "%s", p->backend->pings[kind]);
    out->values = calloc(r->n_points ? r->n_points : 1, sizeof *out->values);
    for (size_t i = 0; i < p->n; i++) {
        const struct sample *s = &p->samples[i];
        int64_t at = s->t - from;
        if (s->kind != kind || at < 0 || at >= r->window_ns) continue;
        uint64_t point = (uint64_t)at / (uint64_t)r->series_interval_ns;
        if (s->ns < 0) {
            out->lost++;
            continue;
        }
        ns[out->n++] = s->ns;
        if (!out->values || !counts || point >= r->n_points) continue;
        out->values[point] += (double)s->ns;
        counts[point]++;
    }
    for (unsigned i = 0; out->values && counts && i < r->n_points; i++)
        out->values[i] = counts[i] ? out->values[i] / counts[i] : NAN;
    free(counts);
    out->median = median(ns, out->n);
    if (out->n) {
        out->min = ns[0];
        out->max = ns[out->n - 1];
    }
    memcpy(after, p->after[kind], sizeof after);
    out->after_n = p->after_n[kind];
    out->after_median = median(after, out->after_n);
}

static int64_t smaller_known(int64_t a, int64_t b) {
    return a == 0 || (b != 0 && b < a) ? b : a;
}

void pinging_gather(const struct pinging *p, const struct ping_idle *idle, int64_t t_window, struct record *r) {
    if (!p && idle) memcpy(r->ping_error, idle->why, sizeof r->ping_error);
    if (!p || p->unwanted) return;
    int64_t *ns = malloc((p->n ? p->n : 1) * sizeof *ns);
    if (!ns) return;
    r->n_pings = p->kinds;
    r->ping_floor_ns = smaller_known(p->floor, idle ? idle->floor_ns : 0);
    memcpy(r->ping_error, p->why, sizeof r->ping_error);
    for (unsigned k = 0; k < p->kinds; k++) {
        gather_kind(p, k, t_window, ns, r);
        if (!idle || k >= idle->kinds) continue;
        r->ping[k].idle_n = idle->ping[k].idle_n;
        r->ping[k].idle_min = idle->ping[k].idle_min;
        r->ping[k].idle_median = idle->ping[k].idle_median;
    }
    free(ns);
}
