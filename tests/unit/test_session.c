/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whole sessions in virtual time over null targets. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <math.h>
#include <cmocka.h>

#include "engine/session.h"
#include "nulltarget.h"

struct show {
    struct clock_virtual clock;
    struct target target[3];
    struct target *list[3];
    struct plan plan;
    volatile sig_atomic_t interrupted;
    struct record *record[64];
    unsigned n, interrupt_after;
    struct err err;
    char said[2000];
};

static int keep(void *arg, struct record *r) {
    struct show *s = arg;
    s->record[s->n++] = r;
    if (s->n == s->interrupt_after) s->interrupted = 1;
    return 0;
}

static void hear(void *arg, const char *line) {
    struct show *s = arg;
    size_t n = strlen(s->said);
    snprintf(s->said + n, sizeof s->said - n, "%s\n", line);
}

static struct show *show_new(unsigned n, const char *const *urls) {
    static const char *const labels[] = {"a", "b", "c"};
    struct show *s = calloc(1, sizeof *s);
    clock_virtual_init(&s->clock, 5 * NS_PER_SEC);
    for (unsigned i = 0; i < n; i++) {
        nulltarget_open(&s->target[i], labels[i], urls[i], &s->clock.clock);
        s->list[i] = &s->target[i];
    }
    s->plan.targets = s->list;
    s->plan.n_targets = n;
    s->plan.seed = 42;
    return s;
}

static void add(struct show *s, const char *name, const char *const *keys) {
    struct pattern_set *set = &s->plan.patterns;
    char note[200];
    set->pattern = realloc(set->pattern, (set->n + 1) * sizeof *set->pattern);
    struct pattern *p = &set->pattern[set->n++];
    memset(p, 0, sizeof *p);
    assert_int_equal(pattern_init(p, name, &s->err), 0);
    pattern_set(p, "size", "16m", note, sizeof note, &s->err);
    for (; keys[0]; keys += 2)
        if (pattern_set(p, keys[0], keys[1], note, sizeof note, &s->err) != 0) fail_msg("%s", s->err.msg);
    if (pattern_finish(p, &s->err) != 0) fail_msg("%s", s->err.msg);
}

static enum status go(struct show *s) {
    struct session_hooks hooks = {.arg = s, .run_done = keep, .say = hear};
    if (plan_resolve(&s->plan, &s->err) != 0) fail_msg("%s", s->err.msg);
    return session_run(&s->plan, &s->clock.clock, &hooks, &s->interrupted, &s->err);
}

static void show_free(struct show *s) {
    for (unsigned i = 0; i < s->n; i++) record_free(s->record[i]);
    set_free(&s->plan.patterns);
    for (unsigned i = 0; i < s->plan.n_targets; i++) {
        target_close(&s->target[i]);
        target_free(&s->target[i]);
    }
    free(s);
}

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

static void test_rounds_patterns_and_targets_in_order(void **state) {
    (void)state;
    struct show *s = show_new(3, LIST("null:?size=16m&lat=1ms", "null:?size=16m&lat=2ms", "null:?size=16m&lat=4ms"));
    add(s, "read", LIST("rw", "randread", "iodepth", "4", "ramp_time", "100ms", "runtime", "1s", "rounds", "balanced"));
    add(s, "write", LIST("rw", "randwrite", "iodepth", "4", "ramp_time", "100ms", "runtime", "1s", "rounds", "1"));
    assert_int_equal(go(s), STATUS_OK);
    assert_int_equal(s->n, 6 * 3 + 3);
    char order[64] = "";
    for (unsigned i = 0; i < s->n; i++) {
        char word[8];
        snprintf(word, sizeof word, "%s%s", s->record[i]->pattern[0] == 'r' ? "" : "w", s->record[i]->target);
        strcat(order, word);
    }
    assert_string_equal(order, "abc"
                               "wawbwc"
                               "bcacabcbaacbbac");
    assert_int_equal(s->record[6]->round, 2);
    assert_int_equal(s->record[6]->order, 1);
    show_free(s);
}

