/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rng.h"
#include "fake_backend.h"
#include "target/blockio.h"

#define SIZE (3u << 20)

struct bench {
    struct fake fake;
    struct fake *conf;
    struct clock_virtual clock;
    struct handle *handle;
    struct facts facts;
    struct err err;
    unsigned char *data;
};

static int setup(void **state) {
    struct bench *b = calloc(1, sizeof(*b));
    struct rng rng;

    fake_init(&b->fake, SIZE);
    b->conf = &b->fake;
    clock_virtual_init(&b->clock, 1000);
    b->data = malloc(SIZE);
    rng_seed(&rng, 7);
    rng_fill(&rng, b->data, SIZE);
    assert_int_equal(pwrite(b->fake.fd, b->data, SIZE, 0), SIZE);
    struct open_how how = {.conf = &b->conf, .mode = OPEN_WRITE, .clock = &b->clock.clock};
    assert_int_equal(fake_open(&how, &b->handle, &b->facts, &b->err), 0);
    *state = b;
    return 0;
}

static int teardown(void **state) {
    struct bench *b = *state;

    fake_close(b->handle);
    facts_free(&b->facts);
    fake_free(&b->fake);
    free(b->data);
    free(b);
    return 0;
}

static struct blockio *start(struct bench *b, unsigned depth, uint32_t max_io) {
    struct blockio *io = NULL;

    assert_int_equal(
        blockio_open(&fake_backend, b->handle, &b->facts, &b->clock.clock, depth, max_io, true, &io, &b->err), 0);
    assert_non_null(io);
    return io;
}

static void reads_in_pieces_of_max_io(void **state) {
    struct bench *b = *state;
    struct blockio *io = start(b, 4, 65536);
    unsigned char *buf = malloc(SIZE);

    assert_int_equal(blockio_read(io, 512, buf, 1000 * 512, &b->err), 0);
    assert_memory_equal(buf, b->data + 512, 1000 * 512);
    assert_int_equal(b->fake.largest_len, 65536);
    assert_int_equal(b->fake.reads, 8); /* 512000 bytes */
    assert_int_equal(b->fake.deepest, 4);
    blockio_close(io);
    free(buf);
}

static void limits_come_from_the_facts(void **state) {
    struct bench *b = *state;

    b->facts.max_io = 10000; /* no multiple of the block: 9728 is */
    b->facts.max_depth = 2;
    struct blockio *io = start(b, 16, 1u << 20);
    unsigned char *buf = malloc(SIZE);
    assert_int_equal(blockio_read(io, 0, buf, SIZE, &b->err), 0);
    assert_memory_equal(buf, b->data, SIZE);
    assert_int_equal(b->fake.largest_len, 9728);
    assert_int_equal(b->fake.deepest, 2);
    blockio_close(io);
    free(buf);
}

static void writes_and_nothing_beside(void **state) {
    struct bench *b = *state;
    struct blockio *io = start(b, 8, 4096);
    unsigned char block[20480], *now = malloc(SIZE);

    memset(block, 0x5a, sizeof(block));
    assert_int_equal(blockio_write(io, 1024, block, sizeof(block), &b->err), 0);
    assert_int_equal(pread(b->fake.fd, now, SIZE, 0), SIZE);
    memcpy(b->data + 1024, block, sizeof(block));
    assert_memory_equal(now, b->data, SIZE);
    blockio_close(io);
    free(now);
}

static void unaligned_is_refused_before_the_backend_sees_it(void **state) {
    struct bench *b = *state;
    struct blockio *io = start(b, 1, 4096);
    unsigned char buf[1024];

    assert_int_equal(blockio_read(io, 100, buf, 512, &b->err), -1);
    assert_non_null(strstr(b->err.msg, "multiples of the block, 512 bytes"));
    assert_int_equal(blockio_read(io, 512, buf, 100, &b->err), -1);
    assert_int_equal(b->fake.requests, 0);
    blockio_close(io);
}

static void a_file_may_end_anywhere(void **state) {
    struct bench *b = *state;
    unsigned char buf[5000];

    b->facts.block = b->facts.mem_align = b->fake.facts.block = 1;
    assert_int_equal(ftruncate(b->fake.fd, 10001), 0);
    struct blockio *io = start(b, 2, 4096);
    assert_int_equal(blockio_read(io, 5001, buf, 5000, &b->err), 0);
    assert_memory_equal(buf, b->data + 5001, 5000);
    blockio_close(io);
}

