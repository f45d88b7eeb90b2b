/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "report/figure.h"
#include "report/grid.h"
#include "report/table.h"
#include "result/view.h"
#include "tests/unit/madeup_document.h"

/* Prints the table of a finished document, without the last line, which has the time in it. */
static char *table_in(struct document *d, unsigned width, bool verbose) {
    char *text = NULL;
    size_t len;
    document_finish(d, false);
    FILE *out = open_memstream(&text, &len);
    table_print(document_json(d), &(struct table_style){width, verbose}, out);
    fclose(out);
    char *foot = strstr(text, "samedisk 0.1.0, ");
    assert_non_null(foot);
    assert_non_null(strstr(foot, width ? "42" : "seed 42")); /* it may stand on the next line */
    assert_non_null(strstr(foot, view_text(document_json(d), "plan/hash")));
    *foot = '\0';
    document_free(d);
    return text;
}

static char *table_of(struct document *d) {
    return table_in(d, 0, false);
}

static void expect(struct document *d, const char *wanted) {
    char *text = table_of(d);
    assert_string_equal(text, wanted);
    free(text);
}

static void expect_line(struct document *d, const char *wanted) {
    char *text = table_of(d);
    if (!strstr(text, wanted)) fail_msg("no \"%s\" in\n%s", wanted, text);
    free(text);
}

static void expect_no_line(struct document *d, const char *unwanted) {
    char *text = table_of(d);
    if (strstr(text, unwanted)) fail_msg("\"%s\" in\n%s", unwanted, text);
    free(text);
}

static struct document *with_pattern(const char *name) {
    struct document *d = madeup_document();
    struct madeup_pattern load = madeup_load();
    document_pattern(d, name, madeup_keys, &load);
    return d;
}

#define HEAD                                                                                                           \
    "nfs    NFSv3 TCP 10.0.0.1:/vol1 vm.dat, 4 GiB\n"                                                                  \
    "iscsi  iSCSI 10.0.0.1 iqn.x LUN 0, 4 GiB\n"                                                                       \
    "No sign that nfs and iscsi share blocks (384 looked at)\n"                                                         \
    "note: array = EMC Celerra NS-120\n"

static void test_one_round(void **state) {
    (void)state;
    struct document *d = with_pattern("Max Throughput-100%Read");
    struct madeup_pattern load = madeup_load();
    document_pattern(d, "RealLife-60%Rand-65%Read", madeup_keys, &load);
    madeup_add(d, madeup_run("Max Throughput-100%Read", "nfs", 1, 1736, 17280000));
    madeup_add(d, madeup_run("Max Throughput-100%Read", "iscsi", 1, 1675, 17790000));
    madeup_add(d, madeup_run("RealLife-60%Rand-65%Read", "nfs", 1, 240, 121850000));
    struct record *r = madeup_run("RealLife-60%Rand-65%Read", "iscsi", 1, 1792, 14330000);
    madeup_fail(r, "CHECK CONDITION", "medium error", 3);
    madeup_add(d, r);
    expect(d,
           HEAD "\n"
                "depth 64 (iodepth 16 x numjobs 4), achieved 51.4 to 60.0; working set 4.00 GiB; data random; cache as "
                "it is; sync=datastore; "
                "1 round of 5 min after 2 min of ramp; writes claims-stable\n"
                "                                 avg resp ms   IOPS  MiB/s  p99 ms  max ms  CPU us/IO  against nfs\n"
                "Max Throughput-100%Read   nfs          17.28   3472  27.12    17.3    17.3       10.0\n"
                "                          iscsi        17.79   3350  26.17    17.8    17.8       10.0  0.96x\n"
                "RealLife-60%Rand-65%Read  nfs          121.8  480.0  3.750       -     122       10.0\n"
                "                          iscsi        14.33   3584  28.00    14.3    14.3       10.0  - *"
                "          [1]\n"
                "\n"
                "* not the same work, so neither is ranked above the other: I/O errors\n"
                "[1] 3 I/Os failed: 3 CHECK CONDITION (medium error)\n"
                "\n"
                "Status: errors\n");
}

