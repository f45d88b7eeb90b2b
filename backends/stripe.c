/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/stripe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backends/track.h"
#include "base/units.h"

/* The largest I/O that a stripe takes: what is kept free at each member's end grows with it. */
#define STRIPE_MAX_IO (64u << 20)

struct handle {
    unsigned n;
    struct stripe_member member[STRIPE_MEMBERS]; /* `facts` is not kept */
    uint64_t member_size[STRIPE_MEMBERS];
    uint64_t size;
};

/* One per slot of the engine. The shadow is what members are lent: the request with the member's offset; a flush is
 * lent to several members at once, which only read it. */
struct slot {
    struct request shadow;
    struct request *request;    /* the engine's; NULL: not lent */
    uint64_t unsent;            /* flush: members that have not taken it yet; they are in `left` too */
    unsigned left; /* flush: members that have not answered yet; 0 and not returned: all of them are lost */
    int64_t result;
    uint16_t kind;
};

struct context {
    unsigned n, depth, turn;
    uint64_t size;
    const struct track *tracks;
    struct {
        const struct backend *backend;
        struct context *context;
        uint64_t size;
        unsigned lent;
        int lost;               /* negative errno */
    } member[STRIPE_MEMBERS];
    struct slot *slot;
    struct request **batch;     /* shadows on their way to one member */
    struct completion *done;    /* what a member returned */
    unsigned lent;              /* of the engine's requests */
    unsigned flushes_open;      /* flushes that reap has to attend to: unsent somewhere, or all members lost */
    int lost;
    struct clock *clock;
    struct kinds *kinds;
};

/* ---- open ---- */

/* One member with this answer decides for all; else one unknown makes it unknown. */
static enum answer together(enum answer a, enum answer b, enum answer decides) {
    if (a == decides || b == decides) return decides;
    return a == ANSWER_UNKNOWN || b == ANSWER_UNKNOWN ? ANSWER_UNKNOWN : a;
}

static void combine(struct facts *f, const struct facts *m, unsigned i) {
    if (!i) {
        f->kind = m->kind;
        f->mem_align = m->mem_align;
        f->block = m->block;
        f->max_io = m->max_io;
        f->max_depth = m->max_depth;
        f->dpofua = m->dpofua;
        f->volatile_cache = m->volatile_cache;
        f->can_flush = true;
        f->exists = true;
        f->allocated = 0;
        snprintf(f->engine, sizeof f->engine, "%s", m->engine);
    }
    if (m->block > f->block) f->block = m->block;
    if (m->mem_align > f->mem_align) f->mem_align = m->mem_align;
    if (m->max_io < f->max_io) f->max_io = m->max_io;
    if (m->max_depth && (!f->max_depth || m->max_depth < f->max_depth)) f->max_depth = m->max_depth;
    f->read_only |= m->read_only;
    f->dpofua = together(f->dpofua, m->dpofua, ANSWER_NO);
    f->volatile_cache = together(f->volatile_cache, m->volatile_cache, ANSWER_YES);
    f->can_flush &= m->can_flush;
    f->root_fs |= m->root_fs;
    f->allocated = m->allocated == UINT64_MAX || f->allocated == UINT64_MAX ? UINT64_MAX : f->allocated + m->allocated;
    if (m->in_use[0] && !f->in_use[0]) memcpy(f->in_use, m->in_use, sizeof f->in_use);
    if (strcmp(f->engine, m->engine)) snprintf(f->engine, sizeof f->engine, "several");
}

/* Rows of stripes that fit into members of `smallest` bytes. An I/O that begins in one of the last rows may reach
 * past them: as far as its length, and the end of the whole, allow. (With X MiB as the largest I/O, the row t from
 * the end is left by at most min(t M, 1 + X) MiB; the worst t is ceil((1 + X) / M).) */
static uint64_t rows_of(uint64_t smallest, uint32_t max_io, unsigned n) {
    uint64_t rows = smallest / STRIPE_BYTES, x = ((uint64_t)max_io + STRIPE_BYTES - 1) / STRIPE_BYTES;
    uint64_t worst = (1 + x + n - 1) / n, over = 1 + x - worst;
    if (n == 1) return rows;
    return rows > over ? rows - over : 0;
}