static void a_backend_that_takes_little_gets_the_rest_again(void **state) {
    struct bench *b = *state;
    struct blockio *io = start(b, 8, 4096);
    unsigned char *buf = malloc(SIZE);

    b->fake.take_at_most = 3;
    b->fake.refuse_submits = 5;
    assert_int_equal(blockio_read(io, 0, buf, SIZE, &b->err), 0);
    assert_memory_equal(buf, b->data, SIZE);
    assert_int_equal(b->fake.reads, SIZE / 4096);
    blockio_close(io);
    free(buf);
}

static void short_transfers_are_continued(void **state) {
    struct bench *b = *state;
    struct blockio *io = start(b, 4, 8192);
    unsigned char *buf = malloc(SIZE);

    b->fake.short_by = 1024;
    assert_int_equal(blockio_read(io, 0, buf, SIZE, &b->err), 0);
    assert_memory_equal(buf, b->data, SIZE);
    memset(buf, 3, SIZE);
    assert_int_equal(blockio_write(io, 0, buf, SIZE, &b->err), 0);
    assert_int_equal(pread(b->fake.fd, b->data, SIZE, 0), SIZE);
    assert_memory_equal(b->data, buf, SIZE);
    blockio_close(io);
    free(buf);
}

static void a_read_beyond_the_end_is_a_short_read(void **state) {
    struct bench *b = *state;
    struct blockio *io = start(b, 4, 8192);
    unsigned char buf[8192];

    assert_int_equal(blockio_read(io, SIZE - 4096, buf, 8192, &b->err), -1);
    assert_int_equal(b->err.status, STATUS_IO);
    assert_non_null(strstr(b->err.msg, "short read: only 4096 bytes"));
    blockio_close(io);
}

static void an_error_names_place_kind_and_words(void **state) {
    struct bench *b = *state;
    struct blockio *io = start(b, 4, 4096);
    unsigned char *buf = malloc(SIZE);

    b->fake.error_at = 1u << 20;
    assert_int_equal(blockio_read(io, 0, buf, SIZE, &b->err), -1);
    assert_int_equal(b->err.status, STATUS_IO);
    assert_string_equal(b->err.msg, "reading 4096 bytes at offset 1048576: FAKE ERROR: in the server's own words");
    assert_true(b->fake.reads < (1u << 20) / 4096 + 8); /* it did not go on */
    /* The context goes on serving. */
    b->fake.error_at = UINT64_MAX;
    assert_int_equal(blockio_read(io, 0, buf, SIZE, &b->err), 0);
    blockio_close(io);
    free(buf);
}

static void a_lost_context_is_a_target_error_now_and_later(void **state) {
    struct bench *b = *state;
    struct blockio *io = start(b, 4, 4096);
    unsigned char *buf = malloc(SIZE);

    b->fake.lost_submit = -ECONNRESET;
    b->fake.lost_after = 10;
    assert_int_equal(blockio_read(io, 0, buf, SIZE, &b->err), -1);
    assert_int_equal(b->err.status, STATUS_TARGET);
    assert_non_null(strstr(b->err.msg, "the connection is lost"));
    unsigned requests = b->fake.requests;
    assert_int_equal(blockio_flush(io, NULL, &b->err), -1);
    assert_int_equal(b->err.status, STATUS_TARGET);
    assert_int_equal(b->fake.requests, requests);
    blockio_close(io);
    free(buf);
}

static void silence_ends_after_120_seconds(void **state) {
    struct bench *b = *state;
    struct blockio *io = start(b, 4, 4096);
    unsigned char buf[4096];
    int64_t before = b->clock.t;

    b->fake.silent = true;
    assert_int_equal(blockio_read(io, 0, buf, 4096, &b->err), -1);
    assert_int_equal(b->err.status, STATUS_TARGET);
    assert_non_null(strstr(b->err.msg, "nothing moved for 120 s"));
    assert_true(b->clock.t - before >= 120 * NS_PER_SEC && b->clock.t - before <= 122 * NS_PER_SEC);
    b->fake.silent = false; /* what is lent stays the backend's: nothing may be sent any more */
    assert_int_equal(blockio_read(io, 0, buf, 4096, &b->err), -1);
    blockio_close(io);
}

