/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pings of the engine over a made-up backend whose answers the test sets, and the estimate made of them. The thread runs
 * in real time, but no figure here depends on it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ping.h"
#include "result/json.h"
#include "result/ping.h"
#include "result/view.h"

/* ---- the backend ---- */

struct handle {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* What ping() says to the first and the second kind, two numbers each in turn; INT64_MIN: waits until it is aborted. */
    const int64_t (*script)[2];
    unsigned asked[2], opens, closes, aborts;
    bool refuse, unwanted, aborted;
};

struct pinger {
    struct handle *h;
};

static const char *const two_kinds[] = {"first", "second", NULL};
static struct handle road;

static int ping_open(struct handle *h, struct pinger **out, struct err *err) {
    *out = NULL;
    h->opens++;
    if (h->refuse) return err_set(err, STATUS_TARGET, "no more sessions");
    if (h->unwanted) return 0;
    *out = malloc(sizeof **out);
    (*out)->h = h;
    return 0;
}

static int64_t ping(struct pinger *p, unsigned kind, int64_t timeout_ns) {
    struct handle *h = p->h;
    (void)timeout_ns;
    pthread_mutex_lock(&h->lock);
    int64_t ns = h->script[kind][h->asked[kind]++ % 2];
    pthread_cond_broadcast(&h->changed);
    while (ns == INT64_MIN && !h->aborted) pthread_cond_wait(&h->changed, &h->lock);
    pthread_mutex_unlock(&h->lock);
    return ns == INT64_MIN ? -ECONNRESET : ns;
}

static int64_t ping_floor(struct pinger *p) {
    (void)p;
    return 40;
}

static void ping_abort(struct pinger *p) {
    pthread_mutex_lock(&p->h->lock);
    p->h->aborts++;
    p->h->aborted = true;
    pthread_cond_broadcast(&p->h->changed);
    pthread_mutex_unlock(&p->h->lock);
}

static void ping_close(struct pinger *p) {
    p->h->closes++;
    free(p);
}

static const struct backend backend = {.name = "made-up", .pings = two_kinds, .ping_open = ping_open, .ping = ping,
                                       .ping_floor = ping_floor, .ping_abort = ping_abort, .ping_close = ping_close};

static void begin(struct target *t, struct clock *clock, const int64_t (*script)[2]) {
    memset(&road, 0, sizeof road);
    pthread_mutex_init(&road.lock, NULL);
    pthread_cond_init(&road.changed, NULL);
    road.script = script;
    memset(t, 0, sizeof *t);
    clock_real_init(clock);
    t->clock = clock;
    t->n_members = 1;
    t->member[0].backend = &backend;
    t->member[0].handle = &road;
}

/* Until so many pings went out. */
static void await(unsigned n) {
    pthread_mutex_lock(&road.lock);
    while (road.asked[0] + road.asked[1] < n) pthread_cond_wait(&road.changed, &road.lock);
    pthread_mutex_unlock(&road.lock);
}

/* A record of one point, whose window holds whatever happens here. */
static struct record *record(void) {
    struct record *r = record_new("p", "t");
    r->window_ns = r->series_interval_ns = 3600 * NS_PER_SEC;
    r->n_points = 1;
    r->points = calloc(1, sizeof *r->points);
    return r;
}

/* ---- idle ---- */

static void test_idle(void **state) {
    static const int64_t script[2][2] = {{100, 300}, {7, -ETIMEDOUT}};
    struct target t;
    struct clock clock;
    struct ping_idle idle;
    (void)state;
    begin(&t, &clock, script);
    ping_idle(&t, 4, &idle);
    assert_int_equal(idle.kinds, 2);
    assert_string_equal(idle.why, "");
    assert_int_equal(idle.floor_ns, 40);
    assert_string_equal(idle.ping[0].kind, "first");
    assert_int_equal(idle.ping[0].idle_n, 4);
    assert_int_equal(idle.ping[0].idle_min, 100);
    assert_int_equal(idle.ping[0].idle_median, 200);
    assert_string_equal(idle.ping[1].kind, "second");
    assert_int_equal(idle.ping[1].idle_n, 2);
    assert_int_equal(idle.ping[1].idle_median, 7);
    assert_int_equal(road.closes, 1);
}

