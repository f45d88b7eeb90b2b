/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "engine/selfcost.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "engine/worker.h"

#define MEASURE_NS (4 * NS_PER_MS)
#define WARM_UP_NS (1 * NS_PER_MS)
#define BUFFERS_MAX (4u << 20) /* touching more would take longer than the measurement */

struct measurement {
    struct worker worker;
    struct pattern pattern; /* borrows the strings of the original */
    struct clock clock;
    double ns_per_io;
};

static int64_t thread_cpu(void) {
    struct timespec ts;
    return clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts) == 0 ? (int64_t)ts.tv_sec * NS_PER_SEC + ts.tv_nsec : 0;
}

/* The load's shape without its pace and its end. */
static void bare(struct pattern *p) {
    uint64_t depth = BUFFERS_MAX / pattern_max_io(p);
    if (p->iodepth > depth) p->iodepth = depth ? depth : 1;
    p->numjobs = 1;
    p->rate_iops = p->thinktime = p->io_size = p->loops = 0;
    p->end_fsync = false;
    p->cpus.n = 0;
}

static void run_for(struct worker *w, int64_t ns) {
    w->t_start = w->t_window = clock_now(w->clock);
    w->t_end = w->t_start + ns;
    worker_loop(w);
}

static void *measure(void *arg) {
    struct measurement *m = arg;
    struct worker *w = &m->worker;
    struct err err;
    if (worker_attach(w, &err) == 0) {
        run_for(w, WARM_UP_NS);
        uint64_t before = w->counts.ios_completed;
        int64_t from = thread_cpu();
        run_for(w, MEASURE_NS);
        int64_t used = thread_cpu() - from;
        uint64_t ios = w->counts.ios_completed - before;
        if (ios && used > 0 && !w->seen_errors) m->ns_per_io = (double)used / (double)ios;
    }
    worker_detach(w);
    worker_free(w);
    return NULL;
}

double selfcost_measure(const struct target *nothing, const struct pattern *p) {
    struct measurement *m = calloc(1, sizeof *m);
    pthread_t thread;
    if (!m) return NAN;
    m->ns_per_io = NAN;
    m->pattern = *p;
    bare(&m->pattern);
    clock_real_init(&m->clock);
    m->worker = (struct worker){.backend = nothing->backend,
                                .handle = nothing->handle,
                                .pattern = &m->pattern,
                                .base = p->offset + p->kept,
                                .size = p->size - p->kept,
                                .seed = 1,
                                .round = 1,
                                .workers = 1,
                                .clock = &m->clock,
                                .drain_limit = NS_PER_SEC,
                                .series_interval_ns = NS_PER_SEC,
                                .n_points = 2};
    double result = NAN;
    if (pthread_create(&thread, NULL, measure, m) == 0) {
        pthread_join(thread, NULL);
        result = m->ns_per_io;
    }
    free(m);
    return result;
}
