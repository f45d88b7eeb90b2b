/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "result/json.h"
#include "result/view.h"
#include "tests/unit/madeup.h"

/* As a reader of a saved result sees it. */
static json_t *saved(json_t *j) {
    assert_non_null(j);
    char *text = json_dumps(j, JSON_ENCODE_ANY);
    json_error_t error;
    assert_non_null(text);
    json_decref(j);
    j = json_loads(text, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &error);
    if (!j) fail_msg("%s in %s", error.text, text);
    free(text);
    return j;
}

static void test_numbers_that_are_none(void **state) {
    (void)state;
    const double bad[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < 3; i++) {
        json_t *j = saved(json_of_double(bad[i]));
        assert_true(json_is_null(j));
        json_decref(j);
    }
    json_t *j = saved(json_of_double(0.5));
    assert_true(json_real_value(j) == 0.5);
    json_decref(j);
    j = saved(json_of_uint(UINT64_MAX));
    assert_true(json_is_null(j));
    json_decref(j);
    j = saved(json_of_uint(INT64_MAX));
    assert_true(json_integer_value(j) == INT64_MAX);
    json_decref(j);
}

static void test_text_from_outside(void **state) {
    (void)state;
    json_t *j = saved(json_of_text("quote \" backslash \\ newline \n gr\xc3\xbc\xc3\x9f"));
    assert_string_equal(json_string_value(j), "quote \" backslash \\ newline \n gr\xc3\xbc\xc3\x9f");
    json_decref(j);
    j = saved(json_of_text("latin \xfc and cut \xc3"));
    assert_string_equal(json_string_value(j), "latin \\xFC and cut \\xC3");
    json_decref(j);
    j = saved(json_of_text(NULL));
    assert_true(json_is_null(j));
    json_decref(j);
    json_t *object = json_object();
    assert_int_equal(json_of_put(object, "key \xff", json_true()), 0);
    object = saved(object);
    assert_true(view_true(object, "key \\xFF"));
    json_decref(object);
}

static void test_facts(void **state) {
    (void)state;
    struct kv kv = {0};
    kv_uint(&kv, "rtmax", 1048576);
    kv_real(&kv, "share", NAN);
    kv_bool(&kv, "nodelay", true);
    kv_text(&kv, "export", "/vol%d", 1);
    json_t *j = saved(json_of_kv(&kv));
    assert_int_equal(json_object_size(j), 4);
    assert_int_equal(view_uint(j, "rtmax"), 1048576);
    assert_true(json_is_null(view_at(j, "share")));
    assert_true(view_true(j, "nodelay"));
    assert_string_equal(view_text(j, "export"), "/vol1");
    json_decref(j);
    kv_free(&kv);
}

static void test_percentiles_need_samples(void **state) {
    (void)state;
    static const struct {
        unsigned n;
        const char *last;
        unsigned known;
    } cases[] = {
        {0, NULL, 0},   {19, NULL, 0},   {20, "50", 1},   {99, "50", 1},
        {100, "90", 2}, {1000, "99", 3}, {9999, "99", 3}, {10000, "99.9", 4},
    };
    static const char *const names[] = {"50", "90", "99", "99.9", "99.99"};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct hist *h = malloc(sizeof *h);
        hist_init(h);
        for (unsigned i = 0; i < cases[c].n; i++) hist_record(h, 1000 + i);
        json_t *j = saved(json_of_hist(h)), *p = view_at(j, "percentiles");
        unsigned known = 0;
        assert_int_equal(json_object_size(p), 5);
        for (size_t i = 0; i < 5; i++) {
            int64_t ns;
            double wanted;
            sscanf(names[i], "%lf", &wanted);
            const json_t *v = json_object_get(p, names[i]);
            assert_non_null(v);
            assert_int_equal(json_is_integer(v), hist_percentile(h, wanted, &ns));
            if (json_is_integer(v)) {
                known++;
                assert_int_equal(json_integer_value(v), ns);
            } else {
                assert_true(json_is_null(v));
            }
        }
        assert_int_equal(known, cases[c].known);
        if (cases[c].last) assert_true(json_is_integer(json_object_get(p, cases[c].last)));
        json_decref(j);
        free(h);
    }
}

