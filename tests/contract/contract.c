/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "base/rng.h"
#include "tests/contract/contract.h"

#define PATIENCE (60 * NS_PER_SEC)
#define SLACK    (2 * NS_PER_SEC) /* for a loaded machine: what "does not block" may take */
#define MAX_IO   16384u

static unsigned depth_for(const struct object *o, unsigned wanted) {
    return o->facts.max_depth && o->facts.max_depth < wanted ? o->facts.max_depth : wanted;
}

static void attach(struct rig *r, struct object *o, unsigned depth, bool write) {
    if (!rig_attach(r, o, depth_for(o, depth), MAX_IO, write)) fail_msg("%s: %s", o->s->name, r->why);
}

/* The rig's own words, if `ok` is false. */
static void need(struct rig *r, bool ok) {
    if (!ok) fail_msg("%s, depth %u: %s", r->o->s->name, r->depth, r->why);
}

static int64_t real_now(void) {
    struct clock real;
    clock_real_init(&real);
    return clock_now(&real);
}

static void case_facts(void **state) {
    struct object o;
    object_open_write(&o, *state);
    const struct facts *f = &o.facts;
    assert_true(f->exists);
    assert_true(f->size >= 1u << 20);
    assert_true(f->block >= 1 && f->block <= 65536 && (f->block & (f->block - 1)) == 0);
    assert_true(f->mem_align >= 1 && f->mem_align <= 65536 && (f->mem_align & (f->mem_align - 1)) == 0);
    assert_true(f->max_io >= MAX_IO);
    assert_int_equal(f->size % f->block, 0);
    assert_true(f->summary[0] && f->engine[0]);
    assert_true(f->kind != OBJECT_FILE || f->fs_total == 0 || f->fs_free <= f->fs_total);
    if (o.s->create_size) assert_int_equal(f->size, o.s->create_size);
    assert_string_equal(f->in_use, "");
    assert_non_null(o.backend->name);
    object_close(&o);
}

static void case_mixed(void **state) {
    static const unsigned depths[] = {1, 2, 32, 256};
    const struct contract_subject *s = *state;
    struct object o;
    struct rig r;
    object_open_write(&o, s);
    for (size_t i = 0; i < sizeof depths / sizeof *depths; i++) {
        unsigned ios = s->ios ? s->ios : 1000;
        if (depths[i] == 1) ios /= 4;
        attach(&r, &o, depths[i], true);
        need(&r, rig_mixed(&r, ios, true));
        if (r.longest_submit > SLACK) fail_msg("%s: submit took %lld ns", s->name, (long long)r.longest_submit);
        rig_detach(&r);
    }
    object_close(&o);
}

static unsigned char content(unsigned slot, size_t i) {
    return (unsigned char)(slot * 37 + i * 11 + (i >> 8));
}

static void case_data(void **state) {
    const struct contract_subject *s = *state;
    struct object o;
    struct rig r;
    object_open_write(&o, s);
    attach(&r, &o, 16, true);
    uint32_t unit = rig_unit(&r);
    /* Far apart, so that members of a stripe and blocks of a file all get some; the last one ends at the end. */
    uint64_t step = (r.size - unit) / (r.depth - 1) / unit * unit;
    for (unsigned i = 0; i < r.depth; i++) {
        struct request *q =
            rig_prepare(&r, i, IO_WRITE, SYNC_NONE, i + 1 < r.depth ? i * step : r.size / unit * unit - unit, unit);
        for (size_t k = 0; k < unit; k++) ((unsigned char *)q->buf)[k] = content(i, k);
    }
    need(&r, rig_submit_all(&r, r.depth) && rig_drain(&r));
    for (unsigned i = 0; i < r.depth; i++) assert_int_equal(r.done[i].result, unit);
    memset(r.buffers, 0, r.depth * r.stride);
    for (unsigned i = 0; i < r.depth; i++) rig_prepare(&r, i, IO_READ, SYNC_NONE, r.request[i].offset, unit);
    need(&r, rig_submit_all(&r, r.depth) && rig_drain(&r));
    for (unsigned i = 0; i < r.depth; i++) {
        assert_int_equal(r.done[i].result, unit);
        const unsigned char *buf = r.request[i].buf;
        for (size_t k = 0; k < unit; k++)
            if (buf[k] != content(i, k)) fail_msg("%s: byte %zu of slot %u is wrong", s->name, k, i);
    }
    rig_detach(&r);
    object_close(&o);
}

