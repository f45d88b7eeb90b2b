/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How commands of the native iSCSI engine end: statuses, sense, retries, and all that a target may answer wrongly.
 * Without a socket. */
#include "tests/unit/iscsi_pdus.h"

#include <errno.h>

/* Answers slot 0's command with `status` (and sense), at `age` ns after it was taken. */
static void put_off(struct bench *b, struct pdus *in, unsigned status, const uint8_t *sense, int64_t age) {
    in->len = 0;
    pdus_response(in, bench_itt(b, 0), status, sense, sense ? 18 : 0);
    b->c->age = b->c->slots[0].taken + age;
    iscsibe_in_take(b->c, in->bytes, in->len, 1);
}

/* Its time has come: the command goes again. */
static void send_again(struct bench *b) {
    uint32_t itt = bench_itt(b, 0);
    b->c->slots[0].t_retry = 0;
    b->c->retrying = 0;
    iscsibe_out_again(b->c, &b->c->slots[0]);
    iscsibe_out_fill(b->c);
    assert_int_equal(b->c->out.total, 48 + 512);
    iscsibe_out_sent(b->c, b->c->out.total, NULL, 0);
    assert_int_not_equal(bench_itt(b, 0), itt); /* a late answer to the first is not taken for one to the second */
}

/* Every kind of "not now", one after another, to one request: it is sent again each time, after twice the pause. */
static void retries(void **state) {
    static const uint8_t moving[18] = { 0x70, 0, 0x02, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x04, 0x0a },
                         becoming_ready[18] = { 0x70, 0, 0x02, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x04, 0x01 };
    static const struct { unsigned status; const uint8_t *sense; } answer[] = {
        { 8, NULL }, { 0x28, NULL }, { 2, moving }, { 2, becoming_ready }, { 8, NULL }, { 8, NULL } };
    struct bench b;
    struct pdus in = { .stat_sn = 0x50, .exp_cmd_sn = 0x101, .max_cmd_sn = 0x2000 };
    struct kv counted = { 0 };
    (void)state;
    bench_terms(&b.terms, 65536, 65536, 65536);
    bench_begin(&b, 2, -1);
    bench_request(&b, 0, IO_WRITE, 0, 512);
    bench_send(&b, 1);
    for (unsigned i = 0; i < sizeof answer / sizeof *answer; i++) {
        put_off(&b, &in, answer[i].status, answer[i].sense, NS_PER_SEC);
        assert_int_equal(b.c->reply_n, 0);
        assert_int_equal(b.c->retrying, 1);
        assert_int_equal(b.c->slots[0].t_retry, b.c->wall + (NS_PER_MS << i));
        send_again(&b);
    }
    put_off(&b, &in, 0x28, NULL, 31 * NS_PER_SEC); /* older than timeout= allows: the answer is the reason */
    assert_int_equal(b.c->reply_n, 1);
    assert_int_equal(b.c->reply[0].result, -EBUSY);
    assert_string_equal(bench_kind(&b, 0), "TASK SET FULL");
    assert_false(b.c->lost);
    iscsibe_native_counters(b.c, &counted);
    assert_int_equal(kv_get_uint(&counted, "retries", 0), 6);
    assert_int_equal(kv_get_uint(&counted, "retries_busy", 0), 3);
    assert_int_equal(kv_get_uint(&counted, "retries_task_set_full", 0), 1);
    assert_int_equal(kv_get_uint(&counted, "retries_transition", 0), 2);
    assert_int_equal(kv_get_uint(&counted, "retry_wait_ns", 0), 63 * NS_PER_MS);
    assert_int_equal(kv_get_uint(&counted, "wire_ios", 99), 0); /* none has ended well */
    kv_free(&counted);
    bench_end(&b);
}

