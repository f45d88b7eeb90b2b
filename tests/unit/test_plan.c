/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "engine/plan.h"
#include "engine/plan_check.h"

/* ---- a small plan made by hand ---- */

struct world {
    struct plan plan;
    struct target target[3];
    struct target *list[3];
    struct err err;
};

static void add_pattern(struct world *w, const char *name, const char *const *keys) {
    struct pattern_set *set = &w->plan.patterns;
    char note[200];
    set->pattern = realloc(set->pattern, (set->n + 1) * sizeof *set->pattern);
    struct pattern *p = &set->pattern[set->n++];
    memset(p, 0, sizeof *p);
    assert_int_equal(pattern_init(p, name, &w->err), 0);
    for (; keys[0]; keys += 2)
        if (pattern_set(p, keys[0], keys[1], note, sizeof note, &w->err) != 0) fail_msg("%s", w->err.msg);
    if (pattern_finish(p, &w->err) != 0) fail_msg("%s", w->err.msg);
}

static struct facts existing(uint64_t size) {
    return (struct facts){.exists = true,
                          .kind = OBJECT_LUN,
                          .size = size,
                          .block = 512,
                          .mem_align = 512,
                          .max_io = 1u << 20,
                          .can_flush = true,
                          .dpofua = ANSWER_YES,
                          .allocated = UINT64_MAX};
}

static struct world *world_new(unsigned n_targets) {
    struct world *w = calloc(1, sizeof *w);
    for (unsigned i = 0; i < n_targets; i++) {
        w->list[i] = &w->target[i];
        snprintf(w->target[i].label, sizeof w->target[i].label, "t%u", i);
        w->target[i].n_members = 1;
        w->target[i].member[0].facts = existing(1ull << 30);
        snprintf(w->target[i].member[0].facts.identity[0], 128, "naa.%u", i);
    }
    w->plan.targets = w->list;
    w->plan.n_targets = n_targets;
    return w;
}

static void world_free(struct world *w) {
    set_free(&w->plan.patterns);
    free(w);
}

#define KEYS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void expect_refused(struct world *w, const char *words) {
    assert_int_equal(plan_resolve(&w->plan, &w->err), -1);
    assert_int_equal(w->err.status, STATUS_USAGE);
    if (!strstr(w->err.msg, words)) fail_msg("'%s' is not in: %s", words, w->err.msg);
}

/* ---- orders ---- */

static void order_text(unsigned round, unsigned n, char *out) {
    unsigned order[8];
    plan_order(round, n, order);
    for (unsigned i = 0; i < n; i++) out[i] = (char)('A' + order[i]);
    out[n] = 0;
}

static void test_orders_of_three(void **state) {
    (void)state;
    const char *const want[] = {"ABC", "BCA", "CAB", "CBA", "ACB", "BAC", "ABC"};
    char got[8];
    for (unsigned r = 1; r <= 7; r++) {
        order_text(r, 3, got);
        assert_string_equal(got, want[r - 1]);
    }
}

static void test_orders_of_two_and_one(void **state) {
    (void)state;
    const char *const want[] = {"AB", "BA", "AB", "BA"};
    char got[8];
    for (unsigned r = 1; r <= 4; r++) {
        order_text(r, 2, got);
        assert_string_equal(got, want[r - 1]);
        order_text(r, 1, got);
        assert_string_equal(got, "A");
    }
}

/* Over a full set of rounds each target stands in each place equally often, and before each other one equally often. */
static void test_orders_are_balanced(void **state) {
    (void)state;
    for (unsigned n = 2; n <= 7; n++) {
        unsigned place[8][8] = {{0}}, before[8][8] = {{0}}, order[8], rounds = n == 2 ? 4 : 2 * n;
        for (unsigned r = 1; r <= rounds; r++) {
            plan_order(r, n, order);
            for (unsigned i = 0; i < n; i++) {
                place[order[i]][i]++;
                for (unsigned k = i + 1; k < n; k++) before[order[i]][order[k]]++;
            }
        }
        for (unsigned a = 0; a < n; a++)
            for (unsigned b = 0; b < n; b++) {
                assert_int_equal(place[a][b], rounds / n);
                if (a != b) assert_int_equal(before[a][b], rounds / 2);
            }
    }
}

static void test_balanced_rounds(void **state) {
    (void)state;
    struct pattern p = {.rounds = ROUNDS_BALANCED};
    assert_int_equal(plan_pattern_rounds(&p, 1), 3);
    assert_int_equal(plan_pattern_rounds(&p, 2), 4);
    assert_int_equal(plan_pattern_rounds(&p, 3), 6);
    assert_int_equal(plan_pattern_rounds(&p, 5), 10);
    p.rounds = 2;
    assert_int_equal(plan_pattern_rounds(&p, 3), 2);
}

/* ---- sizes and times ---- */

