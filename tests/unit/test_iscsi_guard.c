/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The thread that ends a call of libiscsi that lasts too long: it, and nothing else. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backends/iscsi/iscsi_libiscsi_guard.h"
#include "backends/net/sock.h"
#include "base/clock.h"

#define TIMEOUT (80 * NS_PER_MS)

struct pair { int fd[2]; _Atomic unsigned calls; struct libguard *guard; };

static void begin(struct pair *p) {
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, p->fd), 0);
    atomic_init(&p->calls, 0);
    p->guard = libguard_start(p->fd[0], TIMEOUT, &p->calls);
    assert_non_null(p->guard);
}

/* Does the other side find the connection shut down within so long? */
static bool ends(struct pair *p, int64_t ns) {
    return sock_wait(p->fd[1], POLLIN, ns) > 0;
}

static void finish(struct pair *p, bool fired) {
    assert_int_equal(libguard_stop(p->guard), fired);
    close(p->fd[0]);
    close(p->fd[1]);
}

static void one_call_too_long(void **state) {
    struct pair p;
    int64_t from = sock_now();
    (void)state;
    begin(&p);
    atomic_store(&p.calls, 7);
    assert_true(ends(&p, 5 * NS_PER_SEC));
    assert_true(sock_now() - from >= TIMEOUT);
    finish(&p, true);
}

static void short_calls_and_none(void **state) {
    int64_t end = sock_now() + 4 * TIMEOUT;
    struct pair p;
    (void)state;
    begin(&p);
    while (sock_now() < end) { /* always inside a call, but in another one each time */
        atomic_fetch_add(&p.calls, 2);
        atomic_fetch_or(&p.calls, 1);
        assert_false(ends(&p, NS_PER_MS));
    }
    atomic_fetch_add(&p.calls, 1);
    assert_false(ends(&p, 3 * TIMEOUT));
    finish(&p, false);
}

static void stopped_while_inside(void **state) {
    struct pair p;
    (void)state;
    begin(&p);
    atomic_store(&p.calls, 1);
    finish(&p, false);
    assert_false(libguard_stop(NULL));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_call_too_long), cmocka_unit_test(short_calls_and_none),
                                       cmocka_unit_test(stopped_while_inside)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
