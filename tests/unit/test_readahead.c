/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The readahead over a disk of memory with a latency, in virtual time. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backends/readahead.h"
#include "base/rng.h"
#include "tests/unit/rounds.h"

#define KIB 1024u
#define MIB (1u << 20)
#define LATENCY NS_PER_MS
#define DEPTH 8
#define STRIDE (256 * KIB)

/* ---- the disk ---- */

struct handle {                 /* what is at an offset follows from the offset, until it is written */
    uint64_t error_from, error_to;
    unsigned room;              /* taken at most by one submit */
    unsigned lost_after;        /* completions; 0: never */
    unsigned requests, submits, largest_depth, attached_depth;
    uint64_t highest_end, largest_len;
    unsigned char *written;     /* one byte for each KiB; what is there instead, 0: as it was */
};

struct context {
    struct handle *h;
    struct attach_how how;
    struct completion due[512];
    unsigned n, completed;
    int lost;
};

static int disk_attach(struct handle *h, const struct attach_how *how, struct context **out, struct err *err) {
    (void)err;
    struct context *c = calloc(1, sizeof *c);
    c->h = h;
    c->how = *how;
    h->attached_depth = how->depth;
    assert_int_equal((uintptr_t)how->more % 4096, 0);
    *out = c;
    return 0;
}

static void disk_detach(struct context *c) {
    free(c);
}

static unsigned char byte_at(const struct handle *h, uint64_t offset) {
    unsigned char w = h->written ? h->written[offset / KIB] : 0;
    return w ? w : (unsigned char)(rng_mix(offset / 64) + offset);
}

static void check_buffer(const struct context *c, const struct request *r) {
    bool more = r->slot >= c->how.first_more;
    const unsigned char *base = more ? (unsigned char *)c->how.more + (r->slot - c->how.first_more) * c->how.more_stride
                                     : (unsigned char *)c->how.buffers + r->slot * c->how.stride;
    size_t stride = more ? c->how.more_stride : c->how.stride;
    assert_true(r->slot < c->how.depth && (unsigned char *)r->buf >= base &&
                (unsigned char *)r->buf + r->len <= base + stride && r->len <= c->how.max_io);
}

static int disk_submit(struct context *c, struct request *const *requests, unsigned n) {
    struct handle *h = c->h;
    if (c->lost) return c->lost;
    h->submits++;
    if (n > h->room) n = h->room;
    for (unsigned i = 0; i < n; i++) {
        struct request *r = requests[i];
        if (r->op != IO_FLUSH) check_buffer(c, r);
        c->due[c->n++] = (struct completion){.request = r, .t_done = clock_now(c->how.clock) + LATENCY};
        h->requests++;
        if (r->op == IO_FLUSH) continue;
        if (r->offset + r->len > h->highest_end) h->highest_end = r->offset + r->len;
        if (r->len > h->largest_len) h->largest_len = r->len;
    }
    if (c->n > h->largest_depth) h->largest_depth = c->n;
    return (int)n;
}

static void perform(struct context *c, struct completion *done) {
    const struct handle *h = c->h;
    struct request *r = done->request;
    unsigned char *buf = r->buf;
    done->result = r->op == IO_FLUSH ? 0 : r->len;
    if (c->lost || (r->op == IO_READ && r->offset < h->error_to && r->offset + r->len > h->error_from)) {
        done->result = c->lost ? c->lost : -EIO;
        done->kind = (uint16_t)kinds_note(c->how.kinds, c->lost ? "GONE" : "EIO", "as told");
    } else if (r->op == IO_READ) {
        for (uint32_t i = 0; i < r->len; i++) buf[i] = byte_at(h, r->offset + i);
    } else if (r->op == IO_WRITE) {
        for (uint32_t i = 0; i < r->len; i += KIB) h->written[(r->offset + i) / KIB] = buf[i];
    }
}

static int disk_reap(struct context *c, struct completion *out, unsigned max, unsigned min, int64_t timeout_ns) {
    int64_t now = clock_now(c->how.clock), end = now + timeout_ns;
    unsigned got = 0;
    for (;;) {
        while (got < max && c->n && (c->lost || c->due[0].t_done <= now)) {
            out[got] = c->due[0];
            out[got].t_done = now;
            memmove(c->due, c->due + 1, --c->n * sizeof *c->due);
            perform(c, &out[got++]);
            if (++c->completed == c->h->lost_after) c->lost = -ENOTCONN;
        }
        if (c->lost && !got && !c->n) return c->lost;
        if (got >= min || now >= end) return (int)got;
        clock_wait_until(c->how.clock, c->n && c->due[0].t_done < end ? c->due[0].t_done : end);
        now = clock_now(c->how.clock);
    }
}

