/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "engine/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/clock.h"
#include "base/units.h"
#include "engine/plan_check.h"
#include "pattern/mark.h"

/* What the estimate assumes where it cannot know; the command line says so. */
#define FILL_BYTES_PER_SECOND (100ull << 20)
#define LOOK_MOST (1ull << 30) /* what safety reads whole */
#define RUN_ALLOWANCE         (NS_PER_SEC / 2)
#define KEPT_SHARE            8u /* of a range, the record takes no more than one part of so many from the load */

unsigned plan_pattern_rounds(const struct pattern *p, unsigned n_targets) {
    if (p->rounds != ROUNDS_BALANCED) return (unsigned)p->rounds;
    switch (n_targets) {
    case 0:
    case 1: return 3;
    case 2: return 4;
    default: return 2 * n_targets;
    }
}

/* Every target stands in every place equally often, and every pair in both orders: the n cyclic shifts, then (from
 * three targets on, where it is something else) each of them backwards. */
void plan_order(unsigned round, unsigned n_targets, unsigned *order) {
    if (n_targets == 0) return;
    unsigned shifts = n_targets > 2 ? 2 * n_targets : n_targets;
    unsigned k = (round - 1) % shifts;
    for (unsigned i = 0; i < n_targets; i++) {
        unsigned place = k < n_targets ? i : n_targets - 1 - i;
        order[place] = (i + k % n_targets) % n_targets;
    }
}

static uint64_t pattern_end(const struct pattern *p) {
    return p->offset + p->size + (p->cache == CACHE_COLD ? p->evict : 0);
}

uint64_t plan_needed_size(const struct plan *plan) {
    uint64_t size = 0;
    for (size_t i = 0; i < plan->patterns.n; i++) {
        uint64_t end = pattern_end(&plan->patterns.pattern[i]);
        if (end > size) size = end;
    }
    return size;
}

bool plan_writes(const struct plan *plan) {
    for (size_t i = 0; i < plan->patterns.n; i++) {
        const struct pattern *p = &plan->patterns.pattern[i];
        if (pattern_writes(p) || p->prepare == PREPARE_FILL) return true;
    }
    return false;
}

void plan_written_range(const struct plan *plan, uint64_t *from, uint64_t *to) {
    *from = *to = 0;
    if (!plan_writes(plan)) return;
    *from = UINT64_MAX;
    for (size_t i = 0; i < plan->patterns.n; i++) {
        const struct pattern *p = &plan->patterns.pattern[i];
        if (p->offset < *from) *from = p->offset;
        if (pattern_end(p) > *to) *to = pattern_end(p);
    }
}

unsigned plan_runs(const struct plan *plan) {
    unsigned runs = 0;
    for (size_t i = 0; i < plan->patterns.n; i++)
        runs += plan_pattern_rounds(&plan->patterns.pattern[i], plan->n_targets) * plan->n_targets;
    return runs;
}

/* ---- what a target's latency adds; see settle.c, prepare.c, and safety/content.c ---- */

#define LOOK_ROUNDS  4u          /* for 256 samples */
#define STREAM_BYTES (8u << 20)  /* of a fill, at a time */
#define DENSE_BYTES  (16u << 20) /* of a look at all, at a time */

#define NEW_ROUNDS   5u          /* to create what is not there */
#define TCP_BEGINS   (16u << 10) /* what a new connection sends before the first answer: twice as much after each, up to ... */
#define TCP_GROWS_TO (8u << 20)

static bool is_null(const struct target *t) {
    return t->n_members && t->member[0].facts.kind == OBJECT_NULL;
}

static bool is_there(const struct target *t) {
    return t->n_members && t->member[0].facts.exists;
}

/* As the load meets it: with the delay that was asked for. Safety looks past that. */
uint64_t plan_read_ns(const struct target *t) {
    uint64_t most = 0;
    for (unsigned m = 0; m < t->n_members; m++)
        if (t->member[m].facts.delay_ns > most) most = t->member[m].facts.delay_ns;
    return (uint64_t)t->read_ns + most;
}

static uint64_t reads_ns(const struct target *t, unsigned most, unsigned least) {
    uint64_t read = plan_read_ns(t), all = most * read, limit = 2 * (uint64_t)NS_PER_SEC;
    return all < limit ? all : least * read > limit ? least * read : limit;
}

/* Beside ramp and window: the contexts of settling, pings and load, the reads that see whether it has settled, the drain. */
static uint64_t between_ns(const struct pattern *p, const struct target *t) {
    /* A load that writes: the record of who writes before it, the same object after it. */
    uint64_t ns = (pattern_writes(p) ? 5 : 3) * (uint64_t)t->attach_ns + reads_ns(t, 5, 2) + plan_read_ns(t);
    return ns > (uint64_t)RUN_ALLOWANCE ? ns : (uint64_t)RUN_ALLOWANCE;
}