static void ping_and_flush_tell_their_latency(void **state) {
    struct bench *b = *state;
    struct blockio *io = start(b, 4, 65536);
    int64_t latency = 0;

    assert_int_equal(blockio_ping(io, 4096, 4096, &latency, &b->err), 0);
    assert_int_equal(latency, 1000);
    latency = 0;
    assert_int_equal(blockio_flush(io, &latency, &b->err), 0);
    assert_int_equal(latency, 1000);
    assert_int_equal(b->fake.flushes, 1);
    assert_int_equal(b->fake.deepest, 1);
    assert_int_equal(blockio_ping(io, 0, 131072, &latency, &b->err), -1); /* more than one I/O */
    blockio_close(io);
}

struct seen {
    uint64_t next, bytes;
    unsigned calls, stop_at;
    int value;
    bool ordered;
    const unsigned char *data;
};

static int make(void *arg, uint64_t offset, void *buf, size_t len) {
    struct seen *s = arg;

    if (offset != s->next) s->ordered = false;
    s->next = offset + len;
    if (s->stop_at && ++s->calls == s->stop_at) return s->value;
    memset(buf, (int)(offset >> 16 & 0xff), len);
    s->bytes += len;
    return 0;
}

static int look(void *arg, uint64_t offset, void *buf, size_t len) {
    struct seen *s = arg;

    s->bytes += len;
    return memcmp(buf, s->data + offset, len) == 0 ? 0 : 99;
}

static void a_stream_writes_in_order_what_fill_makes(void **state) {
    struct bench *b = *state;
    struct blockio *io = start(b, 8, 65536);
    struct seen s = {.next = 65536, .ordered = true};
    unsigned char *now = malloc(SIZE);

    assert_int_equal(blockio_stream(io, IO_WRITE, SYNC_DSYNC, 65536, 2u << 20, make, &s, &b->err), 0);
    assert_true(s.ordered);
    assert_int_equal(s.bytes, 2u << 20);
    assert_int_equal(b->fake.last_sync, SYNC_DSYNC);
    assert_int_equal(pread(b->fake.fd, now, SIZE, 0), SIZE);
    for (uint64_t at = 65536; at < 65536 + (2u << 20); at++) b->data[at] = (unsigned char)(at >> 16);
    assert_memory_equal(now, b->data, SIZE);
    blockio_close(io);
    free(now);
}

static void a_stream_shows_every_byte_it_reads(void **state) {
    struct bench *b = *state;
    struct blockio *io = start(b, 8, 65536);
    struct seen s = {.data = b->data};

    b->fake.short_by = 512; /* also pieces that came in two parts are seen whole */
    assert_int_equal(blockio_stream(io, IO_READ, SYNC_NONE, 0, SIZE, look, &s, &b->err), 0);
    assert_int_equal(s.bytes, SIZE);
    blockio_close(io);
}

static int between_stripes(void *arg, uint64_t offset, void *buf, size_t len) {
    struct seen *s = arg;

    assert_true(offset / (1u << 20) == (offset + len - 1) / (1u << 20));
    return make(s, offset, buf, len);
}

struct places {
    const struct bench *b;
    uint64_t seen, stop_after;
};

static int see_place(void *arg, uint64_t offset, void *buf, size_t len) {
    struct places *p = arg;

    assert_int_equal(len, 4096);
    assert_memory_equal(buf, p->b->data + offset, len);
    return ++p->seen == p->stop_after ? 77 : 0;
}

static void places_are_read_at_full_depth(void **state) {
    struct bench *b = *state;
    struct blockio *io = start(b, 8, 65536);
    uint64_t place[100], n = 100;
    struct places p = {.b = b};

    for (uint64_t i = 0; i < n; i++) place[i] = i * 37 % 500 * 512;
    b->fake.short_by = 512; /* what is missing is asked for again */
    assert_int_equal(blockio_read_places(io, place, n, 4096, see_place, &p, &b->err), 0);
    assert_int_equal(p.seen, n);
    assert_int_equal(b->fake.deepest, 8);
    b->fake.short_by = 0;
    p = (struct places){.b = b, .stop_after = 20};
    assert_int_equal(blockio_read_places(io, place, n, 4096, see_place, &p, &b->err), 77);
    assert_int_equal(p.seen, 20);
    assert_int_equal(blockio_read_places(io, place, 0, 4096, see_place, &p, &b->err), 0);
    place[99] = 100; /* no multiple of the block: nothing is read */
    b->fake.reads = 0;
    assert_int_equal(blockio_read_places(io, place, n, 4096, see_place, &p, &b->err), -1);
    assert_int_equal(b->fake.reads, 0);
    blockio_close(io);
}