static void durable_without_fua(void **state) {
    struct bench b;
    struct pdus in = { .stat_sn = 0x50, .exp_cmd_sn = 0x101, .max_cmd_sn = 0x2000 };
    uint8_t sent[100];
    (void)state;
    bench_terms(&b.terms, 65536, 65536, 65536);
    bench_begin(&b, 1, -1);
    b.c->fua = false;
    b.c->sync_behind = true;
    bench_request(&b, 0, IO_WRITE, 512 * 5, 1024)->sync = SYNC_SYNC;
    bench_send(&b, 1);
    pdus_response(&in, bench_itt(&b, 0), 0, NULL, 0);
    iscsibe_in_take(b.c, in.bytes, in.len, 1);
    assert_int_equal(b.c->reply_n, 0);
    iscsibe_out_fill(b.c);
    assert_int_equal(bench_unsent(&b, sent, sizeof sent), 48);
    static const uint8_t cdb[16] = { 0x91, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 2 };
    assert_memory_equal(sent + AT_CDB, cdb, 16);
    iscsibe_out_sent(b.c, 48, NULL, 0);
    in.len = 0;
    pdus_response(&in, bench_itt(&b, 0), 0, NULL, 0);
    iscsibe_in_take(b.c, in.bytes, in.len, 1);
    assert_int_equal(b.c->reply_n, 1);
    assert_int_equal(b.c->reply[0].result, 1024);
    assert_true(b.c->reply[0].stable);
    assert_int_equal(b.c->counts.caches_synced, 1);
    assert_int_equal(b.c->counts.fua, 0);
    bench_end(&b);
}

/* A unit that does not know SYNCHRONIZE CACHE(16) is asked with (10); one that knows neither has written, but nobody
 * vouches for it. */
static void sync_falls_back(void **state) {
    static const uint8_t unknown[18] = { 0x70, 0, 0x05, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x20, 0x00 },
                         cdb[16] = { 0x35, 0, 0, 0, 0, 5, 0, 0, 2 };
    struct bench b;
    struct pdus in = { .stat_sn = 0x50, .exp_cmd_sn = 0x101, .max_cmd_sn = 0x2000 };
    uint8_t sent[100];
    (void)state;
    bench_terms(&b.terms, 65536, 65536, 65536);
    bench_begin(&b, 2, -1);
    b.c->fua = false;
    b.c->sync_behind = true;
    bench_request(&b, 0, IO_WRITE, 512 * 5, 1024)->sync = SYNC_SYNC;
    bench_send(&b, 1);
    pdus_response(&in, bench_itt(&b, 0), 0, NULL, 0);
    for (unsigned i = 0; i < 2; i++) {
        iscsibe_in_take(b.c, in.bytes, in.len, 1);
        assert_int_equal(b.c->reply_n, 0);
        iscsibe_out_fill(b.c);
        assert_int_equal(bench_unsent(&b, sent, sizeof sent), 48);
        assert_int_equal(sent[AT_CDB], i ? 0x35 : 0x91);
        iscsibe_out_sent(b.c, 48, NULL, 0);
        in.len = 0;
        pdus_response(&in, bench_itt(&b, 0), 2, unknown, sizeof unknown);
    }
    assert_memory_equal(sent + AT_CDB, cdb, 16);
    iscsibe_in_take(b.c, in.bytes, in.len, 1);
    assert_int_equal(b.c->reply_n, 1);
    assert_int_equal(b.c->reply[0].result, 1024);
    assert_false(b.c->reply[0].stable);
    assert_false(b.c->aside); /* no reason to doubt who it is */
    assert_true(iscsibe_out_refused(b.c, bench_request(&b, 1, IO_FLUSH, 0, 0)));
    assert_int_equal(b.c->counts.no_sync, 1);
    bench_end(&b);
}

/* Without a volatile cache a write is durable when it is answered: no FUA, no SYNCHRONIZE CACHE, also none that was
 * asked for. */
