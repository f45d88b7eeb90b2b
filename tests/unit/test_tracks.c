/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The protocol's values over a run: sampled by a worker in virtual time, folded, gathered over workers, striped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "backends/stripe.h"
#include "backends/track.h"
#include "engine/tracks.h"
#include "engine/worker.h"
#include "nulltarget.h"

enum { LEVEL, COUNT, UNKNOWN, N };
static const struct track list[] = { { "level", TRACK_MAX, false },
                                     { "count", TRACK_SUM, true },
                                     { "unknown", TRACK_SUM, true },
                                     { .name = NULL } };

/* What the tested backend samples: a level, and a count of milliseconds since `since`. */
static struct { struct clock *clock; int64_t since; double level; unsigned samples; } fake;

static const struct track *fake_tracks(const struct handle *h) {
    (void)h;
    return list;
}

static void fake_sample(struct context *c, double *values) {
    (void)c;
    fake.samples++;
    values[LEVEL] = fake.level;
    values[COUNT] = fake.clock ? (double)((clock_now(fake.clock) - fake.since) / NS_PER_MS) : NAN;
    values[UNKNOWN] = NAN;
}

static const struct backend sampled = { .name = "sampled", .tracks = fake_tracks, .sample = fake_sample };

/* ---- in a worker ---- */

struct bench {
    struct clock_virtual clock;
    struct target target;
    struct backend backend;
    struct pattern pattern;
    struct worker worker;
    struct record record;
    struct err err;
};

static struct bench *bench_run(const char *const *keys, unsigned n_points) {
    struct bench *b = calloc(1, sizeof *b);
    struct worker *w = &b->worker;
    char note[200];
    clock_virtual_init(&b->clock, 1000 * NS_PER_SEC);
    nulltarget_open(&b->target, "null", "null:?lat=1ms", &b->clock.clock);
    assert_int_equal(pattern_init(&b->pattern, "p", &b->err), 0);
    for (; keys[0]; keys += 2)
        if (pattern_set(&b->pattern, keys[0], keys[1], note, sizeof note, &b->err) != 0) fail_msg("%s", b->err.msg);
    if (pattern_finish(&b->pattern, &b->err) != 0) fail_msg("%s", b->err.msg);
    b->backend = *b->target.backend;
    b->backend.tracks = fake_tracks;
    b->backend.sample = fake_sample;
    fake.clock = &b->clock.clock;
    fake.since = b->clock.t;
    fake.level = 7;
    fake.samples = 0;
    w->backend = &b->backend;
    w->handle = b->target.handle;
    w->pattern = &b->pattern;
    w->base = b->pattern.offset;
    w->size = b->pattern.size;
    w->seed = w->round = w->workers = 1;
    w->clock = &b->clock.clock;
    w->drain_limit = 60 * NS_PER_SEC;
    w->series_interval_ns = NS_PER_SEC;
    w->n_points = n_points;
    w->t_start = b->clock.t;
    w->t_window = w->t_start + (int64_t)b->pattern.ramp_time;
    w->t_end = b->pattern.io_size ? INT64_MAX : w->t_window + (int64_t)b->pattern.runtime;
    if (worker_attach(w, &b->err) != 0) fail_msg("%s", b->err.msg);
    worker_loop(w);
    worker_detach(w);
    b->record.series_interval_ns = w->series_interval_ns;
    b->record.n_points =
        (unsigned)((w->t_over - w->t_window + w->series_interval_ns - 1) / w->series_interval_ns);
    tracks_gather(&b->record, w, 1);
    return b;
}

static void record_end(struct record *r) {
    for (unsigned k = 0; k < r->n_tracks; k++) free(r->track[k].values);
    memset(r, 0, sizeof *r);
}

static void bench_free(struct bench *b) {
    record_end(&b->record);
    worker_free(&b->worker);
    pattern_free(&b->pattern);
    target_close(&b->target);
    target_free(&b->target);
    free(b);
}

#define KEYS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void near(double value, double wanted) {
    if (!(fabs(value - wanted) <= 2)) fail_msg("%g, wanted %g", value, wanted); /* an I/O takes 1 ms */
}

