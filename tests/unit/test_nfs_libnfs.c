/* SPDX-License-Identifier: GPL-2.0-or-later */
/* engine=libnfs against a server that answers a READ with fragments without end: given up, in bounded memory. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <sys/resource.h>

#include "backends/net/sock.h"
#include "backends/nfs/nfs.h"
#include "tests/unit/nfs_script.h"

#define SIZE (1u << 20)

static void answer(void *arg, const struct script_call *c, struct bytes *b) {
    static unsigned char fragment[4 + 65536] = { 0, 1, 0, 0 }; /* never the last one */
    const struct shape shape = { .attributes = 1 };
    (void)arg;
    if (c->procedure == 0) script_words(b, c, 0, NULL);
    else if (c->procedure == 1) reply_getattr(b, c->xid, SIZE, 77, &shape);
    else
        while (send(c->fd, fragment, sizeof fragment, MSG_NOSIGNAL) == (ssize_t)sizeof fragment) continue;
}

static long peak_kib(void) {
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return r.ru_maxrss;
}

static void fragments_without_end(void **state) {
    struct script s;
    struct handle h = { .exists = true, .size = SIZE, .fsid = 0x1100000022u, .fileid = 77, .file = { .len = 32 } };
    struct kinds kinds = { .n = 0 };
    struct clock clock;
    struct context *c;
    struct completion done;
    struct err err;
    char buf[4096];
    struct request read = { .op = IO_READ, .len = sizeof buf, .buf = buf };
    struct request *const one[] = { &read };
    int n = 0;
    (void)state;

    script_start(&s, 0, true, false, answer, NULL);
    snprintf(h.server.host, sizeof h.server.host, "127.0.0.1");
    h.server.port = s.port;
    h.server.timeout = 20 * NS_PER_SEC;
    clock_real_init(&clock);
    const struct attach_how how = { .depth = 1, .max_io = sizeof buf, .clock = &clock, .kinds = &kinds };
    if (nfsbe_engine_libnfs.attach(&h, &how, &c, &err) != 0) fail_msg("%s", err.msg);
    long before = peak_kib();
    assert_int_equal(nfsbe_engine_libnfs.submit(c, one, 1), 1);
    int64_t end = sock_now() + 60 * NS_PER_SEC;
    while (n == 0 && sock_now() < end) n = nfsbe_engine_libnfs.reap(c, &done, 1, 1, NS_PER_SEC);
    nfsbe_engine_libnfs.detach(c);
    script_stop(&s);
    assert_int_equal(n, 1);
    assert_true(done.result < 0);
    assert_true(peak_kib() - before < 400 << 10);
    assert_non_null(strstr(kinds.kind[done.kind].text, "a reply without end"));
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(fragments_without_end) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