static void test_size_defaults_to_the_smallest_existing_target(void **state) {
    (void)state;
    struct world *w = world_new(3);
    add_pattern(w, "a", KEYS("rw", "randread", "bs", "4k"));
    w->target[1].member[0].facts.size = 300 << 20;
    w->target[2].member[0].facts = (struct facts){.exists = false};
    assert_int_equal(plan_resolve(&w->plan, &w->err), 0);
    assert_int_equal(w->plan.patterns.pattern[0].size, 300 << 20);
    assert_int_equal(plan_needed_size(&w->plan), 300 << 20);
    world_free(w);
}

static void test_no_size_and_nothing_to_take_it_from(void **state) {
    (void)state;
    struct world *w = world_new(1);
    add_pattern(w, "a", KEYS("rw", "randread"));
    w->target[0].member[0].facts = (struct facts){.exists = false};
    expect_refused(w, "--size");
    world_free(w);
}

static void test_time_is_the_sum_of_all_runs(void **state) {
    (void)state;
    struct world *w = world_new(3);
    add_pattern(w, "a", KEYS("rw", "randread", "ramp_time", "2s", "runtime", "10s", "rounds", "2"));
    add_pattern(w, "b", KEYS("rw", "read", "ramp_time", "1s", "runtime", "5s", "rounds", "1"));
    assert_int_equal(plan_resolve(&w->plan, &w->err), 0);
    assert_int_equal(plan_runs(&w->plan), 9);
    assert_int_equal(w->plan.rounds, 2);
    assert_int_equal(plan_run_ns(&w->plan), (6 * 12500 + 3 * 6500) * NS_PER_MS);
    assert_int_equal(plan_prepare_ns(&w->plan), 0);
    world_free(w);
}

static void test_rounds_fit_the_time(void **state) {
    (void)state;
    struct world *w = world_new(2);
    add_pattern(w, "a", KEYS("rw", "randread", "ramp_time", "1s", "runtime", "8500ms"));
    assert_int_equal(plan_resolve(&w->plan, &w->err), 0);
    assert_int_equal(plan_fit_time(&w->plan, 65 * NS_PER_SEC, &w->err), 0); /* a round is 20 s */
    assert_int_equal(w->plan.rounds, 3);
    assert_int_equal(plan_fit_time(&w->plan, 20 * NS_PER_SEC, &w->err), 0);
    assert_int_equal(w->plan.rounds, 1);
    assert_int_equal(plan_fit_time(&w->plan, 19 * NS_PER_SEC, &w->err), -1);
    assert_non_null(strstr(w->err.msg, "--time 19 s: one round of all patterns takes 20 s, with its preparation"));
    w->plan.targets[1]->read_ns = 2 * NS_PER_SEC; /* a long way: two reads to see that it has settled, one in the drain */
    assert_int_equal(plan_run_ns(&w->plan), 10 * NS_PER_SEC + 9500 * NS_PER_MS + 6 * NS_PER_SEC);
    assert_int_equal(plan_prepare_ns(&w->plan), (4 + 3) * 2 * NS_PER_SEC); /* 256 samples, and 3 reads of an idle target */
    world_free(w);
}

/* What access keys add to every I/O is in the expected duration, but not where safety looks past it. */
static void test_a_delay_that_was_asked_for_takes_its_time(void **state) {
    (void)state;
    struct world *w = world_new(2);
    add_pattern(w, "a", KEYS("rw", "randread", "size", "16m", "ramp_time", "0", "runtime", "2s", "rounds", "1"));
    for (unsigned i = 0; i < 2; i++) w->target[i].member[0].facts.delay_ns = 2 * NS_PER_SEC;
    w->target[1].member[0].facts.kind = OBJECT_NULL; /* is not sampled */
    assert_int_equal(plan_resolve(&w->plan, &w->err), 0);
    assert_int_equal(plan_read_ns(&w->target[0]), 2 * NS_PER_SEC);
    assert_int_equal(plan_run_ns(&w->plan), 2 * (2 + 2 * 2 + 2) * NS_PER_SEC);
    assert_int_equal(plan_prepare_ns(&w->plan), (4 * 2 + 2 * 3 * 2) * NS_PER_SEC);
    world_free(w);
}

