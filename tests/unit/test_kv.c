/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/kv.h"

static void keeps_types_and_order(void **state) {
    struct kv kv = { 0 };

    (void)state;
    kv_uint(&kv, "rtmax", 1048576);
    kv_real(&kv, "rtt", 0.25);
    kv_bool(&kv, "dpofua", true);
    kv_text(&kv, "alua", "%s/%d", "active", 1);
    assert_int_equal(kv.n, 4);
    assert_string_equal(kv.items[0].key, "rtmax");
    assert_int_equal(kv.items[0].type, KV_UINT);
    assert_int_equal(kv.items[0].u, 1048576);
    assert_int_equal(kv.items[1].type, KV_REAL);
    assert_true(kv.items[1].real == 0.25);
    assert_int_equal(kv.items[2].type, KV_BOOL);
    assert_int_equal(kv.items[2].u, 1);
    assert_int_equal(kv.items[3].type, KV_TEXT);
    assert_string_equal(kv.items[3].text, "active/1");
    kv_free(&kv);
    assert_int_equal(kv.n, 0);
    assert_null(kv.items);
    kv_free(&kv);
}

static void setting_again_replaces_in_place(void **state) {
    struct kv kv = { 0 };

    (void)state;
    kv_text(&kv, "a", "first");
    kv_uint(&kv, "b", 2);
    kv_text(&kv, "a", "<%s>", kv_find(&kv, "a")->text); /* from the value that it replaces */
    assert_string_equal(kv.items[0].text, "<first>");
    kv_uint(&kv, "a", 7);
    assert_int_equal(kv.n, 2);
    assert_int_equal(kv.items[0].type, KV_UINT);
    assert_int_equal(kv.items[0].u, 7);
    assert_null(kv.items[0].text);
    kv_free(&kv);
}

static void finding(void **state) {
    struct kv kv = { 0 };

    (void)state;
    assert_null(kv_find(&kv, "a"));
    assert_int_equal(kv_get_uint(&kv, "a", 42), 42);
    kv_uint(&kv, "a", 0);
    kv_text(&kv, "t", "7");
    kv_bool(&kv, "b", true);
    assert_int_equal(kv_get_uint(&kv, "a", 42), 0);
    assert_int_equal(kv_get_uint(&kv, "t", 42), 42); /* no number */
    assert_int_equal(kv_get_uint(&kv, "b", 42), 42);
    assert_null(kv_find(&kv, "aa"));
    assert_null(kv_find(&kv, ""));
    kv_free(&kv);
}

static void grows(void **state) {
    struct kv kv = { 0 };
    char key[16];

    (void)state;
    for (unsigned i = 0; i < 300; i++) {
        snprintf(key, sizeof(key), "k%u", i);
        kv_uint(&kv, key, i);
    }
    assert_int_equal(kv.n, 300);
    for (unsigned i = 0; i < 300; i++) {
        snprintf(key, sizeof(key), "k%u", i);
        assert_int_equal(kv_get_uint(&kv, key, 999), i);
    }
    kv_free(&kv);
}

static void long_keys_are_cut_alike(void **state) {
    struct kv kv = { 0 };
    char key[101];

    (void)state;
    memset(key, 'k', 100);
    key[100] = '\0';
    kv_uint(&kv, key, 1);
    kv_uint(&kv, key, 2);
    assert_int_equal(kv.n, 1);
    assert_int_equal(strlen(kv.items[0].key), sizeof(kv.items[0].key) - 1);
    assert_int_equal(kv_get_uint(&kv, key, 0), 2);
    kv_free(&kv);
}

static void merging_adds_numbers_only(void **state) {
    struct kv a = { 0 }, b = { 0 };

    (void)state;
    kv_uint(&a, "ios", 10);
    kv_uint(&a, "mixed", 1);
    kv_real(&a, "real", 0.5);
    kv_text(&a, "text", "old");
    kv_bool(&a, "flag", true);
    kv_uint(&b, "ios", 32);
    kv_real(&b, "mixed", 0.5);
    kv_uint(&b, "real", 2);
    kv_text(&b, "text", "100%% new");
    kv_bool(&b, "flag", true);
    kv_uint(&b, "fresh", 3);
    kv_merge_sum(&a, &b);
    assert_int_equal(kv_get_uint(&a, "ios", 0), 42);
    assert_true(kv_find(&a, "mixed")->real == 1.5);
    assert_int_equal(kv_find(&a, "mixed")->type, KV_REAL);
    assert_true(kv_find(&a, "real")->real == 2.5);
    assert_string_equal(kv_find(&a, "text")->text, "100% new");
    assert_int_equal(kv_find(&a, "flag")->u, 1); /* not 2 */
    assert_int_equal(kv_get_uint(&a, "fresh", 0), 3);
    assert_int_equal(b.n, 6);
    kv_merge_sum(&b, &b);
    assert_int_equal(kv_get_uint(&b, "ios", 0), 64);
    assert_string_equal(kv_find(&b, "text")->text, "100% new");
    kv_free(&a);
    kv_free(&b);
}

static void copy_is_deep(void **state) {
    struct kv a = { 0 }, b = { 0 };

    (void)state;
    kv_text(&a, "t", "%s", "50% full %s");
    kv_uint(&a, "u", 5);
    kv_real(&a, "r", 0.125);
    kv_bool(&a, "b", true);
    kv_uint(&b, "gone", 1);
    kv_copy(&b, &a);
    kv_text(&a, "t", "changed");
    assert_int_equal(b.n, 4);
    assert_int_equal(kv_get_uint(&b, "u", 0), 5);
    assert_true(kv_find(&b, "r")->real == 0.125);
    assert_int_equal(kv_find(&b, "b")->type, KV_BOOL);
    assert_int_equal(kv_find(&b, "b")->u, 1);
    assert_string_equal(kv_find(&b, "t")->text, "50% full %s");
    assert_null(kv_find(&b, "gone"));
    kv_copy(&b, &b);
    assert_int_equal(b.n, 4);
    kv_free(&a);
    kv_free(&b);
}

static void test_gauges_are_not_added_up(void **state) {
    (void)state;
    struct kv a = {0}, b = {0};
    kv_gauge(&a, "tcp_rcv_wnd", 65535);
    kv_gauge(&b, "tcp_rcv_wnd", 131070);
    kv_gauge(&b, "tcp_min_rtt_us", 7);
    kv_merge_sum(&a, &b);
    kv_merge_sum(&a, &b);
    assert_int_equal(kv_get_uint(&a, "tcp_rcv_wnd", 0), 131070);
    assert_int_equal(kv_get_uint(&a, "tcp_min_rtt_us", 0), 7);
    kv_free(&a);
    kv_free(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_types_and_order),
        cmocka_unit_test(setting_again_replaces_in_place),
        cmocka_unit_test(finding),
        cmocka_unit_test(grows),
        cmocka_unit_test(long_keys_are_cut_alike),
        cmocka_unit_test(merging_adds_numbers_only),
        cmocka_unit_test(copy_is_deep),
        cmocka_unit_test(test_gauges_are_not_added_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
