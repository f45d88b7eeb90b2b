/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hist.h"
#include "base/rng.h"

#define LIMIT (1ll << HIST_MAX_BITS)

static struct hist *fresh(void) {
    struct hist *h = malloc(sizeof(*h));

    assert_non_null(h);
    hist_init(h);
    return h;
}

static void buckets_tile_the_range(void **state) {
    uint64_t next = 0;

    (void)state;
    for (unsigned i = 0; i < HIST_BUCKETS; i++) {
        uint64_t lower = hist_lower(i), width = hist_width(i);
        assert_int_equal(lower, next);
        assert_int_equal(hist_index(lower), i);
        assert_int_equal(hist_index(lower + width - 1), i);
        if (lower < (1u << HIST_SUB_BITS))
            assert_int_equal(width, 1);
        else
            assert_true(width << HIST_SUB_BITS <= lower);
        next = lower + width;
    }
    assert_int_equal(next, LIMIT);
}

static void midpoint_is_within_one_in_256(void **state) {
    struct rng rng;

    (void)state;
    rng_seed(&rng, 1);
    for (unsigned e = 0; e < HIST_MAX_BITS; e++) {
        for (unsigned k = 0; k < 2000; k++) {
            uint64_t v = (1ull << e) + rng_below(&rng, 1ull << e);
            unsigned i = hist_index(v);
            uint64_t mid = hist_lower(i) + hist_width(i) / 2, off = mid > v ? mid - v : v - mid;

            assert_true(i < HIST_BUCKETS);
            assert_true(hist_lower(i) <= v && v - hist_lower(i) < hist_width(i));
            assert_true(off * 256 <= v);
        }
    }
}

static void empty(void **state) {
    struct hist *h = fresh(), *other = fresh();
    int64_t ns = 77;

    (void)state;
    assert_int_equal(h->n, 0);
    assert_true(hist_mean(h) == 0 && hist_stddev(h) == 0);
    assert_false(hist_percentile(h, 50, &ns));
    assert_int_equal(ns, 77);
    hist_record(other, 5);
    hist_merge(other, h);
    assert_int_equal(other->n, 1);
    assert_int_equal(other->min, 5);
    assert_int_equal(other->max, 5);
    hist_merge(h, other);
    assert_memory_equal(h, other, sizeof(*h));
    free(h);
    free(other);
}

static void sums_are_exact(void **state) {
    struct hist *h = fresh();

    (void)state;
    hist_record(h, 1000003);
    hist_record(h, 17);
    hist_record(h, 123456789012);
    assert_int_equal(h->n, 3);
    assert_int_equal(h->sum, 123456789012 + 1000003 + 17);
    assert_int_equal(h->min, 17);
    assert_int_equal(h->max, 123456789012);
    assert_true(hist_mean(h) == (double)(123456789012 + 1000003 + 17) / 3);
    assert_int_equal(h->below + h->above, 0);
    free(h);
}

static uint64_t in_buckets(const struct hist *h) {
    uint64_t n = 0;

    for (unsigned i = 0; i < HIST_BUCKETS; i++) n += h->bucket[i];
    return n;
}

static void nothing_is_clipped_silently(void **state) {
    struct hist *h = fresh();
    int64_t ns;

    (void)state;
    hist_record(h, LIMIT - 1);
    assert_int_equal(h->above, 0);
    assert_int_equal(h->bucket[HIST_BUCKETS - 1], 1);
    hist_record(h, LIMIT);
    hist_record(h, 3 * LIMIT);
    assert_int_equal(h->above, 2);
    assert_int_equal(h->n, 3);
    assert_int_equal(h->max, 3 * LIMIT);
    assert_int_equal(h->sum, 5 * LIMIT - 1);
    hist_record(h, -5);
    hist_record(h, INT64_MIN);
    assert_int_equal(h->below, 2);
    assert_int_equal(h->n, 5);
    assert_int_equal(h->min, 0);
    assert_int_equal(h->sum, 5 * LIMIT - 1);
    assert_int_equal(h->bucket[0], 2);
    assert_int_equal(in_buckets(h) + h->above, h->n);
    for (unsigned i = 0; i < 20; i++) hist_record(h, 2 * LIMIT);
    assert_true(hist_percentile(h, 50, &ns)); /* beyond the buckets: the maximum, which is no understatement */
    assert_int_equal(ns, 3 * LIMIT);
    free(h);
}

