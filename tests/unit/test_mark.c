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
    unsigned char buf[512];
    uint64_t counter = 0xab000501020304ULL;
    (void)state;
    memset(buf, 0x77, sizeof(buf));
    mark_stamp(buf, 4096, sizeof(buf), 0xdeadbeef, &counter);
    assert_memory_equal(buf, expected, 16);
    for (size_t i = 16; i < sizeof(buf); i++) assert_int_equal(buf[i], 0x77);
    assert_int_equal(counter, 0xab000501020305ULL);
}

/* Where the marks of an I/O are, by the rule: at every multiple of 4096, or at its start if there is none. */
static void check_places(uint64_t offset, size_t len) {
    unsigned char *buf = malloc(len);
    uint64_t counter = 7, marks = 0;
    assert_non_null(buf);
    memset(buf, 0, len);
    mark_stamp(buf, offset, len, 1, &counter);
    uint64_t first = (offset + 4095) / 4096 * 4096;
    bool none = first >= offset + len;
    for (size_t at = 0; at < len; at += 16) {
        bool here = none ? at == 0 : (offset + at) % 4096 == 0;
        assert_int_equal(mark_is_ours(buf + at), here);
        assert_int_equal(mark_is_zero(buf + at, 16), !here);
        marks += here;
    }
    assert_int_equal(counter, 7 + marks);
    free(buf); /* the sanitizer sees a mark beyond the end */
}

static void places(void **state) {
    (void)state;
    for (uint64_t offset = 0; offset <= 3 * 4096; offset += 512)
        for (size_t len = 512; len <= 3 * 4096; len += 512) check_places(offset, len);
    check_places((1ULL << 62) + 512, 65536);
    check_places(0, 1 << 20);
}

/* A mark of an older, larger write survives under a small one that does not cover its place, and the other way round.
 * */
static void what_is_left_is_marked(void **state) {
    unsigned char disk[8192];
    uint64_t counter = 0;
    (void)state;
    memset(disk, 0, sizeof(disk));
    mark_stamp(disk, 0, 8192, 1, &counter);
    mark_stamp(disk + 512, 512, 512, 2, &counter);
    mark_stamp(disk + 4096 + 1024, 4096 + 1024, 1024, 2, &counter);
    assert_true(mark_is_ours(disk));
    assert_true(mark_is_ours(disk + 4096));
}

static void all_marks_differ(void **state) {
    unsigned char a[4096 * 4], b[4096 * 4];
    uint64_t counter = 0xffffffff, other = 0x100000000 + 0xffffffff;
    (void)state;
    memset(a, 0, sizeof(a));
    memset(b, 0, sizeof(b));
    mark_stamp(a, 0, sizeof(a), 1, &counter);
    mark_stamp(b, 0, sizeof(b), 1, &other);
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 4; k++) {
            assert_memory_not_equal(a + 4096 * i, b + 4096 * k, 16);
            if (i != k) assert_memory_not_equal(a + 4096 * i, a + 4096 * k, 16);
        }
    other = 0xffffffff;
    mark_stamp(b, 0, sizeof(b), 2, &other);
    for (int i = 0; i < 4; i++) assert_memory_not_equal(a + 4096 * i, b + 4096 * i, 16);
    /* two workers' counters: the index stands in the bits from 48 */
    counter = 1ULL << 48;
    other = 255ULL << 48;
    mark_stamp(a, 0, 512, 1, &counter);
    mark_stamp(b, 0, 512, 1, &other);
    assert_memory_not_equal(a, b, 16);
}

static void not_ours(void **state) {
    unsigned char buf[512] = {0};
    uint64_t counter = 0;
    (void)state;
    assert_false(mark_is_ours(buf));
    memset(buf, 0xff, sizeof(buf));
    assert_false(mark_is_ours(buf));
    mark_stamp(buf, 0, sizeof(buf), 0, &counter);
    for (int bit = 0; bit < 40; bit++) { /* each bit of the magic counts */
        buf[bit / 8] ^= (unsigned char)(1 << bit % 8);
        assert_false(mark_is_ours(buf));
        buf[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    assert_true(mark_is_ours(buf));
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
        cmocka_unit_test(layout_is_fixed),  cmocka_unit_test(places),   cmocka_unit_test(what_is_left_is_marked),
        cmocka_unit_test(all_marks_differ), cmocka_unit_test(not_ours), cmocka_unit_test(zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
