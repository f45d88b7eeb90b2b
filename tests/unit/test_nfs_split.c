/* SPDX-License-Identifier: GPL-2.0-or-later */
/* I/Os in several RPCs, over an engine that is played by the test: it takes as many requests as it is told, and answers
 * those that it is told. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backends/nfs/nfs_split.h"
#include "base/rng.h"

#define DEPTH 4u
#define RSIZE 1000u
#define WSIZE 600u
#define MOST 4000u
#define OUT 128u

/* ---- the engine ---- */

struct context {
    struct nfsbe_context common;
    struct attach_how how;
    struct request *out[OUT];
    unsigned n, taken, room, submits, reaps;
    int lost;
    struct completion done[OUT]; /* what the next reaps bring */
    unsigned n_done;
    bool detached;
};

static struct context engine;

static int engine_attach(struct handle *h, const struct attach_how *how, struct context **out, struct err *err) {
    (void)h;
    (void)err;
    memset(&engine, 0, sizeof engine);
    engine.how = *how;
    engine.room = OUT;
    *out = &engine;
    return 0;
}

static void engine_detach(struct context *c) {
    c->detached = true;
}

static int engine_submit(struct context *c, struct request *const *requests, unsigned n) {
    unsigned k;
    c->submits++;
    if (c->lost) return c->lost;
    for (k = 0; k < n && c->room; k++, c->room--) {
        assert_true(requests[k]->slot < c->how.depth && requests[k]->len <= c->how.max_io);
        for (unsigned i = 0; i < c->n; i++) assert_int_not_equal(c->out[i]->slot, requests[k]->slot);
        c->out[c->n++] = requests[k];
    }
    c->taken += k;
    return (int)k;
}

static int engine_reap(struct context *c, struct completion *out, unsigned max, unsigned min, int64_t timeout_ns) {
    unsigned n = c->n_done < max ? c->n_done : max;
    (void)timeout_ns;
    assert_true(min <= max);
    c->reaps++;
    if (n == 0 && c->lost && c->n == 0) return c->lost;
    memcpy(out, c->done, n * sizeof *out);
    c->n_done -= n;
    memmove(c->done, c->done + n, c->n_done * sizeof *out);
    return (int)n;
}

static void engine_counters(struct context *c, struct kv *out) {
    kv_uint(out, "wire_ios", c->taken);
}

static const struct nfsbe_engine played = {.name = "played", .max_io = 1u << 20, .attach = engine_attach,
                                           .detach = engine_detach, .submit = engine_submit, .reap = engine_reap,
                                           .counters = engine_counters};

/* The request in place `i` of what is out is answered. */
static void answer(unsigned i, int64_t result, unsigned kind, bool stable) {
    engine.done[engine.n_done++] = (struct completion){.request = engine.out[i], .result = result, .t_done = 1000 + i,
                                                       .kind = (uint16_t)kind, .stable = stable};
    memmove(engine.out + i, engine.out + i + 1, (--engine.n - i) * sizeof engine.out[0]);
}

static void answer_whole(unsigned i) {
    answer(i, engine.out[i]->len, 0, true);
}

/* ---- the bench ---- */

static struct handle handle;
static struct kinds kinds;
static struct clock_virtual virtual;
static char buffers[DEPTH][4096];
static struct request request[DEPTH], *list[DEPTH];
static struct completion done[DEPTH];

static const struct nfsbe_engine *of(const struct context *c) {
    return ((const struct nfsbe_context *)c)->engine;
}

static struct context *begin(bool write) {
    struct context *c;
    struct err err;
    memset(&kinds, 0, sizeof kinds);
    clock_virtual_init(&virtual, 77);
    handle = (struct handle){.engine = &played, .rsize = RSIZE, .wsize = WSIZE};
    struct attach_how how = {.depth = DEPTH, .max_io = MOST, .buffers = buffers, .stride = sizeof buffers[0],
                             .clock = &virtual.clock, .kinds = &kinds, .write = write};
    assert_true(how.max_io > nfsbe_piece(&handle, write));
    assert_int_equal(nfsbe_split_attach(&handle, &how, &c, &err), 0);
    for (unsigned i = 0; i < DEPTH; i++) list[i] = &request[i];
    return c;
}

static void end(struct context *c) {
    of(c)->detach(c);
    assert_true(engine.detached);
}

static struct request *prepare(unsigned slot, enum io_op op, uint64_t offset, uint32_t len) {
    request[slot] = (struct request){.buf = buffers[slot], .offset = offset, .len = len, .slot = slot, .op = (uint8_t)op,
                                     .sync = SYNC_DSYNC};
    return &request[slot];
}

static void expect_piece(unsigned i, const struct request *whole, uint32_t at, uint32_t len) {
    const struct request *p = engine.out[i];
    assert_int_equal(p->offset, whole->offset + at);
    assert_int_equal(p->len, len);
    assert_ptr_equal(p->buf, (char *)whole->buf + at);
    assert_int_equal(p->op, whole->op);
    assert_int_equal(p->sync, whole->sync);
}

