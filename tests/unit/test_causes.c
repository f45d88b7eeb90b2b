/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The causes that a run's own counters name; and that a healthy run names none. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "report/causes.h"

static char said[4000];

/* What all causes say of a run, one line each. */
static const char *causes_of(json_t *run) {
    said[0] = '\0';
    for (const struct cause *c = causes; c->look; c++) {
        char text[700] = "";
        double bad = c->look(run, text, sizeof text);
        assert_true((bad > 0) == (text[0] != '\0'));
        if (bad <= 0) continue;
        strcat(said, text);
        strcat(said, "\n");
    }
    return said;
}

static const char *says(const char *format, ...) __attribute__((format(printf, 1, 2)));
static const char *says(const char *format, ...) {
    char text[6000];
    json_error_t error;
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    for (char *c = text; *c; c++)
        if (*c == '\'') *c = '"';
    json_t *run = json_loads(text, 0, &error);
    if (!run) fail_msg("%s in %s", error.text, text);
    causes_of(run);
    json_decref(run);
    return said;
}

static void expect(const char *part) {
    if (!strstr(said, part)) fail_msg("'%s' is not in: %s", part, said);
}

static void test_r2t(void **state) {
    (void)state;
    static const char run[] = "{'write':{'ios':1000,'clat_ns':{'mean':%d}},'protocol':{'r2t_waits':9000,"
                              "'r2t_waits_per_write':9,'r2t_ns_per_write':%d,'tcp_min_rtt_ns':10100000,'first_burst':65536,"
                              "'max_burst':262144,'max_outstanding_r2t':1}}";
    assert_string_equal(says(run, 111000000, 90900000),
                        "R2Ts: a write waits for 9.0 of them, a round trip of 10.1 ms each: 90.9 ms of its mean of 111 ms is "
                        "that (an estimate from pings takes it for the server's); fewer come with a larger first_burst= "
                        "(64.0 KiB is agreed on), max_burst= (256 KiB) or max_outstanding_r2t= (1), as far as the target "
                        "allows\n");
    assert_string_equal(says(run, 3000000, 180000), ""); /* 6 %: on a short way they cost little */
    assert_string_equal(says("{'write':{'ios':10,'clat_ns':{'mean':10}},'protocol':{'tcp_min_rtt_ns':10}}"), "");
}

static void test_one_path(void **state) {
    (void)state;
    static const char run[] = "{'workers':%d,'depth_requested':%d,'protocol':{'sessions':%d,'rr':%d}}";
    assert_string_equal(says(run, 1, 64, 2, 1000),
                        "rr=1000 at iodepth 64: one path works at a time, of 2, and the others wait; rr=1, or any below "
                        "the iodepth, keeps all of them busy\n");
    says(run, 4, 256, 2, 1000);
    expect("for each worker one path works at a time");
    assert_string_equal(says(run, 1, 64, 2, 1), "");
    assert_string_equal(says(run, 1, 64, 2, 32), "");
    assert_string_equal(says(run, 1, 1, 2, 1000), ""); /* it could not be otherwise */
    assert_string_equal(says(run, 1, 64, 1, 1000), "");
}

static void test_stuck_connection(void **state) {
    (void)state;
    says("{'protocol':{'conn0_silent_max_ns':40000000,'conn1_silent_max_ns':9000000000,'conn2_silent_max_ns':20000000,"
         "'conn1_road':'port 712 to 10.0.0.1:2049'},"
         "'ping':{'by':'null_rpc','kinds':{'null_rpc':{'n':10,'lost':0}}}}");
    assert_string_equal(said,
                        "connection 2 of 3 (port 712 to 10.0.0.1:2049) was stuck: nothing came on it for 9.00 s while "
                        "answers were due (40.0 ms at most on the others); 10 of the run's 10 pings, on a connection of "
                        "their own, were answered\n");
    says("{'protocol':{'path1_silent_max_ns':4000000000,'path2_silent_max_ns':20000000,'path1_portal':'10.0.0.1:3260'}}");
    expect("path 1 of 2 (10.0.0.1:3260) was stuck: nothing came on it for 4.00 s");
    /* All of them: that is no matter of a connection. */
    assert_string_equal(says("{'protocol':{'conn0_silent_max_ns':3000000000,'conn1_silent_max_ns':3000000000}}"), "");
    assert_string_equal(says("{'protocol':{'conn0_silent_max_ns':300000000,'conn1_silent_max_ns':1000}}"), "");
    assert_string_equal(says("{'protocol':{'conn0_silent_max_ns':9000000000}}"), "");
}

static void test_loss(void **state) {
    (void)state;
    static const char run[] = "{'protocol':{'tcp_lost_segments':%d,'tcp_data_segments_out':10000,'tcp_lost_percent':%g,"
                              "'tcp_out_of_order':%d,'tcp_data_segments_in':90000,'tcp_out_of_order_percent':%g}}";
    says(run, 50, 0.5, 0, 0.);
    expect("packets are lost on the way: 50 of 10000 segments were sent again (0.50 %)");
    says(run, 0, 0., 900, 1.);
    expect("packets are lost, or overtake one another, on the way: 900 of 90000 segments came out of order, behind a missing one (1.0 %)");
    says(run, 50, 0.5, 900, 1.);
    expect("sent again (0.50 %), 900 of 90000");
    assert_string_equal(says(run, 4, 4., 0, 0.), "");      /* one hiccup */
    assert_string_equal(says(run, 20, 0.002, 19, 19.), ""); /* next to nothing */
    assert_string_equal(says(run, 0, 0., 0, 0.), "");
}

