/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The native iSCSI engine on a socket, whose other end is a target in this file that does what it is told: odd R2Ts, no
 * reading before its replies are read, an end in the middle of a PDU. One thread; nobody waits. */
#include "tests/unit/iscsi_pdus.h"
#include "tests/unit/rounds.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/rng.h"

#define DISK (1u << 20)
#define DEPTH 16u

struct target_write { uint32_t itt, at, len, asked, got, r2t_sn, bursts; uint8_t in_order[128]; bool used; };

struct target {
    int fd;
    struct pdus out;                /* from `sent` on, not yet written */
    size_t sent;
    uint8_t in[300000];
    size_t have;
    uint8_t disk[DISK];
    struct target_write write[DEPTH];
    uint32_t immediate_max, unsolicited_max, burst_max, r2t_max, ttt;
    uint32_t expected_cmd_sn;
    struct rng rng;
    bool replies_first;             /* reads nothing while it has something to write */
    bool status_alone;              /* Data-In without status, then a SCSI Response */
    size_t most;                    /* bytes to write before the connection is closed */
    unsigned busy;                  /* so many commands are turned away */
    unsigned commands, nops, logouts;
};

static struct target target;
static struct bench bench;

static struct target_write *find(uint32_t itt) {
    for (unsigned i = 0; i < DEPTH; i++)
        if (target.write[i].used && target.write[i].itt == itt) return &target.write[i];
    fail_msg("Data-Out for no command");
    return NULL;
}

/* Asks for what is missing, in bursts of any size; the last of several first. */
static void ask(struct target_write *w) {
    while (w->asked < w->len && w->bursts < target.r2t_max) {
        uint32_t left = w->len - w->asked, n = 1 + (uint32_t)rng_below(&target.rng, target.burst_max);
        if (n > left) n = left;
        pdus_r2t(&target.out, w->itt, ++target.ttt, w->r2t_sn++, w->asked, n);
        w->asked += n;
        w->bursts++;
    }
}

static void data_arrived(struct target_write *w, const uint8_t *data, uint32_t at, uint32_t len, bool last_of_burst) {
    assert_true(at + len <= w->len);
    memcpy(target.disk + w->at + at, data, len);
    w->got += len;
    if (last_of_burst) w->bursts--;
    if (w->got == w->len) {
        assert_int_equal(w->bursts, 0);
        w->used = false;
        pdus_response(&target.out, w->itt, 0, NULL, 0);
    } else if (last_of_burst) {
        ask(w);
    }
}

static void serve_read(uint32_t itt, uint32_t at, uint32_t len) {
    for (uint32_t sn = 0, done = 0; done < len; sn++) {
        uint32_t n = rng_below(&target.rng, 3) ? 1 + (uint32_t)rng_below(&target.rng, len) : len;
        if (n > len - done) n = len - done;
        pdus_data_in(&target.out, itt, sn, done, target.disk + at + done, n, done + n == len && !target.status_alone);
        done += n;
    }
    if (target.status_alone) pdus_response(&target.out, itt, 0, NULL, 0);
}

static void serve_write(const uint8_t *h, const uint8_t *data, uint32_t now, uint32_t at, uint32_t len) {
    unsigned i = 0;
    while (target.write[i].used) i++;
    struct target_write *w = &target.write[i];
    *w = (struct target_write){ .used = true, .itt = iscsiw_get32(h + AT_ITT), .at = at, .len = len, .bursts = 1 };
    bool more = !(h[1] & ISCSI_FINAL); /* then the unsolicited burst goes on, up to the limit */
    assert_true(now <= target.immediate_max);
    w->asked = more ? target.unsolicited_max < len ? target.unsolicited_max : len : now;
    data_arrived(w, data, 0, now, !more);
}