static void disk_counters(struct context *c, struct kv *out) {
    kv_uint(out, "wire_ios", c->completed);
}

static const struct track disk_track_list[] = {{"disk_completed", TRACK_SUM, true}, {NULL, TRACK_SUM, false}};

static const struct track *disk_tracks(const struct handle *h) {
    (void)h;
    return disk_track_list;
}

static void disk_sample(struct context *c, double *values) {
    values[0] = c->completed;
}

static const struct backend disk = {
    .name = "disk", .attach = disk_attach, .detach = disk_detach, .submit = disk_submit, .reap = disk_reap,
    .counters = disk_counters, .tracks = disk_tracks, .sample = disk_sample,
};

/* ---- the filter ---- */

struct fixture {
    struct handle disk, *handle;
    struct facts facts;
    struct context *context;
    struct clock_virtual clock;
    struct kinds kinds;
    unsigned char *buffers;
    struct request request[DEPTH];
    struct completion done[DEPTH];
    unsigned depth;
};

static void start(struct fixture *x, uint64_t size, uint64_t window, unsigned depth) {
    struct err err;
    memset(x, 0, sizeof *x);
    x->disk.room = 512;
    x->disk.written = calloc(size / KIB + 1, 1);
    x->facts = (struct facts){.size = size, .block = 512, .mem_align = 512, .max_io = 4 * MIB};
    x->depth = depth;
    clock_virtual_init(&x->clock, 0);
    x->buffers = aligned_alloc(4096, DEPTH * STRIDE);
    struct readahead_how how = {.backend = &disk, .handle = &x->disk, .facts = &x->facts, .window = window, .to = size,
                                .shared_writes = true};
    assert_int_equal(readahead_open(&how, &x->handle, &err), 0);
}

static struct context *attach(struct fixture *x) {
    struct context *c;
    struct err err;
    struct attach_how how = {.depth = x->depth, .max_io = STRIDE, .buffers = x->buffers, .stride = STRIDE,
                             .clock = &x->clock.clock, .kinds = &x->kinds, .write = true};
    assert_int_equal(backend_readahead.attach(x->handle, &how, &c, &err), 0);
    return c;
}

static void set_up(struct fixture *x, uint64_t size, uint64_t window, unsigned depth) {
    start(x, size, window, depth);
    x->context = attach(x);
}

static void tear_down(struct fixture *x) {
    if (x->context) backend_readahead.detach(x->context);
    backend_readahead.close(x->handle);
    free(x->disk.written);
    free(x->buffers);
}

static struct request *prepare(struct fixture *x, unsigned slot, enum io_op op, uint64_t offset, uint32_t len) {
    x->request[slot] = (struct request){.buf = x->buffers + slot * STRIDE, .offset = offset, .len = len, .slot = slot,
                                        .op = (uint8_t)op};
    return &x->request[slot];
}

/* One I/O to its end; what it came to. */
static int64_t one_of(struct fixture *x, struct context *c, enum io_op op, uint64_t offset, uint32_t len) {
    struct request *r = prepare(x, 0, op, offset, len);
    if (op == IO_WRITE) memset(r->buf, 1 + (int)(offset / KIB % 200), len);
    int took = 0, n = 0;
    while (!took) took = backend_readahead.submit(c, &r, 1);
    assert_int_equal(took, 1);
    while (!n) n = backend_readahead.reap(c, x->done, 1, 1, 10 * NS_PER_SEC);
    assert_int_equal(n, 1);
    assert_ptr_equal(x->done[0].request, r);
    assert_int_equal(x->done[0].t_done, x->clock.t);
    return x->done[0].result;
}

static int64_t one(struct fixture *x, enum io_op op, uint64_t offset, uint32_t len) {
    return one_of(x, x->context, op, offset, len);
}