static void test_black_hole(void **state) {
    (void)state;
    static const char run[] = "{'total':{'ios':%d},'io_align':4096,'ping':{'by':'nop_out','kinds':{'nop_out':{'n':%d}}},"
                              "'protocol':{'tcp_retransmits':%d,'tcp_out_of_order':%d,'tcp_mss_bytes':1448,"
                              "'tcp_path_mtu_bytes':1500}}";
    says(run, 0, 9, 3, 0);
    expect("packets of full size do not arrive (an MTU black hole): the server answers 9 small pings, and not one I/O, what "
           "is sent to it is sent again and again; TCP sends segments of 1448 bytes (MSS), for an MTU of 1500");
    says(run, 0, 9, 0, 4);
    expect("of its answers only the ends come");
    assert_string_equal(says(run, 1, 9, 3, 0), "");
    assert_string_equal(says(run, 0, 0, 3, 0), ""); /* nothing is answered: it is gone */
    assert_string_equal(says(run, 0, 9, 0, 0), "");
}

static const char stall[] = "{'window_ns':%lld,'workers':4,'total':{'clat_ns':{'mean':1000000}},"
                            "'stall':{'longest_ns':%lld,'at_ns':12100000000,'workers':%d}%s}";

/* Of this client, not of the target: no stall, and no cliff. */
static void test_standstill(void **state) {
    (void)state;
    static const char with[] = "{'window_ns':7000000000,'standstill':{'ns':%lld,'longest_ns':2500000000,'at_ns':2100000000,"
                               "'times':%d}}";
    says(with, 2500 * NS_PER_MS, 1);
    assert_string_equal(said, "this client stood still for 2.50 s (stopped, suspended or starved of CPU), from 2.10 s of the "
                              "window on: the row counts it, as a lower rate and longer latencies than the target's\n");
    says(with, 3500 * NS_PER_MS, 2);
    assert_non_null(strstr(said, "stood still for 3.50 s in all, 2 times, the longest 2.50 s (stopped"));
    assert_string_equal(says("{'window_ns':7000000000,'standstill':null}"), "");
    says("{'window_ns':12000000000,'standstill':{'ns':5500000000,'longest_ns':5500000000,'at_ns':4400000000,'times':1},"
         "'series':{'interval_ns':1000000000,'read_ios':[100,100,100,100,40,1,1,1,1,1,100,100],"
         "'write_ios':[0,0,0,0,0,0,0,0,0,0,0,0]}}");
    expect("stood still");
    assert_null(strstr(said, "the rate"));
}

static void test_stall(void **state) {
    (void)state;
    says(stall, 30 * NS_PER_SEC, 9 * NS_PER_SEC, 4, "");
    assert_string_equal(said, "a stall: nothing came back for 9.00 s, from 12.1 s of the window on (30 % of it), although "
                              "I/Os were out\n");
    says(stall, 30 * NS_PER_SEC, 2 * NS_PER_SEC, 1, ",'ping':{'by':'nop_out'},'series':{'interval_ns':1000000000,"
         "'ping':{'nop_out':[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]}}");
    expect("for 1 of 4 workers nothing came back for 2.00 s");
    expect("2 of 2 pings were answered meanwhile: the network and the server's protocol were alive");
    says(stall, 30 * NS_PER_SEC, 2 * NS_PER_SEC, 4, ",'ping':{'by':'nop_out'},'series':{'interval_ns':1000000000,"
         "'ping':{'nop_out':[1,1,1,1,1,1,1,1,1,1,1,1,1,null,null,1]}}");
    expect("1 of 2 pings were answered meanwhile: server or network stood still");
    says(stall, 30 * NS_PER_SEC, 2 * NS_PER_SEC, 4, ",'ping':{'by':'nop_out'},'series':{'interval_ns':1000000000," /* in turn */
         "'ping':{'nop_out':[1,null,1,null,1,null,1,null,1,null,1,null,1,null,1,null],"
         "'test_unit_ready':[null,1,null,1,null,1,null,1,null,1,null,1,null,1,null,1]}}");
    expect("2 of 2 pings were answered meanwhile");
    says(stall, 4 * NS_PER_SEC, 300 * NS_PER_MS, 4, "");
    expect("nothing came back for 300 ms");
    assert_string_equal(says(stall, 30 * NS_PER_SEC, 300 * NS_PER_MS, 4, ""), ""); /* 1 % of the window */
    assert_string_equal(says(stall, NS_PER_SEC, 200 * NS_PER_MS, 4, ""), "");
    /* A target that takes half a second for each. */
    assert_string_equal(says("{'window_ns':30000000000,'workers':1,'total':{'clat_ns':{'mean':500000000}},"
                             "'stall':{'longest_ns':2000000000,'at_ns':0,'workers':1}}"), "");
}

