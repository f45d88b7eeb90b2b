/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the counters of a protocol make a row say. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <string.h>

#include "report/remarks.h"

static char said[4000];

static void emit(void *arg, const struct remark *r) {
    (void)arg;
    strcat(said, r->text);
    strcat(said, "\n");
}

/* The remarks of a row with one run, whose protocol counters are `protocol`. */
static const char *remarks(const char *protocol) {
    json_t *document = json_pack("{s:[{s:s,s:s,s:s,s:o}]}", "runs", "pattern", "p", "target", "t", "status", "ok",
                                 "protocol", json_loads(protocol, 0, NULL));
    assert_non_null(document);
    said[0] = '\0';
    remarks_of_row(document, "p", "t", emit, NULL);
    json_decref(document);
    return said;
}

static void test_retries(void **state) {
    (void)state;
    assert_string_equal(remarks("{\"retries\": 0, \"retries_jukebox\": 0, \"retry_wait_ns\": 0}"), "");
    assert_string_equal(remarks("{\"retries\": 1234, \"retries_jukebox\": 1200, \"retries_busy\": 34, "
                                "\"retry_wait_ns\": 3200000000}"),
                        "1234 answers of \"try again later\" (1200 JUKEBOX, 34 BUSY): the I/Os waited 3.20 s in all for "
                        "it, which is in their latencies\n");
    assert_string_equal(remarks("{\"retries\": 1, \"retries_transition\": 1, \"retry_wait_ns\": 1000000}"),
                        "1 answer of \"try again later\" (1 ALUA transition): the I/Os waited 1.00 ms in all for it, "
                        "which is in their latencies\n");
    assert_non_null(strstr(remarks("{\"retries\": 9, \"retries_jukebox\": 1, \"retries_busy\": 2, "
                                   "\"retries_task_set_full\": 1, \"retries_unit_attention\": 3, "
                                   "\"retries_transition\": 2, \"retry_wait_ns\": 5}"),
                           "(1 JUKEBOX, 2 BUSY, 1 TASK SET FULL, 3 UNIT ATTENTION, 2 ALUA transition)"));
}

static void test_a_short_queue(void **state) {
    (void)state;
    assert_non_null(strstr(remarks("{\"retries\": 9, \"retries_busy\": 2, \"retries_task_set_full\": 7, "
                                   "\"retry_wait_ns\": 5}"),
                           "; the target's queue is shorter than what is out: a lower iodepth="));
}

static void test_parts(void **state) {
    (void)state;
    assert_string_equal(remarks("{\"short_reads\": 0, \"short_writes\": 0}"), "");
    assert_string_equal(remarks("{\"short_reads\": 1, \"short_writes\": 20}"),
                        "the server moved only a part of 1 READ and 20 WRITEs: the rest was asked for again, within the "
                        "I/O's latency\n");
}

/* More than one request per I/O, and why. */
static void test_wire(void **state) {
    (void)state;
    assert_string_equal(remarks("{\"wire_ios_per_io\": 2.0, \"wire_ios\": 2000}"),
                        "2.00 requests on the wire per I/O: split on the way, or others use it too\n");
    assert_string_equal(remarks("{\"wire_ios_per_io\": 2.0, \"wire_ios\": 2000, \"split_ios\": 1000}"),
                        "2.00 requests on the wire per I/O: 1000 I/Os were larger than one RPC (rsize, wsize)\n");
    assert_string_equal(remarks("{\"wire_ios_per_io\": 1.12, \"wire_ios\": 1120, \"split_ios\": 0, \"short_reads\": 120}"),
                        "the server moved only a part of 120 READs and 0 WRITEs: the rest was asked for again, within "
                        "the I/O's latency\n");
    assert_non_null(strstr(remarks("{\"wire_ios_per_io\": 2.0, \"wire_ios\": 2000, \"short_reads\": 1}"),
                           "2.00 requests on the wire per I/O: split on the way"));
}

/* Of a device: its statistics count a flush as well. */
static void test_flushes_on_the_wire(void **state) {
    (void)state;
    for (int flushes = 250; flushes <= 400; flushes += 150) {
        json_t *document = json_pack("{s:[{s:s,s:s,s:s,s:{s:f},s:{s:i},s:{s:i}}]}", "runs", "pattern", "p", "target", "t",
                                     "status", "ok", "protocol", "wire_ios_per_io", 1.25, "flush", "ios", flushes, "total",
                                     "ios", 1000);
        assert_non_null(document);
        said[0] = '\0';
        remarks_of_row(document, "p", "t", emit, NULL);
        assert_int_equal(strstr(said, "requests on the wire") != NULL, flushes == 400);
        json_decref(document);
    }
}

static void test_page_cache_before_the_device(void **state) {
    (void)state;
    for (int cached = 0; cached < 2; cached++) {
        json_t *document = json_pack("{s:[{s:s,s:s}], s:[{s:s,s:s,s:s,s:{s:f}}]}", "targets", "label", "t", "engine",
                                     cached ? "helper threads page cache" : "libaio O_DIRECT", "runs", "pattern", "p",
                                     "target", "t", "status", "ok", "protocol", "wire_ios_per_io", 0.0);
        assert_non_null(document);
        said[0] = '\0';
        remarks_of_row(document, "p", "t", emit, NULL);
        assert_int_equal(strstr(said, "merged on the way") != NULL, !cached);
        assert_int_equal(strstr(said, "the client's page cache took the I/Os: 0 requests reached the device") != NULL, cached);
        json_decref(document);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_page_cache_before_the_device),
                                       cmocka_unit_test(test_retries), cmocka_unit_test(test_a_short_queue),
                                       cmocka_unit_test(test_parts), cmocka_unit_test(test_flushes_on_the_wire),
                                       cmocka_unit_test(test_wire)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
