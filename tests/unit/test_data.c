/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "pattern/data.h"
#include "pattern/mark.h"

#define STEP MARK_STEP
#define MIB  (1u << 20)

/* ---- what is made ---- */

/* The bytes of one write: marks at every multiple of 4096 and nowhere else, a tag in every sector, all others random.
 */
static void check_write(uint64_t offset, size_t len) {
    unsigned char *buf = malloc(len);
    uint64_t pieces = 0;
    struct data d;
    assert_non_null(buf);
    memset(buf, 0, len);
    data_init(&d, 9, 7, NULL);
    data_make(&d, buf, offset, len);
    for (size_t at = 0; at < len; at += DATA_SECTOR) {
        bool here = (offset + at) % STEP == 0;
        uint64_t counter = 0;
        uint32_t run = 0;
        pieces += here || at == 0;
        assert_true(data_sector_is_ours(buf + at));
        assert_int_equal(mark_read(buf + at, &run, &counter), here);
        if (!here) continue;
        assert_int_equal(run, 9);
        assert_int_equal(counter, 7 + pieces - 1);
    }
    for (size_t at = 0; at < len;) {
        size_t n = STEP - (size_t)((offset + at) % STEP);
        if (n > len - at) n = len - at;
        assert_int_equal(data_look(buf + at, offset + at, n), DATA_OURS);
        at += n;
    }
    assert_int_equal(d.counter, 7 + pieces);
    free(buf); /* the sanitizer sees a byte beyond the end */
}

static void every_write_proves_itself(void **state) {
    (void)state;
    for (uint64_t offset = 0; offset <= 3 * STEP; offset += 512)
        for (size_t len = 512; len <= 3 * STEP; len += 512) check_write(offset, len);
    check_write((1ULL << 62) + 512, 65536);
    check_write(0, MIB);
}

static void less_than_a_sector_is_random_too(void **state) {
    (void)state;
    for (size_t len = 1; len < 1600; len += 13) {
        unsigned char *buf = malloc(len);
        struct data d;
        assert_non_null(buf);
        memset(buf, 0, len);
        data_init(&d, 1, 0, NULL);
        data_make(&d, buf, 0, len);
        if (len % 512 >= 16) assert_false(mark_is_zero(buf + len - len % 512, len % 512));
        for (size_t at = 0; at + 512 <= len; at += 512) assert_true(data_sector_is_ours(buf + at));
        free(buf);
    }
}

static void the_same_calls_make_the_same_bytes(void **state) {
    unsigned char a[3 * STEP], b[3 * STEP];
    struct data one, two;
    (void)state;
    memset(a, 1, sizeof(a));
    memset(b, 2, sizeof(b)); /* nothing of what lay in the buffer stays */
    data_init(&one, 4, 5, NULL);
    data_init(&two, 4, 5, NULL);
    for (unsigned i = 0; i < 20; i++) {
        data_make(&one, a, 512 * i, sizeof(a));
        data_make(&two, b, 512 * i, sizeof(b));
        assert_memory_equal(a, b, sizeof(a));
    }
}

static int by_words(const void *a, const void *b) {
    return memcmp(a, b, 8);
}

/* No eight bytes come twice, in any sector, of any run, worker, or write. */
static void nothing_is_repeated(void **state) {
    const size_t part = MIB / 2;
    unsigned char *buf = malloc(4 * part);
    struct data d[4];
    size_t same = 0;
    (void)state;
    assert_non_null(buf);
    data_init(&d[0], 1, 0, NULL);
    data_init(&d[1], 2, 0, NULL);
    data_init(&d[2], 1, 1ULL << 48, NULL);
    data_init(&d[3], 0x80000001, 0, NULL);
    for (size_t at = 0; at < part; at += 512) data_make(&d[0], buf + at, at, 512);
    data_make(&d[1], buf + part, 0, part);
    for (size_t at = 0; at < part; at += 8192) data_make(&d[2], buf + 2 * part + at, 512, 8192);
    data_make(&d[3], buf + 3 * part, 0, part);
    for (size_t at = 0; at < 4 * part; at += 512) /* the marks themselves are alike in their magic */
        if (mark_read(buf + at, NULL, NULL)) memcpy(buf + at, (uint64_t[]){at, ~at}, 16);
    qsort(buf, 4 * part / 8, 8, by_words);
    for (size_t i = 8; i < 4 * part; i += 8) same += memcmp(buf + i, buf + i - 8, 8) == 0;
    assert_int_equal(same, 0);
    free(buf);
}

