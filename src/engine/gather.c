/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "engine/gather.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/account.h"

void samples_take(struct sample *s, const struct target *t) {
    cpu_sample(&s->cpu);
    s->has_wire = t->backend->wire_ios && t->backend->wire_ios(t->handle, &s->wire_ios) == 0;
}

static void add_op(struct record_op *into, const struct record_op *from) {
    into->ios += from->ios;
    into->bytes += from->bytes;
    hist_merge(&into->clat, &from->clat);
    hist_merge(&into->lat, &from->lat);
}

static void add_tail(struct record_tail *into, const struct record_tail *from) {
    into->ios += from->ios;
    into->errors += from->errors;
    into->abandoned += from->abandoned;
    if (from->abandoned_ns > into->abandoned_ns) into->abandoned_ns = from->abandoned_ns;
    if (from->longest_ns > into->longest_ns) into->longest_ns = from->longest_ns;
    if (from->drain_ns > into->drain_ns) into->drain_ns = from->drain_ns;
}

/* Series of workers may have different intervals (each a power of two seconds): the coarsest is the common one. */
static void add_series(struct record *r, const struct worker *workers, unsigned n) {
    r->series_interval_ns = NS_PER_SEC;
    for (unsigned i = 0; i < n; i++)
        if (workers[i].series_interval_ns > r->series_interval_ns)
            r->series_interval_ns = workers[i].series_interval_ns;
    for (unsigned i = 0; i < n; i++)
        if (workers[i].tracks.interval_ns > r->series_interval_ns) r->series_interval_ns = workers[i].tracks.interval_ns;
    r->n_points = (unsigned)((r->window_ns + r->series_interval_ns - 1) / r->series_interval_ns);
    r->points = calloc(r->n_points ? r->n_points : 1, sizeof *r->points);
    if (!r->points) r->n_points = 0;
    for (unsigned i = 0; i < n; i++) {
        unsigned fine = (unsigned)(r->series_interval_ns / workers[i].series_interval_ns);
        for (unsigned k = 0; k < workers[i].n_points && k / fine < r->n_points; k++)
            record_point_add(&r->points[k / fine], &workers[i].points[k]);
    }
}

static int64_t overlap(int64_t a, int64_t a_to, int64_t b, int64_t b_to) {
    return (a_to < b_to ? a_to : b_to) - (a > b ? a : b);
}

/* The longest of any worker's, and how many others had theirs at the same time, for most of it. */
static void set_stall(struct record *r, const struct worker *workers, unsigned n) {
    const struct worker_counts *longest = &workers[0].counts;
    for (unsigned i = 1; i < n; i++)
        if (workers[i].counts.gap_ns > longest->gap_ns) longest = &workers[i].counts;
    r->stall = (struct record_stall){.ns = longest->gap_ns, .at = longest->gap_from - workers[0].t_window};
    for (unsigned i = 0; i < n; i++) {
        const struct worker_counts *own = &workers[i].counts;
        r->stall.workers += overlap(own->gap_from, own->gap_from + own->gap_ns, longest->gap_from,
                                    longest->gap_from + longest->gap_ns) > longest->gap_ns / 2;
    }
    if (!longest->gap_ns) r->stall = (struct record_stall){.ns = 0};
}

/* Time in submit is a device's, unless nobody else ran meanwhile: then the client stood still in it, too, and that nothing
 * came back is no stall of the target's. */
static void add_held(struct worker *w, const struct samples *s) {
    struct worker_counts *c = &w->counts;
    if (overlap(c->held_from, c->held_to, s->late_from, s->late_to) < STANDSTILL) return;
    account_standstill(w, c->held_from, c->held_to);
    if (overlap(c->held_from, c->held_to, c->gap_from, c->gap_from + c->gap_ns) > c->gap_ns / 2) c->gap_ns = 0;
}

static void set_standstill(struct record *r, struct worker *workers, unsigned n, const struct samples *s) {
    for (unsigned i = 0; i < n; i++) {
        add_held(&workers[i], s);
        if (workers[i].counts.still.ns > r->standstill.ns) r->standstill = workers[i].counts.still;
    }
}

/* As block devices and LUNs tell it. */
static void set_physical(struct record *r, const struct kv *negotiated) {
    r->physical_block = kv_get_uint(negotiated, "physical_block", kv_get_uint(negotiated, "physical_block_size", 0));
    r->physical_offset = kv_get_uint(negotiated, "physical_offset", 0);
}

static void add_marks(struct record *r, const struct worker *workers, unsigned n) {
    r->n_marks = RECORD_MARKS;
    for (unsigned i = 0; i < n; i++)
        if (workers[i].stream.n_marks < r->n_marks) r->n_marks = workers[i].stream.n_marks;
    for (unsigned k = 0; k < r->n_marks; k++) {
        uint64_t h = n;
        for (unsigned i = 0; i < n; i++) h = rng_mix(h ^ workers[i].stream.mark[k]);
        r->mark[k] = h;
    }
}

static enum io_durability durability(const struct worker *workers, unsigned n, const struct pattern *p) {
    uint64_t writes = 0, stable = 0, flushes = 0, end_flushes = 0;
    for (unsigned i = 0; i < n; i++) {
        writes += workers[i].counts.writes;
        stable += workers[i].counts.writes_stable;
        flushes += workers[i].counts.flushes;
        end_flushes += workers[i].end_flush_ns > 0;
    }
    if (writes == 0) return DURABILITY_NO_WRITES;
    if (writes == stable) return DURABILITY_CLAIMS_STABLE;
    if ((p->fsync && flushes) || (p->end_fsync && end_flushes == n)) return DURABILITY_FLUSHED;
    return DURABILITY_VOLATILE;
}

