/* SPDX-License-Identifier: GPL-2.0-or-later */
/* engine=native, sending and receiving: requests and replies in all pieces, full sockets, several connections. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "backends/net/sock.h"
#include "tests/unit/nfs_rig.h"

/* ---- all goes well ---- */

static void mixed_load(const struct setup *s) {
    struct rig *r = rig_new(s);
    for (unsigned round = 0; round < 5; round++) {
        for (unsigned i = 0; i < r->depth; i++) {
            enum io_op op = i % 7 == 3 ? IO_FLUSH : i % 3 == 1 ? IO_WRITE : IO_READ;
            prepare(r, i, op, (uint64_t)round << 33 | (uint64_t)i << 12,
                    op == IO_FLUSH ? 0 : 1 + (i * 977 + round) % 4096);
        }
        unsigned taken = 0;
        for (unsigned spins = 0; taken < r->depth || lent(r); spins++) {
            assert_true(spins < 10000);
            if (taken < r->depth) {
                int k = submit(r, taken, r->depth);
                assert_true(k >= 0);
                taken += (unsigned)k;
            }
            for (unsigned i = 0; i < r->n; i++) {
                peer_read(&r->peer[i], SIZE_MAX);
                answer_all(&r->peer[i]);
                peer_send(&r->peer[i], SIZE_MAX);
            }
            int n = reap(r, r->depth, lent(r) ? 1 : 0, lent(r) ? NS_PER_MS : 0);
            assert_true(n >= 0);
            for (int i = 0; i < n; i++) {
                const struct request *q = r->done[i].request;
                assert_int_equal(r->done[i].result, q->op == IO_FLUSH ? 0 : q->len);
                assert_false(r->done[i].stable);
                if (q->op == IO_READ && !s->discard) check_read(r, q->slot);
            }
        }
        for (unsigned i = 0; i < r->n; i++) r->peer[i].n_calls = r->peer[i].answered = 0;
    }
    assert_int_equal(r->n_done, 5 * r->depth);
    assert_int_equal(counter(r, "wire_ios"), 5 * r->depth);
    assert_int_equal(counter(r, "stray_replies"), 0);
    rig_free(r);
}

static void test_mixed(void **state) {
    (void)state;
    for (unsigned conns = 1; conns <= MAX_CONNS; conns += 3)
        for (int wait = NFSBE_WAIT_BLOCK; wait <= NFSBE_WAIT_SPIN; wait++) {
            mixed_load(&(struct setup){.depth = 1, .conns = conns, .write = true, .wait = wait});
            mixed_load(&(struct setup){.depth = 33, .conns = conns, .write = true, .wait = wait});
            mixed_load(&(struct setup){.depth = 256, .conns = conns, .write = true, .wait = wait});
        }
}

/* Every call is cut somewhere: the rest of it goes on from where it was. */
static void test_small_send_buffers(void **state) {
    (void)state;
    mixed_load(&(struct setup){.depth = 64, .conns = 1, .write = true, .sndbuf = 4608});
    mixed_load(&(struct setup){.depth = 64, .conns = 4, .write = true, .sndbuf = 4608});
    mixed_load(&(struct setup){.depth = 7, .conns = 1, .write = true, .sndbuf = 1});
}

static void test_discard(void **state) {
    (void)state;
    struct rig *r = rig_new(&(struct setup){.depth = 1, .discard = true});
    prepare(r, 0, IO_READ, 4096, 4096);
    assert_int_equal(submit(r, 0, 1), 1);
    peer_read(r->peer, SIZE_MAX);
    answer_all(r->peer);
    peer_send(r->peer, SIZE_MAX);
    assert_int_equal(reap(r, 1, 1, NS_PER_SEC), 1);
    assert_int_equal(r->done[0].result, 4096);
    for (int i = 0; i < 4096; i++) assert_int_equal(r->buffers[i], 0);
    rig_free(r);
}

