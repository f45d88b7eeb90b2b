/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "engine/session_state.h"

const char *session_phase_name(enum session_phase phase) {
    static const char *const names[] = {"idle",  "look",   "fill",  "check", "holes", "idle latency", "pings",
                                        "flush", "settle", "cache", "ramp", "window", "drain"};
    return names[phase];
}

static void show(struct session *s) {
    struct session_progress *p = &s->progress;
    int64_t now = clock_now(s->clock);
    uint64_t total = plan_run_ns(s->plan);
    if (!s->hooks->progress) return;
    p->phase_elapsed_ns = now - s->phase_began;
    if (p->run == 0) {
        int64_t fill = p->total_bytes && p->done_bytes < p->total_bytes && p->done_bytes
                           ? (int64_t)((double)p->phase_elapsed_ns / (double)p->done_bytes *
                                       (double)(p->total_bytes - p->done_bytes))
                           : 0;
        /* How fast it fills is only assumed before it does. */
        int64_t look = plan_writes(s->plan) ? 0 : (int64_t)plan_prepare_ns(s->plan) - (now - s->began);
        p->left_ns = (int64_t)total + (fill > look ? fill : look > 0 ? look : 0);
    } else {
        int64_t run = p->runs ? (int64_t)(total / p->runs) : 0,
                rest = p->phase_ns > p->phase_elapsed_ns ? p->phase_ns - p->phase_elapsed_ns : 0;
        p->left_ns = run * (int64_t)(p->runs - p->run) + (p->phase == PHASE_WINDOW ? rest : p->phase == PHASE_DRAIN ? 0 : run);
    }
    s->hooks->progress(s->hooks->arg, p);
}

void session_enter(struct session *s, enum session_phase phase, const struct target *t) {
    s->progress.phase = phase;
    s->progress.target = t ? t->label : NULL;
    s->progress.phase_ns = 0;
    s->progress.done_bytes = s->progress.total_bytes = 0;
    s->progress.iops = s->progress.bytes_per_second = s->progress.lat_mean_ns = 0;
    s->phase_began = clock_now(s->clock);
    show(s);
}

void session_on_bytes(void *arg, uint64_t done, uint64_t total) {
    struct session *s = arg;
    int64_t now = clock_now(s->clock);
    s->progress.done_bytes = done;
    s->progress.total_bytes = total;
    if (now - s->last_tick < 250 * NS_PER_MS) return;
    s->last_tick = now;
    if (now > s->phase_began) s->progress.bytes_per_second = (double)done / (double)(now - s->phase_began) * NS_PER_SEC;
    show(s);
}

void session_on_tick(void *arg, enum session_phase phase, int64_t elapsed, int64_t phase_ns, uint64_t ios,
                     uint64_t bytes, uint64_t lat, uint64_t errors) {
    struct session *s = arg;
    struct session_progress *p = &s->progress;
    int64_t now = clock_now(s->clock);
    double seconds = (double)(now - s->last_tick) / NS_PER_SEC;
    if (phase != p->phase) {
        p->phase = phase;
        s->phase_began = now - elapsed;
    }
    p->phase_ns = phase_ns;
    p->errors = errors;
    if (seconds >= 0.9 || ios < s->last_ios) {
        uint64_t d = ios - s->last_ios;
        p->iops = (double)d / seconds;
        p->bytes_per_second = (double)(bytes - s->last_bytes) / seconds;
        p->lat_mean_ns = d ? (double)(lat - s->last_lat) / (double)d : 0;
        s->last_ios = ios;
        s->last_bytes = bytes;
        s->last_lat = lat;
        s->last_tick = now;
    }
    show(s);
}
