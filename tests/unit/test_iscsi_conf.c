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
    assert_true(l.offer.header_digest);
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
    setenv("SAMEDISK_CHAP_TARGET_PASSWORD", "x", 1);
    refused(&backend_iscsi, "iscsi://joe%x@h/iqn.a/0?target_user=tom", "must differ");
    unsetenv("SAMEDISK_CHAP_TARGET_PASSWORD");
    refused(&backend_iscsi, "iscsi://h/iqn.a/0?header_digest=md5", "crc32c");
    refused(&backend_iscsi, "iscsi://h/iqn.a/0?iniator=iqn.b", "initiator");
}

/* By which ways the URL goes; the caller looks at them before the next call. */
static struct iscsibe_roads roads_of(const char *keys) {
    struct iscsibe_roads r = { 0 };
    struct iscsibe_login l;
    char url[500];

    snprintf(url, sizeof url, "iscsi://[fe80::1]:3261/iqn.a/0%s", keys);
    struct iscsibe_conf *c = conf_from(&backend_iscsi, url, &err);
    assert_non_null(c);
    assert_int_equal(iscsibe_login_fill(&l, c, &err), 0);
    assert_int_equal(iscsibe_roads_fill(&r, c, l.portal, &err), 0);
    conf_end(&backend_iscsi, c);
    return r;
}

static void roads(void **state) {
    (void)state;
    struct iscsibe_roads r = roads_of("");
    assert_int_equal(r.sessions, 1);
    assert_int_equal(r.n_portals, 1);
    assert_string_equal(r.portal[0], "[fe80::1]:3261");
    r = roads_of("?sessions=4");
    assert_int_equal(r.sessions, 4);
    assert_int_equal(r.n_portals, 1);
    assert_int_equal(r.every, 1000);
    r = roads_of("?portals=10.0.0.1,array-b.example.com:3262,[fd00::2],[fd00::2]:99&rr=3");
    assert_int_equal(r.sessions, 4);
    assert_int_equal(r.n_portals, 4);
    assert_int_equal(r.every, 3);
    assert_string_equal(r.portal[0], "10.0.0.1:3260"); /* the URL's is not in the list: no data goes there */
    assert_string_equal(r.portal[1], "array-b.example.com:3262");
    assert_string_equal(r.portal[2], "[fd00::2]:3260");
    assert_string_equal(r.portal[3], "[fd00::2]:99");
    r = roads_of("?portals=10.0.0.1,10.0.0.2&sessions=5");
    assert_int_equal(r.sessions, 5);
    assert_int_equal(r.n_portals, 2);
    /* Road 1 is the URL's own portal, by which the unit was looked at, then the others. */
    assert_int_equal(r.n_roads, 3);
    assert_int_equal(iscsibe_road_portal(&r, 1), 2);
    assert_string_equal(r.portal[2], "[fe80::1]:3261");
    assert_int_equal(iscsibe_road_portal(&r, 2), 0);
    assert_int_equal(iscsibe_road_portal(&r, 3), 1);
    r = roads_of("?portals=10.0.0.1,[fe80::1]:3261,10.0.0.2");
    assert_int_equal(r.n_roads, 3);
    assert_int_equal(iscsibe_road_portal(&r, 1), 1);
    assert_int_equal(iscsibe_road_portal(&r, 2), 0);
    assert_int_equal(iscsibe_road_portal(&r, 3), 2);
}

static void roads_refused(void **state) {
    static const char *const bad[] = { "", "10.0.0.1,", ",10.0.0.1", "10.0.0.1:", "10.0.0.1:0", "10.0.0.1:65536",
                                       "10.0.0.1:33x", ":3260", "fd00::2", "[fd00::2", "[fd00::2]x", "[]:3260", "a]b",
                                       "a b", "10.0.0.1:3260:1", "a%0ab", "iqn.a/0" };
    char url[500], many[400] = "";
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(url, sizeof url, "iscsi://h/iqn.a/0?portals=%s", bad[i]);
        refused(&backend_iscsi, url, "portal");
    }
    refused(&backend_iscsi, "iscsi://h/iqn.a/0?portals=a,b,a:3260", "a:3260 is there twice");
    refused(&backend_iscsi, "iscsi://h/iqn.a/0?portals=a,b&sessions=1", "sessions=1 leaves");
    refused(&backend_iscsi, "iscsi://h/iqn.a/0?rr=5", "only one");
    refused(&backend_iscsi, "iscsi://h/iqn.a/0?sessions=0", "sessions");
    refused(&backend_iscsi, "iscsi://h/iqn.a/0?sessions=65", "sessions");
    refused(&backend_iscsi, "iscsi://h/iqn.a/0?sessions=2&engine=libiscsi", "sessions= needs engine=native");
    refused(&backend_iscsi, "iscsi://h/iqn.a/0?portals=a,b&engine=libiscsi", "portals= needs engine=native");
    refused(&backend_iscsi, "iscsi://h/iqn.a/0?rr=2&engine=libiscsi", "rr= needs engine=native");
    for (unsigned i = 0; i < 17; i++)
        snprintf(many + strlen(many), sizeof many - strlen(many), "%sh%u", i ? "," : "", i);
    snprintf(url, sizeof url, "iscsi://h/iqn.a/0?portals=%s", many);
    refused(&backend_iscsi, url, "more than 16");
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
        cmocka_unit_test(defaults), cmocka_unit_test(login),         cmocka_unit_test(secrets),
        cmocka_unit_test(refusals), cmocka_unit_test(roads),         cmocka_unit_test(roads_refused),
        cmocka_unit_test(password_hidden),
    };
    unsetenv("SAMEDISK_CHAP_USER");
    unsetenv("SAMEDISK_CHAP_PASSWORD");
    unsetenv("SAMEDISK_CHAP_TARGET_PASSWORD");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
