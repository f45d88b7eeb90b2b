/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "result/digest.h"
#include "result/environment.h"
#include "result/view.h"
#include "tests/unit/madeup_document.h"

static json_t *loaded(struct document *d) {
    size_t len;
    json_error_t error;
    char *text = document_text(d, &len);
    assert_non_null(text);
    assert_int_equal(strlen(text), len);
    assert_int_equal(text[len - 1], '\n');
    json_t *j = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (!j) fail_msg("line %d: %s", error.line, error.text);
    free(text);
    return j;
}

static void test_digest(void **state) {
    (void)state;
    char hex[DIGEST_LEN];
    /* The published test vectors of FNV-1a, 128 bits. */
    digest_hex("", 0, hex);
    assert_string_equal(hex, "6c62272e07bb014262b821756295c58d");
    digest_hex("a", 1, hex);
    assert_string_equal(hex, "d228cb696f1a8caf78912b704e4a8964");
    digest_hex("foobar", 6, hex);
    assert_string_equal(hex, "343e1662793c64bf6f0d3597ba446f18");
}

static void test_keys_of_a_pattern(void **state) {
    (void)state;
    struct document *d = madeup_document();
    struct madeup_pattern load = madeup_load();
    document_pattern(d, "Random-8k-70%Read", madeup_keys, &load);
    json_t *j = loaded(d), *p = json_array_get(view_at(j, "plan/patterns"), 0);
    assert_string_equal(view_text(p, "name"), "Random-8k-70%Read");
    assert_int_equal(view_uint(p, "size"), 4ull << 30);
    assert_int_equal(view_uint(p, "runtime"), 300 * NS_PER_SEC);
    assert_string_equal(view_text(p, "sync"), "datastore");
    assert_true(json_is_false(view_at(p, "end_fsync")));
    assert_null(view_at(p, "description")); /* not set */
    json_decref(j);
    document_free(d);
}

static int show_size(const void *field, const void *conf, char *buf, size_t len) {
    (void)conf;
    return snprintf(buf, len, "%s", *(char *const *)field);
}

static void test_keys_with_a_parser_of_their_own(void **state) {
    (void)state;
    struct custom {
        char *plain, *list, *time, *word;
    } conf = {"8k", "8k,16k", "20us", "balanced"};
    const struct option_entry keys[] = {{.name = "plain",
                                         .type = OPTION_CUSTOM,
                                         .offset = offsetof(struct custom, plain),
                                         .value = "SIZE[,SIZE]",
                                         .show = show_size},
                                        {.name = "list",
                                         .type = OPTION_CUSTOM,
                                         .offset = offsetof(struct custom, list),
                                         .value = "SIZE[,SIZE]",
                                         .show = show_size},
                                        {.name = "time",
                                         .type = OPTION_CUSTOM,
                                         .offset = offsetof(struct custom, time),
                                         .value = "TIME",
                                         .show = show_size},
                                        {.name = "word",
                                         .type = OPTION_CUSTOM,
                                         .offset = offsetof(struct custom, word),
                                         .value = "N|balanced",
                                         .show = show_size},
                                        {.name = NULL}};
    struct document *d = madeup_document();
    document_pattern(d, "p", keys, &conf);
    json_t *j = loaded(d), *p = json_array_get(view_at(j, "plan/patterns"), 0);
    assert_int_equal(view_uint(p, "plain"), 8192);
    assert_string_equal(view_text(p, "list"), "8k,16k");
    assert_int_equal(view_uint(p, "time"), 20000);
    assert_string_equal(view_text(p, "word"), "balanced");
    json_decref(j);
    document_free(d);
}

static void hash_of(const char *name, struct madeup_pattern load, uint64_t seed, char hash[DIGEST_LEN]) {
    struct document *d = madeup_document();
    document_plan(d, seed, 4, "nfs", false);
    document_pattern(d, name, madeup_keys, &load);
    snprintf(hash, DIGEST_LEN, "%s", view_text(document_json(d), "plan/hash"));
    assert_int_equal(strlen(hash), DIGEST_LEN - 1);
    document_free(d);
}

static void test_hash_is_of_the_load(void **state) {
    (void)state;
    char a[DIGEST_LEN], b[DIGEST_LEN];
    struct madeup_pattern load = madeup_load(), other = load;
    hash_of("p", load, 1, a);
    other.rounds = 6;
    other.description = "in other words";
    hash_of("q", other, 2, b);
    assert_string_equal(a, b);
    other.iodepth = 17;
    hash_of("p", other, 1, b);
    assert_string_not_equal(a, b);
}

static void finish_with(enum run_status worst, bool interrupted, const char *name, enum status status) {
    struct document *d = madeup_document();
    struct madeup_pattern load = madeup_load();
    document_pattern(d, "p", madeup_keys, &load);
    struct record *bad = madeup_run("p", "iscsi", 1, 10, 1000);
    bad->status = worst;
    madeup_add(d, bad);
    madeup_add(d, madeup_run("p", "nfs", 1, 10, 1000));
    document_finish(d, interrupted);
    json_t *j = loaded(d);
    assert_string_equal(view_text(j, "status"), name);
    assert_non_null(view_text(j, "finished"));
    assert_int_equal(document_status(d), status);
    json_decref(j);
    document_free(d);
}

static void test_status_is_the_worst(void **state) {
    (void)state;
    finish_with(RUN_OK, false, "ok", STATUS_OK);
    finish_with(RUN_ERRORS, false, "errors", STATUS_IO);
    finish_with(RUN_LOST, false, "lost", STATUS_TARGET);
    finish_with(RUN_INTERRUPTED, false, "interrupted", STATUS_INTERRUPTED);
    finish_with(RUN_OK, true, "interrupted", STATUS_INTERRUPTED);
}

