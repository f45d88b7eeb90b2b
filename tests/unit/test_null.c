/* SPDX-License-Identifier: GPL-2.0-or-later */
/* null in virtual time: latencies, order, queueing, injected errors and the lost context, to the nanosecond. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backends/backend.h"

#define US NS_PER_US

extern const struct backend backend_null;

struct fixture {
    void *conf;
    struct handle *handle;
    struct facts facts;
    struct context *context;
    struct clock_virtual clock;
    struct kinds kinds;
    struct request request[64], *list[64];
    struct completion done[64];
};

/* Opens null with "key=value key=value" and attaches. */
static void set_up(struct fixture *x, const char *keys, unsigned depth) {
    struct err err;
    char text[256], *save = NULL;
    memset(x, 0, sizeof *x);
    x->conf = calloc(1, backend_null.conf_size);
    assert_int_equal(option_defaults(backend_null.options, x->conf, &err), 0);
    snprintf(text, sizeof text, "%s", keys);
    for (char *key = strtok_r(text, " ", &save); key; key = strtok_r(NULL, " ", &save)) {
        char *value = strchr(key, '=');
        *value++ = 0;
        if (option_set(backend_null.options, x->conf, key, value, &err) < 0) fail_msg("%s", err.msg);
    }
    assert_int_equal(backend_null.check(x->conf, &err), 0);
    clock_virtual_init(&x->clock, 5000);
    struct open_how how = {.conf = x->conf, .mode = OPEN_WRITE, .clock = &x->clock.clock};
    assert_int_equal(backend_null.open(&how, &x->handle, &x->facts, &err), 0);
    struct attach_how attach = {
        .depth = depth, .max_io = 65536, .clock = &x->clock.clock, .kinds = &x->kinds, .write = true};
    assert_int_equal(backend_null.attach(x->handle, &attach, &x->context, &err), 0);
    for (unsigned i = 0; i < 64; i++) {
        x->request[i] = (struct request){.offset = i * 4096u, .len = 4096, .slot = i, .op = IO_READ};
        x->list[i] = &x->request[i];
    }
}

static void tear_down(struct fixture *x) {
    backend_null.detach(x->context);
    backend_null.close(x->handle);
    facts_free(&x->facts);
    option_free(backend_null.options, x->conf);
    free(x->conf);
}

static int submit(struct fixture *x, unsigned from, unsigned n) {
    return backend_null.submit(x->context, x->list + from, n);
}

static int reap(struct fixture *x, unsigned max, unsigned min, int64_t timeout_ns) {
    return backend_null.reap(x->context, x->done, max, min, timeout_ns);
}

static void latency_is_exact(void **state) {
    struct fixture x;
    (void)state;
    set_up(&x, "lat=100us", 8);
    assert_int_equal(submit(&x, 0, 3), 3);
    assert_int_equal(reap(&x, 8, 0, 0), 0);
    x.clock.t += 40 * US;
    assert_int_equal(submit(&x, 3, 1), 1);
    assert_int_equal(reap(&x, 8, 1, 59 * US), 0); /* the timeout comes first, and moves the clock just as far */
    assert_int_equal(x.clock.t, 5000 + 99 * US);
    assert_int_equal(reap(&x, 8, 1, 1000 * US), 3);
    assert_int_equal(x.clock.t, 5000 + 100 * US);
    for (int i = 0; i < 3; i++) {
        assert_ptr_equal(x.done[i].request, &x.request[i]);
        assert_int_equal(x.done[i].t_done, 5000 + 100 * US);
        assert_int_equal(x.done[i].result, 4096);
    }
    assert_int_equal(reap(&x, 8, 1, 1000 * US), 1);
    assert_int_equal(x.done[0].t_done, 5000 + 140 * US);
    tear_down(&x);
}

static void min_waits_for_the_last(void **state) {
    struct fixture x;
    (void)state;
    set_up(&x, "lat=10us", 4);
    for (unsigned i = 0; i < 4; i++) {
        submit(&x, i, 1);
        x.clock.t += 3 * US;
    }
    assert_int_equal(reap(&x, 4, 4, 1000 * US), 4);
    for (int i = 0; i < 4; i++) assert_int_equal(x.done[i].t_done, i == 0 ? 5000 + 12 * US : 5000 + (10 + 3 * i) * US);
    tear_down(&x);
}

