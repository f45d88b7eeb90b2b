/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The contract test's own small engine: opens objects, lends requests and checks what comes back. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "tests/contract/contract.h"

#define PATIENCE (60 * NS_PER_SEC)

/* ---- objects ---- */

static int open_url(struct object *o, enum open_mode mode, struct err *err) {
    static struct clock real;
    struct url url;
    int rc = -1;
    if (url_parse(o->s->url, &url, err) < 0) return -1;
    o->backend = o->s->backend ? o->s->backend : backend_for_url(&url, err);
    if (!o->backend) goto out;
    o->conf = calloc(1, o->backend->conf_size);
    assert_non_null(o->conf);
    if (option_defaults(o->backend->options, o->conf, err) < 0 || o->backend->configure(&url, o->conf, err) < 0)
        goto out;
    for (size_t i = 0; i < url.n_keys; i++)
        if (option_set(o->backend->options, o->conf, url.keys[i].name, url.keys[i].value, err) < 0) goto out;
    if (o->s->key && option_set(o->backend->options, o->conf, o->s->key, o->s->value, err) < 0) goto out;
    if (o->backend->check && o->backend->check(o->conf, err) < 0) goto out;
    struct open_how how = {.conf = o->conf, .mode = mode, .create_size = o->s->create_size, .clock = &real};
    rc = o->backend->open(&how, &o->handle, &o->facts, err);
out:
    url_free(&url);
    return rc;
}

static void object_free(struct object *o) {
    facts_free(&o->facts);
    if (o->conf) {
        if (o->backend->conf_free) o->backend->conf_free(o->conf);
        option_free(o->backend->options, o->conf);
        free(o->conf);
    }
    memset(o, 0, sizeof *o);
}

int object_open(struct object *o, const struct contract_subject *s, enum open_mode mode, struct err *err) {
    struct err own = {0}, *e = err ? err : &own;
    memset(o, 0, sizeof *o);
    o->s = s;
    int rc;
    if (s->open) {
        o->backend = s->backend;
        rc = s->open(s, mode, &o->handle, &o->facts, e);
    } else {
        rc = open_url(o, mode, e);
    }
    o->created = rc == 0 && mode == OPEN_CREATE;
    if (rc == 0) return 0;
    object_free(o);
    if (!err) fail_msg("%s: %s", s->name, own.msg);
    return -1;
}

void object_open_write(struct object *o, const struct contract_subject *s) {
    object_open(o, s, s->create_size ? OPEN_CREATE : OPEN_WRITE, NULL);
}

void object_close(struct object *o) {
    struct err err = {0};
    if (o->created && o->backend->remove(o->handle, &err) < 0) fail_msg("%s: %s", o->s->name, err.msg);
    if (o->s->close) o->s->close(o->s, o->handle);
    else o->backend->close(o->handle);
    object_free(o);
}

/* ---- rigs ---- */

