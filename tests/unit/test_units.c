/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/rng.h"
#include "base/units.h"

#define KIB 1024ull
#define MIB (KIB * KIB)
#define GIB (KIB * MIB)
#define TIB (KIB * GIB)
#define PIB (KIB * TIB)
#define SEC 1000000000ull

static void good(int (*parse)(const char *, uint64_t *, struct err *), const char *text, uint64_t want) {
    uint64_t value = ~want;
    struct err err = { 0 };

    if (parse(text, &value, &err) != 0) fail_msg("'%s': %s", text, err.msg);
    if (value != want) fail_msg("'%s' gave %llu", text, (unsigned long long)value);
}

static void bad(int (*parse)(const char *, uint64_t *, struct err *), const char *text, const char *message) {
    uint64_t value = 4711;
    struct err err = { 0 };

    assert_int_equal(parse(text, &value, &err), -1);
    assert_int_equal(err.status, STATUS_USAGE);
    assert_string_equal(err.msg, message);
    assert_int_equal(value, 4711); /* untouched */
}

static void sizes(void **state) {
    static const char letters[] = "kmgtp";
    char text[16];

    (void)state;
    good(units_parse_size, "0", 0);
    good(units_parse_size, "512", 512);
    good(units_parse_size, "007", 7);
    good(units_parse_size, "18446744073709551615", UINT64_MAX);
    good(units_parse_size, "16383p", 16383 * PIB);
    for (unsigned i = 0; i < 5; i++) {
        static const char *const tails[] = { "", "i", "b", "ib", "I", "B", "iB", "IB" };
        uint64_t want = 3ull << (10 * (i + 1));

        for (unsigned k = 0; k < 8; k++) {
            text[0] = '3';
            text[1] = letters[i];
            strcpy(text + 2, tails[k]);
            good(units_parse_size, text, want);
            text[1] = (char)(letters[i] - 'a' + 'A');
            good(units_parse_size, text, want);
        }
    }
}

static void sizes_refused(void **state) {
    (void)state;
    bad(units_parse_size, "1.5k", "'1.5k' is not a size: fractions are not allowed (write 1536)");
    bad(units_parse_size, "1,5G", "'1,5G' is not a size: fractions are not allowed (write 1536m)");
    bad(units_parse_size, ".5k", "'.5k' is not a size: fractions are not allowed (write 512)");
    bad(units_parse_size, "1.3k", "'1.3k' is not a size: fractions are not allowed (nearest below: 1331)");
    bad(units_parse_size, "1.5", "'1.5' is not a size: fractions are not allowed (write a whole number)");
    bad(units_parse_size, "1.5q", "'1.5q' is not a size: fractions are not allowed (write a whole number)");
    bad(units_parse_size, "1.2.3k", "'1.2.3k' is not a size: fractions are not allowed (write a whole number)");
    bad(units_parse_size, "10q", "'10q' is not a size: unknown unit 'q' (known: k, m, g, t, p, powers of 1024)");
    bad(units_parse_size, "4kk", "'4kk' is not a size: unknown unit 'kk' (known: k, m, g, t, p, powers of 1024)");
    bad(units_parse_size, "512b", "'512b' is not a size: unknown unit 'b' (known: k, m, g, t, p, powers of 1024)");
    bad(units_parse_size, "4k/s", "'4k/s' is not a size: unknown unit 'k/s' (known: k, m, g, t, p, powers of 1024)");
    bad(units_parse_size, "50%", "'50%' is not a size: unexpected '%' after the number");
    bad(units_parse_size, "", "'' is not a size: it is empty (write for example 4k)");
    bad(units_parse_size, "-1", "'-1' is not a size: signs are not allowed (write for example 4k)");
    bad(units_parse_size, "+1", "'+1' is not a size: signs are not allowed (write for example 4k)");
    bad(units_parse_size, "4 k", "'4 k' is not a size: blanks are not allowed (write for example 4k)");
    bad(units_parse_size, " 4k", "' 4k' is not a size: blanks are not allowed (write for example 4k)");
    bad(units_parse_size, "4k ", "'4k ' is not a size: blanks are not allowed (write for example 4k)");
    bad(units_parse_size, "k", "'k' is not a size: it does not begin with a digit (write for example 4k)");
    bad(units_parse_size, "4\033[m", "'4\\x1B[m' is not a size: unexpected '\\x1B[m' after the number");
}

static void size_overflow(void **state) {
    static const char *const texts[] = {
        "18446744073709551616", "16384p", "18014398509481984k", "99999999999999999999999999999999999999999999999999",
        "340282366920938463463374607431768211457", "18446744073709551615k"
    };

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        uint64_t value;
        struct err err;
        assert_int_equal(units_parse_size(texts[i], &value, &err), -1);
        assert_non_null(strstr(err.msg, "too large (at most 18446744073709551615)"));
    }
    good(units_parse_size, "18014398509481983k", UINT64_MAX - 1023);
}