static void test_histogram_adds_up(void **state) {
    (void)state;
    struct hist *h = malloc(sizeof *h);
    hist_init(h);
    uint64_t v = 3;
    for (unsigned i = 0; i < 5000; i++, v = v * 7 % 1000003) hist_record(h, (int64_t)(v * 100));
    hist_record(h, INT64_MAX / 4); /* outside of the buckets */
    json_t *j = saved(json_of_hist(h)), *pair;
    uint64_t sum = 0, last = 0;
    size_t i;
    json_array_foreach(view_at(j, "histogram"), i, pair) {
        uint64_t lower = (uint64_t)json_integer_value(json_array_get(pair, 0));
        json_int_t count = json_integer_value(json_array_get(pair, 1));
        assert_int_equal(json_array_size(pair), 2);
        assert_true(count > 0);
        assert_true(i == 0 || lower > last);
        last = lower;
        sum += (uint64_t)count;
    }
    assert_int_equal(view_uint(j, "n"), 5001);
    assert_int_equal(view_uint(j, "above"), 1);
    assert_int_equal(sum + view_uint(j, "above"), 5001);
    assert_int_equal(view_uint(j, "max"), INT64_MAX / 4);
    assert_true(view_number(j, "min") == (double)h->min);
    json_decref(j);
    free(h);
}

static void test_empty_histogram_claims_nothing(void **state) {
    (void)state;
    struct hist *h = malloc(sizeof *h);
    hist_init(h);
    json_t *j = saved(json_of_hist(h));
    static const char *const unknown[] = {"min", "mean", "stddev", "max"};
    for (size_t i = 0; i < 4; i++) assert_true(json_is_null(view_at(j, unknown[i])));
    assert_int_equal(view_uint(j, "n"), 0);
    assert_int_equal(json_array_size(view_at(j, "histogram")), 0);
    json_decref(j);
    free(h);
}

static void test_run(void **state) {
    (void)state;
    struct record *r = madeup_run("8k \"mix\"", "nfs", 2, 1000, 4 * NS_PER_MS);
    r->flush_ns = 7;
    r->op[IO_FLUSH].ios = 2;
    hist_record(&r->op[IO_FLUSH].clat, 100);
    hist_record(&r->op[IO_FLUSH].clat, 300);
    r->tail = (struct record_tail){.ios = 64, .longest_ns = 9 * NS_PER_MS, .drain_ns = 5 * NS_PER_MS};
    r->submit_ns = NS_PER_SEC / 4;
    kv_uint(&r->protocol, "commits", 12);
    json_t *j = saved(json_of_record(r));
    assert_string_equal(view_text(j, "pattern"), "8k \"mix\"");
    assert_true(view_text_is(j, "target", "nfs") && view_text_is(j, "status", "ok"));
    assert_true(json_is_null(view_at(j, "error")));
    assert_int_equal(view_uint(j, "round"), 2);
    assert_int_equal(view_uint(j, "flush_ns"), 7);
    assert_true(view_number(j, "read/iops") == 1000 && view_number(j, "total/iops") == 2000);
    assert_true(view_number(j, "total/bytes_per_second") == 2000 * 8192.0);
    assert_int_equal(view_uint(j, "total/lat_ns/n"), 2000);
    assert_int_equal(view_uint(j, "write/clat_ns/n"), 1000);
    assert_true(view_number(j, "total/lat_ns/mean") == 4e6);
    assert_int_equal(view_uint(j, "flush/ios"), 2);
    assert_true(view_number(j, "flush/lat_ns/mean") == 200);
    assert_int_equal(view_uint(j, "tail/longest_ns"), 9 * NS_PER_MS);
    assert_true(view_number(j, "cpu/ns_per_io") == 10000 && view_number(j, "cpu/percent") == 2);
    assert_true(view_number(j, "cpu/host_percent") == 25);
    assert_true(view_number(j, "submit_percent") == 25);
    assert_int_equal(view_uint(j, "protocol/commits"), 12);
    assert_true(view_number(j, "protocol/wire_ios_per_io") == 1);
    assert_true(view_text_is(j, "durability", "claims-stable") && view_text_is(j, "cache", "asis"));
    json_t *mark = json_array_get(view_at(j, "fingerprint"), 2);
    assert_int_equal(json_integer_value(json_array_get(mark, 0)), 2);
    assert_string_equal(json_string_value(json_array_get(mark, 1)), "0000000000002002");
    json_decref(j);
    record_free(r);
}

static void test_run_that_says_little(void **state) {
    (void)state;
    struct record *r = record_new("p", "t");
    r->status = RUN_LOST;
    snprintf(r->error, sizeof r->error, "connection refused");
    json_t *j = saved(json_of_record(r));
    static const char *const unknown[] = {"total/iops",
                                          "holes",
                                          "cpu/ns_per_io",
                                          "cpu/percent",
                                          "cpu/host_percent",
                                          "durability",
                                          "entropy",
                                          "protocol/wire_ios_per_io",
                                          "littles_law/deviation",
                                          "submit_percent"};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        if (!json_is_null(view_at(j, unknown[i]))) fail_msg("%s is not null", unknown[i]);
    assert_true(view_text_is(j, "error", "connection refused") && view_text_is(j, "status", "lost"));
    json_decref(j);
    record_free(r);
}