/* Large data is received where it belongs, in pieces that end anywhere. */
static void test_large_reads(void **state) {
    (void)state;
    static const size_t pieces[] = {1000, 4096, 65537, 300000, 1 << 20};
    for (size_t k = 0; k < sizeof pieces / sizeof pieces[0]; k++) {
        struct rig *r = rig_new(&(struct setup){.depth = 4, .stride = 400000, .sndbuf = 1 << 20});
        for (unsigned i = 0; i < 4; i++) prepare(r, i, IO_READ, (uint64_t)i << 20, i == 2 ? 333 : 400000 - i);
        assert_int_equal(submit(r, 0, 4), 4);
        peer_read(r->peer, SIZE_MAX);
        answer_all(r->peer);
        for (unsigned spins = 0; r->n_done < 4; spins++) {
            assert_true(spins < 10000);
            peer_send(r->peer, pieces[k]);
            int n = reap(r, 4, 0, 0);
            assert_true(n >= 0);
            for (int i = 0; i < n; i++) {
                assert_int_equal(r->done[i].result, r->done[i].request->len);
                check_read(r, r->done[i].request->slot);
            }
        }
        rig_free(r);
    }
}

/* max is kept to; the rest is there without another receive, and all of one receive have one stamp. */
static void test_max(void **state) {
    (void)state;
    struct rig *r = rig_new(&(struct setup){.depth = 8});
    for (unsigned i = 0; i < 8; i++) prepare(r, i, IO_READ, i * 4096, 512);
    assert_int_equal(submit(r, 0, 8), 8);
    peer_read(r->peer, SIZE_MAX);
    answer_all(r->peer);
    peer_send(r->peer, SIZE_MAX);
    assert_int_equal(reap(r, 3, 3, NS_PER_SEC), 3);
    int64_t stamp = r->done[0].t_done;
    uint64_t recvs = counter(r, "recvs");
    assert_int_equal(reap(r, 4, 4, NS_PER_SEC), 4);
    for (int i = 0; i < 4; i++) assert_true(r->done[i].t_done == stamp);
    assert_int_equal(counter(r, "recvs"), recvs);
    assert_int_equal(reap(r, 8, 1, NS_PER_SEC), 1);
    assert_true(r->done[0].t_done == stamp);
    assert_int_equal(reap(r, 8, 0, 0), 0);
    rig_free(r);
}

/* One system call a batch, each way. */
static void test_system_calls(void **state) {
    (void)state;
    struct rig *r = rig_new(&(struct setup){.depth = 32, .write = true});
    for (unsigned round = 0; round < 10; round++) {
        for (unsigned i = 0; i < 32; i++) prepare(r, i, round % 2 ? IO_WRITE : IO_READ, i * 512, 512);
        assert_int_equal(submit(r, 0, 32), 32);
        peer_read(r->peer, SIZE_MAX);
        answer_all(r->peer);
        assert_true(peer_send(r->peer, SIZE_MAX));
        assert_int_equal(reap(r, 32, 1, NS_PER_SEC), 32);
    }
    assert_int_equal(counter(r, "sends"), 10);
    assert_int_equal(counter(r, "recvs"), 10);
    assert_int_equal(counter(r, "polls"), 0);
    rig_free(r);
}

/* ---- several connections ---- */

static void test_dealt_evenly(void **state) {
    (void)state;
    struct rig *r = rig_new(&(struct setup){.depth = 64, .conns = 4});
    unsigned at = 0;
    for (unsigned n = 1; at + n <= 64; at += n, n = n % 5 + 1) {
        for (unsigned i = 0; i < n; i++) prepare(r, at + i, IO_READ, 0, 512);
        assert_int_equal(submit(r, at, at + n), n);
    }
    for (unsigned i = 0; i < 4; i++) {
        peer_read(&r->peer[i], SIZE_MAX);
        assert_in_range(r->peer[i].n_calls, at / 4, (at + 3) / 4);
        answer_all(&r->peer[i]);
        peer_send(&r->peer[i], SIZE_MAX);
    }
    assert_int_equal(reap(r, 64, at, NS_PER_SEC), at);
    rig_free(r);
}

/* What is taken is always the first part of the batch, also when one connection has room and another has not; and what
 * is not taken is nowhere on the wire. */