static void times(void **state) {
    (void)state;
    good(units_parse_time, "30", 30 * SEC);
    good(units_parse_time, "0", 0);
    good(units_parse_time, "10s", 10 * SEC);
    good(units_parse_time, "5m", 300 * SEC);
    good(units_parse_time, "5M", 300 * SEC);
    good(units_parse_time, "1h", 3600 * SEC);
    good(units_parse_time, "1d", 86400 * SEC);
    good(units_parse_time, "250ms", SEC / 4);
    good(units_parse_time, "250msec", SEC / 4);
    good(units_parse_time, "100us", 100000);
    good(units_parse_time, "100usec", 100000);
    good(units_parse_time, "50ns", 50);
    good(units_parse_time, "106751d", 106751 * (86400 * SEC));
    good(units_parse_time, "9223372036854775807ns", INT64_MAX);
}

static void times_refused(void **state) {
    (void)state;
    bad(units_parse_time, "10min",
        "'10min' is not a time: unknown unit 'min' (known: ns, us, ms, s, m, h, d; write 10m)");
    bad(units_parse_time, "2sec", "'2sec' is not a time: unknown unit 'sec' (known: ns, us, ms, s, m, h, d; write 2s)");
    bad(units_parse_time, "3hours",
        "'3hours' is not a time: unknown unit 'hours' (known: ns, us, ms, s, m, h, d; write 3h)");
    bad(units_parse_time, "3k", "'3k' is not a time: unknown unit 'k' (known: ns, us, ms, s, m, h, d)");
    bad(units_parse_time, "1.5s", "'1.5s' is not a time: fractions are not allowed (write 1500ms)");
    bad(units_parse_time, "1.5min", "'1.5min' is not a time: fractions are not allowed (write 90s)");
    bad(units_parse_time, "1.0000000001s",
        "'1.0000000001s' is not a time: fractions are not allowed (write a whole number)");
    bad(units_parse_time, "0.5ns", "'0.5ns' is not a time: fractions are not allowed (write a whole number)");
    bad(units_parse_time, "", "'' is not a time: it is empty (write for example 30s)");
    bad(units_parse_time, "-5s", "'-5s' is not a time: signs are not allowed (write for example 30s)");
    bad(units_parse_time, "5 s", "'5 s' is not a time: blanks are not allowed (write for example 30s)");
    bad(units_parse_time, "106752d", "'106752d' is not a time: too large (at most 106751d)");
    bad(units_parse_time, "9223372036854775808ns",
        "'9223372036854775808ns' is not a time: too large (at most 106751d)");
    bad(units_parse_time, "9223372036854775807d",
        "'9223372036854775807d' is not a time: too large (at most 106751d)");
}

static void uints(void **state) {
    (void)state;
    good(units_parse_uint, "0", 0);
    good(units_parse_uint, "64", 64);
    good(units_parse_uint, "18446744073709551615", UINT64_MAX);
    bad(units_parse_uint, "18446744073709551616",
        "'18446744073709551616' is not a whole number: too large (at most 18446744073709551615)");
    bad(units_parse_uint, "4k", "'4k' is not a whole number: 'k' after the number; no unit is allowed here "
                                "(plain decimal digits only; write 4096)");
    bad(units_parse_uint, "0x10", "'0x10' is not a whole number: 'x10' after the number; no unit is allowed here "
                                  "(plain decimal digits only)");
    bad(units_parse_uint, "1.5", "'1.5' is not a whole number: fractions are not allowed (write a whole number)");
    bad(units_parse_uint, "", "'' is not a whole number: it is empty (write for example 32)");
    bad(units_parse_uint, "-1", "'-1' is not a whole number: signs are not allowed (write for example 32)");
}

static void bools(void **state) {
    static const char *const yes[] = { "1", "yes", "true", "on", "Yes", "TRUE" };
    static const char *const no[] = { "0", "no", "false", "off", "No", "OFF" };
    static const char *const neither[] = { "", "2", "y", "yes ", "00", "tru", "oui" };
    struct err err;
    int value;

    (void)state;
    for (unsigned i = 0; i < 6; i++) {
        value = 7;
        assert_int_equal(units_parse_bool(yes[i], &value, &err), 0);
        assert_int_equal(value, 1);
        assert_int_equal(units_parse_bool(no[i], &value, &err), 0);
        assert_int_equal(value, 0);
    }
    for (unsigned i = 0; i < 7; i++) {
        value = 7;
        assert_int_equal(units_parse_bool(neither[i], &value, &err), -1);
        assert_int_equal(value, 7);
    }
    assert_string_equal(err.msg, "'oui' is neither yes nor no (write 1, yes, true, on, or 0, no, false, off)");
}