/* What must not change: other versions have to know it again. */
static void layout_is_fixed(void **state) {
    unsigned char sector[512];
    (void)state;
    if (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__) skip();
    for (unsigned i = 0; i < 512; i++) sector[i] = (unsigned char)(i * 7);
    assert_int_equal(data_tag(sector), 0x4116efdf08ca6e5eULL);
    memset(sector + 504, 0, 8); /* the tag is no part of what it is made from */
    assert_int_equal(data_tag(sector), 0x4116efdf08ca6e5eULL);
}

/* ---- what is known again ---- */

static void any_changed_byte_is_foreign(void **state) {
    unsigned char block[STEP];
    struct data d;
    (void)state;
    data_init(&d, 1, 1, NULL);
    data_make(&d, block, 0, sizeof(block));
    assert_true(data_is_ours(block, sizeof(block)));
    for (size_t at = 0; at < sizeof(block); at++) {
        block[at] ^= 1;
        assert_false(data_is_ours(block, sizeof(block)));
        block[at] ^= 0x81;
        assert_false(data_is_ours(block, sizeof(block)));
        block[at] ^= 0x80;
    }
    assert_true(data_is_ours(block, sizeof(block)));
}

static int by_value(const void *a, const void *b) {
    uint64_t x, y;
    memcpy(&x, a, 8);
    memcpy(&y, b, 8);
    return (x > y) - (x < y);
}

/* The sum under the tag is linear: two changed bytes go unseen only where each alone changes it in the same way. */
static void any_two_changed_bytes_are_foreign(void **state) {
    const size_t n = 504 * 255;
    uint64_t *tags = malloc((n + 1) * sizeof(*tags));
    unsigned char sector[512] = {0};
    (void)state;
    assert_non_null(tags);
    tags[n] = data_tag(sector);
    for (size_t at = 0, k = 0; at < 504; at++) {
        for (unsigned value = 1; value < 256; value++) {
            sector[at] = (unsigned char)value;
            tags[k++] = data_tag(sector);
        }
        sector[at] = 0;
    }
    qsort(tags, n + 1, sizeof(*tags), by_value);
    for (size_t i = 1; i <= n; i++) assert_true(tags[i] != tags[i - 1]);
    free(tags);
}

static void foreign_bytes_behind_a_mark(void **state) {
    unsigned char block[STEP];
    struct rng rng;
    (void)state;
    rng_seed(&rng, 1);
    for (unsigned i = 0; i < 1000; i++) {
        rng_fill(&rng, block, sizeof(block));
        mark_put(block, 1, i); /* what earlier versions wrote */
        assert_false(data_is_ours(block, sizeof(block)));
        assert_false(data_run_of(block, sizeof(block), NULL, NULL));
        memset(block + 16, (int)i, sizeof(block) - 16);
        assert_false(data_is_ours(block, sizeof(block)));
    }
}

static void one_foreign_sector_in_a_block(void **state) {
    unsigned char block[STEP], saved[512];
    struct data d;
    (void)state;
    data_init(&d, 1, 1, NULL);
    data_make(&d, block, 0, sizeof(block));
    for (size_t at = 0; at < STEP; at += 512) {
        memcpy(saved, block + at, 512);
        memset(block + at, 'x', 512);
        assert_int_equal(data_look(block, 0, STEP), DATA_FOREIGN);
        memset(block + at, 0, 512); /* nobody wrote there yet */
        assert_int_equal(data_look(block, 0, STEP), DATA_OURS);
        block[at + 511] = 1;
        assert_int_equal(data_look(block, 0, STEP), DATA_FOREIGN);
        memcpy(block + at, saved, 512);
    }
}

/* Whatever is left of larger, smaller and unaligned writes of several runs is ours. */
static void what_is_left_is_ours(void **state) {
    unsigned char *disk = calloc(1, 64 * 1024), buf[16384];
    struct data d[3];
    struct rng rng;
    (void)state;
    assert_non_null(disk);
    rng_seed(&rng, 2);
    for (unsigned i = 0; i < 3; i++) data_init(&d[i], i, i, NULL);
    for (unsigned i = 0; i < 3000; i++) {
        size_t len = 512 * (1 + rng_below(&rng, 32)), at = 512 * rng_below(&rng, (64 * 1024 - len) / 512 + 1);
        data_make(&d[i % 3], buf, at, len);
        memcpy(disk + at, buf, len);
        for (size_t block = 0; block < 64 * 1024; block += STEP)
            assert_int_not_equal(data_look(disk + block, block, STEP), DATA_FOREIGN);
    }
    for (size_t block = 0; block < 64 * 1024; block += STEP) assert_true(data_is_ours(disk + block, STEP));
    free(disk);
}

