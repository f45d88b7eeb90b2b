/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/kinds.h"

static void same_name_same_index(void **state) {
    struct kinds k = { 0 };

    (void)state;
    unsigned space = kinds_note(&k, "NFS3ERR_NOSPC", "no space left");
    unsigned timeout = kinds_note(&k, "timeout", NULL);
    assert_int_not_equal(space, timeout);
    assert_int_equal(kinds_note(&k, "NFS3ERR_NOSPC", "other words"), space);
    assert_int_equal(k.n, 2);
    assert_string_equal(k.kind[space].text, "no space left"); /* the first words stay */
    assert_string_equal(k.kind[timeout].name, "timeout");
    assert_string_equal(k.kind[timeout].text, "");
    assert_int_equal(k.kind[space].count, 0); /* counting is the engine's */
}

static void prefix_of_a_name_is_another(void **state) {
    struct kinds k = { 0 };

    (void)state;
    assert_int_equal(kinds_note(&k, "short read", ""), 0);
    assert_int_equal(kinds_note(&k, "short", ""), 1);
    assert_int_equal(kinds_note(&k, "short read", ""), 0);
}

static void fill(struct kinds *k, unsigned n) {
    char name[32];

    for (unsigned i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "kind %u", i);
        assert_int_equal(kinds_note(k, name, "t"), i);
    }
}

static void overflow_becomes_other(void **state) {
    struct kinds k = { 0 };

    (void)state;
    fill(&k, KINDS_MAX - 1);
    assert_int_equal(kinds_note(&k, "one more", "its words"), KINDS_MAX - 1);
    assert_int_equal(kinds_note(&k, "two more", "lost"), KINDS_MAX - 1);
    assert_int_equal(k.n, KINDS_MAX);
    assert_string_equal(k.kind[KINDS_MAX - 1].name, "other");
    assert_string_equal(k.kind[KINDS_MAX - 1].text, "one more: its words");
    assert_int_equal(kinds_note(&k, "kind 3", ""), 3);
}

static void long_words_are_cut(void **state) {
    struct kinds k = { 0 };
    char text[1000];

    (void)state;
    memset(text, 'w', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    assert_int_equal(kinds_note(&k, text, text), 0);
    assert_int_equal(kinds_note(&k, text, text), 0);
    assert_int_equal(strlen(k.kind[0].name), sizeof(k.kind[0].name) - 1);
    assert_int_equal(strlen(k.kind[0].text), sizeof(k.kind[0].text) - 1);
}

static void merging_adds_counts(void **state) {
    struct kinds a = { 0 }, b = { 0 };

    (void)state;
    a.kind[kinds_note(&a, "timeout", "a")].count = 3;
    b.kind[kinds_note(&b, "short read", "b")].count = 5;
    b.kind[kinds_note(&b, "timeout", "b")].count = 4;
    kinds_merge(&a, &b);
    assert_int_equal(a.n, 2);
    assert_int_equal(a.kind[0].count, 7);
    assert_string_equal(a.kind[0].text, "a");
    assert_int_equal(a.kind[1].count, 5);
    assert_string_equal(a.kind[1].name, "short read");
    assert_int_equal(b.kind[1].count, 4);
}

static void merging_loses_no_count_when_full(void **state) {
    struct kinds a = { 0 }, b = { 0 };
    uint64_t sum = 0;

    (void)state;
    fill(&a, KINDS_MAX - 1);
    for (unsigned i = 0; i < 10; i++) {
        char name[32];
        snprintf(name, sizeof(name), "new %u", i);
        b.kind[kinds_note(&b, name, "")].count = 1;
    }
    kinds_merge(&a, &b);
    for (unsigned i = 0; i < a.n; i++) sum += a.kind[i].count;
    assert_int_equal(sum, 10);
    assert_int_equal(a.kind[KINDS_MAX - 1].count, 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_name_same_index),
        cmocka_unit_test(prefix_of_a_name_is_another),
        cmocka_unit_test(overflow_becomes_other),
        cmocka_unit_test(long_words_are_cut),
        cmocka_unit_test(merging_adds_counts),
        cmocka_unit_test(merging_loses_no_count_when_full),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