/* To create a file over a long way, and to make sure whose it is, takes as long as for one that is there, and longer. */
static void test_a_new_file_takes_its_round_trips(void **state) {
    (void)state;
    struct world *w = world_new(1);
    add_pattern(w, "a", KEYS("rw", "randwrite", "size", "16m", "prepare", "none", "rounds", "1"));
    assert_int_equal(plan_resolve(&w->plan, &w->err), 0);
    w->target[0].read_ns = w->target[0].attach_ns = 200 * NS_PER_MS;
    uint64_t there = plan_prepare_ns(&w->plan);
    w->target[0].member[0].facts.exists = false;
    uint64_t created = plan_prepare_ns(&w->plan);
    assert_in_range(created, there + NS_PER_SEC, there + 2 * NS_PER_SEC);
    w->target[0].open_ns = 3 * NS_PER_SEC; /* it is opened anew, to be written */
    assert_int_equal(plan_prepare_ns(&w->plan), created + 3 * NS_PER_SEC - 2 * 200 * NS_PER_MS);
    assert_in_range(plan_prepare_ns(&w->plan), 12 * NS_PER_SEC, 18 * NS_PER_SEC);
    world_free(w);
}

static void test_written_range_covers_all_patterns(void **state) {
    (void)state;
    struct world *w = world_new(1);
    uint64_t from, to;
    add_pattern(w, "r", KEYS("rw", "randread", "size", "64m", "offset", "16m"));
    assert_int_equal(plan_resolve(&w->plan, &w->err), 0);
    plan_written_range(&w->plan, &from, &to);
    assert_int_equal(from, to);
    assert_false(plan_writes(&w->plan));
    add_pattern(w, "w", KEYS("rw", "randwrite", "size", "8m", "offset", "128m"));
    assert_int_equal(plan_resolve(&w->plan, &w->err), 0);
    plan_written_range(&w->plan, &from, &to);
    assert_int_equal(from, 16 << 20);
    assert_int_equal(to, 136 << 20);
    world_free(w);
}

static uint64_t kept_of(uint64_t *at, const char *const *keys) {
    struct world *w = world_new(1);
    add_pattern(w, "a", keys);
    if (plan_resolve(&w->plan, &w->err) != 0) fail_msg("%s", w->err.msg);
    uint64_t kept = w->plan.patterns.pattern[0].kept;
    if (at) *at = w->plan.patterns.pattern[0].offset + kept;
    world_free(w);
    return kept;
}

static void test_a_load_that_writes_begins_behind_the_record(void **state) {
    (void)state;
    uint64_t at;
    assert_int_equal(kept_of(NULL, KEYS("rw", "randwrite", "bs", "4k", "size", "1m")), 4096);
    assert_int_equal(kept_of(NULL, KEYS("rw", "randwrite", "bs", "512", "size", "1m")), 4096);
    assert_int_equal(kept_of(NULL, KEYS("rw", "rw", "bs", "64k", "size", "1m")), 65536);
    assert_int_equal(kept_of(NULL, KEYS("rw", "randwrite", "bs", "4k", "blockalign", "16k", "size", "1m")), 16384);
    assert_int_equal(kept_of(&at, KEYS("rw", "randwrite", "bs", "512", "offset", "512", "size", "1m")), 7680);
    assert_int_equal(at, 8192); /* the record stands at the first multiple of 4096 */
    assert_int_equal(kept_of(NULL, KEYS("rw", "randread", "size", "1m")), 0);
    /* Where it would take more than an eighth of the range, or a worker would be left without a block. */
    assert_int_equal(kept_of(NULL, KEYS("rw", "write", "bs", "64k", "size", "512k")), 65536);
    assert_int_equal(kept_of(NULL, KEYS("rw", "write", "bs", "64k", "size", "448k")), 0);
    assert_int_equal(kept_of(NULL, KEYS("rw", "write", "bs", "64k", "size", "512k", "numjobs", "8")), 0);
    assert_int_equal(kept_of(NULL, KEYS("rw", "write", "bs", "64k", "size", "512k", "numjobs", "7")), 65536);
}

/* It stands where the range of the whole plan begins. */
static void test_only_loads_that_reach_the_record_keep_off_it(void **state) {
    (void)state;
    struct world *w = world_new(1);
    add_pattern(w, "low", KEYS("rw", "randread", "size", "1m"));
    add_pattern(w, "high", KEYS("rw", "randwrite", "size", "1m", "offset", "1m"));
    assert_int_equal(plan_resolve(&w->plan, &w->err), 0);
    assert_int_equal(w->plan.patterns.pattern[0].kept, 0);
    assert_int_equal(w->plan.patterns.pattern[1].kept, 0);
    world_free(w);
}

/* ---- refusals ---- */

static void test_pattern_bigger_than_target(void **state) {
    (void)state;
    struct world *w = world_new(2);
    add_pattern(w, "big", KEYS("rw", "read", "size", "2g"));
    expect_refused(w, "pattern 'big' needs 2g");
    expect_refused(w, "target 't0' has only 1g");
    world_free(w);
}

static void test_a_missing_file_gets_the_size_it_needs(void **state) {
    (void)state;
    struct world *w = world_new(1);
    w->target[0].member[0].facts = (struct facts){.exists = false};
    add_pattern(w, "big", KEYS("rw", "write", "size", "2g", "offset", "1g"));
    assert_int_equal(plan_resolve(&w->plan, &w->err), 0);
    assert_int_equal(plan_needed_size(&w->plan), 3ull << 30);
    world_free(w);
}

