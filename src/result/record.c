/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "result/record.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *run_status_name(enum run_status s) {
    static const char *const names[] = {"ok", "errors", "lost", "interrupted"};
    return names[s];
}

void record_point_add(struct record_point *into, const struct record_point *from) {
    for (int op = IO_READ; op <= IO_WRITE; op++) {
        into->ios[op] += from->ios[op];
        into->bytes[op] += from->bytes[op];
    }
    into->lat_sum += from->lat_sum;
    if (from->lat_max > into->lat_max) into->lat_max = from->lat_max;
    into->errors += from->errors;
}

struct record *record_new(const char *pattern, const char *target) {
    struct record *r = calloc(1, sizeof *r);
    if (!r) return NULL;
    r->pattern = strdup(pattern);
    r->target = strdup(target);
    if (!r->pattern || !r->target) {
        record_free(r);
        return NULL;
    }
    for (int op = 0; op < IO_OPS; op++) {
        hist_init(&r->op[op].clat);
        hist_init(&r->op[op].lat);
    }
    /* Unknown until somebody knows better: zero would be a statement. */
    r->holes = NAN;
    r->own_ns_per_io = NAN;
    r->wire_ios_per_io = NAN;
    for (size_t i = 0; i < sizeof r->worker_cpu / sizeof *r->worker_cpu; i++) r->worker_cpu[i] = -1;
    return r;
}

void record_free(struct record *r) {
    if (!r) return;
    free(r->pattern);
    free(r->target);
    free(r->points);
    for (unsigned i = 0; i < RECORD_PINGS; i++) free(r->ping[i].values);
    for (unsigned i = 0; i < r->n_tracks; i++) free(r->track[i].values);
    kv_free(&r->protocol);
    free(r);
}
