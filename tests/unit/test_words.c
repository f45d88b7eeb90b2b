/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "cli/secrets.h"
#include "cli/words.h"

#define WORDS(...) (char *[]){__VA_ARGS__}, sizeof((char *[]){__VA_ARGS__}) / sizeof(char *)

static const char *name_of(const char *url, struct err *err) {
    if (!strncmp(url, "nfs:", 4)) return "nfs";
    if (!strncmp(url, "iscsi:", 6)) return "iscsi";
    if (!strncmp(url, "/dev/", 5)) return "block";
    if (!strncmp(url, "null:", 5)) return "null";
    if (!strncmp(url, "nfs2:", 5)) err_set(err, STATUS_USAGE, "left out of this build");
    return url[0] == '/' || !strncmp(url, "file:", 5) ? "file" : NULL;
}

static struct words sorted(char *const *list, size_t n) {
    struct words w;
    struct err err;
    if (words_sort(list, n, &w, &err) || words_label(&w, name_of, &err)) fail_msg("%s", err.msg);
    return w;
}

static void test_targets_and_patterns(void **state) {
    (void)state;
    struct words w = sorted(WORDS("vmtn", "nfs://h/e/p", "my.ini", "/dev/sdb", "lab/other.INI", "fc=/dev/sdc",
                                  "null:?size=1g", "file:/x.ini", "/etc/patterns/own.ini", "a.b_c-1=/mnt/x"));
    assert_int_equal(w.n_patterns, 4);
    assert_string_equal(w.pattern[0], "vmtn");
    assert_string_equal(w.pattern[1], "my.ini");
    assert_string_equal(w.pattern[2], "lab/other.INI");
    assert_string_equal(w.pattern[3], "/etc/patterns/own.ini");
    assert_int_equal(w.n_targets, 6);
    static const char *const labels[] = {"nfs", "block", "fc", "null", "file", "a.b_c-1"};
    static const char *const urls[] = {"nfs://h/e/p", "/dev/sdb", "/dev/sdc", "null:?size=1g", "file:/x.ini", "/mnt/x"};
    for (size_t i = 0; i < 6; i++) {
        assert_string_equal(w.target[i].label, labels[i]);
        assert_string_equal(w.target[i].url, urls[i]);
        assert_int_equal(w.target[i].label_is_own, i == 2 || i == 5);
    }
    words_free(&w);
}

static void test_automatic_labels(void **state) {
    (void)state;
    struct words w = sorted(WORDS("nfs://a/e/p", "nfs://b/e/p", "nfs-2=nfs://c/e/p", "nfs://d/e/p", "null:"));
    static const char *const labels[] = {"nfs", "nfs-3", "nfs-2", "nfs-4", "null"};
    for (size_t i = 0; i < 5; i++) assert_string_equal(w.target[i].label, labels[i]);
    words_free(&w);
}

/* A label that the user wrote is never given to another target, wherever it stands on the line. */
static void test_own_label_like_an_automatic_one(void **state) {
    (void)state;
    struct words w = sorted(WORDS("/dev/sda", "block=/dev/sdb"));
    assert_string_equal(w.target[0].label, "block-2");
    assert_string_equal(w.target[1].label, "block");
    words_free(&w);
}

static void test_same_label_twice(void **state) {
    (void)state;
    struct words w = sorted(WORDS("vms=nfs://a/e/1", "vms=nfs://a/e/2"));
    assert_string_equal(w.target[0].label, w.target[1].label);
    words_free(&w);
}

/* What is a label and what is a key: only the first '=' counts, and only before a target. */
static void test_equal_signs(void **state) {
    (void)state;
    struct words w = sorted(WORDS("nfs://h/e/p?nconnect=4", "x=nfs://h/e/p?a=b=c", "/mnt/a=b"));
    assert_string_equal(w.target[0].label, "nfs");
    assert_string_equal(w.target[1].label, "x");
    assert_string_equal(w.target[1].url, "nfs://h/e/p?a=b=c");
    assert_string_equal(w.target[2].url, "/mnt/a=b");
    words_free(&w);
}