static int reap(struct context *c, unsigned max, unsigned min) {
    return of(c)->reap(c, done, max, min, NS_PER_SEC);
}

/* ---- */

static void test_pieces(void **state) {
    (void)state;
    struct context *c = begin(true);
    struct kv kv = {0};
    assert_true(engine.how.depth >= DEPTH * (1 + 7));
    assert_int_equal(engine.how.max_io, RSIZE);
    prepare(0, IO_READ, 1 << 20, 2500);
    prepare(1, IO_WRITE, 5000, 1200);
    prepare(2, IO_READ, 7, 1000);
    prepare(3, IO_FLUSH, 0, 0);
    assert_int_equal(of(c)->submit(c, list, 4), 4);
    assert_int_equal(engine.submits, 1);
    assert_int_equal(engine.n, 3 + 2 + 1 + 1);
    expect_piece(0, &request[0], 0, 1000);
    expect_piece(1, &request[0], 1000, 1000);
    expect_piece(2, &request[0], 2000, 500);
    expect_piece(3, &request[1], 0, 600);
    expect_piece(4, &request[1], 600, 600);
    assert_ptr_equal(engine.out[5], &request[2]); /* small enough: the request itself */
    assert_ptr_equal(engine.out[6], &request[3]);
    answer_whole(1);
    assert_int_equal(reap(c, 4, 1), 0); /* a piece is no I/O */
    answer_whole(5);
    answer_whole(1);
    answer_whole(0);
    assert_int_equal(reap(c, 4, 2), 2);
    assert_ptr_equal(done[0].request, &request[3]);
    assert_int_equal(done[0].result, 0);
    assert_ptr_equal(done[1].request, &request[0]);
    assert_int_equal(done[1].result, 2500);
    assert_int_equal(done[1].t_done, 1000); /* the last part's stamp */
    answer_whole(2);
    answer_whole(1);
    answer_whole(0);
    assert_int_equal(reap(c, 4, 4), 2);
    assert_ptr_equal(done[0].request, &request[2]);
    assert_ptr_equal(done[1].request, &request[1]);
    assert_int_equal(done[1].result, 1200);
    assert_true(done[1].stable);
    of(c)->counters(c, &kv);
    assert_int_equal(kv_get_uint(&kv, "wire_ios", 0), 7);
    assert_int_equal(kv_get_uint(&kv, "split_ios", 0), 2);
    kv_free(&kv);
    end(c);
}

/* A context that only reads is limited by rsize alone. */
static void test_reading(void **state) {
    (void)state;
    struct context *c = begin(false);
    assert_int_equal(engine.how.depth, DEPTH * (1 + 4));
    prepare(0, IO_READ, 0, MOST);
    assert_int_equal(of(c)->submit(c, list, 1), 1);
    assert_int_equal(engine.n, 4);
    end(c);
}

static void test_results(void **state) {
    (void)state;
    struct context *c = begin(true);
    prepare(0, IO_WRITE, 0, 1800);
    prepare(1, IO_READ, 0, 2000);
    prepare(2, IO_READ, 0, 3000);
    assert_int_equal(of(c)->submit(c, list, 3), 3);
    answer(0, 600, 0, true);
    answer(0, 600, 0, false); /* one of three may be lost in a power failure */
    answer(0, 600, 0, true);
    answer(0, 1000, 0, false);
    answer(0, 300, 0, false); /* short */
    answer(0, 1000, 0, false);
    answer(1, -EIO, 3, false); /* the first error is the I/O's; other pieces may still come */
    answer(0, -ENOSPC, 4, false);
    assert_int_equal(reap(c, 4, 3), 3);
    assert_int_equal(done[0].result, 1800);
    assert_false(done[0].stable);
    assert_int_equal(done[1].result, 1300);
    assert_int_equal(done[2].result, -EIO);
    assert_int_equal(done[2].kind, 3);
    end(c);
}

/* No room in the middle of an I/O: it is taken, what comes behind it is not, and its rest goes before anything new. */
static void test_part(void **state) {
    (void)state;
    struct context *c = begin(true);
    prepare(0, IO_READ, 0, 1000);
    prepare(1, IO_READ, 0, 4000);
    prepare(2, IO_READ, 0, 1000);
    engine.room = 3;
    assert_int_equal(of(c)->submit(c, list, 3), 2);
    assert_int_equal(engine.n, 3);
    assert_int_equal(of(c)->submit(c, list + 2, 1), 0); /* still no room */
    engine.room = 1;
    assert_int_equal(of(c)->submit(c, list + 2, 1), 0);
    assert_int_equal(engine.n, 4);
    expect_piece(3, &request[1], 2000, 1000);
    engine.room = 2;
    answer_whole(0);
    assert_int_equal(reap(c, 4, 1), 1); /* and sends the last piece */
    assert_int_equal(engine.n, 4);
    expect_piece(3, &request[1], 3000, 1000);
    assert_int_equal(of(c)->submit(c, list + 2, 1), 1);
    while (engine.n) answer_whole(0);
    assert_int_equal(reap(c, 4, 2), 2);
    assert_int_equal(done[0].result, 4000);
    assert_ptr_equal(done[1].request, &request[2]);
    engine.room = 0;
    prepare(0, IO_READ, 0, 4000);
    assert_int_equal(of(c)->submit(c, list, 1), 0); /* not a byte of it: not taken */
    engine.room = 9;
    assert_int_equal(of(c)->submit(c, list, 1), 1);
    assert_int_equal(engine.n, 4);
    end(c);
}

