/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pattern/stream.h"

#define GIB (1ULL << 30)

/* Assignments separated by '|'. */
static struct pattern with(const char *name, const char *assignments) {
    struct pattern p;
    struct err err;
    char copy[1000], *save = NULL, note[400];
    assert_int_equal(pattern_init(&p, name, &err), 0);
    snprintf(copy, sizeof(copy), "%s", assignments);
    for (char *a = strtok_r(copy, "|", &save); a; a = strtok_r(NULL, "|", &save)) {
        char *value = strchr(a, '=');
        *value++ = '\0';
        if (pattern_set(&p, a, value, note, sizeof(note), &err) != 0) fail_msg("%s: %s", a, err.msg);
    }
    if (pattern_finish(&p, &err) != 0) fail_msg("%s", err.msg);
    return p;
}

struct how {
    uint64_t base, size, seed;
    unsigned round, worker, workers;
};

static const struct how usual = {0, GIB, 1, 1, 0, 1};

static void start(struct stream *s, const struct pattern *p, struct how h) {
    struct err err;
    if (stream_init(s, p, h.base, h.size, h.seed, h.round, h.worker, h.workers, &err) != 0) fail_msg("%s", err.msg);
}

static void start_keys(struct stream *s, const char *keys, struct how h) {
    struct pattern p = with("p", keys);
    start(s, &p, h);
    pattern_free(&p); /* the stream keeps no pointer into it */
}

/* ---- exact sequences; the figures come from a second implementation, in another language ---- */

struct golden {
    const char *keys;
    struct how how;
    unsigned n;
    struct stream_io io[8];
    uint64_t chain; /* after 100000 I/Os */
};

static const struct golden goldens[] = {
    {"rw=randread", {0, GIB, 1, 1, 0, 1}, 6,
     {{0, 4096, 224194560}, {0, 4096, 347136000}, {0, 4096, 623251456}, {0, 4096, 761516032}, {0, 4096, 16449536},
      {0, 4096, 329027584}}, 0xd1195968307e7e8bULL},
    {"rw=randrw|rwmixread=65|percentage_random=60|bs=8k|blockalign=512", {0, 4096000000, 1, 1, 0, 1}, 8,
     {{0, 8192, 2377523200}, {1, 8192, 1255142912}, {1, 8192, 2861157888}, {0, 8192, 2861166080},
      {0, 8192, 1210732544}, {1, 8192, 3597896704}, {0, 8192, 3093181952}, {0, 8192, 3093190144}}, 0xeae84be26c6ad017ULL},
    {"rw=rw|bs=32k|blockalign=512|position=separate", {1 << 20, GIB, 7, 3, 1, 2}, 6,
     {{0, 32768, 877723648}, {1, 32768, 877723648}, {1, 32768, 877756416}, {0, 32768, 877756416},
      {1, 32768, 877789184}, {0, 32768, 877789184}}, 0x4ab6162f30a931ddULL},
    {"rw=randrw|rwmixread=80|blockalign=512|bssplit=512/10:1k/5:2k/5:4k/60:8k/2:16k/4:32k/4:64k/10", {0, GIB, 1, 1, 0,
                                                                                                      1}, 6,
     {{0, 4096, 623252480}, {0, 4096, 329027584}, {0, 4096, 750033920}, {1, 4096, 191733248}, {0, 4096, 723375104},
      {1, 4096, 347009024}}, 0xe9375fc9b3d5a49dULL},
    {"row=8k share=60 read=80 random=50 align=4k|row=65k share=30 read=0 align=1536|row=512 share=10 "
     "random=100|randseed=42",
     {512, 100000000 - 256, 1, 2, 3, 4}, 8,
     {{1, 66560, 98739200}, {0, 8192, 98808320}, {1, 66560, 98817536}, {1, 8192, 57328128}, {0, 8192, 19988992},
      {1, 66560, 19997696}, {0, 8192, 7422464}, {0, 8192, 7430656}}, 0x89870e732e667815ULL},
    {"rw=randwrite|bs=512", {0, (1ULL << 60) - 512 * 12345, 1, 1, 0, 1}, 2,
     {{1, 512, 240727132457772032}, {1, 512, 372735774572386816}}, 0x6a8bc61c8294cdf6ULL},
    {"rw=randrw|rwmixread=75|bssplit=2k/50:4k/50,4k/90:8k/10", {0, GIB, 1, 1, 0, 1}, 6,
     {{0, 4096, 347136000}, {1, 4096, 761516032}, {0, 2048, 329027584}, {0, 2048, 579438592}, {1, 4096, 602759168},
      {0, 2048, 191733760}}, 0x6d8260e1c2471993ULL},
};