static void check_data(const struct fixture *x, const struct request *r) {
    const unsigned char *buf = r->buf;
    for (uint32_t i = 0; i < r->len; i++)
        if (buf[i] != byte_at(&x->disk, r->offset + i)) fail_msg("byte %llu is wrong", (unsigned long long)r->offset + i);
}

static void read_right(struct fixture *x, uint64_t offset, uint32_t len) {
    assert_int_equal(one(x, IO_READ, offset, len), len);
    check_data(x, &x->request[0]);
}

static uint64_t counter(struct fixture *x, const char *name) {
    struct kv kv = {0};
    backend_readahead.counters(x->context, &kv);
    uint64_t value = kv_get_uint(&kv, name, UINT64_MAX);
    kv_free(&kv);
    return value;
}

/* ---- sequences ---- */

/* Two reads go through. What was sent with the first window is there with the second read; after that, each latency
 * brings the window under way, and the one that was sent as the application began to wait for it. */
static void test_gain_at_depth_one(void **state) {
    (void)state;
    struct fixture x;
    const uint32_t bs = 32 * KIB;
    const uint64_t window = 2 * MIB, size = 64 * MIB;
    set_up(&x, size, window, 1);
    for (uint64_t at = 0; at < size; at += bs) read_right(&x, at, bs);
    uint64_t reached = 2 * bs + 3 * bs, next = 8 * bs, waits = 2; /* 4 x bs less the request; then its double */
    while (reached < size) {
        for (int i = 0; i < 2; i++) {
            reached = (reached + next) / (256 * KIB) * (256 * KIB); /* to the end of a whole request */
            next = 2 * next < window ? 2 * next : window;
        }
        waits++;
    }
    assert_int_equal(x.clock.t, (int64_t)waits * LATENCY);
    assert_true(size / bs / waits > 90); /* so many times as fast as without it */
    assert_int_equal(counter(&x, "readahead_misses"), 2);
    assert_int_equal(counter(&x, "readahead_hits"), size / bs - 2);
    assert_int_equal(counter(&x, "readahead_wasted_bytes"), 0);
    assert_int_equal(counter(&x, "readahead_bytes"), size - 2 * bs);
    assert_int_equal(counter(&x, "wire_ios"), x.disk.requests);
    assert_int_equal(x.disk.largest_len, 256 * KIB);
    assert_int_equal(x.disk.highest_end, size); /* and not beyond */
    tear_down(&x);
}

static void test_window_as_large_as_a_block(void **state) {
    (void)state;
    struct fixture x;
    set_up(&x, 16 * MIB, 256 * KIB, 1);
    for (uint64_t at = 0; at < 16 * MIB; at += 256 * KIB) read_right(&x, at, 256 * KIB);
    assert_int_equal(counter(&x, "readahead_misses"), 2);
    assert_int_equal(counter(&x, "readahead_wasted_bytes"), 0);
    tear_down(&x);
}

/* Odd sizes: windows are no multiple of anything, reads reach over several requests. */
static void test_odd_sizes(void **state) {
    (void)state;
    struct fixture x;
    set_up(&x, 8 * MIB + 1536, 700 * KIB + 512, 1);
    uint64_t at = 1024;
    for (uint32_t len = 100 * KIB + 512; at + len <= 8 * MIB + 1536; at += len) read_right(&x, at, len);
    read_right(&x, at, (uint32_t)(8 * MIB + 1536 - at));
    assert_true(counter(&x, "readahead_hits") > 60);
    assert_int_equal(x.disk.highest_end, 8 * MIB + 1536);
    tear_down(&x);
}

static void test_random_is_left_alone(void **state) {
    (void)state;
    struct fixture x;
    struct rng rng;
    set_up(&x, 64 * MIB, 2 * MIB, 1);
    rng_seed(&rng, 1);
    for (int i = 0; i < 3000; i++) {
        uint64_t at = 2 * rng_below(&rng, 64 * MIB / 8192) * 4096; /* no two of them touch */
        assert_int_equal(one(&x, i % 4 ? IO_READ : IO_WRITE, at, 4096), 4096);
    }
    assert_int_equal(x.disk.requests, 3000);
    assert_int_equal(counter(&x, "readahead_ios"), 0);
    assert_int_equal(counter(&x, "readahead_wasted_bytes"), 0);
    assert_int_equal(counter(&x, "readahead_misses"), 2250);
    tear_down(&x);
}

