/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The native iSCSI engine's PDUs, byte by byte, without a socket: what it sends, and what it makes of what comes. */
#include "tests/unit/iscsi_pdus.h"
#include "tests/unit/rounds.h"

#include <errno.h>
#include <stdio.h>

/* ---- what goes out ---- */

static void golden_commands(void **state) {
    static const uint8_t read[48] = {
        0x01, 0xc1, 0, 0, 0, 0, 0, 0, 0, 0x03, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x04, 0, 0, 0x10, 0,
        0, 0, 0x01, 0, 0, 0, 0, 0x50, 0x88, 0, 0, 0, 0, 0x01, 0, 0, 0, 0x02, 0, 0, 0, 0x08, 0, 0,
    };
    static const uint8_t write[48] = {
        0x01, 0xa1, 0, 0, 0, 0, 0x02, 0, 0, 0x03, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x05, 0, 0, 0x02, 0,
        0, 0, 0x01, 0x01, 0, 0, 0, 0x50, 0x8a, 0x08, 0, 0, 0, 0, 0, 0, 0, 0x07, 0, 0, 0, 0x01, 0, 0,
    };
    static const uint8_t flush[48] = {
        0x01, 0x81, 0, 0, 0, 0, 0, 0, 0, 0x03, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x06, 0, 0, 0, 0,
        0, 0, 0x01, 0x02, 0, 0, 0, 0x50, 0x91, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    };
    struct bench b;
    uint8_t sent[4096];
    (void)state;
    bench_terms(&b.terms, 65536, 262144, 65536);
    bench_begin(&b, 3, -1);
    bench_request(&b, 0, IO_READ, (0x100000002ULL) * 512, 4096);
    bench_request(&b, 1, IO_WRITE, 7 * 512, 512)->sync = SYNC_DSYNC;
    bench_request(&b, 2, IO_FLUSH, UINT64_MAX, UINT32_MAX);
    for (unsigned i = 0; i < 3; i++) b.list[i] = &b.request[i];
    assert_int_equal(iscsibe_out_commands(b.c, b.list, 3), 3);
    assert_int_equal(bench_unsent(&b, sent, sizeof sent), 3 * 48 + 512);
    assert_memory_equal(sent, read, 48);
    assert_memory_equal(sent + 48, write, 48);
    assert_memory_equal(sent + 96, b.request[1].buf, 512);
    assert_memory_equal(sent + 96 + 512, flush, 48);
    bench_end(&b);
}

/* Reads the stream that the engine makes of one WRITE and of the R2Ts for it: into `got`, with every field checked. */
static size_t check_data_out(const struct bench *b, const uint8_t *p, uint32_t ttt, uint32_t at, uint32_t len,
                             uint8_t *got) {
    const struct native_how *how = &b->how;
    uint32_t sn = 0, segment = how->terms->target_max_recv & ~3u;
    const uint8_t *from = p;
    while (len) {
        uint32_t n = len < segment ? len : segment, padded = n + iscsiw_padding(n);
        size_t hd = b->c->header_digest ? 4 : 0, dd = b->c->data_digest ? 4 : 0;
        assert_int_equal(p[0], ISCSI_DATA_OUT);
        assert_int_equal(p[1], n == len ? ISCSI_FINAL : 0);
        assert_int_equal(iscsiw_get24(p + AT_LENGTH), n);
        assert_int_equal(p[AT_LUN + 1], 3);
        assert_int_equal(iscsiw_get32(p + AT_ITT), bench_itt(b, 0));
        assert_int_equal(iscsiw_get32(p + AT_TTT), ttt);
        assert_int_equal(iscsiw_get32(p + AT_DATA_SN), sn++);
        assert_int_equal(iscsiw_get32(p + AT_OFFSET), at);
        uint32_t told;
        if (hd) {
            memcpy(&told, p + 48, 4);
            assert_int_equal(le32toh(told), iscsibe_crc32c(0, p, 48));
        }
        const uint8_t *data = p + 48 + hd;
        if (dd) {
            memcpy(&told, data + padded, 4);
            assert_int_equal(le32toh(told), iscsibe_crc32c(0, data, padded));
        }
        for (uint32_t i = n; i < padded; i++) assert_int_equal(data[i], 0);
        memcpy(got + at, data, n);
        p = data + padded + dd;
        at += n;
        len -= n;
    }
    return (size_t)(p - from);
}