static void test_alignment_below_the_block(void **state) {
    (void)state;
    struct world *w = world_new(1);
    w->target[0].member[0].facts.block = 4096;
    add_pattern(w, "vmtn-like", KEYS("rw", "randread", "bs", "8k", "blockalign", "512", "size", "64m"));
    expect_refused(w, "multiples of 512 only");
    world_free(w);
}

static void test_io_larger_than_one_request(void **state) {
    (void)state;
    struct world *w = world_new(1);
    w->target[0].member[0].facts.max_io = 65536;
    add_pattern(w, "wide", KEYS("rw", "read", "bs", "1m", "size", "64m"));
    expect_refused(w, "at most 64k in one request");
    world_free(w);
}

static void test_depth_over_the_targets_limit(void **state) {
    (void)state;
    struct world *w = world_new(1);
    w->target[0].member[0].facts.max_depth = 32;
    add_pattern(w, "deep", KEYS("rw", "read", "iodepth", "64", "size", "64m"));
    expect_refused(w, "at most 32 per worker");
    world_free(w);
}

static void test_writes_to_what_is_read_only(void **state) {
    (void)state;
    struct world *w = world_new(1);
    w->target[0].member[0].facts.read_only = true;
    add_pattern(w, "w", KEYS("rw", "randwrite", "size", "64m"));
    expect_refused(w, "read-only");
    world_free(w);
}

static void test_flush_that_does_not_exist(void **state) {
    (void)state;
    struct world *w = world_new(1);
    w->target[0].member[0].facts.can_flush = false;
    add_pattern(w, "w", KEYS("rw", "randwrite", "size", "64m", "fsync", "8"));
    expect_refused(w, "no flush");
    world_free(w);
}

static void test_buffers_beyond_memory(void **state) {
    (void)state;
    struct world *w = world_new(1);
    w->target[0].member[0].facts.max_io = 0;
    add_pattern(w, "huge", KEYS("rw", "read", "bs", "64m", "iodepth", "4096", "numjobs", "64", "size", "4g"));
    expect_refused(w, "memory");
    world_free(w);
}

/* More of the kernel's requests than any machine leaves; the same of engines that need none of them is well. */
static void test_requests_beyond_the_clients(void **state) {
    (void)state;
    for (int aio = 0; aio < 2; aio++) {
        struct world *w = world_new(1);
        w->target[0].member[0].facts.kernel_aio = aio;
        add_pattern(w, "deep", KEYS("bs", "512", "iodepth", "4096", "numjobs", "256", "size", "64m"));
        w->plan.patterns.pattern->iodepth = 1ull << 33; /* no key goes so far */
        w->plan.patterns.pattern->numjobs = 1;
        w->plan.patterns.pattern->row[0].size = 0; /* and no memory */
        if (aio) {
            assert_int_equal(plan_check_target(&w->plan, w->plan.patterns.pattern, w->list[0], &w->err), -1);
            assert_non_null(strstr(w->err.msg, "asynchronous requests"));
        } else {
            assert_int_equal(plan_check_target(&w->plan, w->plan.patterns.pattern, w->list[0], &w->err), 0);
        }
        world_free(w);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests_beyond_the_clients),
        cmocka_unit_test(test_orders_of_three),
        cmocka_unit_test(test_orders_of_two_and_one),
        cmocka_unit_test(test_orders_are_balanced),
        cmocka_unit_test(test_balanced_rounds),
        cmocka_unit_test(test_size_defaults_to_the_smallest_existing_target),
        cmocka_unit_test(test_no_size_and_nothing_to_take_it_from),
        cmocka_unit_test(test_time_is_the_sum_of_all_runs),
        cmocka_unit_test(test_rounds_fit_the_time),
        cmocka_unit_test(test_a_delay_that_was_asked_for_takes_its_time),
        cmocka_unit_test(test_a_new_file_takes_its_round_trips),
        cmocka_unit_test(test_written_range_covers_all_patterns),
        cmocka_unit_test(test_a_load_that_writes_begins_behind_the_record),
        cmocka_unit_test(test_only_loads_that_reach_the_record_keep_off_it),
        cmocka_unit_test(test_pattern_bigger_than_target),
        cmocka_unit_test(test_a_missing_file_gets_the_size_it_needs),
        cmocka_unit_test(test_alignment_below_the_block),
        cmocka_unit_test(test_io_larger_than_one_request),
        cmocka_unit_test(test_depth_over_the_targets_limit),
        cmocka_unit_test(test_writes_to_what_is_read_only),
        cmocka_unit_test(test_flush_that_does_not_exist),
        cmocka_unit_test(test_buffers_beyond_memory),
    };
    return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