/* Several at once, and one too many of them. */
static void test_streams(void **state) {
    (void)state;
    for (unsigned n = 2; n <= READAHEAD_STREAMS + 1; n++) {
        struct fixture x;
        set_up(&x, 64 * MIB, 1 * MIB, 1);
        for (uint64_t i = 0; i < 64; i++)
            for (unsigned k = 0; k < n; k++) read_right(&x, k * 8ull * MIB + i * 16 * KIB, 16 * KIB);
        if (n <= READAHEAD_STREAMS) assert_int_equal(counter(&x, "readahead_misses"), 2 * n);
        else assert_true(counter(&x, "readahead_wasted_bytes") > 0);
        tear_down(&x);
    }
}

/* A stream that ends: at most two windows were read in vain, and that is said once their buffers are needed. */
static void test_waste_is_counted(void **state) {
    (void)state;
    struct fixture x;
    set_up(&x, 256 * MIB, 1 * MIB, 1);
    for (unsigned k = 0; k < 12; k++)
        for (uint64_t i = 0; i < 32; i++) read_right(&x, k * 20ull * MIB + i * 64 * KIB, 64 * KIB);
    uint64_t sent = counter(&x, "readahead_bytes"), used = counter(&x, "readahead_hits") * 64 * KIB;
    uint64_t wasted = counter(&x, "readahead_wasted_bytes");
    assert_true(wasted > 8 * MIB && wasted <= 2 * 12 * MIB);
    assert_true(sent - used - wasted <= 2 * READAHEAD_STREAMS * MIB); /* the rest is still in memory */
    tear_down(&x);
}

static void test_deep_queue(void **state) {
    (void)state;
    struct fixture x;
    struct request *list[DEPTH];
    uint64_t at = 0;
    unsigned out = 0, back = 0;
    const unsigned total = 2048;
    set_up(&x, 64 * MIB, 1 * MIB, DEPTH);
    unsigned free_slot[DEPTH], n_free = DEPTH;
    for (unsigned i = 0; i < DEPTH; i++) free_slot[i] = i;
    while (back < total) {
        unsigned n = 0;
        for (; n_free && out + n < total; at += 32 * KIB) list[n++] = prepare(&x, free_slot[--n_free], IO_READ, at, 32 * KIB);
        assert_int_equal(backend_readahead.submit(x.context, list, n), n);
        out += n;
        int got = backend_readahead.reap(x.context, x.done, DEPTH, 1, NS_PER_SEC);
        assert_true(got > 0);
        for (int i = 0; i < got; i++, back++) {
            assert_int_equal(x.done[i].result, 32 * KIB);
            check_data(&x, x.done[i].request);
            free_slot[n_free++] = x.done[i].request->slot;
        }
    }
    assert_int_equal(counter(&x, "readahead_misses"), 2);
    assert_true(counter(&x, "readahead_hits_in_flight") > 0);
    tear_down(&x);
}

/* ---- writes ---- */

static void test_writes_are_seen(void **state) {
    (void)state;
    struct fixture x;
    set_up(&x, 16 * MIB, 512 * KIB, 1);
    for (uint64_t at = 0; at < 2 * MIB; at += 16 * KIB) read_right(&x, at, 16 * KIB);
    /* Into what was read ahead, at the beginning of a read and in its middle: the read goes through, once. */
    assert_int_equal(one(&x, IO_WRITE, 2 * MIB + 32 * KIB, 4096), 4096);
    assert_int_equal(one(&x, IO_WRITE, 2 * MIB + 100 * KIB, 4096), 4096);
    uint64_t before = counter(&x, "readahead_misses");
    for (uint64_t at = 2 * MIB; at < 4 * MIB; at += 16 * KIB) read_right(&x, at, 16 * KIB);
    assert_true(counter(&x, "readahead_partial") > 0);
    assert_true(counter(&x, "readahead_misses") - before <= 8);
    tear_down(&x);
}

/* One position for reads and writes: the writes move the stream on. */
static void test_mixed_position(void **state) {
    (void)state;
    struct fixture x;
    struct rng rng;
    unsigned reads = 0;
    set_up(&x, 64 * MIB, 1 * MIB, 1);
    rng_seed(&rng, 3);
    for (uint64_t at = 0; at < 64 * MIB; at += 16 * KIB) {
        bool write = rng_below(&rng, 4) == 0;
        reads += !write;
        if (write) assert_int_equal(one(&x, IO_WRITE, at, 16 * KIB), 16 * KIB);
        else read_right(&x, at, 16 * KIB);
    }
    assert_true(counter(&x, "readahead_hits") > reads * 9 / 10);
    tear_down(&x);
}