/* What an engine does not know is not all of the time. */
static void test_unknown_share_of_the_window(void **state) {
    (void)state;
    struct record *r = madeup_run("p", "t", 1, 100, 1000);
    static const double totals[] = {NAN, 0.25, 9};
    r->n_tracks = 1;
    r->track[0] = (struct record_track){.name = "command_window_limited_ns", .cumulative = true};
    for (unsigned i = 0; i < 3; i++) {
        r->track[0].total = totals[i] * (double)r->window_ns;
        json_t *j = saved(json_of_record(r)), *percent = view_at(j, "protocol/command_window_limited_percent");
        if (i == 0) assert_true(json_is_null(percent));
        else assert_true(json_number_value(percent) == (i == 1 ? 25 : 100));
        json_decref(j);
    }
    record_free(r);
}

/* What the other side had twice was not lost; and R2Ts by the write. */
static void test_derived(void **state) {
    (void)state;
    struct record *r = madeup_run("p", "t", 1, 100, 1000);
    static const struct { const char *name; bool cumulative; double value; } tracks[] = {
        {"tcp_retransmits", true, 50}, {"tcp_dsacks", true, 10}, {"tcp_data_segments_out", true, 8000},
        {"tcp_out_of_order", true, 30}, {"tcp_data_segments_in", true, 1000}, {"r2t_waits", true, 800},
        {"tcp_min_rtt_ns", false, 50}};
    for (r->n_tracks = 0; r->n_tracks < sizeof tracks / sizeof *tracks; r->n_tracks++) {
        struct record_track *t = &r->track[r->n_tracks];
        *t = (struct record_track){.cumulative = tracks[r->n_tracks].cumulative, .last = tracks[r->n_tracks].value,
                                   .total = tracks[r->n_tracks].value};
        snprintf(t->name, sizeof t->name, "%s", tracks[r->n_tracks].name);
    }
    r->stall.ns = r->window_ns / 4;
    r->stall.workers = 1;
    json_t *j = saved(json_of_record(r));
    assert_true(view_number(j, "protocol/tcp_lost_segments") == 40 && view_number(j, "protocol/tcp_lost_percent") == 0.5);
    assert_true(view_number(j, "protocol/tcp_out_of_order_percent") == 3);
    assert_true(view_number(j, "protocol/r2t_waits_per_write") == 8 && view_number(j, "protocol/r2t_ns_per_write") == 400);
    assert_true(view_number(j, "stall/percent") == 25);
    assert_true(json_is_null(view_at(j, "standstill")));
    json_decref(j);
    r->standstill = (struct record_standstill){.ns = 5, .longest_ns = 3, .at = 7, .times = 2};
    j = saved(json_of_record(r));
    assert_int_equal(view_uint(j, "standstill/ns"), 5);
    assert_int_equal(view_uint(j, "standstill/longest_ns"), 3);
    assert_int_equal(view_uint(j, "standstill/at_ns"), 7);
    assert_int_equal(view_uint(j, "standstill/times"), 2);
    json_decref(j);
    r->n_tracks = 0;
    r->stall.ns = 0;
    j = saved(json_of_record(r));
    assert_null(view_at(j, "protocol/tcp_lost_segments"));
    assert_null(view_at(j, "protocol/r2t_waits_per_write"));
    assert_true(json_is_null(view_at(j, "stall")));
    json_decref(j);
    record_free(r);
}

static void test_latency_with_a_rate(void **state) {
    (void)state;
    struct record *r = madeup_run("p", "t", 1, 100, 1000);
    json_t *j = saved(json_of_record(r));
    assert_true(json_equal(view_at(j, "total/lat_ns"), view_at(j, "total/clat_ns")));
    json_decref(j);
    r->has_due = true;
    for (int i = 0; i < 100; i++) hist_record(&r->op[IO_READ].lat, 5000);
    j = saved(json_of_record(r));
    assert_true(view_number(j, "read/lat_ns/mean") == 5000 && view_number(j, "read/clat_ns/mean") == 1000);
    assert_true(view_true(j, "rate_limited"));
    json_decref(j);
    record_free(r);
}