int stripe_open(const struct stripe_member *member, unsigned n, struct handle **out, struct facts *f, struct err *err) {
    uint64_t smallest = UINT64_MAX, largest = 0;
    char size[32];
    if (!n || n > STRIPE_MEMBERS)
        return err_set(err, STATUS_USAGE, "%u members: 1 to %d can be one target", n, STRIPE_MEMBERS);
    for (unsigned i = 0; i < n; i++) {
        combine(f, member[i].facts, i);
        if (member[i].facts->size < smallest) smallest = member[i].facts->size;
        if (member[i].facts->size > largest) largest = member[i].facts->size;
    }
    if (STRIPE_BYTES % f->block)
        return err_set(err, STATUS_USAGE, "members with blocks of %u bytes cannot be striped", f->block);
    if (f->max_io > STRIPE_MAX_IO) f->max_io = STRIPE_MAX_IO;
    if (n > 1 && f->max_io > smallest / 2) f->max_io = (uint32_t)(smallest / 2 / STRIPE_BYTES * STRIPE_BYTES);
    uint64_t rows = f->max_io ? rows_of(smallest, f->max_io, n) : 0;
    f->size = rows * n * STRIPE_BYTES;
    if (!rows)
        return err_set(err, STATUS_USAGE, "a member of %s is too small for a target of %u members",
                       units_size_human(size, sizeof size, smallest), n);
    struct handle *h = malloc(sizeof *h);
    if (!h) return err_set(err, STATUS_TARGET, "out of memory");
    h->n = n;
    h->size = f->size;
    for (unsigned i = 0; i < n; i++) {
        h->member[i] = (struct stripe_member){member[i].backend, member[i].handle, NULL};
        h->member_size[i] = member[i].facts->size;
    }
    kv_uint(&f->negotiated, "members", n);
    kv_uint(&f->negotiated, "stripe_bytes", STRIPE_BYTES);
    snprintf(f->summary, sizeof f->summary, "%u members in stripes of 1 MiB, %s", n,
             units_size_human(size, sizeof size, f->size));
    if (smallest != largest)
        kv_text(&f->warnings, "members-differ",
                "the members differ in size: of each only as much as the smallest has is used");
    *out = h;
    return 0;
}

static void stripe_close(struct handle *h) {
    free(h);
}

static int stripe_wire_ios(struct handle *h, uint64_t *ios) {
    uint64_t one;
    *ios = 0;
    for (unsigned i = 0; i < h->n; i++) {
        const struct backend *b = h->member[i].backend;
        if (!b->wire_ios || b->wire_ios(h->member[i].handle, &one) < 0) return -1;
        *ios += one;
    }
    return 0;
}

/* ---- what can be watched ---- */

static bool same_tracks(const struct track *a, const struct track *b) {
    for (; a->name && b->name; a++, b++)
        if (strcmp(a->name, b->name) || a->merge != b->merge || a->cumulative != b->cumulative) return false;
    return !a->name && !b->name;
}

/* The members', if they all have the same. */
static const struct track *stripe_tracks(const struct handle *h) {
    const struct track *first = NULL;
    for (unsigned i = 0; i < h->n; i++) {
        const struct backend *b = h->member[i].backend;
        const struct track *list = b->tracks && b->sample ? b->tracks(h->member[i].handle) : NULL;
        if (!list || (first && !same_tracks(first, list))) return NULL;
        if (!first) first = list;
    }
    return first;
}

/* ---- attach ---- */

static void stripe_detach(struct context *c) {
    if (!c) return;
    for (unsigned i = 0; i < c->n; i++)
        if (c->member[i].context) c->member[i].backend->detach(c->member[i].context);
    free(c->slot);
    free(c->batch);
    free(c->done);
    free(c);
}

/* What of the whole's seal lies on this member. */
static struct seal seal_of(const struct handle *h, const struct seal *whole, unsigned member) {
    uint64_t stripe = whole->offset / STRIPE_BYTES;
    struct seal mine = *whole;
    if (stripe % h->n != member) return (struct seal){.len = 0};
    mine.offset = stripe / h->n * STRIPE_BYTES + whole->offset % STRIPE_BYTES;
    return mine;
}

static int stripe_attach(struct handle *h, const struct attach_how *how, struct context **out, struct err *err) {
    struct context *c = calloc(1, sizeof *c);
    if (!c || !(c->slot = calloc(how->depth, sizeof *c->slot)) || !(c->batch = calloc(how->depth, sizeof *c->batch)) ||
        !(c->done = calloc(how->depth, sizeof *c->done))) {
        stripe_detach(c);
        return err_set(err, STATUS_TARGET, "out of memory for %u requests", how->depth);
    }
    c->depth = how->depth;
    c->clock = how->clock;
    c->kinds = how->kinds;
    c->size = h->size;
    c->tracks = stripe_tracks(h);
    for (unsigned i = 0; i < h->n; i++) {
        c->member[i].size = h->member_size[i];
        c->member[i].backend = h->member[i].backend;
        c->n = i + 1;
        struct attach_how below = *how;
        below.seal = seal_of(h, &how->seal, i);
        if (c->member[i].backend->attach(h->member[i].handle, &below, &c->member[i].context, err) < 0) {
            c->member[i].context = NULL;
            stripe_detach(c);
            return err_prefix(err, "member %u", i + 1);
        }
    }
    *out = c;
    return 0;
}

