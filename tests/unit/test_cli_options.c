/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/args.h"
#include "cli/command.h"
#include "cli/targets.h"
#include "result/json.h"
#include "result/view.h"

#define LINE(...) (char *[]){__VA_ARGS__}, (int)(sizeof((char *[]){__VA_ARGS__}) / sizeof(char *))

static struct args parsed(const char *command, char **argv, int argc) {
    struct args args;
    struct err err;
    if (args_parse(command_find(command), argc, argv, &args, &err)) fail_msg("%s", err.msg);
    return args;
}

static void expect_error(const char *command, const char *part, char **argv, int argc) {
    struct args args;
    struct err err = {.msg = ""};
    if (args_parse(command_find(command), argc, argv, &args, &err) == 0) fail_msg("%s is taken", argv[0]);
    assert_int_equal(err.status, STATUS_USAGE);
    if (!strstr(err.msg, part)) fail_msg("\"%s\" does not say \"%s\"", err.msg, part);
    args_free(&args);
}

static void test_options(void **state) {
    (void)state;
    struct args a = parsed("run", LINE("vmtn", "--seed", "7", "-p", "x.txt", "--read-only", "--json=r.json", "--set",
                                       "nfs.nconnect=4", "--set=rcvbuf=1m", "--format", "json", "-q", "--keep_going",
                                       "--dry-run=no", "null:"));
    assert_int_equal(a.n_words, 2);
    assert_string_equal(a.words[0], "vmtn");
    assert_string_equal(a.words[1], "null:");
    assert_int_equal(a.options.seed, 7);
    assert_int_equal(a.options.pattern_files.n, 1);
    assert_string_equal(a.options.pattern_files.item[0], "x.txt");
    assert_string_equal(a.options.json, "r.json");
    assert_int_equal(a.options.set.n, 2);
    assert_string_equal(a.options.set.item[1], "rcvbuf=1m");
    assert_int_equal(a.options.format, FORMAT_JSON);
    assert_true(a.options.read_only && a.options.quiet && a.options.keep_going);
    assert_false(a.options.dry_run || a.options.cleanup);
    args_free(&a);
    a = parsed("run", LINE("null:"));
    assert_true(a.options.seed == SEED_RANDOM && !a.options.json && a.options.format == FORMAT_TABLE);
    args_free(&a);
}

static void test_pattern_keys(void **state) {
    (void)state;
    struct args a = parsed("run", LINE("--iodepth", "32", "--ramp-time=5s", "--end_fsync", "null:", "--end-fsync=0",
                                       "--rounds", "4", "--readwrite", "randread"));
    static const struct {
        const char *key, *value;
    } wanted[] = {{"iodepth", "32"},  {"ramp_time", "5s"}, {"end_fsync", "1"},
                  {"end_fsync", "0"}, {"rounds", "4"},     {"rw", "randread"}};
    assert_int_equal(a.n_keys, 6);
    for (size_t i = 0; i < 6; i++) {
        assert_string_equal(a.keys[i].key, wanted[i].key);
        assert_string_equal(a.keys[i].value, wanted[i].value);
    }
    assert_int_equal(a.n_words, 1);
    args_free(&a);
}

static void test_everything_behind_two_dashes_is_a_word(void **state) {
    (void)state;
    struct args a = parsed("run", LINE("--quiet", "--", "--seed", "-"));
    assert_int_equal(a.n_words, 2);
    assert_string_equal(a.words[0], "--seed");
    args_free(&a);
}

static void test_unknown_options_name_the_nearest(void **state) {
    (void)state;
    expect_error("run", "unknown option --iodpeth: did you mean --iodepth?", LINE("--iodpeth", "32"));
    expect_error("run", "did you mean --read-only?", LINE("--readonly"));
    expect_error("run", "did you mean --ramp_time?", LINE("--ramptime=5"));
    expect_error("run", "unknown option --zzzzzzzzz (samedisk run --help", LINE("--zzzzzzzzz"));
    expect_error("run", "unknown option -seed: did you mean --seed?", LINE("-seed", "3"));
    expect_error("run", "unknown option -x", LINE("-x"));
    expect_error("run", "unknown option --\\x1B[2J", LINE("--\x1b[2J"));
    expect_error("run", "an empty word", LINE(""));
}

