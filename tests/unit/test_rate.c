/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine/rate.h"

#define SEC 1000000000LL

static void test_due_times_are_evenly_spaced(void **state) {
    (void)state;
    struct rate r;
    rate_init(&r, 1000, 0, 1, 5 * SEC, SEC);
    for (int k = 0; k < 5000; k++) {
        assert_int_equal(r.due, 5 * SEC + k * 1000000LL);
        rate_next(&r);
    }
}

static void test_workers_interleave_to_the_targets_rate(void **state) {
    (void)state;
    struct rate r[3];
    for (unsigned w = 0; w < 3; w++) rate_init(&r[w], 300, w, 3, 0, SEC);
    for (int k = 0; k < 900; k++) {
        struct rate *turn = &r[k % 3];
        assert_int_equal(turn->due, (int64_t)k * SEC / 300);
        rate_next(turn);
    }
}

/* No drift: after an hour of an odd rate the due time is exact. */
static void test_no_rounding_adds_up(void **state) {
    (void)state;
    struct rate r;
    rate_init(&r, 7, 0, 1, 0, SEC);
    for (int k = 0; k < 7 * 3600; k++) rate_next(&r);
    assert_int_equal(r.due, 3600 * SEC);
}

static void test_backlog_up_to_the_cap_is_owed(void **state) {
    (void)state;
    struct rate r;
    rate_init(&r, 100, 0, 1, 0, SEC);
    assert_int_equal(r.cap, 100);
    assert_int_equal(rate_drop(&r, 990000000LL), 0); /* I/Os 0..99 are due: 100 of them */
    assert_int_equal(r.k, 0);
}

static void test_backlog_over_the_cap_is_dropped_and_counted(void **state) {
    (void)state;
    struct rate r;
    rate_init(&r, 100, 0, 1, 0, SEC);
    assert_int_equal(rate_drop(&r, 3 * SEC), 201); /* 0..300 due, 100 kept */
    assert_int_equal(r.k, 201);
    assert_int_equal(r.due, 2010000000LL);
    assert_int_equal(rate_drop(&r, 3 * SEC), 0);
}

/* A cap is a time, at least one I/O of each worker; without one nothing is given up. */
static void test_cap_is_a_time(void **state) {
    (void)state;
    struct rate r;
    rate_init(&r, 300, 0, 3, 0, SEC / 2);
    assert_int_equal(r.cap, 50);
    rate_init(&r, 10, 0, 3, 0, SEC / 10);
    assert_int_equal(r.cap, 1);
    rate_init(&r, 1000, 0, 1, 0, 0);
    assert_int_equal(rate_drop(&r, 3600 * SEC), 0);
    assert_int_equal(rate_owed(&r, 3600 * SEC), 3600001);
    assert_int_equal(rate_owed(&r, 0), 1);
    assert_int_equal(rate_owed(&r, -1), 0);
}

static void test_not_due_yet(void **state) {
    (void)state;
    struct rate r;
    rate_init(&r, 10, 0, 1, 10 * SEC, SEC);
    assert_int_equal(rate_drop(&r, 9 * SEC), 0);
    assert_int_equal(r.due, 10 * SEC);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_due_times_are_evenly_spaced),
        cmocka_unit_test(test_workers_interleave_to_the_targets_rate),
        cmocka_unit_test(test_no_rounding_adds_up),
        cmocka_unit_test(test_backlog_up_to_the_cap_is_owed),
        cmocka_unit_test(test_backlog_over_the_cap_is_dropped_and_counted),
        cmocka_unit_test(test_cap_is_a_time),
        cmocka_unit_test(test_not_due_yet),
    };
    return cmocka_run_group_tests_name("rate", tests, NULL, NULL);
}
