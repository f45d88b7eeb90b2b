/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The worker's loop in virtual time over the null backend: every figure is known beforehand. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <time.h>

#include "engine/account.h"
#include "engine/worker.h"
#include "nulltarget.h"

struct bench {
    struct clock_virtual clock;
    struct target target;
    struct pattern pattern;
    struct worker worker;
    struct err err;
};

static struct bench *bench_new(const char *url, const char *const *keys) {
    struct bench *b = calloc(1, sizeof *b);
    char note[200];
    clock_virtual_init(&b->clock, 1000 * NS_PER_SEC);
    nulltarget_open(&b->target, "null", url, &b->clock.clock);
    assert_int_equal(pattern_init(&b->pattern, "p", &b->err), 0);
    assert_int_equal(pattern_set(&b->pattern, "size", "64m", note, sizeof note, &b->err), 0);
    for (; keys[0]; keys += 2)
        if (pattern_set(&b->pattern, keys[0], keys[1], note, sizeof note, &b->err) != 0) fail_msg("%s", b->err.msg);
    if (pattern_finish(&b->pattern, &b->err) != 0) fail_msg("%s", b->err.msg);
    return b;
}

static void bench_on(struct bench *b, unsigned index, unsigned workers, struct clock *clock) {
    struct worker *w = &b->worker;
    const struct pattern *p = &b->pattern;
    w->backend = b->target.backend;
    w->handle = b->target.handle;
    w->pattern = p;
    w->base = p->offset;
    w->size = p->size;
    w->seed = 1;
    w->round = 1;
    w->index = index;
    w->workers = workers;
    w->clock = clock;
    w->drain_limit = 60 * NS_PER_SEC;
    w->series_interval_ns = NS_PER_SEC;
    w->n_points = 16;
    w->t_start = b->clock.t;
    w->t_window = w->t_start + (int64_t)p->ramp_time;
    w->t_end = p->io_size || p->loops ? INT64_MAX : w->t_window + (int64_t)p->runtime;
    if (worker_attach(w, &b->err) != 0) fail_msg("%s", b->err.msg);
    worker_loop(w);
    worker_detach(w);
}

/* One worker of `workers`, from now on. */
static void bench_run(struct bench *b, unsigned index, unsigned workers) {
    bench_on(b, index, workers, &b->clock.clock);
}

static void bench_free(struct bench *b) {
    worker_free(&b->worker);
    pattern_free(&b->pattern);
    target_close(&b->target);
    target_free(&b->target);
    free(b);
}

#define KEYS(...) ((const char *const[]){__VA_ARGS__, NULL})

static uint64_t window_ns(const struct worker *w) {
    return (uint64_t)(w->t_over - w->t_window);
}
static double achieved(const struct worker *w) {
    return (double)w->depth.area / (double)window_ns(w);
}

static double little(const struct worker *w) {
    uint64_t held = (uint64_t)w->counts.failed_ns;
    for (int op = 0; op < IO_OPS; op++) held += w->counts.op[op].clat.sum;
    return (double)held / (double)window_ns(w);
}

static uint64_t good_ios(const struct worker *w) {
    return w->counts.op[IO_READ].ios + w->counts.op[IO_WRITE].ios;
}

/* Depth 8 at 1 ms each: 8000 a second, whatever happened in the ramp. */
static void test_closed_loop(void **state) {
    (void)state;
    struct bench *b = bench_new("null:?size=64m&lat=1ms",
                                KEYS("rw", "randread", "bs", "4k", "iodepth", "8", "ramp_time", "1s", "runtime", "4s"));
    bench_run(b, 0, 1);
    struct worker *w = &b->worker;
    assert_int_equal(window_ns(w), 4 * NS_PER_SEC);
    assert_in_range(good_ios(w), 4 * 8000 - 8, 4 * 8000);
    assert_int_equal(w->counts.op[IO_READ].clat.min, NS_PER_MS);
    assert_int_equal(w->counts.op[IO_READ].clat.max, NS_PER_MS);
    assert_true(achieved(w) > 7.999 && achieved(w) <= 8.0);
    assert_true(little(w) > 7.98 && little(w) <= 8.0);
    assert_int_equal(w->counts.tail.ios, 8);
    assert_int_equal(w->counts.tail.longest_ns, NS_PER_MS);
    assert_int_equal(w->counts.op[IO_READ].bytes, w->counts.op[IO_READ].ios * 4096);
    bench_free(b);
}

