/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "result/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "result/fields.h"
#include "result/ping.h"
#include "result/view.h"
#include "result/wire.h"

json_t *json_of_double(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *json_of_uint(uint64_t value) {
    return value <= INT64_MAX ? json_integer((json_int_t)value) : json_null();
}

/* The text with every invalid byte spelled out, in memory of its own. */
static char *spelled_out(const char *text) {
    size_t n = strlen(text), len = 4 * n + 1;
    char *buf = malloc(len);
    if (buf) text_safe(buf, len, text, n);
    return buf;
}

json_t *json_of_text(const char *text) {
    if (!text) return json_null();
    json_t *valid = json_string(text);
    if (valid) return valid;
    char *safe = spelled_out(text);
    json_t *j = safe ? json_string(safe) : NULL;
    free(safe);
    return j;
}

int json_of_put(json_t *object, const char *key, json_t *value) {
    if (!value) return -1;
    json_t *probe = json_string(key);
    json_decref(probe);
    if (probe) return json_object_set_new(object, key, value);
    char *safe = spelled_out(key);
    if (!safe) {
        json_decref(value);
        return -1;
    }
    int rc = json_object_set_new(object, safe, value);
    free(safe);
    return rc;
}

static json_t *kv_value(const struct kv_item *item) {
    switch (item->type) {
    case KV_UINT:
    case KV_GAUGE: return json_of_uint(item->u);
    case KV_REAL: return json_of_double(item->real);
    case KV_BOOL: return json_boolean(item->u != 0);
    case KV_TEXT: break;
    }
    return json_of_text(item->text);
}

json_t *json_of_kv(const struct kv *kv) {
    json_t *j = json_object();
    for (size_t i = 0; j && i < kv->n; i++) {
        if (json_of_put(j, kv->items[i].key, kv_value(&kv->items[i]))) {
            json_decref(j);
            return NULL;
        }
    }
    return j;
}

/* ---- histograms ---- */

static json_t *percentiles(const struct hist *h) {
    static const struct { const char *name; double p; } list[] = {
        {"50", 50}, {"90", 90}, {"99", 99}, {"99.9", 99.9}, {"99.99", 99.99},
    };
    struct fields f = fields_new();
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        int64_t ns;
        fields_put(&f, list[i].name, hist_percentile(h, list[i].p, &ns) ? json_integer(ns) : json_null());
    }
    return fields_end(&f);
}

static json_t *buckets(const struct hist *h) {
    json_t *j = json_array();
    for (unsigned i = 0; j && i < HIST_BUCKETS; i++) {
        if (!h->bucket[i]) continue;
        json_array_append_new(j, json_pack("[I, I]", (json_int_t)hist_lower(i), (json_int_t)h->bucket[i]));
    }
    return j;
}

json_t *json_of_hist(const struct hist *h) {
    struct fields f = fields_new();
    bool any = h->n > 0;
    fields_count(&f, "n", h->n);
    fields_put(&f, "min", any ? json_integer(h->min) : json_null());
    fields_real(&f, "mean", any ? hist_mean(h) : NAN);
    fields_real(&f, "stddev", any ? hist_stddev(h) : NAN);
    fields_put(&f, "max", any ? json_integer(h->max) : json_null());
    fields_put(&f, "percentiles", percentiles(h));
    fields_count(&f, "below", h->below);
    fields_count(&f, "above", h->above);
    fields_put(&f, "histogram", buckets(h));
    return fields_end(&f);
}

/* ---- the parts of a run ---- */

/* A direction: counts, rates over the measured window, latencies. Without a rate, T0 is T1: `lat` is `clat`. */
static json_t *direction(const struct record_op *op, const struct record *r) {
    struct fields f = fields_new();
    double seconds = (double)r->window_ns / NS_PER_SEC;
    fields_count(&f, "ios", op->ios);
    fields_count(&f, "bytes", op->bytes);
    fields_real(&f, "iops", seconds > 0 ? (double)op->ios / seconds : NAN);
    fields_real(&f, "bytes_per_second", seconds > 0 ? (double)op->bytes / seconds : NAN);
    fields_put(&f, "lat_ns", json_of_hist(r->has_due ? &op->lat : &op->clat));
    fields_put(&f, "clat_ns", json_of_hist(&op->clat));
    return fields_end(&f);
}