static void test_figures_of_each_target(void **state) {
    (void)state;
    struct show *s = show_new(2, LIST("null:?size=16m&lat=1ms", "null:?size=16m&lat=5ms"));
    add(s, "mix",
        LIST("rw", "randrw", "iodepth", "8", "ramp_time", "1s", "runtime", "10s", "rounds", "2", "numjobs", "2"));
    assert_int_equal(go(s), STATUS_OK);
    for (unsigned i = 0; i < s->n; i++) {
        const struct record *r = s->record[i];
        double lat_ms = r->target[0] == 'a' ? 1 : 5, iops = (double)(r->op[IO_READ].ios + r->op[IO_WRITE].ios) / 10;
        assert_true(fabs(iops - 16 * 1000 / lat_ms) < 20);
        assert_int_equal(r->depth_requested, 16);
        assert_true(fabs(r->depth_achieved - 16) < 0.01);
        assert_true(fabs(r->depth_little - 16) < 0.05);
        assert_int_equal(r->window_ns, 10 * NS_PER_SEC);
        assert_int_equal(r->workers, 2);
        assert_int_equal(r->n_points, 10);
        assert_int_equal(r->status, RUN_OK);
        assert_true(r->settled);
        assert_true(hist_mean(&r->op[IO_READ].clat) == lat_ms * NS_PER_MS);
    }
    show_free(s);
}

/* All targets of a round see one stream; no two rounds do. */
static void test_streams_are_equal_in_a_round_only(void **state) {
    (void)state;
    struct show *s = show_new(2, LIST("null:?size=16m&lat=1ms", "null:?size=16m&lat=5ms"));
    add(s, "mix", LIST("rw", "randrw", "iodepth", "4", "ramp_time", "0", "runtime", "2s", "rounds", "2"));
    assert_int_equal(go(s), STATUS_OK);
    assert_int_equal(s->n, 4);
    assert_int_equal(s->record[0]->mark[5], s->record[1]->mark[5]);
    assert_int_equal(s->record[2]->mark[5], s->record[3]->mark[5]);
    assert_int_not_equal(s->record[0]->mark[5], s->record[2]->mark[5]);
    show_free(s);
}

/* Each attach of this target takes 3000 I/Os: the long pattern loses it, the short one does not. */
static void test_a_lost_target_is_tried_once_in_each_later_round(void **state) {
    (void)state;
    struct show *s = show_new(2, LIST("null:?size=16m&lat=1ms&lost_after=3000", "null:?size=16m&lat=1ms"));
    add(s, "long", LIST("rw", "randread", "iodepth", "4", "ramp_time", "0", "runtime", "2s", "rounds", "1"));
    add(s, "short", LIST("rw", "randread", "iodepth", "4", "ramp_time", "0", "runtime", "500ms", "rounds", "3"));
    assert_int_equal(go(s), STATUS_TARGET);
    assert_int_equal(s->n, 8);
    char states[40] = "";
    for (unsigned i = 0; i < s->n; i++)
        if (s->record[i]->target[0] == 'a') strcat(strcat(states, run_status_name(s->record[i]->status)), " ");
    assert_string_equal(states, "lost lost ok ok "); /* the second one without a try */
    assert_true(strstr(s->said, "a: lost: ") && strstr(s->said, "it is tried once more in each later round"));
    assert_non_null(strstr(s->said, "a: was lost, and is tried again in round 2"));
    assert_null(strstr(s->said, "in round 3"));
    show_free(s);
}

static void test_a_target_that_stays_lost(void **state) {
    (void)state;
    struct show *s = show_new(1, LIST("null:?size=16m&lat=1ms&lost_after=500"));
    add(s, "x", LIST("rw", "randwrite", "ramp_time", "0", "runtime", "1s", "rounds", "3"));
    add(s, "y", LIST("rw", "randread", "ramp_time", "0", "runtime", "1s", "rounds", "3"));
    assert_int_equal(go(s), STATUS_TARGET);
    assert_int_equal(s->n, 6);
    for (unsigned i = 0; i < s->n; i++) {
        assert_int_equal(s->record[i]->status, RUN_LOST);
        assert_int_equal(s->record[i]->op[IO_WRITE].ios > 0, i % 2 == 0); /* the first of each round was tried */
    }
    show_free(s);
}