/* Against the definition, in integers: n^2 variance = n sum(d^2) - sum(d)^2, d from the first value. */
static void check_stddev(const int64_t *v, size_t n, double tolerance) {
    struct hist *h = fresh();
    __int128 sum = 0, sq = 0;

    for (size_t i = 0; i < n; i++) {
        __int128 d = (__int128)v[i] - v[0];
        hist_record(h, v[i]);
        sum += d;
        sq += d * d;
    }
    double want = sqrt((double)(sq * (int64_t)n - sum * sum)) / (double)n;
    assert_true(fabs(hist_stddev(h) - want) <= tolerance * want);
    free(h);
}

static void many_is_as_often_one(void **state) {
    static const int64_t values[] = {0, 1, 127, 128, 4711, 1 << 30, LIMIT - 1, LIMIT, 5 * LIMIT, -1, -4711};
    struct hist *one = fresh(), *many = fresh();

    (void)state;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        for (size_t k = 0; k < i + 1; k++) hist_record(one, values[i]);
        hist_record_many(many, values[i], i + 1);
    }
    assert_memory_equal(one, many, sizeof(*one));
    assert_int_equal(many->n, 66);
    free(one);
    free(many);
}

static void stddev_of_a_few(void **state) {
    static const int64_t two[] = { 2, 4 }, same[] = { 123456789, 123456789, 123456789 };
    static const int64_t eight[] = { 2, 4, 4, 4, 5, 5, 7, 9 };
    struct hist *h = fresh();

    (void)state;
    hist_record(h, 5);
    assert_true(hist_stddev(h) == 0);
    free(h);
    check_stddev(two, 2, 1e-15);
    check_stddev(same, 3, 0);
    check_stddev(eight, 8, 1e-15);
}

/* A spread of a few ns around seventy minutes: any sum of squares in doubles would have lost it. */
static void stddev_does_not_cancel(void **state) {
    enum { N = 20000 };
    int64_t *v = malloc(N * sizeof(*v));
    struct rng rng;

    (void)state;
    assert_non_null(v);
    rng_seed(&rng, 4);
    for (size_t i = 0; i < N; i++) v[i] = LIMIT - 1000 + (int64_t)rng_below(&rng, 7);
    check_stddev(v, N, 1e-9);
    v[0] = 1; /* and with an outlier first, or last */
    check_stddev(v, N, 1e-9);
    v[N - 1] = 50000;
    check_stddev(v, N, 1e-9);
    for (size_t i = 0; i < N; i++) v[i] = 100000 + (int64_t)rng_below(&rng, 50000);
    check_stddev(v, N, 1e-9);
    free(v);
}

static void squares_do_not_overflow_before_the_sum(void **state) {
    struct hist *h = fresh();

    (void)state;
    hist_record(h, INT64_MAX);
    hist_record(h, 0);
    assert_true(fabs(hist_stddev(h) / 0x1p62 - 1) < 1e-12);
    hist_init(h);
    hist_record(h, INT64_MAX);
    hist_record(h, INT64_MAX);
    assert_int_equal(h->sum, UINT64_MAX - 1);
    assert_true(hist_stddev(h) == 0);
    free(h);
}

static void merge_equals_direct_recording(void **state) {
    struct hist *all = fresh(), *part[4], *merged = fresh();
    struct rng rng;

    (void)state;
    for (unsigned i = 0; i < 4; i++) part[i] = fresh();
    rng_seed(&rng, 5);
    for (unsigned i = 0; i < 40000; i++) {
        int64_t v = (int64_t)(rng_next(&rng) >> (16 + rng_below(&rng, 48)));
        if (i % 1000 == 0) v = -v;
        hist_record(all, v);
        hist_record(part[rng_below(&rng, 3)], v); /* part[3] stays empty */
    }
    for (unsigned i = 0; i < 4; i++) hist_merge(merged, part[i]);
    assert_true(all->above > 0 && all->below > 0);
    assert_memory_equal(merged, all, sizeof(*all)); /* also the sum of squares, so also the deviation */
    for (unsigned i = 0; i < 4; i++) free(part[i]);
    free(all);
    free(merged);
}