static json_t *total(const struct record *r) {
    struct record_op *sum = malloc(sizeof *sum); /* two histograms: too large for the stack */
    if (!sum) return NULL;
    *sum = r->op[IO_READ];
    sum->ios += r->op[IO_WRITE].ios;
    sum->bytes += r->op[IO_WRITE].bytes;
    hist_merge(&sum->clat, &r->op[IO_WRITE].clat);
    hist_merge(&sum->lat, &r->op[IO_WRITE].lat);
    json_t *j = direction(sum, r);
    free(sum);
    return j;
}

static json_t *flushes(const struct record_op *op) {
    struct fields f = fields_new();
    fields_count(&f, "ios", op->ios);
    fields_put(&f, "lat_ns", json_of_hist(&op->clat));
    return fields_end(&f);
}

static json_t *fingerprint(const struct record *r) {
    json_t *j = json_array();
    for (unsigned k = 0; j && k < r->n_marks && k < RECORD_MARKS; k++) {
        char hash[17];
        snprintf(hash, sizeof hash, "%016" PRIx64, r->mark[k]);
        json_array_append_new(j, json_pack("[i, s]", (int)k, hash));
    }
    return j;
}

static json_t *errors(const struct kinds *kinds) {
    json_t *j = json_object();
    for (unsigned i = 0; j && i < kinds->n; i++)
        if (kinds->kind[i].count) json_of_put(j, kinds->kind[i].name, json_of_uint(kinds->kind[i].count));
    return j;
}

/* The library's or server's own words, once per kind. */
static json_t *error_texts(const struct kinds *kinds) {
    json_t *j = json_object();
    for (unsigned i = 0; j && i < kinds->n; i++)
        if (kinds->kind[i].count && kinds->kind[i].text[0])
            json_of_put(j, kinds->kind[i].name, json_of_text(kinds->kind[i].text));
    return j;
}

static json_t *tail(const struct record_tail *t) {
    struct fields f = fields_new();
    fields_count(&f, "ios", t->ios);
    fields_count(&f, "errors", t->errors);
    fields_ns(&f, "longest_ns", t->longest_ns);
    fields_ns(&f, "drain_ns", t->drain_ns);
    fields_count(&f, "abandoned", t->abandoned);
    if (t->abandoned) fields_ns(&f, "abandoned_ns", t->abandoned_ns);
    return fields_end(&f);
}

static json_t *stall(const struct record *r) {
    const struct record_stall *s = &r->stall;
    if (!s->ns || r->window_ns <= 0) return json_null();
    struct fields f = fields_new();
    fields_ns(&f, "longest_ns", s->ns);
    fields_real(&f, "percent", 100.0 * (double)s->ns / (double)r->window_ns);
    fields_ns(&f, "at_ns", s->at);
    fields_count(&f, "workers", s->workers);
    return fields_end(&f);
}

static json_t *standstill(const struct record *r) {
    const struct record_standstill *s = &r->standstill;
    if (!s->ns) return json_null();
    struct fields f = fields_new();
    fields_ns(&f, "ns", s->ns);
    fields_ns(&f, "longest_ns", s->longest_ns);
    fields_ns(&f, "at_ns", s->at);
    fields_count(&f, "times", s->times);
    return fields_end(&f);
}

static json_t *cpu(const struct record *r) {
    struct fields f = fields_new();
    const struct record_cpu *c = &r->cpu;
    double used = (double)(c->user_ns + c->system_ns);
    double ios = (double)(r->op[IO_READ].ios + r->op[IO_WRITE].ios);
    fields_ns(&f, "user_ns", c->user_ns);
    fields_ns(&f, "system_ns", c->system_ns);
    fields_real(&f, "ns_per_io", ios > 0 ? used / ios : NAN);
    fields_real(&f, "own_ns_per_io", r->own_ns_per_io);
    fields_real(&f, "percent", r->window_ns > 0 ? 100.0 * used / (double)r->window_ns : NAN);
    fields_real(&f, "host_percent", c->host_ns > 0 ? 100.0 * (double)c->host_busy_ns / (double)c->host_ns : NAN);
    fields_ns(&f, "host_busy_ns", c->host_busy_ns);
    fields_ns(&f, "host_ns", c->host_ns);
    return fields_end(&f);
}

