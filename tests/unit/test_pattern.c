/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/savefile.h"
#include "pattern/keys.h"
#include "pattern/pattern.h"

static struct pattern fresh(void) {
    struct pattern p;
    struct err err;
    assert_int_equal(pattern_init(&p, "p", &err), 0);
    return p;
}

/* Sets key=value (or a bare key) and checks what is said. */
static void set_says(struct pattern *p, const char *assignment, const char *expected_note) {
    char key[4096], note[400];
    struct err err;
    snprintf(key, sizeof(key), "%s", assignment);
    char *value = strchr(key, '=');
    if (value) *value++ = '\0';
    if (pattern_set(p, key, value, note, sizeof(note), &err) != 0) fail_msg("%s: %s", assignment, err.msg);
    assert_string_equal(note, expected_note);
}

static void set(struct pattern *p, const char *assignment) {
    set_says(p, assignment, "");
}

static void set_fails(const char *assignment, const char *expected) {
    struct pattern p = fresh(), before;
    char key[4096], note[400];
    struct err err;
    memcpy(&before, &p, sizeof(p));
    snprintf(key, sizeof(key), "%s", assignment);
    char *value = strchr(key, '=');
    if (value) *value++ = '\0';
    assert_int_equal(pattern_set(&p, key, value, note, sizeof(note), &err), -1);
    assert_int_equal(err.status, STATUS_USAGE);
    assert_string_equal(err.msg, expected);
    assert_memory_equal(&p, &before, sizeof(p)); /* a refused value changes nothing */
    pattern_free(&p);
}

static void finish(struct pattern *p) {
    struct err err;
    if (pattern_finish(p, &err) != 0) fail_msg("%s", err.msg);
}

/* Assignments separated by '|'. */
static struct pattern with(const char *assignments) {
    struct pattern p = fresh();
    char copy[4096], *save = NULL, note[400];
    struct err err;
    snprintf(copy, sizeof(copy), "%s", assignments);
    for (char *a = strtok_r(copy, "|", &save); a; a = strtok_r(NULL, "|", &save)) {
        char *value = strchr(a, '=');
        if (value) *value++ = '\0';
        if (pattern_set(&p, a, value, note, sizeof(note), &err) != 0) fail_msg("%s: %s", a, err.msg);
    }
    return p;
}

static void finish_fails(const char *assignments, const char *expected) {
    struct pattern p = with(assignments);
    struct err err;
    assert_int_equal(pattern_finish(&p, &err), -1);
    assert_int_equal(err.status, STATUS_USAGE);
    assert_string_equal(err.msg, expected);
    pattern_free(&p);
}

/* Rows as "size*share r<read> x<random> a<align>, ..." with the share in hundredths of a percent. */
static void rows_are(const char *assignments, const char *expected) {
    struct pattern p = with(assignments);
    char out[8192] = "";
    size_t at = 0;
    finish(&p);
    unsigned sum = 0;
    for (unsigned i = 0; i < p.n_rows; i++) {
        const struct pattern_row *r = &p.row[i];
        at += (size_t)snprintf(out + at, sizeof(out) - at, "%s%u*%u r%u x%u a%u", i ? ", " : "", r->size, r->share,
                               r->read,
                               r->random, r->align);
        sum += r->share;
    }
    assert_string_equal(out, expected);
    assert_int_equal(sum, PATTERN_SHARES);
    pattern_free(&p);
}

static void defaults(void **state) {
    struct pattern p = fresh();
    (void)state;
    finish(&p);
    assert_int_equal(p.rw, RW_READ);
    assert_int_equal(p.bs, 4096);
    assert_int_equal(p.iodepth, 1);
    assert_int_equal(p.numjobs, 1);
    assert_true(p.runtime == 30000000000ULL);
    assert_true(p.ramp_time == 2000000000ULL);
    assert_int_equal(p.size, 0);
    assert_int_equal(p.rounds, 1);
    assert_int_equal(p.position, POSITION_SHARED);
    assert_int_equal(p.sync, SYNC_NONE);
    assert_int_equal(p.prepare, PREPARE_AUTO);
    assert_int_equal(p.cache, CACHE_ASIS);
    assert_true(p.given == 0);
    assert_int_equal(p.n_rows, 1);
    pattern_free(&p);
}

