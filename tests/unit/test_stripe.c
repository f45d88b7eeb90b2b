/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The stripe over members that only write down what they are asked. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backends/stripe.h"

#define MIB ((uint64_t)STRIPE_BYTES)
#define DEPTH 16

/* ---- members ---- */

struct handle {
    int attach_fails;
    struct context *context; /* the last one */
};

struct context {
    struct handle *handle;
    struct request *held[64];   /* taken, oldest first */
    unsigned n, room, calls;    /* room: how many are taken at most */
    int lost;                   /* negative errno: submit and, when empty, reap say so */
    int64_t result;             /* of the next flush */
    struct clock *clock;
};

static int fake_attach(struct handle *h, const struct attach_how *how, struct context **out, struct err *err) {
    if (h->attach_fails) return err_set(err, STATUS_TARGET, "no");
    struct context *c = calloc(1, sizeof *c);
    c->handle = h;
    c->room = 64;
    c->clock = how->clock;
    *out = h->context = c;
    return 0;
}

static void fake_detach(struct context *c) {
    c->handle->context = NULL;
    free(c);
}

static int fake_submit(struct context *c, struct request *const *requests, unsigned n) {
    c->calls++;
    if (c->lost) return c->lost;
    unsigned k = 0;
    while (k < n && c->n < c->room) c->held[c->n++] = requests[k++];
    return (int)k;
}

static int fake_reap(struct context *c, struct completion *out, unsigned max, unsigned min, int64_t timeout_ns) {
    unsigned got = 0;
    if (c->lost && !c->n) return c->lost;
    for (; got < max && got < c->n; got++) {
        struct request *r = c->held[got];
        out[got] = (struct completion){.request = r, .t_done = clock_now(c->clock)};
        out[got].result = c->lost ? c->lost : r->op == IO_FLUSH ? c->result : r->len;
    }
    memmove(c->held, c->held + got, (c->n - got) * sizeof *c->held);
    c->n -= got;
    if (got < min && timeout_ns > 0) clock_wait_until(c->clock, clock_now(c->clock) + timeout_ns);
    return (int)got;
}

static void fake_counters(struct context *c, struct kv *out) {
    kv_uint(out, "wire_ios", c->calls);
}

static const struct backend fake = {
    .name = "fake", .attach = fake_attach, .detach = fake_detach, .submit = fake_submit, .reap = fake_reap,
    .counters = fake_counters,
};

/* ---- the stripe ---- */

struct fixture {
    struct handle member[3], *handle;
    struct facts facts, member_facts[3];
    struct context *context;
    struct clock_virtual clock;
    struct kinds kinds;
    struct request request[DEPTH], *list[DEPTH];
    struct completion done[DEPTH];
};

static int open_stripe(struct fixture *x, unsigned n, const uint64_t *size, uint32_t max_io, struct err *err) {
    struct stripe_member members[3];
    memset(x, 0, sizeof *x);
    for (unsigned i = 0; i < n && i < 3; i++) {
        x->member_facts[i] = (struct facts){.size = size[i], .block = 512u << i, .mem_align = 1, .max_io = max_io,
                                            .can_flush = true, .allocated = 10, .dpofua = ANSWER_YES,
                                            .volatile_cache = i == 1 ? ANSWER_YES : ANSWER_UNKNOWN};
        members[i] = (struct stripe_member){&fake, &x->member[i], &x->member_facts[i]};
    }
    return stripe_open(members, n, &x->handle, &x->facts, err);
}

static void set_up(struct fixture *x, unsigned n, uint64_t mib) {
    const uint64_t size[] = {mib * MIB, mib * MIB, mib * MIB};
    struct err err;
    assert_int_equal(open_stripe(x, n, size, 1 << 20, &err), 0);
    clock_virtual_init(&x->clock, 0);
    struct attach_how how = {.depth = DEPTH, .clock = &x->clock.clock, .kinds = &x->kinds};
    assert_int_equal(backend_stripe.attach(x->handle, &how, &x->context, &err), 0);
    for (unsigned i = 0; i < DEPTH; i++) {
        x->request[i] = (struct request){.slot = i, .len = 4096, .offset = i * MIB + i * 4096};
        x->list[i] = &x->request[i];
    }
}