/* Little's law: what the latencies say the depth was, against the depth that was integrated without them. I/Os that
 * were out at an edge of the window, up to all of the depth at each, count whole in one and in part in the other: hence
 * the allowance. Those of the end are in no latency: one that hangs there is the longest all the same. */
static json_t *littles_law(const struct record *r) {
    struct fields f = fields_new();
    bool known = r->window_ns > 0 && r->depth_achieved > 0;
    int64_t longest = r->tail.longest_ns;
    for (int op = 0; op < IO_OPS; op++)
        if (r->op[op].clat.n && r->op[op].clat.max > longest) longest = r->op[op].clat.max;
    double edge = known ? (double)longest / (double)r->window_ns * (double)r->depth_requested / r->depth_achieved : NAN;
    fields_real(&f, "depth", r->window_ns > 0 ? r->depth_little : NAN);
    fields_real(&f, "deviation", known ? r->depth_little / r->depth_achieved - 1 : NAN);
    fields_real(&f, "allowed", 0.03 + edge);
    return fields_end(&f);
}

/* Counters are of a context's whole life, tracks of the window: where both have a name, it is the window's. */
/* The share of the window that "x_limited_ns" is, as "x_limited_percent". The kernel counts in ticks of a millisecond:
 * what is a little over 100 % is all of it. */
static void put_limited(json_t *j, const struct record_track *t, int64_t window_ns) {
    static const char end[] = "_limited_ns";
    char name[sizeof t->name + sizeof "percent"];
    size_t n = strlen(t->name), tail = sizeof end - 1;
    if (n <= tail || strcmp(t->name + n - tail, end) != 0 || window_ns <= 0) return;
    snprintf(name, sizeof name, "%.*spercent", (int)(n - 2), t->name);
    double percent = 100 * t->total / (double)window_ns;
    json_of_put(j, name, json_of_double(percent > 100 ? 100 : percent)); /* unknown (NAN) stays so: fmin() would say 100 */
}

/* What follows from several values of the window; each only where all of them are known. What the other side says that
 * it had twice was only late: on a machine that was busy, or stood still. */
static void put_derived(json_t *j, const struct record *r) {
    double again = view_number(j, "tcp_retransmits"), twice = view_number(j, "tcp_dsacks");
    double out = view_number(j, "tcp_data_segments_out"), in = view_number(j, "tcp_data_segments_in");
    double lost = twice > 0 ? fmax(again - twice, 0) : again, late = view_number(j, "tcp_out_of_order");
    double waits = view_number(j, "r2t_waits") / (double)r->op[IO_WRITE].ios;
    if (r->n_tracks == 0) return;
    if (!isnan(lost) && out > 0) json_of_put(j, "tcp_lost_segments", json_of_double(lost));
    if (!isnan(lost) && out > 0) json_of_put(j, "tcp_lost_percent", json_of_double(100 * lost / out));
    if (in > 0) json_of_put(j, "tcp_out_of_order_percent", json_of_double(100 * late / in));
    if (!isfinite(waits)) return;
    json_of_put(j, "r2t_waits_per_write", json_of_double(waits));
    json_of_put(j, "r2t_ns_per_write", json_of_double(waits * view_number(j, "tcp_min_rtt_ns")));
}

static json_t *protocol(const struct record *r) {
    json_t *j = json_of_kv(&r->protocol);
    if (j) json_object_set_new(j, "wire_ios_per_io", json_of_double(r->wire_ios_per_io));
    for (unsigned i = 0; j && i < r->n_tracks; i++) {
        const struct record_track *t = &r->track[i];
        json_of_put(j, t->name, json_of_double(t->cumulative ? t->total : t->last));
        if (t->cumulative) put_limited(j, t, r->window_ns);
    }
    if (j) put_derived(j, r);
    return j;
}

