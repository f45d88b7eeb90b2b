/* SPDX-License-Identifier: GPL-2.0-or-later */
/* engine=native, what goes wrong: lost connections, timeouts, and everything that a server can say. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "tests/unit/nfs_rig.h"

/* ---- the end ---- */

/* Everything that is lent comes back once, then the context says why, for ever. */
static void check_lost(struct rig *r, unsigned want, int error, const char *kind, unsigned at_once) {
    unsigned got = 0;
    while (got < want) {
        int n = reap(r, at_once, 1, NS_PER_SEC);
        assert_true(n > 0);
        for (int i = 0; i < n; i++) {
            assert_int_equal(r->done[i].result, -error);
            assert_string_equal(kind_of(r, (unsigned)i), kind);
        }
        got += (unsigned)n;
    }
    assert_int_equal(lent(r), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(reap(r, r->depth, 1, NS_PER_SEC), -error);
        assert_int_equal(submit(r, 0, 1), -error);
    }
}

static void lost_in_reply(size_t cut, unsigned conns, unsigned at_once) {
    struct rig *r = rig_new(&(struct setup){.depth = 20, .conns = conns, .write = true});
    for (unsigned i = 0; i < 20; i++) prepare(r, i, i % 2 ? IO_WRITE : IO_READ, i * 4096, 600);
    assert_int_equal(submit(r, 0, 20), 20);
    peer_read(r->peer, SIZE_MAX);
    answer(r->peer, &r->peer->call[0], &plain);
    answer(r->peer, &r->peer->call[1], &plain);
    size_t two = r->peer->out.n;
    answer(r->peer, &r->peer->call[2], &plain);
    peer_send(r->peer, two + cut);
    close(r->peer->fd);
    r->peer->fd = -1;
    unsigned well = 0;
    while (well < 2) {
        int n = reap(r, 2, 2, NS_PER_SEC);
        assert_true(n > 0);
        for (int i = 0; i < n; i++) assert_int_equal(r->done[i].result, 600);
        well += (unsigned)n;
    }
    check_lost(r, 18, ECONNRESET, "connection lost", at_once);
    rig_free(r);
}

static void test_lost(void **state) {
    (void)state;
    for (size_t cut = 0; cut < 700; cut += 3) {
        lost_in_reply(cut, 1, 20);
        lost_in_reply(cut, 3, 5);
    }
}

/* While bytes wait to be sent: what had arrived before is still delivered. */
static void test_lost_while_sending(void **state) {
    (void)state;
    struct rig *r = rig_new(&(struct setup){.depth = 256, .write = true});
    for (unsigned i = 0; i < 256; i++) prepare(r, i, IO_WRITE, i * 4096, 4096);
    int taken = submit(r, 0, 256);
    assert_in_range(taken, 2, 255);
    peer_read(r->peer, 10000);
    assert_int_equal(r->peer->n_calls, 2);
    answer_all(r->peer);
    peer_send(r->peer, SIZE_MAX);
    shutdown(r->peer->fd, SHUT_RDWR);
    int again = submit(r, (unsigned)taken, 256);
    assert_true(again == 0);
    assert_int_equal(reap(r, 2, 2, NS_PER_SEC), 2);
    assert_int_equal(r->done[0].result, 4096);
    check_lost(r, (unsigned)taken - 2, ECONNRESET, "connection lost", 256);
    rig_free(r);
}

static void test_malformed(void **state) {
    (void)state;
    struct rig *r = rig_new(&(struct setup){.depth = 4});
    for (unsigned i = 0; i < 4; i++) prepare(r, i, IO_READ, 0, 512);
    assert_int_equal(submit(r, 0, 4), 4);
    peer_read(r->peer, SIZE_MAX);
    add_bytes(&r->peer->out, "HTTP/1.1 400 Bad Request\r\n\r\n", 28);
    peer_send(r->peer, SIZE_MAX);
    check_lost(r, 4, EPROTO, "malformed reply", 4);
    assert_non_null(strstr(r->kinds.kind[0].text, "record mark of 48545450"));
    rig_free(r);
}