static void serve(const uint8_t *h, const uint8_t *data, uint32_t len) {
    uint32_t itt = iscsiw_get32(h + AT_ITT), at = iscsiw_get32(h + 38) * 512,
             expect = iscsiw_get32(h + AT_EXPECTED_LENGTH);
    if ((h[0] & ISCSI_OPCODE) == ISCSI_COMMAND) {
        assert_int_equal(iscsiw_get32(h + AT_CMD_SN), target.expected_cmd_sn++);
        target.out.exp_cmd_sn = target.expected_cmd_sn;
        target.out.max_cmd_sn = target.expected_cmd_sn + DEPTH - 1;
        target.commands++;
        if (target.busy && h[AT_CDB] != 0x8a) {
            target.busy--;
            pdus_response(&target.out, itt, 8 + 0x20 * (target.busy & 1), NULL, 0);
            return;
        }
    }
    switch (h[0]) {
    case ISCSI_COMMAND:
        if (h[AT_CDB] == 0x88) serve_read(itt, at, expect);
        else if (h[AT_CDB] == 0x8a) serve_write(h, data, len, at, expect);
        else pdus_response(&target.out, itt, 0, NULL, 0);
        if (rng_below(&target.rng, 8) == 0) pdus_nop_in(&target.out, 0x77);
        break;
    case ISCSI_DATA_OUT: data_arrived(find(itt), data, iscsiw_get32(h + AT_OFFSET), len, h[1] & ISCSI_FINAL); break;
    case ISCSI_NOP_OUT | ISCSI_IMMEDIATE:
        assert_int_equal(iscsiw_get32(h + AT_TTT), 0x77);
        target.nops++;
        break;
    case ISCSI_LOGOUT | ISCSI_IMMEDIATE:
        target.logouts++;
        pdus_add(&target.out, ISCSI_LOGOUT_RESPONSE, ISCSI_FINAL, itt);
        target.out.stat_sn++;
        pdus_seal(&target.out, NULL, 0);
        break;
    default: fail_msg("opcode %02x", h[0]);
    }
}

static void check_digest(const uint8_t *p, size_t len) {
    uint32_t told;
    memcpy(&told, p + len, 4);
    assert_int_equal(le32toh(told), iscsibe_crc32c(0, p, len));
}

/* PDUs that are there in whole. */
static void serve_all(void) {
    size_t at = 0, hd = target.out.header_digest ? 4 : 0;
    for (;;) {
        const uint8_t *h = target.in + at;
        if (target.have - at < 48) break;
        uint32_t len = iscsiw_get24(h + AT_LENGTH), padded = len + iscsiw_padding(len);
        size_t dd = target.out.data_digest && len ? 4 : 0, all = 48 + hd + padded + dd;
        assert_true(all < sizeof target.in);
        if (target.have - at < all) break;
        if (hd) check_digest(h, 48);
        if (dd) check_digest(h + 48 + hd, padded);
        serve(h, h + 48 + hd, len);
        at += all;
    }
    memmove(target.in, target.in + at, target.have - at);
    target.have -= at;
}

static void hang_up(void) {
    close(target.fd);
    target.fd = -1;
}

