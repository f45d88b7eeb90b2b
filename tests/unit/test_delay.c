/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The delay over null, in virtual time. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backends/delay.h"
#include "base/url.h"

#define DEPTH 8
#define DELAY (5 * NS_PER_MS)

extern const struct backend backend_null;

struct fixture {
    void *conf;
    struct handle *null, *handle;
    struct context *context;
    struct facts facts;
    struct clock_virtual clock;
    struct kinds kinds;
    unsigned char *buffers;
    struct request request[DEPTH], *list[DEPTH];
    struct completion done[DEPTH];
};

static void set_up(struct fixture *x, const char *url_text) {
    struct url url;
    struct err err;
    memset(x, 0, sizeof *x);
    clock_virtual_init(&x->clock, 1000);
    x->conf = calloc(1, backend_null.conf_size);
    x->buffers = aligned_alloc(4096, DEPTH * 4096);
    assert_int_equal(url_parse(url_text, &url, &err), 0);
    assert_int_equal(option_defaults(backend_null.options, x->conf, &err), 0);
    for (size_t i = 0; i < url.n_keys; i++)
        assert_int_equal(option_set(backend_null.options, x->conf, url.keys[i].name, url.keys[i].value, &err), 0);
    url_free(&url);
    struct open_how how = {.conf = x->conf, .mode = OPEN_WRITE, .clock = &x->clock.clock};
    assert_int_equal(backend_null.open(&how, &x->null, &x->facts, &err), 0);
    struct delay_how delay = {.backend = &backend_null, .handle = x->null, .delay_ns = DELAY};
    assert_int_equal(delay_open(&delay, &x->handle, &err), 0);
    struct attach_how attach = {.depth = DEPTH, .max_io = 4096, .buffers = x->buffers, .stride = 4096,
                                .clock = &x->clock.clock, .kinds = &x->kinds, .write = true};
    assert_int_equal(backend_delay.attach(x->handle, &attach, &x->context, &err), 0);
    for (unsigned i = 0; i < DEPTH; i++) {
        x->request[i] = (struct request){.buf = x->buffers + i * 4096, .offset = i * 4096ull, .len = 4096, .slot = i};
        x->list[i] = &x->request[i];
    }
}

static void tear_down(struct fixture *x) {
    backend_delay.detach(x->context);
    backend_delay.close(x->handle);
    backend_null.close(x->null);
    option_free(backend_null.options, x->conf);
    facts_free(&x->facts);
    free(x->conf);
    free(x->buffers);
}

static int submit(struct fixture *x, unsigned from, unsigned n) {
    return backend_delay.submit(x->context, x->list + from, n);
}

static int reap(struct fixture *x, unsigned max, unsigned min, int64_t timeout_ns) {
    return backend_delay.reap(x->context, x->done, max, min, timeout_ns);
}

/* The real latency and the delay, for each of several that overlap. */
static void test_added_to_each(void **state) {
    (void)state;
    struct fixture x;
    set_up(&x, "null:?lat=1ms");
    assert_int_equal(submit(&x, 0, 4), 4);
    clock_wait_until(&x.clock.clock, 1000 + 2 * NS_PER_MS);
    assert_int_equal(submit(&x, 4, 4), 4);
    assert_int_equal(reap(&x, 8, 1, NS_PER_SEC), 4);
    /* Null's stamp of the first four is that of the reap: 2 ms, not 1; from there on the delay counts. */
    int64_t first = 1000 + 2 * NS_PER_MS + DELAY;
    for (unsigned i = 0; i < 4; i++) {
        assert_ptr_equal(x.done[i].request, &x.request[i]);
        assert_int_equal(x.done[i].t_done, first);
        assert_int_equal(x.done[i].result, 4096);
    }
    assert_int_equal(reap(&x, 8, 4, NS_PER_SEC), 4);
    assert_int_equal(x.done[0].t_done, 1000 + 3 * NS_PER_MS + DELAY);
    assert_int_equal(reap(&x, 8, 0, 0), 0);
    tear_down(&x);
}

static void test_one_at_a_time(void **state) {
    (void)state;
    struct fixture x;
    set_up(&x, "null:?lat=1ms");
    for (int i = 1; i <= 20; i++) {
        assert_int_equal(submit(&x, 0, 1), 1);
        assert_int_equal(reap(&x, 1, 1, NS_PER_SEC), 1);
        assert_int_equal(x.done[0].t_done, 1000 + i * (NS_PER_MS + DELAY));
        assert_int_equal(x.clock.t, x.done[0].t_done);
    }
    tear_down(&x);
}

