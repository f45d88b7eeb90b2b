/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/text.h"

static void safe(const char *in, const char *want) {
    char buf[200];

    assert_ptr_equal(text_safe(buf, sizeof(buf), in, strlen(in)), buf);
    assert_string_equal(buf, want);
}

static void plain_text_stays(void **state) {
    (void)state;
    safe("", "");
    safe("iqn.2001-04.com.example:disk/0 \\ % 'q' \"", "iqn.2001-04.com.example:disk/0 \\ % 'q' \"");
    safe("B\xc3\xa4r \xe2\x82\xac \xf0\x9f\x92\xbe \xf4\x8f\xbf\xbf",
         "B\xc3\xa4r \xe2\x82\xac \xf0\x9f\x92\xbe \xf4\x8f\xbf\xbf");
}

static void controls_are_shown(void **state) {
    (void)state;
    safe("a\033[31mb", "a\\x1B[31mb");
    safe("a\nb\tc\rd\x01\x7f", "a\\x0Ab\\x09c\\x0Dd\\x01\\x7F");
    safe("\xc2\x9b" "31m", "\\xC2\\x9B31m");     /* C1 as a character: CSI */
    safe("\xc2\x80\xc2\xa0", "\\xC2\\x80\xc2\xa0"); /* U+00A0 is none */
}

static void text_that_turns_text_around_is_shown(void **state) {
    char in[8], want[16];

    (void)state;
    for (unsigned c = 0xaa; c <= 0xae; c++) { /* U+202A .. U+202E */
        snprintf(in, sizeof(in), "\xe2\x80%c", (int)c);
        snprintf(want, sizeof(want), "\\xE2\\x80\\x%02X", c);
        safe(in, want);
    }
    for (unsigned c = 0xa6; c <= 0xa9; c++) { /* U+2066 .. U+2069 */
        snprintf(in, sizeof(in), "\xe2\x81%c", (int)c);
        snprintf(want, sizeof(want), "\\xE2\\x81\\x%02X", c);
        safe(in, want);
    }
    safe("\xe2\x80\x8f", "\\xE2\\x80\\x8F");
    safe("\xe2\x80\xa8", "\\xE2\\x80\\xA8");
    safe("\xef\xbb\xbf", "\\xEF\\xBB\\xBF");
    safe("\xe2\x80\xaf\xe2\x81\xa5\xe2\x81\xaa", "\xe2\x80\xaf\xe2\x81\xa5\xe2\x81\xaa"); /* their neighbours */
}

static void invalid_utf8_is_shown(void **state) {
    (void)state;
    safe("\x80", "\\x80");
    safe("\xff\xfe", "\\xFF\\xFE");
    safe("\xc0\xaf", "\\xC0\\xAF");                 /* overlong '/' */
    safe("\xe0\x80\xaf", "\\xE0\\x80\\xAF");
    safe("\xf0\x80\x80\xaf", "\\xF0\\x80\\x80\\xAF");
    safe("\xed\xa0\x80", "\\xED\\xA0\\x80");        /* surrogate */
    safe("\xf4\x90\x80\x80", "\\xF4\\x90\\x80\\x80"); /* beyond U+10FFFF */
    safe("\xe2\x82", "\\xE2\\x82");                 /* ends too soon */
    safe("\xe2\x82z", "\\xE2\\x82z");
    safe("\xc3", "\\xC3");
    safe("\xa9 1998", "\\xA9 1998");                /* Latin-1 */
}

static void reads_no_more_than_told(void **state) {
    char buf[50], in[4] = { 'a', 'b', '\xe2', '\x82' }; /* no NUL */

    (void)state;
    assert_string_equal(text_safe(buf, sizeof(buf), in, 2), "ab");
    assert_string_equal(text_safe(buf, sizeof(buf), in, 4), "ab\\xE2\\x82");
    assert_string_equal(text_safe(buf, sizeof(buf), "ab\0cd", 5), "ab");
}