static void golden_sequences(void **state) {
    (void)state;
    for (size_t g = 0; g < sizeof(goldens) / sizeof(goldens[0]); g++) {
        struct stream s;
        struct stream_io io;
        start_keys(&s, goldens[g].keys, goldens[g].how);
        for (unsigned i = 0; i < 100000; i++) {
            stream_next(&s, &io);
            if (i >= goldens[g].n) continue;
            assert_int_equal(io.op, goldens[g].io[i].op);
            assert_int_equal(io.len, goldens[g].io[i].len);
            assert_true(io.offset == goldens[g].io[i].offset);
        }
        assert_true(s.chain == goldens[g].chain);
        assert_int_equal(s.count, 100000);
    }
}

/* What stream_each gives in any portions is what stream_next gives one by one. */
struct taken { struct stream_io io[1000]; unsigned n; };

static void take(void *arg, const struct stream_io *io) {
    struct taken *t = arg;
    t->io[t->n++] = *io;
}

static void each_is_next(void **state) {
    (void)state;
    for (size_t g = 0; g < sizeof(goldens) / sizeof(goldens[0]); g++) {
        struct stream a, b;
        struct stream_io io;
        struct taken t = {.n = 0};
        start_keys(&a, goldens[g].keys, goldens[g].how);
        start_keys(&b, goldens[g].keys, goldens[g].how);
        for (unsigned portion = 0; t.n < 900; portion = (portion + 1) % 70) stream_each(&a, portion, take, &t);
        for (unsigned i = 0; i < t.n; i++) {
            stream_next(&b, &io);
            assert_int_equal(io.op, t.io[i].op);
            assert_int_equal(io.len, t.io[i].len);
            assert_true(io.offset == t.io[i].offset);
        }
        assert_int_equal(a.count, b.count);
        assert_int_equal(a.n_marks, b.n_marks);
        assert_memory_equal(a.mark, b.mark, sizeof(a.mark));
        assert_true(a.chain == b.chain && a.state == b.state);
    }
}

/* ---- a pure function ---- */

static uint64_t chain_of(const struct pattern *p, struct how h) {
    struct stream s;
    struct stream_io io;
    start(&s, p, h);
    for (int i = 0; i < 1000; i++) stream_next(&s, &io);
    return s.chain;
}

static void same_arguments_same_stream(void **state) {
    struct pattern p = with("p", "rw=randrw|percentage_random=50");
    struct stream a, b;
    struct stream_io x, y;
    (void)state;
    memset(&a, 0x55, sizeof(a)); /* what was there before is of no account */
    memset(&b, 0xaa, sizeof(b));
    start(&a, &p, usual);
    start(&b, &p, usual);
    for (int i = 0; i < 1000; i++) stream_next(&a, &x);
    for (int i = 0; i < 1000; i++) stream_next(&b, &y);
    assert_memory_equal(&a.mark, &b.mark, sizeof(a.mark));
    assert_true(x.offset == y.offset && a.chain == b.chain);
    pattern_free(&p);
}

static void every_argument_counts(void **state) {
    static const char *const keys[] = {"rw=randread", "rw=read", "rw=rw|position=separate",
                                       "rw=randrw|percentage_random=60|bssplit=4k/50:8k/50"};
    (void)state;
    for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++) {
        struct pattern p = with("p", keys[k]), q = with("q", keys[k]);
        const struct how four = {0, GIB, 1, 1, 0, 4};
        struct how h = four;
        uint64_t chains[64];
        unsigned n = 0;
        for (h.round = 1; h.round <= 4; h.round++)
            for (h.worker = 0; h.worker < 4; h.worker++) chains[n++] = chain_of(&p, h);
        h = four;
        chains[n++] = chain_of(&q, h);
        h.seed = 2;
        chains[n++] = chain_of(&p, h);
        h = four;
        h.base = 4096;
        chains[n++] = chain_of(&p, h);
        h = four;
        h.size = GIB / 2;
        chains[n++] = chain_of(&p, h);
        for (unsigned i = 0; i < n; i++)
            for (unsigned j = 0; j < i; j++) assert_true(chains[i] != chains[j]);
        pattern_free(&p);
        pattern_free(&q);
    }
}