static void every_key_is_stored(void **state) {
    struct pattern p = with("size=10g|offset=1m|iodepth=64|numjobs=4|runtime=5m|ramp_time=250ms|thinktime=20|"
                            "rate_iops=0|readahead=2m|"
                            "thinktime_blocks=8|sync=dsync|fsync=32|end_fsync|randseed=7|rounds=balanced|prepare=check|"
                            "cache=cold|server_cache=8g|evict=16g|position=separate|description=a "
                                "b|stonewall|time_based=1|"
                            "norandommap|name=other");
    (void)state;
    assert_true(p.size == 10ULL << 30);
    assert_int_equal(p.offset, 1 << 20);
    assert_int_equal(p.readahead, 2 << 20);
    assert_int_equal(p.iodepth, 64);
    assert_int_equal(p.numjobs, 4);
    assert_true(p.runtime == 300000000000ULL);
    assert_int_equal(p.ramp_time, 250000000);
    assert_int_equal(p.thinktime, 20000); /* microseconds, as in fio */
    assert_int_equal(p.thinktime_blocks, 8);
    assert_int_equal(p.sync, SYNC_DSYNC);
    assert_int_equal(p.fsync, 32);
    assert_true(p.end_fsync);
    assert_int_equal(p.randseed, 7);
    assert_true(p.rounds == ROUNDS_BALANCED);
    assert_int_equal(p.prepare, PREPARE_CHECK);
    assert_int_equal(p.cache, CACHE_COLD);
    assert_true(p.server_cache == 8ULL << 30);
    assert_true(p.evict == 16ULL << 30);
    assert_int_equal(p.position, POSITION_SEPARATE);
    assert_string_equal(p.description, "a b");
    assert_string_equal(p.name, "other");
    assert_true(p.stonewall);
    assert_true(p.time_based);
    pattern_free(&p);
    p = with("io_size=3g|thinktime=5ms|rate_iops=100");
    assert_true(p.io_size == 3ULL << 30);
    assert_int_equal(p.thinktime, 5000000);
    assert_int_equal(p.rate_iops, 100);
    pattern_free(&p);
    p = with("timeout=3|readwrite=randwrite|blocksize=8k|ba=512|ramp-time=1|loops=3|sync=1");
    assert_true(p.runtime == 3000000000ULL);
    assert_int_equal(p.rw, RW_RANDWRITE);
    assert_int_equal(p.bs, 8192);
    assert_int_equal(p.blockalign, 512);
    assert_int_equal(p.ramp_time, 1000000000);
    assert_int_equal(p.loops, 3);
    assert_int_equal(p.sync, SYNC_SYNC);
    set(&p, "sync=0");
    assert_int_equal(p.sync, SYNC_NONE);
    set(&p, "sync=datastore");
    assert_int_equal(p.sync, SYNC_DATASTORE);
    pattern_free(&p);
}

static void directions(void **state) {
    (void)state;
    rows_are("rw=read", "4096*10000 r100 x0 a4096");
    rows_are("rw=write", "4096*10000 r0 x0 a4096");
    rows_are("rw=randread", "4096*10000 r100 x100 a4096");
    rows_are("rw=randwrite", "4096*10000 r0 x100 a4096");
    rows_are("rw=rw", "4096*10000 r50 x0 a4096");
    rows_are("rw=readwrite", "4096*10000 r50 x0 a4096");
    rows_are("rw=randrw", "4096*10000 r50 x100 a4096");
    rows_are("rw=randrw|rwmixread=70", "4096*10000 r70 x100 a4096");
    rows_are("rw=randrw|rwmixwrite=70", "4096*10000 r30 x100 a4096");
    rows_are("rw=randrw|rwmixread=80|rwmixwrite=80", "4096*10000 r20 x100 a4096");
    rows_are("rw=randrw|rwmixwrite=80|rwmixread=80", "4096*10000 r80 x100 a4096");
    rows_are("rw=read|rwmixread=0", "4096*10000 r100 x0 a4096");
    rows_are("rw=randrw|rwmixread=65|percentage_random=60|bs=8k|blockalign=512", "8192*10000 r65 x60 a512");
    rows_are("rw=read|percentage_random=25", "4096*10000 r100 x25 a4096");
    rows_are("rw=randread|percentage_random=0", "4096*10000 r100 x0 a4096");
}

