/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pattern/set.h"

static struct pattern_set reads(const char *text) {
    struct pattern_set set = {0};
    struct err err;
    if (set_read(&set, "f.ini", text, strlen(text), NULL, 0, NULL, &err) != 0) fail_msg("%s", err.msg);
    return set;
}

static void fails_with(const char *text, const struct pattern_override *over, size_t n_over, const char *only,
                       const char *expected) {
    struct pattern_set set = {0};
    struct err err;
    assert_int_equal(set_read(&set, "f.ini", text, strlen(text), over, n_over, only, &err), -1);
    assert_int_equal(err.status, STATUS_USAGE);
    assert_string_equal(err.msg, expected);
    assert_int_equal(set.n, 0);
    set_free(&set);
}

static void fails(const char *text, const char *expected) {
    fails_with(text, NULL, 0, NULL, expected);
}

static void notes_are(const char *text, const char *expected) {
    struct pattern_set set = reads(text);
    assert_string_equal(set.notes ? set.notes : "", expected);
    set_free(&set);
}

static void sections_inherit_global(void **state) {
    struct pattern_set set = reads("[global]\nbs=8k\niodepth=7\ndescription=all\n[a]\n[b]\nrw=write\nbs=16k\n"
                                   "[global]\niodepth=9\n[c]\ndescription=own\n");
    (void)state;
    assert_int_equal(set.n, 3);
    assert_string_equal(set.pattern[0].name, "a");
    assert_string_equal(set.pattern[0].origin, "f.ini:5");
    assert_string_equal(set.pattern[0].description, "all");
    assert_int_equal(set.pattern[0].row[0].size, 8192);
    assert_int_equal(set.pattern[0].iodepth, 7);
    assert_string_equal(set.pattern[1].origin, "f.ini:6");
    assert_int_equal(set.pattern[1].row[0].size, 16384);
    assert_int_equal(set.pattern[1].rw, RW_WRITE);
    assert_int_equal(set.pattern[2].rw, RW_READ); /* nothing of [b] is left */
    assert_int_equal(set.pattern[2].iodepth, 9);  /* a later [global] counts from there */
    assert_string_equal(set.pattern[2].description, "own");
    assert_null(set.notes);
    set_free(&set);
}

static void rows_add_up_within_a_section(void **state) {
    struct pattern_set set = reads("[global]\nrow=4k share=50\nrow=8k share=50\n[a]\n[b]\nrow = 64k share=10 read=0\n"
                                   "row = 16k share=90\n");
    (void)state;
    assert_int_equal(set.pattern[0].n_rows, 2);
    assert_int_equal(set.pattern[1].n_rows, 2);
    assert_int_equal(set.pattern[1].row[0].size, 65536);
    assert_int_equal(set.pattern[1].row[1].share, 9000);
    assert_null(set.notes);
    set_free(&set);
}

static void command_line_wins(void **state) {
    static const struct pattern_override over[] = {{"iodepth", "3"}, {"bs", "64k"}, {"end-fsync", NULL}};
    static const char text[] = "[a]\niodepth=9\nbssplit=4k/50:8k/50\nrw=write\n[b]\nrw=read\n";
    struct pattern_set set = {0};
    struct err err;
    (void)state;
    assert_int_equal(set_read(&set, "f.ini", text, strlen(text), over, 3, NULL, &err), 0);
    assert_int_equal(set.pattern[0].iodepth, 3);
    assert_int_equal(set.pattern[0].n_rows, 1);
    assert_int_equal(set.pattern[0].row[0].size, 65536);
    assert_int_equal(set.pattern[1].iodepth, 3);
    assert_true(set.pattern[1].end_fsync);
    assert_string_equal(set.notes, "--bs: bs replaces bssplit"); /* end_fsync has an effect on the first one */
    set_free(&set);
    static const struct pattern_override bad = {"iodepth", "x"}, contradiction = {"size", "4k"};
    fails_with("[a]\n", &bad, 1, NULL, "--iodepth: 'x' is not a whole number: it does not begin with a "
               "digit (write "
               "for example 32); allowed: 1 to 4096");
    fails_with("\n[a]\nbs=8k\n", &contradiction, 1, NULL, "the command line: pattern 'a': size=4k is smaller than one block "
               "of 8k");
}