/* The target's turn. */
static void turn(void) {
    ssize_t n = 1;
    while (target.sent < target.out.len && n > 0) {
        size_t left = target.out.len - target.sent;
        if (left > target.most) left = target.most;
        n = left ? send(target.fd, target.out.bytes + target.sent, left, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
        if (n > 0) {
            target.sent += (size_t)n;
            target.most -= (size_t)n;
        }
        if (target.most == 0) {
            hang_up();
            return;
        }
    }
    memmove(target.out.bytes, target.out.bytes + target.sent, target.out.len - target.sent);
    target.out.len -= target.sent;
    target.sent = 0;
    if (target.replies_first && target.out.len) return;
    if (target.out.len > 1u << 17) return; /* enough for now: there is room for what all slots together can ask */
    n = recv(target.fd, target.in + target.have, sizeof target.in - target.have, MSG_DONTWAIT);
    if (n <= 0) return;
    target.have += (size_t)n;
    serve_all();
}

/* ---- both sides ---- */

static void begin(uint32_t immediate, uint32_t unsolicited, uint32_t burst, uint32_t segment, bool header, bool data) {
    int fd[2], small = 4096;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    for (int i = 0; i < 2; i++) {
        setsockopt(fd[i], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
        setsockopt(fd[i], SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    }
    memset(&target, 0, sizeof target);
    uint32_t first = immediate > unsolicited ? immediate : unsolicited ? unsolicited : 512;
    target.fd = fd[1];
    target.out = (struct pdus){ .stat_sn = 0x50, .exp_cmd_sn = 0x100, .max_cmd_sn = 0x200, .header_digest = header,
                                .data_digest = data };
    target.immediate_max = immediate;
    target.unsolicited_max = unsolicited;
    target.burst_max = burst;
    target.r2t_max = 3;
    target.expected_cmd_sn = 0x100;
    target.most = SIZE_MAX;
    rng_seed(&target.rng, 99);
    rng_fill(&target.rng, target.disk, sizeof target.disk);
    bench_terms(&bench.terms, first, burst, segment);
    bench.terms.value[KEY_IMMEDIATE_DATA] = immediate != 0;
    bench.terms.value[KEY_INITIAL_R2T] = unsolicited == 0;
    bench.terms.value[KEY_HEADER_DIGEST] = header;
    bench.terms.value[KEY_DATA_DIGEST] = data;
    bench.terms.value[KEY_MAX_R2T] = 3;
    bench_begin(&bench, DEPTH, fd[0]);
}

static void end(void) {
    if (target.fd >= 0) close(target.fd); /* so that detach has nobody to wait for */
    iscsibe_native_detach(bench.c);
    bench_free(&bench);
}

/* Slots' areas do not overlap, so that what is read is known. */
static void prepare(unsigned slot) {
    uint32_t area = DISK / DEPTH, most = rng_below(&target.rng, 2) ? 128 : 16;
    uint32_t len = 512 * (1 + (uint32_t)rng_below(&target.rng, most));
    uint64_t at = slot * area + 512 * rng_below(&target.rng, (area - len) / 512 + 1);
    enum io_op op = rng_below(&target.rng, 40) == 0 ? IO_FLUSH : rng_below(&target.rng, 2) ? IO_READ : IO_WRITE;
    struct request *r = bench_request(&bench, slot, op, at, len);
    if (op == IO_WRITE) rng_fill(&target.rng, r->buf, len);
    else memset(r->buf, 0xee, len);
}

static void check(const struct completion *d, bool *lent) {
    const struct request *r = d->request;
    assert_true(lent[r->slot]);
    lent[r->slot] = false;
    if (d->result < 0) fail_msg("%s: %s", bench.kinds.kind[d->kind].name, bench.kinds.kind[d->kind].text);
    if (r->op == IO_FLUSH) return;
    assert_int_equal(d->result, r->len);
    assert_memory_equal(r->buf, target.disk + r->offset, r->len);
}

/* `n` requests; the engine and the target take turns. */
static void load(unsigned n) {
    bool lent[DEPTH] = { false };
    unsigned issued = 0, back = 0, idle = 0;
    while (back < n) {
        unsigned offered = 0;
        for (unsigned slot = 0; slot < DEPTH && issued + offered < n; slot++) {
            if (lent[slot]) continue;
            prepare(slot);
            bench.list[offered++] = &bench.request[slot];
        }
        int took = offered ? iscsibe_native_submit(bench.c, bench.list, offered) : 0;
        assert_true(took >= 0 && (unsigned)took <= offered);
        for (int i = 0; i < took; i++) lent[bench.list[i]->slot] = true;
        issued += (unsigned)took;
        turn();
        int got = iscsibe_native_reap(bench.c, bench.done, 1 + (unsigned)rng_below(&target.rng, DEPTH), 0, 0);
        if (got < 0) fail_msg("lost: %s", bench.kinds.kind[0].text);
        for (int i = 0; i < got; i++) check(&bench.done[i], lent);
        back += (unsigned)got;
        idle = took || got ? 0 : idle + 1;
        assert_true(idle < 10000);
    }
    assert_int_equal(bench.c->lent, 0);
}

static void loads(void **state) {
    static const struct { uint32_t immediate, unsolicited, burst, segment;
    } v[] = {
        { 0, 0, 1003, 8192 },      { 512, 0, 4096, 512 },        { 4096, 8192, 5001, 1000 },
        { 0, 8192, 65536, 65536 }, { 2048, 2048, 262144, 2048 },
    };
    (void)state;
    for (unsigned i = 0; i < sizeof v / sizeof v[0]; i++)
        for (unsigned k = 0; k < 8; k++) {
            begin(v[i].immediate, v[i].unsolicited, v[i].burst, v[i].segment, k & 1, k & 2);
            target.replies_first = k & 4;
            target.status_alone = k % 3 == 0;
            load(rounds(300, 30));
            assert_true(bench.c->counts.r2ts > 0 || v[i].burst > 32768);
            assert_true(target.nops > 0 || rounds(0, 1)); /* few rounds may be too few for one */
            assert_int_equal(bench.c->counts.gaps, 0);
            assert_int_equal(bench.c->counts.commands, target.commands);
            end();
        }
}

/* The target stops reading until its replies are read, with both directions full: this must not stand still. */
static void both_full(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        begin(65536, 65536, 65536, 65536, false, i);
        target.replies_first = true;
        load(500);
        assert_true(bench.c->counts.full > 0);
        end();
    }
}

static void busy(void **state) {
    bool lent[DEPTH] = { false };
    (void)state;
    begin(512, 0, 512, 512, false, false);
    target.busy = 5;
    for (unsigned i = 0; i < 4; i++) bench.list[i] = bench_request(&bench, i, IO_READ, i * 65536u, 4096);
    assert_int_equal(iscsibe_native_submit(bench.c, bench.list, 4), 4);
    for (unsigned i = 0; i < 4; i++) lent[i] = true;
    unsigned back = 0, rounds = 0;
    while (back < 4 && rounds++ < 100000) {
        turn();
        int got = iscsibe_native_reap(bench.c, bench.done, DEPTH, 0, 0);
        assert_true(got >= 0);
        for (int i = 0; i < got; i++) check(&bench.done[i], lent);
        back += (unsigned)got;
    }
    assert_int_equal(back, 4);
    assert_int_equal(target.commands, 9);
    assert_int_equal(bench.c->counts.again.kind[AGAIN_BUSY] + bench.c->counts.again.kind[AGAIN_TASK_SET_FULL], 5);
    assert_true(bench.c->counts.again.kind[AGAIN_BUSY] > 0 && bench.c->counts.again.kind[AGAIN_TASK_SET_FULL] > 0);
    end();
}

/* Everything that is out comes back, once, with an error; then, and only then, the context says that it is lost. */
static void collect(unsigned out, int error) {
    bool back[DEPTH] = { false };
    unsigned n = 0, rounds = 0;
    int got = 0;
    while (got >= 0 && rounds++ < 100000) {
        if (target.fd >= 0) turn();
        if (target.fd >= 0 && bench.c->lent == 0) hang_up(); /* all was answered before the end came */
        got = iscsibe_native_reap(bench.c, bench.done, 3, 0, 0);
        for (int i = 0; i < got; i++) {
            assert_false(back[bench.done[i].request->slot]);
            back[bench.done[i].request->slot] = true;
            n++;
        }
    }
    assert_int_equal(got, -error);
    assert_int_equal(n, out);
    assert_int_equal(iscsibe_native_submit(bench.c, bench.list, 1), -error);
    assert_int_equal(iscsibe_native_reap(bench.c, bench.done, 3, 1, NS_PER_SEC), -error);
}

static int submit_mixed(void) {
    for (unsigned i = 0; i < DEPTH; i++) {
        prepare(i);
        bench.list[i] = &bench.request[i];
    }
    int took = iscsibe_native_submit(bench.c, bench.list, DEPTH);
    assert_true(took > 0);
    return took;
}

static void lost_anywhere(void **state) {
    (void)state;
    for (size_t most = 1; most < 40000; most += 1 + most / 40) {
        begin(2048, 4096, 4096, 2048, most & 1, most & 2);
        target.most = most;
        int took = submit_mixed();
        unsigned rounds = 0;
        while (target.fd >= 0 && rounds++ < 1000) turn(); /* nothing is reaped before the end, as far as it gets */
        collect((unsigned)took, ECONNRESET);
        end();
    }
}

static void garbage(void **state) {
    (void)state;
    for (unsigned seed = 0; seed < 50; seed++) {
        uint8_t noise[300];
        struct rng rng;
        begin(2048, 4096, 4096, 2048, false, false);
        int took = submit_mixed();
        rng_seed(&rng, seed);
        rng_fill(&rng, noise, sizeof noise);
        noise[0] = 0x3a; /* no opcode */
        noise[4] = noise[5] = noise[6] = noise[7] = 0;
        assert_int_equal(send(target.fd, noise, sizeof noise, 0), sizeof noise);
        bool back[DEPTH] = { false };
        int got = iscsibe_native_reap(bench.c, bench.done, DEPTH, 1, 0);
        assert_int_equal(got, took);
        for (int i = 0; i < got; i++) {
            assert_int_equal(bench.done[i].result, -EPROTO);
            assert_string_equal(bench.kinds.kind[bench.done[i].kind].name, "malformed reply");
            assert_false(back[bench.done[i].request->slot]);
            back[bench.done[i].request->slot] = true;
        }
        assert_int_equal(iscsibe_native_reap(bench.c, bench.done, DEPTH, 1, 0), -EPROTO);
        end();
    }
}

static void timeout(void **state) {
    (void)state;
    begin(2048, 4096, 4096, 2048, false, false);
    bench.list[0] = bench_request(&bench, 0, IO_READ, 0, 4096);
    assert_int_equal(iscsibe_native_submit(bench.c, bench.list, 1), 1);
    bench.c->age += 29 * NS_PER_SEC;
    assert_int_equal(iscsibe_native_reap(bench.c, bench.done, DEPTH, 0, 0), 0);
    bench.c->age += 2 * NS_PER_SEC;
    assert_int_equal(iscsibe_native_reap(bench.c, bench.done, DEPTH, 0, 0), 1);
    assert_int_equal(bench.done[0].result, -ETIMEDOUT);
    assert_string_equal(bench.kinds.kind[bench.done[0].kind].name, "timeout");
    assert_int_equal(iscsibe_native_reap(bench.c, bench.done, DEPTH, 1, 0), -ETIMEDOUT);
    end();
}

/* What is out is answered; nothing more is taken; then a logout, and the end. */
static void logout_requested(void **state) {
    bool lent[DEPTH] = { false };
    (void)state;
    begin(2048, 0, 4096, 2048, false, false);
    bench.list[0] = bench_request(&bench, 0, IO_READ, 0, 4096);
    bench.list[1] = bench_request(&bench, 1, IO_READ, 65536, 4096);
    assert_int_equal(iscsibe_native_submit(bench.c, bench.list, 1), 1);
    lent[0] = true;
    uint8_t *h = pdus_add(&target.out, ISCSI_ASYNC, ISCSI_FINAL, ISCSI_NO_TAG);
    h[AT_EVENT] = 1;
    iscsiw_put16(h + AT_EVENT + 6, 10); /* within 10 s */
    target.out.stat_sn++;
    pdus_seal(&target.out, NULL, 0);
    assert_int_equal(send(target.fd, target.out.bytes, target.out.len, 0), target.out.len);
    target.out.len = 0;
    assert_int_equal(iscsibe_native_reap(bench.c, bench.done, DEPTH, 0, 0), 0);
    assert_int_equal(iscsibe_native_submit(bench.c, bench.list + 1, 1), 0);
    turn(); /* reads the command */
    turn(); /* answers it */
    int got = iscsibe_native_reap(bench.c, bench.done, DEPTH, 1, NS_PER_SEC);
    assert_int_equal(got, 1);
    check(&bench.done[0], lent);
    assert_int_equal(iscsibe_native_reap(bench.c, bench.done, DEPTH, 1, 0), -ESHUTDOWN);
    turn();
    assert_int_equal(target.logouts, 1);
    assert_int_equal(bench.c->counts.asyncs, 1);
    end();
}

static void refusals(void **state) {
    (void)state;
    begin(2048, 0, 4096, 2048, false, false);
    bench.c->may_write = false;
    bench.list[0] = bench_request(&bench, 0, IO_READ, 0, 4096);
    bench.list[1] = bench_request(&bench, 1, IO_WRITE, 0, 4096);
    bench.list[2] = bench_request(&bench, 2, IO_READ, 100, 4096);
    bench.list[3] = bench_request(&bench, 3, IO_READ, 0, 100);
    assert_int_equal(iscsibe_native_submit(bench.c, bench.list, 4), 1);
    for (unsigned i = 1; i < 4; i++) {
        assert_int_equal(iscsibe_native_submit(bench.c, bench.list + i, 4 - i), 1);
        assert_int_equal(iscsibe_native_reap(bench.c, bench.done, DEPTH, 1, 0), 1);
        assert_ptr_equal(bench.done[0].request, bench.list[i]);
        assert_int_equal(bench.done[0].result, i == 1 ? -EBADF : -EINVAL);
    }
    turn();
    turn();
    assert_int_equal(target.commands, 1);
    end();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loads),
        cmocka_unit_test(both_full),
        cmocka_unit_test(busy),
        cmocka_unit_test(lost_anywhere),
        cmocka_unit_test(garbage),
        cmocka_unit_test(timeout),
        cmocka_unit_test(logout_requested),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
