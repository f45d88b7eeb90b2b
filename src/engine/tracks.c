/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "engine/tracks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/track.h"
#include "engine/worker.h"

static unsigned length(const struct track *list) {
    unsigned n = 0;
    while (list && list[n].name && n < BACKEND_TRACKS && n < RECORD_TRACKS) n++;
    return n;
}

int tracks_init(struct tracks *t, const struct backend *backend, const struct handle *h, unsigned n_points,
                int64_t interval_ns) {
    const struct track *list = backend->tracks && backend->sample ? backend->tracks(h) : NULL;
    unsigned n = length(list);

    memset(t, 0, sizeof *t);
    t->due = INT64_MAX;
    if (n == 0 || n_points == 0) return 0;
    size_t all = (size_t)n * (n_points + 3);
    t->points = malloc(all * sizeof *t->points);
    if (!t->points) return -1;
    for (size_t i = 0; i < all; i++) t->points[i] = NAN; /* and the pages are there before the clock starts */
    t->first = t->points + (size_t)n * n_points;
    t->last = t->first + n;
    t->now = t->last + n;
    t->list = list;
    t->n = n;
    t->n_points = n_points;
    t->interval_ns = interval_ns;
    return 0;
}

void tracks_free(struct tracks *t) {
    free(t->points);
    memset(t, 0, sizeof *t);
    t->due = INT64_MAX;
}

/* What stands at an interval's end stands at the end of the pair that it is the second half of. */
static void fold(struct tracks *t) {
    unsigned half = t->n_points / 2;
    for (unsigned i = 0; i < half; i++)
        for (unsigned k = 0; k < t->n; k++) {
            double a = t->points[(size_t)(2 * i) * t->n + k], b = t->points[(size_t)(2 * i + 1) * t->n + k];
            t->points[(size_t)i * t->n + k] = isnan(b) ? a : b;
        }
    for (size_t i = (size_t)half * t->n; i < (size_t)t->n_points * t->n; i++) t->points[i] = NAN;
    t->interval_ns *= 2;
    t->used = (t->used + 1) / 2;
}

/* Unknown ones keep what was known of them last. */
static void ask(struct tracks *t, const struct backend *backend, struct context *c) {
    for (unsigned k = 0; k < t->n; k++) t->now[k] = NAN;
    backend->sample(c, t->now);
    for (unsigned k = 0; k < t->n; k++)
        if (!isnan(t->now[k])) t->last[k] = t->now[k];
}

/* t->now is the state at the end of the interval that ended last before `at`, or was cut short there. */
static void keep(struct tracks *t, int64_t at) {
    if (at <= 0) return;
    while ((at - 1) / t->interval_ns >= t->n_points) fold(t);
    unsigned i = (unsigned)((at - 1) / t->interval_ns);
    memcpy(t->points + (size_t)i * t->n, t->now, t->n * sizeof *t->now);
    if (i >= t->used) t->used = i + 1;
}

void tracks_sample(struct tracks *t, const struct backend *backend, struct context *c, int64_t t_window, int64_t now) {
    ask(t, backend, c);
    if (!t->began) {
        t->began = true;
        memcpy(t->first, t->now, t->n * sizeof *t->now);
    } else {
        keep(t, (now - t_window) / t->interval_ns * t->interval_ns);
    }
    t->due = t_window + ((now - t_window) / t->interval_ns + 1) * t->interval_ns;
}

void tracks_end(struct tracks *t, const struct backend *backend, struct context *c, int64_t t_window, int64_t now) {
    t->due = INT64_MAX;
    if (!t->began || !t->list) return;
    ask(t, backend, c);
    keep(t, now - t_window);
}

/* ---- over the workers ---- */

/* The worker's value at the end of interval `i` of the record's series: of its own intervals that make it up, the last
 * that was sampled. */
static double at_end(const struct tracks *t, unsigned i, unsigned fine, unsigned k) {
    for (unsigned j = fine; j-- > 0;) {
        size_t at = (size_t)i * fine + j;
        if (at < t->used && !isnan(t->points[at * t->n + k])) return t->points[at * t->n + k];
    }
    return NAN;
}

/* One worker's series of track `k`, each value added to its point's sum. */
static void add_worker(struct track_sum *points, const struct record *r, const struct tracks *t, unsigned k) {
    unsigned fine = (unsigned)(r->series_interval_ns / t->interval_ns);
    const struct track *track = &t->list[k];
    double before = t->first[k];
    for (unsigned i = 0; fine && i < r->n_points; i++) {
        double value = at_end(t, i, fine, k);
        track_add(&points[i], track->merge, track->cumulative ? value - before : value);
        if (!isnan(value)) before = value;
    }
}

static void gather_one(struct record *r, const struct worker *workers, unsigned n, unsigned k,
                       struct track_sum *points) {
    const struct track *track = &workers[0].tracks.list[k];
    struct record_track *to = &r->track[k];
    struct track_sum first = { 0 }, last = { 0 }, total = { 0 };

    memset(points, 0, r->n_points * sizeof *points);
    for (unsigned i = 0; i < n; i++) {
        const struct tracks *t = &workers[i].tracks;
        if (!t->list || !t->began) continue;
        track_add(&first, track->merge, t->first[k]);
        track_add(&last, track->merge, t->last[k]);
        track_add(&total, track->merge, t->last[k] - t->first[k]);
        add_worker(points, r, t, k);
    }
    snprintf(to->name, sizeof to->name, "%s", track->name);
    to->cumulative = track->cumulative;
    to->first = track_value(&first, track->merge);
    to->last = track_value(&last, track->merge);
    to->total = track->cumulative ? track_value(&total, track->merge) : NAN;
    for (unsigned i = 0; i < r->n_points; i++) to->values[i] = track_value(&points[i], track->merge);
}

void tracks_gather(struct record *r, const struct worker *workers, unsigned n) {
    struct track_sum *points = calloc(r->n_points ? r->n_points : 1, sizeof *points);
    for (unsigned k = 0; points && workers[0].tracks.list && k < workers[0].tracks.n; k++) {
        r->track[k].values = calloc(r->n_points ? r->n_points : 1, sizeof *r->track[k].values);
        if (!r->track[k].values) break;
        r->n_tracks = k + 1;
        gather_one(r, workers, n, k, points);
    }
    free(points);
}