/* Answered before it was sent: the buffer may not go back to its owner while bytes of it are still to be sent. */
static void test_reply_too_early(void **state) {
    (void)state;
    struct rig *r = rig_new(&(struct setup){.depth = 2, .write = true, .stride = 1 << 20, .sndbuf = 8192});
    for (unsigned i = 0; i < 2; i++) prepare(r, i, IO_WRITE, 0, 1 << 20);
    assert_int_equal(submit(r, 0, 2), 1);
    struct nfswire_call *call = &r->c->calls[0];
    reply_write(&r->peer->out, call->xid, 1 << 20, 0, "verifier", &plain);
    peer_send(r->peer, SIZE_MAX);
    check_lost(r, 1, EPROTO, "malformed reply", 2);
    assert_non_null(strstr(r->kinds.kind[0].text, "not sent completely"));
    rig_free(r);
}

/* How long a call may take is only made short when the one that must not grow old has come back: a slow machine is no
 * reason to fail. */
static void test_timeout(void **state) {
    (void)state;
    for (unsigned conns = 1; conns <= 2; conns++) {
        const int64_t at_once = 1, ample = 100 * NS_PER_SEC;
        struct rig *r = rig_new(&(struct setup){.depth = 4, .conns = conns, .timeout = at_once});
        for (unsigned i = 0; i < 4; i++) prepare(r, i, IO_READ, 0, 512);
        for (int i = 0; i < 5; i++)
            assert_int_equal(reap(r, 4, 1, NS_PER_MS), 0); /* nothing is out: nothing grows old */
        r->c->timeout = ample;
        assert_int_equal(submit(r, 0, 4), 4);
        peer_read(r->peer, SIZE_MAX);
        if (r->peer->n_calls) answer(r->peer, &r->peer->call[0], &plain);
        peer_send(r->peer, SIZE_MAX);
        assert_int_equal(reap(r, 1, 1, 10 * NS_PER_SEC), 1);
        assert_int_equal(r->done[0].result, 512);
        r->c->timeout = at_once;
        check_lost(r, 3, ETIMEDOUT, "timeout", 4);
        rig_free(r);
    }
}

/* ---- what a server says ---- */

static void one(struct rig *r, enum io_op op, enum io_sync sync) {
    prepare(r, 0, op, 0, op == IO_FLUSH ? 0 : 4096)->sync = (uint8_t)sync;
    assert_int_equal(submit(r, 0, 1), 1);
    peer_read(r->peer, SIZE_MAX);
    r->peer->answered = r->peer->n_calls;
}

static void back(struct rig *r, int64_t result, const char *kind) {
    peer_send(r->peer, SIZE_MAX);
    assert_int_equal(reap(r, 1, 1, NS_PER_SEC), 1);
    assert_int_equal(r->done[0].result, result);
    if (kind) assert_string_equal(kind_of(r, 0), kind);
}

static uint32_t last_xid(const struct rig *r) {
    return r->peer->call[r->peer->n_calls - 1].xid;
}

static void test_errors(void **state) {
    (void)state;
    struct rig *r = rig_new(&(struct setup){.depth = 1, .write = true});
    one(r, IO_WRITE, SYNC_NONE);
    reply_status(&r->peer->out, last_xid(r), 28, &plain);
    back(r, -ENOSPC, "NFS3ERR_NOSPC");
    one(r, IO_READ, SYNC_NONE);
    reply_status(&r->peer->out, last_xid(r), 4711, &plain);
    back(r, -EIO, "NFS3ERR 4711");
    one(r, IO_READ, SYNC_NONE);
    reply_denied(&r->peer->out, last_xid(r), 1, 5, &plain);
    back(r, -EIO, "RPC error");
    assert_non_null(strstr(r->kinds.kind[r->done[0].kind].text, "AUTH_TOOWEAK"));
    one(r, IO_READ, SYNC_NONE);
    reply_accept(&r->peer->out, last_xid(r), 5, &plain);
    back(r, -EIO, "RPC error");
    one(r, IO_READ, SYNC_NONE);
    reply_read(&r->peer->out, last_xid(r), 0, 4100, &plain);
    back(r, -EPROTO, "bad reply");
    rig_free(r);
}