/* Immediate data, unsolicited data and R2Ts of odd sizes in any order: each byte of the request goes once. */
static void write_case(uint32_t first, uint32_t burst, uint32_t segment, bool immediate, bool unsolicited,
                       bool digests) {
    static uint8_t sent[400000], got[PDUS_STRIDE];
    static struct pdus in;
    struct bench b;
    uint32_t len = 20480, at;

    bench_terms(&b.terms, first, burst, segment);
    b.terms.value[KEY_IMMEDIATE_DATA] = immediate;
    b.terms.value[KEY_INITIAL_R2T] = !unsolicited;
    b.terms.value[KEY_HEADER_DIGEST] = b.terms.value[KEY_DATA_DIGEST] = digests;
    bench_begin(&b, 1, -1);
    bench_request(&b, 0, IO_WRITE, 0, len);
    b.list[0] = &b.request[0];
    memset(got, 0, sizeof got);
    assert_int_equal(iscsibe_out_commands(b.c, b.list, 1), 1);
    size_t n = bench_unsent(&b, sent, sizeof sent), skip = 48 + (digests ? 4 : 0);
    uint32_t now = iscsiw_get24(sent + AT_LENGTH), most = segment & ~3u;
    assert_int_equal(now, immediate ? first < most ? first : most : 0);
    memcpy(got, sent + skip, now);
    if (now) skip += now + iscsiw_padding(now) + (digests ? 4 : 0);
    at = unsolicited && first > now ? first : now;
    assert_int_equal(!(sent[1] & ISCSI_FINAL), at > now);
    skip += check_data_out(&b, sent + skip, ISCSI_NO_TAG, now, at - now, got);
    assert_int_equal(skip, n);
    iscsibe_out_sent(b.c, n, b.list, 1);

    /* two R2Ts at a time, the second half of what they ask for first */
    in = (struct pdus){
        .stat_sn = 0x50, .exp_cmd_sn = 0x101, .max_cmd_sn = 0x1000, .header_digest = digests, .data_digest = digests
    };
    for (uint32_t sn = 0, ttt = 900; at < len; ttt += 2) {
        uint32_t left = len - at, a = left / 2 < burst ? left / 2 : burst, c = left - a < burst ? left - a : burst;
        in.len = 0;
        if (a) pdus_r2t(&in, bench_itt(&b, 0), ttt, sn++, at + c, a);
        pdus_r2t(&in, bench_itt(&b, 0), ttt + 1, sn++, at, c);
        assert_int_equal(iscsibe_in_take(b.c, in.bytes, in.len, 5000), in.len);
        iscsibe_out_fill(b.c);
        n = bench_unsent(&b, sent, sizeof sent);
        skip = a ? check_data_out(&b, sent, ttt, at + c, a, got) : 0;
        skip += check_data_out(&b, sent + skip, ttt + 1, at, c, got);
        assert_int_equal(skip, n);
        iscsibe_out_sent(b.c, n, NULL, 0);
        at += a + c;
    }
    assert_memory_equal(got, b.request[0].buf, len);
    in.len = 0;
    pdus_response(&in, bench_itt(&b, 0), 0, NULL, 0);
    iscsibe_in_take(b.c, in.bytes, in.len, 6000);
    assert_false(b.c->lost);
    assert_int_equal(b.c->reply_n, 1);
    assert_int_equal(b.c->reply[0].result, len);
    bench_end(&b);
}