static void depth_is_the_limit(void **state) {
    struct fixture x;
    (void)state;
    set_up(&x, "lat=0", 4);
    assert_int_equal(submit(&x, 0, 6), 4);
    assert_int_equal(submit(&x, 4, 2), 0);
    assert_int_equal(reap(&x, 3, 0, 0), 3);
    assert_int_equal(submit(&x, 4, 2), 2);
    assert_int_equal(reap(&x, 64, 0, 0), 3);
    tear_down(&x);
}

static void two_servers_queue(void **state) {
    static const int64_t due[] = {10, 10, 20, 20, 30};
    struct fixture x;
    (void)state;
    set_up(&x, "lat=10us servers=2", 8);
    assert_int_equal(submit(&x, 0, 5), 5);
    for (unsigned got = 0; got < 5;) {
        int n = reap(&x, 8, 1, NS_PER_SEC);
        for (int i = 0; i < n; i++) assert_int_equal(x.done[i].t_done, 5000 + due[got++] * US);
        assert_true(n > 0);
    }
    tear_down(&x);
}

/* Random latencies: due order, the mean and the bounds; the same seed gives the same times. */
static void distributions(const char *keys, double mean, int64_t least, int64_t most) {
    int64_t first[64];
    for (int round = 0; round < 2; round++) {
        struct fixture x;
        set_up(&x, keys, 64);
        double sum = 0;
        int64_t last = 0;
        for (int batch = 0; batch < 200; batch++) {
            int64_t start = x.clock.t;
            assert_int_equal(submit(&x, 0, 64), 64);
            for (unsigned got = 0; got < 64;) {
                int n = reap(&x, 64, 1, NS_PER_SEC);
                assert_true(n > 0);
                for (int i = 0; i < n; i++, got++) {
                    int64_t lat = x.done[i].t_done - start;
                    assert_true(lat >= least && lat <= most && x.done[i].t_done >= last);
                    last = x.done[i].t_done;
                    sum += (double)lat;
                    if (batch == 0 && round == 0) first[got] = lat;
                    if (batch == 0 && round == 1) assert_int_equal(first[got], lat);
                }
            }
        }
        sum /= 200 * 64;
        if (sum < mean * 0.97 || sum > mean * 1.03) fail_msg("%s: mean %.0f", keys, sum);
        tear_down(&x);
    }
}

static void varying_latencies(void **state) {
    (void)state;
    distributions("lat=100us lat_dist=uniform jitter=50us", 100e3, 50 * US, 150 * US);
    distributions("lat=100us lat_dist=exponential", 100e3, 0, INT64_MAX);
}

static void injected_errors(void **state) {
    unsigned errors[2] = {0}, shorts[2] = {0};
    uint64_t hash[2] = {0};
    (void)state;
    for (int round = 0; round < 2; round++) {
        struct fixture x;
        set_up(&x, "errors=100000 short=50000 error_seed=7", 64);
        for (int batch = 0; batch < 500; batch++) {
            submit(&x, 0, 64);
            assert_int_equal(reap(&x, 64, 64, 0), 64);
            for (int i = 0; i < 64; i++) {
                if (x.done[i].result == -EIO) {
                    errors[round]++;
                    assert_string_equal(x.kinds.kind[x.done[i].kind].name, "EIO");
                } else if (x.done[i].result == 2048) {
                    shorts[round]++;
                } else {
                    assert_int_equal(x.done[i].result, 4096);
                }
                hash[round] = hash[round] * 31 + (uint64_t)x.done[i].result;
            }
        }
        tear_down(&x);
    }
    assert_in_range(errors[0], 3000, 3400); /* of 32000, 3200 expected */
    assert_in_range(shorts[0], 1450, 1750); /* 1600 */
    assert_true(hash[0] == hash[1]);
}