static bool wrong(struct rig *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static bool wrong(struct rig *r, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    if (!r->why[0]) vsnprintf(r->why, sizeof r->why, fmt, ap);
    va_end(ap);
    return false;
}

uint32_t rig_unit(const struct rig *r) {
    return r->o->facts.block > 4096 ? r->o->facts.block : 4096;
}

bool rig_attach(struct rig *r, struct object *o, unsigned depth, uint32_t max_io, bool write) {
    memset(r, 0, sizeof *r);
    r->o = o;
    r->depth = depth;
    r->stride = (max_io + 4095u) & ~4095u;
    r->size = o->facts.size;
    r->rng = 42;
    clock_virtual_init(&r->virtual, 1000);
    clock_real_init(&r->real);
    r->clock = o->s->virtual_clock ? &r->virtual.clock : &r->real;
    r->buffers = aligned_alloc(4096, depth * r->stride);
    r->request = calloc(depth, sizeof *r->request);
    r->lent = calloc(depth, sizeof *r->lent);
    r->list = calloc(depth, sizeof *r->list);
    r->done = calloc(depth, sizeof *r->done);
    if (!r->buffers || !r->request || !r->lent || !r->list || !r->done) abort();
    memset(r->buffers, 0xA5, depth * r->stride);
    struct attach_how how = {.depth = depth, .max_io = max_io, .buffers = r->buffers, .stride = r->stride,
                             .clock = r->clock, .kinds = &r->kinds, .write = write};
    struct err err = {0};
    if (o->backend->attach(o->handle, &how, &r->context, &err) < 0) return wrong(r, "attach: %s", err.msg);
    return true;
}

void rig_detach(struct rig *r) {
    if (r->context) r->o->backend->detach(r->context);
    free(r->buffers);
    free(r->request);
    free(r->lent);
    free(r->list);
    free(r->done);
    r->context = NULL;
    r->buffers = NULL;
}

struct request *rig_prepare(struct rig *r, unsigned slot, enum io_op op, enum io_sync sync, uint64_t offset,
                            uint32_t len) {
    struct request *q = &r->request[slot];
    *q = (struct request){.buf = r->buffers + slot * r->stride, .offset = offset, .len = len, .slot = slot,
                          .op = (uint8_t)op, .sync = (uint8_t)sync};
    if (op == IO_FLUSH) { /* a flush has none of these, so backends may not look at them */
        q->buf = NULL;
        q->offset = UINT64_MAX;
        q->len = UINT32_MAX;
    }
    q->t_due = (int64_t)++r->generation;
    return q;
}

/* Offers `n` requests of r->list once; how many were taken, or -1. */
static int offer(struct rig *r, unsigned n) {
    int64_t before = clock_now(r->clock);
    for (unsigned i = 0; i < n; i++) r->list[i]->t_submit = before;
    int took = r->o->backend->submit(r->context, r->list, n);
    int64_t took_time = clock_now(r->clock) - before;
    if (took_time > r->longest_submit) r->longest_submit = took_time;
    if (took < 0 || (unsigned)took > n) {
        wrong(r, "submit of %u returned %d", n, took);
        return -1;
    }
    for (int i = 0; i < took; i++) r->lent[r->list[i]->slot] = true;
    r->n_lent += (unsigned)took;
    return took;
}

/* With nothing out, "no room now: reap first" is something the context does for itself: as when it asks its LUN again who
 * it is. That must be over some time. */
static bool let_it_work(struct rig *r, int64_t deadline) {
    struct completion c;
    int n = r->o->backend->reap(r->context, &c, 1, 1, 50 * NS_PER_MS);
    if (n != 0) return wrong(r, "reap with nothing out returned %d", n);
    return clock_now(r->clock) < deadline || wrong(r, "nothing is out, and submit takes nothing");
}

bool rig_submit_all(struct rig *r, unsigned n) {
    int64_t deadline = clock_now(r->clock) + 10 * NS_PER_SEC;
    for (unsigned done = 0; done < n;) {
        for (unsigned i = done; i < n; i++) r->list[i - done] = &r->request[i];
        int took = offer(r, n - done);
        if (took < 0) return false;
        if (!took && r->n_lent) return wrong(r, "submit takes only %u of %u", done, n);
        if (!took && !let_it_work(r, deadline)) return false;
        done += (unsigned)took;
    }
    return true;
}

static bool check_completion(struct rig *r, const struct completion *c, int64_t now) {
    struct request *q = c->request;
    if (q < r->request || q >= r->request + r->depth) return wrong(r, "a completion for a request that is not ours");
    if (!r->lent[q->slot] || q != &r->request[q->slot]) return wrong(r, "slot %u came back twice", q->slot);
    if (c->t_done < q->t_submit || c->t_done > now)
        return wrong(r, "stamp %lld outside of submit %lld and now %lld", (long long)c->t_done, (long long)q->t_submit,
                     (long long)now);
    if (c->t_done < r->last_stamp) return wrong(r, "stamps go backwards");
    if (c->result < 0 && c->kind >= r->kinds.n) return wrong(r, "an error without a kind");
    if (c->result < 0 && c->stable) return wrong(r, "an error that is stable");
    r->last_stamp = c->t_done;
    r->lent[q->slot] = false;
    r->n_lent--;
    return true;
}

int rig_reap(struct rig *r, unsigned max, unsigned min, int64_t timeout_ns) {
    int n = r->o->backend->reap(r->context, r->done, max, min, timeout_ns);
    int64_t now = clock_now(r->clock);
    if (n < 0 || (unsigned)n > max) {
        wrong(r, "reap of at most %u returned %d", max, n);
        return -1;
    }
    for (int i = 0; i < n; i++)
        if (!check_completion(r, &r->done[i], now)) return -1;
    return n;
}

bool rig_drain(struct rig *r) {
    struct completion *all = calloc(r->depth, sizeof *all);
    if (!all) abort();
    bool ok = true;
    while (ok && r->n_lent) {
        int n = rig_reap(r, r->depth, 1, PATIENCE);
        ok = n > 0;
        if (n == 0) wrong(r, "%u requests never come back", r->n_lent);
        for (int i = 0; i < n; i++) all[r->done[i].request->slot] = r->done[i];
    }
    memcpy(r->done, all, r->depth * sizeof *all);
    free(all);
    return ok;
}

bool rig_one(struct rig *r, enum io_op op, enum io_sync sync, uint64_t offset, uint32_t len) {
    rig_prepare(r, 0, op, sync, offset, len);
    return rig_submit_all(r, 1) && rig_drain(r);
}

/* ---- the mixed load ---- */

static uint64_t dice(struct rig *r, uint64_t bound) {
    r->rng = rng_mix(r->rng);
    return (uint64_t)(((unsigned __int128)r->rng * bound) >> 64);
}

static void prepare_mixed(struct rig *r, unsigned slot, bool write) {
    uint32_t unit = rig_unit(r), units = (uint32_t)(r->stride / unit);
    unsigned percent = (unsigned)dice(r, 100);
    enum io_op op = write && percent < 40                             ? IO_WRITE
                    : write && percent == 99 && r->o->facts.can_flush ? IO_FLUSH
                                                                      : IO_READ;
    uint32_t len = unit * (1 + (uint32_t)dice(r, units));
    uint64_t offset = r->base + unit * dice(r, (r->size - len) / unit + 1);
    rig_prepare(r, slot, op, SYNC_NONE, offset, len);
}

/* Short of what it should be. At depth > 1 requests overlap, so contents are not looked at here. */
static bool check_result(struct rig *r, const struct completion *c) {
    int64_t want = c->request->op == IO_FLUSH ? 0 : c->request->len;
    if (c->result == want) return true;
    return wrong(r, "%s of %u at %llu gave %lld%s%s", io_op_name(c->request->op), c->request->len,
                 (unsigned long long)c->request->offset, (long long)c->result, c->result < 0 ? ": " : "",
                 c->result < 0 ? r->kinds.kind[c->kind].text : "");
}

bool rig_mixed(struct rig *r, unsigned ios, bool write) {
    unsigned submitted = 0, returned = 0, idle = 0, early = 0;
    while (returned < ios) {
        unsigned n = 0;
        for (unsigned slot = 0; slot < r->depth && submitted + n < ios; slot++) {
            if (r->lent[slot]) continue;
            prepare_mixed(r, slot, write);
            r->list[n++] = &r->request[slot];
        }
        int took = n ? offer(r, n) : 0;
        if (took < 0) return false;
        submitted += (unsigned)took;
        unsigned max = 1 + (unsigned)dice(r, r->depth), min = r->n_lent ? 1 + (unsigned)dice(r, max) : 0;
        if (min > r->n_lent) min = r->n_lent;
        int got = rig_reap(r, max, min, PATIENCE);
        if (got < 0) return false;
        /* An interrupted wait may give less; the kernel also interrupts this thread when it clears up behind an io_uring
         * that was here before. */
        if ((unsigned)got < min && ++early > 10) return wrong(r, "reap gave %d, asked for %u", got, min);
        for (int i = 0; i < got; i++)
            if (!check_result(r, &r->done[i])) return false;
        returned += (unsigned)got;
        idle = took || got ? 0 : idle + 1;
        if (idle > 1000) return wrong(r, "nothing is taken and nothing comes back");
    }
    return r->n_lent == 0 || wrong(r, "%u requests are still lent", r->n_lent);
}