/* ---- submit ---- */

/* The member that gets a request, and the offset there. What leaves the whole goes behind a member's end: the answer
 * is then the member's own. */
static unsigned place(const struct context *c, const struct request *r, uint64_t *within) {
    uint64_t stripe = r->offset / STRIPE_BYTES;
    unsigned m = (unsigned)(stripe % c->n);
    *within = stripe / c->n * STRIPE_BYTES + r->offset % STRIPE_BYTES;
    if (r->offset >= c->size || r->len > c->size - r->offset) *within = c->member[m].size;
    return m;
}

/* Gives a flush to the members that have not got it; those that are lost answer at once. */
static void send_flush(struct context *c, struct slot *s) {
    struct request *shadow = &s->shadow;
    for (unsigned m = 0; m < c->n; m++) {
        if (!(s->unsent & (1ULL << m))) continue;
        int rc = c->member[m].lost ? c->member[m].lost : c->member[m].backend->submit(c->member[m].context, &shadow, 1);
        if (rc == 0) continue;
        s->unsent &= ~(1ULL << m);
        if (rc > 0) {
            c->member[m].lent++;
            continue;
        }
        c->member[m].lost = c->lost = rc;
        s->left--;
        s->result = rc;
        s->kind = (uint16_t)kinds_note(c->kinds, "member lost", "a member of the target was lost");
    }
}

static void take(struct context *c, struct request *r, uint64_t offset) {
    struct slot *s = &c->slot[r->slot];
    s->request = r;
    s->shadow = *r;
    s->shadow.offset = offset;
    c->lent++;
}

static bool submit_flush(struct context *c, struct request *r) {
    struct slot *s = &c->slot[r->slot];
    take(c, r, 0);
    s->unsent = c->n == 64 ? UINT64_MAX : (1ULL << c->n) - 1;
    s->left = c->n;
    s->result = 0;
    uint64_t all = s->unsent;
    send_flush(c, s);
    if (s->unsent == all) { /* nobody has room */
        s->request = NULL;
        c->lent--;
        return false;
    }
    if (s->unsent || !s->left) c->flushes_open++;
    return true;
}

/* As many of the n requests as go to the first one's member, without a gap. Returns how many it took, or negative
 * errno. */
static int submit_run(struct context *c, struct request *const *requests, unsigned n, unsigned *run) {
    uint64_t within;
    unsigned m = place(c, requests[0], &within), k = 0;
    for (; k < n && requests[k]->op != IO_FLUSH && place(c, requests[k], &within) == m; k++) {
        take(c, requests[k], within);
        c->batch[k] = &c->slot[requests[k]->slot].shadow;
    }
    *run = k;
    int took = c->member[m].lost ? c->member[m].lost : c->member[m].backend->submit(c->member[m].context, c->batch, k);
    for (unsigned i = took > 0 ? (unsigned)took : 0; i < k; i++, c->lent--) c->slot[requests[i]->slot].request = NULL;
    if (took < 0) c->member[m].lost = c->lost = took;
    else c->member[m].lent += (unsigned)took;
    return took;
}

static int stripe_submit(struct context *c, struct request *const *requests, unsigned n) {
    if (c->lost) return c->lost;
    if (n > c->depth - c->lent) n = c->depth - c->lent;
    unsigned taken = 0;
    while (taken < n && !c->lost) {
        if (requests[taken]->op == IO_FLUSH) {
            if (!submit_flush(c, requests[taken])) break;
            taken++;
            continue;
        }
        unsigned run;
        int took = submit_run(c, requests + taken, n - taken, &run);
        if (took > 0) taken += (unsigned)took;
        if (took < 0 || (unsigned)took < run) break;
    }
    return taken || !c->lost ? (int)taken : c->lost;
}

/* ---- reap ---- */

/* A member's completion as the engine's; false while a flush waits for other members. */
static bool translate(struct context *c, const struct completion *in, struct completion *out) {
    struct slot *s = &c->slot[in->request->slot];
    *out = *in;
    out->request = s->request;
    if (s->shadow.op == IO_FLUSH) {
        s->left--;
        if (in->result < 0) {
            s->result = in->result;
            s->kind = in->kind;
        }
        if (s->left) return false;
        out->result = s->result;
        out->kind = s->kind;
    }
    s->request = NULL;
    c->lent--;
    return true;
}

