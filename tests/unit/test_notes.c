/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Notes that say the same with other figures become one. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "report/notes.h"

static void expect(struct notes *n, unsigned width, const char *wanted) {
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    notes_print(n, width, out);
    fclose(out);
    assert_string_equal(text, wanted);
    free(text);
    notes_free(n);
}

static void test_ranges(void **state) {
    (void)state;
    struct notes *n = notes_new();
    assert_false(notes_any(n));
    assert_int_equal(notes_add(n, "blocks for 55.9 % of it"), 1);
    assert_int_equal(notes_add(n, "something else"), 2);
    assert_int_equal(notes_add(n, "blocks for 57.9 % of it"), 1);
    assert_int_equal(notes_add(n, "blocks for 7.0 % of it"), 1);
    assert_int_equal(notes_add(n, "something else"), 2);
    assert_true(notes_any(n));
    assert_true(notes_has(n, "something else"));
    assert_false(notes_has(n, "blocks for 57.9 % of it"));
    assert_true(notes_has(n, "blocks for 7.0 to 57.9 % of it"));
    expect(n, 0, "[1] blocks for 7.0 to 57.9 % of it\n[2] something else\n");
}

/* Digits that are no figures: names, addresses, versions. */
static void test_what_is_no_figure(void **state) {
    (void)state;
    static const char *const pairs[][2] = {
        {"NFS3ERR_IO", "NFS4ERR_IO"},           {"at 10.0.0.1 it", "at 10.0.0.2 it"}, {"loop0 is", "loop1 is"},
        {"port 10.0.0.1:3260", "port 10.0.0.1:3261"}, {"1k", "2k"},                   {"/dev/3", "/dev/4"},
        {"3.00 MiB", "3.00 KiB"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct notes *n = notes_new();
        assert_int_equal(notes_add(n, pairs[i][0]), 1);
        assert_int_equal(notes_add(n, pairs[i][1]), 2);
        notes_free(n);
    }
}

/* A sentence of too many ranges says nothing. */
static void test_not_too_many(void **state) {
    (void)state;
    struct notes *n = notes_new();
    assert_int_equal(notes_add(n, "1 of 2, 3 of 4"), 1);
    assert_int_equal(notes_add(n, "2 of 3, 4 of 4"), 1);
    assert_int_equal(notes_add(n, "2 of 3, 4 of 5"), 2);
    expect(n, 18, "[1] 1 to 2 of 2 to\n    3, 3 to 4 of 4\n[2] 2 of 3, 4 of 5\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_what_is_no_figure),
        cmocka_unit_test(test_not_too_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
