/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/rng.h"

/* The published sequence of splitmix64 for the seed 1234567. */
static void mix_is_splitmix64(void **state) {
    static const uint64_t want[] = {
        6457827717110365317u, 3203168211198807973u, 9817491932198370423u, 4593380528125082431u, 16408922859458223821u
    };

    (void)state;
    for (uint64_t i = 0; i < 5; i++) assert_int_equal(rng_mix(1234567 + i * 0x9e3779b97f4a7c15u), want[i]);
}

static void next_is_xoshiro256starstar(void **state) {
    static const uint64_t want[] = {
        11520u, 0u, 1509978240u, 1215971899390074240u, 1216172134540287360u, 607988272756665600u
    };
    struct rng rng = { { 1, 2, 3, 4 } };

    (void)state;
    for (unsigned i = 0; i < sizeof(want) / sizeof(want[0]); i++) assert_int_equal(rng_next(&rng), want[i]);
}

static void seeding(void **state) {
    struct rng a, b, c;

    (void)state;
    rng_seed(&a, 1234567);
    assert_int_equal(a.s[0], 6457827717110365317u);
    assert_int_equal(a.s[3], 4593380528125082431u);
    rng_seed(&b, 1234567);
    rng_seed(&c, 1234568);
    assert_int_equal(rng_next(&a), rng_next(&b));
    assert_int_not_equal(rng_next(&a), rng_next(&c));
    rng_seed(&a, 0);
    assert_true((a.s[0] | a.s[1] | a.s[2] | a.s[3]) != 0);
}

static void below_stays_below(void **state) {
    static const uint64_t bounds[] = { 1, 2, 3, 7, 100, 1u << 20, 0x100000001u, UINT64_MAX / 2 + 2, UINT64_MAX };
    struct rng rng;

    (void)state;
    rng_seed(&rng, 1);
    for (unsigned b = 0; b < sizeof(bounds) / sizeof(bounds[0]); b++)
        for (unsigned i = 0; i < 2000; i++) assert_true(rng_below(&rng, bounds[b]) < bounds[b]);
}

/* At two thirds of the range a plain modulus would favour the lower half two to one, and a plain multiplication the
 * even numbers. */
static void below_has_no_bias(void **state) {
    const uint64_t bound = UINT64_MAX / 3 * 2;
    const unsigned n = 30000;
    unsigned low = 0, even = 0;
    struct rng rng;

    (void)state;
    rng_seed(&rng, 2);
    for (unsigned i = 0; i < n; i++) {
        uint64_t r = rng_below(&rng, bound);
        low += r < bound / 2;
        even += r % 2 == 0;
    }
    assert_in_range(low, n / 2 - 600, n / 2 + 600); /* seven standard deviations */
    assert_in_range(even, n / 2 - 600, n / 2 + 600);
}

static void below_is_uniform(void **state) {
    unsigned count[10] = { 0 };
    struct rng rng;
    double chi = 0;

    (void)state;
    rng_seed(&rng, 3);
    for (unsigned i = 0; i < 100000; i++) count[rng_below(&rng, 10)]++;
    for (unsigned i = 0; i < 10; i++) chi += ((double)count[i] - 10000) * ((double)count[i] - 10000) / 10000;
    assert_true(chi < 33.7); /* 9 degrees of freedom, p = 0.0001 */
}

static void fill_writes_exactly_what_it_is_told(void **state) {
    unsigned char buf[40];
    struct rng rng;

    (void)state;
    for (size_t len = 0; len <= 32; len++) {
        unsigned untouched = 0;

        rng_seed(&rng, len);
        memset(buf, 0xa5, sizeof(buf));
        rng_fill(&rng, buf + 1, len);
        assert_int_equal(buf[0], 0xa5);
        assert_int_equal(buf[len + 1], 0xa5);
        for (size_t i = 1; i <= len; i++) untouched += buf[i] == 0xa5;
        assert_true(untouched <= 2);
    }
}

static void fill_is_the_stream_and_differs_every_time(void **state) {
    uint64_t a[4], b[4];
    struct rng rng, twin;

    (void)state;
    rng_seed(&rng, 9);
    twin = rng;
    rng_fill(&rng, a, sizeof(a));
    for (unsigned i = 0; i < 4; i++) assert_int_equal(a[i], rng_next(&twin));
    rng_fill(&rng, b, sizeof(b));
    assert_memory_not_equal(a, b, sizeof(a));
}

/* Every byte value about as often as any other: 64 KiB of it do not compress. */
static void fill_has_full_entropy(void **state) {
    static unsigned char buf[65536];
    unsigned count[256] = { 0 };
    struct rng rng;

    (void)state;
    rng_seed(&rng, 10);
    rng_fill(&rng, buf, sizeof(buf));
    for (size_t i = 0; i < sizeof(buf); i++) count[buf[i]]++;
    for (unsigned i = 0; i < 256; i++) assert_in_range(count[i], 256 - 112, 256 + 112);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mix_is_splitmix64),
        cmocka_unit_test(next_is_xoshiro256starstar),
        cmocka_unit_test(seeding),
        cmocka_unit_test(below_stays_below),
        cmocka_unit_test(below_has_no_bias),
        cmocka_unit_test(below_is_uniform),
        cmocka_unit_test(fill_writes_exactly_what_it_is_told),
        cmocka_unit_test(fill_is_the_stream_and_differs_every_time),
        cmocka_unit_test(fill_has_full_entropy),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
