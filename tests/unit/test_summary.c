/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "result/summary.h"
#include "result/view.h"
#include "tests/unit/madeup_document.h"

#define NFS   0
#define ISCSI 1

struct pair {
    struct document *document;
    struct record *nfs, *iscsi;
};

static struct pair pair_of_runs(void) {
    struct pair p = {madeup_document(), madeup_run("p", "nfs", 1, 1000, 1000), madeup_run("p", "iscsi", 1, 1500, 1000)};
    struct madeup_pattern load = madeup_load();
    document_pattern(p.document, "p", madeup_keys, &load);
    return p;
}

/* The row of iscsi after both runs went in; new reference. */
static json_t *row_of_iscsi(struct pair p) {
    madeup_add(p.document, p.nfs);
    madeup_add(p.document, p.iscsi);
    json_t *summary = summary_make(document_json(p.document)), *row = json_array_get(summary, ISCSI);
    assert_int_equal(json_array_size(summary), 2);
    assert_true(view_text_is(row, "target", "iscsi"));
    json_incref(row);
    json_decref(summary);
    document_free(p.document);
    return row;
}

static void test_ratio(void **state) {
    (void)state;
    json_t *row = row_of_iscsi(pair_of_runs());
    assert_true(view_number(row, "ratio") == 1.5);
    assert_true(json_is_null(view_at(row, "not_comparable")));
    assert_true(json_is_null(view_at(row, "ratio_unranked")));
    assert_true(view_number(row, "iops/median") == 3000);
    assert_int_equal(view_uint(row, "rounds"), 1);
    json_decref(row);
}

/* The figures of other work have a ratio too, which is none to rank by. */
static void expect_reason(struct pair p, const char *reason, bool figures) {
    json_t *row = row_of_iscsi(p);
    assert_true(json_is_null(view_at(row, "ratio")));
    assert_true(figures ? view_number(row, "ratio_unranked") == 1.5 : json_is_null(view_at(row, "ratio_unranked")));
    assert_string_equal(view_text(row, "not_comparable"), reason);
    json_decref(row);
}

static void test_what_cannot_be_compared(void **state) {
    (void)state;
    struct pair p = pair_of_runs();
    p.iscsi->durability = DURABILITY_VOLATILE;
    expect_reason(p, "durability", true);

    p = pair_of_runs();
    madeup_fail(p.iscsi, "timeout", "no answer", 1);
    expect_reason(p, "I/O errors", false);

    p = pair_of_runs();
    madeup_fail(p.nfs, "timeout", "no answer", 1);
    expect_reason(p, "reference: I/O errors", false);

    p = pair_of_runs();
    p.iscsi->status = RUN_LOST;
    expect_reason(p, "target lost", false);

    p = pair_of_runs();
    p.iscsi->holes = 0.002;
    expect_reason(p, "holes", true);

    p = pair_of_runs();
    p.nfs->holes = 1;
    expect_reason(p, "reference: holes", true);

    p = pair_of_runs();
    p.iscsi->blocks_sampled = p.iscsi->zeros_sampled = p.nfs->blocks_sampled = 256;
    expect_reason(p, "zeros", true);

    p = pair_of_runs();
    p.iscsi->written.compress = 50;
    expect_reason(p, "data", true);

    p = pair_of_runs();
    p.iscsi->filled.known = p.nfs->filled.known = p.nfs->filled.zeros = true;
    expect_reason(p, "data", true);

    p = pair_of_runs();
    p.iscsi->mark[2]++;
    expect_reason(p, "not the same load", true);
}

static void test_the_shorter_run_decides_what_is_compared(void **state) {
    (void)state;
    struct pair p = pair_of_runs();
    p.iscsi->n_marks = 2; /* the slower target did not reach 2^2 I/Os */
    p.nfs->mark[2]++;
    json_t *row = row_of_iscsi(p);
    assert_true(view_number(row, "ratio") == 1.5);
    json_decref(row);
}

static void test_holes_do_not_matter_to_writes(void **state) {
    (void)state;
    struct pair p = pair_of_runs();
    p.nfs->op[IO_READ].ios = p.iscsi->op[IO_READ].ios = 0;
    p.nfs->holes = p.iscsi->holes = 0.5;
    json_t *row = row_of_iscsi(p);
    assert_true(view_number(row, "ratio") > 0);
    json_decref(row);
}

static void test_unknown_holes_are_no_holes(void **state) {
    (void)state;
    struct pair p = pair_of_runs();
    p.nfs->holes = p.iscsi->holes = NAN;
    json_t *row = row_of_iscsi(p);
    assert_true(view_number(row, "ratio") == 1.5);
    assert_true(json_is_null(view_at(row, "holes")));
    json_decref(row);
}