/* A run of so many seconds, whose rate is before[] first, then after[], in turns. */
static const char *rates(unsigned n, unsigned first, const int before[2], const int after[2]) {
    json_t *reads = json_array(), *writes = json_array();
    for (unsigned i = 0; i < n; i++) {
        json_array_append_new(reads, json_integer(i < first ? before[i % 2] : after[i % 2]));
        json_array_append_new(writes, json_integer(0));
    }
    json_t *run = json_pack("{s:I, s:{s:I, s:o, s:o}}", "window_ns", (json_int_t)n * NS_PER_SEC, "series", "interval_ns",
                            (json_int_t)NS_PER_SEC, "read_ios", reads, "write_ios", writes);
    causes_of(run);
    json_decref(run);
    return said;
}

static void test_cliff(void **state) {
    (void)state;
    rates(20, 10, (int[]){760, 740}, (int[]){30, 34});
    expect("the rate fell within the window: 750 IOPS in its first 10.0 s, 32.0 IOPS after that");
    expect("as when something runs full");
    rates(20, 4, (int[]){100, 110}, (int[]){990, 1010});
    expect("the rate rose within the window: 105 IOPS in its first 4.00 s, 1000 IOPS after that");
    assert_string_equal(rates(20, 10, (int[]){1000, 1040}, (int[]){800, 900}), "");
    assert_string_equal(rates(20, 10, (int[]){100, 1000}, (int[]){1000, 100}), ""); /* it jumps, but not at one place */
    assert_string_equal(rates(20, 10, (int[]){100, 100}, (int[]){0, 0}), "");       /* a stall */
    assert_string_equal(rates(7, 3, (int[]){750, 750}, (int[]){32, 32}), "");       /* too short to tell */
    assert_string_equal(rates(20, 1, (int[]){3000, 3000}, (int[]){1000, 1000}), ""); /* one second is no level */
    assert_string_equal(says("{'window_ns':10000000000,'stall':{'longest_ns':5500000000,'at_ns':4400000000,'workers':1},"
                             "'total':{'clat_ns':{'mean':9000000000}},'series':{'interval_ns':1000000000,"
                             "'read_ios':[99,99,99,99,40,0,0,0,0,10],'write_ios':[0,0,0,0,0,0,0,0,0,0]}}"), "");
    assert_string_equal(rates(0, 0, (int[]){0, 0}, (int[]){0, 0}), "");
}

static void test_alignment(void **state) {
    (void)state;
    static const char run[] = "{'total':{'ios':10,'bytes':%d},'write':{'ios':%d},'io_align':%d,'physical_block':%s,"
                              "'physical_offset':%d}";
    assert_string_equal(says(run, 20480, 10, 2048, "4096", 0),
                        "I/Os do not fit the device's physical blocks of 4.00 KiB: offsets and lengths keep to 2.00 KiB only "
                        "(bs=, blockalign=, offset=); a block that is written in part has to be read first\n");
    says(run, 40960, 0, 4096, "4096", 63 * 512);
    expect("the device begins 3.50 KiB behind the edge of one (where its partition starts)");
    says(run, 81920, 0, 512, "4096", 0); /* reads of 8 KiB that begin anywhere */
    expect("offsets and lengths keep to 512");
    assert_string_equal(says(run, 40960, 10, 4096, "4096", 0), "");
    assert_string_equal(says(run, 40960, 10, 4096, "512", 0), "");
    assert_string_equal(says(run, 40960, 10, 4096, "null", 0), "");
    assert_string_equal(says(run, 5120, 0, 512, "4096", 0), ""); /* reads that lie within a block */
    assert_string_equal(says(run, 40960, 10, 8192, "4096", 1 << 20), "");
}

static void test_healthy(void **state) {
    (void)state;
    assert_string_equal(says("{}"), "");
    assert_string_equal(
        says("{'status':'ok','workers':1,'depth_requested':32,'window_ns':10000000000,'io_align':4096,'physical_block':4096,"
             "'physical_offset':0,'total':{'ios':100000,'bytes':409600000,'clat_ns':{'mean':3000000}},"
             "'write':{'ios':50000,'clat_ns':{'mean':3000000}},'stall':{'longest_ns':40000000,'at_ns':5,'workers':1},"
             "'ping':{'by':'nop_out','kinds':{'nop_out':{'n':10,'lost':0}}},"
             "'protocol':{'r2t_waits':0,'tcp_min_rtt_ns':50000,'tcp_retransmits':0,'tcp_data_segments_out':100000,"
             "'tcp_out_of_order':0,'tcp_data_segments_in':100000,'tcp_mss_bytes':1448,'sessions':1,'rr':1}}"), "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_r2t),   cmocka_unit_test(test_one_path),   cmocka_unit_test(test_stuck_connection),
        cmocka_unit_test(test_loss),  cmocka_unit_test(test_black_hole), cmocka_unit_test(test_stall),
        cmocka_unit_test(test_standstill),
        cmocka_unit_test(test_cliff), cmocka_unit_test(test_alignment),  cmocka_unit_test(test_healthy)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