static void test_littles_law(void **state) {
    (void)state;
    struct record *r = madeup_run("p", "t", 1, 1000, 4 * NS_PER_MS); /* 2000 x 4 ms = 8 outstanding */
    r->depth_requested = 8;
    json_t *j = saved(json_of_record(r));
    assert_true(fabs(view_number(j, "littles_law/depth") - 8) < 1e-9);
    assert_true(fabs(view_number(j, "littles_law/deviation")) < 1e-9);
    assert_true(fabs(view_number(j, "littles_law/allowed") - 0.034) < 1e-9);
    json_decref(j);
    r->depth_little = 9;
    j = saved(json_of_record(r));
    assert_true(fabs(view_number(j, "littles_law/deviation") - 0.125) < 1e-9);
    json_decref(j);
    /* One I/O that hung at the end explains more where little was out on the average. */
    r->tail.longest_ns = 40 * NS_PER_MS;
    r->depth_achieved = 2;
    j = saved(json_of_record(r));
    assert_true(fabs(view_number(j, "littles_law/allowed") - (0.03 + 0.04 * 4)) < 1e-9);
    json_decref(j);
    record_free(r);
}

static void test_errors_by_kind(void **state) {
    (void)state;
    struct record *r = madeup_run("p", "t", 1, 10, 1000);
    madeup_fail(r, "NFS3ERR_IO", "server says \x1b[2J", 3);
    kinds_note(&r->errors, "timeout", "never counted");
    json_t *j = saved(json_of_record(r));
    assert_int_equal(json_object_size(view_at(j, "errors")), 1);
    assert_int_equal(view_uint(j, "errors/NFS3ERR_IO"), 3);
    assert_string_equal(view_text(j, "error_texts/NFS3ERR_IO"), "server says \x1b[2J");
    assert_int_equal(view_uint(j, "failed"), 3);
    json_decref(j);
    record_free(r);
}

static void test_series(void **state) {
    (void)state;
    struct record *r = madeup_run("p", "t", 1, 10, 1000);
    struct record_point a = {.ios = {3, 1}, .bytes = {30, 10}, .lat_sum = 100, .lat_max = 60},
                        b = {.ios = {1, 0}, .lat_sum = 20, .lat_max = 70, .errors = 2};
    r->series_interval_ns = NS_PER_SEC;
    r->n_points = 2;
    r->points = calloc(2, sizeof *r->points);
    record_point_add(&r->points[0], &a);
    record_point_add(&r->points[0], &b);
    json_t *j = saved(json_of_record(r));
    assert_int_equal(json_integer_value(json_array_get(view_at(j, "series/read_ios"), 0)), 4);
    assert_int_equal(json_integer_value(json_array_get(view_at(j, "series/write_bytes"), 0)), 10);
    assert_true(json_real_value(json_array_get(view_at(j, "series/lat_mean_ns"), 0)) == 24);
    assert_int_equal(json_integer_value(json_array_get(view_at(j, "series/lat_max_ns"), 0)), 70);
    assert_int_equal(json_integer_value(json_array_get(view_at(j, "series/errors"), 0)), 2);
    assert_int_equal(json_array_size(view_at(j, "series/read_ios")), 2);
    assert_true(json_is_null(json_array_get(view_at(j, "series/lat_mean_ns"), 1)));
    json_decref(j);
    record_free(r);
}

static void test_view_of_anything(void **state) {
    (void)state;
    json_t *j = json_pack("{s:{s:s}, s:[i]}", "a", "b", "text", "list", 1);
    assert_null(view_at(j, "a/b/c"));
    assert_null(view_at(NULL, "a"));
    assert_true(isnan(view_number(j, "a/b")) && isnan(view_number(j, "list")));
    assert_int_equal(view_uint(j, "a/b"), 0);
    assert_null(view_text(j, "list"));
    assert_false(view_true(j, "a"));
    assert_true(view_text_is(j, "a/b", "text"));
    json_decref(j);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_that_are_none),
        cmocka_unit_test(test_text_from_outside),
        cmocka_unit_test(test_facts),
        cmocka_unit_test(test_percentiles_need_samples),
        cmocka_unit_test(test_histogram_adds_up),
        cmocka_unit_test(test_empty_histogram_claims_nothing),
        cmocka_unit_test(test_run),
        cmocka_unit_test(test_run_that_says_little),
        cmocka_unit_test(test_unknown_share_of_the_window),
        cmocka_unit_test(test_derived),
        cmocka_unit_test(test_latency_with_a_rate),
        cmocka_unit_test(test_littles_law),
        cmocka_unit_test(test_errors_by_kind),
        cmocka_unit_test(test_series),
        cmocka_unit_test(test_view_of_anything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
