/* SPDX-License-Identifier: GPL-2.0-or-later */
/* URLs and keys of the iscsi backend, and where secrets come from, up to the point where a connection would be made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/iscsi/iscsi.h"
#include "tests/unit/backend_conf.h"

extern const struct backend backend_iscsi;

static struct err err;

static void defaults(void **state) {
    (void)state;
    struct iscsibe_conf *c = conf_from(&backend_iscsi, "iscsi://array/iqn.2001-04.com.example:a/3", &err);
    assert_non_null(c);
    assert_string_equal(c->host, "array");
    assert_int_equal(c->port, 3260);
    assert_string_equal(c->target, "iqn.2001-04.com.example:a");
    assert_int_equal(c->lun, 3);
    assert_null(c->user);
    assert_int_equal(c->header_digest, 0);
    assert_int_equal(strncmp(c->initiator, "iqn.2026-01.org.samedisk:", 25), 0);
    assert_true(strlen(c->initiator) > 25);
    conf_end(&backend_iscsi, c);
}

static void login(void **state) {
    struct iscsibe_login l;
    (void)state;
    struct iscsibe_conf *c = conf_from(&backend_iscsi,
                                       "iscsi://joe%pass%77ord@[fe80::1]:3261/iqn.2001-04.com.example:a/0"
                                       "?initiator=iqn.1994-05.com.example:me&header_digest=crc32c",
                                       &err);
    assert_non_null(c);
    assert_int_equal(iscsibe_login_fill(&l, c, &err), 0);
    assert_string_equal(l.portal, "[fe80::1]:3261");
    assert_string_equal(l.user, "joe");
    assert_string_equal(l.password, "password");
    assert_string_equal(l.initiator, "iqn.1994-05.com.example:me");
    assert_true(l.crc32c);
    iscsibe_login_wipe(&l);
    for (size_t i = 0; i < sizeof l.password; i++) assert_int_equal(l.password[i], 0);
    conf_end(&backend_iscsi, c);
}

static void secrets(void **state) {
    struct iscsibe_login l;
    char file[] = "/tmp/samedisk-secret-XXXXXX", url[200];
    (void)state;
    int fd = mkstemp(file);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "from the file\r\nsecond\n", 22), 22);
    close(fd);
    snprintf(url, sizeof url, "iscsi://h/iqn.a/0?user=joe&password_file=%s", file);
    struct iscsibe_conf *c = conf_from(&backend_iscsi, url, &err);
    assert_non_null(c);
    assert_int_equal(iscsibe_login_fill(&l, c, &err), 0);
    assert_string_equal(l.password, "from the file");
    conf_end(&backend_iscsi, c);
    unlink(file);
    refused(&backend_iscsi, url, file);

    setenv("SAMEDISK_CHAP_USER", "envuser", 1);
    setenv("SAMEDISK_CHAP_PASSWORD", "envpassword", 1);
    c = conf_from(&backend_iscsi, "iscsi://h/iqn.a/0", &err);
    assert_int_equal(iscsibe_login_fill(&l, c, &err), 0);
    assert_string_equal(l.user, "envuser");
    assert_string_equal(l.password, "envpassword");
    conf_end(&backend_iscsi, c);
    unsetenv("SAMEDISK_CHAP_USER");
    unsetenv("SAMEDISK_CHAP_PASSWORD");
}

static void refusals(void **state) {
    (void)state;
    refused(&backend_iscsi, "iscsi://h/iqn.a", "IQN/LUN");
    refused(&backend_iscsi, "iscsi://h/disk/0", "iqn.");
    refused(&backend_iscsi, "iscsi://h/iqn.a/x", "number");
    refused(&backend_iscsi, "iscsi://h/iqn.a/0?initiator=me", "initiator");
    refused(&backend_iscsi, "iscsi://joe@h/iqn.a/0", "no password");
    refused(&backend_iscsi, "iscsi://h/iqn.a/0?password_file=/tmp/x", "user");
    refused(&backend_iscsi, "iscsi://joe%x@h/iqn.a/0?target_user=tom", "SAMEDISK_CHAP_TARGET_PASSWORD");
    refused(&backend_iscsi, "iscsi://h/iqn.a/0?target_user=tom", "mutual");
    refused(&backend_iscsi, "iscsi://h/iqn.a/0?header_digest=md5", "crc32c");
    refused(&backend_iscsi, "iscsi://h/iqn.a/0?iniator=iqn.b", "initiator");
}

/* A password is never shown, and is gone from memory with the configuration's end. */
static void password_hidden(void **state) {
    char buf[300];
    (void)state;
    struct iscsibe_conf *c = conf_from(&backend_iscsi, "iscsi://joe%topsecret@h/iqn.a/0", &err);
    assert_non_null(c);
    for (const struct option_entry *e = backend_iscsi.options; e->name; e++)
        if (option_show(e, c, buf, sizeof buf)) assert_null(strstr(buf, "topsecret"));
    conf_end(&backend_iscsi, c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults), cmocka_unit_test(login),           cmocka_unit_test(secrets),
        cmocka_unit_test(refusals), cmocka_unit_test(password_hidden),
    };
    unsetenv("SAMEDISK_CHAP_USER");
    unsetenv("SAMEDISK_CHAP_PASSWORD");
    unsetenv("SAMEDISK_CHAP_TARGET_PASSWORD");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