static void test_idle_without(void **state) {
    static const int64_t script[2][2] = {{5, -EPROTO}, {5, 5}};
    struct clock_virtual nowhen;
    struct target t;
    struct clock clock;
    struct ping_idle idle;
    (void)state;
    begin(&t, &clock, script);
    road.unwanted = true;
    ping_idle(&t, 3, &idle);
    assert_int_equal(idle.kinds, 0);
    assert_string_equal(idle.why, "");
    road.unwanted = false;
    road.refuse = true;
    ping_idle(&t, 3, &idle);
    assert_string_equal(idle.why, "no more sessions");
    road.refuse = false;
    ping_idle(&t, 3, &idle);
    assert_non_null(strstr(idle.why, "given up: Protocol error"));
    assert_int_equal(idle.ping[0].idle_n, 1);
    assert_int_equal(road.closes, 1);
    clock_virtual_init(&nowhen, 0);
    t.clock = &nowhen.clock;
    ping_idle(&t, 3, &idle);
    assert_int_equal(idle.kinds, 0);
    assert_null(pinging_start(&t, NS_PER_MS));
    assert_int_equal(road.opens, 3);
}

/* ---- beside a load ---- */

static void test_load(void **state) {
    static const int64_t script[2][2] = {{100, 300}, {7, -ETIMEDOUT}};
    struct target t;
    struct clock clock;
    struct ping_idle idle = {.kinds = 2, .floor_ns = 30};
    (void)state;
    begin(&t, &clock, script);
    int64_t from = clock_now(&clock);
    struct pinging *p = pinging_start(&t, NS_PER_MS);
    pinging_window(p, from);
    await(23);
    pinging_stop(p, true);
    assert_true(road.asked[0] - road.asked[1] <= 1); /* in turn */
    struct record *r = record();
    idle.ping[1].idle_n = 4;
    idle.ping[1].idle_min = 6;
    idle.ping[1].idle_median = 7;
    pinging_gather(p, &idle, from, r);
    assert_int_equal(r->n_pings, 2);
    assert_int_equal(r->ping_floor_ns, 30);
    assert_string_equal(r->ping_error, "");
    assert_true(r->ping[0].n >= 11 && r->ping[0].lost == 0);
    assert_int_equal(r->ping[0].min, 100);
    assert_int_equal(r->ping[0].max, 300);
    assert_true(r->ping[0].values[0] >= 100 && r->ping[0].values[0] <= 300);
    assert_true(r->ping[1].lost >= 5 && r->ping[1].n + r->ping[1].lost >= 11);
    assert_true(r->ping[1].values[0] == 7); /* lost ones are not in it */
    assert_int_equal(r->ping[1].median, 7);
    assert_int_equal(r->ping[1].idle_n, 4);
    assert_int_equal(r->ping[1].idle_median, 7);
    assert_int_equal(road.opens, 1);
    assert_int_equal(road.closes, 1);
    record_free(r);
    /* what came before the window is not in it */
    r = record();
    pinging_gather(p, NULL, clock_now(&clock) + 1, r);
    assert_int_equal(r->ping[0].n + r->ping[1].lost, 0);
    assert_int_equal(r->ping[0].median, 0);
    assert_true(isnan(r->ping[0].values[0]));
    assert_int_equal(r->ping_floor_ns, 40);
    record_free(r);
    pinging_free(p);
}

static void test_after(void **state) {
    static const int64_t script[2][2] = {{100, 100}, {7, 7}};
    struct target t;
    struct clock clock;
    (void)state;
    begin(&t, &clock, script);
    struct pinging *p = pinging_start(&t, 2 * NS_PER_MS);
    await(2);
    pinging_stop(p, false);
    struct record *r = record();
    pinging_gather(p, NULL, 0, r);
    /* Five, if nothing holds the machine up for long. */
    assert_true(r->ping[0].after_n >= 1 && r->ping[0].after_n <= 5);
    assert_true(r->ping[1].after_n <= r->ping[0].after_n);
    assert_int_equal(r->ping[0].after_median, 100);
    assert_int_equal(r->ping[1].after_median, r->ping[1].after_n ? 7 : 0);
    record_free(r);
    pinging_free(p);
}

static void test_unanswered(void **state) {
    static const int64_t script[2][2] = {{50, 50}, {INT64_MIN, INT64_MIN}};
    struct target t;
    struct clock clock;
    (void)state;
    for (int hurry = 0; hurry < 2; hurry++) {
        begin(&t, &clock, script);
        struct pinging *p = pinging_start(&t, NS_PER_MS);
        await(2);
        pinging_stop(p, hurry); /* comes back: the one that is out is ended */
        struct record *r = record();
        pinging_gather(p, NULL, 0, r);
        assert_int_equal(road.aborts, 1);
        assert_int_equal(road.closes, 1);
        assert_int_equal(r->ping[1].n + r->ping[1].lost, 0);
        record_free(r);
        pinging_free(p);
    }
}