static void write_through(void **state) {
    struct bench b;
    struct pdus in = { .stat_sn = 0x50, .exp_cmd_sn = 0x101, .max_cmd_sn = 0x2000 };
    struct err err;
    uint8_t sent[1200];
    (void)state;
    bench_terms(&b.terms, 65536, 65536, 65536);
    bench_begin(&b, 1, -1);
    iscsibe_native_free(b.c);
    for (unsigned fua = 0; fua < 2; fua++) {
        const struct attach_how attach = { .depth = 1, .clock = &b.clock.clock, .kinds = &b.kinds, .write = true };
        b.how.stable = true;
        b.how.dpofua = fua;
        b.c = iscsibe_native_new(&b.how, &attach, &err);
        b.c->reply = b.done;
        b.c->reply_max = 1;
        bench_request(&b, 0, IO_WRITE, 0, 512)->sync = SYNC_DSYNC;
        b.list[0] = &b.request[0];
        assert_int_equal(iscsibe_out_commands(b.c, b.list, 1), 1);
        assert_int_equal(bench_unsent(&b, sent, sizeof sent), 48 + 512);
        assert_int_equal(sent[AT_CDB + 1], 0);
        iscsibe_out_sent(b.c, b.c->out.total, b.list, 1);
        in = (struct pdus){ .stat_sn = 0x50, .exp_cmd_sn = 0x101, .max_cmd_sn = 0x2000 };
        pdus_response(&in, bench_itt(&b, 0), 0, NULL, 0);
        iscsibe_in_take(b.c, in.bytes, in.len, 1);
        assert_int_equal(b.c->reply_n, 1);
        assert_true(b.c->reply[0].stable);
        assert_true(iscsibe_out_refused(b.c, bench_request(&b, 0, IO_FLUSH, 0, 0)));
        iscsibe_native_free(b.c);
    }
    bench_free(&b);
}

/* One READ of 1024 (slot 0) and one WRITE of 1024 (slot 1, 512 with the command) are out; `n` answers are added by
 * `answer`. Then: is the session lost, how many come back, the first one's result and kind. */
static void ending(void (*answer)(struct bench *b, struct pdus *in), bool lost, unsigned n, int64_t result,
                   const char *kind) {
    static struct pdus in;
    struct bench b;
    in = (struct pdus){ .stat_sn = 0x50, .exp_cmd_sn = 0x102, .max_cmd_sn = 0x2000 };
    bench_terms(&b.terms, 512, 512, 65536);
    b.terms.value[KEY_INITIAL_R2T] = 1;
    b.terms.value[KEY_MAX_R2T] = 1;
    bench_begin(&b, 2, -1);
    bench_request(&b, 0, IO_READ, 0, 1024);
    bench_request(&b, 1, IO_WRITE, 4096, 1024);
    bench_send(&b, 2);
    answer(&b, &in);
    iscsibe_in_take(b.c, in.bytes, in.len, 1);
    assert_int_equal(b.c->lost, lost);
    assert_int_equal(b.c->reply_n, n);
    if (n) assert_int_equal(b.c->reply[0].result, result);
    if (n && result < 0) assert_string_equal(bench_kind(&b, 0), kind);
    if (lost) assert_int_equal(b.c->lent, 0);
    bench_end(&b);
}

static const uint8_t zeros[2048];

#define ANSWER(name, ...) static void name(struct bench *b, struct pdus *in) { (void)b; __VA_ARGS__ }
ANSWER(wrong_itt, pdus_data_in(in, bench_itt(b, 0) + 16, 0, 0, zeros, 1024, true);)
ANSWER(twice, pdus_data_in(in, bench_itt(b, 0), 0, 0, zeros, 1024, true);
       pdus_data_in(in, bench_itt(b, 0), 0, 0, zeros, 1024, true);)
