/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The plan: patterns x targets x rounds, validated against what the targets are. Made by the command line, shown by
 * --dry-run, executed by session.h. */
#ifndef ENGINE_PLAN_H
#define ENGINE_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "pattern/data.h"
#include "pattern/set.h"
#include "target/sameness.h"
#include "target/target.h"

struct plan {
    struct pattern_set patterns;
    struct target **targets; /* opened for reading */
    unsigned n_targets;
    uint64_t seed;
    unsigned rounds;           /* the largest of all patterns */
    bool read_only;            /* only reading patterns were kept */
    struct target *nothing;    /* does no I/O: on it the tool's own cost is measured; NULL: it is not. The caller's */
    const struct sameness *same; /* which targets are one object; the caller's; NULL: none. May learn during a session */
    uint32_t nonce;              /* new for every invocation: in the fill's marks, so that its blocks are known from those of another */
    const struct data_note *const *note; /* per target, what the writes over its block carry; the caller's; NULL: none */
    bool warm_instead_of_asis;   /* two targets share what they store: asis becomes warm; read before each run */
};

/* Rounds of one pattern with this many targets: its number, or the balanced count (3, 4, 6, 2n). */
unsigned plan_pattern_rounds(const struct pattern *p, unsigned n_targets);
/* Order of the targets in `round` (from 1): ABC BCA CAB CBA ACB BAC; AB BA; a fixed function of the round's number. */
void plan_order(unsigned round, unsigned n_targets, unsigned *order);

/* Resolves sizes (0: the smallest existing target; error if none exists), sets rounds, checks every pattern against
 * every target: working set fits (a missing file will have offset + size), offsets and lengths fit the block, the
 * largest I/O and the depth fit, flush and FUA exist where asked. Errors name pattern, target, key, both numbers and
 * what would do. */
int plan_resolve(struct plan *plan, struct err *err);
/* Bytes of target `t` that the plan needs it to have (offset + size, the largest over all patterns), and [from, to)
 * that it writes. */
uint64_t plan_needed_size(const struct plan *plan);
void plan_written_range(const struct plan *plan, uint64_t *from, uint64_t *to); /* equal: writes nothing */
bool plan_writes(const struct plan *plan);
/* In the marks of what target `t` is filled with. */
uint32_t plan_fill_tag(const struct plan *plan, unsigned t);
/* What a read at depth 1 takes on a target, as its load will meet it; ns. */
uint64_t plan_read_ns(const struct target *t);
/* Runs in all rounds; what they and their preparation are expected to take, by what a context and a read took when the
 * targets were opened (target.read_ns), and at 100 MiB/s at most, which is assumed and said as such. */
unsigned plan_runs(const struct plan *plan);
uint64_t plan_run_ns(const struct plan *plan); /* ramps, windows, and 0.5 s a run for what is between, or more by latency */
uint64_t plan_prepare_ns(const struct plan *plan);
/* --time: sets every pattern's rounds to the largest number such that the whole fits `ns`; -1 (USAGE): one round
 * does not. */
int plan_fit_time(struct plan *plan, uint64_t ns, struct err *err);
void plan_free(struct plan *plan); /* patterns and the array; targets belong to the caller */

#endif