/* One after another, mostly reads in sequence, with writes behind, at and before the place that is read: what a filter
 * keeps in memory, or reads ahead, must never be older than the last write. */
static void case_sequence(void **state) {
    const struct contract_subject *s = *state;
    struct object o;
    struct rig r;
    object_open_write(&o, s);
    attach(&r, &o, 2, true);
    uint32_t unit = rig_unit(&r);
    uint64_t units = r.size / unit < 512 ? r.size / unit : 512, first = r.size / unit - units, at = 0;
    unsigned char *version = calloc(units, 1);
    assert_non_null(version);
    for (unsigned i = 0; i < 1500; i++) {
        r.rng = rng_mix(r.rng);
        bool write = i < units || r.rng % 8 == 0;
        uint64_t where = i < units ? i : write ? (at + (r.rng >> 8) % 24 + units - 4) % units : at++ % units;
        struct request *q = rig_prepare(&r, 0, write ? IO_WRITE : IO_READ, SYNC_NONE, (first + where) * unit, unit);
        if (write) memset(q->buf, ++version[where] + (int)where, unit);
        else memset(q->buf, 0, unit);
        need(&r, rig_submit_all(&r, 1) && rig_drain(&r));
        assert_int_equal(r.done[0].result, unit);
        for (uint32_t k = 0; k < unit && !write; k++)
            if (r.buffers[k] != (unsigned char)(version[where] + where))
                fail_msg("%s: I/O %u: byte %u of block %llu is not the last one written", s->name, i, k,
                         (unsigned long long)where);
        if (r.rng % 97 == 0) at = (r.rng >> 40) % units;
    }
    free(version);
    rig_detach(&r);
    object_close(&o);
}

static void case_reap_counts(void **state) {
    struct object o;
    struct rig r;
    object_open_write(&o, *state);
    attach(&r, &o, 8, false);
    unsigned n = r.depth;
    /* min is waited for */
    for (unsigned i = 0; i < n; i++) rig_prepare(&r, i, IO_READ, SYNC_NONE, (uint64_t)i * 4096 * 4, 4096 * (1 + i % 2));
    need(&r, rig_submit_all(&r, n));
    assert_int_equal(rig_reap(&r, n, n, PATIENCE), n);
    /* max is kept to, and what is left comes later */
    for (unsigned i = 0; i < n; i++) rig_prepare(&r, i, IO_READ, SYNC_NONE, (uint64_t)i * 4096 * 4, 4096);
    need(&r, rig_submit_all(&r, n));
    unsigned got = 0;
    while (got < n) {
        int k = rig_reap(&r, 3, 1, PATIENCE);
        if (k < 1 || k > 3) fail_msg("%d of at most 3: %s", k, r.why);
        got += (unsigned)k;
    }
    assert_int_equal(got, n);
    assert_int_equal(rig_reap(&r, n, 0, 0), 0);
    rig_detach(&r);
    object_close(&o);
}

static void case_reap_idle(void **state) {
    const struct contract_subject *s = *state;
    struct object o;
    struct rig r;
    object_open_write(&o, s);
    attach(&r, &o, 4, false);
    int64_t start = real_now();
    for (int i = 0; i < 100; i++) assert_int_equal(rig_reap(&r, 4, 1, 0), 0);
    assert_true(real_now() - start < SLACK);
    start = real_now();
    int64_t clock_start = clock_now(r.clock), timeout = 50 * NS_PER_MS;
    assert_int_equal(rig_reap(&r, 4, 1, timeout), 0);
    assert_true(real_now() - start < timeout + SLACK);
    /* An engine sleeps in here until its next I/O is due: returning at once would make it spin. */
    assert_true(clock_now(r.clock) - clock_start >= timeout - NS_PER_MS);
    rig_detach(&r);
    object_close(&o);
}