static void once_for_each_second(void **state) {
    (void)state;
    struct bench *b = bench_run(KEYS("size", "64m", "runtime", "4500ms", "ramp_time", "2s"), 6);
    const struct record_track *count = &b->record.track[COUNT], *level = &b->record.track[LEVEL];
    assert_int_equal(b->record.n_tracks, N);
    assert_int_equal(b->record.n_points, 5);
    assert_int_equal(fake.samples, 1 + 4 + 1);
    assert_string_equal(count->name, "count");
    assert_true(count->cumulative && !level->cumulative);
    near(count->first, 2000);
    near(count->last, 6500);
    near(count->total, 4500);
    for (unsigned i = 0; i < 4; i++) near(count->values[i], 1000);
    near(count->values[4], 500);
    for (unsigned i = 0; i < 5; i++) assert_true(level->values[i] == 7);
    assert_true(level->first == 7 && level->last == 7 && isnan(level->total));
    assert_true(isnan(b->record.track[UNKNOWN].total) && isnan(b->record.track[UNKNOWN].values[0]));
    bench_free(b);
}

/* 9216 I/Os of 1 ms each, at depth 1: the series has no room for so many seconds, and folds twice. */
static void an_amount_and_a_folded_series(void **state) {
    (void)state;
    struct bench *b = bench_run(KEYS("size", "64m", "io_size", "36m", "bs", "4k"), 4); /* 9216 ms */
    const struct record_track *count = &b->record.track[COUNT];
    double sum = 0;
    assert_true(b->record.series_interval_ns == 4 * NS_PER_SEC);
    assert_int_equal(b->record.n_points, 3);
    near(count->values[0], 4000);
    near(count->values[1], 4000);
    for (unsigned i = 0; i < 3; i++) sum += count->values[i];
    near(count->total, 9216);
    near(sum, 9216);
    bench_free(b);
}

static void a_backend_that_has_none(void **state) {
    (void)state;
    static const struct backend plain = { .name = "plain" };
    struct tracks t;
    struct worker w = { .index = 0 };
    struct record r = { .series_interval_ns = NS_PER_SEC, .n_points = 3 };
    assert_int_equal(tracks_init(&t, &plain, NULL, 8, NS_PER_SEC), 0);
    assert_true(t.due == INT64_MAX);
    w.tracks = t;
    tracks_gather(&r, &w, 1);
    assert_int_equal(r.n_tracks, 0);
    tracks_free(&t);
}

/* ---- by hand ---- */

static void sample_at(struct tracks *t, double count, double level, int64_t seconds) {
    static struct clock_virtual clock;
    clock_virtual_init(&clock, isnan(count) ? 0 : (int64_t)count * NS_PER_MS);
    fake.clock = isnan(count) ? NULL : &clock.clock;
    fake.since = 0;
    fake.level = level;
    tracks_sample(t, &sampled, NULL, 0, seconds * NS_PER_SEC);
}

/* One worker has folded its series, the other has not; one misses an interval. */
static void over_workers(void **state) {
    (void)state;
    struct worker *w = calloc(2, sizeof *w);
    struct record r = { .series_interval_ns = 2 * NS_PER_SEC, .n_points = 3 };
    assert_int_equal(tracks_init(&w[0].tracks, &sampled, NULL, 4, NS_PER_SEC), 0);
    assert_int_equal(tracks_init(&w[1].tracks, &sampled, NULL, 8, NS_PER_SEC), 0);
    for (int s = 0; s <= 6; s++) {
        sample_at(&w[0].tracks, 100 + 10 * s, s, s);
        if (s != 4) sample_at(&w[1].tracks, 5 * s, 3, s);
    }
    assert_true(w[0].tracks.interval_ns == 2 * NS_PER_SEC);
    assert_true(w[1].tracks.interval_ns == NS_PER_SEC);
    tracks_gather(&r, w, 2);
    assert_true(r.track[COUNT].first == 100);
    assert_true(r.track[COUNT].total == 60 + 30);
    assert_true(r.track[COUNT].values[0] == 20 + 10);
    assert_true(r.track[COUNT].values[1] == 20 + 5);   /* of the second worker only what was seen by then */
    assert_true(r.track[COUNT].values[2] == 20 + 15);  /* and here the rest */
    assert_true(r.track[LEVEL].values[0] == 3);        /* the larger of 2 and 3 */
    assert_true(r.track[LEVEL].values[2] == 6);
    assert_true(r.track[LEVEL].last == 6);
    record_end(&r);
    tracks_free(&w[0].tracks);
    tracks_free(&w[1].tracks);
    free(w);
}