static void test_writes_of_another_context(void **state) {
    (void)state;
    struct fixture x;
    set_up(&x, 16 * MIB, 512 * KIB, 1);
    struct context *other = attach(&x);
    for (uint64_t at = 0; at < 1 * MIB; at += 16 * KIB) read_right(&x, at, 16 * KIB);
    assert_int_equal(one_of(&x, other, IO_WRITE, 1 * MIB + 16 * KIB, 4096), 4096);
    for (uint64_t at = 1 * MIB; at < 3 * MIB; at += 16 * KIB) read_right(&x, at, 16 * KIB);
    backend_readahead.detach(other);
    tear_down(&x);
}

/* Issued while the write was out, and so perhaps older than it: forgotten when the write is done. */
static void test_write_in_flight(void **state) {
    (void)state;
    struct fixture x;
    struct request *r;
    set_up(&x, 16 * MIB, 512 * KIB, 2);
    r = prepare(&x, 1, IO_WRITE, 128 * KIB, 4096);
    memset(r->buf, 77, 4096);
    for (uint64_t at = 0; at < 2; at++) {
        if (at == 1) assert_int_equal(backend_readahead.submit(x.context, &r, 1), 1);
        struct request *q = prepare(&x, 0, IO_READ, at * 32 * KIB, 32 * KIB);
        assert_int_equal(backend_readahead.submit(x.context, &q, 1), 1);
        int n = backend_readahead.reap(x.context, x.done, 2, 1, NS_PER_SEC);
        assert_true(n >= 1);
    }
    while (backend_readahead.reap(x.context, x.done, 2, 0, 0) > 0) {}
    for (uint64_t at = 2; at < 40; at++) read_right(&x, at * 32 * KIB, 32 * KIB);
    assert_int_equal(x.disk.written[128], 77);
    tear_down(&x);
}

static void test_boundary(void **state) {
    (void)state;
    struct fixture x;
    struct err err;
    start(&x, 16 * MIB, 1 * MIB, 1);
    backend_readahead.close(x.handle);
    struct readahead_how how = {.backend = &disk, .handle = &x.disk, .facts = &x.facts, .window = 1 * MIB,
                                .to = 16 * MIB, .boundary = MIB};
    assert_int_equal(readahead_open(&how, &x.handle, &err), 0);
    x.context = attach(&x);
    const uint32_t len = 96 * KIB; /* every eleventh or so crosses */
    unsigned crossing = 0;
    for (uint64_t at = 0; at + len <= 16 * MIB; at += len) {
        crossing += at / MIB != (at + len - 1) / MIB;
        read_right(&x, at, len);
    }
    assert_true(crossing > 8);
    assert_true(counter(&x, "readahead_misses") >= crossing + 2);
    assert_true(counter(&x, "readahead_hits") > crossing);
    tear_down(&x);
}

/* ---- faults ---- */

static void test_errors_of_what_nobody_wants(void **state) {
    (void)state;
    struct fixture x;
    set_up(&x, 16 * MIB, 1 * MIB, 1);
    x.disk.error_from = 600 * KIB;
    x.disk.error_to = 601 * KIB;
    for (uint64_t at = 0; at < 512 * KIB; at += 32 * KIB) read_right(&x, at, 32 * KIB);
    while (backend_readahead.reap(x.context, x.done, 1, 1, 10 * LATENCY) > 0) {}
    /* Each stream that begins again behind the failure may meet it again, until the application is past it. */
    assert_in_range(counter(&x, "readahead_errors"), 1, 4);
    tear_down(&x);
}

