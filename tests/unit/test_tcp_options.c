/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The access keys of TCP connections: what they parse to, and what is refused before any connection is made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include "backends/net/tcp_options.h"
#include "option/option.h"

struct conf {
    int before;
    struct tcp_options tcp;
};

static const struct option_entry table[] = { TCP_OPTION_ENTRIES(struct conf, tcp), { .name = NULL } };
static struct err err;

static void begin(struct conf *c) {
    memset(c, 0, sizeof *c);
    assert_int_equal(option_defaults(table, c, &err), 0);
}

static void set(struct conf *c, const char *key, const char *value) {
    if (option_set(table, c, key, value, &err) != 0) fail_msg("%s=%s: %s", key, value, err.msg);
}

static void refused(struct conf *c, const char *words) {
    assert_int_equal(tcp_options_check(&c->tcp, &err), -1);
    assert_int_equal(err.status, STATUS_USAGE);
    if (!strstr(err.msg, words)) fail_msg("\"%s\" does not say \"%s\"", err.msg, words);
    option_free(table, c);
}

static void nothing_given(void **state) {
    (void)state;
    struct tcp_settings s, zero;
    struct conf c;
    begin(&c);
    assert_null(tcp_options_given(&c.tcp));
    assert_int_equal(tcp_options_check(&c.tcp, &err), 0);
    memset(&zero, 0, sizeof zero);
    tcp_settings_from(&s, &c.tcp);
    assert_memory_equal(&s, &zero, sizeof s);
}

static void all_given(void **state) {
    (void)state;
    struct tcp_settings s;
    struct conf c;
    begin(&c);
    set(&c, "rcvbuf", "256k");
    set(&c, "sndbuf", "1m");
    set(&c, "mss", "1400");
    set(&c, "quickack", "1");
    set(&c, "congestion", "reno");
    set(&c, "bind", "127.0.0.9");
    assert_int_equal(tcp_options_check(&c.tcp, &err), 0);
    tcp_settings_from(&s, &c.tcp);
    assert_int_equal(s.rcvbuf, 256u << 10);
    assert_int_equal(s.sndbuf, 1u << 20);
    assert_int_equal(s.mss, 1400);
    assert_int_equal(s.window, 0);
    assert_true(s.quickack);
    assert_string_equal(s.congestion, "reno");
    assert_int_equal(s.source.ss_family, AF_INET);
    assert_int_equal(((struct sockaddr_in *)&s.source)->sin_addr.s_addr, inet_addr("127.0.0.9"));
    option_free(table, &c);
}

static void each_is_given(void **state) {
    (void)state;
    static const char *const keys[][2] = { { "rcvbuf", "64k" }, { "sndbuf", "64k" }, { "window", "64k" },
                                           { "quickack", "yes" }, { "congestion", "reno" }, { "mss", "88" },
                                           { "bind", "::1" } };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        struct conf c;
        begin(&c);
        set(&c, keys[i][0], keys[i][1]);
        assert_string_equal(tcp_options_given(&c.tcp), keys[i][0]);
        option_free(table, &c);
    }
}

static void ranges(void **state) {
    (void)state;
    static const char *const wrong[][2] = { { "rcvbuf", "1k" }, { "sndbuf", "2g" }, { "window", "4k" },
                                            { "window", "1025m" }, { "mss", "87" }, { "mss", "32768" },
                                            { "quickack", "maybe" } };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct conf c;
        begin(&c);
        assert_int_equal(option_set(table, &c, wrong[i][0], wrong[i][1], &err), -1);
        assert_non_null(strstr(err.msg, wrong[i][0]));
    }
}

static void window_or_rcvbuf(void **state) {
    (void)state;
    struct conf c;
    begin(&c);
    set(&c, "window", "64k");
    set(&c, "rcvbuf", "64k");
    refused(&c, "give one of them");
}

static void unknown_congestion(void **state) {
    (void)state;
    struct conf c;
    begin(&c);
    set(&c, "congestion", "nosuch");
    refused(&c, "congestion=nosuch: this kernel has no such");
    assert_non_null(strstr(err.msg, "reno")); /* which every kernel has */
    begin(&c);
    set(&c, "congestion", "a-name-longer-than-any");
    refused(&c, "no such");
}

static void wrong_address(void **state) {
    (void)state;
    struct conf c;
    begin(&c);
    set(&c, "bind", "eth0");
    refused(&c, "bind=eth0: an IPv4 or IPv6 address");
    begin(&c);
    set(&c, "bind", "224.0.0.1");
    refused(&c, "bind=224.0.0.1: no TCP connection can come from a multicast address");
    begin(&c);
    set(&c, "bind", "ff02::1");
    refused(&c, "multicast address");
    begin(&c);
    set(&c, "bind", "127.255.255.255"); /* the loopback network's; bind() takes it */
    refused(&c, "broadcast address");
    begin(&c);
    set(&c, "bind", "192.0.2.77"); /* of the block for documents: nobody's */
    refused(&c, "no interface of this machine");
}

static void capped_names_the_sysctl(void **state) {
    (void)state;
    char buf[200];
    tcp_buffer_capped(buf, sizeof buf, "no_such_sysctl", 8 << 20, 4 << 20);
    assert_string_equal(buf, "the kernel gives 4m: net.core.no_such_sysctl caps it; "
                             "sysctl -w net.core.no_such_sysctl=8388608 would allow it");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_given),    cmocka_unit_test(all_given),
        cmocka_unit_test(each_is_given),    cmocka_unit_test(ranges),
        cmocka_unit_test(window_or_rcvbuf), cmocka_unit_test(unknown_congestion),
        cmocka_unit_test(wrong_address),    cmocka_unit_test(capped_names_the_sysctl),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