static void what_was_known_last_stays(void **state) {
    (void)state;
    struct worker *w = calloc(1, sizeof *w);
    struct record r = { .series_interval_ns = NS_PER_SEC, .n_points = 2 };
    assert_int_equal(tracks_init(&w->tracks, &sampled, NULL, 4, NS_PER_SEC), 0);
    sample_at(&w->tracks, 10, 1, 0);
    sample_at(&w->tracks, 30, 1, 1);
    sample_at(&w->tracks, NAN, NAN, 2); /* the connection was lost */
    tracks_gather(&r, w, 1);
    assert_true(r.track[COUNT].total == 20);
    assert_true(r.track[COUNT].values[0] == 20);
    assert_true(isnan(r.track[COUNT].values[1]));
    assert_true(r.track[LEVEL].last == 1);
    record_end(&r);
    tracks_free(&w->tracks);
    free(w);
}

static void merges(void **state) {
    (void)state;
    static const double values[] = { 4, NAN, 1, 7 };
    static const struct { enum track_merge merge; double wanted; } cases[] = {
        { TRACK_SUM, 12 }, { TRACK_MIN, 1 }, { TRACK_MAX, 7 }, { TRACK_MEAN, 4 }
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct track_sum s = { 0 };
        assert_true(isnan(track_value(&s, cases[i].merge)));
        for (size_t k = 0; k < 4; k++) track_add(&s, cases[i].merge, values[k]);
        assert_true(track_value(&s, cases[i].merge) == cases[i].wanted);
    }
}

/* ---- members ---- */

static const struct track *fewer_tracks(const struct handle *h) {
    static const struct track fewer[] = { { "level", TRACK_MAX, false }, { "count", TRACK_SUM, true },
                                          { .name = NULL } };
    (void)h;
    return fewer;
}

static const struct track *other_tracks(const struct handle *h) {
    static const struct track other[] = { { "level", TRACK_MIN, false }, { "count", TRACK_SUM, true },
                                          { "unknown", TRACK_SUM, true }, { .name = NULL } };
    (void)h;
    return other;
}

static void members_of_a_stripe(void **state) {
    (void)state;
    const struct facts facts = { .size = 64 << 20, .block = 1, .mem_align = 1, .max_io = 1 << 20 };
    struct bench *b = bench_run(KEYS("size", "1m", "io_size", "4k"), 4); /* its backend over null */
    struct backend second = b->backend;
    struct stripe_member member[2] = { { &b->backend, b->target.handle, &facts },
                                       { &second, b->target.handle, &facts } };
    struct attach_how how = { .depth = 1, .max_io = 4096, .stride = 4096, .clock = &b->clock.clock,
                              .kinds = &b->worker.kinds };
    struct facts f = { 0 };
    struct context *c;
    struct handle *h;
    double v[N];

    assert_int_equal(stripe_open(member, 2, &h, &f, &b->err), 0);
    assert_ptr_equal(backend_stripe.tracks(h), list);
    how.buffers = aligned_alloc(4096, 4096);
    assert_int_equal(backend_stripe.attach(h, &how, &c, &b->err), 0);
    fake.clock = &b->clock.clock;
    fake.since = b->clock.t - 30 * NS_PER_MS;
    fake.level = 5;
    backend_stripe.sample(c, v);
    assert_true(v[LEVEL] == 5);
    assert_true(v[COUNT] == 60);
    assert_true(isnan(v[UNKNOWN]));
    backend_stripe.detach(c);
    backend_stripe.close(h);
    facts_free(&f);

    for (int i = 0; i < 3; i++) {
        second.tracks = i == 0 ? other_tracks : i == 1 ? fewer_tracks : NULL;
        assert_int_equal(stripe_open(member, 2, &h, &f, &b->err), 0);
        assert_null(backend_stripe.tracks(h));
        backend_stripe.close(h);
        facts_free(&f);
    }
    free(how.buffers);
    bench_free(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(once_for_each_second),     cmocka_unit_test(an_amount_and_a_folded_series),
        cmocka_unit_test(a_backend_that_has_none),  cmocka_unit_test(over_workers),
        cmocka_unit_test(what_was_known_last_stays), cmocka_unit_test(merges),
        cmocka_unit_test(members_of_a_stripe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