static volatile sig_atomic_t alarms;

static void on_alarm(int number) {
    (void)number;
    alarms = alarms + 1;
}

/* Signals keep coming: a wait that starts anew after each would never end. */
static void case_signals(void **state) {
    const struct contract_subject *s = *state;
    struct object o;
    struct rig r;
    struct sigaction action = {.sa_handler = on_alarm}, old;
    struct itimerval every = {{0, 5000}, {0, 5000}}, off = {{0, 0}, {0, 0}};
    object_open_write(&o, s);
    attach(&r, &o, 4, false);
    sigaction(SIGALRM, &action, &old);
    alarms = 0;
    setitimer(ITIMER_REAL, &every, NULL);
    int64_t start = real_now(), timeout = 100 * NS_PER_MS;
    int got = rig_reap(&r, 4, 1, timeout);
    int64_t took = real_now() - start;
    rig_prepare(&r, 0, IO_READ, SYNC_NONE, 0, 4096);
    bool ok = rig_submit_all(&r, 1);
    int spins = 0;
    while (ok && r.n_lent && spins++ < 10000) ok = rig_reap(&r, 4, 1, timeout) >= 0;
    setitimer(ITIMER_REAL, &off, NULL);
    sigaction(SIGALRM, &old, NULL);
    need(&r, ok);
    assert_int_equal(got, 0);
    assert_int_equal(r.n_lent, 0);
    assert_true(took < timeout + SLACK);
    assert_true(alarms > 0);
    rig_detach(&r);
    object_close(&o);
}

static void case_no_malloc(void **state) {
    const struct contract_subject *s = *state;
    struct object o;
    struct rig r;
    object_open_write(&o, s);
    attach(&r, &o, 32, true);
    need(&r, rig_mixed(&r, 64, true));
    uint64_t before = contract_allocations();
    assert_true(before > 0); /* else they are not counted: the link lacks --wrap */
    bool ok = rig_mixed(&r, 500, true);
    uint64_t after = contract_allocations();
    need(&r, ok);
    assert_int_equal(after - before, 0);
    rig_detach(&r);
    object_close(&o);
}

static void case_flush(void **state) {
    struct object o;
    struct rig r;
    object_open_write(&o, *state);
    if (o.facts.can_flush) {
        attach(&r, &o, 8, true);
        need(&r, rig_one(&r, IO_WRITE, SYNC_NONE, 0, 4096));
        need(&r, rig_one(&r, IO_FLUSH, SYNC_NONE, 0, 0));
        if (r.done[0].result != 0) fail_msg("flush: %s", r.kinds.kind[r.done[0].kind].text);
        /* among others, and the slot serves for I/O afterwards */
        for (unsigned i = 0; i < r.depth; i++)
            rig_prepare(&r, i, i % 4 ? IO_WRITE : IO_FLUSH, SYNC_NONE, i * 65536u, 4096);
        need(&r, rig_submit_all(&r, r.depth) && rig_drain(&r));
        for (unsigned i = 0; i < r.depth; i++) assert_int_equal(r.done[i].result, i % 4 ? 4096 : 0);
        need(&r, rig_one(&r, IO_READ, SYNC_NONE, 4096, 4096));
        assert_int_equal(r.done[0].result, 4096);
        rig_detach(&r);
    }
    object_close(&o);
}

