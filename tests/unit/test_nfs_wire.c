/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "backends/nfs/nfs_wire.h"
#include "tests/unit/nfs_replies.h"

#define CALLS 16u
#define MASK (CALLS - 1)
#define MAX_IO 65536u
#define SEED 0x12345670u
#define WHERE 3u

static const struct shape plain = {.attributes = 1};
static const char verf_a[8] = "verifier";

/* ---- calls ---- */

static const struct nfswire_who who = {
    .machine = "samedisk", .uid = 0x01020304, .gid = 0x05060708, .fh = "\xf0\xf1\xf2\xf3\xf4", .fh_len = 5};

/* Everything in front of the arguments, by hand. */
static void expect_call(struct bytes *b, uint32_t len, uint32_t xid, uint32_t procedure) {
    add_word(b, 0x80000000u | len);
    add_word(b, xid);
    add_word(b, 0);         /* CALL */
    add_word(b, 2);         /* RPC version */
    add_word(b, 100003);
    add_word(b, 3);
    add_word(b, procedure);
    add_word(b, 1);         /* AUTH_SYS */
    add_word(b, 28);
    add_word(b, 0);         /* stamp */
    add_word(b, 8);
    add_bytes(b, "samedisk", 8);
    add_word(b, 0x01020304);
    add_word(b, 0x05060708);
    add_word(b, 0);         /* groups */
    add_word(b, 0);         /* AUTH_NONE */
    add_word(b, 0);
    add_word(b, 5);
    add_bytes(b, "\xf0\xf1\xf2\xf3\xf4\0\0\0", 8);
}

static void check_call(enum nfswire_op op, const struct bytes *want, uint64_t offset, uint32_t len, uint32_t stable) {
    struct nfswire_template t[NFSWIRE_OPS];
    unsigned char got[NFSWIRE_CALL_MAX + sizeof(uint64_t)];
    uint64_t beyond;
    nfswire_templates(t, &who);
    assert_int_equal(t[op].len, want->n);
    memset(got, 0x55, sizeof got);
    nfswire_put(&t[op], got, op, 0xcafe0001, offset, len, stable);
    assert_memory_equal(got, want->at, want->n);
    memcpy(&beyond, got + NFSWIRE_CALL_MAX, sizeof beyond);
    assert_int_equal(beyond, 0x5555555555555555); /* what is behind the header, but not behind the room for it, is free */
}

/* 16 groups, the longest name and handle: the header still fits. */
static void test_groups(void **state) {
    struct nfswire_template t[NFSWIRE_OPS];
    uint32_t groups[16];
    char fh[64] = "f", machine[65];
    (void)state;
    memset(machine, 'm', 64);
    machine[64] = '\0';
    for (uint32_t i = 0; i < 16; i++) groups[i] = 0xa0000000u + i;
    const struct nfswire_who many = {.machine = machine, .groups = groups, .n_groups = 16, .fh = fh, .fh_len = 64};
    nfswire_templates(t, &many);
    for (int op = 0; op < NFSWIRE_OPS; op++) assert_true(t[op].len <= NFSWIRE_CALL_MAX);
    const unsigned char *p = t[NFSWIRE_WRITE].bytes + 28;
    assert_memory_equal(p, "\0\0\0\1\0\0\0\x94", 8); /* AUTH_SYS; 4 + 4 + 64 + 3 * 4 + 16 * 4 bytes */
    p += 8 + 4 + 4 + 64 + 8;
    assert_memory_equal(p, "\0\0\0\20\xa0\0\0\0\xa0\0\0\1", 12);
}