static void test_a_lost_target_ends_its_runs_and_no_others(void **state) {
    (void)state;
    struct show *s = show_new(2, LIST("null:?size=16m&lat=1ms&lost_after=3000", "null:?size=16m&lat=1ms"));
    add(s, "r", LIST("rw", "randread", "iodepth", "4", "ramp_time", "0", "runtime", "2s", "rounds", "3"));
    assert_int_equal(go(s), STATUS_TARGET);
    assert_int_equal(s->n, 6);
    for (unsigned i = 0; i < s->n; i++) {
        const struct record *r = s->record[i];
        assert_int_equal(r->status, r->target[0] == 'a' ? RUN_LOST : RUN_OK);
        if (r->target[0] == 'a') assert_true(r->error[0] != 0);
    }
    assert_true(s->record[0]->op[IO_READ].ios > 2000); /* what was measured before is kept */
    show_free(s);
}

static void test_errors_give_status_io(void **state) {
    (void)state;
    struct show *s = show_new(1, LIST("null:?size=16m&lat=1ms"));
    add(s, "r", LIST("rw", "randread", "iodepth", "4", "ramp_time", "0", "runtime", "2s", "rounds", "1"));
    /* The keys are there after preparation only, so that nothing but the run meets them. */
    struct err err;
    assert_int_equal(
        option_set(s->target[0].member[0].backend->options, s->target[0].member[0].conf, "errors", "1000", &err), 0);
    target_close(&s->target[0]);
    assert_int_equal(target_open_read(&s->target[0], &err), 0);
    enum status st = go(s);
    assert_true(st == STATUS_IO);
    assert_int_equal(s->record[0]->status, RUN_ERRORS);
    assert_true(s->record[0]->failed > 0);
    show_free(s);
}

static void test_interrupted_keeps_what_was_measured(void **state) {
    (void)state;
    struct show *s = show_new(2, LIST("null:?size=16m&lat=1ms", "null:?size=16m&lat=1ms"));
    add(s, "r", LIST("rw", "randread", "iodepth", "4", "ramp_time", "0", "runtime", "2s", "rounds", "3"));
    s->interrupt_after = 3;
    assert_int_equal(go(s), STATUS_INTERRUPTED);
    assert_int_equal(s->n, 3);
    show_free(s);
}

static void test_durability_follows_from_the_answers(void **state) {
    (void)state;
    const struct {
        const char *url, *key, *value;
        enum io_durability want;
    } c[] = {
        {"null:?size=16m&lat=1ms&write_cache=yes", "end_fsync", "0", DURABILITY_VOLATILE},
        {"null:?size=16m&lat=1ms&write_cache=yes", "end_fsync", "1", DURABILITY_FLUSHED},
        {"null:?size=16m&lat=1ms&write_cache=yes", "fsync", "16", DURABILITY_FLUSHED},
        {"null:?size=16m&lat=1ms&write_cache=no", "end_fsync", "0", DURABILITY_CLAIMS_STABLE},
        {"null:?size=16m&lat=1ms&write_cache=yes", "sync", "dsync", DURABILITY_CLAIMS_STABLE},
        {"null:?size=16m&lat=1ms", "rw", "read", DURABILITY_NO_WRITES},
    };
    for (unsigned i = 0; i < sizeof c / sizeof c[0]; i++) {
        struct show *s = show_new(1, LIST(c[i].url));
        add(s, "w",
            LIST("rw", "write", "iodepth", "2", "ramp_time", "0", "runtime", "1s", "rounds", "1", c[i].key,
                 c[i].value));
        assert_int_equal(go(s), STATUS_OK);
        if (s->record[0]->durability != c[i].want)
            fail_msg("case %u: %s", i, io_durability_name(s->record[0]->durability));
        show_free(s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounds_patterns_and_targets_in_order),
        cmocka_unit_test(test_figures_of_each_target),
        cmocka_unit_test(test_streams_are_equal_in_a_round_only),
        cmocka_unit_test(test_a_lost_target_is_tried_once_in_each_later_round),
        cmocka_unit_test(test_a_target_that_stays_lost),
        cmocka_unit_test(test_a_lost_target_ends_its_runs_and_no_others),
        cmocka_unit_test(test_errors_give_status_io),
        cmocka_unit_test(test_interrupted_keeps_what_was_measured),
        cmocka_unit_test(test_durability_follows_from_the_answers),
    };
    return cmocka_run_group_tests_name("session", tests, NULL, NULL);
}