static void block_sizes(void **state) {
    (void)state;
    rows_are("bs=66560", "66560*10000 r100 x0 a66560");
    rows_are("bs=64m", "67108864*10000 r100 x0 a67108864");
    rows_are("bs=512", "512*10000 r100 x0 a512");
    rows_are("rw=rw|rwmixread=70|bs=4k,8k", "4096*7000 r100 x0 a4096, 8192*3000 r0 x0 a8192");
    rows_are("rw=read|bs=4k,8k", "4096*10000 r100 x0 a4096");
    rows_are("rw=write|bs=4k,8k", "8192*10000 r0 x0 a8192");
    rows_are("rw=rw|bs=8k,8k", "8192*10000 r50 x0 a8192");
    rows_are("rw=randrw|rwmixread=80|bssplit=512/10:1k/5:4k/85|blockalign=512",
             "512*1000 r80 x100 a512, 1024*500 r80 x100 a512, 4096*8500 r80 x100 a512");
    rows_are("bssplit=4k/50:8k/:32k/", "4096*5000 r100 x0 a4096, 8192*2500 r100 x0 a8192, 32768*2500 r100 x0 a32768");
    rows_are("bssplit=4k:8k:16k", "4096*3400 r100 x0 a4096, 8192*3300 r100 x0 a8192, 16384*3300 r100 x0 a16384");
    rows_are("bssplit=4k/0:8k/100", "8192*10000 r100 x0 a8192");
    rows_are("rw=randrw|rwmixread=75|bssplit=2k/50:4k/50,4k/90:8k/10",
             "2048*3750 r100 x100 a2048, 4096*3750 r100 x100 a4096, 4096*2250 r0 x100 a4096, 8192*250 r0 x100 a8192");
    rows_are("rw=randrw|rwmixread=1|bssplit=2k/99:4k/1,2k/1:4k/99",
             "2048*99 r100 x100 a2048, 4096*1 r100 x100 a4096, 2048*99 r0 x100 a2048, 4096*9801 r0 x100 a4096");
}

static void rows(void **state) {
    (void)state;
    rows_are("row=8k", "8192*10000 r100 x0 a8192");
    rows_are("row=8k share=60 read=80 random=100 align=4k|row=64k share=40 read=0",
             "8192*6000 r80 x100 a4096, 65536*4000 r0 x0 a65536");
    rows_are("row= 8k  align=512\tshare=60 , 4k share=40 ", "8192*6000 r100 x0 a512, 4096*4000 r100 x0 a4096");
    rows_are("row=8k share=0|row=4k share=100", "4096*10000 r100 x0 a4096");
}

/* 64 entries fit, 65 do not, on both sides of bssplit and for row. */
static void limits_of_lists(void **state) {
    char list[2048], text[2100];
    struct pattern p;
    (void)state;
    strcpy(list, "512/37");
    for (int i = 1; i < 64; i++) strcat(list, ":512/1");
    snprintf(text, sizeof(text), "rw=rw|bssplit=%s,1k", list);
    p = with(text);
    finish(&p);
    assert_int_equal(p.n_rows, 65);
    pattern_free(&p);
    snprintf(text, sizeof(text), "bssplit=%s:512/0", list);
    set_fails(text, "bssplit: more than 64 sizes in a list");
    strcpy(list, "4k share=37");
    for (int i = 1; i < 64; i++) strcat(list, ",4k share=1");
    snprintf(text, sizeof(text), "row=%s", list);
    p = with(text);
    finish(&p);
    assert_int_equal(p.n_rows, 64);
    set_says(&p, "iodepth=2", "");
    struct err err;
    char note[400];
    assert_int_equal(pattern_set(&p, "row", "4k share=0", note, sizeof(note), &err), -1);
    assert_string_equal(err.msg, "row: more than 64 rows in one pattern");
    pattern_free(&p);
}