ANSWER(wrong_datasn, pdus_data_in(in, bench_itt(b, 0), 1, 0, zeros, 1024, true);)
ANSWER(wrong_offset, pdus_data_in(in, bench_itt(b, 0), 0, 512, zeros, 512, false);)
ANSWER(starts_anew, pdus_data_in(in, bench_itt(b, 0), 0, 0, zeros, 512, false);
       pdus_data_in(in, bench_itt(b, 0), 0, 0, zeros, 1024, true);)
ANSWER(too_much, pdus_data_in(in, bench_itt(b, 0), 0, 0, zeros, 1028, true);)
ANSWER(data_for_write, pdus_data_in(in, bench_itt(b, 1), 0, 0, zeros, 512, false);)
ANSWER(data_missing, pdus_data_in(in, bench_itt(b, 0), 0, 0, zeros, 512, true);)
ANSWER(status_only, pdus_response(in, bench_itt(b, 0), 0, NULL, 0);)
ANSWER(write_not_asked, pdus_response(in, bench_itt(b, 1), 0, NULL, 0);)
ANSWER(conflict, pdus_response(in, bench_itt(b, 0), 0x18, NULL, 0);)
ANSWER(no_sense, pdus_response(in, bench_itt(b, 0), 2, NULL, 0);)
ANSWER(aca, pdus_response(in, bench_itt(b, 0), 0x30, NULL, 0);)
ANSWER(aborted, pdus_response(in, bench_itt(b, 0), 0x40, NULL, 0);)
ANSWER(target_failure, pdus_response(in, bench_itt(b, 0), 0, NULL, 0); in->bytes[AT_RESPONSE] = 1;)
ANSWER(overflow, pdus_data_in(in, bench_itt(b, 0), 0, 0, zeros, 1024, true); in->bytes[1] |= ISCSI_OVERFLOW;)
ANSWER(r2t_for_read, pdus_r2t(in, bench_itt(b, 0), 5, 0, 0, 512);)
ANSWER(r2t_too_long, pdus_r2t(in, bench_itt(b, 1), 5, 0, 0, 513);)
ANSWER(r2t_beyond, pdus_r2t(in, bench_itt(b, 1), 5, 0, 1000, 100);)
ANSWER(r2t_far_beyond, pdus_r2t(in, bench_itt(b, 1), 5, 0, 0xfffffff0, 100);)
ANSWER(r2t_of_nothing, pdus_r2t(in, bench_itt(b, 1), 5, 0, 512, 0);)
ANSWER(r2t_wrong_sn, pdus_r2t(in, bench_itt(b, 1), 5, 1, 512, 512);)
ANSWER(r2t_too_many, pdus_r2t(in, bench_itt(b, 1), 5, 0, 512, 256); pdus_r2t(in, bench_itt(b, 1), 6, 1, 768, 256);)
ANSWER(unknown_opcode, pdus_add(in, 0x3e, 0x80, 5); pdus_seal(in, NULL, 0);)
ANSWER(request_opcode, pdus_add(in, ISCSI_COMMAND, 0x80, 5); pdus_seal(in, NULL, 0);)
ANSWER(nop_for_nop, pdus_add(in, ISCSI_NOP_IN, 0x80, 5); pdus_seal(in, NULL, 0);)
ANSWER(logged_out, pdus_add(in, ISCSI_LOGOUT_RESPONSE, 0x80, 5); pdus_seal(in, NULL, 0);)
ANSWER(huge, pdus_add(in, ISCSI_NOP_IN, 0x80, ISCSI_NO_TAG); pdus_seal(in, NULL, 0);
       iscsiw_put24(in->bytes + AT_LENGTH, 0xfffffc);)
ANSWER(drop, uint8_t *h = pdus_add(in, ISCSI_ASYNC, 0x80, ISCSI_NO_TAG); h[AT_EVENT] = 2; pdus_seal(in, NULL, 0);)
ANSWER(vendor_event, uint8_t *h = pdus_add(in, ISCSI_ASYNC, 0x80, ISCSI_NO_TAG); h[AT_EVENT] = 255;
       pdus_seal(in, NULL, 0);)