static void test_a_target_left_out_is_lost(void **state) {
    (void)state;
    struct document *d = madeup_document();
    document_target(
        d, json_pack("{s:s, s:s, s:[], s:[]}", "label", "fc", "lost", "no such device", "members", "warnings"));
    document_finish(d, false);
    assert_int_equal(document_status(d), STATUS_TARGET);
    document_free(d);
}

static void test_saved_before_the_end(void **state) {
    (void)state;
    struct document *d = madeup_document();
    struct madeup_pattern load = madeup_load();
    document_pattern(d, "p", madeup_keys, &load);
    madeup_add(d, madeup_run("p", "nfs", 1, 10, 1000));
    json_t *j = loaded(d);
    assert_string_equal(view_text(j, "status"), "interrupted");
    assert_true(json_is_null(view_at(j, "finished")));
    assert_int_equal(json_array_size(view_at(j, "runs")), 1);
    assert_int_equal(json_array_size(view_at(j, "summary")), 1);
    json_decref(j);
    madeup_add(d, madeup_run("p", "iscsi", 1, 10, 1000));
    document_finish(d, false);
    j = loaded(d);
    assert_string_equal(view_text(j, "status"), "ok");
    assert_int_equal(json_array_size(view_at(j, "summary")), 2);
    json_decref(j);
    document_free(d);
}

/* Reading back and dumping again gives the same values: no figure depends on the process that made it. */
static void test_round_trip(void **state) {
    (void)state;
    struct document *d = madeup_document();
    struct madeup_pattern load = madeup_load();
    document_pattern(d, "p \xc3\xa4", madeup_keys, &load);
    struct record *r = madeup_run("p \xc3\xa4", "nfs", 1, 333, 1234567);
    r->window_ns = 999999937;
    madeup_add(d, r);
    document_finish(d, false);
    json_t *j = loaded(d);
    size_t flags = JSON_COMPACT | JSON_REAL_PRECISION(15);
    char *once = json_dumps(document_json(d), flags), *twice = json_dumps(j, flags);
    assert_string_equal(once, twice);
    free(once);
    free(twice);
    json_decref(j);
    document_free(d);
}

static void test_notes_and_seed(void **state) {
    (void)state;
    struct document *d = madeup_document();
    document_note(d, "array", "the later one counts");
    document_plan(d, 9007199254740991, 6, "iscsi", true);
    json_t *j = loaded(d);
    assert_string_equal(view_text(j, "notes/array"), "the later one counts");
    assert_int_equal(view_uint(j, "plan/seed"), 9007199254740991);
    assert_true(view_true(j, "plan/warm_instead_of_asis"));
    json_decref(j);
    document_free(d);
}

static void put_file(const char *root, const char *name, const char *text) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *slash = strchr(path + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        char command[600];
        *slash = '\0';
        snprintf(command, sizeof command, "mkdir -p '%s'", path);
        assert_int_equal(system(command), 0);
        *slash = '/';
    }
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void test_environment(void **state) {
    (void)state;
    char root[] = "/tmp/samedisk-test-XXXXXX", command[64];
    assert_non_null(mkdtemp(root));
    put_file(root, "cpuinfo", "processor\t: 0\nmodel name\t: Made Up CPU @ 3 GHz\n");
    put_file(root, "meminfo", "MemTotal:        8000 kB\nMemFree: 1 kB\n");
    put_file(root, "sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n");
    put_file(root, "devices/system/clocksource/clocksource0/current_clocksource", "tsc\n");
    put_file(root, "class/net/eth0/operstate", "up\n");
    put_file(root, "class/net/eth0/speed", "10000\n");
    put_file(root, "class/net/eth0/mtu", "9000\n");
    put_file(root, "class/net/eth1/operstate", "down\n");
    put_file(root, "class/net/lo/operstate", "unknown\n");
    put_file(root, "class/net/lo/speed", "-1\n");
    struct kv libraries = {0};
    kv_text(&libraries, "libnfs", "4.0.0");
    json_t *j = environment_json(root, root, &libraries, 21.5);
    assert_non_null(j);
    assert_string_equal(view_text(j, "cpu"), "Made Up CPU @ 3 GHz");
    assert_int_equal(view_uint(j, "memory_bytes"), 8000 * 1024);
    json_t *sysctl = json_object_get(view_at(j, "sysctls"), "net.ipv4.tcp_rmem");
    assert_string_equal(json_string_value(sysctl), "4096 131072 6291456");
    assert_true(json_is_null(json_object_get(view_at(j, "sysctls"), "net.core.rmem_max")));
    assert_string_equal(view_text(j, "clock/source"), "tsc");
    assert_true(view_number(j, "clock/cost_ns") == 21.5);
    assert_string_equal(view_text(j, "libraries/libnfs"), "4.0.0");
    json_t *nics = view_at(j, "nics");
    assert_int_equal(json_array_size(nics), 2);
    assert_int_equal(view_uint(json_array_get(nics, 0), "speed_mbit"), 10000);
    assert_int_equal(view_uint(json_array_get(nics, 0), "mtu"), 9000);
    assert_true(json_is_null(view_at(json_array_get(nics, 1), "speed_mbit")));
    json_decref(j);
    kv_free(&libraries);
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    assert_int_equal(system(command), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_digest),
        cmocka_unit_test(test_keys_of_a_pattern),
        cmocka_unit_test(test_keys_with_a_parser_of_their_own),
        cmocka_unit_test(test_hash_is_of_the_load),
        cmocka_unit_test(test_status_is_the_worst),
        cmocka_unit_test(test_a_target_left_out_is_lost),
        cmocka_unit_test(test_saved_before_the_end),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_notes_and_seed),
        cmocka_unit_test(test_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
