/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine/depth.h"

static void test_constant_depth_fills_the_window(void **state) {
    (void)state;
    struct depth d;
    depth_init(&d, 1000, 2000);
    depth_change(&d, 900, 4);
    depth_change(&d, 2500, -4);
    assert_int_equal(d.area, 4 * 1000);
    assert_int_equal(d.outstanding, 0);
}

static void test_changes_inside_are_weighted_by_time(void **state) {
    (void)state;
    struct depth d;
    depth_init(&d, 0, 100);
    depth_change(&d, 10, 2);   /* 0 for 10 */
    depth_change(&d, 40, 3);   /* 2 for 30 */
    depth_change(&d, 50, -4);  /* 5 for 10 */
    depth_change(&d, 100, -1); /* 1 for 50 */
    assert_int_equal(d.area, 2 * 30 + 5 * 10 + 1 * 50);
}

static void test_nothing_counts_outside(void **state) {
    (void)state;
    struct depth d;
    depth_init(&d, 1000, 2000);
    depth_change(&d, 0, 7);
    depth_change(&d, 999, -7);
    depth_change(&d, 2001, 7);
    depth_change(&d, 9000, -7);
    assert_int_equal(d.area, 0);
}

static void test_a_time_that_goes_back_adds_nothing(void **state) {
    (void)state;
    struct depth d;
    depth_init(&d, 0, INT64_MAX);
    depth_change(&d, 100, 1);
    depth_change(&d, 50, 1);
    depth_change(&d, 110, -2);
    assert_int_equal(d.area, 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_constant_depth_fills_the_window),
        cmocka_unit_test(test_changes_inside_are_weighted_by_time),
        cmocka_unit_test(test_nothing_counts_outside),
        cmocka_unit_test(test_a_time_that_goes_back_adds_nothing),
    };
    return cmocka_run_group_tests_name("depth", tests, NULL, NULL);
}