static void test_call_bytes(void **state) {
    struct bytes b = {0};
    (void)state;
    expect_call(&b, 80 + 12, 0xcafe0001, 6);
    add_word(&b, 0x00000012);
    add_word(&b, 0x34567000);
    add_word(&b, 4096);
    check_call(NFSWIRE_READ, &b, 0x1234567000, 4096, 0);
    b.n = 0;
    expect_call(&b, 80 + 20 + 4096, 0xcafe0001, 7);
    add_words(&b, 2, 0);
    set_word(&b, b.n - 4, 512);
    add_word(&b, 4096);
    add_word(&b, 2);        /* FILE_SYNC */
    add_word(&b, 4096);
    check_call(NFSWIRE_WRITE, &b, 512, 4096, NFSWIRE_FILE_SYNC);
    b.n = 0;
    expect_call(&b, 80 + 20 + 4, 0xcafe0001, 7); /* the padding counts */
    add_word(&b, 0);
    add_word(&b, 0);
    add_word(&b, 1);
    add_word(&b, 1);        /* DATA_SYNC */
    add_word(&b, 1);
    check_call(NFSWIRE_WRITE, &b, 0, 1, NFSWIRE_DATA_SYNC);
    b.n = 0;
    expect_call(&b, 80 + 12, 0xcafe0001, 21);
    for (int i = 0; i < 3; i++) add_word(&b, 0);
    check_call(NFSWIRE_COMMIT, &b, UINT64_MAX, UINT32_MAX, 0);
    b.n = 0;
    expect_call(&b, 80, 0xcafe0001, 1);
    check_call(NFSWIRE_GETATTR, &b, 0, 0, 0);
    free_bytes(&b);
}

static void test_call_room(void **state) {
    struct nfswire_template t[NFSWIRE_OPS];
    char fh[64] = "largest", name[65];
    (void)state;
    memset(name, 'n', 64);
    name[64] = '\0';
    struct nfswire_who largest = {.machine = name, .fh = fh, .fh_len = sizeof fh};
    nfswire_templates(t, &largest);
    for (unsigned op = 0; op < NFSWIRE_OPS; op++) assert_true(t[op].len <= NFSWIRE_CALL_MAX && t[op].len % 4 == 0);
}

/* ---- replies: the rig ---- */

struct rig {
    struct nfswire w;
    struct nfswire_call *calls;
    unsigned char *buf[CALLS];
};

static void rig_init(struct rig *r) {
    r->calls = aligned_alloc(64, CALLS * sizeof *r->calls);
    assert_non_null(r->calls);
    nfswire_calls_init(r->calls, MASK, SEED);
    nfswire_init(&r->w, r->calls, MASK, WHERE, MAX_IO);
    memset(r->buf, 0, sizeof r->buf);
}

static void rig_free(struct rig *r) {
    for (unsigned i = 0; i < CALLS; i++) free(r->buf[i]);
    free(r->calls);
}

/* A call goes out; READ's buffer is exactly as large as needed, so that a byte too many is seen. */
static uint32_t call_out(struct rig *r, unsigned slot, enum nfswire_op op, uint32_t len) {
    struct nfswire_call *call = &r->calls[slot];
    call->xid += MASK + 1;
    call->op = (uint8_t)op;
    call->len = len;
    call->where = WHERE;
    call->buf = NULL;
    if (op == NFSWIRE_READ) {
        free(r->buf[slot]);
        call->buf = r->buf[slot] = calloc(1, len ? len : 1);
        assert_non_null(call->buf);
    }
    return call->xid;
}

/* Feeds one piece, from memory of its own that ends where it ends; every reply is counted and described in `said`. */
static enum nfswire_got feed(struct rig *r, const unsigned char *p, size_t n, char *said, size_t room) {
    unsigned char *own = malloc(n ? n : 1);
    enum nfswire_got got;
    assert_non_null(own);
    memcpy(own, p, n);
    nfswire_feed(&r->w, own, n);
    while ((got = nfswire_next(&r->w)) == NFSWIRE_REPLY) {
        const struct nfswire_reply *a = &r->w.reply;
        size_t at = strlen(said);
        assert_int_equal(a->call->where, NFSWIRE_NOWHERE);
        snprintf(said + at, room - at, "%u:%d/%u", a->call->slot, a->verdict, a->status);
        at = strlen(said);
        if ((a->verdict == NFSWIRE_DONE || a->verdict == NFSWIRE_SHORT) && a->call->op < NFSWIRE_COMMIT)
            snprintf(said + at, room - at, "=%u", a->count);
        strcat(said, " ");
    }
    assert_false(nfswire_fed(&r->w));
    if (got == NFSWIRE_BAD) assert_true(r->w.why[0] != 0);
    free(own);
    return got;
}

