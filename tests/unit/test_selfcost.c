/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "engine/selfcost.h"
#include "tests/unit/nulltarget.h"

static struct pattern with(const char *const *keys) {
    struct pattern p = {.name = NULL};
    struct err err;
    char note[200];
    assert_int_equal(pattern_init(&p, "p", &err), 0);
    for (; keys[0]; keys += 2)
        if (pattern_set(&p, keys[0], keys[1], note, sizeof note, &err) != 0) fail_msg("%s", err.msg);
    if (pattern_finish(&p, &err) != 0) fail_msg("%s", err.msg);
    return p;
}

static double cost(const char *url, const char *const *keys) {
    struct clock clock;
    struct target t;
    struct pattern p = with(keys);
    clock_real_init(&clock);
    nulltarget_open(&t, "t", url, &clock);
    double ns = selfcost_measure(&t, &p);
    target_close(&t);
    target_free(&t);
    pattern_free(&p);
    return ns;
}

/* A loop of some dozen instructions takes a nanosecond at least; the upper bound only catches a wrong unit. */
static void plausible(const char *const *keys) {
    double ns = cost("null:?size=64m", keys);
    assert_true(ns > 1 && ns < 1e8);
}

static void every_kind_of_load(void **state) {
    (void)state;
    plausible((const char *const[]){"size", "64m", "rw", "randread", "iodepth", "32", NULL});
    plausible((const char *const[]){"size", "64m", "rw", "randrw", "iodepth", "1", NULL});
    /* Buffers of more than is worth filling; a pace and an end that would make it wait or stop. */
    plausible((const char *const[]){"size", "64m", "rw", "write", "bs", "1m", "iodepth", "64", "rate_iops", "1",
                                    "io_size", "1m", NULL});
    plausible((const char *const[]){"size", "64m", "rw", "randwrite", "thinktime", "1s", "fsync", "3", "numjobs", "8",
                                    NULL});
}

static void what_fails_has_no_cost(void **state) {
    (void)state;
    assert_true(isnan(cost("null:?size=64m&errors=1000000", (const char *const[]){"size", "64m", NULL})));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_kind_of_load), cmocka_unit_test(what_fails_has_no_cost)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