static json_t *protocol_at_start(const struct record *r) {
    json_t *j = json_object();
    for (unsigned i = 0; j && i < r->n_tracks; i++) json_of_put(j, r->track[i].name, json_of_double(r->track[i].first));
    return j;
}

static json_t *protocol_series(const struct record *r) {
    json_t *j = json_object();
    for (unsigned i = 0; j && i < r->n_tracks; i++) {
        json_t *values = json_array();
        for (unsigned k = 0; k < r->n_points; k++)
            json_array_append_new(values, json_of_double(r->track[i].values[k]));
        json_of_put(j, r->track[i].name, values);
    }
    return j;
}

/* Columns, not rows: shorter, and what plotting wants. */
static json_t *series(const struct record *r) {
    struct fields f = fields_new();
    json_t *ios[2], *bytes[2], *mean = json_array(), *max = json_array(), *failed = json_array();
    for (int op = IO_READ; op <= IO_WRITE; op++) {
        ios[op] = json_array();
        bytes[op] = json_array();
    }
    for (unsigned i = 0; i < r->n_points; i++) {
        const struct record_point *p = &r->points[i];
        uint64_t n = p->ios[IO_READ] + p->ios[IO_WRITE];
        for (int op = IO_READ; op <= IO_WRITE; op++) {
            json_array_append_new(ios[op], json_of_uint(p->ios[op]));
            json_array_append_new(bytes[op], json_of_uint(p->bytes[op]));
        }
        json_array_append_new(mean, json_of_double(n ? (double)p->lat_sum / (double)n : NAN));
        json_array_append_new(max, n ? json_integer(p->lat_max) : json_null());
        json_array_append_new(failed, json_of_uint(p->errors));
    }
    fields_ns(&f, "interval_ns", r->series_interval_ns);
    fields_put(&f, "read_ios", ios[IO_READ]);
    fields_put(&f, "write_ios", ios[IO_WRITE]);
    fields_put(&f, "read_bytes", bytes[IO_READ]);
    fields_put(&f, "write_bytes", bytes[IO_WRITE]);
    fields_put(&f, "lat_mean_ns", mean);
    fields_put(&f, "lat_max_ns", max);
    fields_put(&f, "errors", failed);
    fields_put(&f, "protocol", protocol_series(r));
    fields_put(&f, "ping", ping_series_json(r));
    return fields_end(&f);
}

static json_t *worker_cpus(const struct record *r) {
    json_t *j = json_array();
    unsigned known = sizeof r->worker_cpu / sizeof *r->worker_cpu, n = r->workers < known ? r->workers : known;
    for (unsigned i = 0; j && i < n; i++)
        json_array_append_new(j, r->worker_cpu[i] < 0 ? json_null() : json_integer(r->worker_cpu[i]));
    return j;
}

/* ---- the run ---- */

static void put_identity(struct fields *f, const struct record *r) {
    fields_text(f, "pattern", r->pattern);
    fields_text(f, "target", r->target);
    fields_count(f, "round", r->round);
    fields_count(f, "order", r->order);
    fields_text(f, "status", run_status_name(r->status));
    fields_word(f, "error", r->error);
}

static void put_times(struct fields *f, const struct record *r) {
    fields_ns(f, "started_ns", r->started_ns);
    fields_ns(f, "prepare_ns", r->prepare_ns);
    fields_count(f, "prepare_retries", r->prepare_retries);
    fields_count(f, "prepare_retry_ns", r->prepare_retry_ns);
    fields_ns(f, "flush_ns", r->flush_ns);
    fields_ns(f, "settle_ns", r->settle_ns);
    fields_ns(f, "settle_read_ns", r->settle_read_ns);
    fields_ns(f, "idle_read_ns", r->idle_read_ns);
    fields_bool(f, "settled", r->settled);
    fields_ns(f, "ramp_ns", r->ramp_ns);
    fields_ns(f, "window_ns", r->window_ns);
    fields_ns(f, "end_flush_ns", r->end_flush_ns);
}

