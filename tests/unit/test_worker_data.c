/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What workers and the fill write: every write's own bytes, none that a read had brought, and the note where it belongs.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine/prepare.h"
#include "engine/worker.h"
#include "fake_backend.h"
#include "pattern/data.h"
#include "pattern/mark.h"

#define SIZE (4u << 20)

struct bench {
    struct fake fake;
    struct clock_virtual clock;
    struct handle handle;
    struct pattern pattern;
    struct err err;
    unsigned char *disk;
};

static int setup(void **state) {
    struct bench *b = calloc(1, sizeof(*b));

    fake_init(&b->fake, SIZE);
    b->handle = (struct handle){.fake = &b->fake, .write = true};
    clock_virtual_init(&b->clock, NS_PER_SEC);
    assert_int_equal(pattern_init(&b->pattern, "p", &b->err), 0);
    b->disk = calloc(1, SIZE);
    assert_non_null(b->disk);
    *state = b;
    return 0;
}

static int teardown(void **state) {
    struct bench *b = *state;

    pattern_free(&b->pattern);
    fake_free(&b->fake);
    free(b->disk);
    free(b);
    return 0;
}

/* Worker 0 of one; keys in pairs, ended by NULL. */
static void run(struct bench *b, const struct data_note *note, const char *const *keys) {
    struct worker *w = calloc(1, sizeof(*w));
    char text[200];

    for (; keys[0]; keys += 2)
        if (pattern_set(&b->pattern, keys[0], keys[1], text, sizeof(text), &b->err) != 0) fail_msg("%s", b->err.msg);
    if (pattern_finish(&b->pattern, &b->err) != 0) fail_msg("%s", b->err.msg);
    w->backend = &fake_backend;
    w->handle = &b->handle;
    w->pattern = &b->pattern;
    w->size = SIZE;
    w->seed = w->round = w->workers = 1;
    w->run_tag = 5;
    w->note = note;
    w->clock = &b->clock.clock;
    w->drain_limit = NS_PER_SEC;
    w->series_interval_ns = NS_PER_SEC;
    w->n_points = 4;
    w->t_start = w->t_window = b->clock.t;
    w->t_end = INT64_MAX;
    if (worker_attach(w, &b->err) != 0) fail_msg("%s", b->err.msg);
    worker_loop(w);
    assert_int_equal(w->seen_errors, 0);
    worker_detach(w);
    worker_free(w);
    free(w);
    assert_int_equal(pread(b->fake.fd, b->disk, SIZE, 0), SIZE);
}

#define KEYS(...) ((const char *const[]){__VA_ARGS__, NULL})

static int by_bytes(const void *a, const void *b) {
    return memcmp(a, b, 512);
}

/* Every sector is ours or zero, and none comes twice; returns how many are ours. */
static size_t sectors(struct bench *b) {
    size_t ours = 0;

    for (size_t at = 0; at < SIZE; at += MARK_STEP)
        assert_int_not_equal(data_look(b->disk + at, at, MARK_STEP), DATA_FOREIGN);
    qsort(b->disk, SIZE / 512, 512, by_bytes);
    for (size_t at = 0; at < SIZE; at += 512) {
        if (mark_is_zero(b->disk + at, 512)) continue;
        ours++;
        if (at > 0) assert_memory_not_equal(b->disk + at, b->disk + at - 512, 512);
    }
    return ours;
}

static void every_write_has_its_own_bytes(void **state) {
    struct bench *b = *state;

    run(b, NULL, KEYS("size", "4m", "rw", "randwrite", "bssplit", "512/30:4k/40:64k/30", "blockalign", "512", "iodepth",
                      "32", "io_size", "16m"));
    assert_true(sectors(b) > SIZE / 512 / 2);
}

static void a_mix_never_writes_what_it_read(void **state) {
    struct bench *b = *state;

    run(b, NULL, KEYS("size", "4m", "rw", "randrw", "rwmixread", "50", "bs", "4k", "iodepth", "8", "io_size", "16m"));
    assert_true(sectors(b) > SIZE / 512 / 2);
}

static void the_first_block_carries_the_note(void **state) {
    struct bench *b = *state;
    const struct data_note note = {.offset = 0, .bytes = "host 17", .len = 8};
    size_t len = 0;

    run(b, &note, KEYS("size", "4m", "rw", "write", "bs", "64k", "iodepth", "4", "loops", "1"));
    const void *found = data_note(b->disk, &len);
    assert_non_null(found);
    assert_int_equal(len, 8);
    assert_string_equal(found, "host 17");
    for (size_t at = 512; at < SIZE; at += 512) assert_null(data_note(b->disk + at, &len));
    assert_true(data_is_ours(b->disk, MARK_STEP));
}

static void so_does_a_fill(void **state) {
    struct bench *b = *state;
    volatile sig_atomic_t interrupted = 0;
    const struct data_note note = {.offset = 8192, .bytes = "host 18", .len = 8};
    struct target *t = calloc(1, sizeof(*t));
    uint64_t counter = 0;
    uint32_t run_tag = 0;
    size_t len = 0;

    assert_non_null(t);
    t->backend = &fake_backend;
    t->handle = &b->handle;
    t->facts = b->fake.facts;
    t->clock = &b->clock.clock;
    struct prepare p = {.target = t, .run_tag = 99, .to = SIZE / 2, .note = &note, .interrupted = &interrupted};
    if (prepare_fill(&p, &b->err) != 0) fail_msg("%s", b->err.msg);
    p.from = p.to;
    p.to = SIZE;
    if (prepare_fill(&p, &b->err) != 0) fail_msg("%s", b->err.msg);
    assert_int_equal(pread(b->fake.fd, b->disk, SIZE, 0), SIZE);
    assert_string_equal(data_note(b->disk + 8192, &len), "host 18");
    for (uint64_t at = 0; at < SIZE; at += MARK_STEP) { /* numbered by place, so that no number comes twice */
        assert_true(data_run_of(b->disk + at, MARK_STEP, &run_tag, &counter));
        assert_int_equal(run_tag, 99);
        assert_int_equal(counter, at / MARK_STEP);
    }
    assert_int_equal(sectors(b), SIZE / 512);
    free(t);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(every_write_has_its_own_bytes),
        T(a_mix_never_writes_what_it_read),
        T(the_first_block_carries_the_note),
        T(so_does_a_fill),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