static void exact_texts(void **state) {
    char b[40];

    (void)state;
    assert_string_equal(units_size(b, sizeof(b), 0), "0");
    assert_string_equal(units_size(b, sizeof(b), 512), "512");
    assert_string_equal(units_size(b, sizeof(b), 1536), "1536");
    assert_string_equal(units_size(b, sizeof(b), 4096), "4k");
    assert_string_equal(units_size(b, sizeof(b), 1536 * MIB), "1536m");
    assert_string_equal(units_size(b, sizeof(b), 4 * GIB), "4g");
    assert_string_equal(units_size(b, sizeof(b), TIB), "1t");
    assert_string_equal(units_size(b, sizeof(b), 16383 * PIB), "16383p");
    assert_string_equal(units_size(b, sizeof(b), 8000000ull * 512), "4096000000");
    assert_string_equal(units_size(b, sizeof(b), UINT64_MAX), "18446744073709551615");
    assert_string_equal(units_time(b, sizeof(b), 0), "0s");
    assert_string_equal(units_time(b, sizeof(b), 10 * SEC), "10s");
    assert_string_equal(units_time(b, sizeof(b), 90 * SEC), "90s");
    assert_string_equal(units_time(b, sizeof(b), 300 * SEC), "5m");
    assert_string_equal(units_time(b, sizeof(b), 3600 * SEC), "1h");
    assert_string_equal(units_time(b, sizeof(b), 2 * 86400 * SEC), "2d");
    assert_string_equal(units_time(b, sizeof(b), 250 * SEC / 1000), "250ms");
    assert_string_equal(units_time(b, sizeof(b), 1500000), "1500us");
    assert_string_equal(units_time(b, sizeof(b), 1500001), "1500001ns");
    assert_string_equal(units_time(b, 4, 1500001), "150"); /* never beyond the buffer */
}

static void exact_texts_parse_back(void **state) {
    struct rng rng;
    char b[40];

    (void)state;
    rng_seed(&rng, 1);
    for (unsigned i = 0; i < 20000; i++) {
        uint64_t v = rng_next(&rng) >> rng_below(&rng, 64);
        v = v >> (i % 51) << (i % 51);
        good(units_parse_size, units_size(b, sizeof(b), v), v);
        v &= INT64_MAX;
        good(units_parse_time, units_time(b, sizeof(b), v), v);
        v = v % 1000000 * (i % 3 ? 60 * SEC : 1000000);
        good(units_parse_time, units_time(b, sizeof(b), v), v);
    }
}

static void size_for_people(void **state) {
    static const struct { uint64_t bytes; const char *want; } cases[] = {
        { 0, "0 B" }, { 999, "999 B" }, { 1000, "0.977 KiB" }, { 1023, "0.999 KiB" }, { 1024, "1.00 KiB" },
        { 10 * KIB, "10.0 KiB" }, { 100 * KIB, "100 KiB" }, { 999 * KIB, "999 KiB" }, { 1000 * KIB, "0.977 MiB" },
        { MIB, "1.00 MiB" }, { MIB - 1, "1.00 MiB" }, { 4096000000u, "3.81 GiB" }, { 5 * TIB, "5.00 TiB" },
        { 2 * PIB, "2.00 PiB" }, { UINT64_MAX, "16.0 EiB" }
    };
    char b[40];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(units_size_human(b, sizeof(b), cases[i].bytes), cases[i].want);
}

static void duration_for_people(void **state) {
    static const struct { uint64_t ns; const char *want; } cases[] = {
        { 0, "0 ns" }, { 999, "999 ns" }, { 1499, "1 us" }, { 999499, "999 us" }, { 999500, "1 ms" },
        { 250 * SEC / 1000, "250 ms" }, { 999499999, "999 ms" }, { 999500000, "1 s" }, { 12 * SEC, "12 s" },
        { 59 * SEC + SEC / 2 - 1, "59 s" }, { 59 * SEC + SEC / 2, "1 min" }, { 270 * SEC, "4 min 30 s" },
        { 3599 * SEC + SEC / 2, "1 h" }, { 4320 * SEC, "1 h 12 min" }, { 3600 * SEC + 29 * SEC, "1 h" },
        { 3600 * SEC + 30 * SEC, "1 h 1 min" }, { 86399 * SEC, "1 d" }, { 90000 * SEC, "1 d 1 h" },
        { 213503 * (86400 * SEC) + 23 * (3600 * SEC), "213503 d 23 h" }, { UINT64_MAX, "213504 d" }
    };
    char b[40];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(units_duration_human(b, sizeof(b), cases[i].ns), cases[i].want);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes),
        cmocka_unit_test(sizes_refused),
        cmocka_unit_test(size_overflow),
        cmocka_unit_test(times),
        cmocka_unit_test(times_refused),
        cmocka_unit_test(uints),
        cmocka_unit_test(bools),
        cmocka_unit_test(exact_texts),
        cmocka_unit_test(exact_texts_parse_back),
        cmocka_unit_test(size_for_people),
        cmocka_unit_test(duration_for_people),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
