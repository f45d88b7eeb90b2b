/* SPDX-License-Identifier: GPL-2.0-or-later */
/* engine=native, requests that take more than one call: "try again later", short READs and WRITEs, flushes of several
 * servers, and stale file handles. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "backends/net/again.h"
#include "backends/net/sock.h"
#include "tests/unit/nfs_rig.h"

#define JUKEBOX 10008u
#define STALE 70u

/* Serves until the peer has a call that is not answered; it is the result. */
static const struct call *next_call(struct rig *r, unsigned conn) {
    struct peer *p = &r->peer[conn];
    int64_t end = sock_now() + 10 * NS_PER_SEC;
    while (p->answered == p->n_calls) {
        assert_true(sock_now() < end);
        assert_int_equal(reap(r, r->depth, 1, NS_PER_MS), 0);
        peer_read(p, SIZE_MAX);
    }
    return &p->call[p->answered++];
}

static bool no_call(struct rig *r, unsigned conn) {
    for (int i = 0; i < 5; i++) {
        assert_int_equal(reap(r, r->depth, 1, NS_PER_MS), 0);
        peer_read(&r->peer[conn], SIZE_MAX);
    }
    return r->peer[conn].answered == r->peer[conn].n_calls;
}

static void status(struct rig *r, unsigned conn, uint32_t code) {
    struct peer *p = &r->peer[conn];
    reply_status(&p->out, next_call(r, conn)->xid, code, &plain);
    peer_send(p, SIZE_MAX);
}

static void back(struct rig *r, int64_t result) {
    for (unsigned i = 0; i < r->n; i++) peer_send(&r->peer[i], SIZE_MAX);
    assert_int_equal(reap(r, r->depth, 1, 10 * NS_PER_SEC), 1);
    assert_int_equal(r->done[0].result, result);
}

static void begin(struct rig *r, unsigned slot, enum io_op op, uint64_t offset, uint32_t len, enum io_sync sync) {
    prepare(r, slot, op, offset, len)->sync = (uint8_t)sync;
    assert_int_equal(submit(r, slot, slot + 1), 1);
}

/* ---- try again later ---- */

static void test_pauses(void **state) {
    int64_t sum = 0;
    (void)state;
    assert_int_equal(again_pause(1), NS_PER_MS);
    for (unsigned i = 1; i < 100; i++) {
        assert_true(again_pause(i + 1) >= again_pause(i) && again_pause(i) <= NS_PER_SEC);
        sum += again_pause(i);
    }
    assert_int_equal(again_pause(99), NS_PER_SEC);
    assert_true(sum > 80 * NS_PER_SEC);
}

static void test_again(void **state) {
    (void)state;
    struct rig *r = rig_new(&(struct setup){.depth = 2, .write = true});
    for (enum io_op op = IO_READ; op <= IO_FLUSH; op++) {
        int64_t before = sock_now();
        begin(r, 0, op, 8192, op == IO_FLUSH ? 0 : 4000, SYNC_NONE);
        for (int i = 0; i < 3; i++) status(r, 0, JUKEBOX);
        answer(r->peer, next_call(r, 0), &plain);
        assert_true(sock_now() - before >= 7 * NS_PER_MS);
        back(r, op == IO_FLUSH ? 0 : 4000);
        if (op == IO_READ) check_read(r, 0);
        assert_true(r->done[0].t_done - r->request[0].t_submit >= 7 * NS_PER_MS); /* in its latency */
    }
    assert_int_equal(r->kinds.n, 0);
    assert_int_equal(counter(r, "retries"), 9);
    assert_int_equal(counter(r, "retries_jukebox"), 9);
    assert_in_range(counter(r, "retry_wait_ns"), 21 * NS_PER_MS, 10 * NS_PER_SEC);
    assert_int_equal(counter(r, "wire_ios"), 3); /* what was sent again is counted elsewhere */
    begin(r, 0, IO_READ, 0, 4000, SYNC_NONE); /* nothing of it is left */
    answer(r->peer, next_call(r, 0), &plain);
    back(r, 4000);
    assert_int_equal(counter(r, "wire_ios"), 4);
    rig_free(r);
}

