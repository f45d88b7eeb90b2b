/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The TCP line below a row, from documents made up for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "report/tcp_line.h"

static char line[600];

/* A run of 10 s: bytes read and written, protocol, its series. */
static json_t *run(const char *target, double read, double written, const char *protocol, const char *series) {
    char text[2000];
    json_error_t error;
    snprintf(text, sizeof text,
             "{\"pattern\":\"p\",\"target\":\"%s\",\"window_ns\":10000000000,\"read\":{\"bytes\":%.0f},"
             "\"write\":{\"bytes\":%.0f},\"protocol\":{%s},\"protocol_at_start\":{},\"series\":{\"protocol\":{%s}}}",
             target, read, written, protocol, series);
    json_t *j = json_loads(text, 0, &error);
    if (!j) fail_msg("%s in %s", error.text, text);
    return j;
}

static bool line_of(json_t *first, json_t *second) {
    json_t *document = json_pack("{s:[o]}", "runs", first);
    if (second) json_array_append_new(json_object_get(document, "runs"), second);
    line[0] = '\0';
    bool any = tcp_line(document, "p", "t", line, sizeof line);
    json_decref(document);
    return any;
}

static void says(const char *wanted) {
    assert_string_equal(line, wanted);
}

#define MIB 1048576.0

static void reads(void **state) {
    (void)state;
    assert_true(line_of(run("t", 1000 * MIB, 0,
                            "\"tcp_connections\":1,\"tcp_min_rtt_ns\":5020000,\"tcp_retransmits\":0,"
                            "\"tcp_rcv_wnd_bytes\":1048576,\"tcp_snd_wnd_bytes\":26624,\"tcp_rwnd_limited_percent\":0,"
                            "\"tcp_sndbuf_limited_percent\":0,\"tcp_out_of_order\":0",
                            "\"tcp_rcv_wnd_bytes\":[1048576,null,3145728,0]"), NULL));
    says("TCP: min RTT 5.02 ms, no retransmits, receive window 3.00 MiB"); /* 598 MiB/s would fit through it */
}

static void reads_at_the_windows_limit(void **state) {
    (void)state;
    const char *protocol = "\"tcp_connections\":1,\"tcp_min_rtt_ns\":5000000,\"tcp_retransmits\":1,"
                           "\"tcp_rcv_wnd_bytes\":262144,\"tcp_out_of_order\":3";
    assert_true(line_of(run("t", 480 * MIB, 0, protocol, ""), NULL));
    says("TCP: min RTT 5.00 ms, 1 retransmit, 3 segments out of order, receive window 256 KiB; it is the client's "
         "receive window that limits: 256 KiB / 5.00 ms = 50.00 MiB/s, and 48.00 MiB/s came");
    assert_true(line_of(run("t", 390 * MIB, 0, protocol, ""), NULL)); /* 78 %: something else is in the way */
    assert_null(strstr(line, "limits"));
    assert_true(line_of(run("t", 700 * MIB, 0, protocol, ""), NULL)); /* more than it allows: it is not understood */
    assert_null(strstr(line, "limits"));
}

static void every_connection_has_a_window(void **state) {
    (void)state;
    const char *protocol = "\"tcp_connections\":4,\"tcp_min_rtt_ns\":5000000,\"tcp_rcv_wnd_bytes\":262144";
    assert_true(line_of(run("t", 480 * MIB, 0, protocol, ""), NULL));
    assert_null(strstr(line, "limits"));
    assert_true(line_of(run("t", 4 * 480 * MIB, 0, protocol, ""), NULL));
    assert_non_null(strstr(line, "= 50.00 MiB/s for each connection, and 48.00 MiB/s came"));
}

static void writes(void **state) {
    (void)state;
    const char *protocol = "\"tcp_connections\":1,\"tcp_min_rtt_ns\":200000,\"tcp_retransmits\":12,"
                           "\"tcp_rcv_wnd_bytes\":65536,\"tcp_snd_wnd_bytes\":26624,"
                           "\"tcp_rwnd_limited_percent\":87,\"tcp_sndbuf_limited_percent\":2";
    assert_true(line_of(run("t", 0, 100 * MIB, protocol, ""), NULL));
    says("TCP: min RTT 200 us, 12 retransmits; limited by the server's receive window (26.0 KiB) for 87 % of the time, "
         "by the send buffer for 2.0 %");
}