static void a_randseed_is_shared(void **state) {
    struct pattern p = with("p", "rw=randread|randseed=5"), q = with("q", "rw=randread|randseed=5"),
                   r = with("p", "rw=randread|randseed=6");
    struct how other_seed = usual, other_round = usual;
    (void)state;
    other_seed.seed = 99;
    other_round.round = 2;
    assert_true(chain_of(&p, usual) == chain_of(&q, usual));
    assert_true(chain_of(&p, usual) == chain_of(&p, other_seed));
    assert_true(chain_of(&p, usual) != chain_of(&r, usual));
    assert_true(chain_of(&p, usual) != chain_of(&p, other_round));
    pattern_free(&p);
    pattern_free(&q);
    pattern_free(&r);
}

/* ---- distributions: fixed seeds, bounds that chance exceeds once in many thousand times ---- */

static double chi_square(const uint64_t *seen, const double *expected, unsigned n) {
    double sum = 0;
    for (unsigned i = 0; i < n; i++) {
        double off = (double)seen[i] - expected[i];
        sum += off * off / expected[i];
    }
    return sum;
}

static void random_offsets_are_uniform(void **state) {
    static const uint64_t sizes[] = {100 * 4096, 63 * 4096, 64 * 4096, 4096 + 512, 3 * 4096};
    (void)state;
    for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
        uint64_t seen[800] = {0};
        double expected[800];
        struct how h = usual;
        struct stream s;
        struct stream_io io;
        unsigned slots = (unsigned)((sizes[k] - 4096) / 512 + 1);
        h.base = 1536;
        h.size = sizes[k];
        start_keys(&s, "rw=randread|blockalign=512", h);
        for (unsigned i = 0; i < 1000 * slots; i++) {
            stream_next(&s, &io);
            assert_true(io.offset >= h.base && io.offset + io.len <= h.base + h.size &&
                        (io.offset - h.base) % 512 == 0);
            seen[(io.offset - h.base) / 512]++;
        }
        for (unsigned i = 0; i < slots; i++) expected[i] = 1000;
        /* mean slots-1, deviation sqrt(2 (slots-1)): five of them */
        double excess = chi_square(seen, expected, slots) - (slots - 1);
        assert_true(excess * excess < 25 * 2 * (slots - 1));
    }
}

static void mixes_are_exact(void **state) {
    static const struct { const char *keys; unsigned read, random; } cases[] = {
        {"rw=randrw|rwmixread=65|percentage_random=60", 65, 60},
        {"rw=randrw|rwmixread=1|percentage_random=99", 1, 99},
        {"rw=rw|rwmixread=50|percentage_random=50|position=separate", 50, 50},
        {"rw=write|percentage_random=10", 0, 10},
        {"rw=randrw|rwmixread=100", 100, 100}};
    (void)state;
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        uint64_t seen[4] = {0}, next[2] = {UINT64_MAX, UINT64_MAX};
        struct stream s;
        struct stream_io io;
        start_keys(&s, cases[k].keys, usual);
        bool separate = strstr(cases[k].keys, "separate") != NULL;
        for (unsigned i = 0; i < 200000; i++) {
            stream_next(&s, &io);
            unsigned which = separate && io.op == IO_WRITE;
            bool random = io.offset != next[which]; /* one in 262144 random ones is taken for sequential */
            seen[(io.op == IO_WRITE) * 2 + random]++;
            next[which] = io.offset + io.len;
        }
        double read = cases[k].read / 100.0, random = cases[k].random / 100.0, sum = 0;
        for (unsigned i = 0; i < 4; i++) {
            double share = 200000 * (i / 2 ? 1 - read : read) * (i % 2 ? random : 1 - random);
            if (share == 0)
                assert_true(seen[i] <= 8);
            else
                sum += ((double)seen[i] - share) * ((double)seen[i] - share) / share;
        }
        assert_true(sum < 20); /* three degrees of freedom */
    }
}