/* What ended a worker's context: the backend's own reason; else the last failure, as earlier ones may have been of
 * another kind. */
static const struct kind *reason(const struct worker *w) {
    if (w->kinds.lost) return &w->kinds.kind[w->kinds.lost - 1];
    return w->kinds.n ? &w->kinds.kind[w->last_kind] : NULL;
}

static void set_status(struct record *r, const struct worker *workers, unsigned n) {
    uint64_t errors = 0;
    for (unsigned i = 0; i < r->errors.n; i++) errors += r->errors.kind[i].count;
    r->status = errors || r->tail.abandoned ? RUN_ERRORS : RUN_OK;
    const char *first = r->errors.n ? r->errors.kind[0].text : "";
    for (unsigned i = 0; i < n; i++) {
        if (workers[i].lost) {
            r->status = RUN_LOST;
            const struct kind *k = reason(&workers[i]);
            snprintf(r->error, sizeof r->error, "%s", k && k->text[0] ? k->text : strerror(-workers[i].lost));
            return;
        }
        if (workers[i].gave_up) snprintf(r->error, sizeof r->error, "stopped: every I/O failed (%s)", first);
    }
    if (r->tail.abandoned)
        snprintf(r->error, sizeof r->error, "%llu I/O%s still out after %.1f s", (unsigned long long)r->tail.abandoned,
                 r->tail.abandoned == 1 ? " was" : "s were", (double)r->tail.abandoned_ns / NS_PER_SEC);
}

static void set_wire(struct record *r, const struct samples *s, uint64_t completed) {
    uint64_t window_ios = r->op[IO_READ].ios + r->op[IO_WRITE].ios + r->failed;
    const struct kv_item *counted = kv_find(&r->protocol, "wire_ios");
    uint64_t failed = 0;
    r->wire_ios_per_io = NAN;
    for (unsigned i = 0; i < r->errors.n; i++) failed += r->errors.kind[i].count;
    if (s->from.has_wire && s->to.has_wire && window_ios)
        r->wire_ios_per_io = (double)(s->to.wire_ios - s->from.wire_ios) / (double)window_ios;
    else if (counted && completed > failed) /* as counters() has it, "wire_ios" is what ended well */
        r->wire_ios_per_io = (double)counted->u / (double)(completed - failed);
}

void gather(struct record *r, const struct run *run, struct worker *workers, unsigned n,
            const struct samples *samples) {
    const struct pattern *p = run->pattern;
    uint64_t area = 0, completed = 0, held = 0;
    int64_t over = 0;
    for (unsigned i = 0; i < n; i++) {
        struct worker *w = &workers[i];
        for (int op = 0; op < IO_OPS; op++) add_op(&r->op[op], &w->counts.op[op]);
        add_tail(&r->tail, &w->counts.tail);
        kinds_merge(&r->errors, &w->kinds);
        kv_merge_sum(&r->protocol, &w->protocol);
        r->failed += w->counts.failed;
        r->failed_ns += (uint64_t)w->counts.failed_ns;
        if (w->counts.failed_longest_ns > r->failed_longest_ns) r->failed_longest_ns = w->counts.failed_longest_ns;
        r->short_ios += w->counts.short_ios;
        r->rate_missed += w->counts.rate_missed;
        r->rate_unsent += w->counts.rate_unsent;
        r->submit_ns += w->counts.submit_ns;
        r->ios_generated += w->stream.count;
        if (w->end_flush_ns > r->end_flush_ns) r->end_flush_ns = w->end_flush_ns;
        if (w->t_over > over) over = w->t_over;
        area += w->depth.area;
        completed += w->counts.ios_completed;
        if (i < 64) r->worker_cpu[i] = w->cpu;
    }
    int64_t began = workers[0].t_window;
    r->workers = n;
    r->ramp_ns = over > began ? (int64_t)p->ramp_time : over - workers[0].t_start;
    r->window_ns = over > began ? over - began : 0;
    r->depth_requested = p->iodepth * p->numjobs;
    for (int op = 0; op < IO_OPS; op++) held += r->op[op].clat.sum;
    if (r->window_ns) {
        r->depth_achieved = (double)area / (double)r->window_ns;
        r->depth_little = (double)(held + r->failed_ns) / (double)r->window_ns;
    }
    set_standstill(r, workers, n, samples);
    set_stall(r, workers, n);
    r->io_align = pattern_min_align(p);
    set_physical(r, &run->target->member[0].facts.negotiated);
    r->has_due = p->rate_iops != 0;
    r->pauses = p->thinktime != 0;
    r->lat_lower_bound = r->rate_missed || r->rate_unsent > n;
    r->written = (struct record_data){.known = pattern_writes(p),
                                      .zeros = p->data.zeros,
                                      .compress = (unsigned)p->data.compress,
                                      .dedupe = (unsigned)p->data.dedupe};
    r->durability = durability(workers, n, p);
    cpu_between(&samples->from.cpu, &samples->to.cpu, &r->cpu);
    set_wire(r, samples, completed);
    add_marks(r, workers, n);
    add_series(r, workers, n);
    tracks_gather(r, workers, n);
    set_status(r, workers, n);
}