/* The longest time without a completion counts only while something is out, and only what lies in the window of it. */
static void test_gap(void **state) {
    (void)state;
    static const struct {
        const char *url, *think;
        int64_t gap, from;
    } cases[] = {
        {"null:?size=64m&lat=1ms", "0", NS_PER_MS, -1},
        {"null:?size=64m&lat=1ms", "1s", NS_PER_MS, -1},
        {"null:?size=64m&lat=3s", "0", 3 * NS_PER_SEC, 2 * NS_PER_SEC},  /* from 3 s to 6 s of the run */
        {"null:?size=64m&lat=60s", "0", 10 * NS_PER_SEC, 0}};            /* nothing ever came */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bench *b = bench_new(cases[i].url, KEYS("rw", "read", "bs", "64k", "iodepth", "2", "ramp_time", "1s",
                                                       "runtime", "10s", "thinktime", cases[i].think));
        bench_run(b, 0, 1);
        struct worker *w = &b->worker;
        assert_int_equal(w->counts.gap_ns, cases[i].gap);
        if (cases[i].from >= 0) assert_int_equal(w->counts.gap_from - w->t_window, cases[i].from);
        bench_free(b);
    }
}

/* A worker that did not run itself has not seen that nothing came. */
static void test_gap_of_a_sleeper(void **state) {
    (void)state;
    struct worker *w = calloc(1, sizeof *w);
    w->t_end = 100 * NS_PER_SEC;
    w->quiet_since = NS_PER_SEC;
    account_gap(w, 4 * NS_PER_SEC);
    assert_int_equal(w->counts.gap_ns, 0);
    w->looked = 2 * NS_PER_SEC;
    account_gap(w, 4 * NS_PER_SEC);
    assert_int_equal(w->counts.gap_ns, NS_PER_SEC);
    w->looked = 4 * NS_PER_SEC - 100 * NS_PER_MS;
    account_gap(w, 4 * NS_PER_SEC);
    assert_int_equal(w->counts.gap_ns, 3 * NS_PER_SEC);
    assert_int_equal(w->counts.gap_from, NS_PER_SEC);
    account_nothing(w, 5 * NS_PER_SEC); /* it stood still for more than a second; what was before is known */
    account_nothing(w, 5 * NS_PER_SEC + 100 * NS_PER_MS);
    account_gap(w, 8 * NS_PER_SEC);
    assert_int_equal(w->counts.gap_ns, 3 * NS_PER_SEC);
    free(w);
}

/* A stall at the end does not vanish: it is in the tail, not in IOPS. */
static void test_what_is_out_at_the_end_is_tail(void **state) {
    (void)state;
    struct bench *b = bench_new("null:?size=64m&lat=3s",
                                KEYS("rw", "read", "bs", "64k", "iodepth", "2", "ramp_time", "0", "runtime", "10s"));
    bench_run(b, 0, 1);
    struct worker *w = &b->worker;
    assert_int_equal(good_ios(w), 6); /* at 3, 6, 9 s */
    assert_int_equal(w->counts.tail.ios, 2);
    assert_int_equal(w->counts.tail.longest_ns, 3 * NS_PER_SEC);
    assert_int_equal(w->counts.tail.drain_ns, 2 * NS_PER_SEC);
    assert_true(achieved(w) == 2.0);
    bench_free(b);
}