static void tear_down(struct fixture *x) {
    backend_stripe.detach(x->context);
    backend_stripe.close(x->handle);
    facts_free(&x->facts);
}

static int submit(struct fixture *x, unsigned from, unsigned n) {
    return backend_stripe.submit(x->context, x->list + from, n);
}

static int reap(struct fixture *x, unsigned max, unsigned min, int64_t timeout_ns) {
    return backend_stripe.reap(x->context, x->done, max, min, timeout_ns);
}

static void round_the_members(void **state) {
    struct fixture x;
    bool seen[DEPTH] = {false};
    (void)state;
    set_up(&x, 3, 64);
    assert_int_equal(submit(&x, 0, 9), 9);
    for (unsigned m = 0; m < 3; m++) {
        assert_int_equal(x.member[m].context->n, 3);
        for (unsigned k = 0; k < 3; k++) {
            unsigned i = k * 3 + m;
            assert_int_equal(x.member[m].context->held[k]->offset, k * MIB + i * 4096);
            assert_int_equal(x.member[m].context->held[k]->slot, i);
            assert_int_equal(x.request[i].offset, i * MIB + i * 4096); /* the engine's stays as it was */
        }
    }
    assert_int_equal(reap(&x, DEPTH, 9, NS_PER_SEC), 9);
    for (int i = 0; i < 9; i++) {
        struct request *r = x.done[i].request;
        assert_true(r >= x.request && r < x.request + DEPTH && !seen[r->slot]);
        seen[r->slot] = true;
        assert_int_equal(x.done[i].result, 4096);
    }
    assert_int_equal(reap(&x, DEPTH, 0, 0), 0);
    tear_down(&x);
}

static void runs_share_a_call(void **state) {
    struct fixture x;
    (void)state;
    set_up(&x, 2, 64);
    for (unsigned i = 0; i < 6; i++)
        x.request[i].offset = (i / 3) * MIB + i * 4096; /* 3 for the first, 3 for the second */
    assert_int_equal(submit(&x, 0, 6), 6);
    assert_int_equal(x.member[0].context->calls, 1);
    assert_int_equal(x.member[1].context->calls, 1);
    assert_int_equal(reap(&x, DEPTH, 6, 0), 6);
    tear_down(&x);
}

/* The first k of n are taken, never one behind a gap. */
static void no_gaps(void **state) {
    struct fixture x;
    (void)state;
    set_up(&x, 2, 64);
    x.member[1].context->room = 1;
    assert_int_equal(submit(&x, 0, 6), 3); /* 0 1 0, then the second member is full */
    assert_int_equal(submit(&x, 3, 3), 0);
    assert_int_equal(x.member[0].context->n, 2);
    assert_int_equal(reap(&x, DEPTH, 0, 0), 3);
    assert_int_equal(submit(&x, 3, 3), 2);
    assert_int_equal(reap(&x, DEPTH, 0, 0), 2);
    tear_down(&x);
}

static void small_max_starves_nobody(void **state) {
    struct fixture x;
    unsigned from[2] = {0, 0};
    (void)state;
    set_up(&x, 2, 64);
    assert_int_equal(submit(&x, 0, DEPTH), DEPTH);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(reap(&x, 1, 1, NS_PER_SEC), 1);
        from[x.done[0].request->slot % 2]++;
    }
    assert_int_equal(from[0], 3);
    assert_int_equal(from[1], 3);
    assert_int_equal(reap(&x, DEPTH, DEPTH - 6, NS_PER_SEC), DEPTH - 6);
    tear_down(&x);
}