static void a_mark_must_stand_where_one_belongs(void **state) {
    unsigned char block[STEP];
    struct data d;
    (void)state;
    data_init(&d, 1, 1, NULL);
    data_make(&d, block, 512, 512); /* a sector of ours, but from another place */
    assert_int_equal(data_look(block, 512, 512), DATA_OURS);
    assert_int_equal(data_look(block, 4096, 512), DATA_FOREIGN);
    memset(block, 0, sizeof(block));
    assert_int_equal(data_look(block, 0, STEP), DATA_ZEROS);
    assert_false(data_is_ours(block, STEP));
    data_make(&d, block, 0, 512);
    assert_int_equal(data_look(block, 0, 777), DATA_OURS);
    block[512] = 1; /* less than a sector */
    assert_int_equal(data_look(block, 0, 777), DATA_FOREIGN);
}

/* ---- other data than random ---- */

static void compressible_sectors_prove_themselves(void **state) {
    static unsigned char buf[16 * STEP];
    struct data d;
    (void)state;
    for (unsigned percent = 1; percent < 100; percent += 7) {
        const struct data_choice choice = {.compress = percent};
        data_init(&d, 9, 7, NULL);
        data_choose(&d, &choice);
        data_make(&d, buf, 0, sizeof(buf));
        for (size_t at = 0; at < sizeof(buf); at += STEP) assert_int_equal(data_look(buf + at, at, STEP), DATA_OURS);
        /* The zeros before the tag of each sector but the marked ones, in a word's rounding; and one bit among them. */
        for (size_t at = 512; at < sizeof(buf); at += 512) {
            unsigned zeros = 0;
            while (zeros < 504 && buf[at + 503 - zeros] == 0) zeros++;
            double wanted = 512 * percent / 100.0 > 496 ? 496 : 512 * percent / 100.0;
            if (at % STEP) assert_true(zeros >= wanted - 5 && zeros <= wanted + 12);
            buf[at + 503] ^= 1;
            assert_false(data_sector_is_ours(buf + at));
            buf[at + 503] ^= 1;
            assert_true(memcmp(buf + at, buf + at - 512, 512) != 0);
        }
    }
}

static void writes_repeat_as_often_as_asked(void **state) {
    static unsigned char block[STEP], last[STEP], twin[STEP];
    struct data d, other;
    (void)state;
    for (unsigned percent = 25; percent <= 100; percent += 25) {
        const struct data_choice choice = {.dedupe = percent, .compress = percent / 2};
        unsigned same = 0, n = 20000;
        data_init(&d, percent, 0, NULL);
        data_choose(&d, &choice);
        other = d;
        memset(last, 0, sizeof(last));
        for (unsigned i = 0; i < n; i++) {
            data_make(&d, block, (uint64_t)i * STEP, STEP);
            data_make(&other, twin, (uint64_t)i * STEP, STEP);
            assert_memory_equal(block, twin, STEP);
            assert_int_equal(data_look(block, 0, STEP), DATA_OURS);
            same += memcmp(block, last, STEP) == 0;
            memcpy(last, block, STEP);
        }
        assert_in_range(same, n * percent / 100 - n / 75, n * percent / 100 + n / 75);
    }
}

/* A longer write takes up what there is of the shorter one before it, and then new data. */
static void a_repeat_never_runs_into_what_comes(void **state) {
    static unsigned char buf[4 * STEP], first[STEP];
    const struct data_choice choice = {.dedupe = 100};
    struct data d;
    (void)state;
    data_init(&d, 1, 0, NULL);
    data_choose(&d, &choice);
    data_make(&d, first, 0, STEP);
    for (unsigned i = 0; i < 3; i++) {
        uint64_t counter;
        data_make(&d, buf, 0, sizeof(buf));
        assert_memory_equal(buf, first, STEP);
        for (unsigned k = 1; k < 4; k++) {
            assert_true(data_run_of(buf + k * STEP, STEP, NULL, &counter));
            assert_int_equal(counter, 3 * i + k);
        }
    }
}

/* Nothing but zeros, except for the block by which the object is known again; and what the zeros leave of other data is
 * ours. */