/* Iometer's rows: a row by its share, then its own mix. */
static void rows_have_their_own_mix(void **state) {
    static const struct { uint32_t size; double share, read, random; } rows[] = {
        {512, 0.07, 1, 0}, {4096, 0.6, 0.25, 1}, {8192, 0.13, 0, 0.5}, {66560, 0.2, 0.9, 0.1}};
    uint64_t seen[16] = {0}, next = UINT64_MAX;
    double expected[16];
    struct stream s;
    struct stream_io io;
    unsigned n = 0;
    (void)state;
    start_keys(&s, "row=512 share=7|row=4k share=60 read=25 random=100|row=8k share=13 read=0 random=50 align=512|"
               "row=65k share=20 read=90 random=10 align=512", usual);
    for (unsigned i = 0; i < 400000; i++) {
        unsigned r = 0;
        stream_next(&s, &io);
        while (rows[r].size != io.len) r++;
        /* sequential: the next place that the row's alignment allows (4k: always random) */
        bool random = next == UINT64_MAX || io.offset != next;
        if (rows[r].size == 4096) random = true;
        seen[r * 4 + (io.op == IO_WRITE) * 2 + random]++;
        next = io.offset + io.len;
    }
    uint64_t used[16];
    for (unsigned i = 0; i < 16; i++) {
        double read = rows[i / 4].read, random = rows[i / 4].random;
        double share = 400000 * rows[i / 4].share * (i / 2 % 2 ? 1 - read : read) * (i % 2 ? random : 1 - random);
        if (share == 0) {
            assert_true(seen[i] <= 4);
            continue;
        }
        used[n] = seen[i];
        expected[n++] = share;
    }
    assert_int_equal(n, 9);
    assert_true(chi_square(used, expected, n) < 8 + 5 * 4);
}

/* The draw of a row is exact, not only near: the bins are added up. */
static void shares_are_exact(void **state) {
    static const char *const keys[] = {
        "row=4k", "row=4k share=1|row=8k share=99", "row=4k share=33|row=8k share=33|row=16k share=34",
        "rw=randrw|rwmixread=37|bssplit=2k/51:4k/49,4k/97:8k/3",
        "bssplit=512/10:1k/5:2k/5:4k/60:8k/2:16k/4:32k/4:64k/10", "row=4k share=50|row=8k share=50"};
    (void)state;
    for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++) {
        struct pattern p = with("p", keys[k]);
        uint32_t sum[PATTERN_ALL_ROWS] = {0};
        struct stream s;
        start(&s, &p, usual);
        for (unsigned i = 0; i < s.n_rows; i++) {
            assert_in_range(s.row[i].own, 1, PATTERN_SHARES);
            assert_in_range(s.row[i].other, 0, s.n_rows - 1);
            sum[i] += s.row[i].own;
            sum[s.row[i].other] += PATTERN_SHARES - s.row[i].own;
        }
        for (unsigned i = 0; i < s.n_rows; i++) assert_int_equal(sum[i], p.row[i].share * s.n_rows);
        pattern_free(&p);
    }
}

/* ---- sequential ---- */

/* Every worker reads its slice, each block once per pass, and all slices together are the working set. */
static void slices_are_read_once_per_pass(void **state) {
    static const struct { const char *keys; uint64_t size, block; unsigned workers; } cases[] = {
        {"rw=read|bs=64k", 64 * 65536, 65536, 1},
        {"rw=read|bs=64k", 64 * 65536, 65536, 4},
        {"rw=write|bs=64k", 64 * 65536, 65536, 7},
        {"rw=read|bs=64k|blockalign=512", 100 * 65536, 65536, 3},
        {"rw=read|bs=66560", 64 * 66560, 66560, 5},
        {"rw=rw|bs=4k", 64 * 4096, 4096, 64}};
    (void)state;
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        unsigned blocks = (unsigned)(cases[k].size / cases[k].block), total = 0;
        uint8_t owner[100] = {0};
        for (unsigned w = 0; w < cases[k].workers; w++) {
            struct how h = {8192, cases[k].size, 3, 2, w, cases[k].workers};
            struct stream s;
            struct stream_io io;
            unsigned mine = blocks * (w + 1) / cases[k].workers - blocks * w / cases[k].workers, wraps = 0;
            uint64_t last = 0;
            start_keys(&s, cases[k].keys, h);
            for (unsigned i = 0; i < 3 * mine; i++) {
                stream_next(&s, &io);
                assert_true((io.offset - 8192) % cases[k].block == 0);
                uint64_t b = (io.offset - 8192) / cases[k].block;
                assert_true(b < blocks);
                assert_true(owner[b] == 0 || owner[b] == w + 1);
                if (i < mine) {
                    assert_int_equal(owner[b], 0); /* no block twice before all were there */
                    owner[b] = (uint8_t)(w + 1);
                    total++;
                }
                if (i && io.offset != last) wraps++;
                last = io.offset + io.len;
            }
            assert_in_range(wraps, 2, 3);
        }
        assert_int_equal(total, blocks);
    }
}