static void cuts_with_dots(void **state) {
    char buf[8];

    (void)state;
    assert_string_equal(text_safe(buf, 8, "1234567", 7), "1234567");
    assert_string_equal(text_safe(buf, 8, "12345678", 8), "1234...");
    assert_string_equal(text_safe(buf, 8, "123\n", 4), "123\\x0A");
    assert_string_equal(text_safe(buf, 8, "1234\n", 5), "1234...");
    assert_string_equal(text_safe(buf, 8, "\n\n", 2), "\\x0A...");
    assert_string_equal(text_safe(buf, 8, "123\xe2\x82\xac" "567", 9), "123..."); /* no half characters */
    assert_string_equal(text_safe(buf, 7, "\n\n", 2), "...");
    assert_string_equal(text_safe(buf, 4, "12345", 5), "...");
    assert_string_equal(text_safe(buf, 3, "12345", 5), "..");
    assert_string_equal(text_safe(buf, 1, "12345", 5), "");
    buf[0] = 'x';
    assert_string_equal(text_safe(buf, 0, "12345", 5), "");
    assert_int_equal(buf[0], 'x');
}

static void nearest_finds_typos(void **state) {
    static const char *const keys[] = {
        "bs", "bssplit", "iodepth", "rwmixread", "rwmixwrite", "runtime", "ramp_time", NULL
    };

    (void)state;
    assert_string_equal(text_nearest("iodept", keys), "iodepth");
    assert_string_equal(text_nearest("oidepth", keys), "iodepth"); /* a swap is one slip */
    assert_string_equal(text_nearest("io_depth", keys), "iodepth");
    assert_string_equal(text_nearest("BS", keys), "bs");
    assert_string_equal(text_nearest("bz", keys), "bs");
    assert_string_equal(text_nearest("ramp-tme", keys), "ramp_time");
    assert_string_equal(text_nearest("rwmixwrit", keys), "rwmixwrite");
    assert_string_equal(text_nearest("rumtime", keys), "runtime");
}

static void nearest_does_not_guess(void **state) {
    static const char *const keys[] = { "bs", "iodepth", "runtime", NULL }, *const none[] = { NULL };
    char lengthy[500];

    (void)state;
    assert_null(text_nearest("filename", keys));
    assert_null(text_nearest("", keys));
    assert_null(text_nearest("x", keys));
    assert_null(text_nearest("xy", keys));
    assert_null(text_nearest("iodepth", none));
    memset(lengthy, 'b', sizeof(lengthy) - 1);
    lengthy[sizeof(lengthy) - 1] = '\0';
    assert_null(text_nearest(lengthy, keys));
}

static void nearest_takes_the_nearest_then_the_first(void **state) {
    static const char *const keys[] = { "readaheed", "readahead", "rsize", "wsize", NULL };

    (void)state;
    assert_string_equal(text_nearest("readahead", keys), "readahead");
    assert_string_equal(text_nearest("xsize", keys), "rsize");
}

static void globs(void **state) {
    (void)state;
    assert_true(text_glob("*", ""));
    assert_true(text_glob("*Read*", "Max Throughput-100%Read"));
    assert_true(text_glob("Max*", "Max Throughput-100%Read"));
    assert_true(text_glob("4k-qd[0-9]", "4k-qd7"));
    assert_true(text_glob("a?c", "abc"));
    assert_true(text_glob("*", ".a/b"));
    assert_false(text_glob("Read", "Max Throughput-100%Read"));
    assert_false(text_glob("max*", "Max Throughput"));
    assert_false(text_glob("a?c", "ac"));
}

static void labels(void **state) {
    char text[65];

    (void)state;
    assert_true(text_is_label("nfs"));
    assert_true(text_is_label("nfs-2"));
    assert_true(text_is_label("Array_1.v3"));
    assert_false(text_is_label(""));
    assert_false(text_is_label("a b"));
    assert_false(text_is_label("a/b"));
    assert_false(text_is_label("a=b"));
    assert_false(text_is_label("\xc3\xa4"));
    memset(text, 'l', 64);
    text[63] = '\0';
    assert_true(text_is_label(text));
    text[63] = 'l';
    text[64] = '\0';
    assert_false(text_is_label(text));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_text_stays),
        cmocka_unit_test(controls_are_shown),
        cmocka_unit_test(text_that_turns_text_around_is_shown),
        cmocka_unit_test(invalid_utf8_is_shown),
        cmocka_unit_test(reads_no_more_than_told),
        cmocka_unit_test(cuts_with_dots),
        cmocka_unit_test(nearest_finds_typos),
        cmocka_unit_test(nearest_does_not_guess),
        cmocka_unit_test(nearest_takes_the_nearest_then_the_first),
        cmocka_unit_test(globs),
        cmocka_unit_test(labels),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