static void test_access_keys_are_no_options(void **state) {
    (void)state;
    expect_error("run", "--lat is an access key (of targets: null), not an option: write --set LABEL.lat=5ms",
                 LINE("--lat=5ms"));
    expect_error("run", "write --set LABEL.lat=TIME", LINE("--lat", "5ms"));
}

static void test_values(void **state) {
    (void)state;
    expect_error("run", "--json needs a value: FILE", LINE("--json"));
    expect_error("run", "--json needs a value: FILE", LINE("--json", "--quiet"));
    expect_error("run", "--iodepth needs a value: N", LINE("--iodepth"));
    expect_error("run", "-p needs a value: FILE", LINE("-p"));
    expect_error("run", "--reference has an empty value: was a shell variable empty?", LINE("--reference", ""));
    expect_error("run", "--iodepth has an empty value", LINE("--iodepth="));
    expect_error("run", "--destroy has an empty value", LINE("--destroy", ""));
    expect_error("run", "--seed: ", LINE("--seed", "x"));
    expect_error("run", "--seed: ", LINE("--seed", "9007199254740992"));
    expect_error("run", "--format: ", LINE("--format", "csv"));
    expect_error("run", "--time: ", LINE("--time", "0"));
    expect_error("run", "--quiet: ", LINE("--quiet=maybe"));
}

static void test_each_command_has_its_options(void **state) {
    (void)state;
    struct args a = parsed("probe", LINE("--format", "json", "null:", "--set", "lat=1us"));
    args_free(&a);
    expect_error("probe", "samedisk probe has no option --seed", LINE("--seed", "3"));
    expect_error("probe", "samedisk probe has no option --iodepth", LINE("--iodepth", "3"));
    expect_error("patterns", "samedisk patterns has no option --json", LINE("--json", "x"));
    assert_null(command_find("import"));
}

/* ---- targets from words and --set ---- */

static int made(char **words, size_t n, char **set, size_t n_set, struct targets *targets, struct err *err) {
    struct words w;
    struct options_list list = {set, n_set};
    struct clock clock;
    clock_real_init(&clock);
    memset(targets, 0, sizeof *targets);
    int rc = words_sort(words, n, &w, err) || targets_make(&w, &list, &clock, targets, err) ? -1 : 0;
    words_free(&w);
    return rc;
}

static void expect_targets_error(const char *part, char *word, char *set) {
    struct targets targets;
    struct err err = {.msg = ""};
    char *words[] = {"a=null:", word};
    if (made(words, 2, &set, set ? 1 : 0, &targets, &err) == 0) fail_msg("%s %s is taken", word, set);
    assert_int_equal(err.status, STATUS_USAGE);
    if (!strstr(err.msg, part)) fail_msg("\"%s\" does not say \"%s\"", err.msg, part);
    targets_free(&targets);
}

static const char *value_of(const struct target *t, const char *key, char *buf, size_t len) {
    const struct member *m = &t->member[0];
    assert_true(option_show(option_find(m->backend->options, key), m->conf, buf, len));
    return buf;
}

static void test_set(void **state) {
    (void)state;
    struct targets t;
    struct err err;
    char buf[40];
    char *words[] = {"a=null:?lat=1us", "b.1=null:", "null:", "b.1=null:"},
         *set[] = {"lat=5us", "b.1.lat=7us", "null.servers=2"};
    if (made(words, 4, set, 3, &t, &err)) fail_msg("%s", err.msg);
    assert_int_equal(t.n, 3);
    assert_int_equal(t.target[1]->n_members, 2);
    assert_string_equal(value_of(t.target[0], "lat", buf, sizeof buf), "5us");
    assert_string_equal(value_of(t.target[1], "lat", buf, sizeof buf), "7us");
    assert_string_equal(value_of(t.target[2], "servers", buf, sizeof buf), "2");
    assert_true(t.label_is_own[0] && !t.label_is_own[2]);
    targets_free(&t);
}

