/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a session asks and tells around its writes, over the fake backend in virtual time. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <math.h>
#include <cmocka.h>

#include "engine/session.h"
#include "fake_backend.h"

#define SIZE (1u << 20)

struct show {
    struct clock_virtual clock;
    struct fake fake[2];
    struct target target[2], *list[2];
    struct plan plan;
    struct sameness same;
    volatile sig_atomic_t interrupted;
    struct record *record[16];
    unsigned n;
    char log[400]; /* "a1 a b1": before_write of a, the first time, and again; of b */
    char said[1000];
    int refuse;    /* this target's first write; -1: none */
    int learn;     /* at this target's first write: the two are one */
    struct err err;
};

static int keep(void *arg, struct record *r) {
    struct show *s = arg;
    s->record[s->n++] = r;
    return 0;
}

static void log_word(struct show *s, const char *what, unsigned target, bool first) {
    size_t n = strlen(s->log);
    snprintf(s->log + n, sizeof(s->log) - n, "%s%s%s%s", n ? " " : "", what, s->target[target].label, first ? "1" : "");
}

static void hear(void *arg, const char *line) {
    struct show *s = arg;
    size_t n = strlen(s->said);
    snprintf(s->said + n, sizeof(s->said) - n, "%s\n", line);
}

static int before_write(void *arg, unsigned target, bool first, struct err *err) {
    struct show *s = arg;
    log_word(s, "", target, first);
    if (first && (int)target == s->learn) sameness_note(&s->same, 0, 1, SAMENESS_ONE, 1, "seen");
    if ((int)target != s->refuse) return 0;
    return err_set(err, STATUS_TARGET, "%s: something new lies there", s->target[target].label);
}

static void not_filled(void *arg, unsigned target) {
    log_word(arg, "unfilled:", target, false);
}

static int setup(void **state) {
    struct show *s = calloc(1, sizeof(*s));
    clock_virtual_init(&s->clock, 5 * NS_PER_SEC);
    assert_int_equal(sameness_init(&s->same, 2), 0);
    s->refuse = s->learn = -1;
    for (unsigned i = 0; i < 2; i++) {
        struct target *t = s->list[i] = &s->target[i];
        struct fake **conf = malloc(sizeof(*conf));
        fake_init(&s->fake[i], SIZE);
        *conf = &s->fake[i];
        t->label[0] = i ? 'b' : 'a';
        t->clock = &s->clock.clock;
        t->n_members = 1;
        t->member[0] = (struct member){.url = strdup("x"), .backend = &fake_backend, .conf = conf};
        assert_int_equal(target_member_reopen(t, 0, OPEN_WRITE, 0, &s->err), 0);
        assert_int_equal(target_assemble(t, &s->err), 0);
    }
    s->plan = (struct plan){.targets = s->list, .n_targets = 2, .seed = 42, .same = &s->same};
    *state = s;
    return 0;
}

static int teardown(void **state) {
    struct show *s = *state;
    for (unsigned i = 0; i < s->n; i++) record_free(s->record[i]);
    set_free(&s->plan.patterns);
    sameness_free(&s->same);
    for (unsigned i = 0; i < 2; i++) target_free(&s->target[i]);
    for (unsigned i = 0; i < 2; i++) fake_free(&s->fake[i]);
    free(s);
    return 0;
}

static enum status go(struct show *s, const char *rw, const char *prepare) {
    const char *keys[][2] = {{"rw", rw}, {"prepare", prepare}, {"size", "1m"}, {"io_size", "64k"}, {"ramp_time", "0"},
                             {"rounds", "2"}, {"iodepth", "2"}};
    struct session_hooks hooks = {.arg = s, .run_done = keep, .before_write = before_write, .not_filled = not_filled,
                                  .say = hear};
    struct pattern_set *set = &s->plan.patterns;
    char note[200];
    set->pattern = calloc(1, sizeof(*set->pattern));
    set->n = 1;
    assert_int_equal(pattern_init(&set->pattern[0], "p", &s->err), 0);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (pattern_set(&set->pattern[0], keys[i][0], keys[i][1], note, sizeof(note), &s->err) != 0)
            fail_msg("%s", s->err.msg);
    if (pattern_finish(&set->pattern[0], &s->err) != 0) fail_msg("%s", s->err.msg);
    if (plan_resolve(&s->plan, &s->err) != 0) fail_msg("%s", s->err.msg);
    return session_run(&s->plan, &s->clock.clock, &hooks, &s->interrupted, &s->err);
}