/* As a receiver does it that takes data directly where it can. */
static enum nfswire_got feed_direct(struct rig *r, const unsigned char *p, size_t n, size_t piece, char *said,
                                    size_t room) {
    enum nfswire_got got = NFSWIRE_MORE;
    while (n && got != NFSWIRE_BAD) {
        size_t k = n < piece ? n : piece, len = 0;
        void *to = nfswire_direct(&r->w, &len);
        if (to) {
            if (k > len) k = len;
            memcpy(to, p, k);
            nfswire_took(&r->w, k);
            got = feed(r, p, 0, said, room);
        } else {
            got = feed(r, p, k, said, room);
        }
        p += k;
        n -= k;
    }
    return got;
}

static void check_data(const struct rig *r, unsigned slot, uint64_t offset, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) assert_int_equal(r->buf[slot][i], data_byte(offset + i));
    for (uint32_t i = count; i < r->calls[slot].len; i++) assert_int_equal(r->buf[slot][i], 0);
}

/* ---- replies: all kinds, in all pieces ---- */

#define STORY "0:0/0=100 1:5/0=4000 2:0/0 3:1/28 4:3/5 5:2/65541 6:5/0=0 7:5/0=33 8:0/0 9:2/0 "

/* The calls of the story, and the bytes that answer them. */
static void tell(struct rig *r, struct bytes *b, const struct shape *s) {
    reply_read(b, call_out(r, 0, NFSWIRE_READ, 100), 1000, 100, s);
    reply_write(b, call_out(r, 1, NFSWIRE_WRITE, 4096), 4000, NFSWIRE_UNSTABLE, verf_a, s);
    reply_commit(b, call_out(r, 2, NFSWIRE_COMMIT, 0), verf_a, s);
    reply_status(b, call_out(r, 3, NFSWIRE_WRITE, 512), 28, s);
    reply_accept(b, call_out(r, 4, NFSWIRE_READ, 512), 5, s);
    reply_denied(b, call_out(r, 5, NFSWIRE_READ, 512), 1, 5, s);
    reply_read(b, call_out(r, 6, NFSWIRE_READ, 8), 0, 0, s);
    reply_read(b, call_out(r, 7, NFSWIRE_READ, 64), 5, 33, s);
    reply_getattr(b, call_out(r, 8, NFSWIRE_GETATTR, 0), 1ULL << 40, 77, s);
    reply_denied(b, call_out(r, 9, NFSWIRE_WRITE, 512), 0, 3, s);
}

static void check_story(struct rig *r, const char *said) {
    assert_string_equal(said, STORY);
    check_data(r, 0, 1000, 100);
    check_data(r, 7, 5, 33);
    assert_int_equal(r->w.reply.status, 0);
    assert_int_equal(r->w.strays, 0);
}

static const struct shape shapes[] = {
    {.attributes = 1},
    {.attributes = 0},
    {.attributes = 1, .verf = 400},
    {.attributes = 1, .verf = 5},
    {.attributes = 1, .fragment = 16},
    {.attributes = 1, .fragment = 7},
    {.attributes = 0, .fragment = 1},
    {.attributes = 1, .verf = 12, .fragment = 50, .extra = 8},
};
#define SHAPES (sizeof shapes / sizeof shapes[0])

static void test_pieces(void **state) {
    (void)state;
    for (size_t i = 0; i < SHAPES; i++) {
        for (size_t piece = 1; piece < 6000; piece = piece < 70 ? piece + 1 : piece * 2) {
            for (int direct = 0; direct < 2; direct++) {
                struct rig r;
                struct bytes b = {0};
                char said[400] = "";
                enum nfswire_got got = NFSWIRE_MORE;
                rig_init(&r);
                tell(&r, &b, &shapes[i]);
                if (direct) got = feed_direct(&r, b.at, b.n, piece, said, sizeof said);
                else
                    for (size_t at = 0; at < b.n; at += piece)
                        got = feed(&r, b.at + at, b.n - at < piece ? b.n - at : piece, said, sizeof said);
                assert_int_equal(got, NFSWIRE_MORE);
                check_story(&r, said);
                free_bytes(&b);
                rig_free(&r);
            }
        }
    }
}