/* What is written, and what was before, where it says something else. */
static void test_data_is_said(void **state) {
    (void)state;
    static const struct { struct record_data written, filled; const char *words; } cases[] = {
        {{.known = true, .compress = 50}, {.known = true, .compress = 50}, "; data 50 % compressible; cache"},
        {{.known = true, .compress = 50, .dedupe = 30}, {.known = true},
         "; data 50 % compressible, 30 % duplicates; filled with data random; cache"},
        {{.known = false}, {.known = true, .zeros = true}, "; working set 4.00 GiB; filled with data zeros; cache"},
        {{.known = false}, {.known = true}, "; working set 4.00 GiB; cache"},
        {{.known = true, .zeros = true}, {.known = false}, "; data zeros; cache"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct document *d = with_pattern("p");
        struct record *r = madeup_run("p", "nfs", 1, 1000, 1000000);
        r->written = cases[i].written;
        r->filled = cases[i].filled;
        madeup_add(d, r);
        expect_line(d, cases[i].words);
    }
}

/* A depth that made-up runs reach. */
static struct record *shallow(struct record *r) {
    r->depth_requested = 1;
    return r;
}

static void test_several_rounds(void **state) {
    (void)state;
    struct document *d = with_pattern("p");
    for (unsigned round = 1; round <= 3; round++) {
        madeup_add(d, shallow(madeup_run("p", "nfs", round, 1000 + round, 1000000)));
        madeup_add(d, shallow(madeup_run("p", "iscsi", round, 500 * round, 1000000)));
    }
    expect(d, HEAD "\n"
                   "depth 64 (iodepth 16 x numjobs 4), achieved 1.00 to 3.00; working set 4.00 GiB; data random; cache "
                   "as it is; sync=datastore; "
                   "3 rounds of 5 min after 2 min of ramp; writes claims-stable\n"
                   "          avg resp ms  IOPS  min..max    MiB/s  p99 ms  max ms  CPU us/IO  against nfs\n"
                   "p  nfs          1.000  2004  2002..2006  15.66    1.00    1.00       10.0\n"
                   "   iscsi        1.000  2000  1000..3000  15.62    1.00    1.00       10.0  1.00x\n"
                   "\n"
                   "Figures are medians over the rounds; max ms is over all of them.\n");
}

/* Names and labels of any width, in more bytes than columns, leave the figures where they belong. */
static void test_columns_of_wide_names(void **state) {
    (void)state;
    struct document *d = with_pattern("\xc3\x84hnlich \xe2\x80\x93 gr\xc3\xb6\xc3\x9f"
                                      "er");
    struct madeup_pattern load = madeup_load();
    document_pattern(d, "x", madeup_keys, &load);
    madeup_add(d, madeup_run("\xc3\x84hnlich \xe2\x80\x93 gr\xc3\xb6\xc3\x9f"
                             "er",
                             "nfs", 1, 500, 1000000));
    madeup_add(d, madeup_run("x", "nfs", 1, 500, 1000000));
    char *text = table_of(d);
    assert_non_null(strstr(text, "\n\xc3\x84hnlich \xe2\x80\x93 gr\xc3\xb6\xc3\x9f"
                                 "er  nfs        1.000  1000"));
    assert_non_null(strstr(text, "\nx                 nfs        1.000  1000"));
    free(text);
}

static void test_names_cannot_act_on_the_terminal(void **state) {
    (void)state;
    struct document *d = with_pattern("evil \x1b[2Jname");
    madeup_add(d, madeup_run("evil \x1b[2Jname", "nfs", 1, 10, 1000));
    document_note(d, "key\x07", "value\x1b]0;x");
    char *text = table_of(d);
    for (const char *c = text; *c; c++) assert_true(*c == '\n' || (unsigned char)*c >= ' ');
    assert_non_null(strstr(text, "evil \\x1B[2Jname"));
    free(text);
}

static void test_durability_per_target(void **state) {
    (void)state;
    struct document *d = with_pattern("p");
    struct record *r = madeup_run("p", "iscsi", 1, 10, 1000);
    r->durability = DURABILITY_VOLATILE;
    madeup_add(d, madeup_run("p", "nfs", 1, 10, 1000));
    madeup_add(d, r);
    char *text = table_of(d);
    assert_non_null(strstr(text, "; writes claims-stable on nfs, volatile on iscsi\n"));
    assert_non_null(strstr(text, "  1.00x *"));
    assert_non_null(strstr(text, "\n* not the same work, so neither is ranked above the other: writes of different "
                                 "durability\n"));
    free(text);
}

/* Another class needs another line; a pattern without writes needs none. */
static void test_groups(void **state) {
    (void)state;
    struct document *d = with_pattern("reads");
    struct madeup_pattern load = madeup_load();
    document_pattern(d, "writes", madeup_keys, &load);
    document_pattern(d, "flushes", madeup_keys, &load);
    struct record *r = madeup_run("reads", "nfs", 1, 10, 1000);
    r->durability = DURABILITY_NO_WRITES;
    madeup_add(d, r);
    madeup_add(d, madeup_run("writes", "nfs", 1, 10, 1000));
    r = madeup_run("flushes", "nfs", 1, 10, 1000);
    r->durability = DURABILITY_FLUSHED;
    madeup_add(d, r);
    char *text = table_of(d), *first = strstr(text, "\ndepth"), *second = strstr(first + 1, "\ndepth");
    assert_non_null(second);
    assert_null(strstr(second + 1, "\ndepth"));
    assert_true(first < strstr(text, "\nreads") && strstr(text, "\nwrites ") < second &&
                second < strstr(text, "\nflushes"));
    assert_non_null(strstr(first, "; writes claims-stable\n"));
    assert_non_null(strstr(second, "; writes flushed\n"));
    free(text);
}

static json_t *pair(const char *a, const char *b, const char *verdict, const char *how) {
    return json_pack("{s:[s,s], s:s, s:i, s:s}", "targets", a, b, "verdict", verdict, "blocks", 100, "how", how);
}

static void test_what_was_seen_of_one_object(void **state) {
    (void)state;
    static const struct {
        const char *verdict, *line;
    } cases[] = {{"one object", "nfs and iscsi are the same object (so)"},
                 {"shared blocks", "nfs and iscsi share what they store (so)"},
                 {"equal data", "nfs and iscsi may be the same object, or a copy (so)"},
                 {"different objects", "nfs and iscsi bear one identity, but are two objects (so)"},
                 {"not confirmed", "nfs and iscsi bear one identity; whether they are one object is not known (so)"},
                 {"no sign", "No sign that nfs and iscsi share blocks (100 looked at)"},
                 {"not looked into", "Whether nfs and iscsi share blocks was not looked into"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct document *d = with_pattern("p");
        json_t *pairs = json_array();
        json_array_append_new(pairs, pair("nfs", "iscsi", cases[i].verdict, "so"));
        document_sameness(d, pairs);
        madeup_add(d, madeup_run("p", "nfs", 1, 10, 1000));
        expect_line(d, cases[i].line);
    }
    struct document *d = with_pattern("p");
    json_t *pairs = json_array();
    json_array_append_new(pairs, pair("nfs", "iscsi", "no sign", ""));
    json_array_append_new(pairs, pair("nfs", "fc", "no sign", ""));
    document_sameness(d, pairs);
    madeup_add(d, madeup_run("p", "nfs", 1, 10, 1000));
    expect_line(d, "No sign that any of the targets share blocks (200 looked at)");
}

/* A target that keeps nothing adds no line, and breaks up no common one. */
static void test_sameness_beside_null(void **state) {
    (void)state;
    for (unsigned others = 1; others <= 2; others++) {
        struct document *d = with_pattern("p");
        json_t *pairs = json_array();
        json_array_append_new(pairs, pair("nfs", "iscsi", "no sign", ""));
        if (others > 1) json_array_append_new(pairs, pair("nfs", "fc", "no sign", ""));
        json_array_append_new(pairs, pair("nfs", "null", "no storage", ""));
        json_array_append_new(pairs, pair("null", "iscsi", "no storage", ""));
        document_sameness(d, pairs);
        madeup_add(d, madeup_run("p", "nfs", 1, 10, 1000));
        char *text = table_of(d);
        assert_non_null(strstr(text, others > 1 ? "\nNo sign that any of the targets share blocks (200 looked at)\nnote"
                                                : "\nNo sign that nfs and iscsi share blocks (100 looked at)\nnote"));
        assert_null(strstr(text, "null"));
        free(text);
    }
    /* What differs has its own line, what is the same of all others one. */
    struct document *d = with_pattern("p");
    json_t *pairs = json_array();
    json_array_append_new(pairs, pair("nfs", "iscsi", "one object", "so"));
    json_array_append_new(pairs, pair("nfs", "fc", "no sign", ""));
    json_array_append_new(pairs, pair("iscsi", "fc", "no sign", ""));
    document_sameness(d, pairs);
    madeup_add(d, madeup_run("p", "nfs", 1, 10, 1000));
    expect_line(d, "\nnfs and iscsi are the same object (so)\nNo sign that any others of the targets share blocks (200 looked at)\n");
}

static void test_target_left_out(void **state) {
    (void)state;
    struct document *d = with_pattern("p");
    document_target(d, json_pack("{s:s, s:s, s:[], s:[]}", "label", "fc", "lost", "/dev/sdzz: No such file", "members",
                                 "warnings"));
    madeup_add(d, madeup_run("p", "nfs", 1, 10, 1000));
    char *text = table_of(d);
    assert_non_null(strstr(text, "fc     left out: /dev/sdzz: No such file\n"));
    assert_non_null(strstr(text, "Status: lost\n"));
    free(text);
}

static void test_nothing_was_run(void **state) {
    (void)state;
    expect_line(with_pattern("p"), "\nNo run was finished.\n");
}

/* ---- what is said in words ---- */

static struct document *with_run(struct record **r) {
    *r = madeup_run("p", "nfs", 1, 1000, 1000000);
    return with_pattern("p");
}

static void test_words_only_where_they_are_due(void **state) {
    (void)state;
    struct record *r;
    struct document *d = with_run(&r);
    r->submit_ns = NS_PER_SEC / 5; /* exactly 20 % */
    r->tail = (struct record_tail){.ios = 64, .longest_ns = 1000000, .drain_ns = 5};
    r->wire_ios_per_io = 1.009;
    kv_uint(&r->protocol, "command_window_closed_ns", 149 * NS_PER_MS); /* of 3 s */
    r->depth_achieved *= 1.02;
    shallow(r);
    madeup_add(d, r);
    expect_no_line(d, "\n[1]");
}

/* What is known and changes nothing stands only where all is asked for. */
static void test_no_noise(void **state) {
    (void)state;
    for (int verbose = 0; verbose < 2; verbose++) {
        struct record *r;
        struct document *d = with_run(&r);
        shallow(r);
        r->wire_ios_per_io = 1.04;
        r->end_flush_ns = NS_PER_SEC / 25;
        r->op[IO_FLUSH].ios = 1;
        hist_record(&r->op[IO_FLUSH].clat, 100000);
        r->tail = (struct record_tail){.ios = 1, .longest_ns = 1500000, .drain_ns = 5};
        r->zeros_sampled = 3;
        r->blocks_sampled = 256;
        kv_gauge(&r->protocol, "tcp_connections", 1);
        kv_gauge(&r->protocol, "tcp_min_rtt_ns", 100000);
        madeup_add(d, r);
        char *text = table_in(d, 0, verbose);
        assert_true((strstr(text, "TCP: min RTT") != NULL) == verbose);
        assert_true((strstr(text, "1.04 requests on the wire") != NULL) == verbose);
        assert_true((strstr(text, "the flush at the end") != NULL) == verbose);
        assert_true((strstr(text, "an I/O that was out") != NULL) == verbose);
        assert_true((strstr(text, "3 of 256 sampled") != NULL) == verbose);
        assert_null(strstr(text, "[1]"));
        free(text);
    }
}

/* Several rows that have the same to say share a note. */
static void test_notes_are_shared(void **state) {
    (void)state;
    for (int verbose = 0; verbose < 2; verbose++) {
        struct document *d = with_pattern("p");
        struct record *a = shallow(madeup_run("p", "nfs", 1, 100, 1000000));
        struct record *b = shallow(madeup_run("p", "iscsi", 1, 100, 1000000));
        a->submit_ns = NS_PER_SEC / 4;
        b->submit_ns = NS_PER_SEC / 2;
        a->depth_requested = b->depth_requested = 2;
        madeup_add(d, a);
        madeup_add(d, b);
        char *text = table_in(d, 0, verbose);
        const char *note = strstr(text, "\n[1] submission blocks for 25.0 to 50.0 % of the window: ");
        assert_non_null(note);
        assert_null(strstr(text, "[2]"));
        assert_non_null(strstr(text, "1.00x        [1]\n"));
        assert_true((strstr(text, "\np on nfs\n  submission blocks for 25.0 % of") != NULL) == verbose);
        assert_true(strstr(text, "\np ") < note); /* rows first */
        free(text);
    }
}

static void test_warnings_of_a_target_are_notes(void **state) {
    (void)state;
    struct document *d = with_pattern("p");
    document_target(d, json_pack("{s:s, s:n, s:[{s:s}], s:[{s:s, s:s}]}", "label", "x", "lost", "members", "summary", "an x",
                                 "warnings", "code", "slow", "text", "it is slow"));
    madeup_add(d, shallow(madeup_run("p", "nfs", 1, 10, 1000)));
    char *text = table_of(d);
    assert_non_null(strstr(text, "\nx      an x [1]\n"));
    assert_non_null(strstr(text, "\n[1] it is slow\n"));
    free(text);
}

/* A worker of depth 1 has nothing to send while it submits. */
static void test_submission_at_depth_1(void **state) {
    (void)state;
    for (unsigned depth = 1; depth <= 2; depth++) {
        struct record *r;
        struct document *d = with_run(&r);
        r->submit_ns = NS_PER_SEC / 4;
        r->workers = 1;
        r->depth_requested = depth;
        madeup_add(d, r);
        char *text = table_of(d);
        assert_true((strstr(text, "submission blocks") != NULL) == (depth == 2));
        free(text);
    }
}

/* What was sparse when it was opened concerns reads of what nobody has filled since, and whose holes are not known. */
static void test_a_sparse_file(void **state) {
    (void)state;
    static const struct {
        double holes;
        bool filled, writes, said;
    } cases[] = {{NAN, false, false, true}, {NAN, true, false, false}, {0, false, false, false}, {NAN, false, true, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct document *d = with_pattern("p");
        document_target(d, json_pack("{s:s, s:n, s:[{s:s}], s:[{s:s, s:s}]}", "label", "x", "lost", "members", "summary",
                                     "an x", "warnings", "code", "sparse", "text", "only 0 B of it"));
        struct record *r = shallow(madeup_run("p", "x", 1, 100, 1000000));
        r->holes = cases[i].holes;
        r->filled.known = cases[i].filled;
        if (cases[i].writes) {
            r->op[IO_WRITE] = r->op[IO_READ];
            memset(&r->op[IO_READ], 0, sizeof r->op[IO_READ]);
            hist_init(&r->op[IO_READ].clat);
            hist_init(&r->op[IO_READ].lat);
        }
        madeup_add(d, r);
        char *text = table_of(d);
        assert_true((strstr(text, "only 0 B of it") != NULL) == cases[i].said);
        free(text);
    }
}

/* Three targets and long names, in any width: whole columns or none, and never more than there is room for. */
static void test_narrow(void **state) {
    (void)state;
    static const char *const names[] = {"Max Throughput-100%Read", "RealLife-60%Rand-65%Read"};
    static const char *const labels[] = {"nfs", "iscsi", "fc"};
    for (unsigned width = 40; width < 200; width += 3) {
        struct document *d = madeup_document();
        document_target(d, madeup_target("fc", "loop device loop0, 512 MiB", "dev:7:0"));
        struct madeup_pattern load = madeup_load();
        for (unsigned p = 0; p < 2; p++) document_pattern(d, names[p], madeup_keys, &load);
        for (unsigned i = 0; i < 12; i++) {
            struct record *r = madeup_run(names[i / 6], labels[i % 3], i / 3 % 2 + 1, 12345 + i, 1234567 * (i + 1));
            if (i % 3 == 2) r->durability = DURABILITY_VOLATILE;
            r->submit_ns = NS_PER_SEC / 4;
            madeup_add(d, r);
        }
        char *text = table_in(d, width, false), *rest = text, *line;
        if (width > 120) assert_non_null(strstr(text, "CPU us/IO  against nfs\nMax Throughput-100%Read   nfs  "));
        assert_non_null(strstr(text, "IOPS"));
        assert_non_null(strstr(text, "[1]"));
        if (width > 55) assert_non_null(strstr(text, "1.00x *"));
        if (width == 79) {
            assert_non_null(strstr(text, "\n         avg resp ms   IOPS  min..max      MiB/s  p99 ms  against nfs\n"
                                         "Max Throughput-100%Read\n  nfs          3.086  24693  24690..24696  192.9    3.09"));
            assert_non_null(strstr(text, "\nLeft out, for want of room: max ms, CPU us/IO\n"));
        }
        while ((line = strsep(&rest, "\n"))) {
            if (grid_width(line) > width) fail_msg("%u columns: %s", width, line);
            size_t n = strlen(line);
            assert_true(n == 0 || line[n - 1] != ' ');
        }
        free(text);
    }
}

/* Where it changes the reading of the row. */
#define EXPECT_WORDS(change, words)                                                                                    \
    do {                                                                                                               \
        struct record *r;                                                                                              \
        struct document *d = with_run(&r);                                                                             \
        change;                                                                                                        \
        madeup_add(d, r);                                                                                              \
        expect_line(d, "] " words "\n");                                                                               \
    } while (0)

/* What a readahead tells of the wire: 2000 requests of 4 ms each in a window of 1 s, as deep as `depth`. */
static void put_wire(struct record *r, double depth) {
    const struct { const char *name; double value; } tracks[] = {
        {"wire_ios", 2000}, {"wire_depth_area_ns", depth * (double)r->window_ns}, {"wire_lat_sum_ns", 8e9},
        {"wire_lat_max_ns", 5e6}, {"readahead_hits", 990}, {"readahead_misses", 10},
        {"readahead_wasted_bytes", 3 << 20}};
    r->n_tracks = sizeof tracks / sizeof *tracks;
    for (unsigned i = 0; i < r->n_tracks; i++) {
        r->track[i].cumulative = strcmp(tracks[i].name, "wire_lat_max_ns") != 0;
        snprintf(r->track[i].name, sizeof r->track[i].name, "%s", tracks[i].name);
        r->track[i].values = calloc(r->n_points ? r->n_points : 1, sizeof(double));
        r->track[i].total = r->track[i].last = tracks[i].value;
    }
    r->wire_ios_per_io = 1;
}

static void test_words(void **state) {
    (void)state;
    EXPECT_WORDS(r->submit_ns = NS_PER_SEC / 4,
                 "submission blocks for 25.0 % of the window: the depth at the device is lower");
    EXPECT_WORDS(r->standstill = ((struct record_standstill){.ns = 2 * NS_PER_SEC, .longest_ns = 2 * NS_PER_SEC, .times = 1}),
                 "this client stood still for 2.00 s (stopped, suspended or starved of CPU), from 0 ns of the window on: the "
                 "row counts it, as a lower rate and longer latencies than the target's");
    EXPECT_WORDS(
        (kv_uint(&r->protocol, "command_window_closed_ns", 2400 * NS_PER_MS),
         kv_gauge(&r->protocol, "command_window", 32), kv_gauge(&r->protocol, "outstanding_max", 31)),
        "iodepth 64 is beyond the target's command window of 32: it was shut for 80.0 % of the time, and 31 commands "
        "were out at most: the depth at the target is lower");
    EXPECT_WORDS(
        (r->workers = 2, kv_uint(&r->protocol, "command_window_closed_ns", 600 * NS_PER_MS),
         kv_gauge(&r->protocol, "command_window", 16), kv_gauge(&r->protocol, "outstanding_max", 16),
         kv_gauge(&r->protocol, "sessions", 2)),
        "iodepth 32 is beyond the target's command window of 16 on each of 2 sessions: it was shut for 10.0 % of the "
        "time, and 16 commands were out at most: the depth at the target is lower");
    EXPECT_WORDS(kv_gauge(&r->protocol, "lun_grown_bytes", 1 << 30),
                 "the LUN has grown by 1.00 GiB since it was opened, and was used as large as it was");
    EXPECT_WORDS((r->rate_missed = 12, r->rate_unsent = 30, r->lat_lower_bound = true),
                 "rate missed: 42 I/Os were due and never sent (12 were given up: owed for longer than rate_backlog): until "
                 "then they count in the latencies, which are lower bounds");
    EXPECT_WORDS((r->prepare_retries = 3, r->prepare_retry_ns = 70000000),
                 "3 answers of \"try again later\" while the target was prepared: 70.0 ms were spent waiting, before the "
                 "run");
    EXPECT_WORDS((r->tail = (struct record_tail){.ios = 1, .longest_ns = 12 * NS_PER_SEC}),
                 "an I/O that was out at the window's end took 12.0 s (inside it 1.00 ms at most): counted in max");
    EXPECT_WORDS((r->tail = (struct record_tail){.abandoned = 3, .abandoned_ns = 3200000000, .longest_ns = 3200000000}),
                 "3 I/Os were still out after 3.20 s, when the wait for them was given up: counted in max");
    EXPECT_WORDS((r->pauses = false, r->depth_achieved = r->depth_little = 20),
                 "the depth was not reached: 20.0 of 64 I/Os were out on average; latencies are those of this depth");
    EXPECT_WORDS((kv_uint(&r->protocol, "reserved_ports_short", 3), kv_uint(&r->protocol, "connections", 16)),
                 "3 of 16 connections have no reserved source port, because all 512 are in use towards this server: an "
                 "export with `secure` refuses them");
    EXPECT_WORDS(r->wire_ios_per_io = 0.25, "0.250 requests on the wire per I/O: merged on the way");
    EXPECT_WORDS(r->wire_ios_per_io = 4, "4.00 requests on the wire per I/O: split on the way, or others use it too");
    EXPECT_WORDS(put_wire(r, 8),
                 "readahead: below it 2000 IOPS (1.00 per I/O), mean 4.00 ms, depth 8.00; 99.0 % of the reads from "
                 "memory, 3.00 MiB read in vain");
    EXPECT_WORDS((put_wire(r, 8), r->wire_ios_per_io = 4),
                 "readahead: below it 2000 IOPS (1.00 per I/O), mean 4.00 ms, depth 8.00; 99.0 % of the reads from "
                 "memory, 3.00 MiB read in vain; its requests were split on the way, to 4.00 per I/O");
    EXPECT_WORDS(put_wire(r, 9),
                 "Little's law: the latencies on the wire make a depth of 8.000, 9.000 was measured (11 % apart): do "
                 "not trust this row");
    EXPECT_WORDS(
        r->depth_achieved = 4,
        "Little's law: the latencies make a depth of 2.000, 4.000 was measured (50 % apart): do not trust this row");
    EXPECT_WORDS(r->cpu.user_ns = NS_PER_SEC * 95 / 100 - r->cpu.system_ns,
                 "the client's CPU was the limit: 95.0 % of a core per worker");
    EXPECT_WORDS(r->cpu.host_busy_ns = r->cpu.host_ns, "the client's CPUs were 100 % busy, all programs together");
    EXPECT_WORDS(r->holes = 0.125, "12.5 % of the working set has no storage behind it: reading it needs no disk");
    EXPECT_WORDS((r->zeros_sampled = 30, r->blocks_sampled = 256, r->holes = NAN),
                 "30 of 256 sampled blocks hold only zeros: whether they have storage behind them, the target does not say");
    EXPECT_WORDS((r->zeros_sampled = 30, r->blocks_sampled = 256, r->holes = 0),
                 "30 of 256 sampled blocks hold only zeros");
    EXPECT_WORDS((r->status = RUN_LOST, snprintf(r->error, sizeof r->error, "connection reset")),
                 "the target was lost: connection reset");
    EXPECT_WORDS(r->status = RUN_INTERRUPTED, "interrupted after 1.00 s of the window");
    EXPECT_WORDS(
        (r->settled = false, r->idle_read_ns = 200000, r->settle_read_ns = 9000000, r->settle_ns = 30 * NS_PER_SEC),
        "not settled before the run: a read at depth 1 took 9.00 ms after 30.0 s of waiting, 200 us when idle");
    EXPECT_WORDS((r->settled = false, r->idle_read_ns = 0),
                 "not waited for it to settle: no read at depth 1 worked before, so its idle latency is not known");
    EXPECT_WORDS((r->depth_requested = 1, r->op[IO_FLUSH].ios = 1, hist_record(&r->op[IO_FLUSH].clat, 100000000)),
                 "1 flush, mean 100 ms, longest 100 ms");
    EXPECT_WORDS(r->end_flush_ns = 2500000000, "the flush at the end took 2.50 s");
    EXPECT_WORDS((madeup_fail(r, "NFS3ERR_IO", "input/output error", 2), madeup_fail(r, "timeout", "", 1)),
                 "3 I/Os failed: 2 NFS3ERR_IO (input/output error), 1 timeout");
}

static void test_the_worst_round_is_quoted(void **state) {
    (void)state;
    struct document *d = with_pattern("p");
    for (unsigned round = 1; round <= 3; round++) {
        struct record *r = madeup_run("p", "nfs", round, 100, 1000000);
        r->rate_unsent = round == 3 ? 0 : 10 * round;
        r->lat_lower_bound = round != 3;
        madeup_add(d, r);
    }
    expect_line(d, "] rate missed: 20 I/Os were due and never sent: until then they count in the latencies, which are "
                   "lower bounds (2 of 3 rounds)\n");
}

/* ---- the pieces ---- */

static void test_figures(void **state) {
    (void)state;
    static const struct {
        double value;
        int digits;
        const char *text;
    } cases[] = {
        {17.279, 4, "17.28"}, {3472.4, 4, "3472"},  {1234567, 4, "1234567"}, {0.01234, 3, "0.0123"},
        {0, 4, "0"},          {9.9996, 4, "10.00"}, {99.96, 3, "100"},       {1e-9, 3, "0.000000"},
        {NAN, 4, "-"},        {INFINITY, 4, "-"},   {-0.5, 2, "-0.50"},
    };
    char buf[40];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(figure(buf, sizeof buf, cases[i].value, cases[i].digits), cases[i].text);
    assert_string_equal(figure_ms(buf, sizeof buf, 17280000, 4), "17.28");
    assert_string_equal(figure_mib(buf, sizeof buf, 3 * 1048576, 4), "3.000");
    assert_string_equal(figure_time(buf, sizeof buf, 1500), "1.50 us");
    assert_string_equal(figure_time(buf, sizeof buf, 0), "0 ns");
    assert_string_equal(figure_time(buf, sizeof buf, NAN), "- s");
}

static char *wrapped(const char *prefix, const char *text, unsigned width) {
    char *out = NULL;
    size_t len;
    FILE *f = open_memstream(&out, &len);
    grid_wrap(prefix, 2, text, width, f);
    fclose(f);
    return out;
}

static void test_wrap(void **state) {
    (void)state;
    static const struct { const char *prefix, *text; unsigned width; const char *wanted; } cases[] = {
        {"", "one two three", 0, "one two three\n"},     {"", "one two three", 13, "one two three\n"},
        {"", "one two three", 12, "one two\n  three\n"}, {"[1] ", "one two three", 9, "[1] one\n  two\n  three\n"},
        {"", "a-word-that-is-too-long b", 8, "a-word-that-is-too-long\n  b\n"},
        {"", "\xc3\xa4\xc3\xb6 b", 4, "\xc3\xa4\xc3\xb6 b\n"}, {"", "  indented", 0, "  indented\n"}, {"", "", 5, "\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = wrapped(cases[i].prefix, cases[i].text, cases[i].width);
        assert_string_equal(text, cases[i].wanted);
        free(text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_round),
        cmocka_unit_test(test_data_is_said),
        cmocka_unit_test(test_several_rounds),
        cmocka_unit_test(test_columns_of_wide_names),
        cmocka_unit_test(test_names_cannot_act_on_the_terminal),
        cmocka_unit_test(test_durability_per_target),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_what_was_seen_of_one_object),
        cmocka_unit_test(test_sameness_beside_null),
        cmocka_unit_test(test_target_left_out),
        cmocka_unit_test(test_nothing_was_run),
        cmocka_unit_test(test_words_only_where_they_are_due),
        cmocka_unit_test(test_no_noise),
        cmocka_unit_test(test_notes_are_shared),
        cmocka_unit_test(test_warnings_of_a_target_are_notes),
        cmocka_unit_test(test_submission_at_depth_1),
        cmocka_unit_test(test_a_sparse_file),
        cmocka_unit_test(test_narrow),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_the_worst_round_is_quoted),
        cmocka_unit_test(test_figures),
        cmocka_unit_test(test_wrap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