static void lost_with_rest(bool in_submit) {
    struct context *c = begin(true);
    prepare(0, IO_READ, 0, 4000);
    prepare(1, IO_READ, 0, 1000);
    engine.room = 2;
    assert_int_equal(of(c)->submit(c, list, 2), 1);
    engine.lost = -ECONNRESET;
    if (in_submit) assert_int_equal(of(c)->submit(c, list + 1, 1), -ECONNRESET);
    answer(0, 1000, 0, false);
    answer(0, -ECONNRESET, 5, false);
    assert_int_equal(reap(c, 4, 1), 1); /* once, though two pieces were never sent */
    assert_ptr_equal(done[0].request, &request[0]);
    assert_int_equal(done[0].result, -ECONNRESET);
    assert_int_equal(reap(c, 4, 1), -ECONNRESET);
    assert_int_equal(of(c)->submit(c, list, 1), -ECONNRESET);
    end(c);
}

/* The pieces that were sent have been answered well; nothing will come any more that could bring the I/O back. */
static void lost_and_answered(bool in_submit) {
    struct context *c = begin(true);
    prepare(0, IO_READ, 0, 4000);
    engine.room = 2;
    assert_int_equal(of(c)->submit(c, list, 1), 1);
    answer_whole(0);
    answer_whole(0);
    assert_int_equal(of(c)->reap(c, done, 4, 0, 0), 0);
    engine.lost = -EPIPE;
    if (in_submit) assert_int_equal(of(c)->submit(c, list, 1), -EPIPE);
    assert_int_equal(reap(c, 4, 1), 1);
    assert_int_equal(done[0].result, -EPIPE);
    assert_string_equal(kinds.kind[done[0].kind].name, "connection lost");
    assert_int_equal(done[0].t_done, 77);
    assert_int_equal(reap(c, 4, 1), -EPIPE);
    end(c);
}

static void test_lost(void **state) {
    (void)state;
    lost_with_rest(true);
    lost_with_rest(false);
    lost_and_answered(true);
    lost_and_answered(false);
}

/* Any sizes, any room, any order: every request comes back once, with all its bytes. */
static void test_random(void **state) {
    struct rng rng;
    bool lent[DEPTH] = {false};
    unsigned back = 0;
    (void)state;
    struct context *c = begin(true);
    rng_seed(&rng, 5);
    engine.room = 0;
    while (back < 3000) {
        unsigned n = 0;
        for (unsigned i = 0; i < DEPTH; i++)
            if (!lent[i])
                list[n++] = prepare(i, rng_below(&rng, 2) ? IO_READ : IO_WRITE, rng_below(&rng, 1 << 30),
                                    1 + (uint32_t)rng_below(&rng, MOST));
        engine.room = (unsigned)rng_below(&rng, 9);
        int taken = of(c)->submit(c, list, n);
        assert_true(taken >= 0 && taken <= (int)n);
        for (int i = 0; i < taken; i++) lent[list[i]->slot] = true;
        for (unsigned i = 0; i < 3 && engine.n; i++) answer_whole((unsigned)rng_below(&rng, engine.n));
        unsigned max = 1 + (unsigned)rng_below(&rng, DEPTH);
        int got = of(c)->reap(c, done, max, 0, 0);
        assert_true(got >= 0 && got <= (int)max);
        for (int i = 0; i < got; i++, back++) {
            assert_true(lent[done[i].request->slot]);
            lent[done[i].request->slot] = false;
            assert_int_equal(done[i].result, done[i].request->len);
        }
    }
    end(c);
}

/* Whole pages, or what the server prefers; and an odd rtmax below a page stays as it is. */
static void test_sizes(void **state) {
    static const struct { uint32_t most, mult, size; } cases[] = {
        {1 << 20, 4096, 1 << 20}, {1000000, 4096, 999424},    {1000000, 0, 999424},  {1000000, 65536, 983040},
        {65536, 131072, 65536},   {1000000, 1000, 999424},    {1000000, 1, 999424},  {8191, 4096, 4096},
        {4096, 512, 4096},        {4095, 4096, 3584},         {1000, 0, 512},        {512, 0, 512},
        {511, 0, 511},            {1, 1, 1},                  {0, 0, 0},             {UINT32_MAX, 4096, UINT32_MAX - 4095},
        {1000000, 6144, 999424},  {1000000, 12288, 995328},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(nfsbe_piece_size(cases[i].most, cases[i].mult), cases[i].size);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces), cmocka_unit_test(test_reading), cmocka_unit_test(test_results),
        cmocka_unit_test(test_part),   cmocka_unit_test(test_lost),    cmocka_unit_test(test_random),
        cmocka_unit_test(test_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