static void test_every_cut(void **state) {
    (void)state;
    for (size_t i = 0; i < SHAPES; i++) {
        for (size_t cut = 0;; cut++) {
            struct rig r;
            struct bytes b = {0};
            char said[400] = "";
            rig_init(&r);
            tell(&r, &b, &shapes[i]);
            bool over = cut >= b.n;
            if (!over) {
                assert_int_equal(feed(&r, b.at, cut, said, sizeof said), NFSWIRE_MORE);
                assert_int_equal(feed(&r, b.at + cut, b.n - cut, said, sizeof said), NFSWIRE_MORE);
                check_story(&r, said);
            }
            free_bytes(&b);
            rig_free(&r);
            if (over) break;
        }
    }
}

/* A reply is there with its last byte, not before: also the padding belongs to it. */
static void test_last_byte(void **state) {
    (void)state;
    struct rig r;
    struct bytes b = {0};
    char said[100] = "";
    rig_init(&r);
    reply_read(&b, call_out(&r, 0, NFSWIRE_READ, 33), 0, 33, &plain);
    feed(&r, b.at, b.n - 1, said, sizeof said);
    assert_string_equal(said, "");
    feed(&r, b.at + b.n - 1, 1, said, sizeof said);
    assert_string_equal(said, "0:0/0=33 ");
    free_bytes(&b);
    rig_free(&r);
}

static void test_empty_fragments(void **state) {
    (void)state;
    struct rig r;
    struct bytes one = {0}, b = {0};
    char said[100] = "";
    rig_init(&r);
    reply_read(&one, call_out(&r, 0, NFSWIRE_READ, 16), 0, 16, &(struct shape){.attributes = 1, .fragment = 40});
    for (size_t at = 0; at < one.n; at += 44) {
        add_word(&b, 0);
        add_bytes(&b, one.at + at, one.n - at < 44 ? one.n - at : 44);
    }
    assert_int_equal(feed(&r, b.at, b.n, said, sizeof said), NFSWIRE_MORE);
    assert_string_equal(said, "0:0/0=16 ");
    free_bytes(&one);
    free_bytes(&b);
    rig_free(&r);
}

static void test_fields(void **state) {
    (void)state;
    struct rig r;
    struct bytes b = {0};
    rig_init(&r);
    reply_write(&b, call_out(&r, 1, NFSWIRE_WRITE, 4096), 4096, NFSWIRE_DATA_SYNC, "abcdefgh", &plain);
    reply_commit(&b, call_out(&r, 2, NFSWIRE_COMMIT, 0), "ABCDEFGH", &plain);
    reply_getattr(&b, call_out(&r, 3, NFSWIRE_GETATTR, 0), 0x123456789a, 77, &plain);
    nfswire_feed(&r.w, b.at, b.n);
    assert_int_equal(nfswire_next(&r.w), NFSWIRE_REPLY);
    assert_int_equal(r.w.reply.committed, NFSWIRE_DATA_SYNC);
    assert_memory_equal(r.w.reply.verf, "abcdefgh", 8);
    assert_int_equal(nfswire_next(&r.w), NFSWIRE_REPLY);
    assert_memory_equal(r.w.reply.verf, "ABCDEFGH", 8);
    assert_int_equal(nfswire_next(&r.w), NFSWIRE_REPLY);
    assert_int_equal(r.w.reply.type, 1);
    assert_true(r.w.reply.size == 0x123456789a && r.w.reply.fsid == 0x1100000022 && r.w.reply.fileid == 77);
    assert_int_equal(nfswire_next(&r.w), NFSWIRE_MORE);
    free_bytes(&b);
    rig_free(&r);
}

/* Not delivered: the buffer stays as it was, the count is the same. */
static void test_no_delivery(void **state) {
    (void)state;
    for (size_t piece = 1; piece < 300; piece += 13) {
        struct rig r;
        struct bytes b = {0};
        char said[100] = "";
        rig_init(&r);
        reply_read(&b, call_out(&r, 0, NFSWIRE_READ, 128), 0, 128, &plain);
        r.calls[0].buf = NULL;
        feed_direct(&r, b.at, b.n, piece, said, sizeof said);
        assert_string_equal(said, "0:0/0=128 ");
        for (int i = 0; i < 128; i++) assert_int_equal(r.buf[0][i], 0);
        free_bytes(&b);
        rig_free(&r);
    }
}