static void test_series_has_a_point_a_second(void **state) {
    (void)state;
    struct bench *b = bench_new("null:?size=64m&lat=100ms",
                                KEYS("rw", "read", "bs", "4k", "iodepth", "1", "ramp_time", "2s", "runtime", "5s"));
    bench_run(b, 0, 1);
    uint64_t sum = 0;
    for (unsigned i = 0; i < 5; i++) {
        assert_in_range(b->worker.points[i].ios[IO_READ], 9, 11);
        assert_int_equal(b->worker.points[i].lat_max, 100 * NS_PER_MS);
        sum += b->worker.points[i].ios[IO_READ];
    }
    assert_int_equal(sum, good_ios(&b->worker));
    bench_free(b);
}

/* 1000 a second at 1 ms: every I/O goes out when it is due. */
static void test_open_loop_keeps_its_rate(void **state) {
    (void)state;
    struct bench *b =
        bench_new("null:?size=64m&lat=1ms", KEYS("rw", "randwrite", "bs", "4k", "iodepth", "32", "ramp_time", "1s",
                                                 "runtime", "10s", "rate_iops", "1000"));
    bench_run(b, 0, 1);
    struct worker *w = &b->worker;
    assert_in_range(good_ios(w), 9998, 10001);
    assert_int_equal(w->counts.rate_missed + w->counts.rate_unsent, 0);
    assert_int_equal(w->counts.op[IO_WRITE].lat.max, NS_PER_MS);
    assert_true(achieved(w) > 0.99 && achieved(w) < 1.01);
    bench_free(b);
}

/* One slot of 10 ms against 200 a second: 100 are done. The response time from the due time grows without bound, as the
 * users of such a target would see it, and those that never went out are in it as well; the service time stays 10 ms. */
static void test_open_loop_against_a_slow_target(void **state) {
    (void)state;
    struct bench *b = bench_new("null:?size=64m&lat=10ms", KEYS("rw", "read", "bs", "4k", "iodepth", "1", "ramp_time",
                                                                "0", "runtime", "10s", "rate_iops", "200"));
    bench_run(b, 0, 1);
    struct worker *w = &b->worker;
    assert_in_range(good_ios(w), 998, 1000);
    assert_int_equal(w->counts.op[IO_READ].clat.max, 10 * NS_PER_MS);
    /* The k-th is due at 5k ms and done at 10(k + 1), or owed until 10 s. */
    const struct hist *lat = &w->counts.op[IO_READ].lat;
    assert_true(lat->max > 4900 * NS_PER_MS && lat->max < 5100 * NS_PER_MS);
    assert_true(hist_mean(lat) > 2490e6 && hist_mean(lat) < 2520e6);
    assert_in_range(lat->n, 1998, 2000);
    assert_int_equal(w->counts.rate_missed, 0);
    assert_in_range(w->counts.rate_unsent, 998, 1000);
    bench_free(b);
}

/* A server that stops: nothing comes back from 3 s to 6 s of the window. */
static struct stop { const struct backend *null; struct clock *clock; int64_t from, to; } stop;

static int reap_unless_stopped(struct context *c, struct completion *out, unsigned max, unsigned min, int64_t timeout) {
    int64_t now = clock_now(stop.clock);
    if (now < stop.from || now >= stop.to) return stop.null->reap(c, out, max, min, timeout);
    clock_wait_until(stop.clock, now + timeout < stop.to ? now + timeout : stop.to);
    return 0;
}

/* 1000 a second for 8 s: the I/Os of 3 s wait 1.5 s each in the mean, and one in ten of all longer than 2.2 s. */
static void test_a_stop_is_seen_as_its_users_see_it(void **state) {
    (void)state;
    struct bench *b =
        bench_new("null:?size=64m&lat=10us", KEYS("rw", "randread", "bs", "4k", "iodepth", "32", "ramp_time", "1s",
                                                  "runtime", "8s", "rate_iops", "1000"));
    struct backend stopping = *b->target.backend;
    stop = (struct stop){b->target.backend, &b->clock.clock, b->clock.t + 4 * NS_PER_SEC, b->clock.t + 7 * NS_PER_SEC};
    stopping.reap = reap_unless_stopped;
    b->target.backend = &stopping;
    bench_run(b, 0, 1);
    b->target.backend = stop.null;
    const struct hist *lat = &b->worker.counts.op[IO_READ].lat;
    assert_in_range(good_ios(&b->worker), 7999, 8001);
    assert_true(hist_mean(lat) > 560e6 && hist_mean(lat) < 567e6);
    int64_t p90;
    assert_true(hist_percentile(lat, 90, &p90));
    assert_in_range(p90, 2180 * NS_PER_MS, 2220 * NS_PER_MS);
    assert_int_equal(b->worker.counts.rate_missed + b->worker.counts.rate_unsent, 0);
    bench_free(b);
}

