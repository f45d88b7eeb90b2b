/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pattern/ini.h"

/* All items of a text as one string: "[name]@line", "key=value@line", "key@line", then "!error". */
static void read_all(const char *text, size_t len, char *out, size_t size) {
    struct ini *ini = malloc(sizeof(*ini));
    struct ini_item item;
    struct err err;
    size_t at = 0;
    int rc;
    char *copy = malloc(len ? len : 1); /* exactly as long, so that a read beyond the end is seen */

    assert_non_null(ini);
    assert_non_null(copy);
    memcpy(copy, text, len);
    out[0] = '\0';
    rc = ini_open(ini, "f.ini", copy, len, &err) == 0 ? 1 : -1;
    while (rc > 0 && (rc = ini_next(ini, &item, &err)) > 0)
        at += (size_t)snprintf(out + at, size - at, "%s%s%s%s%s@%u ", item.section ? "[" : "", item.key,
                               item.section ? "]" : "", item.value ? "=" : "", item.value ? item.value : "", item.line);
    if (rc < 0) {
        assert_int_equal(err.status, STATUS_USAGE);
        snprintf(out + at, size - at, "!%s", err.msg);
    }
    free(copy);
    free(ini);
}

#define READS(text, expected)                              \
    do {                                                   \
        char out_[4096];                                   \
        read_all(text, sizeof(text) - 1, out_, sizeof(out_)); \
        assert_string_equal(out_, expected);               \
    } while (0)

static void sections_and_keys(void **state) {
    (void)state;
    READS("", "");
    READS("\n\n  \n\t\n", "");
    READS("[a]\nb=c\n", "[a]@1 b=c@2 ");
    READS("[a]\nb=c", "[a]@1 b=c@2 ");
    READS("[a]\r\nb=c\r\nd\r\n", "[a]@1 b=c@2 d@3 ");
    READS("  [ a b ]  \n\t b \t=  c d  \n", "[a b]@1 b=c d@2 ");
    READS("b=\nc==d\ne=f=g", "b=@1 c==d@2 e=f=g@3 ");
    READS("include x y.fio", "include x y.fio@1 ");
    READS("[x]\n\n\nlate=1", "[x]@1 late=1@4 ");
}

static void comments(void **state) {
    (void)state;
    READS("# a\n; b\n  # c\n\t; d\nk=v", "k=v@5 ");
    READS("k=v # c\nl=v ; c\nm=v\t#c\nbare # c\n", "k=v@1 l=v@2 m=v@3 bare@4 ");
    READS("k=a#b;c\n", "k=a#b;c@1 ");
    READS("k= # only a comment\n", "k=@1 ");
    READS("[a] # c\n[b]\t; c\n[c]   \n", "[a]@1 [b]@2 [c]@3 ");
    READS("k=v # [x]=y\n", "k=v@1 ");
}

static void iometer_names(void **state) {
    (void)state;
    READS("[Max Throughput-100%Read]", "[Max Throughput-100%Read]@1 ");
    READS("[4K; 100% Read; 0% random # 1]", "[4K; 100% Read; 0% random # 1]@1 ");
    READS("[\"a\" (b]", "[\"a\" (b]@1 ");
    READS("[[a]", "[[a]@1 ");
}

static void bad_lines(void **state) {
    (void)state;
    READS("[a]\n[b\n", "[a]@1 !f.ini:2: the ']' of '[b' is missing");
    READS("\n[]\n", "!f.ini:2: a section without a name");
    READS("[  ]", "!f.ini:1: a section without a name");
    READS("[a]b", "!f.ini:1: 'b' after the ']' of a section");
    READS("[a]#b", "!f.ini:1: '#b' after the ']' of a section");
    READS("[a] b ; c", "!f.ini:1: 'b ; c' after the ']' of a section");
    READS("[a]\nx=1\n =5", "[a]@1 x=1@2 !f.ini:3: no key before the '=' of '=5'");
}

static void no_text(void **state) {
    (void)state;
    READS("\xef\xbb\xbf[a]\n", "!f.ini:1: the file begins with a UTF-8 byte order mark; save it without one");
    READS("\xff\xfe[\0a\0", "!f.ini:1: the file is UTF-16; save it as UTF-8 without a byte order mark");
    READS("\xfe\xff\0[", "!f.ini:1: the file is UTF-16; save it as UTF-8 without a byte order mark");
    READS("[a]\nb=\0c\n", "[a]@1 !f.ini:2: byte 3 of the line is \\x00, so this is not a text file");
    READS("\x7f" "ELF", "!f.ini:1: byte 1 of the line is \\x7F, so this is not a text file");
    READS("a=1\rb=2\r", "!f.ini:1: byte 4 of the line is \\x0D, so this is not a text file with Unix or Windows line "
          "ends");
    READS("# \xc2\xa9 \xa9\nk=\xe2\x80\x93", "k=\xe2\x80\x93@2 ");
}

static void long_lines(void **state) {
    char *text = malloc(10001), out[9000];
    (void)state;
    assert_non_null(text);
    memset(text, 'x', 10001);
    text[0] = '\n';
    read_all(text, 10001, out, sizeof(out));
    assert_string_equal(out, "!f.ini:2: the line has 10000 characters; the most is 8192");
    text[1] = '#'; /* a comment is no excuse */
    read_all(text, 10001, out, sizeof(out));
    assert_string_equal(out, "!f.ini:2: the line has 10000 characters; the most is 8192");
    text[1] = 'x';
    read_all(text, INI_LINE + 1, out, sizeof(out));
    assert_int_equal(strlen(out), INI_LINE + strlen("@2 "));
    read_all(text, INI_LINE + 2, out, sizeof(out));
    assert_string_equal(out, "!f.ini:2: the line has 8193 characters; the most is 8192");
    free(text);
}

/* A name that would act upon the terminal is not repeated as it is. */
static void unsafe_names(void **state) {
    struct ini *ini = malloc(sizeof(*ini));
    struct ini_item item;
    struct err err;
    (void)state;
    assert_non_null(ini);
    assert_int_equal(ini_open(ini, "a\x1b[2Jb", "[", 1, &err), 0);
    assert_int_equal(ini_next(ini, &item, &err), -1);
    assert_string_equal(err.msg, "a\\x1B[2Jb:1: the ']' of '[' is missing");
    free(ini);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sections_and_keys), cmocka_unit_test(comments),   cmocka_unit_test(iometer_names),
        cmocka_unit_test(bad_lines),         cmocka_unit_test(no_text),    cmocka_unit_test(long_lines),
        cmocka_unit_test(unsafe_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