/* ---- replies: well-formed, and wrong ---- */

static void check_wrong(struct bytes *b, struct rig *r, const char *why) {
    for (size_t piece = 1; piece <= b->n; piece = piece == 1 ? b->n : b->n + 1) {
        nfswire_init(&r->w, r->calls, MASK, WHERE, MAX_IO);
        r->calls[0].where = WHERE;
        enum nfswire_got got = NFSWIRE_MORE;
        for (size_t at = 0; at < b->n && got != NFSWIRE_REPLY; at += piece) {
            nfswire_feed(&r->w, b->at + at, b->n - at < piece ? b->n - at : piece);
            got = nfswire_next(&r->w);
        }
        assert_int_equal(got, NFSWIRE_REPLY);
        assert_int_equal(r->w.reply.verdict, NFSWIRE_WRONG);
        assert_non_null(strstr(r->w.reply.why, why));
        assert_int_equal(nfswire_next(&r->w), NFSWIRE_MORE);
    }
    b->n = 0;
}

static void test_wrong(void **state) {
    (void)state;
    struct rig r;
    struct bytes b = {0};
    rig_init(&r);
    reply_read(&b, call_out(&r, 0, NFSWIRE_READ, 99), 0, 100, &plain);
    check_wrong(&b, &r, "more than was asked for");
    for (int i = 0; i < 99; i++) assert_int_equal(r.buf[0][i], 0);
    reply_read(&b, call_out(&r, 0, NFSWIRE_READ, 100), 0, 100, &plain);
    set_word(&b, 4 + 24 + 4 + 88, 60);
    check_wrong(&b, &r, "count differs");
    reply_write(&b, call_out(&r, 0, NFSWIRE_WRITE, 10), 11, 0, verf_a, &plain);
    check_wrong(&b, &r, "more than was sent");
    reply_write(&b, call_out(&r, 0, NFSWIRE_WRITE, 10), 10, 3, verf_a, &plain);
    check_wrong(&b, &r, "stability that does not exist");
    free_bytes(&b);
    rig_free(&r);
}

/* A reply that came before comes again: skipped, counted, and the next one is understood. */
static void test_strays(void **state) {
    (void)state;
    struct rig r;
    struct bytes b = {0};
    char said[100] = "";
    rig_init(&r);
    uint32_t first = call_out(&r, 2, NFSWIRE_READ, 16);
    reply_read(&b, first, 0, 16, &plain);
    reply_read(&b, first, 500, 16, &plain);
    feed(&r, b.at, b.n, said, sizeof said);
    assert_string_equal(said, "2:0/0=16 ");
    assert_int_equal(r.w.strays, 1);
    check_data(&r, 2, 0, 16);
    b.n = 0;
    uint32_t second = call_out(&r, 2, NFSWIRE_READ, 16);
    assert_true(second != first && (second & MASK) == 2);
    reply_read(&b, first, 500, 16, &(struct shape){.fragment = 9}); /* of an earlier generation */
    reply_read(&b, second, 16, 16, &plain);
    said[0] = '\0';
    for (size_t at = 0; at < b.n; at++) feed(&r, b.at + at, 1, said, sizeof said);
    assert_string_equal(said, "2:0/0=16 ");
    assert_int_equal(r.w.strays, 2);
    check_data(&r, 2, 16, 16);
    free_bytes(&b);
    rig_free(&r);
}

/* ---- malformed ---- */

/* In one piece and byte by byte; nothing is parsed afterwards, and no reply came of it. */
static void check_bad(struct rig *r, struct bytes *b, const char *why) {
    for (int bytewise = 0; bytewise < 2; bytewise++) {
        char said[100] = "";
        nfswire_init(&r->w, r->calls, MASK, WHERE, MAX_IO);
        enum nfswire_got got = NFSWIRE_MORE;
        size_t at = 0;
        for (; at < b->n && got == NFSWIRE_MORE; at += bytewise ? 1 : b->n)
            got = feed(r, b->at + at, bytewise ? 1 : b->n, said, sizeof said);
        if (got != NFSWIRE_BAD || !strstr(r->w.why, why)) fail_msg("got %d, \"%s\", not \"%s\"", got, r->w.why, why);
        assert_string_equal(said, "");
        assert_int_equal(feed(r, b->at, b->n, said, sizeof said), NFSWIRE_BAD);
        assert_string_equal(said, "");
    }
    b->n = 0;
}