static void percentiles_need_ten_samples_beyond(void **state) {
    static const struct { double p; uint64_t n; } rule[] = {
        { 50, 20 }, { 75, 40 }, { 90, 100 }, { 95, 200 }, { 99, 1000 }, { 99.5, 2000 }, { 99.9, 10000 },
        { 99.95, 20000 }, { 99.99, 100000 }, { 99.999, 1000000 }, { 99.9999, 10000000 }, { 99.99999, 100000000 },
        { 25, 14 }, { 1, 11 }
    };
    struct hist *h = fresh();
    int64_t ns;

    (void)state;
    for (size_t i = 0; i < sizeof(rule) / sizeof(rule[0]); i++) {
        hist_init(h);
        hist_record(h, 1);
        h->n = h->bucket[1] = rule[i].n - 1;
        ns = 77;
        assert_false(hist_percentile(h, rule[i].p, &ns));
        assert_int_equal(ns, 77);
        h->n = h->bucket[1] = rule[i].n;
        assert_true(hist_percentile(h, rule[i].p, &ns));
        assert_int_equal(ns, 1);
    }
    h->n = h->bucket[1] = UINT64_MAX; /* and the arithmetic holds for any n */
    assert_true(hist_percentile(h, 99.9999, &ns));
    assert_false(hist_percentile(h, 0, &ns));
    assert_false(hist_percentile(h, 100, &ns));
    assert_false(hist_percentile(h, -1, &ns));
    assert_false(hist_percentile(h, 101, &ns));
    assert_false(hist_percentile(h, NAN, &ns));
    assert_false(hist_percentile(h, 99.99999999, &ns));
    free(h);
}

/* 1 .. 100 are exact buckets: the p-th percentile of them is p. */
static void percentile_is_the_nearest_rank(void **state) {
    struct hist *h = fresh();
    int64_t ns;

    (void)state;
    for (int v = 1; v <= 100; v++) hist_record(h, v);
    for (int p = 1; p <= 90; p++) {
        assert_true(hist_percentile(h, p, &ns));
        assert_int_equal(ns, p);
    }
    assert_true(hist_percentile(h, 50.000001, &ns)); /* the 51st begins right after */
    assert_int_equal(ns, 51);
    free(h);
}

static void rank_is_exact_where_doubles_are_not(void **state) {
    struct hist *h = fresh();
    int64_t ns;

    (void)state;
    h->n = 10000;
    h->min = 1;
    h->max = 2;
    h->bucket[1] = 9990; /* exactly the first 99.9 % */
    h->bucket[2] = 10;
    assert_true(hist_percentile(h, 99.9, &ns));
    assert_int_equal(ns, 1);
    h->bucket[1] = 9989;
    h->bucket[2] = 11;
    assert_true(hist_percentile(h, 99.9, &ns));
    assert_int_equal(ns, 2);
    free(h);
}

static void percentile_stays_within_the_extremes(void **state) {
    struct hist *h = fresh();
    int64_t ns;

    (void)state;
    for (int i = 0; i < 100; i++) hist_record(h, 1000001);
    assert_true(hist_percentile(h, 50, &ns));
    assert_int_equal(ns, 1000001); /* not the midpoint of its bucket */
    for (int i = 0; i < 100; i++) hist_record(h, 5000000);
    assert_true(hist_percentile(h, 90, &ns));
    assert_in_range(ns, 5000000 - 5000000 / 256, 5000000);
    free(h);
}

static int compare(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static void percentiles_of_random_values(void **state) {
    enum { N = 20000 };
    static const double ps[] = { 1, 10, 50, 90, 99, 99.9, 99.95 };
    int64_t *v = malloc(N * sizeof(*v)), ns;
    struct hist *h = fresh();
    struct rng rng;

    (void)state;
    assert_non_null(v);
    rng_seed(&rng, 6);
    for (size_t i = 0; i < N; i++) {
        v[i] = (int64_t)(rng_next(&rng) >> (22 + rng_below(&rng, 30)));
        hist_record(h, v[i]);
    }
    qsort(v, N, sizeof(*v), compare);
    for (size_t i = 0; i < sizeof(ps) / sizeof(ps[0]); i++) {
        int64_t want = v[(size_t)ceil(ps[i] * N / 100 - 1e-6) - 1];
        assert_true(hist_percentile(h, ps[i], &ns));
        assert_true(llabs(ns - want) * 256 <= want);
    }
    free(v);
    free(h);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buckets_tile_the_range),
        cmocka_unit_test(midpoint_is_within_one_in_256),
        cmocka_unit_test(empty),
        cmocka_unit_test(sums_are_exact),
        cmocka_unit_test(nothing_is_clipped_silently),
        cmocka_unit_test(many_is_as_often_one),
        cmocka_unit_test(stddev_of_a_few),
        cmocka_unit_test(stddev_does_not_cancel),
        cmocka_unit_test(squares_do_not_overflow_before_the_sum),
        cmocka_unit_test(merge_equals_direct_recording),
        cmocka_unit_test(percentiles_need_ten_samples_beyond),
        cmocka_unit_test(percentile_is_the_nearest_rank),
        cmocka_unit_test(rank_is_exact_where_doubles_are_not),
        cmocka_unit_test(percentile_stays_within_the_extremes),
        cmocka_unit_test(percentiles_of_random_values),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