static void bad_values(void **state) {
    (void)state;
    set_fails("rw=trim", "rw: 'trim': there are no trims here, only reads and writes");
    set_fails("rw=randrw:2", "rw: 'randrw:2': fio's number after the colon (a jump only every N I/Os) does not exist "
              "here; "
              "percentage_random= mixes random and sequential I/Os");
    set_fails("rw=randreed",
              "rw: 'randreed' is not one of read, write, randread, randwrite, rw, randrw; did you mean randread?");
    set_fails("bs=0", "bs: a block of 0 bytes moves nothing; 4k is usual");
    set_fails("bs=1000", "bs: a block of 1000 bytes is not a multiple of 512 (one sector)");
    set_fails("bs=65m", "bs: a block of 65m is larger than the largest, 64m");
    set_fails("bs=4k,", "bs: '4k,' names sizes for only some directions, or for trims; write one size, or READ,WRITE "
              "such as "
              "4k,8k");
    set_fails("bs=,4k", "bs: ',4k' names sizes for only some directions, or for trims; write one size, or READ,WRITE "
              "such as "
              "4k,8k");
    set_fails("bs=4k,4k,4k", "bs: '4k,4k,4k' names sizes for only some directions, or for trims; write one size, or "
              "READ,WRITE such as 4k,8k");
    set_fails("bssplit=4k/60:8k/20", "bssplit: the percentages come to 80, not to 100");
    set_fails("bssplit=4k/60:8k/60", "bssplit: the percentages come to 120, not to 100");
    set_fails("bssplit=4k/100:8k/", "bssplit: the percentages come to 100 and leave nothing for the blank ones, not "
              "to 100");
    set_fails("bssplit=4k/50:8k/50,4k/100,4k/100",
              "bssplit: a third list is fio's for trims, and there are no trims here");
    set_fails("bssplit=4k/50:8k/50,", "bssplit: an empty entry; a list is such as 4k/60:8k/40");
    set_fails("bssplit=", "bssplit: an empty entry; a list is such as 4k/60:8k/40");
    set_fails("bssplit=4k/50::8k/50", "bssplit: an empty entry; a list is such as 4k/60:8k/40");
    set_fails("bssplit=4k/101", "bssplit: 101 is more than 100 percent");
    set_fails("rwmixread=101", "rwmixread: 101 is more than 100 percent");
    set_fails("row=", "row: an empty row; it begins with its block size: 8k share=60 read=80");
    set_fails("row=8k share=60,", "row: an empty row; it begins with its block size: 8k share=60 read=80");
    set_fails("row=8k shares=60",
              "row: 'shares=60' in a row is none of share=PERCENT, read=PERCENT, random=PERCENT, align=SIZE");
    set_fails("row=8k share", "row: 'share' in a row is none of share=PERCENT, read=PERCENT, random=PERCENT, "
              "align=SIZE");
    set_fails("row=8k read=10 read=20", "row: read= stands twice in one row");
    set_fails("row=8k read=200", "row: read: 200 is more than 100 percent");
    set_fails("row=8k align=100", "row: align: a block of 100 bytes is not a multiple of 512 (one sector)");
    set_fails("size=100%", "size: a percentage would make the working set of each target another one; without this "
              "key it is "
              "the whole of the smallest target");
    set_fails("size=1000", "size: 1000 is not a multiple of 512 (one sector)");
    set_fails("offset=2000p", "offset: 2000p is more than 1024p");
    set_fails("iodepth=0", "iodepth: 0 is out of range (1 to 4096)");
    set_fails("iodepth=4097", "iodepth: 4097 is out of range (1 to 4096)");
    set_fails("numjobs=257", "numjobs: 257 is out of range (1 to 256)");
    set_fails("rate_iops=100,50", "rate_iops: fio's READ,WRITE form does not keep the mix of reads and writes (a "
              "side without "
              "a limit runs free); give one rate for both, and the mix with rwmixread=");
    set_fails("sync=2", "sync: '2' is not one of none, datastore, dsync, sync (fio's 0 is none, its 1 sync)");
    set_fails("rounds=0", "rounds: 0 rounds: between 1 and 1000, or balanced");
    set_fails("norandommap=0", "norandommap: a map of the blocks already used is never kept (it would bend the mix "
              "of sizes); "
              "norandommap=1 is the only mode");
    set_fails("iodepth", "iodepth needs a value (write iodepth=N)");
}

static void foreign_keys(void **state) {
    struct pattern p = fresh();
    (void)state;
    set_fails("iodpeth=3", "unknown key 'iodpeth'; did you mean iodepth?");
    set_fails("BS=8k", "unknown key 'BS'; keys are written in lower case: bs");
    set_fails("colour=red", "unknown key 'colour'; samedisk-patterns(5) has all of them");
    set_fails("nconnect=4", "nconnect belongs to a target, not to a pattern: write --set LABEL.nconnect=VALUE, or "
              "?nconnect=VALUE behind the target's URL");
    set_fails("filename=/dev/sdb", "filename is fio's and not taken here: it says what is measured, and that stands "
              "on the "
              "command line: nfs://HOST/EXPORT/FILE, iscsi://HOST/IQN/LUN, /dev/NAME or /PATH");
    set_fails("ioengine=libaio", "ioengine is fio's and not taken here: the target on the command line decides it: "
              "nfs://HOST/EXPORT/FILE, iscsi://HOST/IQN/LUN, /dev/NAME or /PATH");
    set_fails("verify=crc32c", "verify=crc32c is not taken here (only verify=0): data is not verified during a "
              "measurement: "
              "the client's time for it would be measured");
    set_fails("direct=0", "direct=0 is not taken here (only direct=1): whether the client caches is a matter of the "
              "target (--set LABEL.direct=no), and is said beside its numbers");
    set_fails("random_distribution=zipf:0.5", "random_distribution=zipf:0.5 is not taken here (only "
              "random_distribution=random): random offsets are uniform; a skewed load needs its own generator");
    set_fails("iodepth_batch_submit=4", "iodepth_batch_submit is fio's and not taken here: every slot that comes "
              "free is used "
              "at once, so that the depth is what iodepth= says");
    set_fails("buffer_pattern=0xdeadface", "buffer_pattern is fio's and not taken here: every write carries new data; it "
              "is random unless buffer_compress_percentage=, dedupe_percentage= or zero_buffers=1 ask for other");
    set_fails("buffer_compress_chunk=4k", "buffer_compress_chunk=4k is not taken here (only buffer_compress_chunk=512): "
              "each sector of 512 bytes has its share of zeros, and proves itself");
    set_fails("dedupe_mode=working_set", "dedupe_mode=working_set is not taken here (only dedupe_mode=repeat): a write "
              "repeats the last one that repeated nothing");
    set_fails("rate_min=4", "rate_min is fio's and not taken here: rate_iops=N is an evenly spaced rate; what could "
              "not be kept "
              "up is reported");
    set_says(&p, "direct=1", "direct has no effect here: I/O goes past the client's page cache wherever that can be "
             "done");
    set_says(&p, "direct", "direct has no effect here: I/O goes past the client's page cache wherever that can be "
             "done");
    set_says(&p, "group-reporting", "group_reporting has no effect here: the workers of a target are always reported "
             "together");
    set_says(&p, "thread=0", "thread has no effect here: workers are always threads");
    set_says(&p, "invalidate=1", "invalidate has no effect here: cache= says what is in the caches before a run");
    set(&p, "verify=0");
    set(&p, "fsync_on_close=0");
    assert_true(p.given == 0);
    pattern_free(&p);
}

