/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The io_uring path: against the kernel, and against made-up answers of io_uring_submit. Linked with
 * -Wl,--wrap=io_uring_submit. Skipped where io_uring is forbidden. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#define open_how linux_open_how /* see backends/local/uring.c */
#include <liburing.h>
#undef open_how

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/local/uring.h"

#define DEPTH 8
#define KIB4 4096u

int __real_io_uring_submit(struct io_uring *ring);
int __wrap_io_uring_submit(struct io_uring *ring);

/* What the kernel is made to say. */
static unsigned submit_limit;
static int submit_error;

int __wrap_io_uring_submit(struct io_uring *ring) {
    if (submit_error) {
        int error = submit_error;
        submit_error = 0;
        return -error;
    }
    unsigned n = io_uring_sq_ready(ring), held = submit_limit && n > submit_limit ? n - submit_limit : 0;
    ring->sq.sqe_tail -= held;
    int rc = __real_io_uring_submit(ring);
    ring->sq.sqe_tail += held;
    return rc;
}

struct fixture {
    int fd;
    unsigned char *buffers;
    struct uring *ring;
    struct clock clock;
    struct kinds kinds;
    struct request request[DEPTH], *list[DEPTH];
    struct completion done[DEPTH];
};

static void set_up(struct fixture *x, bool registered, bool read_only) {
    char path[] = "/tmp/samedisk-uring.XXXXXX";
    struct err err;
    memset(x, 0, sizeof *x);
    submit_limit = 0;
    submit_error = 0;
    x->fd = mkstemp(path); /* buffered: it works on every file system, and the path is the same */
    assert_true(x->fd >= 0);
    assert_int_equal(ftruncate(x->fd, 1 << 20), 0);
    if (read_only) {
        close(x->fd);
        x->fd = open(path, O_RDONLY);
        assert_true(x->fd >= 0);
    }
    unlink(path);
    x->buffers = aligned_alloc(4096, DEPTH * KIB4);
    memset(x->buffers, 7, DEPTH * KIB4);
    clock_real_init(&x->clock);
    struct uring_how how = {.fd = x->fd, .object = LOCAL_FILE_DIRECT, .dsync_stable = true};
    struct attach_how attach = {.depth = DEPTH, .max_io = KIB4, .clock = &x->clock, .kinds = &x->kinds, .write = true};
    if (registered) {
        attach.buffers = x->buffers;
        attach.stride = KIB4;
    }
    if (uring_attach(&how, &attach, &x->ring, &err) < 0) {
        close(x->fd);
        free(x->buffers);
        print_message("%s\n", err.msg);
        skip();
    }
    for (unsigned i = 0; i < DEPTH; i++) {
        x->request[i] = (struct request){.buf = x->buffers + i * KIB4, .offset = i * KIB4, .len = KIB4, .slot = i};
        x->list[i] = &x->request[i];
    }
}

static void tear_down(struct fixture *x) {
    uring_detach(x->ring);
    close(x->fd);
    free(x->buffers);
}

static int submit(struct fixture *x, unsigned from, unsigned n) {
    return uring_submit(x->ring, x->list + from, n);
}

static int reap(struct fixture *x, unsigned max, unsigned min, int64_t timeout_ns) {
    return uring_reap(x->ring, x->done, max, min, timeout_ns);
}

static uint64_t counter(struct fixture *x, const char *name) {
    struct kv kv = {0};
    uring_counters(x->ring, &kv);
    uint64_t value = kv_get_uint(&kv, name, 999);
    kv_free(&kv);
    return value;
}

static void round_trips(bool registered) {
    struct fixture x;
    set_up(&x, registered, false);
    for (unsigned i = 0; i < DEPTH; i++) x.request[i].op = IO_WRITE;
    for (int round = 0; round < 100; round++) { /* more than the rings' size: they wrap */
        assert_int_equal(submit(&x, 0, DEPTH), DEPTH);
        assert_int_equal(submit(&x, 0, 1), 0); /* no more than the depth */
        assert_int_equal(reap(&x, 3, 3, NS_PER_SEC), 3);
        assert_int_equal(reap(&x, DEPTH, DEPTH - 3, NS_PER_SEC), DEPTH - 3);
        for (unsigned i = 0; i < DEPTH - 3; i++) assert_int_equal(x.done[i].result, KIB4);
    }
    assert_int_equal(reap(&x, DEPTH, 0, 0), 0);
    memset(x.buffers, 0, DEPTH * KIB4);
    for (unsigned i = 0; i < DEPTH; i++) x.request[i].op = IO_READ;
    assert_int_equal(submit(&x, 0, DEPTH), DEPTH);
    assert_int_equal(reap(&x, DEPTH, DEPTH, NS_PER_SEC), DEPTH);
    for (unsigned i = 0; i < DEPTH * KIB4; i++) assert_int_equal(x.buffers[i], 7);
    assert_int_equal(counter(&x, "io_uring_submit_partial"), 0);
    tear_down(&x);
}