/* That slow target with a cap of one second: what is owed for longer is given up, and counts with that time. */
static void test_backlog_over_its_cap_is_given_up(void **state) {
    (void)state;
    struct bench *b =
        bench_new("null:?size=64m&lat=10ms", KEYS("rw", "randrw", "bs", "4k", "iodepth", "1", "ramp_time", "0", "runtime",
                                                  "10s", "rate_iops", "200", "rate_backlog", "1s"));
    bench_run(b, 0, 1);
    struct worker *w = &b->worker;
    assert_in_range(good_ios(w), 998, 1000);
    assert_in_range(w->counts.rate_missed, 2000 - 1000 - 200 - 3, 2000 - 1000 - 200 + 3);
    assert_in_range(w->counts.rate_unsent, 197, 200);
    uint64_t n = 0;
    for (int op = IO_READ; op <= IO_WRITE; op++) {
        const struct hist *lat = &w->counts.op[op].lat;
        assert_true(lat->max > 900 * NS_PER_MS && lat->max < 1100 * NS_PER_MS);
        assert_true(hist_mean(lat) > 700e6 && hist_mean(lat) < 1000e6);
        assert_in_range(lat->n, 900, 1100); /* half of all, sent or not */
        n += lat->n;
    }
    assert_in_range(n, 1997, 2000);
    bench_free(b);
}

/* A rate that is kept owes nothing; nor does a run that its amount ends. */
static void test_nothing_is_owed_where_the_rate_is_kept(void **state) {
    (void)state;
    struct bench *b = bench_new("null:?size=64m&lat=10ms", KEYS("rw", "read", "bs", "4k", "iodepth", "1", "ramp_time",
                                                                "0", "io_size", "400k", "rate_iops", "200"));
    bench_run(b, 0, 1);
    assert_int_equal(good_ios(&b->worker), 100);
    assert_int_equal(b->worker.counts.op[IO_READ].lat.n, 100);
    assert_int_equal(b->worker.counts.rate_missed + b->worker.counts.rate_unsent, 0);
    bench_free(b);
}

static void test_workers_share_the_rate(void **state) {
    (void)state;
    uint64_t sum = 0;
    for (unsigned i = 0; i < 3; i++) {
        struct bench *b =
            bench_new("null:?size=64m&lat=100us", KEYS("rw", "randread", "bs", "4k", "iodepth", "4", "numjobs", "3",
                                                       "ramp_time", "0", "runtime", "10s", "rate_iops", "100"));
        bench_run(b, i, 3);
        sum += good_ios(&b->worker);
        bench_free(b);
    }
    assert_int_equal(sum, 1000);
}

static void test_thinktime_between_blocks(void **state) {
    (void)state;
    struct bench *b =
        bench_new("null:?size=64m&lat=1ms", KEYS("rw", "read", "bs", "4k", "iodepth", "1", "ramp_time", "0", "runtime",
                                                 "10s", "thinktime", "5ms", "thinktime_blocks", "5"));
    bench_run(b, 0, 1);
    assert_in_range(good_ios(&b->worker), 4995, 5001); /* 5 I/Os in 10 ms */
    bench_free(b);
}