static void both(void **state) {
    (void)state;
    const char *protocol = "\"tcp_connections\":1,\"tcp_min_rtt_ns\":200000,\"tcp_rcv_wnd_bytes\":65536,"
                           "\"tcp_snd_wnd_bytes\":26624,\"tcp_rwnd_limited_percent\":0,\"tcp_sndbuf_limited_percent\":0";
    assert_true(line_of(run("t", 100 * MIB, 100 * MIB, protocol, ""), NULL));
    says("TCP: min RTT 200 us, receive window 64.0 KiB; limited by the server's receive window (26.0 KiB) for 0 % of "
         "the time, by the send buffer for 0 %");
}

static void rounds_together(void **state) {
    (void)state;
    assert_true(line_of(run("t", 0, MIB, "\"tcp_connections\":1,\"tcp_min_rtt_ns\":200000,\"tcp_retransmits\":2,"
                                         "\"tcp_snd_wnd_bytes\":1024,\"tcp_rwnd_limited_percent\":0", ""),
                        run("t", 0, MIB, "\"tcp_connections\":1,\"tcp_min_rtt_ns\":100000,\"tcp_retransmits\":1,"
                                         "\"tcp_snd_wnd_bytes\":2048,\"tcp_rwnd_limited_percent\":50", "")));
    says("TCP: min RTT 100 us, 3 retransmits; limited by the server's receive window (2.00 KiB) for up to 50 % of the time");
}

static void what_is_unknown_is_left_out(void **state) {
    (void)state;
    assert_true(line_of(run("t", MIB, MIB, "\"tcp_connections\":1,\"tcp_min_rtt_ns\":200000,\"tcp_retransmits\":null,"
                                           "\"tcp_rcv_wnd_bytes\":null", ""), NULL));
    says("TCP: min RTT 200 us");
    assert_true(line_of(run("t", 0, MIB, "\"tcp_connections\":1,\"tcp_min_rtt_ns\":200000,\"tcp_snd_wnd_bytes\":1024",
                            ""), NULL));
    says("TCP: min RTT 200 us, server's receive window (1.00 KiB)");
}

/* What was found by measuring before the run may be wrong for the run. */
static void a_window_that_was_not_kept_to(void **state) {
    (void)state;
    for (int over = 0; over < 2; over++) {
        json_t *document = json_pack("{s:[o], s:[{s:s, s:[{s:{s:i}}]}]}", "runs",
                                     run("t", MIB, 0, "\"tcp_connections\":1,\"tcp_min_rtt_ns\":200000,"
                                                      "\"tcp_rcv_wnd_bytes\":65536", ""),
                                     "targets", "label", "t", "members", "negotiated", "tcp_window_asked",
                                     over ? 65000 : 65536);
        assert_true(tcp_line(document, "p", "t", line, sizeof line));
        assert_true((strstr(line, "; window= was not kept to: 64.0 KiB was advertised") != NULL) == (over == 1));
        json_decref(document);
    }
}

static void no_tcp_no_line(void **state) {
    (void)state;
    assert_false(line_of(run("t", MIB, 0, "", ""), NULL));
    assert_false(line_of(run("other", MIB, 0, "\"tcp_connections\":1,\"tcp_min_rtt_ns\":200000", ""), NULL));
    assert_false(line_of(run("t", MIB, 0, "\"tcp_connections\":1,\"tcp_min_rtt_ns\":null", ""), NULL));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads),
        cmocka_unit_test(reads_at_the_windows_limit),
        cmocka_unit_test(every_connection_has_a_window),
        cmocka_unit_test(writes),
        cmocka_unit_test(both),
        cmocka_unit_test(rounds_together),
        cmocka_unit_test(what_is_unknown_is_left_out),
        cmocka_unit_test(a_window_that_was_not_kept_to),
        cmocka_unit_test(no_tcp_no_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