static void test_broken(void **state) {
    static const int64_t script[2][2] = {{50, 60}, {70, -EPROTO}};
    struct target t;
    struct clock clock;
    (void)state;
    begin(&t, &clock, script);
    struct pinging *p = pinging_start(&t, NS_PER_MS);
    await(4);
    pinging_stop(p, false);
    struct record *r = record();
    int64_t now = clock_now(&clock);
    r->window_ns = r->series_interval_ns = now;
    pinging_gather(p, NULL, 0, r);
    assert_int_equal(r->ping[0].n, 2);
    assert_int_equal(r->ping[1].n, 1);
    assert_non_null(strstr(r->ping_error, "given up: Protocol error"));
    assert_int_equal(road.asked[0] + road.asked[1], 4); /* none afterwards */
    record_free(r);
    pinging_free(p);

    begin(&t, &clock, script);
    road.refuse = true;
    p = pinging_start(&t, NS_PER_MS);
    pinging_stop(p, false);
    r = record();
    pinging_gather(p, NULL, 0, r);
    assert_string_equal(r->ping_error, "no more sessions");
    json_t *j = ping_json(r);
    assert_string_equal(view_text(j, "error"), "no more sessions");
    json_decref(j);
    record_free(r);
    pinging_free(p);

    begin(&t, &clock, script);
    road.unwanted = true;
    p = pinging_start(&t, NS_PER_MS);
    pinging_stop(p, false);
    r = record();
    pinging_gather(p, NULL, 0, r);
    assert_int_equal(r->n_pings, 0);
    j = ping_json(r);
    assert_true(json_is_null(j));
    json_decref(j);
    record_free(r);
    pinging_free(p);
}

/* ---- the estimate ---- */

static void test_estimate(void **state) {
    struct ping_estimate e;
    (void)state;
    struct record *r = record();
    ping_estimate(r, &e);
    assert_true(isnan(e.network) && isnan(e.front) && isnan(e.server));
    r->n_pings = 1;
    r->ping_floor_ns = 2000;
    r->ping[0] = (struct record_ping){.kind = "null_rpc", .n = 3, .min = 2500, .median = 5000, .max = 9000, .idle_n = 9,
                                      .idle_min = 2400, .idle_median = 2600};
    ping_estimate(r, &e);
    assert_true(e.network == 2000 && e.front == 3000 && isnan(e.server)); /* no I/O at all */
    hist_record(&r->op[IO_READ].clat, 6000);
    hist_record(&r->op[IO_WRITE].clat, 12000);
    ping_estimate(r, &e);
    assert_true(e.server == 4000);
    assert_true(e.network + e.front + e.server == 9000); /* the mean */
    r->ping_floor_ns = 0; /* TCP does not tell */
    ping_estimate(r, &e);
    assert_true(e.network == 2400 && e.front == 2600);
    r->ping_floor_ns = 2450; /* no ping can be faster than the network */
    ping_estimate(r, &e);
    assert_true(e.network == 2400);
    r->ping[0].idle_n = 0;
    ping_estimate(r, &e);
    assert_true(e.network == 2450);
    r->ping[0].median = 9001;
    ping_estimate(r, &e);
    assert_true(e.front == 9001 - 2450 && isnan(e.server)); /* slower than I/Os */
    r->ping[0].median = 5000;
    r->ping[0].lost = 2;
    ping_estimate(r, &e);
    assert_true(e.server == 4000); /* lost ones are in no figure ... */
    r->ping[0].lost = 3;
    ping_estimate(r, &e); /* ... but half of them spoil all */
    assert_true(e.network == 2450 && isnan(e.front) && isnan(e.server));
    record_free(r);
}

static void test_document(void **state) {
    (void)state;
    struct record *r = record();
    r->n_pings = 1;
    r->ping[0] = (struct record_ping){.kind = "null_rpc", .n = 2, .lost = 1, .min = 10, .median = 20, .max = 20};
    r->ping[0].values = malloc(sizeof(double));
    r->ping[0].values[0] = NAN;
    json_t *j = json_of_record(r);
    assert_true(view_true(j, "ping/estimate"));
    assert_string_equal(view_text(j, "ping/by"), "null_rpc");
    assert_int_equal(view_uint(j, "ping/kinds/null_rpc/lost"), 1);
    assert_int_equal(view_uint(j, "ping/kinds/null_rpc/median_ns"), 20);
    assert_true(json_is_null(view_at(j, "ping/kinds/null_rpc/idle_min_ns")));
    assert_true(view_number(j, "ping/network_ns") == 10);
    assert_true(json_is_null(view_at(j, "ping/server_ns")) && json_is_null(view_at(j, "ping/error")));
    assert_int_equal(json_array_size(view_at(j, "series/ping/null_rpc")), 1);
    assert_true(json_is_null(json_array_get(view_at(j, "series/ping/null_rpc"), 0)));
    json_decref(j);
    record_free(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_idle),   cmocka_unit_test(test_idle_without), cmocka_unit_test(test_load),
        cmocka_unit_test(test_after),  cmocka_unit_test(test_unanswered),   cmocka_unit_test(test_broken),
        cmocka_unit_test(test_estimate), cmocka_unit_test(test_document),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