static void expect_error(char *word, const char *part) {
    struct words w;
    struct err err = {.msg = ""};
    if (words_sort(&word, 1, &w, &err) == 0) fail_msg("%s is taken", word);
    assert_int_equal(err.status, STATUS_USAGE);
    if (!strstr(err.msg, part)) fail_msg("\"%s\" does not say \"%s\"", err.msg, part);
    words_free(&w);
}

static void test_words_that_are_nothing(void **state) {
    (void)state;
    expect_error("nfs:/host/x", "nfs:/host/x: a target begins with nfs://HOST/EXPORT/PATH");
    expect_error("NFS://host/x", "nfs://HOST/EXPORT/PATH");
    expect_error("iscsi:host", "iscsi://HOST/IQN/LUN");
    expect_error("fc=iscsi:host", "iscsi://HOST/IQN/LUN");
    expect_error("server:/export/x", "an NFS file is written as nfs://server");
    expect_error("smb://host/share", "no such kind of target");
    expect_error("iqn.2001-04.com.example:disk", "iscsi://HOST/IQN/LUN");
    expect_error("dev/sda", "did you mean /dev/sda?");
    expect_error("null", "did you mean null:?");
    expect_error("my label=/dev/sda", "a label has letters, digits");
    expect_error("=/dev/sda", "a label has letters, digits");
    expect_error("a23456789012345678901234567890123456789012345678901234567890123x=/dev/sda", "at most 63");
    expect_error("iodepth=32", "an option begins with --");
    expect_error("iodepth=32", "did you mean --iodepth=32?");
    expect_error("sdc", "did you mean /dev/sdc?");
    expect_error("nvme0n1p2", "did you mean /dev/nvme0n1p2?");
    expect_error("mpatha", "did you mean /dev/mapper/mpatha?");
    expect_error("fc=sdc", "did you mean fc=/dev/sdc?");
    expect_error("fc:/dev/sdc", "did you mean fc=/dev/sdc?");
    expect_error("fc:nfs://h/e/f", "did you mean fc=nfs://h/e/f?");
    expect_error("fc=filer", "no target stands behind the label");
    expect_error("x/y", "neither a target nor");
    expect_error("esc\x1b[2J/y", "esc\\x1B[2J");
}

static void test_errors_hold_no_password(void **state) {
    (void)state;
    struct words w;
    struct err err;
    char *words[] = {"iscsi:/user%sesame@host/iqn", "x y=iscsi://user%sesame@host/iqn/0", "foo://user%sesame@host/"};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(words_sort(&words[i], 1, &w, &err), -1);
        if (strstr(err.msg, "sesame")) fail_msg("%s", err.msg);
        words_free(&w);
    }
}

static void test_secrets_leave_argv(void **state) {
    (void)state;
    char a[] = "samedisk", b[] = "iscsi://user%sesame@host/iqn/0", c[] = "--set", d[] = "iscsi.password=sesame",
         e[] = "quick";
    char *argv[] = {a, b, c, d, e, NULL};
    char **copy = secrets_take(5, argv);
    assert_string_equal(copy[1], "iscsi://user%sesame@host/iqn/0");
    assert_string_equal(copy[3], "iscsi.password=sesame");
    assert_null(copy[5]);
    for (int i = 0; i < 5; i++) assert_null(strstr(argv[i], "sesame"));
    assert_string_equal(argv[4], "quick");
    secrets_free(5, copy);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_targets_and_patterns),
        cmocka_unit_test(test_automatic_labels),
        cmocka_unit_test(test_own_label_like_an_automatic_one),
        cmocka_unit_test(test_same_label_twice),
        cmocka_unit_test(test_equal_signs),
        cmocka_unit_test(test_words_that_are_nothing),
        cmocka_unit_test(test_errors_hold_no_password),
        cmocka_unit_test(test_secrets_leave_argv),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
