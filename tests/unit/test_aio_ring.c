/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The libaio path: against the kernel with both ways of reaping, and against made-up answers of io_submit and
 * io_getevents. Linked with -Wl,--wrap=io_submit,--wrap=io_getevents. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <libaio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "backends/local/aio_ring.h"
#include "backends/local/devguard.h"

#define DEPTH 8
#define KIB4 4096u

int __real_io_submit(io_context_t ctx, long n, struct iocb **list);
int __wrap_io_submit(io_context_t ctx, long n, struct iocb **list);
int __real_io_getevents(io_context_t ctx, long min, long n, struct io_event *events, struct timespec *timeout);
int __wrap_io_getevents(io_context_t ctx, long min, long n, struct io_event *events, struct timespec *timeout);

/* What the kernel is made to say. */
static int submit_limit, submit_error, getevents_error;
static unsigned submits;
static struct iocb last[DEPTH]; /* as they went in */
static long last_n;

int __wrap_io_submit(io_context_t ctx, long n, struct iocb **list) {
    submits++;
    last_n = n;
    for (long i = 0; i < n; i++) last[i] = *list[i];
    if (submit_error) {
        int error = submit_error;
        submit_error = 0;
        return -error;
    }
    return __real_io_submit(ctx, submit_limit && n > submit_limit ? submit_limit : n, list);
}

int __wrap_io_getevents(io_context_t ctx, long min, long n, struct io_event *events, struct timespec *timeout) {
    if (!getevents_error) return __real_io_getevents(ctx, min, n, events, timeout);
    int error = getevents_error;
    getevents_error = 0;
    return -error;
}

struct fixture {
    int fd;
    unsigned char *buffers;
    struct aio_ring *ring;
    struct clock clock;
    struct kinds kinds;
    struct request request[DEPTH], *list[DEPTH];
    struct completion done[DEPTH];
};

static void set_up(struct fixture *x, bool plain_getevents) {
    char path[] = "/tmp/samedisk-aio.XXXXXX";
    struct err err;
    memset(x, 0, sizeof *x);
    submit_limit = submit_error = getevents_error = 0;
    x->fd = mkstemp(path); /* buffered: it works on every file system, and the path is the same */
    assert_true(x->fd >= 0);
    unlink(path);
    assert_int_equal(ftruncate(x->fd, 1 << 20), 0);
    x->buffers = aligned_alloc(4096, DEPTH * KIB4);
    memset(x->buffers, 7, DEPTH * KIB4);
    clock_real_init(&x->clock);
    struct aio_ring_how how = {.fd = x->fd, .object = LOCAL_FILE_DIRECT, .dsync_stable = true,
                               .plain_getevents = plain_getevents};
    struct attach_how attach = {.depth = DEPTH, .max_io = KIB4, .clock = &x->clock, .kinds = &x->kinds, .write = true};
    if (aio_ring_attach(&how, &attach, &x->ring, &err) < 0) fail_msg("%s", err.msg);
    for (unsigned i = 0; i < DEPTH; i++) {
        x->request[i] = (struct request){.buf = x->buffers + i * KIB4, .offset = i * KIB4, .len = KIB4, .slot = i};
        x->list[i] = &x->request[i];
    }
}

static void tear_down(struct fixture *x) {
    aio_ring_detach(x->ring);
    close(x->fd);
    free(x->buffers);
}

static int submit(struct fixture *x, unsigned from, unsigned n) {
    return aio_ring_submit(x->ring, x->list + from, n);
}

static int reap(struct fixture *x, unsigned max, unsigned min, int64_t timeout_ns) {
    return aio_ring_reap(x->ring, x->done, max, min, timeout_ns);
}

static uint64_t counter(struct fixture *x, const char *name) {
    struct kv kv = {0};
    aio_ring_counters(x->ring, &kv);
    uint64_t value = kv_get_uint(&kv, name, 999);
    kv_free(&kv);
    return value;
}