static int see_parts(void *arg, uint64_t offset, void *buf, size_t len) {
    struct places *p = arg;

    assert_memory_equal(buf, p->b->data + offset, len);
    p->seen++;
    return 0;
}

/* A block that is larger than what the target moves at once. */
static void a_place_in_parts(void **state) {
    struct bench *b = *state;
    struct places p = {.b = b};
    const uint64_t place[] = {8192, 0, 65536};
    struct blockio *io = start(b, 8, 4096);

    assert_int_equal(blockio_read_places(io, place, 3, 16384, see_parts, &p, &b->err), 0);
    assert_int_equal(p.seen, 3);
    blockio_close(io);
}

static int want_the_end(void *arg, uint64_t offset, void *buf, size_t len) {
    (void)offset;
    (void)buf;
    (void)len;
    *(volatile sig_atomic_t *)arg = 1;
    return 0;
}

/* Ctrl-C before, and while reads are out; a target that is silent is not waited for. */
static void an_end_is_soon(void **state) {
    struct bench *b = *state;
    volatile sig_atomic_t stop = 1;
    unsigned char buf[4096];
    uint64_t place[64];
    struct blockio *io = start(b, 8, 4096);

    for (uint64_t i = 0; i < 64; i++) place[i] = i * 4096;
    backend_heed(&stop);
    b->fake.reads = 0;
    assert_int_equal(blockio_read(io, 0, buf, sizeof(buf), &b->err), 1);
    assert_int_equal(b->err.status, STATUS_INTERRUPTED);
    assert_int_equal(b->fake.reads, 0);
    stop = 0;
    assert_int_equal(blockio_read_places(io, place, 64, 4096, want_the_end, (void *)(uintptr_t)&stop, &b->err), 1);
    assert_in_range(b->fake.reads, 1, 63);
    backend_heed(NULL);
    blockio_close(io);
}

static void pieces_end_at_stripes(void **state) {
    struct bench *b = *state;
    struct seen s = {.next = 4096, .ordered = true};

    kv_uint(&b->facts.negotiated, "stripe_bytes", 1u << 20);
    struct blockio *io = start(b, 8, 768 << 10);
    assert_int_equal(blockio_stream(io, IO_WRITE, SYNC_NONE, 4096, SIZE - 4096, between_stripes, &s, &b->err), 0);
    assert_true(s.ordered);
    assert_int_equal(s.bytes, SIZE - 4096);
    blockio_close(io);
}

static void fill_stops_the_stream_with_its_value(void **state) {
    struct bench *b = *state;
    struct blockio *io = start(b, 8, 65536);
    struct seen s = {.ordered = true, .stop_at = 5, .value = 130};

    assert_int_equal(blockio_stream(io, IO_WRITE, SYNC_NONE, 0, SIZE, make, &s, &b->err), 130);
    assert_int_equal(s.calls, 5);
    assert_true(b->fake.writes <= 4); /* and what was lent came back: */
    assert_int_equal(blockio_flush(io, NULL, &b->err), 0);
    blockio_close(io);
}

static void a_failed_attach_leaves_nothing(void **state) {
    struct bench *b = *state;
    struct blockio *io = (struct blockio *)1;

    b->fake.fail_attach = true;
    assert_int_equal(blockio_open(&fake_backend, b->handle, &b->facts, &b->clock.clock, 4, 4096, false, &io, &b->err),
                     -1);
    assert_null(io);
    assert_string_equal(b->err.msg, "attach failed as told");
    blockio_close(NULL);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {T(reads_in_pieces_of_max_io),
                                       T(limits_come_from_the_facts),
                                       T(writes_and_nothing_beside),
                                       T(unaligned_is_refused_before_the_backend_sees_it),
                                       T(a_file_may_end_anywhere),
                                       T(a_backend_that_takes_little_gets_the_rest_again),
                                       T(short_transfers_are_continued),
                                       T(a_read_beyond_the_end_is_a_short_read),
                                       T(an_error_names_place_kind_and_words),
                                       T(a_lost_context_is_a_target_error_now_and_later),
                                       T(silence_ends_after_120_seconds),
                                       T(ping_and_flush_tell_their_latency),
                                       T(a_stream_writes_in_order_what_fill_makes),
                                       T(a_stream_shows_every_byte_it_reads),
                                       T(places_are_read_at_full_depth),
                                       T(a_place_in_parts),
                                       T(an_end_is_soon),
                                       T(pieces_end_at_stripes),
                                       T(fill_stops_the_stream_with_its_value),
                                       T(a_failed_attach_leaves_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
