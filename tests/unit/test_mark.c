/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "pattern/mark.h"

static void layout_is_fixed(void **state) {
    /* What a disk holds must be recognised by later versions: magic, counter 32..55, counter 0..31, run. */
    static const unsigned char expected[16] = {0x53, 0xc9, 0xe5, 0xb3, 0xd1, 0x05, 0x00, 0xab,
                                               0x04, 0x03, 0x02, 0x01, 0xef, 0xbe, 0xad, 0xde};
    unsigned char buf[32];
    (void)state;
    memset(buf, 0x77, sizeof(buf));
    mark_put(buf, 0xdeadbeef, 0xab000501020304ULL);
    assert_memory_equal(buf, expected, 16);
    for (size_t i = 16; i < sizeof(buf); i++) assert_int_equal(buf[i], 0x77);
}

static void says_what_was_put(void **state) {
    static const uint64_t counters[] = {0, 1, 0xffffffff, 0x100000000, 1ULL << 48, (1ULL << 56) - 1};
    static const uint32_t runs[] = {0, 1, 0x80000000, 0xffffffff};
    (void)state;
    for (unsigned i = 0; i < 6; i++)
        for (unsigned k = 0; k < 4; k++) {
            unsigned char buf[16];
            uint64_t counter;
            uint32_t run;
            mark_put(buf, runs[k], counters[i]);
            assert_true(mark_read(buf, &run, &counter));
            assert_int_equal(run, runs[k]);
            assert_int_equal(counter, counters[i]);
            assert_true(mark_read(buf, NULL, NULL));
        }
}

static void not_a_mark(void **state) {
    unsigned char buf[16] = {0};
    (void)state;
    assert_false(mark_read(buf, NULL, NULL));
    memset(buf, 0xff, sizeof(buf));
    assert_false(mark_read(buf, NULL, NULL));
    mark_put(buf, 0, 0);
    for (int bit = 0; bit < 40; bit++) { /* each bit of the magic counts */
        buf[bit / 8] ^= (unsigned char)(1 << bit % 8);
        assert_false(mark_read(buf, NULL, NULL));
        buf[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    assert_true(mark_read(buf, NULL, NULL));
}

static void zero(void **state) {
    unsigned char *buf = calloc(1, 4096);
    (void)state;
    assert_non_null(buf);
    assert_true(mark_is_zero(buf, 0));
    assert_true(mark_is_zero(buf, 1));
    assert_true(mark_is_zero(buf, 4096));
    for (size_t at = 0; at < 4096; at += 13) {
        buf[at] = 1;
        assert_false(mark_is_zero(buf, 4096));
        assert_true(mark_is_zero(buf, at));
        buf[at] = 0;
    }
    buf[4095] = 1;
    assert_false(mark_is_zero(buf, 4096));
    assert_true(mark_is_zero(buf, 4095));
    free(buf);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layout_is_fixed),
        cmocka_unit_test(says_what_was_put),
        cmocka_unit_test(not_a_mark),
        cmocka_unit_test(zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