/* No key of the table is hidden by the lists of foreign keys, and none of those is a key of the table. */
static void foreign_keys_are_foreign(void **state) {
    (void)state;
    for (const char *const *a = foreign_access_keys; *a; a++) assert_null(option_find(pattern_options, *a));
    unsigned n = 0;
    while (pattern_options[n].name) n++;
    assert_in_range(n, 30, 64); /* bits of `given` */
}

static void families(void **state) {
    static const char *const rows_gone = " replaces row (what rows said and no other key says has its default now)";
    char expected[200];
    struct pattern p = with("bssplit=4k/50:8k/50|rw=randrw|rwmixread=70");
    (void)state;
    set_says(&p, "bs=8k", "bs replaces bssplit");
    set_says(&p, "bs=4k", "");
    set_says(&p, "bssplit=4k/100", "bssplit replaces bs");
    set_says(&p, "rwmixwrite=40", "rwmixwrite replaces rwmixread");
    set_says(&p, "row=64k share=100 read=30", "row replaces rw; row replaces bssplit; row replaces rwmixwrite");
    finish(&p);
    assert_int_equal(p.n_rows, 1);
    assert_int_equal(p.row[0].size, 65536);
    assert_int_equal(p.row[0].read, 30);
    snprintf(expected, sizeof(expected), "rw%s", rows_gone);
    set_says(&p, "rw=randrw", expected);
    set_says(&p, "bs=8k", "");
    finish(&p);
    assert_int_equal(p.row[0].size, 8192);
    assert_int_equal(p.row[0].read, 50); /* neither the row's nor what the row had replaced */
    pattern_free(&p);
    p = with("row=4k");
    snprintf(expected, sizeof(expected), "percentage_random%s", rows_gone);
    set_says(&p, "percentage_random=10", expected);
    set_says(&p, "row=4k", "row replaces percentage_random");
    snprintf(expected, sizeof(expected), "blockalign%s", rows_gone);
    set_says(&p, "blockalign=8k", expected);
    finish(&p);
    assert_int_equal(p.row[0].random, 0);
    assert_int_equal(p.row[0].align, 8192);
    pattern_free(&p);
}

static void rows_of_a_stronger_source_replace(void **state) {
    struct pattern p = with("row=4k share=50|row=8k share=50");
    (void)state;
    pattern_next_source(&p);
    set(&p, "row=16k share=30");
    set(&p, "row=32k share=70");
    finish(&p);
    assert_int_equal(p.n_rows, 2);
    assert_int_equal(p.row[0].size, 16384);
    pattern_next_source(&p);
    set(&p, "iodepth=3");
    finish(&p);
    assert_int_equal(p.n_rows, 2);
    pattern_free(&p);
}

static void binary_units_are_noted(void **state) {
    struct pattern p = fresh();
    (void)state;
    set_says(&p, "bs=4KiB", "bs=4KiB is a power of 1024 here; fio takes KiB, MiB, GiB for powers of 1000");
    set_says(&p, "bssplit=4kib/100",
             "bssplit replaces bs; bssplit=4kib/100 is a power of 1024 here; fio takes KiB, MiB, GiB for powers of "
                 "1000");
    set_says(&p, "io_size=1GiB", "io_size=1GiB is a power of 1024 here; fio takes KiB, MiB, GiB for powers of 1000");
    set_says(&p, "size=1Gi", "");
    set_says(&p, "description=4KiB", "");
    pattern_free(&p);
}