static void lost_context(void **state) {
    struct fixture x;
    (void)state;
    set_up(&x, "lat=10us lost_after=5", 8);
    submit(&x, 0, 8);
    assert_int_equal(reap(&x, 8, 8, NS_PER_SEC), 8);
    for (int i = 0; i < 8; i++) assert_int_equal(x.done[i].result, i < 5 ? 4096 : -ENOTCONN);
    assert_int_equal(submit(&x, 0, 1), -ENOTCONN);
    assert_int_equal(reap(&x, 8, 1, NS_PER_SEC), -ENOTCONN);
    tear_down(&x);
    /* What is not due yet comes back too, before the loss is told. */
    set_up(&x, "lat=10us lost_after=1", 8);
    submit(&x, 0, 1);
    x.clock.t += 5 * US;
    submit(&x, 1, 2);
    assert_int_equal(reap(&x, 1, 1, NS_PER_SEC), 1);
    assert_int_equal(submit(&x, 3, 1), -ENOTCONN);
    assert_int_equal(reap(&x, 1, 0, 0), 1);
    assert_int_equal(reap(&x, 8, 0, 0), 1);
    assert_ptr_equal(x.done[0].request, &x.request[2]);
    assert_int_equal(reap(&x, 8, 0, 0), -ENOTCONN);
    tear_down(&x);
}

static void bounds_and_flags(void **state) {
    struct fixture x;
    (void)state;
    set_up(&x, "size=1m write_cache=yes", 8);
    x.request[0].offset = (1u << 20) - 2048;
    x.request[1].offset = 1u << 20;
    x.request[2] = (struct request){.op = IO_WRITE, .offset = 1u << 20, .len = 512, .slot = 2};
    x.request[3].offset = 100;
    x.request[4] = (struct request){.op = IO_FLUSH, .offset = UINT64_MAX, .len = UINT32_MAX, .slot = 4};
    x.request[5] = (struct request){.op = IO_WRITE, .len = 512, .slot = 5};
    x.request[6] = (struct request){.op = IO_WRITE, .len = 512, .slot = 6, .sync = SYNC_DSYNC};
    x.request[7] = (struct request){.op = IO_READ, .len = 512, .slot = 7, .sync = SYNC_DSYNC};
    assert_int_equal(submit(&x, 0, 8), 8);
    assert_int_equal(reap(&x, 8, 8, 0), 8);
    static const int64_t want[] = {2048, 0, -ENOSPC, -EINVAL, 0, 512, 512, 512};
    for (int i = 0; i < 8; i++) {
        assert_int_equal(x.done[i].result, want[i]);
        assert_int_equal(x.done[i].stable, i == 6);
    }
    assert_int_equal(x.facts.volatile_cache, ANSWER_YES);
    tear_down(&x);
    set_up(&x, "write_cache=no", 8);
    x.request[0].op = IO_WRITE;
    submit(&x, 0, 1);
    assert_int_equal(reap(&x, 1, 1, 0), 1);
    assert_true(x.done[0].stable);
    assert_int_equal(x.facts.volatile_cache, ANSWER_NO);
    tear_down(&x);
}

static void check_of(const char *key, const char *value, const char *key2, const char *value2) {
    struct err err;
    void *conf = calloc(1, backend_null.conf_size);
    assert_int_equal(option_defaults(backend_null.options, conf, &err), 0);
    assert_int_equal(option_set(backend_null.options, conf, key, value, &err), 0);
    if (key2) assert_int_equal(option_set(backend_null.options, conf, key2, value2, &err), 0);
    assert_int_equal(backend_null.check(conf, &err), -1);
    assert_int_equal(err.status, STATUS_USAGE);
    assert_non_null(strstr(err.msg, key));
    option_free(backend_null.options, conf);
    free(conf);
}

static void bad_configurations(void **state) {
    (void)state;
    check_of("block", "1000", NULL, NULL);
    check_of("size", "5000", NULL, NULL);
    check_of("jitter", "1us", NULL, NULL);
    check_of("jitter", "10us", "lat_dist", "uniform");
    check_of("errors", "900000", "short", "900000");
    struct url url = {.path = (char *)"", .host = (char *)"x"};
    struct err err;
    assert_int_equal(backend_null.configure(&url, NULL, &err), -1);
    assert_non_null(strstr(err.msg, "neither host nor path"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(latency_is_exact),   cmocka_unit_test(min_waits_for_the_last),
        cmocka_unit_test(depth_is_the_limit), cmocka_unit_test(two_servers_queue),
        cmocka_unit_test(varying_latencies),  cmocka_unit_test(injected_errors),
        cmocka_unit_test(lost_context),       cmocka_unit_test(bounds_and_flags),
        cmocka_unit_test(bad_configurations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