/* No I/O may leave a member, whatever its length, and every one that the size allows is served. */
static void nothing_leaves_a_member(void **state) {
    (void)state;
    for (unsigned n = 1; n <= 3; n++) {
        for (uint64_t mib = 2; mib < 24; mib++) {
            for (uint32_t max_io = 1 << 20; max_io <= 16u << 20; max_io += 3 << 19) {
                const uint64_t size[] = {mib * MIB + 4096, mib * MIB, mib * MIB};
                struct fixture x;
                struct err err;
                if (open_stripe(&x, n, size, max_io, &err) < 0) fail_msg("%u x %u MiB: %s", n, (unsigned)mib, err.msg);
                uint64_t worst = 0;
                for (uint64_t stripe = 0; stripe * MIB < x.facts.size; stripe++) {
                    uint64_t start = stripe * MIB + MIB - 512, len = x.facts.size - start;
                    if (len > x.facts.max_io) len = x.facts.max_io;
                    uint64_t end = stripe / n * MIB + MIB - 512 + len;
                    if (end > worst) worst = end;
                }
                assert_true(x.facts.size > 0 && worst <= mib * MIB + (n == 1 ? 4096 : 0));
                if (x.facts.max_io == 1 << 20 && n > 1) assert_true(worst > (mib - 1) * MIB); /* and little is wasted */
                backend_stripe.close(x.handle);
                facts_free(&x.facts);
            }
        }
    }
}

static void beyond_the_end(void **state) {
    struct fixture x;
    (void)state;
    set_up(&x, 2, 8);
    x.request[0].offset = x.facts.size - 2048; /* the last 2 KiB and 2 KiB more */
    x.request[1].offset = UINT64_MAX - 4095;
    assert_int_equal(submit(&x, 0, 2), 2);
    assert_int_equal(x.member[1].context->held[0]->offset, 8 * MIB);
    assert_int_equal(reap(&x, DEPTH, 2, 0), 2);
    tear_down(&x);
}

static void facts_are_combined(void **state) {
    const uint64_t size[] = {8 * MIB, 9 * MIB, 8 * MIB};
    struct fixture x;
    struct err err;
    (void)state;
    assert_int_equal(open_stripe(&x, 3, size, 1 << 20, &err), 0);
    assert_int_equal(x.facts.block, 2048);
    assert_int_equal(x.facts.allocated, 30);
    assert_int_equal(x.facts.size, 3 * 7 * MIB);
    assert_int_equal(x.facts.dpofua, ANSWER_YES);
    assert_int_equal(x.facts.volatile_cache, ANSWER_YES);
    assert_non_null(kv_find(&x.facts.warnings, "members-differ"));
    backend_stripe.close(x.handle);
    facts_free(&x.facts);
    const uint64_t tiny[] = {MIB - 512, 9 * MIB};
    assert_int_equal(open_stripe(&x, 2, tiny, 1 << 20, &err), -1);
    assert_int_equal(err.status, STATUS_USAGE);
    facts_free(&x.facts);
}

static void flush_asks_all(void **state) {
    struct fixture x;
    (void)state;
    set_up(&x, 3, 64);
    x.request[0].op = IO_FLUSH;
    assert_int_equal(submit(&x, 0, 2), 2);
    for (unsigned m = 0; m < 3; m++) assert_int_equal(x.member[m].context->held[0]->op, IO_FLUSH);
    x.member[1].context->result = -EIO;
    assert_int_equal(reap(&x, DEPTH, 2, NS_PER_SEC), 2);
    const struct completion *flush = x.done[0].request == &x.request[0] ? &x.done[0] : &x.done[1];
    assert_ptr_equal(flush->request, &x.request[0]);
    assert_int_equal(flush->result, -EIO);
    x.member[1].context->result = 0;
    assert_int_equal(submit(&x, 0, 1), 1);
    assert_int_equal(reap(&x, DEPTH, 1, NS_PER_SEC), 1);
    assert_int_equal(x.done[0].result, 0);
    assert_int_equal(reap(&x, DEPTH, 0, 0), 0);
    tear_down(&x);
}

static void flush_waits_for_room(void **state) {
    struct fixture x;
    (void)state;
    set_up(&x, 2, 64);
    x.request[0].op = IO_FLUSH;
    x.member[1].context->room = 0;
    assert_int_equal(submit(&x, 0, 1), 1); /* the first member has it */
    assert_int_equal(reap(&x, DEPTH, 1, NS_PER_MS), 0);
    x.member[1].context->room = 64;
    assert_int_equal(reap(&x, DEPTH, 1, NS_PER_MS), 1);
    assert_ptr_equal(x.done[0].request, &x.request[0]);
    x.member[0].context->room = x.member[1].context->room = 0;
    assert_int_equal(submit(&x, 0, 1), 0);
    assert_int_equal(reap(&x, DEPTH, 1, NS_PER_MS), 0);
    tear_down(&x);
}