static void contradictions(void **state) {
    (void)state;
    finish_fails("row=4k share=50|row=8k share=40", "pattern 'p': row: the shares of the 2 rows come to 90 percent, "
                 "not to 100");
    finish_fails("row=4k|row=8k", "pattern 'p': row: the shares of the 2 rows come to 200 percent, not to 100");
    finish_fails("io_size=1g|loops=2", "pattern 'p': io_size and loops both end the run; give one of them");
    finish_fails("runtime=0", "pattern 'p': runtime=0 would never end; give a time such as 30s, or io_size or loops");
    finish_fails("time_based|loops=2",
                 "pattern 'p': time_based=1 says that runtime ends the run, loops that an amount of data does; drop "
                     "one");
    finish_fails("time_based=1|io_size=1g",
                 "pattern 'p': time_based=1 says that runtime ends the run, io_size that an amount of data does; "
                     "drop one");
    finish_fails("thinktime_blocks=4",
                 "pattern 'p': thinktime_blocks says how often to pause, but thinktime says no pause");
    finish_fails("thinktime=1ms|rate_iops=10", "pattern 'p': thinktime and rate_iops both pace the I/Os; give one of "
                 "them");
    finish_fails("zero_buffers|dedupe_percentage=10", "pattern 'p': zero_buffers=1 leaves nothing but zeros to write, "
                 "which dedupe_percentage does not go with; drop one");
    finish_fails("zero_buffers|buffer_compress_percentage=10", "pattern 'p': zero_buffers=1 leaves nothing but zeros to "
                 "write, which buffer_compress_percentage does not go with; drop one");
    finish_fails("dedupe_percentage=10|buffer_compress_percentage=100", "pattern 'p': buffer_compress_percentage=100 "
                 "leaves nothing but zeros to write, which dedupe_percentage does not go with; drop one");
    finish_fails("readahead=128k|bs=1m", "pattern 'p': readahead=128k is less than the largest block, 1m; a window is at "
                 "least that, and usually several times as large");
    finish_fails("cache=cold", "pattern 'p': cache=cold needs evict=SIZE, the bytes to read outside the working set: "
                 "at least "
                 "the server's cache, which server_cache=SIZE declares");
    finish_fails("cache=cold|evict=1g|server_cache=2g",
                 "pattern 'p': evict=1g is less than server_cache=2g and would leave the cache partly as it is");
    finish_fails("size=4k|bs=8k", "pattern 'p': size=4k is smaller than one block of 8k");
    finish_fails("size=1024|rw=randrw|bssplit=4k/50:8k/:32k/", "pattern 'p': size=1k is smaller than one block of 32k");
    finish_fails("size=1m|bs=512k|numjobs=3", "pattern 'p': size=1m cannot be cut into 3 slices (numjobs) of at "
                 "least 512k, "
                 "one for each sequential worker");
    finish_fails("name=", "name: a pattern needs a name");
    finish_fails("name=\x1b[2J|runtime=0",
                 "pattern '\\x1B[2J': runtime=0 would never end; give a time such as 30s, or io_size or loops");
}

static void ends(void **state) {
    struct pattern p = with("loops=2");
    (void)state;
    finish(&p);
    assert_int_equal(p.runtime, 0); /* the default is no limit for an amount */
    pattern_free(&p);
    p = with("io_size=1g|runtime=60");
    finish(&p);
    assert_true(p.runtime == 60000000000ULL);
    pattern_free(&p);
    p = with("time_based=0|runtime=60");
    finish(&p);
    assert_int_equal(p.loops, 1);
    assert_true(p.runtime == 60000000000ULL);
    pattern_free(&p);
    p = with("time_based=0|io_size=1g");
    finish(&p);
    assert_int_equal(p.loops, 0);
    pattern_free(&p);
    p = with("cache=cold|server_cache=2g");
    finish(&p);
    assert_true(p.evict == 2ULL << 30);
    pattern_free(&p);
}

static void remarks(void **state) {
    static const struct { const char *keys, *text; } cases[] = {
        {"rw=randread|rwmixread=70|fsync=1|end_fsync=1|sync=dsync",
         "rwmixread has no effect: rw= has one direction; sync has no effect: nothing is written; fsync has no "
             "effect: nothing "
         "is written; end_fsync has no effect: nothing is written"},
        {"rw=randrw|rwmixread=70|fsync=1|end_fsync=1|sync=dsync", ""},
        {"rw=read|fsync=0|end_fsync=0|sync=none", ""},
        {"rw=write|rwmixwrite=70", "rwmixwrite has no effect: rw= has one direction"},
        {"evict=1g", "evict has no effect without cache=cold"},
        {"rw=write|readahead=1m", "readahead has no effect: nothing is read"},
        {"evict=1g|cache=cold", ""},
        {"time_based=0", "time_based=0 is loops=1: one pass over the working set"},
        {"time_based=0|loops=2", ""},
        {"row=4k read=50|fsync=1", ""}};
    char note[600];
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct pattern p = with(cases[i].keys);
        finish(&p);
        pattern_remarks(&p, UINT64_MAX, note, sizeof(note));
        assert_string_equal(note, cases[i].text);
        pattern_remarks(&p, 0, note, sizeof(note));
        assert_string_equal(note, "");
        pattern_free(&p);
    }
}