/* One request waits; the others are served, and no call of reap takes longer than it may. */
static void test_others_go_on(void **state) {
    (void)state;
    struct rig *r = rig_new(&(struct setup){.depth = 8, .write = true});
    begin(r, 0, IO_WRITE, 0, 4096, SYNC_NONE);
    for (int i = 0; i < 9; i++) status(r, 0, JUKEBOX);
    for (unsigned i = 1; i < 8; i++) begin(r, i, IO_READ, i * 4096, 4096, SYNC_NONE);
    for (unsigned i = 1; i < 8; i++) answer(r->peer, next_call(r, 0), &plain);
    peer_send(r->peer, SIZE_MAX);
    assert_int_equal(reap(r, 8, 7, NS_PER_SEC), 7);
    for (unsigned i = 1; i < 8; i++) check_read(r, i);
    int64_t before = sock_now();
    uint64_t polls = counter(r, "polls");
    assert_int_equal(reap(r, 8, 1, 3 * NS_PER_MS), 0);
    assert_true(sock_now() - before >= 3 * NS_PER_MS);
    assert_true(counter(r, "polls") - polls < 10); /* it sleeps meanwhile */
    answer(r->peer, next_call(r, 0), &plain);
    back(r, 4096);
    rig_free(r);
}

/* Until it is as old as timeout= allows; then it fails alone. */
static void test_too_often(void **state) {
    (void)state;
    struct rig *r = rig_new(&(struct setup){.depth = 2, .timeout = 50 * NS_PER_MS});
    begin(r, 0, IO_READ, 0, 4096, SYNC_NONE);
    unsigned said = 0;
    while (lent(r)) {
        if (peer_read(r->peer, SIZE_MAX))
            for (; r->peer->answered < r->peer->n_calls; said++) status(r, 0, JUKEBOX);
        reap(r, 2, 1, NS_PER_MS);
    }
    assert_int_equal(r->done[0].result, -EBUSY);
    assert_string_equal(kind_of(r, 0), "NFS3ERR_JUKEBOX");
    /* On a slow machine the pause that would end behind the timeout comes earlier. */
    assert_true(r->done[0].t_done - r->request[0].t_submit >= 25 * NS_PER_MS);
    assert_in_range(said, 2, 12);
    assert_int_equal(counter(r, "retries"), said - 1);
    assert_int_equal(counter(r, "jukebox"), said);
    begin(r, 0, IO_READ, 0, 4096, SYNC_NONE); /* the connection is as good as it was */
    answer(r->peer, next_call(r, 0), &plain);
    back(r, 4096);
    rig_free(r);
}

/* ---- in parts ---- */

static void in_parts(const struct setup *s, enum io_op op, uint32_t part, uint32_t len) {
    struct rig *r = rig_new(s);
    unsigned calls = 0;
    begin(r, 1, op, 12288, len, SYNC_NONE);
    for (uint32_t done = 0; done < len; calls++) {
        const struct call *c = next_call(r, 0);
        uint32_t n = c->count < part ? c->count : part;
        assert_int_equal(c->offset, 12288 + done);
        assert_int_equal(c->count, len - done); /* all that is missing, no more */
        if (op == IO_READ) reply_read(&r->peer->out, c->xid, c->offset, n, &plain);
        else reply_write(&r->peer->out, c->xid, n, 0, "verifier", &plain);
        peer_send(r->peer, SIZE_MAX);
        done += n;
    }
    back(r, len);
    assert_int_equal(r->kinds.n, 0);
    if (op == IO_READ && !s->discard) check_read(r, 1);
    for (size_t i = 0; s->discard && i < len; i++) assert_int_equal(r->buffers[r->stride + i], 0);
    assert_int_equal(counter(r, op == IO_READ ? "short_reads" : "short_writes"), calls - 1);
    assert_int_equal(counter(r, "wire_ios"), calls);
    rig_free(r);
}

static void test_parts(void **state) {
    static const uint32_t parts[] = {1, 333, 1000, 2048, 4095};
    (void)state;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        uint32_t len = parts[i] == 1 ? 40 : 4096;
        in_parts(&(struct setup){.depth = 2, .write = true}, IO_READ, parts[i], len);
        in_parts(&(struct setup){.depth = 2, .write = true}, IO_WRITE, parts[i], len);
        in_parts(&(struct setup){.depth = 2, .discard = true}, IO_READ, parts[i], len);
    }
    in_parts(&(struct setup){.depth = 2, .stride = 300000, .sndbuf = 1 << 20}, IO_READ, 100000, 300000);
    in_parts(&(struct setup){.depth = 2, .write = true, .stride = 300000, .sndbuf = 16384}, IO_WRITE, 77777, 300000);
}