static void case_sync(void **state) {
    struct object o;
    struct rig r;
    object_open_write(&o, *state);
    attach(&r, &o, 4, true);
    for (int sync = SYNC_NONE; sync <= SYNC_SYNC; sync++) {
        need(&r, rig_one(&r, IO_WRITE, (enum io_sync)sync, 8192, 4096));
        if (r.done[0].result != 4096)
            fail_msg("sync=%s: %s", io_sync_name((enum io_sync)sync), r.kinds.kind[r.done[0].kind].text);
        if (o.facts.volatile_cache == ANSWER_NO) assert_true(r.done[0].stable);
        if (sync >= SYNC_DSYNC && o.facts.dpofua == ANSWER_YES) assert_true(r.done[0].stable);
    }
    need(&r, rig_one(&r, IO_READ, SYNC_SYNC, 8192, 4096));
    assert_int_equal(r.done[0].result, 4096);
    assert_false(r.done[0].stable); /* that is a word about writes */
    rig_detach(&r);
    object_close(&o);
}

/* With everything in flight; afterwards the buffers are ours again. */
static void case_detach(void **state) {
    struct object o;
    struct rig r;
    struct timespec pause = {0, 20 * NS_PER_MS};
    object_open_write(&o, *state);
    for (int round = 0; round < 5; round++) {
        attach(&r, &o, 32, true);
        for (unsigned i = 0; i < r.depth; i++) rig_prepare(&r, i, IO_READ, SYNC_NONE, i * 16384u, MAX_IO);
        need(&r, rig_submit_all(&r, r.depth));
        o.backend->detach(r.context);
        r.context = NULL;
        memset(r.buffers, 0x5A, r.depth * r.stride);
        if (!o.s->virtual_clock) nanosleep(&pause, NULL);
        for (size_t i = 0; i < r.depth * r.stride; i++)
            if (r.buffers[i] != 0x5A) fail_msg("a buffer was written after detach");
        rig_detach(&r);
    }
    attach(&r, &o, 4, true); /* and the object is as good as before */
    need(&r, rig_one(&r, IO_READ, SYNC_NONE, 0, 4096));
    assert_int_equal(r.done[0].result, 4096);
    rig_detach(&r);
    object_close(&o);
}

struct worker {
    struct object *o;
    struct rig rig;
    unsigned index, ios;
    bool ok;
};

static void *work(void *arg) {
    struct worker *w = arg;
    w->ok = rig_attach(&w->rig, w->o, depth_for(w->o, 16), MAX_IO, true);
    w->rig.size = w->o->facts.size / 2 / 65536 * 65536;
    w->rig.base = w->index * w->rig.size;
    w->rig.rng = w->index;
    w->ok = w->ok && rig_mixed(&w->rig, w->ios, true);
    if (w->rig.context) w->o->backend->detach(w->rig.context);
    w->rig.context = NULL;
    return NULL;
}

static void case_threads(void **state) {
    const struct contract_subject *s = *state;
    struct object o;
    struct worker w[2] = {{.index = 0}, {.index = 1}};
    pthread_t thread[2];
    object_open_write(&o, s);
    for (unsigned i = 0; i < 2; i++) {
        w[i].o = &o;
        w[i].ios = s->ios ? s->ios : 1000;
        assert_int_equal(pthread_create(&thread[i], NULL, work, &w[i]), 0);
    }
    for (unsigned i = 0; i < 2; i++) pthread_join(thread[i], NULL);
    for (unsigned i = 0; i < 2; i++) {
        need(&w[i].rig, w[i].ok);
        rig_detach(&w[i].rig);
    }
    object_close(&o);
}

/* What lies beyond the end is an error or a short count, in time. */
static void case_end(void **state) {
    struct object o;
    struct rig r;
    object_open_write(&o, *state);
    attach(&r, &o, 2, false);
    uint32_t unit = rig_unit(&r);
    uint64_t end = o.facts.size / unit * unit;
    need(&r, rig_one(&r, IO_READ, SYNC_NONE, end - unit, unit));
    assert_int_equal(r.done[0].result, unit);
    need(&r, rig_one(&r, IO_READ, SYNC_NONE, end + unit, unit));
    assert_true(r.done[0].result <= 0);
    need(&r, rig_one(&r, IO_READ, SYNC_NONE, end - unit, 2 * unit));
    assert_true(r.done[0].result <= (int64_t)(o.facts.size - (end - unit)));
    need(&r, rig_one(&r, IO_READ, SYNC_NONE, 0, unit)); /* still alive */
    assert_int_equal(r.done[0].result, unit);
    rig_detach(&r);
    object_close(&o);
}

