/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Kernel settings that are changed and put back, and the notes about them: on a made-up sysfs and made-up processes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "backends/local/kernel.h"

#define QUEUE "dev/block/8:0/queue/"

static char top[64], sys[100], proc[100], notes[100];
static const struct notes_where where = {notes, sys, proc};
static char said[4][1000];
static unsigned n_said;

static void say(void *arg, const char *line) {
    (void)arg;
    snprintf(said[n_said++ % 4], sizeof said[0], "%s", line);
}

static void put(const char *root, const char *name, const char *text) {
    char path[600];
    snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *p = path + strlen(top) + 1; (p = strchr(p, '/')); p++) {
        *p = 0;
        (void)mkdir(path, 0700);
        *p = '/';
    }
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "%s\n", text);
    fclose(f);
}

static const char *get(const char *name) {
    static char text[64];
    char path[600];
    snprintf(path, sizeof path, "%s/%s", sys, name);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_non_null(fgets(text, sizeof text, f));
    fclose(f);
    text[strcspn(text, "\n")] = 0;
    return text;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw) {
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

static unsigned count_notes(void) {
    char command[200];
    unsigned n = 99;
    snprintf(command, sizeof command, "ls %s 2>/dev/null | wc -l", notes);
    FILE *p = popen(command, "r");
    assert_non_null(p);
    assert_int_equal(fscanf(p, "%u", &n), 1);
    pclose(p);
    return n;
}

static void process(long pid, const char *started) {
    char name[64], text[300];
    snprintf(name, sizeof name, "%ld/stat", pid);
    snprintf(text, sizeof text, "%ld (a) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 %s 20 21", pid, started);
    put(proc, name, text);
}

static int set_up(void **state) {
    (void)state;
    strcpy(top, "/tmp/kernel.XXXXXX");
    assert_non_null(mkdtemp(top));
    snprintf(sys, sizeof sys, "%s/sys", top);
    snprintf(proc, sizeof proc, "%s/proc", top);
    snprintf(notes, sizeof notes, "%s/notes", top);
    n_said = 0;
    put(sys, QUEUE "read_ahead_kb", "128");
    put(sys, QUEUE "nomerges", "0");
    put(sys, "dev/block/8:1/x", "");
    put(sys, "dev/block/8:0/sda1/partition", "1");
    put(sys, "class/bdi/0:55/read_ahead_kb", "15360");
    char link[300], to[300];
    snprintf(link, sizeof link, "%s/dev/block/8:9", sys);
    snprintf(to, sizeof to, "%s/dev/block/8:0/sda1", sys);
    assert_int_equal(symlink(to, link), 0);
    process(getpid(), "4711");
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    return nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- the keys ---- */

static void keys(void **state) {
    static const struct option_entry table[] = {KERNEL_OPTIONS(struct {struct kernel_conf k;}, k), {.name = NULL}};
    struct kernel_conf conf = {0};
    struct err err;
    char text[64];
    (void)state;
    assert_int_equal(option_defaults(table, &conf, &err), 0);
    assert_false(conf.readahead_given);
    assert_false(option_show(&table[0], &conf, text, sizeof text));
    assert_int_equal(option_set(table, &conf, "kernel_readahead", "2m", &err), 0);
    assert_true(conf.readahead_given && conf.readahead == 2 << 20);
    assert_true(option_show(&table[0], &conf, text, sizeof text));
    assert_string_equal(text, "2m");
    assert_int_equal(option_set(table, &conf, "kernel_readahead", "0", &err), 0);
    assert_true(conf.readahead_given && conf.readahead == 0);
    assert_int_equal(option_set(table, &conf, "kernel_readahead", "5k", &err), -1);
    assert_int_equal(option_set(table, &conf, "kernel_readahead", "2g", &err), -1);
    assert_int_equal(option_set(table, &conf, "nomerges", "2", &err), 0);
    assert_int_equal(conf.nomerges, KERNEL_NOMERGES_2);
    assert_int_equal(option_set(table, &conf, "nomerges", "3", &err), -1);
}

static void set_and_put_back(void **state) {
    struct kernel k = {0};
    struct kernel_conf conf = {.readahead = 2 << 20, .readahead_given = true, .nomerges = KERNEL_NOMERGES_1};
    struct kv kv = {0};
    struct err err;
    (void)state;
    assert_int_equal(kernel_adjust(&k, &conf, &where, makedev(8, 0), &kv, &err), 0);
    assert_string_equal(get(QUEUE "read_ahead_kb"), "2048");
    assert_string_equal(get(QUEUE "nomerges"), "1");
    assert_int_equal(count_notes(), 2);
    assert_int_equal(kv_get_uint(&kv, "kernel_readahead_kb", 0), 2048);
    assert_string_equal(kv_find(&kv, "kernel_readahead_before_kb")->text, "128");
    assert_int_equal(kv_get_uint(&kv, "nomerges", 0), 1);
    kv_free(&kv);
    kernel_put_back(&k);
    assert_string_equal(get(QUEUE "read_ahead_kb"), "128");
    assert_string_equal(get(QUEUE "nomerges"), "0");
    assert_int_equal(count_notes(), 0);
    kernel_put_back(&k); /* once is enough */
}

static void as_it_is_already(void **state) {
    struct kernel k = {0};
    struct kernel_conf conf = {.readahead = 128 << 10, .readahead_given = true};
    struct kv kv = {0};
    struct err err;
    (void)state;
    assert_int_equal(kernel_adjust(&k, &conf, &where, makedev(8, 0), &kv, &err), 0);
    assert_int_equal(count_notes(), 0);
    kernel_put_back(&k);
    assert_string_equal(get(QUEUE "read_ahead_kb"), "128");
    kv_free(&kv);
}

/* A partition has its disk's; a network file system that of its own backing device. */
static void where_it_is(void **state) {
    char path[PATH_MAX];
    struct kernel k = {0};
    struct kernel_conf conf = {.readahead = 4096, .readahead_given = true, .nomerges = KERNEL_NOMERGES_2};
    struct kv kv = {0};
    struct err err;
    (void)state;
    assert_true(kernel_readahead_path(sys, makedev(8, 9), path, sizeof path));
    assert_non_null(strstr(path, "8:9/../queue/read_ahead_kb"));
    assert_true(kernel_readahead_path(sys, makedev(0, 55), path, sizeof path));
    assert_non_null(strstr(path, "/class/bdi/0:55/"));
    assert_false(kernel_readahead_path(sys, makedev(0, 56), path, sizeof path));
    /* No queue: what was done already is undone. */
    assert_int_equal(kernel_adjust(&k, &conf, &where, makedev(0, 55), &kv, &err), -1);
    assert_non_null(strstr(err.msg, "nomerges: device 0:55 has no request queue"));
    assert_string_equal(get("class/bdi/0:55/read_ahead_kb"), "15360");
    assert_int_equal(count_notes(), 0);
    assert_int_equal(kernel_adjust(&k, &conf, &where, makedev(0, 56), &kv, &err), -1);
    assert_int_equal(err.status, STATUS_TARGET);
    kv_free(&kv);
}

/* ---- several, and dead ones ---- */

static void one_at_a_time(void **state) {
    struct setting a, b;
    struct err err;
    char path[300];
    (void)state;
    snprintf(path, sizeof path, "%s/" QUEUE "read_ahead_kb", sys);
    assert_int_equal(notes_change(&where, path, "1024", &a, &err), 0);
    assert_int_equal(notes_change(&where, path, "64", &b, &err), -1);
    assert_non_null(strstr(err.msg, "another target of this plan"));
    assert_false(b.changed);
    notes_put_back(&b);
    assert_string_equal(get(QUEUE "read_ahead_kb"), "1024");
    notes_put_back(&a);
    assert_string_equal(get(QUEUE "read_ahead_kb"), "128");
}

/* A process that changed something and is gone; whose number another one may have by now. */
static void leave_behind(long pid) {
    struct setting s;
    struct err err;
    char path[300], text[1200], *at;
    snprintf(path, sizeof path, "%s/" QUEUE "read_ahead_kb", sys);
    assert_int_equal(notes_change(&where, path, "1024", &s, &err), 0);
    FILE *f = fopen(s.note, "r");
    assert_non_null(f);
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = 0;
    at = strstr(text, "\nstarted");
    f = fopen(s.note, "w");
    assert_true(f && at);
    fprintf(f, "samedisk note 1\npid %ld%s", pid, at);
    fclose(f);
}

static void recovery(void **state) {
    (void)state;
    notes_recover(&where, say, NULL); /* no folder yet: nothing to do */
    assert_int_equal(n_said, 0);
    leave_behind(4000);
    process(4000, "4711"); /* it lives */
    notes_recover(&where, say, NULL);
    assert_int_equal(n_said, 0);
    assert_string_equal(get(QUEUE "read_ahead_kb"), "1024");
    process(4000, "9999"); /* another one with its number */
    notes_recover(&where, say, NULL);
    assert_int_equal(n_said, 1);
    assert_non_null(strstr(said[0], "process 4000 ended without putting back"));
    assert_non_null(strstr(said[0], "read_ahead_kb: it is 128 again"));
    assert_string_equal(get(QUEUE "read_ahead_kb"), "128");
    assert_int_equal(count_notes(), 0);
    notes_recover(&where, say, NULL);
    assert_int_equal(n_said, 1);
}

/* Who wants to change it finds the value of one that died: that is not the old one. */
static void recovery_on_the_way(void **state) {
    struct setting s;
    struct err err;
    char path[300];
    (void)state;
    leave_behind(4001);
    snprintf(path, sizeof path, "%s/" QUEUE "read_ahead_kb", sys);
    assert_int_equal(notes_change(&where, path, "256", &s, &err), 0);
    assert_string_equal(s.old, "128");
    notes_put_back(&s);
    assert_string_equal(get(QUEUE "read_ahead_kb"), "128");
}

/* Notes are files that somebody may have made up. */
static void made_up_notes(void **state) {
    char text[800], other[200];
    (void)state;
    put(top, "victim", "safe");
    snprintf(other, sizeof other, "%s/victim", top);
    snprintf(text, sizeof text, "samedisk note 1\npid 4002\nstarted 1\nold evil\npath %s", other);
    put(notes, "1.note", text);
    snprintf(text, sizeof text, "samedisk note 1\npid 4002\nstarted 1\nold evil\npath %s/../victim", sys);
    put(notes, "2.note", text);
    put(notes, "3.note", "samedisk note 1\npid x");
    put(notes, "4.note", "");
    put(notes, "README", "not a note");
    notes_recover(&where, say, NULL);
    assert_int_equal(n_said, 0);
    snprintf(text, sizeof text, "../victim");
    assert_string_equal(get(text), "safe");
    assert_int_equal(count_notes(), 3); /* what is no note of ours stays */
}

static void cannot_be_set(void **state) {
    struct setting s;
    struct err err;
    char path[300];
    (void)state;
    snprintf(path, sizeof path, "%s/" QUEUE "none_such", sys);
    assert_int_equal(notes_change(&where, path, "1", &s, &err), -1);
    assert_int_equal(err.status, STATUS_TARGET);
    put(sys, QUEUE "empty", "");
    snprintf(path, sizeof path, "%s/" QUEUE "empty", sys);
    assert_int_equal(notes_change(&where, path, "1", &s, &err), -1);
    assert_non_null(strstr(err.msg, "cannot be read"));
    /* No place for a note: nothing is changed. */
    put(top, "notes", "a file");
    snprintf(path, sizeof path, "%s/" QUEUE "read_ahead_kb", sys);
    assert_int_equal(notes_change(&where, path, "1", &s, &err), -1);
    assert_non_null(strstr(err.msg, "a note with the old value"));
    assert_string_equal(get(QUEUE "read_ahead_kb"), "128");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys),
        cmocka_unit_test_setup_teardown(set_and_put_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(as_it_is_already, set_up, tear_down),
        cmocka_unit_test_setup_teardown(where_it_is, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_at_a_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(recovery, set_up, tear_down),
        cmocka_unit_test_setup_teardown(recovery_on_the_way, set_up, tear_down),
        cmocka_unit_test_setup_teardown(made_up_notes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(cannot_be_set, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