/* A read that needs such data is sent by itself: it meets the error only if it is still there. */
static void test_errors_of_what_is_wanted(void **state) {
    (void)state;
    struct fixture x;
    set_up(&x, 16 * MIB, 1 * MIB, 1);
    x.disk.error_from = 600 * KIB;
    x.disk.error_to = 601 * KIB;
    unsigned failed = 0;
    for (uint64_t at = 0; at < 4 * MIB; at += 32 * KIB) {
        int64_t result = one(&x, IO_READ, at, 32 * KIB);
        if (result == 32 * KIB) {
            check_data(&x, &x.request[0]);
            continue;
        }
        failed++;
        assert_int_equal(result, -EIO);
        assert_string_equal(x.kinds.kind[x.done[0].kind].name, "EIO");
        assert_true(at <= 600 * KIB && at + 32 * KIB > 600 * KIB);
    }
    assert_int_equal(failed, 1);
    assert_in_range(counter(&x, "readahead_errors"), 1, 4);
    assert_true(counter(&x, "readahead_hits") > 100); /* and it reads ahead again */
    tear_down(&x);
}

static void test_loss(void **state) {
    (void)state;
    for (unsigned after = 1; after < 40; after += rounds(1, 7)) {
        struct fixture x;
        struct request *list[4];
        uint64_t at = 0;
        unsigned lent = 0, failed = 0;
        int rc = 0;
        set_up(&x, 64 * MIB, 1 * MIB, 4);
        x.disk.lost_after = after;
        while (rc >= 0) {
            unsigned n = 0;
            for (; !lent && n < 4; n++, at += 32 * KIB) list[n] = prepare(&x, n, IO_READ, at, 32 * KIB);
            if (n) rc = backend_readahead.submit(x.context, list, n);
            if (rc < 0) break;
            if (n) lent += (unsigned)rc;
            rc = backend_readahead.reap(x.context, x.done, 4, 1, NS_PER_SEC);
            for (int i = 0; i < rc; i++, lent--) {
                if (x.done[i].result == 32 * KIB) check_data(&x, x.done[i].request);
                else failed++, assert_string_equal(x.kinds.kind[x.done[i].kind].name, "GONE");
            }
        }
        while (lent) {
            rc = backend_readahead.reap(x.context, x.done, 4, 1, NS_PER_SEC);
            assert_true(rc > 0);
            lent -= (unsigned)rc;
        }
        assert_int_equal(backend_readahead.reap(x.context, x.done, 4, 1, 0), -ENOTCONN);
        assert_true(failed <= 4);
        tear_down(&x);
    }
}

static void test_little_room(void **state) {
    (void)state;
    struct fixture x;
    set_up(&x, 16 * MIB, 1 * MIB, 1);
    x.disk.room = 1;
    for (uint64_t at = 0; at < 16 * MIB; at += 64 * KIB) {
        if (at == 4 * MIB) x.disk.room = 0;
        struct request *r = prepare(&x, 0, IO_READ, at, 64 * KIB);
        int took = backend_readahead.submit(x.context, &r, 1);
        x.disk.room = 1;
        if (!took) took = backend_readahead.submit(x.context, &r, 1);
        assert_int_equal(took, 1);
        int n = 0;
        while (!n) n = backend_readahead.reap(x.context, x.done, 1, 1, NS_PER_SEC);
        assert_int_equal(n, 1);
        assert_int_equal(x.done[0].result, 64 * KIB);
        check_data(&x, r);
    }
    assert_int_equal(counter(&x, "readahead_misses"), 2);
    tear_down(&x);
}

/* ---- attach, detach ---- */

static void test_depth_below(void **state) {
    (void)state;
    struct fixture x;
    struct err err;
    start(&x, 16 * MIB, 2 * MIB, 4);
    backend_readahead.close(x.handle);
    assert_int_equal(readahead_requests(&x.facts, 2 * MIB, 4), 4 * 18);
    x.facts.max_depth = 50;
    assert_int_equal(readahead_requests(&x.facts, 2 * MIB, 4), 2 * 18);
    struct readahead_how how = {.backend = &disk, .handle = &x.disk, .facts = &x.facts, .window = 2 * MIB, .to = MIB};
    assert_int_equal(readahead_open(&how, &x.handle, &err), 0);
    x.context = attach(&x);
    assert_int_equal(x.disk.attached_depth, 40);
    backend_readahead.detach(x.context);
    backend_readahead.close(x.handle);
    x.context = NULL;
    x.facts.max_depth = 21;
    assert_int_equal(readahead_requests(&x.facts, 2 * MIB, 4), 0);
    assert_int_equal(readahead_open(&how, &x.handle, &err), 0);
    struct attach_how attach_how = {.depth = 4, .max_io = 4096, .clock = &x.clock.clock, .kinds = &x.kinds};
    assert_int_equal(backend_readahead.attach(x.handle, &attach_how, &x.context, &err), -1);
    assert_non_null(strstr(err.msg, "leaves too few"));
    x.context = NULL;
    tear_down(&x);
}