static void case_open_read_creates_nothing(void **state) {
    const struct contract_subject *s = *state;
    struct object o;
    struct err err;
    for (int i = 0; i < 2; i++) {
        object_open(&o, s, OPEN_READ, NULL);
        assert_false(o.facts.exists);
        object_close(&o);
    }
    assert_int_equal(object_open(&o, s, OPEN_WRITE, &err), -1);
    assert_int_equal(err.status, STATUS_TARGET);
}

static void case_create_is_exclusive(void **state) {
    const struct contract_subject *s = *state;
    struct object mine, other;
    struct err err;
    if (!s->create_size) {
        assert_int_equal(object_open(&other, s, OPEN_CREATE, &err), -1);
        return;
    }
    object_open(&mine, s, OPEN_CREATE, NULL);
    assert_int_equal(object_open(&other, s, OPEN_CREATE, &err), -1);
    assert_int_equal(err.status, STATUS_TARGET);
    assert_true(err.msg[0] != 0);
    /* Only who created it removes it. */
    object_open(&other, s, OPEN_WRITE, NULL);
    assert_int_equal(other.facts.size, s->create_size);
    assert_string_equal(other.facts.identity[0], mine.facts.identity[0]);
    assert_int_equal(other.backend->remove(other.handle, &err), -1);
    object_close(&other);
    object_close(&mine);
    object_open(&other, s, OPEN_READ, NULL);
    assert_false(other.facts.exists);
    object_close(&other);
}

static void case_open_read_never_writes(void **state) {
    const struct contract_subject *s = *state;
    struct object keeper, o;
    struct rig r;
    if (s->create_size) object_open(&keeper, s, OPEN_CREATE, NULL);
    object_open(&o, s, OPEN_READ, NULL);
    assert_true(o.facts.exists);
    attach(&r, &o, 2, false);
    need(&r, rig_one(&r, IO_WRITE, SYNC_NONE, 0, 4096));
    assert_true(r.done[0].result < 0);
    need(&r, rig_one(&r, IO_READ, SYNC_NONE, 0, 4096));
    assert_int_equal(r.done[0].result, 4096);
    if (s->create_size)
        for (unsigned i = 0; i < 4096; i++) assert_int_equal(r.buffers[i], 0);
    rig_detach(&r);
    object_close(&o);
    if (s->create_size) object_close(&keeper);
}

static void case_counters(void **state) {
    struct object o;
    struct rig r;
    struct kv kv = {0};
    uint64_t before = 0, after = 0;
    object_open_write(&o, *state);
    attach(&r, &o, 4, false);
    bool stats = o.backend->wire_ios && o.backend->wire_ios(o.handle, &before) == 0;
    need(&r, rig_mixed(&r, 100, false));
    if (o.backend->counters) o.backend->counters(r.context, &kv);
    if (!o.backend->wire_ios) assert_true(kv_get_uint(&kv, "wire_ios", 0) >= 1);
    if (stats) assert_true(o.backend->wire_ios(o.handle, &after) == 0 && after >= before);
    kv_free(&kv);
    rig_detach(&r);
    object_close(&o);
}

/* A list with an end, values for it and no more, without an allocation; what is cumulative never shrinks. */
static void case_tracks(void **state) {
    double before[BACKEND_TRACKS + 1], after[BACKEND_TRACKS + 1];
    struct object o;
    struct rig r;
    unsigned n = 0;
    object_open_write(&o, *state);
    const struct track *list = o.backend->tracks ? o.backend->tracks(o.handle) : NULL;
    if (list) assert_non_null(o.backend->sample);
    while (list && list[n].name) n++;
    assert_in_range(n, 0, BACKEND_TRACKS);
    attach(&r, &o, 4, false);
    for (unsigned i = 0; i <= BACKEND_TRACKS; i++) before[i] = after[i] = -7;
    if (n) o.backend->sample(r.context, before);
    need(&r, rig_mixed(&r, 100, false));
    uint64_t allocations = contract_allocations();
    if (n) o.backend->sample(r.context, after);
    assert_int_equal(contract_allocations(), allocations);
    for (unsigned i = 0; i <= BACKEND_TRACKS; i++) {
        if (i >= n) assert_true(after[i] == -7);
        else if (list[i].cumulative && !isnan(after[i])) assert_true(after[i] >= before[i] || isnan(before[i]));
    }
    rig_detach(&r);
    object_close(&o);
}