static void write_data(void **state) {
    static const uint32_t firsts[] = { 512, 1001, 4096, 20480, 65536 }, bursts[] = { 1003, 4096, 262144 },
                          segments[] = { 512, 517, 8192, 65536 };
    (void)state;
    for (unsigned f = 0; f < 5; f++)
        for (unsigned m = 0; m < 3; m++)
            for (unsigned s = 0; s < 4; s++)
                for (unsigned k = 0; k < 8; k++) {
                    uint32_t first = firsts[f] > 20480 ? 20480 : firsts[f];
                    write_case(first, bursts[m], segments[s], k & 1, k & 2, k & 4);
                }
}

/* The socket may take any number of bytes. What has a byte in it is taken, nothing else; the stream is the same. */
static void partial_sends(void **state) {
    static uint8_t whole[200000], piece[200000];
    struct bench b;
    (void)state;
    for (unsigned kind = 0; kind < 3; kind++) {
        size_t total = 1;
        for (size_t sent = 0; sent <= total; sent += 1 + sent / 200) {
            bench_terms(&b.terms, 2048, 4096, 1024);
            b.terms.value[KEY_INITIAL_R2T] = kind != 2;
            bench_begin(&b, 4, -1);
            for (unsigned i = 0; i < 4; i++)
                b.list[i] = bench_request(&b, i, kind == 0 || i == 2 ? IO_READ : IO_WRITE, i * 65536u, 1024u << i % 2);
            assert_int_equal(iscsibe_out_commands(b.c, b.list, 4), 4);
            total = bench_unsent(&b, whole, sizeof whole);
            size_t starts[4];
            memcpy(starts, b.c->starts, sizeof starts);
            unsigned expect = 0;
            while (expect < 4 && starts[expect] < sent) expect++;
            assert_int_equal(iscsibe_out_sent(b.c, sent, b.list, 4), expect);
            assert_int_equal(b.c->lent, expect);
            assert_int_equal(b.c->cmd_sn, 0x100 + expect);
            assert_int_equal(b.c->counts.commands, expect);
            for (unsigned i = 0; i < 4; i++) assert_ptr_equal(b.c->slots[i].request, i < expect ? b.list[i] : NULL);
            size_t n = 0; /* the rest goes in dribs */
            while (b.c->out.n) {
                size_t left = bench_unsent(&b, piece, sizeof piece), some = left < 777 ? left : 777;
                assert_memory_equal(piece, whole + sent + n, left);
                n += some;
                iscsibe_out_sent(b.c, some, NULL, 0);
            }
            assert_int_equal(sent + n, expect < 4 ? sent > starts[expect] ? sent : starts[expect] : total);
            bench_end(&b);
        }
    }
}

/* More Data-Out than one sendmsg holds: the rest waits its turn, and no other command goes between. */
static void more_than_fits(void **state) {
    static uint8_t sent[300000];
    struct bench b;
    (void)state;
    bench_terms(&b.terms, 65536, 65536, 64);
    b.terms.target_max_recv = 64; /* smaller than any target may have it */
    b.terms.value[KEY_IMMEDIATE_DATA] = 0;
    bench_begin(&b, 2, -1);
    for (unsigned i = 0; i < 2; i++) b.list[i] = bench_request(&b, i, IO_WRITE, 0, 65536);
    assert_int_equal(iscsibe_out_commands(b.c, b.list, 2), 1);
    assert_true(iscsibe_out_pending(b.c));
    assert_int_equal(iscsibe_out_sent(b.c, 0, b.list, 1), 0); /* not taken: nothing of it is left */
    assert_false(iscsibe_out_pending(b.c));
    assert_int_equal(iscsibe_out_commands(b.c, b.list, 2), 1);
    size_t n = 0;
    for (int rounds = 0; b.c->out.n || iscsibe_out_pending(b.c); rounds++) {
        assert_true(rounds < 10);
        if (!b.c->out.n) iscsibe_out_fill(b.c);
        n += bench_unsent(&b, sent + n, sizeof sent - n);
        iscsibe_out_sent(b.c, b.c->out.total, rounds ? NULL : b.list, rounds ? 0 : 1);
    }
    assert_int_equal(n, 48 + 1024 * (48 + 64));
    static uint8_t got[65536];
    check_data_out(&b, sent + 48, ISCSI_NO_TAG, 0, 65536, got);
    assert_memory_equal(got, b.request[0].buf, 65536);
    bench_end(&b);
}

