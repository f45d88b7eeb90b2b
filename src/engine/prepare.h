/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Before the first run: the working set is written once, or looked at, so that no read is answered from nothing. */
#ifndef ENGINE_PREPARE_H
#define ENGINE_PREPARE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "pattern/data.h"
#include "target/target.h"

struct prepare {
    struct target *target;
    uint64_t from, to; /* bytes of the target */
    uint64_t seed;
    uint32_t run_tag;
    struct data_choice data;
    const struct data_note *note; /* what the write over its block carries; NULL: none; not owned */
    volatile sig_atomic_t *interrupted;
    void (*progress)(void *arg, uint64_t done, uint64_t total); /* may be NULL */
    void *arg;
};

/* Writes [from, to) with marked data and flushes. 0, or 1 when interrupted, or -1 (STATUS_IO, STATUS_TARGET). */
int prepare_fill(const struct prepare *p, struct err *err);
/* Reads 256 blocks of 4 KiB, one at random in each of as many equal parts, many at a time; fewer where that would take
 * longer than 10 s. `zeros` of `sampled` hold nothing but zeros. Same returns. */
int prepare_check(const struct prepare *p, unsigned *sampled, unsigned *zeros, struct err *err);
/* Reads [from, to) once: the working set for cache=warm, what lies outside of it for cache=cold. Same returns. */
int prepare_read(const struct prepare *p, struct err *err);
/* Share of [from, to) that has no storage behind it, as the target says; NAN if it does not. False: because it took too
 * long, or was interrupted. */
bool prepare_holes(const struct target *t, uint64_t from, uint64_t to, double *share);
#define PREPARE_HOLES_TIME (10 * NS_PER_SEC)

#endif
