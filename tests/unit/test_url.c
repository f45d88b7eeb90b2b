/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/url.h"

static struct url good(const char *text) {
    struct url url;
    struct err err;
    char *copy = strdup(text); /* on the heap: reading beyond its end is seen by the sanitizers */

    if (url_parse(copy, &url, &err) != 0) fail_msg("'%s': %s", text, err.msg);
    free(copy);
    return url;
}

static void bad(const char *text, const char *message) {
    struct url url;
    struct err err = { 0 };
    char *copy = strdup(text);

    if (url_parse(copy, &url, &err) != -1) fail_msg("'%s' was taken", text);
    assert_int_equal(err.status, STATUS_USAGE);
    if (!strstr(err.msg, message)) fail_msg("'%s': %s", text, err.msg);
    assert_null(url.text);
    url_free(&url);
    free(copy);
}

static void equal_or_null(const char *got, const char *want) {
    if (want && got)
        assert_string_equal(got, want);
    else
        assert_ptr_equal(got, want);
}

struct expected {
    const char *text, *scheme, *user, *password, *host;
    uint16_t port;
    const char *path;
};

static void forms(void **state) {
    static const struct expected cases[] = {
        { "nfs://10.0.0.1/vol1/vm.dat", "nfs", NULL, NULL, "10.0.0.1", 0, "/vol1/vm.dat" },
        { "nfs://nas_1.example-x.org:2049/vol", "nfs", NULL, NULL, "nas_1.example-x.org", 2049, "/vol" },
        { "nfs://h", "nfs", NULL, NULL, "h", 0, "" },
        { "nfs://h?a=1", "nfs", NULL, NULL, "h", 0, "" },
        { "nfs://h/@home/a:b", "nfs", NULL, NULL, "h", 0, "/@home/a:b" },
        { "nfs://h/a%20b%3Fc%25", "nfs", NULL, NULL, "h", 0, "/a b?c%" },
        { "nfs://[::1]/v", "nfs", NULL, NULL, "::1", 0, "/v" },
        { "nfs://[fe80::1%25eth0]:65535/v", "nfs", NULL, NULL, "fe80::1%eth0", 65535, "/v" },
        { "nfs://[fe80::1%eth0]/v", "nfs", NULL, NULL, "fe80::1%eth0", 0, "/v" },
        { "nfs://[::ffff:1.2.3.4]:1/v", "nfs", NULL, NULL, "::ffff:1.2.3.4", 1, "/v" },
        { "iscsi://h/iqn.2001-04.com.example:d.1/0", "iscsi", NULL, NULL, "h", 0, "/iqn.2001-04.com.example:d.1/0" },
        { "iscsi://me%pw@h:3260/iqn/1", "iscsi", "me", "pw", "h", 3260, "/iqn/1" },
        { "iscsi://me%@h/iqn/1", "iscsi", "me", "", "h", 0, "/iqn/1" },
        { "iscsi://me@h/iqn/1", "iscsi", "me", NULL, "h", 0, "/iqn/1" },
        { "iscsi://me%p@w@h/iqn/1", "iscsi", "me", "p@w", "h", 0, "/iqn/1" },
        { "iscsi://me%%40%2F%3f%25%3A@h/iqn/1", "iscsi", "me", "@/?%:", "h", 0, "/iqn/1" },
        { "iscsi://me%ab:c@h/iqn/1", "iscsi", "me", "ab:c", "h", 0, "/iqn/1" }, /* the first '%' separates, always */
        { "iscsi://me%41@h/iqn/1", "iscsi", "me", "41", "h", 0, "/iqn/1" },
        { "iscsi://iqn.1994-05.com.x:h%pw@[::1]:1/iqn/1", "iscsi", "iqn.1994-05.com.x:h", "pw", "::1", 1, "/iqn/1" },
        { "iscsi://iqn.1994-05.com.x:h@h/iqn/1", "iscsi", "iqn.1994-05.com.x:h", NULL, "h", 0, "/iqn/1" },
        { "null:", "null", NULL, NULL, NULL, 0, "" },
        { "null:?size=1g", "null", NULL, NULL, NULL, 0, "" },
        { "null:?", "null", NULL, NULL, NULL, 0, "" },
        { "file:/mnt/a%20b", "file", NULL, NULL, NULL, 0, "/mnt/a b" },
        { "file:///mnt/a?direct=0", "file", NULL, NULL, NULL, 0, "/mnt/a" },
        { "/mnt/a%20b?x=1&y", "/", NULL, NULL, NULL, 0, "/mnt/a%20b?x=1&y" },
        { "/", "/", NULL, NULL, NULL, 0, "/" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct url url = good(cases[i].text);
        assert_string_equal(url.scheme, cases[i].scheme);
        equal_or_null(url.user, cases[i].user);
        equal_or_null(url.password, cases[i].password);
        equal_or_null(url.host, cases[i].host);
        assert_int_equal(url.port, cases[i].port);
        assert_string_equal(url.path, cases[i].path);
        url_free(&url);
    }
}

static void keys_in_order_and_decoded(void **state) {
    struct url url = good("null:?size=1g&lat=100us&na%6De=a%26b%3Dc&empty=&eq=a=b&plus=a+b");
    static const char *const want[][2] = {
        { "size", "1g" }, { "lat", "100us" }, { "name", "a&b=c" }, { "empty", "" }, { "eq", "a=b" }, { "plus", "a+b" }
    };

    (void)state;
    assert_int_equal(url.n_keys, 6);
    for (size_t i = 0; i < 6; i++) {
        assert_string_equal(url.keys[i].name, want[i][0]);
        assert_string_equal(url.keys[i].value, want[i][1]);
    }
    url_free(&url);
    assert_int_equal(url.n_keys, 0);
    assert_null(url.path);
    url_free(&url); /* twice is harmless */
}

static void bad_schemes(void **state) {
    (void)state;
    bad("http://h/x", "scheme: 'http' is none of the known forms: nfs://HOST/EXPORT/PATH, iscsi://HOST/IQN/LUN, null:, "
                      "file:/PATH, /PATH");
    bad("NFS://h/x", "scheme: 'NFS'");
    bad("nfs:/h/x", "scheme: '//' must follow 'nfs:' (write nfs://HOST/...)");
    bad("iscsi:h", "scheme: '//' must follow 'iscsi:'");
    bad("", "this is no target");
    bad("vmtn", "this is no target");
    bad("a/b:c", "this is no target");
    bad("\033[2J:x", "scheme: '\\x1B[2J'");
}

static void bad_hosts(void **state) {
    (void)state;
    bad("nfs://", "host: it is empty (write nfs://HOST/...)");
    bad("nfs:///vol", "host: it is empty");
    bad("nfs://:2049/vol", "host: it is empty");
    bad("iscsi://u%p@/iqn/0", "host: it is empty");
    bad("nfs://a b/vol", "host: only letters");
    bad("nfs://a%20b/vol", "host: only letters");
    bad("nfs://h\xc3\xa4/vol", "host: only letters");
    bad("nfs://::1/vol", "host: an IPv6 address stands in brackets");
    bad("nfs://h:1:2/vol", "host: an IPv6 address stands in brackets");
    bad("nfs://[::1/vol", "host: ']' is missing");
    bad("nfs://[]/vol", "host: '[]' is not an IPv6 address");
    bad("nfs://[10.0.0.1]/vol", "host: '[10.0.0.1]' is not an IPv6 address");
    bad("nfs://[::1::]/vol", "is not an IPv6 address");
    bad("nfs://[1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb]/vol", "is not an IPv6 address");
    bad("nfs://[::1]x/vol", "host: only ':PORT' or '/' may follow ']'");
    bad("nfs://[fe80::1%25]x/vol", "host: only ':PORT'"); /* a zone that is called 25 */
    bad("nfs://[fe80::1%]/vol", "has a bad zone");
    bad("nfs://[fe80::1%25e/0]/vol", "']' is missing");
    bad("nfs://[fe80::1%25e%0]/vol", "has a bad zone");
}

static void host_length(void **state) {
    char text[400];
    struct url url;

    (void)state;
    memset(text, 'h', sizeof(text));
    memcpy(text, "nfs://", 6);
    text[6 + 255] = '\0';
    url = good(text);
    assert_int_equal(strlen(url.host), 255);
    url_free(&url);
    text[6 + 255] = 'h';
    text[6 + 256] = '\0';
    bad(text, "host: longer than 255 characters");
}

static void bad_ports(void **state) {
    (void)state;
    bad("nfs://h:0/v", "port: it is not a number from 1 to 65535");
    bad("nfs://h:65536/v", "port:");
    bad("nfs://h:99999999999999999999999/v", "port:");
    bad("nfs://h:/v", "port:");
    bad("nfs://h:-1/v", "port:");
    bad("nfs://h:20a/v", "port:");
    bad("nfs://h: 20/v", "port:");
    bad("nfs://[::1]:/v", "port:");
    bad("nfs://[::1]:70000/v", "port:");
}

static void bad_users(void **state) {
    (void)state;
    bad("nfs://u@h/v", "user: nfs:// has no USER@");
    bad("iscsi://@h/i/0", "user: the name before '@' is empty");
    bad("iscsi://%pw@h/i/0", "user: the name before '%' is empty");
    bad("iscsi://u:pw@h/i/0", "user: the password is separated by '%', not ':' (write USER%PASS@)");
}

static void bad_encoding(void **state) {
    (void)state;
    bad("nfs://h/a%", "percent-encoding in the path: '%' needs two hex digits");
    bad("nfs://h/a%4", "percent-encoding in the path");
    bad("nfs://h/a%4g", "percent-encoding in the path");
    bad("nfs://h/a%%41", "percent-encoding in the path");
    bad("nfs://h/a%00b", "percent-encoding in the path: %00 is not allowed");
    bad("null:?a%=1", "percent-encoding in the key");
    bad("null:?a=%", "percent-encoding in the value of a key");
    bad("null:?a=%00", "%00 is not allowed");
    bad("iscsi://u%p%@h/i/0", "percent-encoding in the password");
    bad("iscsi://u%p%00@h/i/0", "percent-encoding in the password");
}

static void bad_keys(void **state) {
    char text[1000] = "null:?a=1";

    (void)state;
    bad("null:?a", "key: 'a' has no value (write a=VALUE)");
    bad("null:?a=1&b", "key: 'b' has no value");
    bad("null:?=1", "key: an empty one");
    bad("null:?a=1&", "key: an empty one");
    bad("null:?&a=1", "key: an empty one");
    bad("null:?a=1&&b=2", "key: an empty one");
    bad("null:?a=1&b=2&a=1", "key: 'a' stands there twice");
    bad("null:?a=1&%61=2", "key: 'a' stands there twice");
    bad("null:?a_b=1&a-b=2", "key: 'a-b' stands there twice");
    for (unsigned i = 1; i < URL_KEYS; i++) snprintf(text + strlen(text), 20, "&k%u=1", i);
    struct url url = good(text);
    assert_int_equal(url.n_keys, URL_KEYS);
    url_free(&url);
    strcat(text, "&last=1");
    bad(text, "key: more than 64");
}

static void bad_local_forms(void **state) {
    (void)state;
    bad("null:x", "path: null: has none");
    bad("null:/x", "path: null: has none");
    bad("null://h", "path: null: has none");
    bad("file:", "path: file: takes an absolute path");
    bad("file:a", "path: file: takes an absolute path");
    bad("file://h/a", "path: file: takes an absolute path and no host");
    bad("file:////a", "path: file: takes an absolute path");
}

static void text_has_no_secrets(void **state) {
    static const char *const cases[][2] = {
        { "iscsi://me%secret@h/iqn/0", "iscsi://me%***@h/iqn/0" },
        { "iscsi://me%@h/iqn/0", "iscsi://me%***@h/iqn/0" },
        { "iscsi://me%s@cr%3Ft@h:3260/iqn/0?a=1", "iscsi://me%***@h:3260/iqn/0?a=1" },
        { "iscsi://h/iqn/0?a=1&password=x%26y&b=2", "iscsi://h/iqn/0?a=1&password=***&b=2" },
        { "iscsi://u%p@h/i/0?target_password=&chap-secret=k",
          "iscsi://u%***@h/i/0?target_password=***&chap-secret=***" },
        { "null:?pass%77ord=abc", "null:?pass%77ord=***" },
        { "null:?PASSWORD=abc&b=1", "null:?PASSWORD=***&b=1" },
        { "nfs://h/a%20b?x=1", "nfs://h/a%20b?x=1" },
        { "/mnt/?password=no%key@all", "/mnt/?password=no%key@all" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct url url = good(cases[i][0]);
        assert_string_equal(url.text, cases[i][1]);
        url_free(&url);
    }
}

/* A password that was not percent-encoded is a mistake; the message must not hand it on. */
static void errors_have_no_secrets(void **state) {
    static const char *const cases[] = {
        "iscsi://me%hun/ter2@h/iqn/0", "iscsi://me%hun?ter2@h/iqn/0", "iscsi://me%hun%ter2@h/iqn/0",
        "iscsi://me%hun@ter2/x@h/iqn/0", "iscsi://me:hunter2@h/iqn/0", "iscsi://me%hunter2@h:0/iqn/0",
        "iscsi://me%hunter2@/iqn/0", "iscsi://me%hun%00ter2@h/iqn/0", "iscsi://%hunter2@h/iqn/0",
        "iscsi:me%hunter2@h/iqn/0", "nfs://me%hunter2@h/iqn/0", "iscsi://me%hunter2@h/i/0?a=1&a=2",
        "null:?password=hunter2&a", "null:?password=hunter2%",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct url url;
        struct err err;
        if (url_parse(cases[i], &url, &err) != -1) fail_msg("'%s' was taken", cases[i]);
        url_free(&url);
        if (strstr(err.msg, "hun") || strstr(err.msg, "ter2")) fail_msg("'%s': %s", cases[i], err.msg);
    }
}

static void targets(void **state) {
    (void)state;
    assert_true(url_is_target("nfs://"));
    assert_true(url_is_target("iscsi://h"));
    assert_true(url_is_target("null:"));
    assert_true(url_is_target("file:x"));
    assert_true(url_is_target("/dev/sdb"));
    assert_false(url_is_target(""));
    assert_false(url_is_target("nfs:/"));
    assert_false(url_is_target("nfs"));
    assert_false(url_is_target("vmtn.ini"));
    assert_false(url_is_target("a=nfs://h"));
    assert_false(url_is_target("./x"));
}

static void scrubbing(void **state) {
    static const char *const cases[][2] = {
        { "iscsi://me%secret@h/iqn/0", "iscsi://me%xxxxxx@h/iqn/0" },
        { "array=iscsi://me%secret@h/iqn/0", "array=iscsi://me%xxxxxx@h/iqn/0" },
        { "a=iscsi://me%s@%40t@h:1/i/0?a=1", "a=iscsi://me%xxxxxx@h:1/i/0?a=1" },
        { "iscsi://me%@h/i/0", "iscsi://me%@h/i/0" },
        { "iscsi://me%a/b@h/i/0", "iscsi://me%xxx@h/i/0" },      /* refused by url_parse, but a password all the same */
        { "iscsi://me%a?b@h/i/0", "iscsi://me%xxx@h/i/0" },
        { "iscsi://me%a@b/c@h/i/0", "iscsi://me%xxxxx@h/i/0" },
        { "iscsi://me:abc@h/i/0", "iscsi://me:xxx@h/i/0" },
        { "iscsi:me%abc@h/i/0", "iscsi:me%xxx@h/i/0" },
        { "ISCSI://me%abc@h/i/0", "ISCSI://me%xxx@h/i/0" },
        { "nfs://me%abc@h/v", "nfs://me%xxx@h/v" },
        { "iscsi://h/i/0?password=abc&b=1", "iscsi://h/i/0?password=xxx&b=1" },
        { "iscsi://h/i/0?a=1&pass%77ord=a=b&b=1", "iscsi://h/i/0?a=1&pass%77ord=xxx&b=1" },
        { "iscsi.password=abc", "iscsi.password=xxx" },          /* of --set */
        { "--set=iscsi.password=a=c", "--set=iscsi.password=xxx" },
        { "mutual-secret=abc", "mutual-secret=xxx" },
        /* Not touched: */
        { "iscsi://me@h:3260/iqn.2001-04.x:d/0", "iscsi://me@h:3260/iqn.2001-04.x:d/0" },
        { "iscsi://h:3260/iqn.2001-04.x:d/0?a=b", "iscsi://h:3260/iqn.2001-04.x:d/0?a=b" },
        { "nfs://h:2049/a%20b/@snap", "nfs://h:2049/a%20b/@snap" },
        { "/mnt/a%b@c", "/mnt/a%b@c" },
        { "password_age=3", "password_age=3" },
        { "", "" },
    };
    char text[100];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        snprintf(text, sizeof(text), "%s", cases[i][0]);
        url_scrub(text);
        assert_string_equal(text, cases[i][1]);
    }
}

static void scrubbing_looks_at_the_end_of_long_names(void **state) {
    char text[200];

    (void)state;
    memset(text, 'n', sizeof(text));
    strcpy(text + 150, "password=abc");
    url_scrub(text);
    assert_string_equal(text + 150, "password=xxx");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms),
        cmocka_unit_test(keys_in_order_and_decoded),
        cmocka_unit_test(bad_schemes),
        cmocka_unit_test(bad_hosts),
        cmocka_unit_test(host_length),
        cmocka_unit_test(bad_ports),
        cmocka_unit_test(bad_users),
        cmocka_unit_test(bad_encoding),
        cmocka_unit_test(bad_keys),
        cmocka_unit_test(bad_local_forms),
        cmocka_unit_test(text_has_no_secrets),
        cmocka_unit_test(errors_have_no_secrets),
        cmocka_unit_test(targets),
        cmocka_unit_test(scrubbing),
        cmocka_unit_test(scrubbing_looks_at_the_end_of_long_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