static void zeros_keep_the_note(void **state) {
    const struct data_note note = {.offset = 8192, .bytes = "host 17", .len = 8};
    const struct data_choice zeros = {.zeros = true};
    static unsigned char disk[64 * 1024], buf[16384];
    struct data d, random;
    struct rng rng;
    size_t len;
    (void)state;
    data_init(&d, 5, 0, &note);
    data_choose(&d, &zeros);
    memset(disk, 0xff, sizeof(disk));
    data_make(&d, disk, 0, sizeof(disk));
    for (size_t at = 0; at < sizeof(disk); at += STEP)
        assert_int_equal(data_look(disk + at, at, STEP), at == 8192 ? DATA_OURS : DATA_ZEROS);
    assert_string_equal(data_note(disk + 8192, &len), "host 17");
    rng_seed(&rng, 3);
    data_init(&random, 6, 0, &note);
    for (unsigned i = 0; i < 3000; i++) {
        size_t n = 512 * (1 + rng_below(&rng, 32)), at = 512 * rng_below(&rng, (sizeof(disk) - n) / 512 + 1);
        data_make(i % 2 ? &d : &random, buf, at, n);
        memcpy(disk + at, buf, n);
        assert_string_equal(data_note(disk + 8192, &len), "host 17");
        for (size_t block = 0; block < sizeof(disk); block += STEP)
            assert_int_not_equal(data_look(disk + block, block, STEP), DATA_FOREIGN);
    }
}

/* ---- run and note ---- */

static void the_run_is_read_from_a_block(void **state) {
    unsigned char block[STEP];
    uint64_t counter = 0;
    uint32_t run = 0;
    struct data d;
    (void)state;
    data_init(&d, 0xcafe0001, 77ULL << 48, NULL);
    data_make(&d, block, 0, 8192 - STEP);
    assert_true(data_run_of(block, sizeof(block), &run, &counter));
    assert_int_equal(run, 0xcafe0001);
    assert_int_equal(counter, 77ULL << 48);
    assert_true(data_run_of(block, 512, NULL, NULL));
    assert_false(data_run_of(block, 511, &run, &counter));
    block[300] ^= 4;
    assert_false(data_run_of(block, sizeof(block), &run, &counter));
}

static void a_note_is_put_and_read(void **state) {
    unsigned char block[STEP], note[DATA_NOTE_MAX];
    size_t len = 99;
    uint32_t run = 0;
    struct data d;
    (void)state;
    data_init(&d, 3, 1, NULL);
    for (size_t n = 0; n <= DATA_NOTE_MAX; n++) {
        memset(note, (int)n + 1, n);
        data_make(&d, block, 0, sizeof(block));
        assert_null(data_note(block, &len));
        data_put_note(block, note, n);
        assert_true(data_is_ours(block, sizeof(block)));
        const void *found = data_note(block, &len);
        assert_non_null(found);
        assert_int_equal(len, n);
        assert_memory_equal(found, note, n);
        assert_true(data_run_of(block, sizeof(block), &run, NULL));
        assert_int_equal(run, 3);
    }
    block[100] ^= 1; /* a note that somebody changed is none */
    assert_null(data_note(block, &len));
    memset(block, 0, sizeof(block));
    assert_null(data_note(block, &len));
}

static void every_write_over_its_block_carries_the_note(void **state) {
    static const char words[] = "host 4711";
    const struct data_note note = {.offset = 8192, .bytes = words, .len = sizeof(words)};
    unsigned char buf[5 * STEP];
    struct data d;
    (void)state;
    data_init(&d, 3, 1, &note);
    for (uint64_t offset = 0; offset <= 12288; offset += 512)
        for (size_t len = 512; len <= sizeof(buf); len += 512) {
            size_t found_len = 0;
            bool covered = offset <= 8192 && 8192 < offset + len;
            data_make(&d, buf, offset, len);
            for (size_t at = 0; at < len; at += 512) {
                bool here = data_note(buf + at, &found_len) != NULL;
                assert_int_equal(here, covered && offset + at == 8192);
                assert_true(data_sector_is_ours(buf + at));
                if (here) assert_string_equal(data_note(buf + at, &found_len), words);
            }
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_write_proves_itself),
        cmocka_unit_test(less_than_a_sector_is_random_too),
        cmocka_unit_test(the_same_calls_make_the_same_bytes),
        cmocka_unit_test(nothing_is_repeated),
        cmocka_unit_test(layout_is_fixed),
        cmocka_unit_test(any_changed_byte_is_foreign),
        cmocka_unit_test(any_two_changed_bytes_are_foreign),
        cmocka_unit_test(foreign_bytes_behind_a_mark),
        cmocka_unit_test(one_foreign_sector_in_a_block),
        cmocka_unit_test(what_is_left_is_ours),
        cmocka_unit_test(a_mark_must_stand_where_one_belongs),
        cmocka_unit_test(compressible_sectors_prove_themselves),
        cmocka_unit_test(writes_repeat_as_often_as_asked),
        cmocka_unit_test(a_repeat_never_runs_into_what_comes),
        cmocka_unit_test(zeros_keep_the_note),
        cmocka_unit_test(the_run_is_read_from_a_block),
        cmocka_unit_test(a_note_is_put_and_read),
        cmocka_unit_test(every_write_over_its_block_carries_the_note),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
