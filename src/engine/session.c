/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "engine/session.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/rng.h"
#include "base/text.h"
#include "engine/prepare.h"
#include "engine/run.h"
#include "engine/selfcost.h"
#include "engine/session_state.h"
#include "engine/settle.h"

static void note(struct session *s, enum status status, const struct err *err) {
    if (s->status == STATUS_OK) s->first = *err;
    s->status = status_worse(s->status, status);
}

static void say(const struct session *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(const struct session *s, const char *fmt, ...) {
    char line[600];
    va_list ap;
    if (!s->hooks->say) return;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    s->hooks->say(s->hooks->arg, line);
}

/* ---- preparation ---- */

/* A reason stands beside the label, in tables and lists. */
static const char *without_label(const struct target *t, const char *text) {
    size_t n = strlen(t->label);
    return !strncmp(text, t->label, n) && !strncmp(text + n, ": ", 2) ? text + n + 2 : text;
}

/* AUTO fills where the plan may write, because only there the user has agreed to it; elsewhere it looks. */
static enum pattern_prepare wanted(const struct session *s) {
    bool writes = plan_writes(s->plan), check = false;
    for (size_t i = 0; i < s->plan->patterns.n; i++) {
        int w = s->plan->patterns.pattern[i].prepare;
        if (w == PREPARE_FILL || (w == PREPARE_AUTO && writes)) return PREPARE_FILL;
        if (w == PREPARE_AUTO || w == PREPARE_CHECK) check = true;
    }
    return check ? PREPARE_CHECK : PREPARE_NONE;
}

static struct place *place_of(struct session *s, const struct target *t) {
    unsigned i = 0;
    while (s->plan->targets[i] != t) i++;
    return &s->place[i];
}

/* What could not be filled is not what the plan asks for; everything else may be there again later. */
static bool may_come_back(const struct session *s, const struct place *place) {
    return place->prepared || wanted(s) != PREPARE_FILL;
}

static void lose(struct session *s, struct target *t, const struct err *err) {
    const char *reason = without_label(t, err->msg);
    struct place *place = place_of(s, t);
    t->lost = true;
    place->lost_in = s->progress.round;
    text_safe(t->lost_reason, sizeof t->lost_reason, reason, strlen(reason));
    if (may_come_back(s, place) && s->progress.round < s->plan->rounds)
        say(s, "%s: %s: %s; it is tried once more in each later round", t->label,
            err->status == STATUS_IO ? "cannot be measured" : "lost", t->lost_reason);
    note(s, err->status == STATUS_IO ? STATUS_IO : STATUS_TARGET, err);
}

/* What this client lacks is no loss of the target's: its runs have errors. */
static void give_up(struct session *s, struct target *t, struct err *err) {
    if (limits_blame(err)) err->status = STATUS_IO;
    place_of(s, t)->unprepared = err->status == STATUS_IO;
    lose(s, t, err);
}

static bool one_kind_of_data(const struct session *s) {
    const struct pattern *p = s->plan->patterns.pattern;
    for (size_t i = 1; i < s->plan->patterns.n; i++)
        if (p[i].data.zeros != p->data.zeros || p[i].data.compress != p->data.compress ||
            p[i].data.dedupe != p->data.dedupe)
            return false;
    return true;
}

/* The fill is made once, for all patterns: with the data that they ask for, if it is one kind. */
static const struct data_choice *fill_data(const struct session *s) {
    static const struct data_choice random;
    return one_kind_of_data(s) ? &s->plan->patterns.pattern->data : &random;
}

static struct prepare prepare_for(struct session *s, unsigned ti, uint64_t from, uint64_t to) {
    return (struct prepare){.target = s->plan->targets[ti],
                            .from = from,
                            .to = to,
                            .seed = s->plan->seed,
                            .run_tag = plan_fill_tag(s->plan, ti),
                            .data = *fill_data(s),
                            .note = s->plan->note ? s->plan->note[ti] : NULL,
                            .interrupted = s->interrupted,
                            .progress = session_on_bytes,
                            .arg = s};
}

static bool same_object_before(const struct session *s, unsigned t) {
    for (unsigned i = 0; i < t; i++)
        if (s->plan->targets[i]->filled && sameness_is_one(s->plan->same, i, t)) return true;
    return false;
}

/* Asked once for each working set, the whole first: what has no hole, or nothing but a hole, needs no second question. */
static void ask_for_holes(struct session *s, unsigned i) {
    struct target *t = s->plan->targets[i];
    const struct pattern_set *set = &s->plan->patterns;
    double *holes = s->place[i].holes, all;
    bool told = prepare_holes(t, s->from, s->to, &all);
    for (size_t k = 0; k < set->n; k++) {
        const struct pattern *p = &set->pattern[k];
        size_t same = 0;
        bool whole = p->offset == s->from && p->offset + p->size == s->to;
        while (same < k && (set->pattern[same].offset != p->offset || set->pattern[same].size != p->size)) same++;
        if (whole || all == 0 || all == 1) holes[k] = all;
        else if (same < k) holes[k] = holes[same];
        else if (told && !*s->interrupted) told = prepare_holes(t, p->offset, p->offset + p->size, &holes[k]);
    }
    if (!told && !*s->interrupted)
        say(s, "%s: where it has no storage behind its blocks was not told within %d s", t->label,
            (int)(PREPARE_HOLES_TIME / NS_PER_SEC));
}

static void look_for_holes(struct session *s, unsigned i, unsigned sampled, unsigned zeros) {
    struct target *t = s->plan->targets[i];
    session_enter(s, PHASE_HOLES, t);
    /* Unmapped blocks read as zeros, but so do zeros that were written: where the target cannot tell, nobody knows. */
    ask_for_holes(s, i);
    s->place[i].sampled = sampled;
    s->place[i].zeros = zeros;
    if (zeros && isnan(s->place[i].holes[0]))
        say(s, "%s: %u of %u sampled blocks hold only zeros: whether they have storage behind them is not known by that", t->label,
            zeros, sampled);
}

/* A read that fails while we wait is no reason to give the target up: the run itself will meet and count such errors.
 */
static int bad_read(const struct session *s, const struct target *t, int result, const struct err *err) {
    if (result < 0 && *s->interrupted) return 1;
    if (result >= 0 || err->status != STATUS_IO) return result;
    say(s, "%s: a read at depth 1 failed: %s", t->label, without_label(t, err->msg));
    return 0;
}

static void idle_pings(struct session *s, unsigned i) {
    struct ping_idle *idle = &s->place[i].idle_ping;
    session_enter(s, PHASE_PINGS, s->plan->targets[i]);
    ping_idle(s->plan->targets[i], PING_IDLE_COUNT, idle);
    if (idle->why[0]) say(s, "%s: no protocol pings: %s", s->plan->targets[i]->label, idle->why);
}

/* May it be written? What stands in the way of a write makes a target useless for the plan. */
static int before_write(struct session *s, unsigned i, struct err *err) {
    bool first = !s->place[i].written;
    s->place[i].written = true;
    session_enter(s, PHASE_LOOK, s->plan->targets[i]);
    int result = s->hooks->before_write ? s->hooks->before_write(s->hooks->arg, i, first, err) : 0;
    bool stopped = result < 0 && *s->interrupted; /* it is not written either way */
    s->place[i].refused = result < 0 && !stopped;
    return stopped ? 1 : result;
}

static int fill(struct session *s, unsigned i, struct err *err) {
    struct target *t = s->plan->targets[i];
    int result = before_write(s, i, err);
    if (result < 0) t->unfilled = false; /* whatever is there now, it is not what was made for this plan */
    if (result != 0) return result;
    if (!same_object_before(s, i)) {
        session_enter(s, PHASE_FILL, t);
        if (!one_kind_of_data(s))
            say(s, "%s: the patterns ask for different data, and the fill is made once: it is random", t->label);
        struct prepare p = prepare_for(s, i, s->from, s->to);
        result = prepare_fill(&p, err);
    }
    if (t->put_offs)
        say(s, "%s: while it was filled it answered %llu times \"not now\"; %.3f s were spent waiting for it", t->label,
            (unsigned long long)t->put_offs, (double)t->put_off_ns / NS_PER_SEC);
    t->unfilled = result != 0;
    t->filled = result == 0;
    if (result != 0 && s->hooks->not_filled) {
        backend_heed(NULL); /* what was created is removed, also when the user wants the end */
        s->hooks->not_filled(s->hooks->arg, i);
        backend_heed(s->interrupted);
    }
    return result;
}

static int prepare_target(struct session *s, unsigned i) {
    struct target *t = s->plan->targets[i];
    struct err err = {0};
    unsigned sampled = 0, zeros = 0;
    int64_t from = clock_now(s->clock);
    int result = 0;
    enum pattern_prepare want = wanted(s);
    if (t->facts.kind == OBJECT_NULL) {
        /* keeps no data: nothing to write, nothing to find */
    } else if (want == PREPARE_FILL) {
        result = fill(s, i, &err);
    } else if (want == PREPARE_CHECK) {
        struct prepare p = prepare_for(s, i, s->from, s->to);
        session_enter(s, PHASE_CHECK, t);
        result = prepare_check(&p, &sampled, &zeros, &err);
    }
    if (result == 0 && !t->lost) {
        look_for_holes(s, i, sampled, zeros);
        session_enter(s, PHASE_IDLE_READS, t);
        result = bad_read(s, t, settle_idle(t, s->from, s->to, s->plan->seed, &s->place[i].idle_ns, &err), &err);
    }
    if (result == 0 && !t->lost && !*s->interrupted) idle_pings(s, i);
    s->place[i].prepare_ns = clock_now(s->clock) - from;
    if (result < 0 && *s->interrupted) result = 1; /* what was given up for that is no fault of the target's */
    s->place[i].prepared = result == 0 && !t->lost;
    if (result < 0) give_up(s, t, &err);
    return result > 0;
}

static bool is_borrowed(const struct target *t) {
    for (unsigned m = 0; m < t->n_members; m++)
        if (t->member[m].borrowed) return true;
    return false;
}

/* What was consented to under another label comes after that one, and is held against it before it is written. */
static int prepare_all(struct session *s) {
    for (unsigned pass = 0; pass < 2; pass++)
        for (unsigned i = 0; i < s->plan->n_targets && !*s->interrupted; i++) {
            struct target *t = s->plan->targets[i];
            if (!t->lost && is_borrowed(t) == (pass == 1) && prepare_target(s, i)) break;
        }
    return *s->interrupted ? -1 : 0;
}

/* ---- one run ---- */

static int flush_dirty(struct session *s, struct record *r, struct err *err) {
    for (unsigned i = 0; i < s->plan->n_targets; i++) {
        struct target *t = s->plan->targets[i];
        int64_t ns;
        if (!s->place[i].dirty || t->lost) continue;
        session_enter(s, PHASE_FLUSH, t);
        s->place[i].dirty = false;
        if (settle_flush(t, &ns, err) != 0) {
            if (*s->interrupted) return 1;
            give_up(s, t, err); /* of the earlier run's target; the next one may still be well */
            continue;
        }
        r->flush_ns += ns;
    }
    return 0;
}

static int apply_cache(struct session *s, unsigned ti, const struct pattern *p, struct record *r, struct err *err) {
    struct target *t = s->plan->targets[ti];
    struct prepare read = prepare_for(s, ti, p->offset, p->offset + p->size);
    r->cache = p->cache;
    if (p->cache == CACHE_ASIS && s->plan->warm_instead_of_asis) r->cache = CACHE_WARM;
    if (r->cache == CACHE_ASIS) return 0;
    if (r->cache == CACHE_COLD) {
        read.from = p->offset + p->size;
        read.to = read.from + p->evict;
    }
    session_enter(s, PHASE_CACHE, t);
    return prepare_read(&read, err);
}

static int approach(struct session *s, unsigned ti, const struct pattern *p, struct record *r, struct err *err) {
    struct target *t = s->plan->targets[ti];
    struct settle settled;
    int result = flush_dirty(s, r, err);
    if (result == 0 && (pattern_writes(p) || s->place[ti].refused)) result = before_write(s, ti, err);
    if (result) return result;
    t->unfilled = false; /* it is used as it is */
    result = apply_cache(s, ti, p, r, err);
    if (result) return result;
    session_enter(s, PHASE_SETTLE, t);
    result = settle_wait(t, p->offset, p->offset + p->size, s->plan->seed + s->progress.run, s->place[ti].idle_ns,
                         s->interrupted, &settled, err);
    result = bad_read(s, t, result, err);
    r->settle_ns = settled.waited_ns;
    r->settle_read_ns = settled.read_ns;
    r->idle_read_ns = s->place[ti].idle_ns > 0 ? s->place[ti].idle_ns : 0;
    r->settled = settled.settled;
    return result;
}

static const char *first_error(const struct record *r, char *buf, size_t len) {
    if (r->error[0]) return r->error;
    if (r->errors.n == 0) return "I/Os failed";
    const char *text = r->errors.kind[0].text;
    snprintf(buf, len, "%s%s%s", r->errors.kind[0].name, text[0] ? ": " : "", text);
    return buf;
}

static void measure(struct session *s, unsigned ti, unsigned pi, unsigned round, struct record *r) {
    struct target *t = s->plan->targets[ti];
    const struct pattern *p = &s->plan->patterns.pattern[pi];
    char why[400];
    struct err err = {0};
    struct run run = {.pattern = p,
                      .target = t,
                      .round = round,
                      .clock = s->clock,
                      .interrupted = s->interrupted,
                      .idle_ping = &s->place[ti].idle_ping,
                      .tick = session_on_tick,
                      .arg = s};
    run.seed = s->plan->seed;
    run.run_tag = (uint32_t)rng_mix(run.seed ^ ((uint64_t)round << 32) ^ ((uint64_t)pi << 16) ^ ti);
    run.note = s->plan->note ? s->plan->note[ti] : NULL;
    int result = approach(s, ti, p, r, &err);
    if (result == 0 && !*s->interrupted) {
        s->last_ios = s->last_bytes = s->last_lat = 0;
        s->last_tick = clock_now(s->clock);
        if (pattern_writes(p)) s->place[ti].dirty = true;
        session_enter(s, PHASE_RAMP, t);
        s->progress.phase_ns = (int64_t)p->ramp_time;
        result = run_execute(&run, r, &err);
        if (result < 0 && *s->interrupted) r->status = RUN_INTERRUPTED;
        if (r->tail.abandoned) t->silent = true;
    } else if (result >= 0 || *s->interrupted) {
        r->status = RUN_INTERRUPTED;
    }
    if (result < 0 && !*s->interrupted) {
        r->status = limits_blame(&err) ? RUN_ERRORS : RUN_LOST;
        const char *reason = without_label(t, err.msg);
        text_safe(r->error, sizeof r->error, reason, strlen(reason));
    }
    if (r->status == RUN_LOST) {
        err.status = STATUS_TARGET;
        snprintf(err.msg, sizeof err.msg, "%s: %s", t->label, r->error);
        lose(s, t, &err);
    } else if (r->status == RUN_ERRORS) {
        err.status = STATUS_IO;
        snprintf(err.msg, sizeof err.msg, "%s, '%s': %s", t->label, p->name, first_error(r, why, sizeof why));
        note(s, STATUS_IO, &err);
    }
}

/* Once in each round. What is on it is examined as before its first write. */
static void try_again(struct session *s, unsigned ti, unsigned round) {
    struct target *t = s->plan->targets[ti];
    struct place *place = &s->place[ti];
    if (!t->lost || place->lost_in >= round || !may_come_back(s, place)) return;
    say(s, "%s: was lost, and is tried again in round %u", t->label, round);
    t->lost = false;
    place->lost_in = round;
    place->written = false;
    place->unprepared = false;
    if (!t->handle) {
        struct err err;
        if (target_assemble(t, &err) != 0) lose(s, t, &err);
    }
    if (!t->lost && !place->prepared) (void)prepare_target(s, ti); /* interrupted: the run sees it too */
}

/* What was done to the target before, and went on before this run's own load. */
static void take_preparation(struct target *t, const struct data_choice *data, struct record *r) {
    r->prepare_retries = t->put_offs;
    r->prepare_retry_ns = t->put_off_ns;
    t->put_offs = t->put_off_ns = 0;
    r->filled = (struct record_data){.known = t->filled,
                                     .zeros = data->zeros,
                                     .compress = (unsigned)data->compress,
                                     .dedupe = (unsigned)data->dedupe};
}

static int one_run(struct session *s, unsigned ti, unsigned pi, unsigned round, unsigned order) {
    struct target *t = s->plan->targets[ti];
    const struct pattern *p = &s->plan->patterns.pattern[pi];
    struct record *r = record_new(p->name, t->label);
    if (!r) {
        struct err err;
        err_set(&err, STATUS_TARGET, "no memory for a result");
        note(s, STATUS_TARGET, &err);
        return -1;
    }
    s->progress.pattern = p->name;
    s->progress.round = round;
    s->progress.run++;
    s->progress.errors = 0;
    try_again(s, ti, round);
    r->round = round;
    r->order = order;
    r->started_ns = clock_now(s->clock) - s->began;
    r->holes = s->place[ti].holes[pi];
    r->blocks_sampled = s->place[ti].sampled;
    r->zeros_sampled = s->place[ti].zeros;
    r->own_ns_per_io = s->own_cost[pi];
    r->cache = p->cache;
    r->depth_requested = p->iodepth * p->numjobs;
    if (t->lost) {
        r->status = s->place[ti].unprepared ? RUN_ERRORS : RUN_LOST;
        snprintf(r->error, sizeof r->error, "%s", t->lost_reason);
    } else {
        r->prepare_ns = s->place[ti].prepare_ns;
        s->place[ti].prepare_ns = 0;
        measure(s, ti, pi, round, r);
    }
    take_preparation(t, fill_data(s), r);
    return s->hooks->run_done(s->hooks->arg, r);
}

static void rounds(struct session *s) {
    unsigned n = s->plan->n_targets, *order = calloc(n, sizeof *order);
    if (!order) return;
    for (unsigned round = 1; round <= s->plan->rounds; round++) {
        plan_order(round, n, order);
        for (unsigned pi = 0; pi < s->plan->patterns.n; pi++) {
            if (round > plan_pattern_rounds(&s->plan->patterns.pattern[pi], n)) continue;
            for (unsigned i = 0; i < n; i++)
                if (*s->interrupted || one_run(s, order[i], pi, round, i + 1) != 0) goto out;
        }
    }
out:
    free(order);
}

/* ---- the whole ---- */

/* Only real time costs anything. */
static int measure_own_cost(struct session *s) {
    const struct plan *plan = s->plan;
    bool real = plan->nothing && !clock_is_virtual(s->clock);
    s->own_cost = calloc(plan->patterns.n + 1, sizeof *s->own_cost);
    if (!s->own_cost) return -1;
    for (size_t i = 0; i < plan->patterns.n; i++)
        s->own_cost[i] = real ? selfcost_measure(plan->nothing, &plan->patterns.pattern[i]) : NAN;
    return 0;
}

static int begin(struct session *s) {
    struct plan *plan = s->plan;
    struct err err;
    s->place = calloc(plan->n_targets, sizeof *s->place);
    for (unsigned i = 0; s->place && i < plan->n_targets; i++) {
        s->place[i].holes = calloc(plan->patterns.n, sizeof(double));
        for (size_t k = 0; s->place[i].holes && k < plan->patterns.n; k++) s->place[i].holes[k] = NAN;
        if (!s->place[i].holes) goto memory;
    }
    if (!s->place || measure_own_cost(s) != 0) goto memory;
    s->from = UINT64_MAX;
    for (size_t k = 0; k < plan->patterns.n; k++) {
        const struct pattern *p = &plan->patterns.pattern[k];
        uint64_t end = p->offset + p->size + (p->cache == CACHE_COLD ? p->evict : 0);
        if (p->offset < s->from) s->from = p->offset;
        if (end > s->to) s->to = end;
    }
    for (unsigned i = 0; i < plan->n_targets; i++) {
        struct target *t = plan->targets[i];
        if (t->lost || t->handle) continue;
        if (target_assemble(t, &err) != 0) lose(s, t, &err);
    }
    s->progress.rounds = plan->rounds;
    s->progress.runs = plan_runs(plan);
    return 0;
memory:
    err_set(&err, STATUS_TARGET, "no memory for the session");
    note(s, STATUS_TARGET, &err);
    return -1;
}

enum status session_run(struct plan *plan, struct clock *clock, const struct session_hooks *hooks,
                        volatile sig_atomic_t *interrupted, struct err *err) {
    struct session s = {
        .plan = plan, .clock = clock, .hooks = hooks, .interrupted = interrupted, .began = clock_now(clock)};
    s.phase_began = s.last_tick = s.began;
    backend_heed(interrupted);
    if (begin(&s) == 0 && prepare_all(&s) == 0) rounds(&s);
    if (*interrupted) {
        struct err stop;
        err_set(&stop, STATUS_INTERRUPTED, "interrupted: what was measured is kept");
        s.status = STATUS_INTERRUPTED;
        s.first = stop;
    }
    backend_heed(NULL);
    for (unsigned i = 0; s.place && i < plan->n_targets; i++) free(s.place[i].holes);
    free(s.place);
    free(s.own_cost);
    if (s.status != STATUS_OK) *err = s.first;
    return s.status;
}