/* A slot's tags differ, go round, and are never the one that means none. */
static void tags(void **state) {
    static const uint32_t before[] = { 0, 0x10, 0x7fffffff, 0x7ffffffe };
    struct bench b;
    (void)state;
    bench_terms(&b.terms, 65536, 65536, 65536);
    for (unsigned i = 0; i < 4; i++)
        for (unsigned depth = 1; depth <= 5; depth += 4) {
            bench_begin(&b, depth, -1);
            unsigned slot = depth - 1, mask = depth == 1 ? 0 : 7;
            b.c->slots[slot].itt = (before[i] & ~mask) | slot;
            uint32_t old = b.c->slots[slot].itt;
            b.list[0] = bench_request(&b, slot, IO_READ, 0, 512);
            assert_int_equal(iscsibe_out_commands(b.c, b.list, 1), 1);
            assert_int_not_equal(bench_itt(&b, slot), old);
            assert_true(bench_itt(&b, slot) <= 0x7fffffff);
            assert_int_equal(bench_itt(&b, slot) & mask, slot);
            bench_end(&b);
        }
}

static void window(void **state) {
    struct bench b;
    struct pdus in = { .stat_sn = 0x50 };
    (void)state;
    bench_terms(&b.terms, 65536, 65536, 65536);
    bench_begin(&b, 8, -1);
    b.c->cmd_sn = 0xfffffffe; /* serial numbers go round */
    b.c->max_cmd_sn = 0xffffffff;
    for (unsigned i = 0; i < 8; i++) b.list[i] = bench_request(&b, i, IO_READ, 0, 512);
    assert_int_equal(iscsibe_out_commands(b.c, b.list, 8), 2);
    iscsibe_out_sent(b.c, b.c->out.total, b.list, 2);
    assert_int_equal(iscsibe_out_commands(b.c, b.list + 2, 6), 0);
    b.c->window_since = 2000;
    in.exp_cmd_sn = 0;
    in.max_cmd_sn = 2;
    pdus_nop_in(&in, ISCSI_NO_TAG);
    iscsibe_in_take(b.c, in.bytes, in.len, 5000);
    assert_int_equal(b.c->counts.window_ns, 3000);
    assert_int_equal(iscsibe_out_commands(b.c, b.list + 2, 6), 3);
    iscsibe_out_sent(b.c, b.c->out.total, b.list + 2, 3);
    in.len = 0; /* neither an older number nor nonsense closes it again */
    in.max_cmd_sn = 0xfffffff0;
    pdus_nop_in(&in, ISCSI_NO_TAG);
    in.max_cmd_sn = 1;
    pdus_nop_in(&in, ISCSI_NO_TAG);
    in.exp_cmd_sn = 100;
    in.max_cmd_sn = 50;
    pdus_nop_in(&in, ISCSI_NO_TAG);
    iscsibe_in_take(b.c, in.bytes, in.len, 5000);
    assert_int_equal(b.c->max_cmd_sn, 2);
    bench_end(&b);
}

/* ---- what comes in ---- */

static uint8_t content(uint32_t i) {
    return (uint8_t)(i * 29 + (i >> 8) * 3 + 1);
}