static void queries(void **state) {
    struct pattern p = with("row=8k share=60 read=100 random=100 align=1k|row=66560 share=40 read=0 "
                            "align=512|offset=1536");
    (void)state;
    finish(&p);
    assert_true(pattern_reads(&p));
    assert_true(pattern_writes(&p));
    assert_false(pattern_sequential(&p));
    assert_int_equal(pattern_max_io(&p), 66560);
    assert_int_equal(pattern_min_align(&p), 512);
    assert_int_equal(pattern_step(&p), 66560);
    pattern_free(&p);
    p = with("rw=read|bs=32k|blockalign=512");
    finish(&p);
    assert_true(pattern_reads(&p));
    assert_false(pattern_writes(&p));
    assert_true(pattern_sequential(&p));
    assert_int_equal(pattern_min_align(&p), 512);
    assert_int_equal(pattern_step(&p), 32768);
    pattern_free(&p);
    p = with("rw=randwrite|bs=24k|blockalign=16k|offset=1m");
    finish(&p);
    assert_false(pattern_reads(&p));
    assert_true(pattern_writes(&p));
    assert_int_equal(pattern_min_align(&p), 8192);
    assert_int_equal(pattern_step(&p), 32768);
    pattern_free(&p);
}

static void cpu_lists(void **state) {
    char buf[400], list[600] = "0";
    struct pattern p = with("cpus_allowed=8,0-2,5-6");
    static const uint16_t cpus[] = {8, 0, 1, 2, 5, 6};
    static const char *const bad[] = {"", "x", "1-", "-1", "3-1", "1,,2", "1,", "1 2", "0-3,2", "1024", "0-64",
                                      "99999999999999999999"};
    char note[400];
    struct err err;
    (void)state;
    finish(&p);
    assert_int_equal(p.cpus.n, 6);
    assert_memory_equal(p.cpus.cpu, cpus, sizeof cpus);
    assert_true(option_show(option_find(pattern_options, "cpus_allowed"), &p, buf, sizeof buf));
    assert_string_equal(buf, "8,0-2,5-6");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_not_equal(pattern_set(&p, "cpus_allowed", bad[i], note, sizeof note, &err), 0);
        assert_non_null(strstr(err.msg, "not a list of CPUs"));
    }
    assert_int_equal(p.cpus.n, 6); /* as it was */
    for (int i = 2; i <= 126; i += 2) snprintf(list + strlen(list), sizeof list - strlen(list), ",%d", i);
    assert_int_equal(pattern_set(&p, "cpus_allowed", list, note, sizeof note, &err), 0);
    assert_int_equal(p.cpus.n, 64);
    assert_true(option_show(option_find(pattern_options, "cpus_allowed"), &p, buf, sizeof buf));
    assert_string_equal(buf, list);
    assert_false(option_show(option_find(pattern_options, "cpus_allowed"), &p, buf, 20)); /* not a part of it */
    pattern_free(&p);
}

/* What the effective plan says must be the same load when it is read again. */
static void shown_values_parse_back(void **state) {
    static const char *const cases[] = {
        "rw=read", "rw=randrw|rwmixread=65|percentage_random=60|bs=8k|blockalign=512|description=x", "rw=rw|bs=4k,8k",
        "rw=randrw|bssplit=4k/50:8k/:32k/", "rw=randrw|bssplit=2k/50:4k/50,4k/90:8k/10|rwmixwrite=10",
        "row=8k share=60 read=80 random=100 align=4k|row=66560 share=40", "loops=2", "io_size=1g|runtime=60",
            "time_based=0",
        "cache=cold|server_cache=3g", "thinktime=20|thinktime_blocks=3",
            "rounds=balanced|sync=datastore|size=4096000000",
        "numjobs=4|fsync=3|end_fsync|randseed=9|prepare=none|position=separate|offset=512",
        "rate_iops=5|stonewall|norandommap", "cpus_allowed=3", "cpus_allowed=8,0-3,5,6,63"};
    static char a[PATTERN_SHOWN], b[PATTERN_SHOWN];
    char note[400];
    struct err err;
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct pattern p = with(cases[i]), q = fresh();
        finish(&p);
        for (const struct option_entry *e = pattern_options; e->name; e++) {
            if (!option_show(e, &p, a, sizeof(a))) continue;
            if (pattern_set(&q, e->name, a, note, sizeof(note), &err) != 0) fail_msg("%s: %s", cases[i], err.msg);
            assert_string_equal(note, "");
        }
        finish(&q);
        assert_int_equal(p.n_rows, q.n_rows);
        assert_memory_equal(p.row, q.row, p.n_rows * sizeof(p.row[0]));
        for (const struct option_entry *e = pattern_options; e->name; e++) {
            assert_int_equal(option_show(e, &p, a, sizeof(a)), option_show(e, &q, b, sizeof(b)));
            if (option_show(e, &p, a, sizeof(a))) assert_string_equal(a, b);
        }
        pattern_free(&p);
        pattern_free(&q);
    }
}