static json_t *four_rounds(const unsigned ios[4], enum run_status last) {
    struct document *d = madeup_document();
    struct madeup_pattern load = madeup_load();
    document_pattern(d, "p", madeup_keys, &load);
    for (unsigned i = 0; i < 4; i++) {
        struct record *r = madeup_run("p", "nfs", i + 1, ios[i], 1000 * (i + 1));
        if (i == 3) r->status = last;
        madeup_add(d, r);
    }
    json_t *summary = summary_make(document_json(d)), *row = json_array_get(summary, NFS);
    assert_int_equal(json_array_size(summary), 1); /* iscsi has no run: no row */
    json_incref(row);
    json_decref(summary);
    document_free(d);
    return row;
}

static void test_median_and_spread(void **state) {
    (void)state;
    const unsigned ios[] = {400, 100, 300, 250};
    json_t *row = four_rounds(ios, RUN_OK);
    assert_true(view_number(row, "iops/median") == 550 && view_number(row, "iops/min") == 200 &&
                view_number(row, "iops/max") == 800);
    assert_true(view_number(row, "lat_mean_ns/median") == 2500);
    assert_int_equal(view_uint(row, "max_ns"), 4000);
    assert_int_equal(view_uint(row, "rounds"), 4);
    json_decref(row);
}

static void test_cut_short_rounds_do_not_count(void **state) {
    (void)state;
    const unsigned ios[] = {400, 100, 300, 1};
    json_t *row = four_rounds(ios, RUN_INTERRUPTED);
    assert_int_equal(view_uint(row, "rounds"), 3);
    assert_true(view_number(row, "iops/median") == 600);
    assert_string_equal(view_text(row, "status"), "interrupted");
    json_decref(row);
}

static void test_percentile_of_every_round_or_none(void **state) {
    (void)state;
    const unsigned enough[] = {600, 600, 600, 600}, one_is_short[] = {600, 600, 600, 400};
    json_t *row = four_rounds(enough, RUN_OK);
    assert_true(view_number(row, "p99_ns/max") >= view_number(row, "p99_ns/median"));
    json_decref(row);
    row = four_rounds(one_is_short, RUN_OK);
    assert_true(json_is_null(view_at(row, "p99_ns")));
    json_decref(row);
}

static void test_an_interrupted_run_is_all_there_is(void **state) {
    (void)state;
    struct pair p = pair_of_runs();
    p.iscsi->status = RUN_INTERRUPTED;
    json_t *row = row_of_iscsi(p);
    assert_true(view_number(row, "iops/median") == 3000);
    assert_string_equal(view_text(row, "not_comparable"), "interrupted");
    json_decref(row);
}

static void test_max_has_the_tail(void **state) {
    (void)state;
    struct pair p = pair_of_runs();
    p.iscsi->tail = (struct record_tail){.ios = 1, .longest_ns = 12 * NS_PER_SEC};
    json_t *row = row_of_iscsi(p);
    assert_int_equal(view_uint(row, "max_ns"), 12 * NS_PER_SEC);
    json_decref(row);
}

static void test_weakest_durability(void **state) {
    (void)state;
    struct document *d = madeup_document();
    struct madeup_pattern load = madeup_load();
    document_pattern(d, "p", madeup_keys, &load);
    struct record *weak = madeup_run("p", "nfs", 1, 10, 1000);
    weak->durability = DURABILITY_VOLATILE;
    madeup_add(d, weak);
    madeup_add(d, madeup_run("p", "nfs", 2, 10, 1000));
    json_t *summary = summary_make(document_json(d));
    assert_string_equal(view_text(json_array_get(summary, 0), "durability"), "volatile");
    json_decref(summary);
    document_free(d);
}

static void test_reference_that_was_not_run(void **state) {
    (void)state;
    struct document *d = madeup_document();
    struct madeup_pattern load = madeup_load();
    document_pattern(d, "p", madeup_keys, &load);
    madeup_add(d, madeup_run("p", "iscsi", 1, 10, 1000));
    json_t *summary = summary_make(document_json(d));
    assert_string_equal(view_text(json_array_get(summary, 0), "not_comparable"), "the reference was not run");
    json_decref(summary);
    document_free(d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ratio),
        cmocka_unit_test(test_what_cannot_be_compared),
        cmocka_unit_test(test_the_shorter_run_decides_what_is_compared),
        cmocka_unit_test(test_holes_do_not_matter_to_writes),
        cmocka_unit_test(test_unknown_holes_are_no_holes),
        cmocka_unit_test(test_median_and_spread),
        cmocka_unit_test(test_cut_short_rounds_do_not_count),
        cmocka_unit_test(test_percentile_of_every_round_or_none),
        cmocka_unit_test(test_an_interrupted_run_is_all_there_is),
        cmocka_unit_test(test_max_has_the_tail),
        cmocka_unit_test(test_weakest_durability),
        cmocka_unit_test(test_reference_that_was_not_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