/* Five commands, and answers of all kinds between each other. */
static void many_answers(struct bench *b, struct pdus *in) {
    uint8_t data[8192];
    static const uint8_t sense[] = { 0x70, 0, 0x03, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x11, 0x01, 0, 0, 0, 0 };
    for (uint32_t i = 0; i < sizeof data; i++) data[i] = content(i);
    bench_request(b, 0, IO_READ, 0, 8192);
    bench_request(b, 1, IO_READ, 65536, 4096);
    bench_request(b, 2, IO_WRITE, 65536, 4096);
    bench_request(b, 3, IO_READ, 65536, 512);
    bench_request(b, 4, IO_READ, 65536, 1024);
    bench_send(b, 5);
    in->stat_sn = 0x50;
    in->exp_cmd_sn = 0x105;
    in->max_cmd_sn = 0x2000;
    pdus_data_in(in, bench_itt(b, 0), 0, 0, data, 1000, false);       /* in pieces, one without a byte */
    pdus_data_in(in, bench_itt(b, 1), 0, 0, data, 4096, true);        /* whole */
    pdus_data_in(in, bench_itt(b, 0), 1, 1000, data + 1000, 0, false);
    pdus_nop_in(in, 0x1234);
    pdus_data_in(in, bench_itt(b, 0), 2, 1000, data + 1000, 3001, false);
    pdus_response(in, bench_itt(b, 2), 0, NULL, 0);
    pdus_data_in(in, bench_itt(b, 0), 3, 4001, data + 4001, 4191, false);
    pdus_response(in, bench_itt(b, 3), 2, sense, sizeof sense);
    pdus_response(in, bench_itt(b, 0), 0, NULL, 0);                   /* status on its own */
    uint8_t *h = pdus_add(in, ISCSI_DATA_IN, ISCSI_FINAL | ISCSI_STATUS | ISCSI_UNDERFLOW, bench_itt(b, 4));
    iscsiw_put32(h + AT_DATA_SN, 0);
    iscsiw_put32(h + AT_RESIDUAL, 512);
    in->stat_sn++;
    pdus_seal(in, data, 512);
}

static void check_many(struct bench *b) {
    static const int slots[] = { 1, 2, 3, 0, 4 };
    static const int64_t results[] = { 4096, 4096, -EIO, 8192, 512 };
    assert_false(b->c->lost);
    assert_int_equal(b->c->reply_n, 5);
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(b->c->reply[i].request->slot, slots[i]);
        assert_int_equal(b->c->reply[i].result, results[i]);
    }
    assert_string_equal(bench_kind(b, 2), "MEDIUM ERROR 11/01");
    for (uint32_t i = 0; i < 8192; i++) assert_int_equal(b->buffers[i], content(i));
    for (uint32_t i = 0; i < 4096; i++) assert_int_equal(b->buffers[PDUS_STRIDE + i], content(i));
    assert_int_equal(b->c->exp_stat_sn, 0x55);
    assert_int_equal(b->c->counts.gaps, 0);
    assert_int_equal(b->c->lent, 0);
    assert_int_equal(b->c->nop_n, 1);
}

/* As the receiving loop does it: what is left of a header is moved to the front. */
static void feed(struct bench *b, const uint8_t *p, size_t len, uint8_t *buffer, size_t *have) {
    memcpy(buffer + *have, p, len);
    size_t n = *have + len, used = iscsibe_in_take(b->c, buffer, n, 7000);
    *have = n - used;
    assert_true(*have < ISCSI_HEADER_MAX);
    memmove(buffer, buffer + used, *have);
}