static void shown_values(void **state) {
    struct pattern p = with("row=8k share=60 read=80 random=100 align=4k|row=66560 share=40");
    char buf[400];
    (void)state;
    finish(&p);
    assert_false(option_show(option_find(pattern_options, "row"), &p, buf, 50)); /* not a part of it */
    assert_true(option_show(option_find(pattern_options, "row"), &p, buf, sizeof(buf)));
    assert_string_equal(buf, "8k share=60 read=80 random=100 align=4k, 65k share=40 read=100 random=0 align=65k");
    static const char *const hidden[] = {"rw", "bs", "bssplit", "rwmixread", "rwmixwrite", "percentage_random",
                                         "blockalign",
                                         "size", "stonewall", "norandommap", "time_based", "description"};
    for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
        assert_false(option_show(option_find(pattern_options, hidden[i]), &p, buf, sizeof(buf)));
    pattern_free(&p);
    p = with("rw=randrw|bssplit=4k/50:8k/:32k/");
    finish(&p);
    assert_false(option_show(option_find(pattern_options, "bssplit"), &p, buf, 10));
    assert_true(option_show(option_find(pattern_options, "bssplit"), &p, buf, sizeof(buf)));
    assert_string_equal(buf, "4k/50:8k/25:32k/25");
    assert_false(option_show(option_find(pattern_options, "bs"), &p, buf, sizeof(buf)));
    assert_true(option_show(option_find(pattern_options, "percentage_random"), &p, buf, sizeof(buf)));
    assert_string_equal(buf, "100");
    pattern_free(&p);
}

static void copies_are_deep(void **state) {
    struct pattern p = with("description=one|row=8k"), q;
    struct err err;
    (void)state;
    p.origin = strdup("f.ini:3");
    finish(&p);
    assert_int_equal(pattern_copy(&q, &p, &err), 0);
    assert_ptr_not_equal(p.name, q.name);
    pattern_free(&p);
    assert_string_equal(q.name, "p");
    assert_string_equal(q.description, "one");
    assert_string_equal(q.origin, "f.ini:3");
    assert_int_equal(q.row[0].size, 8192);
    pattern_free(&q);
    pattern_free(&q); /* freed is empty: nothing happens */
}

/* The manual page has each key of the table exactly once, and no other. */
static void manual_has_every_key(void **state) {
    const char *srcdir = getenv("srcdir");
    char path[4096], *text = NULL;
    size_t len, found = 0, keys = 0;
    struct err err;
    (void)state;
    snprintf(path, sizeof(path), "%s/patterns/samedisk-patterns.5", srcdir ? srcdir : ".");
    if (savefile_read(path, 1 << 20, &text, &len, &err) != 0) fail_msg("%s", err.msg);
    for (const struct option_entry *e = pattern_options; e->name; e++, keys++) {
        char line[100];
        snprintf(line, sizeof(line), "\n.It Cm %s Ns = Ns Ar ", e->name);
        const char *at = strstr(text, line);
        if (!at) fail_msg("%s is not in the manual page", e->name);
        assert_null(strstr(at + 1, line));
    }
    for (const char *at = text; (at = strstr(at, "\n.It Cm ")) != NULL; at++) found++;
    assert_int_equal(found, keys);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),
        cmocka_unit_test(every_key_is_stored),
        cmocka_unit_test(directions),
        cmocka_unit_test(block_sizes),
        cmocka_unit_test(rows),
        cmocka_unit_test(limits_of_lists),
        cmocka_unit_test(bad_values),
        cmocka_unit_test(foreign_keys),
        cmocka_unit_test(foreign_keys_are_foreign),
        cmocka_unit_test(families),
        cmocka_unit_test(rows_of_a_stronger_source_replace),
        cmocka_unit_test(binary_units_are_noted),
        cmocka_unit_test(contradictions),
        cmocka_unit_test(ends),
        cmocka_unit_test(remarks),
        cmocka_unit_test(queries),
        cmocka_unit_test(cpu_lists), cmocka_unit_test(shown_values_parse_back),
        cmocka_unit_test(shown_values),
        cmocka_unit_test(copies_are_deep),
        cmocka_unit_test(manual_has_every_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
