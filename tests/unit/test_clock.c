/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"

static void virtual_stands_still_until_waited_on(void **state) {
    struct clock_virtual v;

    (void)state;
    clock_virtual_init(&v, 1000);
    assert_true(clock_is_virtual(&v.clock));
    assert_int_equal(clock_now(&v.clock), 1000);
    assert_int_equal(clock_now(&v.clock), 1000);
    clock_wait_until(&v.clock, 5 * NS_PER_SEC);
    assert_int_equal(clock_now(&v.clock), 5 * NS_PER_SEC);
}

static void virtual_never_goes_back(void **state) {
    struct clock_virtual v;

    (void)state;
    clock_virtual_init(&v, 1000);
    clock_wait_until(&v.clock, 999);
    clock_wait_until(&v.clock, -1);
    assert_int_equal(clock_now(&v.clock), 1000);
}

static void virtual_starts_anywhere(void **state) {
    struct clock_virtual v;

    (void)state;
    clock_virtual_init(&v, -7);
    assert_int_equal(clock_now(&v.clock), -7);
    clock_wait_until(&v.clock, INT64_MAX);
    assert_int_equal(clock_now(&v.clock), INT64_MAX);
}

static void two_virtual_clocks_are_apart(void **state) {
    struct clock_virtual a, b;

    (void)state;
    clock_virtual_init(&a, 0);
    clock_virtual_init(&b, 0);
    clock_wait_until(&a.clock, 10);
    assert_int_equal(clock_now(&a.clock), 10);
    assert_int_equal(clock_now(&b.clock), 0);
}

static void real_is_monotonic_time(void **state) {
    struct clock real;
    struct timespec before, after;

    (void)state;
    clock_real_init(&real);
    assert_false(clock_is_virtual(&real));
    clock_gettime(CLOCK_MONOTONIC, &before);
    int64_t t = clock_now(&real);
    clock_gettime(CLOCK_MONOTONIC, &after);
    assert_true(t >= before.tv_sec * NS_PER_SEC + before.tv_nsec);
    assert_true(t <= after.tv_sec * NS_PER_SEC + after.tv_nsec);
}

/* The past costs no time, however it is written; the near future is reached. */
static void real_wait(void **state) {
    struct clock real;

    (void)state;
    clock_real_init(&real);
    int64_t start = clock_now(&real);
    clock_wait_until(&real, INT64_MIN);
    clock_wait_until(&real, -1);
    clock_wait_until(&real, 0);
    clock_wait_until(&real, start - NS_PER_SEC);
    clock_wait_until(&real, start + 200 * NS_PER_US);
    assert_true(clock_now(&real) >= start + 200 * NS_PER_US);
}

static void cost_is_plausible(void **state) {
    (void)state;
    double cost = clock_cost_ns();
    assert_true(cost > 0);
    assert_true(cost < 1e6); /* even under valgrind */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(virtual_stands_still_until_waited_on),
        cmocka_unit_test(virtual_never_goes_back),
        cmocka_unit_test(virtual_starts_anywhere),
        cmocka_unit_test(two_virtual_clocks_are_apart),
        cmocka_unit_test(real_is_monotonic_time),
        cmocka_unit_test(real_wait),
        cmocka_unit_test(cost_is_plausible),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