static uint64_t transfer_ns(const struct target *t, uint64_t bytes, uint64_t at_a_time) {
    double assumed = (double)bytes / FILL_BYTES_PER_SECOND * NS_PER_SEC;
    double waits = (double)bytes / (double)at_a_time * (double)plan_read_ns(t);
    return (uint64_t)(assumed > waits ? assumed : waits);
}

/* What a new connection needs to get up to speed. */
static uint64_t slow_start_ns(const struct target *t, uint64_t bytes) {
    uint64_t rounds = 0;
    for (uint64_t sent = TCP_BEGINS; sent < bytes && sent < TCP_GROWS_TO; sent *= 2) rounds++;
    return rounds * (uint64_t)t->read_ns;
}

static uint64_t one_run_ns(const struct pattern *p, const struct target *t) {
    uint64_t window = p->runtime;
    uint64_t amount = p->io_size ? p->io_size : p->loops * (p->size - p->kept);
    if (amount) {
        window = transfer_ns(t, amount, pattern_max_io(p) * p->iodepth * p->numjobs);
        if (p->runtime && p->runtime < window) window = p->runtime;
    }
    return p->ramp_time + window + between_ns(p, t);
}

static uint64_t on_all_targets_ns(const struct plan *plan, const struct pattern *p) {
    uint64_t ns = 0;
    for (unsigned i = 0; i < plan->n_targets; i++) ns += one_run_ns(p, plan->targets[i]);
    return ns;
}

static uint64_t one_round_ns(const struct plan *plan) {
    uint64_t ns = 0;
    for (size_t i = 0; i < plan->patterns.n; i++) ns += on_all_targets_ns(plan, &plan->patterns.pattern[i]);
    return ns;
}

uint64_t plan_run_ns(const struct plan *plan) {
    uint64_t ns = 0;
    for (size_t i = 0; i < plan->patterns.n; i++) {
        const struct pattern *p = &plan->patterns.pattern[i];
        ns += on_all_targets_ns(plan, p) * plan_pattern_rounds(p, plan->n_targets);
    }
    return ns;
}

static bool fills(const struct plan *plan) {
    for (size_t i = 0; i < plan->patterns.n; i++) {
        const struct pattern *p = &plan->patterns.pattern[i];
        if (p->prepare == PREPARE_FILL || (p->prepare == PREPARE_AUTO && plan_writes(plan))) return true;
    }
    return false;
}

/* Right before it is written, what lies on it is looked at once more: all of it, if it is not more. */
static uint64_t write_ns(const struct plan *plan, const struct target *t) {
    uint64_t from, to, read = (uint64_t)t->read_ns, attach = (uint64_t)t->attach_ns;
    if (is_null(t)) return 0;
    plan_written_range(plan, &from, &to);
    uint64_t ns = t->open_ns ? (uint64_t)t->open_ns : 2 * attach, start = slow_start_ns(t, to - from);
    /* Opened for writing, which takes as long as for reading; roads, the record of who writes, which is read, written
     * and, after a wait, read again, the content, and the same object after it was filled; in the end the record is
     * taken away. */
    ns += 8 * attach + (LOOK_ROUNDS + 20) * read;
    if (!is_there(t)) /* a hole is read as fast as answers come */
        ns += attach + NEW_ROUNDS * read + start + (to - from) / DENSE_BYTES * read;
    else if (to - from <= LOOK_MOST)
        ns += start + transfer_ns(t, to - from, DENSE_BYTES);
    return ns + (fills(plan) ? start + transfer_ns(t, to - from, STREAM_BYTES) : 0);
}

/* Samples, holes, idle latency, pings: each on a context of its own. */
static uint64_t look_ns(const struct target *t) {
    return 3 * (uint64_t)t->attach_ns + (is_null(t) ? 0 : LOOK_ROUNDS * plan_read_ns(t)) + reads_ns(t, 15, 3);
}

uint64_t plan_prepare_ns(const struct plan *plan) {
    uint64_t ns = 0;
    for (unsigned i = 0; i < plan->n_targets; i++)
        ns += look_ns(plan->targets[i]) + (plan_writes(plan) ? write_ns(plan, plan->targets[i]) : 0);
    return ns;
}

static void set_rounds(struct plan *plan) {
    plan->rounds = 1;
    for (size_t i = 0; i < plan->patterns.n; i++) {
        unsigned r = plan_pattern_rounds(&plan->patterns.pattern[i], plan->n_targets);
        if (r > plan->rounds) plan->rounds = r;
    }
}