static void bad_word(struct rig *r, size_t at, uint32_t value, const char *why) {
    struct bytes b = {0};
    reply_read(&b, r->calls[0].xid, 0, 64, &plain);
    set_word(&b, at, value);
    check_bad(r, &b, why);
    free_bytes(&b);
}

static void test_bad_words(void **state) {
    (void)state;
    struct rig r;
    rig_init(&r);
    uint32_t xid = call_out(&r, 0, NFSWIRE_READ, 64);
    bad_word(&r, 0, 0xffffffff, "a record mark of ffffffff");
    bad_word(&r, 0, 0x47455420, "a record mark of 47455420");       /* "GET " */
    bad_word(&r, 0, 0x80000000, "a record of 0 bytes");
    bad_word(&r, 0, 0x80000000 | 90, "ends within its header");
    bad_word(&r, 0, 0x80000000 | 150, "ends within READ's data");
    bad_word(&r, 4, xid + MASK + 1, "never sent");
    bad_word(&r, 4, xid - MASK - 1, "never sent");                  /* what the first call counts from */
    bad_word(&r, 4, xid + 1, "never sent");                         /* a slot that was never used */
    bad_word(&r, 8, 0, "message type 0");
    bad_word(&r, 12, 2, "reply status 2");
    bad_word(&r, 20, 401, "a verifier of 401 bytes");
    bad_word(&r, 20, 0xffffffff, "a verifier of 4294967295 bytes");
    bad_word(&r, 24, 6, "accept status 6");
    bad_word(&r, 32, 2, "attributes follow");
    bad_word(&r, 32, 0xffffffff, "attributes follow");
    bad_word(&r, 128, 0xffffffff, "READ with 4294967295 bytes");
    rig_free(&r);
}

static void test_bad_places(void **state) {
    (void)state;
    struct rig r;
    struct bytes b = {0};
    rig_init(&r);
    uint32_t xid = call_out(&r, 0, NFSWIRE_READ, 64);
    reply_denied(&b, xid, 2, 0, &plain);
    check_bad(&r, &b, "a reason 2");
    r.calls[0].where = WHERE + 1;
    reply_read(&b, xid, 0, 64, &plain);
    check_bad(&r, &b, "on another connection");
    r.calls[0].where = NFSWIRE_SENDING;
    reply_read(&b, xid, 0, 64, &plain);
    check_bad(&r, &b, "not sent completely");
    free_bytes(&b);
    rig_free(&r);
}

static void test_largest_record(void **state) {
    (void)state;
    struct rig r;
    struct bytes b = {0};
    char said[100] = "";
    rig_init(&r);
    reply_read(&b, call_out(&r, 0, NFSWIRE_READ, MAX_IO), 0, MAX_IO, &(struct shape){.attributes = 1, .verf = 400});
    assert_int_equal(feed_direct(&r, b.at, b.n, 1000, said, sizeof said), NFSWIRE_MORE);
    assert_string_equal(said, "0:0/0=65536 ");
    check_data(&r, 0, 0, MAX_IO);
    b.n = 0;
    /* too much in fragments of which none is too large */
    call_out(&r, 0, NFSWIRE_READ, MAX_IO);
    reply_read(&b, r.calls[0].xid, 0, MAX_IO, &(struct shape){.attributes = 1, .fragment = 30000, .extra = 2000});
    check_bad(&r, &b, "no reply here has more than");
    free_bytes(&b);
    rig_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_groups), cmocka_unit_test(test_call_bytes),
        cmocka_unit_test(test_call_room),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_every_cut),
        cmocka_unit_test(test_last_byte),
        cmocka_unit_test(test_empty_fragments),
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_no_delivery),
        cmocka_unit_test(test_wrong),
        cmocka_unit_test(test_strays),
        cmocka_unit_test(test_bad_words),
        cmocka_unit_test(test_bad_places),
        cmocka_unit_test(test_largest_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