/* Beside a load; where there is nothing to ask, nothing pretends to. */
static void case_pings(void **state) {
    struct object o;
    struct rig r;
    struct err err;
    struct pinger *p;
    object_open_write(&o, *state);
    const struct backend *b = o.backend;
    if (!b->pings) {
        assert_true(!b->ping_open && !b->ping && !b->ping_floor && !b->ping_abort && !b->ping_close);
        object_close(&o);
        return;
    }
    attach(&r, &o, 4, false);
    if (b->ping_open(o.handle, &p, &err) != 0) fail_msg("%s", err.msg);
    assert_non_null(p);
    for (unsigned round = 0; round < 3; round++) {
        need(&r, rig_mixed(&r, 20, false));
        for (unsigned kind = 0; b->pings[kind]; kind++) {
            int64_t ns = b->ping(p, kind, 10 * NS_PER_SEC);
            assert_true(ns > 0 && ns < 10 * NS_PER_SEC);
            assert_true(b->ping_floor(p) > 0);
        }
    }
    b->ping_abort(p);
    assert_true(b->ping(p, 0, 10 * NS_PER_SEC) < 0);
    b->ping_close(p);
    rig_detach(&r);
    object_close(&o);
}

static bool keeps_data(const struct contract_subject *s) {
    return !s->loses_data;
}
static bool real_time(const struct contract_subject *s) {
    return !s->virtual_clock;
}
static bool creates(const struct contract_subject *s) {
    return s->create_size > 0;
}

int contract_run(const struct contract_subject *s) {
    /* `where`: what a subject must have for a case to mean anything; NULL: nothing. */
    static const struct {
        const char *name;
        CMUnitTestFunction run;
        bool (*where)(const struct contract_subject *);
    } cases[] = {
        {"facts", case_facts, NULL},
        {"mixed load, each request back exactly once", case_mixed, NULL},
        {"written bytes are read back", case_data, keeps_data},
        {"reads in sequence see the last write", case_sequence, keeps_data},
        {"reap keeps to min and max", case_reap_counts, NULL},
        {"reap of an idle context", case_reap_idle, NULL},
        {"reap among signals", case_signals, real_time},
        {"no malloc on the data path", case_no_malloc, NULL},
        {"flush", case_flush, NULL},
        {"sync", case_sync, NULL},
        {"detach with requests in flight", case_detach, NULL},
        {"two threads on one handle", case_threads, NULL},
        {"the end of the object", case_end, NULL},
        {"OPEN_READ creates nothing", case_open_read_creates_nothing, creates},
        {"OPEN_CREATE is exclusive", case_create_is_exclusive, NULL},
        {"OPEN_READ never writes", case_open_read_never_writes, NULL},
        {"counters", case_counters, NULL},
        {"tracks", case_tracks, NULL},
        {"pings", case_pings, NULL},
    };
    enum { N = sizeof cases / sizeof *cases };
    struct CMUnitTest tests[N];
    char names[N][128];
    size_t n = 0;
    for (size_t i = 0; i < N; i++) {
        if (cases[i].where && !cases[i].where(s)) continue;
        snprintf(names[n], sizeof names[n], "%s: %s", s->name, cases[i].name);
        tests[n] = (struct CMUnitTest){names[n], cases[i].run, NULL, NULL, (void *)(uintptr_t)s};
        n++;
    }
    return _cmocka_run_group_tests(s->name, tests, n, NULL, NULL);
}