static void rounds_begin_elsewhere(void **state) {
    struct stream s;
    struct stream_io io;
    unsigned at_start = 0;
    (void)state;
    for (unsigned round = 1; round <= 64; round++) {
        struct how h = {0, GIB, 1, round, 0, 1};
        start_keys(&s, "rw=read|bs=32k|blockalign=512", h);
        stream_next(&s, &io);
        assert_true(io.offset % 32768 == 0);
        at_start += io.offset < GIB / 8;
    }
    assert_in_range(at_start, 2, 20);
}

/* An odd tail is used where an I/O fits, and left where it does not. */
static void tails(void **state) {
    struct how h = {0, 5 * 4096 + 1024, 1, 1, 0, 1};
    struct stream s;
    struct stream_io io;
    bool tail = false;
    (void)state;
    start_keys(&s, "rw=read|bs=4k", h);
    for (int i = 0; i < 50; i++) {
        stream_next(&s, &io);
        assert_true(io.offset + io.len <= 5 * 4096);
    }
    start_keys(&s, "bssplit=4k/50:1k/50|blockalign=1k", h);
    for (int i = 0; i < 500; i++) {
        stream_next(&s, &io);
        assert_true(io.offset + io.len <= h.size);
        tail |= io.offset == 5 * 4096;
    }
    assert_true(tail);
}

static void positions(void **state) {
    uint64_t next[2] = {0, 0}, jumps = 0;
    struct stream s;
    struct stream_io io;
    (void)state;
    /* shared: a random jump, of whatever direction, moves the one position */
    start_keys(&s, "row=4k share=50 read=100 random=100|row=8k share=50 read=0 align=4k", usual);
    for (int i = 0; i < 10000; i++) {
        stream_next(&s, &io);
        if (io.op == IO_WRITE && i) assert_true(io.offset == next[0] || (io.offset == 0 && next[0] + 8192 > GIB));
        next[0] = io.offset + io.len;
    }
    /* separate: writes go on where writes ended, in their slice, whatever the reads do */
    struct how h = {0, GIB, 1, 1, 2, 4};
    next[0] = 0;
    start_keys(&s, "row=4k share=50 read=100 random=100|row=1m share=50 read=0|position=separate", h);
    for (int i = 0; i < 10000; i++) {
        stream_next(&s, &io);
        if (io.op == IO_READ) {
            jumps += io.offset < GIB / 4;
            continue;
        }
        assert_true(io.offset >= GIB / 2 && io.offset + io.len <= GIB / 4 * 3);
        if (next[1]) assert_true(io.offset == next[1] || (io.offset == GIB / 2 && next[1] == GIB / 4 * 3));
        next[1] = io.offset + io.len;
    }
    assert_in_range(jumps, 1000, 1500); /* a quarter of the reads: they use the whole set */
}

/* After a random jump sequential I/O goes on from there, beyond the worker's slice, to the end of the set. */
static void mixed_patterns_use_the_whole_set(void **state) {
    struct how h = {0, 64 * 4096, 1, 1, 0, 4};
    struct stream s;
    struct stream_io io;
    uint64_t last = UINT64_MAX, wraps = 0;
    uint32_t seen[64] = {0};
    (void)state;
    start_keys(&s, "rw=read|percentage_random=5", h);
    for (int i = 0; i < 20000; i++) {
        stream_next(&s, &io);
        seen[io.offset / 4096]++;
        wraps += last == 64 * 4096 && io.offset == 0;
        last = io.offset + io.len;
    }
    for (int i = 0; i < 64; i++) assert_true(seen[i] > 100);
    assert_true(wraps > 50);
}