ANSWER(rejected, uint8_t *h = pdus_add(in, ISCSI_REJECT, 0x80, ISCSI_NO_TAG); h[2] = 9;
       uint8_t bad[48] = { ISCSI_COMMAND }; iscsiw_put32(bad + AT_ITT, bench_itt(b, 0)); pdus_seal(in, bad, 48);)
ANSWER(rejected_data, uint8_t *h = pdus_add(in, ISCSI_REJECT, 0x80, ISCSI_NO_TAG); h[2] = 9;
       uint8_t bad[48] = { ISCSI_DATA_OUT }; iscsiw_put32(bad + AT_ITT, bench_itt(b, 1)); pdus_seal(in, bad, 48);)
ANSWER(rejected_something, pdus_add(in, ISCSI_REJECT, 0x80, ISCSI_NO_TAG); pdus_seal(in, NULL, 0);)

static void endings(void **state) {
    static const char bad[] = "malformed reply";
    (void)state;
    ending(wrong_itt, true, 2, -EPROTO, bad);
    ending(twice, true, 2, 1024, NULL);
    ending(wrong_datasn, true, 2, -EPROTO, bad);
    ending(wrong_offset, true, 2, -EPROTO, bad);
    ending(starts_anew, true, 2, -EPROTO, bad);
    ending(too_much, true, 2, -EPROTO, bad);
    ending(data_for_write, true, 2, -EPROTO, bad);
    ending(data_missing, false, 1, -EIO, "data missing");
    ending(status_only, false, 1, -EIO, "data missing");
    ending(write_not_asked, false, 1, -EIO, "data missing");
    ending(conflict, false, 1, -EBUSY, "RESERVATION CONFLICT");
    ending(no_sense, false, 1, -EIO, "NO SENSE 00/00");
    ending(aca, false, 1, -EIO, "iSCSI error");
    ending(aborted, false, 1, -ECANCELED, "TASK ABORTED");
    ending(target_failure, false, 1, -EIO, "iSCSI error");
    ending(overflow, false, 1, -EPROTO, "residual overflow");
    ending(r2t_for_read, true, 2, -EPROTO, bad);
    ending(r2t_too_long, true, 2, -EPROTO, bad);
    ending(r2t_beyond, true, 2, -EPROTO, bad);
    ending(r2t_far_beyond, true, 2, -EPROTO, bad);
    ending(r2t_of_nothing, true, 2, -EPROTO, bad);
    ending(r2t_wrong_sn, true, 2, -EPROTO, bad);
    ending(r2t_too_many, true, 2, -EPROTO, bad);
    ending(unknown_opcode, true, 2, -EPROTO, bad);
    ending(request_opcode, true, 2, -EPROTO, bad);
    ending(nop_for_nop, true, 2, -EPROTO, bad);
    ending(logged_out, true, 2, -EPROTO, bad);
    ending(huge, true, 2, -EPROTO, bad);
    ending(drop, true, 2, -ECONNRESET, "connection lost");
    ending(vendor_event, false, 0, 0, NULL);
    ending(rejected, false, 1, -EPROTO, "rejected");
    ending(rejected_data, false, 0, 0, NULL);
    ending(rejected_something, true, 2, -EPROTO, "rejected");
}