static void test_first_part(void **state) {
    (void)state;
    struct rig *r = rig_new(&(struct setup){.depth = 256, .conns = 3, .write = true, .sndbuf = 16384});
    unsigned taken = 0, seen[256] = {0};
    for (unsigned i = 0; i < 256; i++) prepare(r, i, IO_WRITE, i * 4096, 4096);
    for (unsigned spins = 0; taken < 256 && spins < 5; spins++) {
        int k = submit(r, taken, taken + 40 < 256 ? taken + 40 : 256);
        assert_true(k >= 0);
        taken += (unsigned)k;
        if (spins == 1) peer_read(&r->peer[1], SIZE_MAX); /* only one connection has room again */
    }
    assert_in_range(taken, 6, 100);
    for (unsigned spins = 0; spins < 100; spins++) {
        assert_int_equal(reap(r, 256, 0, 0), 0); /* sends on what is pending */
        for (unsigned i = 0; i < 3; i++) peer_read(&r->peer[i], SIZE_MAX);
    }
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(r->peer[i].in.n, 0);
        for (unsigned k = 0; k < r->peer[i].n_calls; k++) seen[r->peer[i].call[k].offset / 4096]++;
    }
    for (unsigned i = 0; i < 256; i++) assert_int_equal(seen[i], i < taken ? 1 : 0);
    assert_int_equal(counter(r, "writes_unstable"), taken);
    for (unsigned i = 0; i < 3; i++) {
        answer_all(&r->peer[i]);
        peer_send(&r->peer[i], SIZE_MAX);
    }
    while (lent(r)) assert_true(reap(r, 256, 1, NS_PER_SEC) > 0);
    rig_free(r);
}

/* ---- a server that does not read ---- */

static void test_not_reading(void **state) {
    (void)state;
    struct rig *r = rig_new(&(struct setup){.depth = 256, .write = true});
    for (unsigned i = 0; i < 256; i++) prepare(r, i, IO_WRITE, i * 4096, 4096);
    int first = submit(r, 0, 256);
    assert_in_range(first, 1, 255);
    for (int i = 0; i < 3; i++) assert_int_equal(submit(r, (unsigned)first, 256), 0);
    int64_t before = sock_now();
    assert_int_equal(reap(r, 256, 1, 5 * NS_PER_MS), 0);
    assert_true(sock_now() - before >= 5 * NS_PER_MS);
    assert_true(counter(r, "polls") < 10); /* it sleeps */
    peer_read(r->peer, SIZE_MAX);
    assert_int_equal(reap(r, 256, 0, 0), 0);
    peer_read(r->peer, SIZE_MAX);
    assert_int_equal(r->peer->n_calls, first);
    answer_all(r->peer);
    peer_send(r->peer, SIZE_MAX);
    while (lent(r)) assert_true(reap(r, 256, 1, NS_PER_SEC) > 0);
    rig_free(r);
}

/* It reads one call, and none more until its reply is gone; both directions are full. */
static void test_reads_after_replies(void **state) {
    (void)state;
    struct rig *r = rig_new(&(struct setup){.depth = 128, .write = true, .sndbuf = 8192});
    unsigned taken = 0;
    for (unsigned i = 0; i < 128; i++) prepare(r, i, i % 2 ? IO_WRITE : IO_READ, i * 4096, 4096);
    for (unsigned spins = 0; r->n_done < 128; spins++) {
        assert_true(spins < 20000);
        if (taken < 128) {
            int k = submit(r, taken, 128);
            assert_true(k >= 0);
            taken += (unsigned)k;
        }
        if (peer_send(r->peer, SIZE_MAX)) {
            peer_read(r->peer, 4300);
            answer_all(r->peer);
        }
        int n = reap(r, 128, 0, 0);
        assert_true(n >= 0);
        for (int i = 0; i < n; i++)
            if (r->done[i].request->op == IO_READ) check_read(r, r->done[i].request->slot);
    }
    rig_free(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mixed),
        cmocka_unit_test(test_small_send_buffers),
        cmocka_unit_test(test_discard),
        cmocka_unit_test(test_large_reads),
        cmocka_unit_test(test_max),
        cmocka_unit_test(test_system_calls),
        cmocka_unit_test(test_dealt_evenly),
        cmocka_unit_test(test_first_part),
        cmocka_unit_test(test_not_reading),
        cmocka_unit_test(test_reads_after_replies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
