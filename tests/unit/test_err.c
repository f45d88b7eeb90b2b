/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/err.h"
#include "base/io.h"

static void set_stores_and_fails(void **state) {
    struct err err;

    (void)state;
    assert_int_equal(err_set(&err, STATUS_TARGET, "%s:%d", "host", 2049), -1);
    assert_int_equal(err.status, STATUS_TARGET);
    assert_string_equal(err.msg, "host:2049");
}

static void prefix_goes_in_front(void **state) {
    struct err err;

    (void)state;
    err_set(&err, STATUS_IO, "no space");
    assert_int_equal(err_prefix(&err, "file %d", 3), -1);
    assert_int_equal(err_prefix(&err, "nfs"), -1);
    assert_string_equal(err.msg, "nfs: file 3: no space");
    assert_int_equal(err.status, STATUS_IO);
}

static void arguments_may_be_the_message_itself(void **state) {
    struct err err;

    (void)state;
    err_set(&err, STATUS_USAGE, "inner");
    err_set(&err, STATUS_TARGET, "outer <%s> %s", err.msg, err.msg);
    assert_string_equal(err.msg, "outer <inner> inner");
    err_prefix(&err, "%s", err.msg);
    assert_string_equal(err.msg, "outer <inner> inner: outer <inner> inner");
}

static void long_messages_are_cut_and_say_so(void **state) {
    struct err err;
    char text[3000];

    (void)state;
    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    err_set(&err, STATUS_USAGE, "%s", text);
    assert_int_equal(strlen(err.msg), sizeof(err.msg) - 1);
    assert_string_equal(err.msg + sizeof(err.msg) - 5, "a...");
    err_prefix(&err, "p");
    assert_int_equal(strlen(err.msg), sizeof(err.msg) - 1);
    assert_memory_equal(err.msg, "p: aaa", 6);
    err_prefix(&err, "%s", text);
    assert_string_equal(err.msg + sizeof(err.msg) - 5, "a...");
}

static void exact_fit_is_not_cut(void **state) {
    struct err err;
    char text[sizeof(err.msg)];

    (void)state;
    memset(text, 'b', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    err_set(&err, STATUS_USAGE, "%s", text);
    assert_string_equal(err.msg, text);
}

static void cut_leaves_no_half_character(void **state) {
    struct err err;
    char text[3000];

    (void)state;
    for (size_t shift = 0; shift < 3; shift++) {
        memset(text, 'x', shift);
        for (size_t i = shift; i + 3 < sizeof(text); i += 3) memcpy(text + i, "\xe2\x82\xac", 4);
        err_set(&err, STATUS_USAGE, "%s", text);
        size_t n = strlen(err.msg);
        assert_string_equal(err.msg + n - 3, "...");
        assert_memory_equal(err.msg + n - 6, "\xe2\x82\xac", 3);
        assert_true(n >= sizeof(err.msg) - 3);
    }
}

static void worse_status_wins(void **state) {
    static const enum status order[] = {
        STATUS_INTERRUPTED, STATUS_TARGET, STATUS_IO, STATUS_CRITERIA, STATUS_USAGE, STATUS_OK
    };

    (void)state;
    for (size_t i = 0; i < 6; i++) {
        for (size_t k = i; k < 6; k++) {
            assert_int_equal(status_worse(order[i], order[k]), order[i]);
            assert_int_equal(status_worse(order[k], order[i]), order[i]);
        }
    }
}

static void names_as_in_results(void **state) {
    (void)state;
    assert_string_equal(io_op_name(IO_READ), "read");
    assert_string_equal(io_op_name(IO_WRITE), "write");
    assert_string_equal(io_op_name(IO_FLUSH), "flush");
    assert_string_equal(io_sync_name(SYNC_NONE), "none");
    assert_string_equal(io_sync_name(SYNC_DATASTORE), "datastore");
    assert_string_equal(io_sync_name(SYNC_DSYNC), "dsync");
    assert_string_equal(io_sync_name(SYNC_SYNC), "sync");
    assert_string_equal(io_durability_name(DURABILITY_NO_WRITES), "");
    assert_string_equal(io_durability_name(DURABILITY_VOLATILE), "volatile");
    assert_string_equal(io_durability_name(DURABILITY_CLAIMS_STABLE), "claims-stable");
    assert_string_equal(io_durability_name(DURABILITY_FLUSHED), "flushed");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(set_stores_and_fails),
        cmocka_unit_test(prefix_goes_in_front),
        cmocka_unit_test(arguments_may_be_the_message_itself),
        cmocka_unit_test(long_messages_are_cut_and_say_so),
        cmocka_unit_test(exact_fit_is_not_cut),
        cmocka_unit_test(cut_leaves_no_half_character),
        cmocka_unit_test(worse_status_wins),
        cmocka_unit_test(names_as_in_results),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