static void alignment_rounds_up(void **state) {
    struct stream s;
    struct stream_io io;
    uint64_t next = UINT64_MAX, holes = 0;
    struct how h = {512, GIB, 1, 1, 0, 1};
    (void)state;
    start_keys(&s, "row=512 share=50 align=512|row=8k share=50 align=4k", h);
    for (int i = 0; i < 10000; i++) {
        stream_next(&s, &io);
        uint64_t align = io.len == 512 ? 512 : 4096;
        assert_true((io.offset - 512) % align == 0);
        if (next != UINT64_MAX) {
            assert_true(io.offset >= next && io.offset - next < align);
            holes += io.offset != next;
        }
        next = io.offset + io.len;
    }
    assert_true(holes > 1000);
}

/* Whatever the pattern: inside the working set, aligned, a size of the pattern. */
static void nothing_leaves_the_working_set(void **state) {
    struct rng rng;
    struct err err;
    unsigned refused = 0, ran = 0;
    (void)state;
    rng_seed(&rng, 20);
    for (unsigned k = 0; k < 3000; k++) {
        struct pattern p;
        struct stream s;
        struct stream_io io;
        assert_int_equal(pattern_init(&p, "p", &err), 0);
        p.n_key_rows = 1 + (unsigned)rng_below(&rng, 5);
        for (unsigned i = 0; i < p.n_key_rows; i++) {
            uint32_t share = i ? 1 + (uint32_t)rng_below(&rng, 20) : 0;
            p.key_rows[i] = (struct pattern_row){.size = 512 * (1 + (uint32_t)rng_below(&rng, 40)),
                                                 .share = share * 100,
                                                 .read = (uint32_t)rng_below(&rng, 101),
                                                 .random = rng_below(&rng, 2) ? 0 : (uint32_t)rng_below(&rng, 101),
                                                 .align = 512 * (uint32_t)rng_below(&rng, 20)};
            p.key_rows[0].share += i ? 0 : PATTERN_SHARES;
            p.key_rows[0].share -= i ? share * 100 : 0;
        }
        p.position = (int)rng_below(&rng, 2);
        assert_int_equal(pattern_finish(&p, &err), 0);
        struct how h = {512 * rng_below(&rng, 9), 1 + rng_below(&rng, 600000), k, 1, 0, 1 + (unsigned)rng_below(&rng,
                                                                                                                5)};
        h.worker = (unsigned)rng_below(&rng, h.workers);
        if (stream_init(&s, &p, h.base, h.size, h.seed, h.round, h.worker, h.workers, &err) != 0) {
            refused++;
            pattern_free(&p);
            continue;
        }
        ran++;
        for (unsigned i = 0; i < 300; i++) {
            bool known = false;
            stream_next(&s, &io);
            assert_true(io.offset >= h.base && io.offset + io.len <= h.base + h.size);
            for (unsigned r = 0; r < p.n_rows; r++)
                known |= p.row[r].size == io.len && (io.offset - h.base) % p.row[r].align == 0 &&
                         (io.op == IO_READ ? p.row[r].read > 0 : p.row[r].read < 100);
            assert_true(known);
        }
        pattern_free(&p);
    }
    assert_true(ran > 2000);
    assert_true(refused > 50);
}

/* ---- the chain ---- */

static void marks_are_kept_at_powers_of_two(void **state) {
    struct pattern p = with("p", "rw=randrw");
    struct stream s;
    struct stream_io io;
    uint64_t chain[1025];
    (void)state;
    start(&s, &p, usual);
    assert_int_equal(s.n_marks, 0);
    for (unsigned i = 1; i <= 1024; i++) {
        stream_next(&s, &io);
        chain[i] = s.chain;
    }
    assert_int_equal(s.n_marks, 11);
    for (unsigned k = 0; k < 11; k++) assert_true(s.mark[k] == chain[1u << k]);
    stream_next(&s, &io);
    assert_int_equal(s.n_marks, 11);
    /* beyond the last mark nothing is overwritten */
    s.n_marks = STREAM_MARKS;
    s.count = s.next_mark - 1;
    uint64_t before = s.mark[STREAM_MARKS - 1];
    stream_next(&s, &io);
    assert_int_equal(s.n_marks, STREAM_MARKS);
    assert_true(s.mark[STREAM_MARKS - 1] == before);
    pattern_free(&p);
}