static void both_ways(bool plain) {
    struct fixture x;
    set_up(&x, plain);
    for (unsigned i = 0; i < DEPTH; i++) x.request[i].op = IO_WRITE;
    for (int round = 0; round < 100; round++) { /* more than the ring's size: it wraps */
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
    tear_down(&x);
}

static void by_the_ring(void **state) {
    (void)state;
    both_ways(false);
}

static void by_getevents(void **state) {
    (void)state;
    both_ways(true);
}

/* Completions that are there already cost no system call. */
static void the_ring_is_used(void **state) {
    struct fixture x;
    (void)state;
    set_up(&x, false);
    assert_int_equal(submit(&x, 0, 4), 4);
    while (reap(&x, DEPTH, 0, 0) == 0) usleep(1000);
    assert_int_equal(counter(&x, "io_getevents_calls"), 0);
    tear_down(&x);
}

static void requests_as_the_kernel_sees_them(void **state) {
    struct fixture x;
    (void)state;
    set_up(&x, false);
    for (unsigned i = 0; i < 4; i++) {
        x.request[i].op = IO_WRITE;
        x.request[i].sync = (uint8_t)i; /* none, datastore, dsync, sync */
    }
    x.request[4].sync = SYNC_SYNC; /* a read: nothing to sync */
    x.request[5] = (struct request){.op = IO_FLUSH, .slot = 5, .offset = 99, .len = 99, .buf = x.buffers};
    assert_int_equal(submit(&x, 0, 6), 6);
    static const unsigned flags[] = {0, 0, RWF_DSYNC, RWF_DSYNC | RWF_SYNC, 0, 0};
    for (unsigned i = 0; i < 6; i++) {
        assert_int_equal(last[i].aio_rw_flags, flags[i]);
        assert_int_equal(last[i].aio_lio_opcode, i < 4 ? IO_CMD_PWRITE : i == 4 ? IO_CMD_PREAD : IO_CMD_FSYNC);
    }
    assert_int_equal(last[5].u.c.nbytes, 0);
    assert_int_equal(reap(&x, DEPTH, 6, 10 * NS_PER_SEC), 6);
    for (unsigned i = 0; i < 6; i++) {
        unsigned slot = x.done[i].request->slot;
        assert_int_equal(x.done[i].result, slot == 5 ? 0 : KIB4);
        assert_int_equal(x.done[i].stable, slot == 2 || slot == 3);
    }
    tear_down(&x);
}

static void partial_submit(void **state) {
    struct fixture x;
    (void)state;
    set_up(&x, false);
    submit_limit = 3;
    assert_int_equal(submit(&x, 0, DEPTH), 3);
    submit_error = EAGAIN;
    assert_int_equal(submit(&x, 3, DEPTH - 3), 0);
    submit_limit = 0;
    assert_int_equal(submit(&x, 3, DEPTH - 3), DEPTH - 3);
    assert_int_equal(counter(&x, "io_submit_partial"), 2);
    assert_int_equal(reap(&x, DEPTH, DEPTH, NS_PER_SEC), DEPTH);
    tear_down(&x);
}

/* The error of a single request is that request's, not the context's. */
static void refused_at_submit(void **state) {
    struct fixture x;
    (void)state;
    set_up(&x, false);
    submit_error = EINVAL;
    assert_int_equal(submit(&x, 0, 3), 1);
    assert_int_equal(submit(&x, 1, 2), 2);
    assert_int_equal(reap(&x, DEPTH, 3, NS_PER_SEC), 3);
    assert_ptr_equal(x.done[0].request, &x.request[0]);
    assert_int_equal(x.done[0].result, -EINVAL);
    assert_string_equal(x.kinds.kind[x.done[0].kind].name, "EINVAL");
    assert_non_null(strstr(x.kinds.kind[x.done[0].kind].text, "O_DIRECT"));
    assert_int_equal(x.done[1].result, KIB4);
    assert_int_equal(submit(&x, 0, 1), 1);
    assert_int_equal(reap(&x, DEPTH, 1, NS_PER_SEC), 1);
    assert_int_equal(x.done[0].result, KIB4);
    tear_down(&x);
}

static void device_that_goes(void **state) {
    struct fixture x;
    (void)state;
    set_up(&x, false);
    assert_int_equal(submit(&x, 0, 2), 2);
    submit_error = ENODEV;
    assert_int_equal(submit(&x, 2, 2), 1);
    int got = 0, bad = 0;
    while (got < 3) {
        int n = reap(&x, 1, 1, NS_PER_SEC);
        assert_int_equal(n, 1);
        got += n;
        bad += x.done[0].result == -ENODEV;
    }
    assert_int_equal(bad, 1);
    assert_int_equal(submit(&x, 0, 1), -ENODEV);
    assert_int_equal(reap(&x, DEPTH, 1, NS_PER_SEC), -ENODEV);
    tear_down(&x);
}

static void interrupted_wait(void **state) {
    struct fixture x;
    (void)state;
    set_up(&x, true);
    getevents_error = EINTR;
    assert_int_equal(reap(&x, DEPTH, 1, 10 * NS_PER_SEC), 0);
    tear_down(&x);
}

static void short_reads(void **state) {
    struct fixture x;
    (void)state;
    set_up(&x, false);
    x.request[0].offset = (1 << 20) - 1024;
    x.request[1].offset = 1 << 20;
    assert_int_equal(submit(&x, 0, 2), 2);
    assert_int_equal(reap(&x, DEPTH, 2, NS_PER_SEC), 2);
    for (unsigned i = 0; i < 2; i++) assert_int_equal(x.done[i].result, x.done[i].request->slot ? 0 : 1024);
    tear_down(&x);
}

static void too_deep(void **state) {
    struct aio_ring_how how = {.fd = 0};
    struct clock clock;
    struct kinds kinds = {0};
    struct attach_how attach = {.depth = 1u << 28, .clock = &clock, .kinds = &kinds};
    struct aio_ring *ring = NULL;
    struct err err = {0};
    (void)state;
    attach.depth = 4u << 20; /* above any aio-max-nr that is usual */
    if (aio_ring_attach(&how, &attach, &ring, &err) == 0) {
        aio_ring_detach(ring);
        return;
    }
    assert_int_equal(err.status, STATUS_TARGET);
    assert_non_null(strstr(err.msg, "io_setup"));
}

/* After an error nothing goes out before the device has said that it is the same; what is no device says nothing. */
static void after_an_error_identity_is_asked(void **state) {
    struct fixture x;
    struct err err;
    char why[200];
    (void)state;
    set_up(&x, false);
    aio_ring_detach(x.ring);
    struct devguard *guard = devguard_new("/nonexistent", 0, x.fd, why, sizeof why);
    assert_non_null(guard);
    assert_false(devguard_same(guard, why, sizeof why));
    assert_string_equal(why, "the device is gone");
    struct aio_ring_how how = {.fd = x.fd, .object = LOCAL_FILE_DIRECT, .guard = guard};
    struct attach_how attach = {.depth = DEPTH, .max_io = KIB4, .clock = &x.clock, .kinds = &x.kinds, .write = true};
    assert_int_equal(aio_ring_attach(&how, &attach, &x.ring, &err), 0);
    for (unsigned i = 0; i < DEPTH; i++) x.request[i].op = IO_WRITE;
    assert_int_equal(submit(&x, 0, 2), 2); /* as long as all is well nothing is asked */
    assert_int_equal(reap(&x, 2, 2, NS_PER_SEC), 2);
    assert_int_equal(submit(&x, 0, 1), 1);
    submit_error = EREMOTEIO;
    assert_int_equal(submit(&x, 1, 1), 1);
    assert_int_equal(reap(&x, 2, 2, NS_PER_SEC), 2);
    unsigned before = submits;
    assert_int_equal(submit(&x, 0, 4), -ENODEV);
    assert_int_equal(submits, before); /* the kernel saw none of them */
    assert_string_equal(x.kinds.kind[x.kinds.n - 1].text, "the device is gone");
    assert_int_equal(reap(&x, 1, 1, 0), -ENODEV);
    tear_down(&x);
    devguard_free(guard);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_the_ring), cmocka_unit_test(by_getevents), cmocka_unit_test(the_ring_is_used),
        cmocka_unit_test(requests_as_the_kernel_sees_them), cmocka_unit_test(partial_submit),
        cmocka_unit_test(refused_at_submit), cmocka_unit_test(device_that_goes), cmocka_unit_test(interrupted_wait),
        cmocka_unit_test(short_reads), cmocka_unit_test(too_deep), cmocka_unit_test(after_an_error_identity_is_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