/* A write is as durable as the least of its parts, and its verifier is looked at in each. */
static void test_parts_of_a_write(void **state) {
    (void)state;
    struct rig *r = rig_new(&(struct setup){.depth = 1, .write = true});
    begin(r, 0, IO_WRITE, 0, 4096, SYNC_NONE);
    reply_write(&r->peer->out, next_call(r, 0)->xid, 1000, 2, "verifier", &plain);
    peer_send(r->peer, SIZE_MAX);
    reply_write(&r->peer->out, next_call(r, 0)->xid, 96, 0, "verifier", &plain);
    peer_send(r->peer, SIZE_MAX);
    reply_write(&r->peer->out, next_call(r, 0)->xid, 3000, 2, "verifier", &plain);
    back(r, 4096);
    assert_false(r->done[0].stable);
    begin(r, 0, IO_WRITE, 0, 4096, SYNC_SYNC);
    reply_write(&r->peer->out, next_call(r, 0)->xid, 1000, 1, "verifier", &plain);
    peer_send(r->peer, SIZE_MAX);
    reply_write(&r->peer->out, next_call(r, 0)->xid, 3096, 2, "verifier", &plain);
    back(r, -EIO);
    assert_string_equal(kind_of(r, 0), "committed lower than asked");
    begin(r, 0, IO_WRITE, 0, 4096, SYNC_NONE);
    reply_write(&r->peer->out, next_call(r, 0)->xid, 1000, 0, "verifier", &plain);
    peer_send(r->peer, SIZE_MAX);
    reply_write(&r->peer->out, next_call(r, 0)->xid, 3096, 0, "VERIFIER", &plain);
    back(r, -EIO);
    assert_string_equal(kind_of(r, 0), "write verifier changed");
    rig_free(r);
}

static void test_nothing_moves(void **state) {
    (void)state;
    struct rig *r = rig_new(&(struct setup){.depth = 1, .write = true});
    for (enum io_op op = IO_READ; op <= IO_WRITE; op++) {
        static const uint32_t moved[] = {0, 100, 0, 0};
        begin(r, 0, op, 4096, 4096, SYNC_NONE);
        for (int i = 0; i < 4; i++) {
            const struct call *c = next_call(r, 0);
            if (op == IO_READ) reply_read(&r->peer->out, c->xid, c->offset, moved[i], &plain);
            else reply_write(&r->peer->out, c->xid, moved[i], 0, "verifier", &plain);
            if (i < 3) peer_send(r->peer, SIZE_MAX);
        }
        back(r, 100); /* the caller calls that short */
        assert_string_equal(r->kinds.kind[op].name, op == IO_READ ? "short read" : "short write");
        assert_non_null(strstr(r->kinds.kind[op].text, "moved nothing, twice"));
        assert_non_null(strstr(r->kinds.kind[op].text, "4096 bytes at 4096 moved 100"));
    }
    rig_free(r);
}

static void test_end_of_file(void **state) {
    (void)state;
    struct rig *r = rig_new(&(struct setup){.depth = 1});
    begin(r, 0, IO_READ, 0, 4096, SYNC_NONE);
    size_t at = r->peer->out.n;
    reply_read(&r->peer->out, next_call(r, 0)->xid, 0, 1000, &plain);
    set_word(&r->peer->out, at + 4 + 6 * 4 + 4 + 21 * 4 + 8, 1); /* eof: behind the count */
    back(r, 1000);
    assert_string_equal(r->kinds.kind[0].name, "short read");
    assert_non_null(strstr(r->kinds.kind[0].text, "the file ends before"));
    assert_int_equal(counter(r, "sends"), 1);
    rig_free(r);
}

/* ---- flushes ---- */

static void write_on(struct rig *r, unsigned slot, unsigned conn, const char *verf) {
    while (r->c->turn != conn) r->c->turn = (r->c->turn + 1) % r->n;
    begin(r, slot, IO_WRITE, 0, 512, SYNC_NONE);
    reply_write(&r->peer[conn].out, next_call(r, conn)->xid, 512, 0, verf, &plain);
    back(r, 512);
}

static void commit_on(struct rig *r, unsigned conn, const char *verf) {
    const struct call *c = next_call(r, conn);
    assert_int_equal(c->procedure, 21);
    reply_commit(&r->peer[conn].out, c->xid, verf, &plain);
    peer_send(&r->peer[conn], SIZE_MAX);
}