/* What the command line has made another load of is called so. */
static void changed_patterns_are_named(void **state) {
    static const char text[] = "[4k random read]\nrw=randread\nbs=4k\n[1m write]\nrw=write\nbs=1m\n";
    static const struct {
        struct pattern_override over[2];
        const char *first, *second, *changed; /* of the second; NULL: nothing */
    } cases[] = {
        {{{"bs", "4k"}, {"iodepth", "8"}}, "4k random read", "1m write [bs=4k]", "bs=4k"},
        {{{"rw", "randread"}, {"bs", "4k"}}, "4k random read", "1m write [rw=randread bs=4k]", "rw=randread bs=4k"},
        {{{"rwmixread", "70"}, {"sync", "dsync"}}, "4k random read", "1m write", NULL},
        {{{"rw", "randrw"}, {"rwmixwrite", "30"}}, "4k random read [rw=randrw rwmixread=70]",
         "1m write [rw=randrw rwmixread=70]", "rw=randrw rwmixread=70"},
        {{{"percentage_random", "50"}, {"position", "separate"}}, "4k random read [percentage_random=50]",
         "1m write [percentage_random=50]", "percentage_random=50"},
        {{{"bssplit", "4k/50:8k/20:16k/10:32k/20"}, {"size", "1g"}}, "4k random read [bssplit]", "1m write [bssplit]",
         "bssplit"},
        {{{"rw", "write"}, {"bs", "1m"}}, "4k random read [rw=write bs=1m]", "1m write", NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pattern_set set = {0};
        struct err err;
        if (set_read(&set, "f.ini", text, strlen(text), cases[i].over, 2, NULL, &err) != 0) fail_msg("%s", err.msg);
        assert_string_equal(set.pattern[0].name, cases[i].first);
        assert_string_equal(set.pattern[1].name, cases[i].second);
        if (cases[i].changed) {
            assert_string_equal(set.pattern[1].changed, cases[i].changed);
            assert_string_equal(set.pattern[1].section, "1m write");
        } else {
            assert_null(set.pattern[1].changed);
        }
        set_free(&set);
    }
}

static void a_name_of_ones_own(void **state) {
    static const struct pattern_override over[] = {{"name", "mine"}, {"bs", "8k"}};
    static const char text[] = "[a]\n[b]\n";
    struct pattern_set set = {0};
    struct err err;
    (void)state;
    assert_int_equal(set_read(&set, "f.ini", text, strlen(text), over, 2, "a", &err), 0);
    assert_string_equal(set.pattern[0].name, "mine");
    assert_string_equal(set.pattern[0].section, "a");
    set_free(&set);
    fails_with(text, over, 2, NULL, "--name names one pattern, and there are more: leave one with --only GLOB, or drop --name");
}

static void keys_alone(void **state) {
    static const struct {
        struct pattern_override over[3];
        const char *name; /* NULL: no pattern of their own */
    } cases[] = {
        {{{"rw", "randread"}, {"bs", "4k"}, {"size", "1g"}}, "randread 4k d1"},
        {{{"rw", "randrw"}, {"bs", "8k"}, {"iodepth", "8"}}, "randrw 8k 50% read d8"},
        {{{"rw", "rw"}, {"rwmixread", "70"}, {"percentage_random", "60"}}, "randrw 4k 70% read 60% random d1"},
        {{{"rw", "write"}, {"bssplit", "4k/50:64k/50"}, {"numjobs", "4"}}, "write 4k/64k d1 x4"},
        {{{"iodepth", "32"}, {"runtime", "5"}, {"size", "1g"}}, "read 4k d32"},
        {{{"name", "test"}, {"rw", "write"}, {"size", "1g"}}, "test"},
        {{{"readwrite", "write"}, {"rate_iops", "100"}, {"size", "1g"}}, "write 4k 100 IOPS d1"},
        {{{"size", "1g"}, {"runtime", "5"}, {"rounds", "2"}}, NULL},
        {{{"sync", "dsync"}, {"prepare", "none"}, {"ramp-time", "0"}}, NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pattern_set set = {0};
        struct err err;
        assert_int_equal(set_keys_are_a_pattern(cases[i].over, 3), cases[i].name != NULL);
        if (!cases[i].name) continue;
        if (set_from_keys(&set, cases[i].over, 3, &err) != 0) fail_msg("%s", err.msg);
        assert_int_equal(set.n, 1);
        assert_string_equal(set.pattern[0].name, cases[i].name);
        set_free(&set);
    }
}

/* A key of the command line that does nothing is not put down to a line of the file. */
static void the_command_line_is_to_blame(void **state) {
    static const struct pattern_override sync = {"sync", "dsync"};
    struct pattern_set set = {0};
    struct err err;
    (void)state;
    assert_int_equal(set_read(&set, "f.ini", "[a]\n[b]\nrw=randread\n", 19, &sync, 1, NULL, &err), 0);
    assert_string_equal(set.notes, "--sync has no effect: nothing is written");
    set_free(&set);
    assert_int_equal(set_read(&set, "f.ini", "[a]\n[b]\nrw=write\n", 17, &sync, 1, NULL, &err), 0);
    assert_null(set.notes);
    set_free(&set);
}

static void only_some(void **state) {
    static const char text[] = "[4k read]\nbs=4k\n[1m read]\nbs=1m\n[4k write]\nrw=write\nname=w\n";
    struct pattern_set set = {0};
    struct err err;
    (void)state;
    assert_int_equal(set_read(&set, "f.ini", text, strlen(text), NULL, 0, "4k*", &err), 0);
    assert_int_equal(set.n, 1); /* the third is called w */
    assert_string_equal(set.pattern[0].name, "4k read");
    assert_int_equal(set_read(&set, "f.ini", text, strlen(text), NULL, 0, "w", &err), 0);
    assert_int_equal(set.n, 2);
    set_free(&set);
    fails_with(text, NULL, 0, "x*", "f.ini: no pattern's name matches 'x*'; there are '4k read', '1m read', '4k "
               "write'");
    /* what is not chosen is still read */
    fails_with("[a]\n[b]\nbs=x\n", NULL, 0, "a",
               "f.ini:3: bs: 'x' is not a size: it does not begin with a digit (write for example 4k)");
}

static void notes(void **state) {
    (void)state;
    notes_are("[a]\niodepth=1\niodepth=2\n", "f.ini:3: iodepth stands twice in this section; the last one counts");
    notes_are("[a]\nba=4k\n\nblockalign=8k\n", "f.ini:4: blockalign stands twice in this section; the last one counts");
    notes_are("[global]\nbs=4k\n[a]\nbs=8k\n", "");
    notes_are("[global]\nbssplit=4k/100\n[a]\nbs=8k\n", "f.ini:4: bs replaces bssplit");
    notes_are("[global]\nrwmixread=70\nfsync=1\n[a]\nrw=randread\n[b]\nrw=randrw\n", "");
    notes_are("[a]\nrw=randread\nrwmixread=70\n", "f.ini:1: rwmixread has no effect: rw= has one direction");
    notes_are("[a]\nsize=1GiB\n", "f.ini:2: size=1GiB is a power of 1024 here; fio takes KiB, MiB, GiB for powers of "
              "1000");
    notes_are("[global-read]\n", "f.ini:1: this section is a pattern; fio takes every name that begins with 'global' "
              "for "
              "[global]");
    notes_are("[global]\nname=x\n[a]\n", "f.ini:2: name in [global] names nothing: patterns are called as their "
              "sections");
    notes_are("[a]\ndirect=1\ntime_based=0\n",
              "f.ini:2: direct has no effect here: I/O goes past the client's page cache wherever that can be done\n"
              "f.ini:1: time_based=0 is loops=1: one pass over the working set");
    notes_are("[a]\nrow=4k share=50\nrow=4k share=50\n", "");
}

static void errors_have_places(void **state) {
    (void)state;
    fails("", "f.ini: no pattern in it: every [section] but [global] is one");
    fails("# nothing\n\n", "f.ini: no pattern in it: every [section] but [global] is one");
    fails("[global]\nbs=4k\n", "f.ini: no pattern in it: every [section] but [global] is one");
    fails("\nbs=4k\n[a]\n", "f.ini:2: 'bs' stands before the first [section]");
    fails("Version 2004.07.30 \n'ACCESS SPECIFICATIONS ===\n",
          "f.ini:1: 'Version 2004.07.30' stands before the first [section]; is this a pattern file?");
    fails("[a]\n\n\nbs=1.5k\n", "f.ini:4: bs: '1.5k' is not a size: fractions are not allowed (write 1536)");
    fails("[a]\nruntime=10min\n",
          "f.ini:2: runtime: '10min' is not a time: unknown unit 'min' (known: ns, us, ms, s, m, h, d; write 10m); "
              "allowed: at "
          "most 365d");
    fails("[a]\niodepht=3\n", "f.ini:2: unknown key 'iodepht'; did you mean iodepth?");
    fails("[a]\n[b]\n[a]\n", "f.ini:3: a second section [a]");
    fails("[a]\n[b]\nname=a\n", "f.ini:2: there is already a pattern 'a' (f.ini:1); names must differ");
    fails("[a]\n[b]\nloops=1\nio_size=1g\n[c]\n",
          "f.ini:2: pattern 'b': io_size and loops both end the run; give one of them");
    fails("[a]\ninclude other.fio\n", "f.ini:2: include is not taken: a pattern file is complete, so that it says "
          "what was "
          "run; copy the included lines here");
    fails("[a]\nbs=${BS:-4k}\n", "f.ini:2: ${...} is not expanded: the result would depend on an environment that "
          "nobody sees "
          "later; write the value, or give it on the command line as --KEY VALUE");
    fails("[a]\nrsize=32k\n", "f.ini:2: rsize belongs to a target, not to a pattern: write --set LABEL.rsize=VALUE, or "
          "?rsize=VALUE behind the target's URL");
    fails("[a\n", "f.ini:1: the ']' of '[a' is missing");
    fails("\xef\xbb\xbf[a]\n", "f.ini:1: the file begins with a UTF-8 byte order mark; save it without one");
    fails("[a]\nname=\n", "f.ini:1: name: a pattern needs a name");
}

static void several_files(void **state) {
    struct pattern_set set = reads("[a]\n[b]\n");
    struct err err;
    (void)state;
    assert_int_equal(set_read(&set, "g.ini", "[c]\n[b]\n", 8, NULL, 0, NULL, &err), -1);
    assert_string_equal(err.msg, "g.ini:2: there is already a pattern 'b' (f.ini:2); names must differ");
    assert_int_equal(set.n, 2); /* not half of a file */
    assert_int_equal(set_read(&set, "g.ini", "[c]\n", 4, NULL, 0, NULL, &err), 0);
    assert_int_equal(set.n, 3);
    assert_string_equal(set.pattern[2].origin, "g.ini:1");
    set_free(&set);
    assert_null(set.pattern);
}

static const char *shipped_dir(char *buf, size_t len) {
    const char *srcdir = getenv("srcdir");
    snprintf(buf, len, "%s/patterns", srcdir ? srcdir : ".");
    return buf;
}

static struct pattern_set shipped(const char *word) {
    char dir[4096];
    const char *dirs[] = {"/does/not/exist", shipped_dir(dir, sizeof(dir)), NULL};
    struct pattern_set set = {0};
    struct err err;
    if (set_load(&set, word, dirs, NULL, 0, NULL, &err) != 0) fail_msg("%s", err.msg);
    return set;
}

static void check_vmtn(const char *word, const char *suffix, uint32_t align) {
    static const struct { const char *name; uint32_t size, read, random; } expected[] = {
        {"Max Throughput-100%Read", 32768, 100, 0},
        {"RealLife-60%Rand-65%Read", 8192, 65, 60},
        {"Max Throughput-50%Read", 32768, 50, 0},
        {"Random-8k-70%Read", 8192, 70, 100}};
    struct pattern_set set = shipped(word);
    assert_int_equal(set.n, 4);
    assert_null(set.notes);
    for (size_t i = 0; i < 4; i++) {
        const struct pattern *p = &set.pattern[i];
        char name[100];
        snprintf(name, sizeof(name), "%s%s", expected[i].name, suffix);
        assert_string_equal(p->name, name);
        assert_int_equal(p->n_rows, 1);
        assert_int_equal(p->row[0].size, expected[i].size);
        assert_int_equal(p->row[0].read, expected[i].read);
        assert_int_equal(p->row[0].random, expected[i].random);
        assert_int_equal(p->row[0].align, align);
        assert_int_equal(p->position, POSITION_SHARED);
        assert_true(p->size == 8000000ULL * 512);
        assert_int_equal(p->iodepth, 64);
        assert_int_equal(p->numjobs, 1);
        assert_true(p->ramp_time == 120000000000ULL && p->runtime == 300000000000ULL);
        assert_int_equal(p->sync, SYNC_DATASTORE);
        assert_int_equal(p->rounds, 1);
    }
    set_free(&set);
}

static void shipped_vmtn(void **state) {
    (void)state;
    check_vmtn("vmtn", "", 512);
    check_vmtn("vmtn-4k", " 4k-aligned", 4096);
}

static void shipped_quick(void **state) {
    static const struct { const char *name; uint32_t size, read, random; uint64_t depth; } expected[] = {
        {"4k random read", 4096, 100, 100, 32},
        {"4k random write", 4096, 0, 100, 32},
        {"1m sequential read", 1 << 20, 100, 0, 8},
        {"1m sequential write", 1 << 20, 0, 0, 8}};
    struct pattern_set set = shipped("quick");
    uint64_t round = 0;
    (void)state;
    assert_int_equal(set.n, 4);
    assert_null(set.notes);
    for (size_t i = 0; i < 4; i++) {
        const struct pattern *p = &set.pattern[i];
        assert_string_equal(p->name, expected[i].name);
        assert_int_equal(p->row[0].size, expected[i].size);
        assert_int_equal(p->row[0].read, expected[i].read);
        assert_int_equal(p->row[0].random, expected[i].random);
        assert_int_equal(p->iodepth, expected[i].depth);
        assert_true(p->rounds == ROUNDS_BALANCED);
        assert_true(p->size == 4ULL << 30);
        round += p->ramp_time + p->runtime;
    }
    assert_true(round * 3 == 60000000000ULL); /* three targets */
    set_free(&set);
}

static void list_one(void *arg, const char *name, const char *path, const char *description) {
    char *out = arg;
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_true(strlen(description) > 10);
    sprintf(out + strlen(out), "%s ", name);
}

/* Every file in the folder is listed, can be loaded without a note, and has a description. */
static void all_shipped_files_load(void **state) {
    char dir[4096], names[1000] = "", *save = NULL;
    const char *dirs[] = {shipped_dir(dir, sizeof(dir)), dir, NULL};
    struct err err;
    (void)state;
    assert_int_equal(set_list(dirs, list_one, names, &err), 0);
    assert_non_null(strstr(names, "quick vmtn vmtn-4k "));
    for (char *name = strtok_r(names, " ", &save); name; name = strtok_r(NULL, " ", &save)) {
        struct pattern_set set = shipped(name);
        assert_null(set.notes);
        for (size_t i = 0; i < set.n; i++) assert_non_null(set.pattern[i].description);
        set_free(&set);
    }
}

static void load_fails(const char *word, const char *const *dirs, const char *expected) {
    struct pattern_set set = {0};
    struct err err;
    assert_int_equal(set_load(&set, word, dirs, NULL, 0, NULL, &err), -1);
    assert_int_equal(err.status, STATUS_USAGE);
    if (!strstr(err.msg, expected)) fail_msg("'%s' is not in '%s'", expected, err.msg);
    set_free(&set);
}

static void words_that_are_no_pattern_file(void **state) {
    char dir[4096];
    const char *dirs[] = {shipped_dir(dir, sizeof(dir)), NULL}, *none[] = {"/does/not/exist", NULL};
    (void)state;
    load_fails("qiuck", dirs, "'qiuck' is no pattern file; did you mean quick? Those that ship are: ");
    load_fails("\x1b[2J", dirs, "'\\x1B[2J' is no pattern file; those that ship are: ");
    load_fails("quick", none, "'quick' is no pattern file; those that ship are: none found (a file of your own needs "
               "a '/' or "
               "an ending .ini)");
    load_fails("..", dirs, "'..' is no pattern file");
    load_fails("/does/not/exist.ini", dirs, "/does/not/exist.ini: ");
    load_fails("Test.ICF", dirs, "Test.ICF: an Iometer configuration is not a pattern file");
    load_fails("./a.fio", dirs, "./a.fio: a fio job file is not a pattern file: fio runs its sections at the same "
               "time");
    load_fails("a.job", dirs, "a.job: a fio job file is not a pattern file");
}

static void no_list(void *arg, const char *name, const char *path, const char *description) {
    (void)arg;
    (void)name;
    (void)path;
    (void)description;
    fail();
}

static void files_and_folders(void **state) {
    char dir[] = "/tmp/test_set.XXXXXX", path[100], other[200];
    const char *dirs[] = {NULL, NULL}, *none[] = {"/does/not/exist", NULL};
    struct pattern_set set = {0};
    struct err err;
    FILE *f;
    (void)state;
    assert_int_equal(set_list(none, no_list, NULL, &err), -1);
    assert_string_equal(err.msg, "no pattern files in /does/not/exist");
    assert_non_null(mkdtemp(dir));
    dirs[0] = dir;
    snprintf(path, sizeof(path), "%s/mine.ini", dir);
    snprintf(other, sizeof(other), "%s/mine.txt", dir);
    assert_non_null(f = fopen(path, "w"));
    fputs("[x]\r\nbs=oops\r\n", f);
    fclose(f);
    assert_non_null(f = fopen(other, "w"));
    fputs("[y]\nbs=8k\n", f);
    fclose(f);
    load_fails("mine", dirs, "mine.ini:2: bs: 'oops' is not a size");
    snprintf(other, sizeof(other), "%s:2: bs: 'oops' is not a size", path);
    load_fails(path, dirs, other); /* a path is named as it was given */
    snprintf(other, sizeof(other), "%s/mine.txt", dir);
    assert_int_equal(set_load(&set, other, dirs, NULL, 0, NULL, &err), 0); /* any ending, if there is a '/' */
    assert_string_equal(set.pattern[0].name, "y");
    set_free(&set);
    load_fails(dir, dirs, dir);
    unlink(path);
    unlink(other);
    rmdir(dir);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sections_inherit_global),
        cmocka_unit_test(rows_add_up_within_a_section),
        cmocka_unit_test(command_line_wins),
        cmocka_unit_test(changed_patterns_are_named),
        cmocka_unit_test(a_name_of_ones_own),
        cmocka_unit_test(keys_alone),
        cmocka_unit_test(the_command_line_is_to_blame),
        cmocka_unit_test(only_some),
        cmocka_unit_test(notes),
        cmocka_unit_test(errors_have_places),
        cmocka_unit_test(several_files),
        cmocka_unit_test(shipped_vmtn),
        cmocka_unit_test(shipped_quick),
        cmocka_unit_test(all_shipped_files_load),
        cmocka_unit_test(words_that_are_no_pattern_file),
        cmocka_unit_test(files_and_folders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