/* Direction, length and offset all count: patterns that draw the same numbers but differ in one of them. */
static void chain_tells_loads_apart(void **state) {
    static const char *const keys[] = {
        "rw=randread|randseed=1", "rw=randwrite|randseed=1", "rw=randread|bs=8k|blockalign=4k|randseed=1",
        "rw=randread|blockalign=512|randseed=1", "rw=read|randseed=1", "rw=write|randseed=1",
        "rw=read|bs=8k|blockalign=4k|randseed=1"};
    uint64_t chain[8];
    (void)state;
    for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++) {
        struct pattern p = with("p", keys[k]);
        chain[k] = chain_of(&p, usual);
        for (size_t i = 0; i < k; i++) assert_true(chain[i] != chain[k]);
        pattern_free(&p);
    }
}

/* ---- what cannot be ---- */

static void init_fails(const char *keys, struct how h, const char *expected) {
    struct pattern p = with("p", keys);
    struct stream s;
    struct err err;
    assert_int_equal(stream_init(&s, &p, h.base, h.size, h.seed, h.round, h.worker, h.workers, &err), -1);
    assert_int_equal(err.status, STATUS_USAGE);
    assert_string_equal(err.msg, expected);
    pattern_free(&p);
}

static void impossible_streams(void **state) {
    (void)state;
    init_fails("rw=randread|bs=8k", (struct how){0, 4096, 1, 1, 0, 1},
               "pattern 'p': a working set of 4k is smaller than one block of 8k");
    init_fails("rw=read|bs=64k", (struct how){0, 256 * 1024, 1, 1, 0, 5},
               "pattern 'p': a working set of 256k cannot be cut into 5 slices of at least 64k, one for each "
                   "sequential worker; "
               "it takes size=327680 or fewer workers (numjobs)");
    init_fails("row=4k share=50 align=4k|row=4k share=50 align=3k", (struct how){0, 16384, 1, 1, 1, 4},
               "pattern 'p': a slice of 4k per sequential worker has no room for its blocks at their alignments; it "
                   "takes a "
               "larger size or fewer workers (numjobs)");
    init_fails("rw=read", (struct how){0, GIB, 1, 1, 1, 1},
               "pattern 'p': no stream for worker 1 of 1 in round 1 over 1g bytes from 0");
    init_fails("rw=read", (struct how){0, GIB, 1, 0, 0, 1},
               "pattern 'p': no stream for worker 0 of 1 in round 0 over 1g bytes from 0");
    init_fails("rw=read", (struct how){UINT64_MAX - 4095, 8192, 1, 1, 0, 1},
               "pattern 'p': no stream for worker 0 of 1 in round 1 over 8k bytes from 18446744073709547520");
    /* random workers share the set: they need no slices */
    struct stream s;
    start_keys(&s, "rw=randread|bs=64k", (struct how){0, 65536, 1, 1, 4, 5});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_sequences), cmocka_unit_test(each_is_next),
        cmocka_unit_test(same_arguments_same_stream),
        cmocka_unit_test(every_argument_counts),
        cmocka_unit_test(a_randseed_is_shared),
        cmocka_unit_test(random_offsets_are_uniform),
        cmocka_unit_test(mixes_are_exact),
        cmocka_unit_test(rows_have_their_own_mix),
        cmocka_unit_test(shares_are_exact),
        cmocka_unit_test(slices_are_read_once_per_pass),
        cmocka_unit_test(rounds_begin_elsewhere),
        cmocka_unit_test(tails),
        cmocka_unit_test(positions),
        cmocka_unit_test(mixed_patterns_use_the_whole_set),
        cmocka_unit_test(alignment_rounds_up),
        cmocka_unit_test(nothing_leaves_the_working_set),
        cmocka_unit_test(marks_are_kept_at_powers_of_two),
        cmocka_unit_test(chain_tells_loads_apart),
        cmocka_unit_test(impossible_streams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