static void asked_before_each_write(void **state) {
    struct show *s = *state;
    assert_int_equal(go(s, "randwrite", "fill"), STATUS_OK);
    assert_string_equal(s->log, "a1 b1 a b b a");
    assert_true(s->target[0].filled && s->target[1].filled);
    assert_int_not_equal(plan_fill_tag(&s->plan, 0), plan_fill_tag(&s->plan, 1));
}

static void asked_before_the_first_run(void **state) {
    struct show *s = *state;
    assert_int_equal(go(s, "randwrite", "none"), STATUS_OK);
    assert_string_equal(s->log, "a1 b1 b a");
}

static void never_asked_for_reading(void **state) {
    struct show *s = *state;
    assert_int_equal(go(s, "randread", "none"), STATUS_OK);
    assert_string_equal(s->log, "");
}

/* Of the reads that measure the idle latency those that work count; without one nothing is waited for. */
static void failed_idle_reads(void **state) {
    struct show *s = *state;
    s->fake[0].fail_from = 3;
    s->fake[0].fail_n = 1;
    s->fake[1].fail_n = 15;
    assert_int_equal(go(s, "randread", "none"), STATUS_OK);
    assert_int_equal(s->n, 4);
    for (unsigned i = 0; i < s->n; i++) {
        const struct record *r = s->record[i];
        bool known = r->target[0] == 'a';
        assert_int_equal(r->status, RUN_OK);
        assert_int_equal(r->settled, known);
        assert_int_equal(r->idle_read_ns, known ? 1000 : 0);
        assert_in_range(r->settle_ns, 0, known ? 100000 : 0);
    }
    assert_non_null(strstr(s->said, "b: a read at depth 1 failed: idle latency: "));
    assert_null(strstr(s->said, "a: "));
}

static void refused_is_lost(void **state) {
    struct show *s = *state;
    s->refuse = 1;
    s->target[1].unfilled = true;
    assert_int_equal(go(s, "randwrite", "fill"), STATUS_TARGET);
    assert_string_equal(s->log, "a1 b1 a a");
    assert_int_equal(s->fake[1].writes, 0);
    assert_int_equal(s->n, 4);
    for (unsigned i = 0; i < s->n; i++)
        assert_int_equal(s->record[i]->status, s->record[i]->target[0] == 'b' ? RUN_LOST : RUN_OK);
    assert_string_equal(s->target[1].lost_reason, "something new lies there");
    assert_false(s->target[1].unfilled); /* what is there is not what was made for this plan */
}

static void one_object_is_filled_once(void **state) {
    struct show *s = *state;
    s->learn = 1;
    assert_int_equal(go(s, "randread", "fill"), STATUS_OK);
    assert_string_equal(s->log, "a1 b1");
    assert_true(s->fake[0].writes > 0);
    assert_int_equal(s->fake[1].writes, 0);
}

static void borrowed_consent_comes_last(void **state) {
    struct show *s = *state;
    s->target[0].member[0].borrowed = true;
    assert_int_equal(go(s, "randread", "fill"), STATUS_OK);
    assert_string_equal(s->log, "b1 a1");
}

static void a_fill_that_fails_is_told(void **state) {
    struct show *s = *state;
    s->fake[0].error_at = SIZE / 2;
    s->target[0].unfilled = true;
    assert_int_equal(go(s, "randread", "fill"), STATUS_IO);
    assert_string_equal(s->log, "a1 unfilled:a b1");
    assert_true(s->target[0].unfilled);
    assert_false(s->target[1].unfilled);
}

/* Zeros in samples say nothing about storage. */
static void zeros_are_no_holes(void **state) {
    struct show *s = *state;
    assert_int_equal(go(s, "randread", "check"), STATUS_OK);
    assert_true(isnan(s->record[0]->holes));
    assert_int_equal(s->record[0]->blocks_sampled, 256);
    assert_int_equal(s->record[0]->zeros_sampled, 256);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(asked_before_each_write),    T(asked_before_the_first_run),   T(never_asked_for_reading),
        T(failed_idle_reads),          T(refused_is_lost),            T(one_object_is_filled_once),    T(borrowed_consent_comes_last),
        T(a_fill_that_fails_is_told),  T(zeros_are_no_holes)};
    return cmocka_run_group_tests_name("session_hooks", tests, NULL, NULL);
}