/* Two servers: a COMMIT to each, and the flush is over with the last of them. */
static void test_two_servers(void **state) {
    (void)state;
    struct rig *r = rig_new(&(struct setup){.depth = 4, .conns = 3, .write = true});
    for (unsigned i = 0; i < 9; i++) write_on(r, 0, i % 3, i % 3 ? "server-b" : "server-a");
    begin(r, 0, IO_FLUSH, 0, 0, SYNC_NONE);
    commit_on(r, 0, "server-a");
    assert_true(no_call(r, 2));
    commit_on(r, 1, "server-b");
    back(r, 0);
    assert_int_equal(counter(r, "commits"), 2);
    assert_int_equal(counter(r, "wire_ios"), 10); /* one flush */
    assert_int_equal(counter(r, "verifier_changes"), 0);
    begin(r, 0, IO_FLUSH, 0, 0, SYNC_NONE);   /* nothing is at stake: one is asked all the same */
    for (unsigned i = 0; i < 3; i++) peer_read(&r->peer[i], SIZE_MAX);
    unsigned conn = 0;
    while (r->peer[conn].answered == r->peer[conn].n_calls) assert_true(++conn < 3);
    commit_on(r, conn, conn ? "server-b" : "server-a");
    back(r, 0);
    assert_int_equal(counter(r, "commits"), 3);
    rig_free(r);
}

/* One of them restarted: the flush fails, once; later writes and flushes are well. With "try again later" in between. */
static void test_one_restarts(void **state) {
    (void)state;
    struct rig *r = rig_new(&(struct setup){.depth = 4, .conns = 2, .write = true});
    for (unsigned i = 0; i < 4; i++) write_on(r, 0, i % 2, i % 2 ? "server-b" : "server-a");
    begin(r, 0, IO_FLUSH, 0, 0, SYNC_NONE);
    status(r, 1, JUKEBOX);
    commit_on(r, 0, "server-a");
    status(r, 1, JUKEBOX);
    commit_on(r, 1, "SERVER-B");
    back(r, -EIO);
    assert_string_equal(kind_of(r, 0), "write verifier changed");
    for (unsigned i = 0; i < 4; i++) write_on(r, 0, i % 2, i % 2 ? "SERVER-B" : "server-a");
    begin(r, 0, IO_FLUSH, 0, 0, SYNC_NONE);
    commit_on(r, 1, "SERVER-B");
    commit_on(r, 0, "server-a");
    back(r, 0);
    assert_int_equal(counter(r, "verifier_changes"), 1);
    rig_free(r);
}

/* As many flushes as there are slots, of as many servers as there are connections: all come back, once. */
static void test_many_flushes(void **state) {
    (void)state;
    static const char *const verf[] = {"server-a", "server-b", "server-c", "server-d"};
    struct rig *r = rig_new(&(struct setup){.depth = 32, .conns = 4, .write = true});
    for (unsigned i = 0; i < 4; i++) write_on(r, 0, i, verf[i]);
    unsigned taken = 0, back = 0;
    for (unsigned i = 0; i < 32; i++) prepare(r, i, IO_FLUSH, 0, 0);
    for (unsigned spins = 0; back < 32; spins++) {
        assert_true(spins < 1000);
        if (taken < 32) taken += (unsigned)submit(r, taken, 32);
        if (spins == 0) assert_in_range(taken, 1, 31);
        for (unsigned i = 0; i < 4; i++) {
            struct peer *p = &r->peer[i];
            peer_read(p, SIZE_MAX);
            for (; p->answered < p->n_calls; p->answered++)
                reply_commit(&p->out, p->call[p->answered].xid, verf[i], &plain);
            peer_send(p, SIZE_MAX);
        }
        int n = reap(r, 32, 0, 0);
        assert_true(n >= 0);
        for (int i = 0; i < n; i++) assert_int_equal(r->done[i].result, 0);
        back += (unsigned)n;
    }
    assert_int_equal(lent(r), 0);
    rig_free(r);
}

/* A connection that ends under a flush of several: it comes back once, as lost. */
static void test_flush_lost(void **state) {
    (void)state;
    struct rig *r = rig_new(&(struct setup){.depth = 4, .conns = 2, .write = true});
    for (unsigned i = 0; i < 2; i++) write_on(r, 0, i, i ? "server-b" : "server-a");
    begin(r, 0, IO_FLUSH, 0, 0, SYNC_NONE);
    commit_on(r, 0, "server-a");
    assert_int_equal(reap(r, 4, 1, NS_PER_MS), 0);
    shutdown(r->peer[1].fd, SHUT_RDWR);
    back(r, -ECONNRESET);
    assert_int_equal(reap(r, 4, 1, NS_PER_MS), -ECONNRESET);
    rig_free(r);
}

/* ---- stale handles ---- */

static const struct handle file = {.where = "server:/f", .fsid = 0x1100000022, .fileid = 7, .size = 1 << 20};