static void lost_member(void **state) {
    struct fixture x;
    (void)state;
    set_up(&x, 2, 64);
    assert_int_equal(submit(&x, 0, 4), 4);
    x.member[1].context->lost = -ENOTCONN;
    assert_int_equal(submit(&x, 4, 2), 1); /* the first member takes its one; the loss is told by the next call */
    assert_int_equal(submit(&x, 5, 1), -ENOTCONN);
    int got = reap(&x, DEPTH, 5, NS_PER_MS), bad = 0;
    assert_int_equal(got, 5);
    for (int i = 0; i < got; i++) bad += x.done[i].result == -ENOTCONN;
    assert_int_equal(bad, 2);
    assert_int_equal(reap(&x, DEPTH, 1, NS_PER_MS), -ENOTCONN);
    tear_down(&x);
}

static void flush_of_lost_members(void **state) {
    struct fixture x;
    (void)state;
    set_up(&x, 2, 64);
    x.request[0].op = IO_FLUSH;
    x.member[0].context->lost = -EIO;
    assert_int_equal(submit(&x, 0, 1), 1);
    assert_int_equal(reap(&x, DEPTH, 1, NS_PER_MS), 1);
    assert_int_equal(x.done[0].result, -EIO);
    assert_string_equal(x.kinds.kind[x.done[0].kind].name, "member lost");
    assert_int_equal(reap(&x, DEPTH, 1, NS_PER_MS), -EIO);
    tear_down(&x);
    set_up(&x, 2, 64);
    x.request[0].op = IO_FLUSH;
    x.member[0].context->lost = x.member[1].context->lost = -EIO;
    assert_int_equal(submit(&x, 0, 1), 1);
    assert_int_equal(reap(&x, DEPTH, 1, NS_PER_MS), 1);
    assert_int_equal(x.done[0].result, -EIO);
    assert_int_equal(reap(&x, DEPTH, 1, NS_PER_MS), -EIO);
    tear_down(&x);
}

static void waits_no_longer(void **state) {
    struct fixture x;
    struct kv kv = {0};
    (void)state;
    set_up(&x, 3, 64);
    assert_int_equal(reap(&x, DEPTH, 1, 777 * NS_PER_US), 0);
    assert_int_equal(x.clock.t, 777 * NS_PER_US);
    assert_int_equal(submit(&x, 0, 3), 3);
    backend_stripe.counters(x.context, &kv);
    assert_int_equal(kv_get_uint(&kv, "wire_ios", 0), 3);
    kv_free(&kv);
    tear_down(&x);
}

static void attach_fails_whole(void **state) {
    struct fixture x;
    struct err err = {0};
    (void)state;
    set_up(&x, 3, 64);
    struct context *none = NULL;
    struct attach_how how = {.depth = DEPTH, .clock = &x.clock.clock, .kinds = &x.kinds};
    tear_down(&x);
    set_up(&x, 3, 64);
    backend_stripe.detach(x.context);
    x.member[2].attach_fails = 1;
    assert_int_equal(backend_stripe.attach(x.handle, &how, &none, &err), -1);
    assert_string_equal(err.msg, "member 3: no");
    assert_null(x.member[0].context);
    assert_null(x.member[1].context);
    backend_stripe.close(x.handle);
    facts_free(&x.facts);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_the_members), cmocka_unit_test(runs_share_a_call), cmocka_unit_test(no_gaps),
        cmocka_unit_test(small_max_starves_nobody), cmocka_unit_test(nothing_leaves_a_member),
        cmocka_unit_test(beyond_the_end), cmocka_unit_test(facts_are_combined), cmocka_unit_test(flush_asks_all),
        cmocka_unit_test(flush_waits_for_room), cmocka_unit_test(lost_member), cmocka_unit_test(flush_of_lost_members),
        cmocka_unit_test(waits_no_longer), cmocka_unit_test(attach_fails_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