static void test_io_size_is_exact_and_ramp_does_not_count(void **state) {
    (void)state;
    struct bench *b = bench_new("null:?size=64m&lat=1ms", KEYS("rw", "randwrite", "bs", "4k", "iodepth", "4",
                                                               "ramp_time", "1s", "io_size", "40m"));
    bench_run(b, 0, 1);
    struct worker *w = &b->worker;
    assert_int_equal(w->counts.op[IO_WRITE].bytes, 40 << 20);
    assert_int_equal(good_ios(w), 10240);
    assert_int_equal(w->counts.tail.ios, 0);
    assert_true(window_ns(w) >= 2560 * NS_PER_MS && window_ns(w) <= 2562 * NS_PER_MS);
    assert_true(achieved(w) > 3.99 && achieved(w) <= 4.0);
    bench_free(b);
}

static void test_loops_pass_over_the_set(void **state) {
    (void)state;
    struct bench *b = bench_new("null:?size=64m&lat=10us",
                                KEYS("rw", "read", "bs", "1m", "iodepth", "2", "ramp_time", "0", "loops", "3"));
    bench_run(b, 0, 1);
    assert_int_equal(b->worker.counts.op[IO_READ].bytes, 3 * (64 << 20));
    bench_free(b);
}

static void test_fsync_after_every_n_writes(void **state) {
    (void)state;
    struct bench *b = bench_new("null:?size=64m&lat=1ms", KEYS("rw", "write", "bs", "4k", "iodepth", "1", "ramp_time",
                                                               "0", "runtime", "17s", "fsync", "16"));
    bench_run(b, 0, 1);
    struct worker *w = &b->worker;
    assert_in_range(w->counts.op[IO_FLUSH].ios, 999, 1000);
    assert_in_range(w->counts.op[IO_WRITE].ios, 15999, 16000);
    assert_true(achieved(w) > 0.999); /* the flush takes a slot */
    assert_true(little(w) > 0.998);   /* and its time is in Little's sum */
    bench_free(b);
}

/* Where many complete at once, too: every target has as much to do. */
static void test_fsync_at_depth(void **state) {
    (void)state;
    for (unsigned depth = 1; depth <= 64; depth *= 8) {
        char text[16];
        snprintf(text, sizeof text, "%u", depth);
        struct bench *b = bench_new("null:?size=64m&lat=1ms", KEYS("rw", "write", "bs", "4k", "iodepth", text, "ramp_time", "0",
                                                                   "io_size", "16m", "fsync", "4"));
        bench_run(b, 0, 1);
        assert_int_equal(b->worker.counts.op[IO_WRITE].ios, 4096);
        assert_int_equal(b->worker.counts.flushes, 1024);
        bench_free(b);
    }
}

static void test_end_fsync_is_one_flush_after_the_drain(void **state) {
    (void)state;
    struct bench *b = bench_new("null:?size=64m&lat=1ms", KEYS("rw", "write", "bs", "4k", "iodepth", "4", "ramp_time",
                                                               "0", "runtime", "2s", "end_fsync", "1"));
    bench_run(b, 0, 1);
    assert_int_equal(b->worker.end_flush_ns, NS_PER_MS);
    assert_int_equal(b->worker.counts.op[IO_FLUSH].ios, 0);
    assert_int_equal(b->worker.counts.tail.ios, 4);
    bench_free(b);
}

/* Where the amount decides, too, the window ends with the last I/O: the flush behind it adds nothing to the depth. */
static void test_end_fsync_is_no_part_of_the_depth(void **state) {
    (void)state;
    struct bench *b = bench_new("null:?size=64m&lat=10ms",
                                KEYS("rw", "randwrite", "bs", "4k", "iodepth", "4", "ramp_time", "0", "io_size", "16k",
                                     "end_fsync", "1"));
    bench_run(b, 0, 1);
    assert_int_equal(b->worker.counts.op[IO_WRITE].ios, 4);
    assert_true(b->worker.end_flush_ns > 0);
    assert_float_equal(achieved(&b->worker), 4, 1e-6);
    bench_free(b);
}

