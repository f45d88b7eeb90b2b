/* SPDX-License-Identifier: GPL-2.0-or-later */
/* NULL calls over a socket pair: what a server sends stands in it before the ping looks, so that nothing depends on
 * time. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backends/nfs/nfs_ping.h"
#include "nfs_replies.h"

#define FIRST 0x1000u
#define SOON NS_PER_MS              /* nothing is there, and nothing will come */
#define LONG (30 * NS_PER_SEC)      /* it is there */

static const struct shape plain;

struct rig {
    int server;
    struct pinger *p;
    struct bytes b;
};

static void begin(struct rig *r) {
    int fd[2];
    memset(r, 0, sizeof *r);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    r->server = fd[1];
    r->p = nfsbe_ping_over(fd[0], FIRST - 1);
    assert_non_null(r->p);
}

static void end(struct rig *r) {
    nfsbe_ping_close(r->p);
    close(r->server);
    free_bytes(&r->b);
}

static void server_sends(struct rig *r, size_t from, size_t n) {
    assert_int_equal(send(r->server, r->b.at + from, n, 0), (ssize_t)n);
}

static void answer(struct rig *r, uint32_t xid, const struct shape *s) {
    r->b.n = 0;
    reply_accept(&r->b, xid, 0, s);
    server_sends(r, 0, r->b.n);
}

static void test_call(void **state) {
    static const uint32_t wanted[] = { 0x80000000u | 40, FIRST, 0, 2, 100003, 3, 0, 0, 0, 0, 0 };
    unsigned char got[sizeof wanted + 1];
    struct rig r;
    (void)state;
    begin(&r);
    answer(&r, FIRST, &plain);
    assert_true(nfsbe_ping(r.p, 0, LONG) >= 0);
    assert_int_equal(recv(r.server, got, sizeof got, MSG_DONTWAIT), sizeof wanted);
    for (unsigned i = 0; i < sizeof wanted / 4; i++) add_word(&r.b, wanted[i]);
    assert_memory_equal(got, r.b.at + r.b.n - sizeof wanted, sizeof wanted);
    answer(&r, FIRST + 1, &plain);
    assert_true(nfsbe_ping(r.p, 0, LONG) >= 0);
    end(&r);
}

/* A verifier, fragments of one byte, and something behind the end. */
static void test_odd_shapes(void **state) {
    static const struct shape shapes[] = { { .verf = 400 }, { .verf = 5, .fragment = 1 }, { .extra = 64 },
                                           { .fragment = 3, .extra = 20 } };
    struct rig r;
    (void)state;
    begin(&r);
    for (unsigned i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        answer(&r, FIRST + i, &shapes[i]);
        assert_true(nfsbe_ping(r.p, 0, LONG) >= 0);
    }
    end(&r);
}

static void test_late(void **state) {
    struct rig r;
    (void)state;
    begin(&r);
    for (int i = 0; i < 3; i++) assert_int_equal(nfsbe_ping(r.p, 0, SOON), -ETIMEDOUT);
    answer(&r, FIRST, &plain); /* late: no answer to the fourth */
    assert_int_equal(nfsbe_ping(r.p, 0, SOON), -ETIMEDOUT);
    answer(&r, FIRST + 1, &plain);
    answer(&r, FIRST + 4, &plain); /* the fifth's, and a late one behind it in the same segment */
    answer(&r, FIRST + 2, &plain);
    assert_true(nfsbe_ping(r.p, 0, LONG) >= 0);
    assert_int_equal(nfsbe_ping(r.p, 0, SOON), -ETIMEDOUT);
    /* the first half of the sixth's answer comes before it is given up, the other half after */
    r.b.n = 0;
    reply_accept(&r.b, FIRST + 6, 0, &plain);
    reply_accept(&r.b, FIRST + 7, 0, &plain);
    server_sends(&r, 0, 11);
    assert_int_equal(nfsbe_ping(r.p, 0, SOON), -ETIMEDOUT);
    server_sends(&r, 11, r.b.n - 11);
    assert_true(nfsbe_ping(r.p, 0, LONG) >= 0);
    end(&r);
}

static void expect_broken(int error, void (*make)(struct bytes *b)) {
    struct rig r;
    begin(&r);
    make(&r.b);
    server_sends(&r, 0, r.b.n);
    assert_int_equal(nfsbe_ping(r.p, 0, LONG), -error);
    end(&r);
}

static void never_sent(struct bytes *b) {
    reply_accept(b, FIRST + 1, 0, &plain);
}

static void nonsense(struct bytes *b) {
    add_words(b, 8, 0x7fffffff);
}

static void denied(struct bytes *b) {
    reply_denied(b, FIRST, 1, 5, &plain);
}

static void no_such_program(struct bytes *b) {
    reply_accept(b, FIRST, 1, &plain);
}

static void nonsense_behind(struct bytes *b) {
    reply_accept(b, FIRST, 0, &plain);
    add_words(b, 8, 0x7fffffff);
}

static void test_broken(void **state) {
    (void)state;
    expect_broken(EPROTO, never_sent);
    expect_broken(EPROTO, nonsense);
    expect_broken(EPROTO, nonsense_behind);
    expect_broken(EOPNOTSUPP, denied);
    expect_broken(EOPNOTSUPP, no_such_program);
}

static void test_end(void **state) {
    struct rig r;
    (void)state;
    begin(&r);
    shutdown(r.server, SHUT_WR);
    assert_int_equal(nfsbe_ping(r.p, 0, LONG), -ECONNRESET);
    end(&r);
    begin(&r);
    nfsbe_ping_abort(r.p);
    assert_true(nfsbe_ping(r.p, 0, LONG) < 0);
    assert_int_equal(nfsbe_ping_floor(r.p), 0); /* no TCP: unknown */
    end(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_call), cmocka_unit_test(test_odd_shapes), cmocka_unit_test(test_late),
        cmocka_unit_test(test_broken), cmocka_unit_test(test_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