static void test_registered(void **state) {
    (void)state;
    round_trips(true);
}

static void test_not_registered(void **state) {
    (void)state;
    round_trips(false);
}

static void test_durability(void **state) {
    static const struct { enum io_sync sync; bool stable; } cases[] = {
        {SYNC_NONE, false}, {SYNC_DATASTORE, false}, {SYNC_DSYNC, true}, {SYNC_SYNC, true}
    };
    struct fixture x;
    (void)state;
    set_up(&x, true, false);
    for (unsigned i = 0; i < 4; i++) {
        x.request[0].op = IO_WRITE;
        x.request[0].sync = (uint8_t)cases[i].sync;
        assert_int_equal(submit(&x, 0, 1), 1);
        assert_int_equal(reap(&x, DEPTH, 1, NS_PER_SEC), 1);
        assert_int_equal(x.done[0].result, KIB4);
        assert_int_equal(x.done[0].stable, cases[i].stable);
    }
    x.request[0] = (struct request){.op = IO_FLUSH, .offset = UINT64_MAX, .len = UINT32_MAX};
    assert_int_equal(submit(&x, 0, 1), 1);
    assert_int_equal(reap(&x, DEPTH, 1, NS_PER_SEC), 1);
    assert_int_equal(x.done[0].result, 0);
    assert_ptr_equal(x.done[0].request, &x.request[0]);
    tear_down(&x);
}

/* What the kernel leaves is not taken, and is not sent later by itself. */
static void test_partly_taken(void **state) {
    struct fixture x;
    (void)state;
    set_up(&x, true, false);
    submit_limit = 3;
    assert_int_equal(submit(&x, 0, DEPTH), 3);
    assert_int_equal(reap(&x, DEPTH, 3, NS_PER_SEC), 3);
    submit_limit = 0;
    assert_int_equal(submit(&x, 3, 1), 1);
    assert_int_equal(reap(&x, DEPTH, 1, NS_PER_SEC), 1);
    assert_ptr_equal(x.done[0].request, &x.request[3]);
    submit_error = EAGAIN;
    assert_int_equal(submit(&x, 0, DEPTH), 0);
    assert_int_equal(reap(&x, DEPTH, 0, 0), 0);
    assert_int_equal(submit(&x, 4, 2), 2);
    assert_int_equal(reap(&x, DEPTH, 2, NS_PER_SEC), 2);
    assert_true(x.done[0].request == &x.request[4] || x.done[1].request == &x.request[4]);
    assert_true(x.done[0].request == &x.request[5] || x.done[1].request == &x.request[5]);
    assert_int_equal(counter(&x, "io_uring_submit_partial"), 2);
    assert_int_equal(reap(&x, DEPTH, 0, 0), 0);
    tear_down(&x);
}

/* A refused context first gives back what was lent. */
static void test_refused(void **state) {
    struct fixture x;
    (void)state;
    set_up(&x, true, false);
    assert_int_equal(submit(&x, 0, 2), 2);
    submit_error = EBADF;
    assert_int_equal(submit(&x, 2, 2), -EBADF);
    assert_int_equal(submit(&x, 2, 2), -EBADF);
    assert_int_equal(reap(&x, DEPTH, DEPTH, NS_PER_SEC), 2);
    assert_int_equal(reap(&x, DEPTH, 1, NS_PER_SEC), -EBADF);
    tear_down(&x);
}

static void test_errors(void **state) {
    struct fixture x;
    (void)state;
    set_up(&x, true, true);
    x.request[0].op = IO_WRITE;
    x.request[1].offset = (2 << 20) - KIB4; /* beyond the end: nothing is read */
    assert_int_equal(submit(&x, 0, 2), 2);
    assert_int_equal(reap(&x, DEPTH, 2, NS_PER_SEC), 2);
    for (unsigned i = 0; i < 2; i++) {
        const struct completion *c = &x.done[i];
        if (c->request == &x.request[0]) {
            assert_int_equal(c->result, -EBADF);
            assert_string_equal(x.kinds.kind[c->kind].name, "EBADF");
            assert_false(c->stable);
        } else {
            assert_int_equal(c->result, 0);
        }
    }
    tear_down(&x);
}

static void test_waits(void **state) {
    struct fixture x;
    (void)state;
    set_up(&x, true, false);
    assert_int_equal(reap(&x, DEPTH, 1, NS_PER_MS), 0); /* the time passes */
    assert_int_equal(submit(&x, 0, 1), 1);
    assert_int_equal(reap(&x, DEPTH, 1, NS_PER_SEC), 1);
    assert_int_equal(submit(&x, 0, 2), 2);
    tear_down(&x); /* with two out */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_registered),   cmocka_unit_test(test_not_registered), cmocka_unit_test(test_durability),
        cmocka_unit_test(test_partly_taken), cmocka_unit_test(test_refused),        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