static void test_small_requests_only(void **state) {
    (void)state;
    struct fixture x;
    struct err err;
    start(&x, 16 * MIB, 2 * MIB, 1);
    backend_readahead.close(x.handle);
    x.facts.max_io = 100 * KIB; /* and so 64 KiB */
    struct readahead_how how = {.backend = &disk, .handle = &x.disk, .facts = &x.facts, .window = 2 * MIB, .to = 16 * MIB};
    assert_int_equal(readahead_open(&how, &x.handle, &err), 0);
    x.context = attach(&x);
    for (uint64_t at = 0; at < 16 * MIB; at += 32 * KIB) read_right(&x, at, 32 * KIB);
    assert_int_equal(x.disk.largest_len, 64 * KIB);
    assert_int_equal(counter(&x, "readahead_misses"), 2);
    how.window = 100;
    struct handle *none;
    assert_int_equal(readahead_open(&how, &none, &err), -1);
    tear_down(&x);
}

static void test_detach_with_readahead_out(void **state) {
    (void)state;
    struct fixture x;
    set_up(&x, 16 * MIB, 1 * MIB, 2);
    read_right(&x, 0, 64 * KIB);
    read_right(&x, 64 * KIB, 64 * KIB);
    struct request *r = prepare(&x, 0, IO_READ, 128 * KIB, 64 * KIB);
    assert_int_equal(backend_readahead.submit(x.context, &r, 1), 1);
    tear_down(&x);
}

/* ---- tracks ---- */

static void test_wire_side(void **state) {
    (void)state;
    struct fixture x;
    double v[BACKEND_TRACKS];
    set_up(&x, 16 * MIB, 1 * MIB, 1);
    const struct track *t = backend_readahead.tracks(x.handle);
    const char *const names[] = {"wire_ios", "wire_depth_area_ns", "wire_lat_sum_ns", "wire_lat_max_ns",
                                 "readahead_hits", "readahead_misses", "readahead_wasted_bytes", "disk_completed"};
    for (unsigned i = 0; i < 8; i++) assert_string_equal(t[i].name, names[i]);
    assert_null(t[8].name);
    for (uint64_t at = 0; at < 16 * MIB; at += 32 * KIB) read_right(&x, at, 32 * KIB);
    assert_int_equal(one(&x, IO_FLUSH, 0, 0), 0);
    backend_readahead.sample(x.context, v);
    assert_int_equal((uint64_t)v[0], x.disk.requests);
    assert_int_equal((uint64_t)v[0], (uint64_t)v[7]);
    /* All is back: each request was out for one latency, and the time integral of their number says the same. */
    assert_int_equal((uint64_t)v[2], x.disk.requests * (uint64_t)LATENCY);
    assert_int_equal((uint64_t)v[1], (uint64_t)v[2]);
    assert_int_equal((uint64_t)v[3], LATENCY);
    assert_int_equal((uint64_t)v[4], 16 * MIB / (32 * KIB) - 2);
    tear_down(&x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gain_at_depth_one),
        cmocka_unit_test(test_window_as_large_as_a_block),
        cmocka_unit_test(test_odd_sizes),
        cmocka_unit_test(test_random_is_left_alone),
        cmocka_unit_test(test_streams),
        cmocka_unit_test(test_waste_is_counted),
        cmocka_unit_test(test_deep_queue),
        cmocka_unit_test(test_writes_are_seen),
        cmocka_unit_test(test_mixed_position),
        cmocka_unit_test(test_writes_of_another_context),
        cmocka_unit_test(test_write_in_flight),
        cmocka_unit_test(test_boundary),
        cmocka_unit_test(test_errors_of_what_nobody_wants),
        cmocka_unit_test(test_errors_of_what_is_wanted),
        cmocka_unit_test(test_loss),
        cmocka_unit_test(test_little_room),
        cmocka_unit_test(test_depth_below),
        cmocka_unit_test(test_small_requests_only),
        cmocka_unit_test(test_detach_with_readahead_out),
        cmocka_unit_test(test_wire_side),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