int plan_fit_time(struct plan *plan, uint64_t ns, struct err *err) {
    uint64_t round = one_round_ns(plan), prepare = plan_prepare_ns(plan);
    if (round == 0) return err_set(err, STATUS_USAGE, "--time: the plan has nothing to run");
    uint64_t rounds = ns > prepare ? (ns - prepare) / round : 0;
    if (rounds < 1) {
        char want[64], have[64];
        return err_set(err, STATUS_USAGE,
                       "--time %s: one round of all patterns takes %s, with its preparation: give more time, leave out "
                       "patterns (--only) or targets, or make them shorter (--runtime, --ramp_time, --size)",
                       units_duration_human(have, sizeof have, ns), units_duration_human(want, sizeof want, round + prepare));
    }
    if (rounds > 10000) rounds = 10000;
    for (size_t i = 0; i < plan->patterns.n; i++) plan->patterns.pattern[i].rounds = rounds;
    set_rounds(plan);
    return 0;
}

/* ---- resolving ---- */

static bool target_exists(const struct target *t) {
    for (unsigned m = 0; m < t->n_members; m++)
        if (!t->member[m].facts.exists) return false;
    return true;
}

/* Before the members are joined: with several of them, each gives as much as the smallest. */
static uint64_t target_size(const struct target *t) {
    uint64_t smallest = UINT64_MAX;
    for (unsigned m = 0; m < t->n_members; m++)
        if (t->member[m].facts.size < smallest) smallest = t->member[m].facts.size;
    return t->handle ? t->facts.size : smallest * t->n_members;
}

/* A null target is as large as one likes: beside others it has no say in how large a new file becomes. */
static bool knows_size(const struct plan *plan) {
    bool others = false;
    for (unsigned i = 0; i < plan->n_targets; i++) {
        if (is_null(plan->targets[i])) continue;
        others = true;
        if (target_exists(plan->targets[i])) return true;
    }
    return !others;
}

static int resolve_size(const struct plan *plan, struct pattern *p, struct err *err) {
    if (p->size) return 0;
    uint64_t smallest = UINT64_MAX, align = pattern_min_align(p);
    for (unsigned i = 0; i < plan->n_targets; i++)
        if (target_exists(plan->targets[i]) && target_size(plan->targets[i]) < smallest)
            smallest = target_size(plan->targets[i]);
    if (smallest == UINT64_MAX || !knows_size(plan))
        return err_set(
            err, STATUS_USAGE,
            "pattern '%s' has no size, and no target exists yet to take it from: give --size, such as --size 4g",
            p->name);
    uint64_t used = p->offset + (p->cache == CACHE_COLD ? p->evict : 0);
    if (smallest <= used)
        return err_set(err, STATUS_USAGE,
                       "pattern '%s': offset and evict take up the whole of the smallest target (%llu bytes)", p->name,
                       (unsigned long long)smallest);
    p->size = smallest - used;
    if (align > 4096) align = 4096; /* a set of whole pages; sizes of I/Os are the stream's to fit */
    p->size -= p->size % (align ? align : 1);
    return 0;
}

/* The record of who writes tells an object from another that bears its names, as long as the load does not write it, too.
 * So the load begins behind it, by whole steps, on all targets alike; in a range that has too few of them, it does not. */
static void keep_record(const struct plan *plan, struct pattern *p) {
    uint64_t from, to, step = pattern_step(p);
    struct err err;

    p->kept = 0;
    plan_written_range(plan, &from, &to);
    uint64_t end = (from + MARK_STEP - 1) / MARK_STEP * MARK_STEP + MARK_STEP;
    if (!pattern_writes(p) || p->offset >= end) return;
    uint64_t kept = (end - p->offset + step - 1) / step * step;
    if (kept > p->size / KEPT_SHARE || p->size - kept < plan_least_size(p)) return;
    p->kept = kept;
    if (plan_check_stream(p, &err) != 0) p->kept = 0;
}

int plan_resolve(struct plan *plan, struct err *err) {
    if (plan->patterns.n == 0) return err_set(err, STATUS_USAGE, "no pattern is left to run");
    for (size_t i = 0; i < plan->patterns.n; i++)
        if (resolve_size(plan, &plan->patterns.pattern[i], err) != 0) return -1;
    for (size_t i = 0; i < plan->patterns.n; i++) {
        struct pattern *p = &plan->patterns.pattern[i];
        keep_record(plan, p);
        if (plan_check_stream(p, err) != 0) return -1;
        for (unsigned t = 0; t < plan->n_targets; t++)
            if (plan_check_target(plan, p, plan->targets[t], err) != 0) return -1;
    }
    set_rounds(plan);
    return 0;
}

uint32_t plan_fill_tag(const struct plan *plan, unsigned t) {
    return (uint32_t)rng_mix(rng_mix(plan->seed ^ (uint64_t)plan->nonce << 32) + t);
}

void plan_free(struct plan *plan) {
    set_free(&plan->patterns);
    free(plan->targets);
    plan->targets = NULL;
    plan->n_targets = 0;
}