static void test_nrfiles(void **state) {
    (void)state;
    static const char *const urls[] = {"file:/d/a%20b.0?direct=no", "file:/d/a%20b.1?direct=no", "file:/d/c"};
    struct targets t;
    struct err err;
    char buf[40];
    char *words[] = {"x=file:/d/a%20b?nrfiles=2&direct=no", "x=file:/d/c", "y=/d/e"};
    char *set[] = {"y.nrfiles=3", "y.engine=threads"};
    if (made(words, 3, set, 2, &t, &err)) fail_msg("%s", err.msg);
    assert_int_equal(t.n, 2);
    assert_int_equal(t.target[0]->n_members, 3);
    for (unsigned i = 0; i < 3; i++) assert_string_equal(t.target[0]->member[i].url, urls[i]);
    assert_int_equal(t.target[1]->n_members, 3);
    assert_string_equal(t.target[1]->member[2].url, "/d/e.2");
    for (unsigned i = 0; i < 3; i++)
        assert_true(option_show(option_find(t.target[1]->member[i].backend->options, "engine"),
                                t.target[1]->member[i].conf, buf, sizeof buf) && !strcmp(buf, "threads"));
    targets_free(&t);
    set[0] = "nrfiles=22"; /* 22 of each of three URLs; the first's own 2 is overridden */
    assert_int_equal(made(words, 3, set, 1, &t, &err), 0);
    assert_int_equal(t.target[0]->n_members, 44);
    targets_free(&t);
    set[0] = "nrfiles=64";
    assert_int_equal(made(words, 3, set, 1, &t, &err), -1);
    assert_non_null(strstr(err.msg, "more than 64 members"));
    targets_free(&t);
}

static void test_keys_in_the_wrong_place(void **state) {
    (void)state;
    expect_targets_error("iodepth belongs to the pattern, not to a target: write --iodepth N", "null:?iodepth=4", NULL);
    expect_targets_error("iodepth belongs to the pattern", "null:", "iodepth=4");
    expect_targets_error("iodepth belongs to the pattern", "null:", "a.iodepth=4");
    expect_targets_error("no target has the label c; there are: a, null", "null:", "c.lat=4us");
    expect_targets_error("unknown key latt: did you mean lat?", "null:?latt=4us", NULL);
    expect_targets_error("write --set [LABEL.]KEY=VALUE", "null:", "lat");
    expect_targets_error("write --set [LABEL.]KEY=VALUE", "null:", "=5");
    expect_targets_error("file targets; this is a null target", "null:?direct=no", NULL);
    /* A key for all that fits only some of them. */
    expect_targets_error("--set LABEL.direct=VALUE", "/tmp/x", "direct=no");
    expect_targets_error("its members are of one kind, but one is null and one is file", "a=/tmp/x", NULL);
    expect_targets_error("null:?lat=soon: lat: ", "null:?lat=soon", NULL);
    expect_targets_error("jitter: ", "null:?jitter=5us", NULL);
}

/* result/json.c spells the cache policies out, for results know nothing of patterns. */
static void test_names_of_cache_policies(void **state) {
    (void)state;
    const struct option_entry *cache = option_find(pattern_options, "cache");
    for (int i = 0; cache->names[i]; i++) {
        struct record *r = record_new("p", "t");
        r->cache = i;
        json_t *j = json_of_record(r);
        assert_string_equal(view_text(j, "cache"), cache->names[i]);
        json_decref(j);
        record_free(r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_pattern_keys),
        cmocka_unit_test(test_everything_behind_two_dashes_is_a_word),
        cmocka_unit_test(test_unknown_options_name_the_nearest),
        cmocka_unit_test(test_access_keys_are_no_options),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_each_command_has_its_options),
        cmocka_unit_test(test_set),
        cmocka_unit_test(test_nrfiles), cmocka_unit_test(test_keys_in_the_wrong_place),
        cmocka_unit_test(test_names_of_cache_policies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
