/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "backends/backend.h"
#include "backends/local/path.h"

static bool built(const char *name) {
    for (const struct backend *const *b = backend_all(); *b; b++)
        if (!strcmp((*b)->name, name)) return true;
    return false;
}

/* The URL's backend, or, in a build that lacks it, an error that says so. */
static void is(const char *text, const char *name) {
    struct url url;
    struct err err = {0};
    if (url_parse(text, &url, &err) < 0) fail_msg("%s: %s", text, err.msg);
    const struct backend *b = backend_for_url(&url, &err);
    if (built(name)) {
        assert_non_null(b);
        assert_string_equal(b->name, name);
    } else {
        assert_null(b);
        assert_int_equal(err.status, STATUS_USAGE);
        assert_non_null(strstr(err.msg, "built without"));
        assert_non_null(strstr(err.msg, name));
    }
    url_free(&url);
}

static void by_url(void **state) {
    (void)state;
    is("null:", "null");
    is("null:?size=1g", "null");
    is("/dev/sda", "block");
    is("/dev/disk/by-id/x", "block");
    is("//dev///sda", "block");
    is("/x/../dev/./sda", "block");
    is("file:/dev/sda", "block");
    is("/device", "file");
    is("/dev/../home/x", "file");
    is("/mnt/dev/x", "file");
    is("file:/mnt/x?engine=threads", "file");
    is("nfs://host/export/file", "nfs");
    is("iscsi://host/iqn.2000-01.x:y/0", "iscsi");
}

static void unknown_schemes(void **state) {
    struct url url = {.text = (char *)"block:x", .scheme = "block"};
    struct err err = {0};
    (void)state;
    assert_null(backend_for_url(&url, &err)); /* the name of a backend, but no scheme */
    assert_non_null(strstr(err.msg, "unknown scheme"));
    strcpy(url.scheme, "smb");
    assert_null(backend_for_url(&url, &err));
    assert_int_equal(err.status, STATUS_USAGE);
    assert_non_null(strstr(err.msg, "smb"));
    assert_non_null(strstr(err.msg, "nfs://"));
}

/* What the core relies on without asking. */
static void tables_are_whole(void **state) {
    (void)state;
    for (const struct backend *const *p = backend_all(); *p; p++) {
        const struct backend *b = *p;
        struct err err;
        void *conf = test_calloc(1, b->conf_size);
        assert_true(b->name && b->summary && b->options && b->configure && b->open && b->close);
        assert_true(b->attach && b->detach && b->submit && b->reap);
        assert_true(b->wire_ios || b->counters);
        if (option_defaults(b->options, conf, &err) < 0) fail_msg("%s: %s", b->name, err.msg);
        for (const struct option_entry *e = b->options; e->name; e++) {
            assert_true(e->help && *e->help);
            assert_true(e->offset < b->conf_size);
            assert_ptr_equal(option_find(b->options, e->name), e);
        }
        option_free(b->options, conf);
        test_free(conf);
    }
    assert_true(built("null") && built("file"));
    assert_false(built("skeleton"));
}

static void tops(void **state) {
    (void)state;
    assert_true(path_top_is("/dev", "dev"));
    assert_true(path_top_is("/dev/", "dev"));
    assert_true(path_top_is("/../dev/x", "dev"));
    assert_false(path_top_is("/", "dev"));
    assert_false(path_top_is("/dev/..", "dev"));
    assert_false(path_top_is("/devx/y", "dev"));
    assert_false(path_top_is("/de", "dev"));
    assert_false(path_top_is("/.dev/x", "dev"));
    assert_true(path_is_system("/proc/self/mem"));
    assert_true(path_is_system("/a/../sys/x"));
    assert_false(path_is_system("/srv/proc/x"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_url),
        cmocka_unit_test(unknown_schemes),
        cmocka_unit_test(tables_are_whole),
        cmocka_unit_test(tops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