static void digest_errors(void **state) {
    static struct pdus in;
    struct bench b;
    (void)state;
    for (size_t at = 0; at < 48 + 4 + 1024 + 4; at += at == 4 ? 4 : 1) { /* a wrong length is a matter of its own */
        in = (struct pdus){
            .stat_sn = 0x50, .exp_cmd_sn = 0x101, .max_cmd_sn = 0x2000, .header_digest = true, .data_digest = true
        };
        bench_terms(&b.terms, 512, 512, 65536);
        b.terms.value[KEY_HEADER_DIGEST] = b.terms.value[KEY_DATA_DIGEST] = 1;
        bench_begin(&b, 1, -1);
        bench_request(&b, 0, IO_READ, 0, 1024);
        bench_send(&b, 1);
        pdus_data_in(&in, bench_itt(&b, 0), 0, 0, zeros, 1024, true);
        in.bytes[at] ^= 0x10;
        iscsibe_in_take(b.c, in.bytes, in.len, 1);
        assert_true(b.c->lost);
        assert_int_equal(b.c->reply_n, 1);
        assert_int_equal(b.c->reply[0].result, -EBADMSG);
        assert_string_equal(bench_kind(&b, 0), "digest error");
        bench_end(&b);
    }
}

/* StatSN: gaps are counted, and what follows is counted on from there; an old one changes nothing. */
static void status_numbers(void **state) {
    struct bench b;
    struct pdus in = { .stat_sn = 0x50, .exp_cmd_sn = 0x104, .max_cmd_sn = 0x2000 };
    (void)state;
    bench_terms(&b.terms, 65536, 65536, 65536);
    bench_begin(&b, 4, -1);
    for (unsigned i = 0; i < 4; i++) bench_request(&b, i, i & 1 ? IO_WRITE : IO_READ, 4096 * i, 512);
    bench_send(&b, 4);
    pdus_data_in(&in, bench_itt(&b, 0), 0, 0, zeros, 512, true);
    in.stat_sn = 0x60;
    pdus_response(&in, bench_itt(&b, 1), 0, NULL, 0);
    pdus_data_in(&in, bench_itt(&b, 2), 0, 0, zeros, 512, true);
    in.stat_sn = 0x50;
    pdus_response(&in, bench_itt(&b, 3), 0, NULL, 0);
    iscsibe_in_take(b.c, in.bytes, in.len, 1);
    assert_int_equal(b.c->reply_n, 4);
    assert_int_equal(b.c->counts.gaps, 2);
    assert_int_equal(b.c->exp_stat_sn, 0x62);
    bench_end(&b);
}

/* An answer to a WRITE whose data still stands in `out`: the buffer is given back only when that has gone. */
static void early_answer(void **state) {
    static const uint8_t sense[] = { 0x72, 0x07, 0x27, 0x00, 0, 0, 0, 0 };
    (void)state;
    for (unsigned good = 0; good < 2; good++) {
        struct bench b;
        struct pdus in = { .stat_sn = 0x50, .exp_cmd_sn = 0x101, .max_cmd_sn = 0x2000 };
        bench_terms(&b.terms, 65536, 65536, 65536);
        bench_begin(&b, 1, -1);
        b.list[0] = bench_request(&b, 0, IO_WRITE, 0, 4096);
        assert_int_equal(iscsibe_out_commands(b.c, b.list, 1), 1);
        assert_int_equal(iscsibe_out_sent(b.c, 100, b.list, 1), 1);
        pdus_response(&in, bench_itt(&b, 0), good ? 0 : 2, sense, good ? 0 : sizeof sense);
        iscsibe_in_take(b.c, in.bytes, in.len, 1);
        assert_int_equal(b.c->reply_n, 0);
        assert_int_equal(b.c->lent, 1);
        iscsibe_out_sent(b.c, b.c->out.total, NULL, 0);
        assert_int_equal(b.c->reply_n, 1);
        assert_int_equal(b.c->reply[0].result, good ? 4096 : -EROFS);
        if (!good) assert_string_equal(bench_kind(&b, 0), "DATA PROTECT 27/00");
        bench_end(&b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(retries),       cmocka_unit_test(durable_without_fua),
        cmocka_unit_test(sync_falls_back),
        cmocka_unit_test(write_through), cmocka_unit_test(endings),
        cmocka_unit_test(digest_errors), cmocka_unit_test(status_numbers),      cmocka_unit_test(early_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