/* "": unknown, or none. */
static const char *entropy(const struct record_data *d, char *buf, size_t len) {
    char compress[40] = "", dedupe[40] = "";
    if (d->compress) snprintf(compress, sizeof compress, "%u %% compressible", d->compress);
    if (d->dedupe) snprintf(dedupe, sizeof dedupe, "%u %% duplicates", d->dedupe);
    if (!d->known)
        buf[0] = '\0';
    else if (d->zeros)
        snprintf(buf, len, "zeros");
    else if (!d->compress && !d->dedupe)
        snprintf(buf, len, "random");
    else
        snprintf(buf, len, "%s%s%s", compress, d->compress && d->dedupe ? ", " : "", dedupe);
    return buf;
}

static void put_load(struct fields *f, const struct record *r) {
    /* enum pattern_cache: the pattern layer is above this one, and a unit test holds the two together. */
    static const char *const caches[] = {"asis", "warm", "cold"};
    double held = (double)r->window_ns * r->workers;
    fields_put(f, "fingerprint", fingerprint(r));
    fields_count(f, "workers", r->workers);
    fields_count(f, "depth_requested", r->depth_requested);
    fields_real(f, "depth_achieved", r->depth_achieved);
    fields_put(f, "littles_law", littles_law(r));
    fields_count(f, "ios_generated", r->ios_generated);
    fields_count(f, "io_align", r->io_align);
    fields_put(f, "physical_block", r->physical_block ? json_of_uint(r->physical_block) : json_null());
    fields_count(f, "physical_offset", r->physical_offset);
    fields_word(f, "durability", io_durability_name(r->durability));
    char data[100];
    fields_word(f, "entropy", entropy(&r->written, data, sizeof data));
    fields_word(f, "filled", entropy(&r->filled, data, sizeof data));
    fields_text(f, "cache", caches[r->cache]);
    fields_real(f, "holes", r->holes);
    fields_count(f, "blocks_sampled", r->blocks_sampled);
    fields_count(f, "zeros_sampled", r->zeros_sampled);
    fields_bool(f, "rate_limited", r->has_due);
    if (r->pauses) fields_bool(f, "pauses", true);
    fields_ns(f, "submit_ns", r->submit_ns);
    fields_real(f, "submit_percent", held > 0 ? 100.0 * (double)r->submit_ns / held : NAN);
}

static void put_figures(struct fields *f, const struct record *r) {
    fields_put(f, "read", direction(&r->op[IO_READ], r));
    fields_put(f, "write", direction(&r->op[IO_WRITE], r));
    fields_put(f, "total", total(r));
    fields_put(f, "flush", flushes(&r->op[IO_FLUSH]));
    fields_put(f, "tail", tail(&r->tail));
    fields_put(f, "stall", stall(r));
    fields_put(f, "standstill", standstill(r));
    fields_count(f, "failed", r->failed);
    fields_count(f, "failed_ns", r->failed_ns);
    fields_count(f, "failed_longest_ns", (uint64_t)r->failed_longest_ns);
    fields_count(f, "short_ios", r->short_ios);
    fields_put(f, "errors", errors(&r->errors));
    fields_put(f, "error_texts", error_texts(&r->errors));
    fields_count(f, "rate_missed", r->rate_missed);
    fields_count(f, "rate_unsent", r->rate_unsent);
    fields_bool(f, "lat_lower_bound", r->lat_lower_bound);
    fields_put(f, "cpu", cpu(r));
    fields_put(f, "worker_cpus", worker_cpus(r));
    fields_put(f, "protocol", protocol(r));
    fields_put(f, "protocol_at_start", protocol_at_start(r));
    fields_put(f, "ping", ping_json(r));
    fields_put(f, "wire", wire_json(r));
    fields_put(f, "series", series(r));
}

json_t *json_of_record(const struct record *r) {
    struct fields f = fields_new();
    put_identity(&f, r);
    put_times(&f, r);
    put_load(&f, r);
    put_figures(&f, r);
    return fields_end(&f);
}
