/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "result/ping.h"

#include <math.h>

#include "result/fields.h"
#include "result/json.h"

/* An idle target's pings count for the network too: where TCP does not tell, the smallest of all is the best guess,
 * and none can have been faster than the network. */
static double network(const struct record *r, const struct record_ping *p) {
    int64_t least = r->ping_floor_ns;
    if (p->n && (!least || p->min < least)) least = p->min;
    if (p->idle_n && (!least || p->idle_min < least)) least = p->idle_min;
    return least ? (double)least : NAN;
}

static double mean_latency(const struct record *r) {
    uint64_t n = 0, sum = 0;
    for (int op = IO_READ; op <= IO_WRITE; op++) {
        n += r->op[op].clat.n;
        sum += r->op[op].clat.sum;
    }
    return n ? (double)sum / (double)n : NAN;
}

void ping_estimate(const struct record *r, struct ping_estimate *out) {
    const struct record_ping *p = &r->ping[0];
    *out = (struct ping_estimate){NAN, NAN, NAN};
    if (!r->n_pings) return;
    out->network = network(r, p);
    if (p->lost >= p->n) return; /* the few that were answered do not speak for the others */
    double loaded = (double)p->median, mean = mean_latency(r);
    out->front = loaded - out->network;
    /* I/Os that are faster than pings (a ping wakes both sides from sleep, on a road that is seldom used): what is left
     * for the server is below what pings can tell. */
    if (mean >= loaded) out->server = mean - loaded;
}

/* 0 is "unknown" in the record. */
static void put_known(struct fields *f, const char *name, int64_t ns) {
    fields_put(f, name, ns ? json_integer(ns) : json_null());
}

static json_t *kind_json(const struct record_ping *p) {
    struct fields f = fields_new();
    fields_count(&f, "n", p->n);
    fields_count(&f, "lost", p->lost);
    put_known(&f, "min_ns", p->min);
    put_known(&f, "median_ns", p->median);
    put_known(&f, "max_ns", p->max);
    fields_count(&f, "idle_n", p->idle_n);
    put_known(&f, "idle_min_ns", p->idle_min);
    put_known(&f, "idle_median_ns", p->idle_median);
    fields_count(&f, "after_n", p->after_n);
    put_known(&f, "after_median_ns", p->after_median);
    return fields_end(&f);
}

json_t *ping_json(const struct record *r) {
    struct ping_estimate e;
    struct fields f, kinds;
    if (!r->n_pings && !r->ping_error[0]) return json_null();
    f = fields_new();
    kinds = fields_new();
    for (unsigned i = 0; i < r->n_pings; i++) fields_put(&kinds, r->ping[i].kind, kind_json(&r->ping[i]));
    ping_estimate(r, &e);
    fields_bool(&f, "estimate", true);
    fields_text(&f, "by", r->n_pings ? r->ping[0].kind : NULL);
    fields_real(&f, "network_ns", e.network);
    fields_real(&f, "front_ns", e.front);
    fields_real(&f, "server_ns", e.server);
    put_known(&f, "tcp_min_rtt_ns", r->ping_floor_ns);
    fields_put(&f, "kinds", fields_end(&kinds));
    fields_word(&f, "error", r->ping_error);
    return fields_end(&f);
}

json_t *ping_series_json(const struct record *r) {
    struct fields f = fields_new();
    for (unsigned i = 0; i < r->n_pings; i++) {
        json_t *column = json_array();
        for (unsigned k = 0; k < r->n_points; k++)
            json_array_append_new(column, json_of_double(r->ping[i].values ? r->ping[i].values[k] : NAN));
        fields_put(&f, r->ping[i].kind, column);
    }
    return fields_end(&f);
}