static unsigned reap_member(struct context *c, unsigned m, struct completion *out, unsigned max, unsigned min,
                            int64_t timeout_ns) {
    if (!c->member[m].lent && (c->member[m].lost || !min)) return 0;
    if (max > c->depth) max = c->depth;
    int n = c->member[m].backend->reap(c->member[m].context, c->done, max, min, timeout_ns);
    if (n < 0) {
        c->member[m].lost = c->lost = n;
        return 0;
    }
    unsigned got = 0;
    c->member[m].lent -= (unsigned)n;
    for (int i = 0; i < n; i++) got += translate(c, &c->done[i], &out[got]);
    return got;
}

/* Flushes that some member could not take yet; and those that nobody will answer any more. */
static unsigned attend_flushes(struct context *c, struct completion *out, unsigned max) {
    unsigned got = 0;
    for (unsigned i = 0; i < c->depth && c->flushes_open && got < max; i++) {
        struct slot *s = &c->slot[i];
        if (!s->request || s->shadow.op != IO_FLUSH || (!s->unsent && s->left)) continue;
        send_flush(c, s);
        if (s->unsent) continue;
        c->flushes_open--;
        if (s->left) continue;
        out[got++] = (struct completion){.request = s->request, .result = s->result, .t_done = clock_now(c->clock),
                                         .kind = s->kind};
        s->request = NULL;
        c->lent--;
    }
    return got;
}

static unsigned poll_all(struct context *c, struct completion *out, unsigned max) {
    unsigned got = c->flushes_open ? attend_flushes(c, out, max) : 0;
    for (unsigned i = 0; i < c->n && got < max; i++) {
        got += reap_member(c, (c->turn + i) % c->n, out + got, max - got, 0, 0);
    }
    c->turn = (c->turn + 1) % c->n; /* where max is small, nobody is always last */
    return got;
}

/* The next member with something to wait for; all of them idle: any that is not lost, to sleep in. */
static int next_waited(struct context *c) {
    int idle = -1;
    for (unsigned i = 0; i < c->n; i++) {
        unsigned m = (c->turn + i) % c->n;
        if (c->member[m].lent) {
            c->turn = (m + 1) % c->n;
            return (int)m;
        }
        if (!c->member[m].lost) idle = (int)m;
    }
    return idle;
}

static int stripe_reap(struct context *c, struct completion *out, unsigned max, unsigned min, int64_t timeout_ns) {
    int64_t deadline = INT64_MAX;
    unsigned got = poll_all(c, out, max);
    if (got < min && timeout_ns > 0) {
        int64_t now = clock_now(c->clock);
        if (timeout_ns < INT64_MAX - now) deadline = now + timeout_ns;
        while (got < min && !(c->lost && !c->lent) && now < deadline) {
            int64_t slice = deadline - now < STRIPE_SLICE_NS ? deadline - now : STRIPE_SLICE_NS;
            int m = next_waited(c);
            if (m < 0) break;
            got += reap_member(c, (unsigned)m, out + got, max - got, 1, slice);
            if (got < max) got += poll_all(c, out + got, max - got);
            now = clock_now(c->clock);
        }
    }
    if (!got && c->lost && !c->lent) return c->lost;
    return (int)got;
}

static void stripe_counters(struct context *c, struct kv *out) {
    for (unsigned i = 0; i < c->n; i++) {
        struct kv one = {0};
        if (!c->member[i].backend->counters) continue;
        c->member[i].backend->counters(c->member[i].context, &one);
        kv_merge_sum(out, &one);
        kv_free(&one);
    }
}

static void stripe_sample(struct context *c, double *values) {
    struct track_sum sum[BACKEND_TRACKS] = {{0}};
    double one[BACKEND_TRACKS];
    unsigned n = 0;
    while (n < BACKEND_TRACKS && c->tracks[n].name) n++;
    for (unsigned i = 0; i < c->n; i++) {
        for (unsigned k = 0; k < n; k++) one[k] = NAN;
        c->member[i].backend->sample(c->member[i].context, one);
        for (unsigned k = 0; k < n; k++) track_add(&sum[k], c->tracks[k].merge, one[k]);
    }
    for (unsigned k = 0; k < n; k++) values[k] = track_value(&sum[k], c->tracks[k].merge);
}

const struct backend backend_stripe = {
    .name = "stripe",
    .summary = "several members as one target",
    .close = stripe_close,
    .wire_ios = stripe_wire_ios,
    .attach = stripe_attach,
    .detach = stripe_detach,
    .submit = stripe_submit,
    .reap = stripe_reap,
    .counters = stripe_counters,
    .tracks = stripe_tracks,
    .sample = stripe_sample,
};
