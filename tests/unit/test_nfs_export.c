/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/nfs/nfs_export.h"
#include "backends/nfs/nfs_names.h"

static void normal(void **state) {
    static const struct { const char *in, *out; } good[] = {
        { "/a", "/a" }, { "/a/b/c", "/a/b/c" }, { "//a///b", "/a/b" }, { "/./a/./b", "/a/b" }, { "/...", "/..." },
        { "/a/.hidden", "/a/.hidden" },
    };
    static const char *const bad[] = { "", "/", "//", "/.", "/..", "/a/../b", "/a/..", "/a/b/", NULL };
    char out[NFS_PATH_MAX];
    struct err err;
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(nfsbe_path_normal(good[i].in, out, &err), 0);
        assert_string_equal(out, good[i].out);
    }
    for (size_t i = 0; bad[i]; i++) {
        assert_int_equal(nfsbe_path_normal(bad[i], out, &err), -1);
        assert_int_equal(err.status, STATUS_USAGE);
    }
    assert_int_equal(nfsbe_path_normal(NULL, out, &err), -1);
}

static void normal_limits(void **state) {
    char in[NFS_PATH_MAX + 8], out[NFS_PATH_MAX];
    struct err err;
    (void)state;
    memset(in, 'x', sizeof in);
    in[0] = '/';
    in[256] = '\0'; /* a name of 255 bytes */
    assert_int_equal(nfsbe_path_normal(in, out, &err), 0);
    in[256] = 'x';
    in[257] = '\0';
    assert_int_equal(nfsbe_path_normal(in, out, &err), -1);
    memset(in, 'x', sizeof in);
    for (size_t i = 0; i < sizeof in; i += 100) in[i] = '/';
    in[NFS_PATH_MAX - 1] = '\0';
    assert_int_equal(nfsbe_path_normal(in, out, &err), 0);
    assert_string_equal(out, in);
    in[NFS_PATH_MAX - 1] = 'x';
    in[NFS_PATH_MAX] = '\0';
    assert_int_equal(nfsbe_path_normal(in, out, &err), -1);
}

static int match(const char *const *list, const char *path, const char **rest) {
    struct nfsbe_exports e = { .n = 0 };
    for (size_t i = 0; list[i]; i++) assert_int_equal(nfsbe_exports_add(&e, list[i]), 0);
    int i = nfsbe_export_match(&e, path, rest);
    nfsbe_exports_free(&e);
    return i;
}

static void longest(void **state) {
    static const char *const list[] = { "/vol", "/vol/a", "/vol/ab", "/volume", "other/b", "/slash/", NULL };
    static const char *const root[] = { "/", "/vol", NULL };
    const char *rest = NULL;
    (void)state;
    assert_int_equal(match(list, "/vol/x", &rest), 0);
    assert_string_equal(rest, "x");
    assert_int_equal(match(list, "/vol/a/x/y", &rest), 1);
    assert_string_equal(rest, "x/y");
    assert_int_equal(match(list, "/vol/ab/x", &rest), 2);
    assert_int_equal(match(list, "/vol/abc", &rest), 0); /* not /vol/ab */
    assert_string_equal(rest, "abc");
    assert_int_equal(match(list, "/volume/x", &rest), 3);
    assert_int_equal(match(list, "/volumes/x", &rest), -1);
    assert_int_equal(match(list, "/other/b/x", &rest), -1); /* "other/b" is no path */
    assert_int_equal(match(list, "/slash/x", &rest), 5);
    assert_string_equal(rest, "x");
    assert_int_equal(match(list, "/vol/a", &rest), 1); /* the export itself */
    assert_string_equal(rest, "");
    assert_int_equal(match(root, "/x/y", &rest), 0);
    assert_string_equal(rest, "x/y");
    assert_int_equal(match(root, "/vol/y", &rest), 1);
    assert_int_equal(match((const char *const[]){ NULL }, "/x", &rest), -1);
}

static void words(void **state) {
    struct nfsbe_exports e = { .n = 0 };
    char buf[64], name[40];
    (void)state;
    assert_string_equal(nfsbe_exports_words(&e, buf, sizeof buf), "none");
    assert_int_equal(nfsbe_exports_add(&e, "/a"), 0);
    assert_int_equal(nfsbe_exports_add(&e, "/b\033[31m"), 0);
    assert_string_equal(nfsbe_exports_words(&e, buf, sizeof buf), "/a, /b\\x1B[31m");
    for (int i = 0; i < 500; i++) {
        snprintf(name, sizeof name, "/export-%d", i);
        assert_int_equal(nfsbe_exports_add(&e, name), 0);
    }
    nfsbe_exports_words(&e, buf, sizeof buf);
    assert_true(strlen(buf) < sizeof buf);
    assert_non_null(strstr(buf, " more"));
    nfsbe_exports_free(&e);
    assert_int_equal(e.n, 0);
}

static void too_many(void **state) {
    struct nfsbe_exports e = { .n = 0 };
    char name[40];
    (void)state;
    for (int i = 0; i < 3000; i++) assert_int_equal(nfsbe_exports_add(&e, "/x"), 0); /* the same one */
    assert_int_equal(e.n, 1);
    for (int i = 1; i < NFS_EXPORTS_MAX; i++) {
        snprintf(name, sizeof name, "/y%d", i);
        assert_int_equal(nfsbe_exports_add(&e, name), 0);
    }
    assert_int_equal(nfsbe_exports_add(&e, "/z"), -1);
    assert_int_equal(e.n, NFS_EXPORTS_MAX);
    nfsbe_exports_free(&e);
}

static void names(void **state) {
    char buf[40];
    (void)state;
    assert_string_equal(nfsbe_status_name(28, buf, sizeof buf), "NFS3ERR_NOSPC");
    assert_string_equal(nfsbe_status_name(10008, buf, sizeof buf), "NFS3ERR_JUKEBOX");
    assert_string_equal(nfsbe_status_name(4711, buf, sizeof buf), "NFS3ERR 4711");
    assert_string_equal(nfsbe_mount_name(13, buf, sizeof buf), "MNT3ERR_ACCES");
    assert_int_equal(nfsbe_status_errno(28), ENOSPC);
    assert_int_equal(nfsbe_status_errno(10008), EBUSY);
    assert_int_equal(nfsbe_status_errno(70), ESTALE);
    assert_int_equal(nfsbe_status_errno(4711), EIO);
    assert_non_null(strstr(nfsbe_status_hint(13), "squash"));
    assert_string_equal(nfsbe_status_hint(4711), "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(normal),   cmocka_unit_test(normal_limits), cmocka_unit_test(longest),
        cmocka_unit_test(words),    cmocka_unit_test(too_many),      cmocka_unit_test(names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