static void test_errors_are_counted_and_never_latencies(void **state) {
    (void)state;
    struct bench *b = bench_new("null:?size=64m&lat=1ms&errors=100000",
                                KEYS("rw", "randread", "bs", "4k", "iodepth", "4", "ramp_time", "0", "runtime", "10s"));
    bench_run(b, 0, 1);
    struct worker *w = &b->worker;
    uint64_t all = good_ios(w) + w->counts.failed;
    assert_in_range(all, 39990, 40000);
    assert_in_range(w->counts.failed, all / 12, all / 8); /* a tenth, injected at random */
    assert_int_equal(w->counts.op[IO_READ].clat.n, good_ios(w));
    assert_true(w->kinds.n >= 1);
    assert_true(little(w) > 3.99); /* time held by failed I/Os counts */
    bench_free(b);
}

static void test_gives_up_where_everything_fails(void **state) {
    (void)state;
    struct bench *b =
        bench_new("null:?size=64m&lat=1ms&errors=1000000",
                  KEYS("rw", "randread", "bs", "4k", "iodepth", "4", "ramp_time", "0", "runtime", "1000s"));
    bench_run(b, 0, 1);
    assert_true(b->worker.gave_up);
    assert_int_equal(good_ios(&b->worker), 0);
    assert_true(window_ns(&b->worker) < 2 * NS_PER_SEC);
    bench_free(b);
}

static void test_short_transfers_are_errors(void **state) {
    (void)state;
    struct bench *b = bench_new("null:?size=64m&lat=1ms&short=200000",
                                KEYS("rw", "randread", "bs", "4k", "iodepth", "1", "ramp_time", "0", "runtime", "10s"));
    bench_run(b, 0, 1);
    struct worker *w = &b->worker;
    assert_true(w->counts.short_ios > 1500 && w->counts.short_ios < 2500);
    assert_int_equal(w->counts.failed, w->counts.short_ios);
    assert_string_equal(w->kinds.kind[0].name, "short read");
    bench_free(b);
}

static void test_a_lost_context_ends_the_run(void **state) {
    (void)state;
    struct bench *b =
        bench_new("null:?size=64m&lat=1ms&lost_after=1000",
                  KEYS("rw", "randread", "bs", "4k", "iodepth", "4", "ramp_time", "0", "runtime", "100s"));
    bench_run(b, 0, 1);
    struct worker *w = &b->worker;
    assert_true(w->lost < 0);
    assert_in_range(good_ios(w), 990, 1000);
    assert_int_equal(w->depth.outstanding, 0);
    assert_true(window_ns(w) < 300 * NS_PER_MS);
    bench_free(b);
}

/* All that was out comes back together, and nothing is left to wait for that would tell. */
static void test_a_loss_in_the_drain_is_seen(void **state) {
    (void)state;
    struct bench *b =
        bench_new("null:?size=64m&lat=1ms&lost_after=41",
                  KEYS("rw", "randread", "bs", "4k", "iodepth", "4", "ramp_time", "0", "runtime", "10500us"));
    bench_run(b, 0, 1);
    struct worker *w = &b->worker;
    assert_int_equal(good_ios(w), 40);
    assert_int_equal(w->counts.tail.ios, 4);
    assert_int_equal(w->counts.tail.errors, 3);
    assert_true(w->lost < 0);
    bench_free(b);
}

/* The stream does not depend on how fast the target is. */
static void test_fingerprints_agree_over_targets(void **state) {
    (void)state;
    const char *const *keys = KEYS("rw", "randrw", "bs", "8k", "iodepth", "8", "ramp_time", "100ms", "runtime", "2s");
    struct bench *a = bench_new("null:?size=64m&lat=1ms", keys), *b = bench_new("null:?size=64m&lat=300us", keys);
    bench_run(a, 0, 1);
    bench_run(b, 0, 1);
    unsigned common =
        a->worker.stream.n_marks < b->worker.stream.n_marks ? a->worker.stream.n_marks : b->worker.stream.n_marks;
    assert_true(common > 12);
    for (unsigned k = 0; k < common; k++) assert_int_equal(a->worker.stream.mark[k], b->worker.stream.mark[k]);
    bench_free(a);
    bench_free(b);
}