static void test_waits_no_longer_than_told(void **state) {
    (void)state;
    struct fixture x;
    set_up(&x, "null:");
    assert_int_equal(reap(&x, 8, 1, 3 * NS_PER_MS), 0); /* nothing is out */
    assert_int_equal(x.clock.t, 1000 + 3 * NS_PER_MS);
    assert_int_equal(submit(&x, 0, 8), 8);
    assert_int_equal(submit(&x, 0, 1), 0); /* full: what waits is still lent */
    assert_int_equal(reap(&x, 8, 1, 2 * NS_PER_MS), 0);
    assert_int_equal(x.clock.t, 1000 + 5 * NS_PER_MS);
    assert_int_equal(submit(&x, 0, 1), 0);
    assert_int_equal(reap(&x, 3, 1, NS_PER_SEC), 3);
    assert_int_equal(reap(&x, 8, 8, NS_PER_MS), 5);
    tear_down(&x);
}

static void test_errors_and_order(void **state) {
    (void)state;
    struct fixture x;
    set_up(&x, "null:?lat=1ms&lat_dist=exponential&errors=300000");
    unsigned failed = 0;
    for (int round = 0; round < 20; round++) {
        int64_t before = x.clock.t, last = 0;
        unsigned got = 0;
        assert_int_equal(submit(&x, 0, DEPTH), DEPTH);
        while (got < DEPTH) {
            int n = reap(&x, 2, 1, NS_PER_SEC);
            assert_true(n > 0);
            for (int i = 0; i < n; i++) {
                assert_true(x.done[i].t_done >= last && x.done[i].t_done >= before + DELAY);
                last = x.done[i].t_done;
                failed += x.done[i].result == -EIO;
            }
            got += (unsigned)n;
        }
    }
    assert_true(failed > 20 && failed < 80);
    tear_down(&x);
}

static void test_loss(void **state) {
    (void)state;
    struct fixture x;
    set_up(&x, "null:?lost_after=3");
    assert_int_equal(submit(&x, 0, DEPTH), DEPTH);
    unsigned good = 0, bad = 0;
    int n;
    while ((n = reap(&x, DEPTH, 1, NS_PER_SEC)) > 0)
        for (int i = 0; i < n; i++) *(x.done[i].result == 4096 ? &good : &bad) += 1;
    assert_int_equal(n, -ENOTCONN);
    assert_int_equal(good, 3);
    assert_int_equal(bad, DEPTH - 3);
    assert_int_equal(submit(&x, 0, 1), -ENOTCONN);
    tear_down(&x);
}

static void test_loss_while_idle(void **state) {
    (void)state;
    struct fixture x;
    set_up(&x, "null:?lost_after=1");
    assert_int_equal(submit(&x, 0, 1), 1);
    assert_int_equal(reap(&x, 1, 1, NS_PER_SEC), 1);
    assert_int_equal(reap(&x, 1, 1, 0), -ENOTCONN);
    tear_down(&x);
}

static void test_passes_through(void **state) {
    (void)state;
    struct fixture x;
    struct kv kv = {0};
    uint64_t ios;
    double share;
    set_up(&x, "null:");
    x.request[0].op = IO_FLUSH;
    assert_int_equal(submit(&x, 0, 2), 2);
    assert_int_equal(reap(&x, 2, 2, NS_PER_SEC), 2);
    assert_int_equal(x.done[0].t_done, 1000 + DELAY); /* flushes too */
    backend_delay.counters(x.context, &kv);
    assert_int_equal(kv_get_uint(&kv, "wire_ios", 0), 2);
    kv_free(&kv);
    assert_int_equal(backend_delay.wire_ios(x.handle, &ios), -1);
    assert_int_equal(backend_delay.holes(x.handle, 0, 4096, INT64_MAX, &share), -1);
    assert_null(backend_delay.tracks(x.handle));
    tear_down(&x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_added_to_each),
        cmocka_unit_test(test_one_at_a_time),
        cmocka_unit_test(test_waits_no_longer_than_told),
        cmocka_unit_test(test_errors_and_order),
        cmocka_unit_test(test_loss),
        cmocka_unit_test(test_loss_while_idle),
        cmocka_unit_test(test_passes_through),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