static void test_durability(void **state) {
    static const uint32_t asked[] = {[SYNC_NONE] = 0, [SYNC_DATASTORE] = 2, [SYNC_DSYNC] = 1, [SYNC_SYNC] = 2};
    (void)state;
    struct rig *r = rig_new(&(struct setup){.depth = 1, .write = true});
    for (int sync = SYNC_NONE; sync <= SYNC_SYNC; sync++) {
        for (uint32_t committed = 0; committed <= 2; committed++) {
            one(r, IO_WRITE, (enum io_sync)sync);
            assert_int_equal(r->peer->call[r->peer->n_calls - 1].stable, asked[sync]);
            reply_write(&r->peer->out, last_xid(r), 4096, committed, "verifier", &plain);
            if (committed < asked[sync]) {
                back(r, -EIO, "committed lower than asked");
            } else {
                back(r, 4096, NULL);
                assert_int_equal(r->done[0].stable, committed >= 1);
            }
        }
    }
    assert_int_equal(counter(r, "writes_unstable"), 3);
    assert_int_equal(counter(r, "writes_datasync"), 3);
    assert_int_equal(counter(r, "writes_filesync"), 6);
    assert_int_equal(counter(r, "answered_datasync"), 4);
    rig_free(r);
}

static void test_verifier(void **state) {
    (void)state;
    struct rig *r = rig_new(&(struct setup){.depth = 1, .write = true});
    one(r, IO_WRITE, SYNC_NONE);
    reply_write(&r->peer->out, last_xid(r), 4096, 0, "verifier", &plain);
    back(r, 4096, NULL);
    one(r, IO_FLUSH, SYNC_NONE);
    reply_commit(&r->peer->out, last_xid(r), "verifier", &plain);
    back(r, 0, NULL);
    one(r, IO_WRITE, SYNC_NONE);        /* a restart after the COMMIT loses nothing */
    reply_write(&r->peer->out, last_xid(r), 4096, 0, "VERIFIER", &plain);
    back(r, 4096, NULL);
    one(r, IO_FLUSH, SYNC_NONE);        /* one before it does */
    reply_commit(&r->peer->out, last_xid(r), "vERIFIER", &plain);
    back(r, -EIO, "write verifier changed");
    assert_int_equal(counter(r, "verifier_changes"), 2);
    assert_int_equal(counter(r, "commits"), 2);
    rig_free(r);
}

/* A context for reading: no WRITE is ever sent, and the order of a batch is kept. */
static void test_reading_context(void **state) {
    (void)state;
    struct rig *r = rig_new(&(struct setup){.depth = 6});
    for (unsigned i = 0; i < 6; i++) prepare(r, i, i % 2 ? IO_WRITE : IO_READ, i * 4096, 512);
    assert_int_equal(submit(r, 0, 6), 6);
    peer_read(r->peer, SIZE_MAX);
    assert_int_equal(r->peer->n_calls, 3);
    for (unsigned i = 0; i < 3; i++) assert_int_equal(r->peer->call[i].procedure, 6);
    answer_all(r->peer);
    peer_send(r->peer, SIZE_MAX);
    unsigned refused = 0;
    while (lent(r)) {
        int n = reap(r, 2, 1, NS_PER_SEC);
        assert_true(n > 0);
        for (int i = 0; i < n; i++) {
            if (r->done[i].request->op == IO_READ) {
                assert_int_equal(r->done[i].result, 512);
            } else {
                assert_string_equal(kind_of(r, (unsigned)i), "write on a reading context");
                refused++;
            }
        }
    }
    assert_int_equal(refused, 3);
    rig_free(r);
}

/* detach takes in what is still on its way, and then closes. */
static void test_detach(void **state) {
    (void)state;
    struct rig *r = rig_new(&(struct setup){.depth = 8, .conns = 2});
    char byte;
    for (unsigned i = 0; i < 8; i++) prepare(r, i, IO_READ, 0, 4096);
    assert_int_equal(submit(r, 0, 8), 8);
    for (unsigned i = 0; i < 2; i++) {
        peer_read(&r->peer[i], SIZE_MAX);
        answer_all(&r->peer[i]);
        peer_send(&r->peer[i], SIZE_MAX);
    }
    nfsnative_detach(r->c);
    r->c = NULL;
    for (unsigned i = 0; i < 8; i++) check_read(r, i);
    for (unsigned i = 0; i < 2; i++) assert_int_equal(recv(r->peer[i].fd, &byte, 1, MSG_DONTWAIT), 0);
    rig_free(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lost),
        cmocka_unit_test(test_lost_while_sending),
        cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_reply_too_early),
        cmocka_unit_test(test_timeout),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_durability),
        cmocka_unit_test(test_verifier),
        cmocka_unit_test(test_reading_context),
        cmocka_unit_test(test_detach),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