/* After STALE nothing is written before the server has said that it is the same file. */
static void test_stale(void **state) {
    (void)state;
    struct rig *r = rig_new(&(struct setup){.depth = 4, .write = true, .handle = &file});
    begin(r, 0, IO_WRITE, 0, 4096, SYNC_NONE);
    begin(r, 1, IO_WRITE, 4096, 4096, SYNC_NONE);
    const struct call *first = next_call(r, 0), *second = next_call(r, 0);
    reply_status(&r->peer->out, second->xid, JUKEBOX, &plain);
    reply_status(&r->peer->out, first->xid, STALE, &plain);
    peer_send(r->peer, SIZE_MAX);
    prepare(r, 2, IO_WRITE, 8192, 4096);
    prepare(r, 3, IO_READ, 8192, 4096);
    assert_int_equal(reap(r, 4, 1, NS_PER_MS), 0);
    assert_int_equal(submit(r, 2, 4), 0);
    const struct call *asked = next_call(r, 0);
    assert_int_equal(asked->procedure, 1);
    assert_true(no_call(r, 0)); /* neither what is new nor what waited */
    assert_int_equal(submit(r, 2, 4), 0);
    reply_getattr(&r->peer->out, asked->xid, 2 << 20, 7, &plain);
    back(r, -ESTALE);           /* that one failed by itself */
    assert_string_equal(kind_of(r, 0), "NFS3ERR_STALE");
    assert_int_equal(next_call(r, 0)->offset, 4096); /* the one that waited */
    r->peer->answered--;
    assert_int_equal(submit(r, 2, 4), 2);
    peer_read(r->peer, SIZE_MAX);
    answer_all(r->peer);
    peer_send(r->peer, SIZE_MAX);
    assert_int_equal(reap(r, 4, 3, NS_PER_SEC), 3);
    for (int i = 0; i < 3; i++) assert_int_equal(r->done[i].result, 4096);
    rig_free(r);
}

static void stale_and(uint32_t code, uint64_t size, uint32_t fileid, const char *words) {
    struct rig *r = rig_new(&(struct setup){.depth = 4, .conns = 2, .write = true, .handle = &file});
    begin(r, 0, IO_READ, 0, 4096, SYNC_NONE);
    unsigned conn = 0;
    peer_read(&r->peer[0], SIZE_MAX);
    conn = r->peer[0].n_calls ? 0 : 1;
    status(r, conn, STALE + (code == 10001 ? 9931 : 0));
    status(r, conn, JUKEBOX);                 /* GETATTR is asked again, too */
    const struct call *c = next_call(r, conn);
    assert_int_equal(c->procedure, 1);
    if (code) reply_status(&r->peer[conn].out, c->xid, code, &plain);
    else reply_getattr(&r->peer[conn].out, c->xid, size, fileid, &plain);
    back(r, -ESTALE);
    assert_string_equal(kind_of(r, 0), "file lost");
    assert_non_null(strstr(r->kinds.kind[r->done[0].kind].text, words));
    assert_int_equal(reap(r, 4, 1, NS_PER_MS), -ESTALE);
    assert_int_equal(submit(r, 2, 3), -ESTALE);
    rig_free(r);
}

static void test_gone(void **state) {
    (void)state;
    stale_and(STALE, 0, 0, "gone or was replaced (NFS3ERR_STALE)");
    stale_and(10001, 0, 0, "gone or was replaced (NFS3ERR_BADHANDLE)");
    stale_and(5, 0, 0, "did not say whether the file is still the same (NFS3ERR_IO)");
    stale_and(0, 1 << 20, 8, "another file");
    stale_and(0, (1 << 20) - 1, 7, "has shrunk");
}

/* No answer to the question: the server is lost, and what found the handle stale comes back with that. */
static void test_not_answered(void **state) {
    (void)state;
    struct rig *r = rig_new(&(struct setup){.depth = 4, .write = true, .handle = &file, .timeout = 20 * NS_PER_MS});
    begin(r, 0, IO_WRITE, 0, 4096, SYNC_NONE);
    status(r, 0, STALE);
    assert_int_equal(next_call(r, 0)->procedure, 1);
    assert_int_equal(reap(r, 4, 1, 10 * NS_PER_SEC), 1);
    assert_int_equal(r->done[0].result, -ETIMEDOUT);
    assert_int_equal(submit(r, 1, 2), -ETIMEDOUT);
    rig_free(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pauses),
        cmocka_unit_test(test_again),
        cmocka_unit_test(test_others_go_on),
        cmocka_unit_test(test_too_often),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_parts_of_a_write),
        cmocka_unit_test(test_nothing_moves),
        cmocka_unit_test(test_end_of_file),
        cmocka_unit_test(test_two_servers),
        cmocka_unit_test(test_one_restarts),
        cmocka_unit_test(test_many_flushes),
        cmocka_unit_test(test_flush_lost),
        cmocka_unit_test(test_stale),
        cmocka_unit_test(test_gone),
        cmocka_unit_test(test_not_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