static void splits(bool header_digest, bool data_digest) {
    static struct pdus in;
    static uint8_t buffer[100000];
    struct bench b;
    size_t len = 1;
    for (size_t cut = 0; cut <= len; cut += cut % 4096 > 600 ? 37 : rounds(1, 13)) {
        size_t have = 0;
        bench_terms(&b.terms, 65536, 65536, 65536);
        b.terms.value[KEY_HEADER_DIGEST] = header_digest;
        b.terms.value[KEY_DATA_DIGEST] = data_digest;
        bench_begin(&b, 5, -1);
        in = (struct pdus){ .header_digest = header_digest, .data_digest = data_digest };
        many_answers(&b, &in);
        len = in.len;
        feed(&b, in.bytes, cut, buffer, &have);
        feed(&b, in.bytes + cut, len - cut, buffer, &have);
        assert_int_equal(have, 0);
        check_many(&b);
        bench_end(&b);
    }
    for (size_t step = 1; step < 60; step += 6) {
        size_t have = 0;
        bench_begin(&b, 5, -1);
        in.len = 0;
        many_answers(&b, &in);
        for (size_t at = 0; at < in.len; at += step)
            feed(&b, in.bytes + at, in.len - at < step ? in.len - at : step, buffer, &have);
        assert_int_equal(have, 0);
        check_many(&b);
        bench_end(&b);
    }
}

static void every_split(void **state) {
    (void)state;
    splits(false, false);
    splits(true, true);
    splits(false, true);
}

static void nop_answered(void **state) {
    struct bench b;
    struct pdus in = { .stat_sn = 0x50, .exp_cmd_sn = 0x100, .max_cmd_sn = 0x200 };
    uint8_t sent[100];
    (void)state;
    bench_terms(&b.terms, 65536, 65536, 65536);
    bench_begin(&b, 1, -1);
    uint8_t *h = pdus_add(&in, ISCSI_NOP_IN, ISCSI_FINAL, ISCSI_NO_TAG);
    iscsiw_put32(h + AT_TTT, 0xabcd);
    h[AT_LUN + 1] = 9;
    pdus_seal(&in, NULL, 0);
    iscsibe_in_take(b.c, in.bytes, in.len, 1);
    assert_true(iscsibe_out_pending(b.c));
    iscsibe_out_fill(b.c);
    assert_int_equal(bench_unsent(&b, sent, sizeof sent), 48);
    static const uint8_t reply[48] = { 0x40, 0x80, [9] = 9, [16] = 0xff, 0xff, 0xff, 0xff, 0, 0,   0xab,
                                       0xcd, 0,    0,       0x01,        0,    0,    0,    0, 0x50 };
    assert_memory_equal(sent, reply, 48);
    assert_int_equal(b.c->cmd_sn, 0x100); /* an immediate PDU takes no number */
    bench_end(&b);
}

/* As many as one recv can bring are all answered; a target that goes on without reading the answers is given up. */
static void nop_flood(void **state) {
    static struct pdus in;
    static uint8_t sent[80000];
    struct bench b;
    (void)state;
    in = (struct pdus){ .stat_sn = 0x50, .exp_cmd_sn = 0x100, .max_cmd_sn = 0x200 };
    bench_terms(&b.terms, 65536, 65536, 65536);
    bench_begin(&b, 1, -1);
    unsigned many = (NATIVE_IN_SIZE + ISCSI_HEADER_MAX) / ISCSI_BHS, answered = 0;
    for (unsigned i = 0; i < many; i++) pdus_nop_in(&in, i);
    iscsibe_in_take(b.c, in.bytes, in.len, 1);
    assert_false(b.c->lost);
    while (iscsibe_out_pending(b.c)) {
        iscsibe_out_fill(b.c);
        size_t n = bench_unsent(&b, sent, sizeof sent);
        for (size_t at = 0; at < n; at += ISCSI_BHS) assert_int_equal(iscsiw_get32(sent + at + AT_TTT), answered++);
        iscsibe_out_sent(b.c, n, NULL, 0);
    }
    assert_int_equal(answered, many);
    for (unsigned i = 0; i < 10 && !b.c->lost; i++) iscsibe_in_take(b.c, in.bytes, in.len, 1);
    assert_true(b.c->lost);
    bench_end(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_commands), cmocka_unit_test(write_data), cmocka_unit_test(partial_sends),
        cmocka_unit_test(more_than_fits),  cmocka_unit_test(tags),       cmocka_unit_test(window),
        cmocka_unit_test(every_split),     cmocka_unit_test(nop_answered),  cmocka_unit_test(nop_flood),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
