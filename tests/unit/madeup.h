/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Made-up runs with known figures, for the tests of results and reports. */
#ifndef TESTS_MADEUP_H
#define TESTS_MADEUP_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "result/record.h"

/* A run of one second in which `ios` reads and `ios` writes of 8 KiB took `ns` each. The depth is what Little's law
 * says. */
static inline struct record *madeup_run(const char *pattern, const char *target, unsigned round, unsigned ios,
                                        int64_t ns) {
    struct record *r = record_new(pattern, target);
    r->round = round;
    r->order = 1;
    r->window_ns = NS_PER_SEC;
    r->ramp_ns = 2 * NS_PER_SEC;
    r->workers = 1;
    r->depth_requested = 64;
    r->pauses = true; /* so that nobody wonders at the depth */
    r->depth_achieved = r->depth_little = 2.0 * ios * (double)ns / NS_PER_SEC;
    r->ios_generated = 2 * ios + 64;
    r->durability = DURABILITY_CLAIMS_STABLE;
    r->written.known = true;
    r->holes = 0;
    r->settled = true;
    r->wire_ios_per_io = 1;
    r->cpu = (struct record_cpu){.user_ns = 2 * ios * 4000,
                                 .system_ns = 2 * ios * 6000,
                                 .host_busy_ns = NS_PER_SEC / 2,
                                 .host_ns = 2 * NS_PER_SEC};
    for (int op = IO_READ; op <= IO_WRITE; op++) {
        r->op[op].ios = ios;
        r->op[op].bytes = (uint64_t)ios * 8192;
        for (unsigned i = 0; i < ios; i++) hist_record(&r->op[op].clat, ns);
    }
    r->n_marks = 3;
    for (unsigned k = 0; k < 3; k++) r->mark[k] = 0x1000 * round + k;
    return r;
}

static inline void madeup_fail(struct record *r, const char *kind, const char *text, uint64_t count) {
    unsigned i = kinds_note(&r->errors, kind, text);
    r->errors.kind[i].count += count;
    r->failed += count;
    r->status = RUN_ERRORS;
}

#endif