/* ---- a client that stands still ---- */

static const struct backend *below;
static struct {
    bool in_submit, over;
    int64_t ns;
} nap;

static void sleep_once(bool in_submit) {
    if (nap.over || nap.in_submit != in_submit) return;
    nap.over = true;
    nanosleep(&(struct timespec){.tv_nsec = nap.ns}, NULL);
}

static int sleepy_submit(struct context *c, struct request *const *requests, unsigned n) {
    sleep_once(true);
    return below->submit(c, requests, n);
}

static int sleepy_reap(struct context *c, struct completion *out, unsigned max, unsigned min, int64_t timeout) {
    sleep_once(false);
    return below->reap(c, out, max, min, timeout);
}

/* A thread that is stopped wakes up in its reap, long after that was to end. In submit it may be the device. */
static void test_a_client_that_stood_still(void **state) {
    (void)state;
    for (unsigned in_submit = 0; in_submit < 2; in_submit++) {
        struct clock real;
        struct bench *b = bench_new("null:?size=64m&lat=1ms", KEYS("rw", "randread", "bs", "4k", "ramp_time", "0",
                                                                    "runtime", "800ms"));
        struct backend sleepy = *(below = b->target.backend);
        struct worker *w = &b->worker;
        sleepy.submit = sleepy_submit;
        sleepy.reap = sleepy_reap;
        nap.over = false;
        nap.in_submit = in_submit;
        nap.ns = STANDSTILL + 30 * NS_PER_MS;
        clock_real_init(&real);
        b->target.backend = &sleepy;
        b->clock.t = clock_now(&real);
        bench_on(b, 0, 1, &real);
        assert_true(nap.over);
        assert_int_equal(w->counts.still.times, !in_submit);
        if (!in_submit) assert_in_range(w->counts.still.ns, nap.ns, 800 * NS_PER_MS);
        assert_int_equal(w->counts.held_to - w->counts.held_from >= nap.ns, in_submit);
        b->target.backend = below;
        bench_free(b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_closed_loop),
        cmocka_unit_test(test_gap),
        cmocka_unit_test(test_gap_of_a_sleeper),
        cmocka_unit_test(test_what_is_out_at_the_end_is_tail),
        cmocka_unit_test(test_series_has_a_point_a_second),
        cmocka_unit_test(test_open_loop_keeps_its_rate),
        cmocka_unit_test(test_open_loop_against_a_slow_target),
        cmocka_unit_test(test_a_stop_is_seen_as_its_users_see_it),
        cmocka_unit_test(test_backlog_over_its_cap_is_given_up),
        cmocka_unit_test(test_nothing_is_owed_where_the_rate_is_kept),
        cmocka_unit_test(test_workers_share_the_rate),
        cmocka_unit_test(test_thinktime_between_blocks),
        cmocka_unit_test(test_io_size_is_exact_and_ramp_does_not_count),
        cmocka_unit_test(test_loops_pass_over_the_set),
        cmocka_unit_test(test_fsync_after_every_n_writes),
        cmocka_unit_test(test_fsync_at_depth),
        cmocka_unit_test(test_end_fsync_is_one_flush_after_the_drain),
        cmocka_unit_test(test_end_fsync_is_no_part_of_the_depth),
        cmocka_unit_test(test_errors_are_counted_and_never_latencies),
        cmocka_unit_test(test_gives_up_where_everything_fails),
        cmocka_unit_test(test_short_transfers_are_errors),
        cmocka_unit_test(test_a_lost_context_ends_the_run),
        cmocka_unit_test(test_a_loss_in_the_drain_is_seen),
        cmocka_unit_test(test_fingerprints_agree_over_targets),
        cmocka_unit_test(test_a_client_that_stood_still),
    };
    return cmocka_run_group_tests_name("worker", tests, NULL, NULL);
}
