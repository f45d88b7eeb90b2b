/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/nfs/nfs_split.h"

#include <stdlib.h>

#include "backends/net/sock.h"

#define RETRY_NS NS_PER_MS /* while pieces wait for room, the engine below is not left alone for longer */

/* One per slot of the caller's. */
struct split {
    struct request *request;    /* NULL: not out, or not split */
    unsigned count, left;       /* pieces; those without an answer */
    unsigned unsent;            /* of these, so many the engine has not taken; always the last ones */
    int64_t bytes, error;
    uint16_t kind;
    bool stable;
};

/* The engine below is lent the caller's own requests in slots 0 .. depth-1, and behind them the pieces: `per` for each. */
struct context {
    struct nfsbe_context common;
    const struct nfsbe_engine *engine;
    struct context *below;
    uint32_t read_max, write_max;
    unsigned depth, per;
    struct split *split;
    struct request *piece;
    struct request **batch;
    struct completion *done;
    struct split *pend;         /* the one that was taken in part */
    struct split *orphan;       /* all its pieces are answered for, and no completion will come to say so */
    struct clock *clock;
    struct kinds *kinds;
    uint64_t splits;
    int lost;
};

/* ---- attach ---- */

static void split_free(struct context *c) {
    free(c->split);
    free(c->piece);
    free(c->batch);
    free(c->done);
    free(c);
}

static struct context *split_new(const struct attach_how *how, uint32_t largest, unsigned per) {
    struct context *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->depth = how->depth ? how->depth : 1;
    c->per = per;
    c->clock = how->clock;
    c->kinds = how->kinds;
    c->read_max = c->write_max = largest;
    c->split = calloc(c->depth, sizeof *c->split);
    c->piece = calloc((size_t)c->depth * per, sizeof *c->piece);
    c->batch = calloc((size_t)c->depth * per, sizeof(struct request *));
    c->done = calloc(c->depth, sizeof *c->done);
    if (c->split && c->piece && c->batch && c->done) return c;
    split_free(c);
    return NULL;
}

static const struct nfsbe_engine engine_split;

int nfsbe_split_attach(struct handle *h, const struct attach_how *how, struct context **out, struct err *err) {
    uint32_t smallest = nfsbe_piece(h, how->write);
    unsigned per = (how->max_io + smallest - 1) / smallest;
    struct context *c = split_new(how, smallest, per);
    struct attach_how below = *how;

    *out = NULL;
    if (!c) return err_set(err, STATUS_TARGET, "no memory for %u requests in %u pieces each", how->depth, per);
    c->common.engine = &engine_split;
    c->engine = h->engine;
    c->read_max = h->rsize;
    if (how->write) c->write_max = h->wsize;
    below.depth = c->depth * (1 + per);
    below.max_io = c->read_max > c->write_max ? c->read_max : c->write_max;
    if (c->engine->attach(h, &below, &c->below, err) != 0) {
        split_free(c);
        return -1;
    }
    *out = c;
    return 0;
}

static void split_detach(struct context *c) {
    c->engine->detach(c->below);
    split_free(c);
}

/* ---- submit ---- */

static inline uint32_t limit_of(const struct context *c, const struct request *r) {
    return r->op == IO_READ ? c->read_max : r->op == IO_WRITE ? c->write_max : UINT32_MAX;
}

static unsigned pieces_of(const struct context *c, const struct request *r) {
    uint32_t limit = limit_of(c, r);
    return r->len > limit ? (r->len + limit - 1) / limit : 1;
}

static unsigned cut(struct context *c, struct request *r, unsigned n, struct request **to) {
    struct split *s = &c->split[r->slot];
    uint32_t limit = limit_of(c, r), at = 0;
    *s = (struct split){.request = r, .count = n, .left = n, .unsent = n, .stable = true};
    for (unsigned i = 0; i < n; i++, at += limit) {
        unsigned place = r->slot * c->per + i;
        struct request *p = &c->piece[place];
        *p = *r;
        p->slot = c->depth + place;
        p->buf = (char *)r->buf + at;
        p->offset += at;
        p->len = r->len - at < limit ? r->len - at : limit;
        to[i] = p;
    }
    return n;
}

/* The engine below is gone, and never took the rest of this one. */
static void fail_rest(struct context *c, struct split *s, int error) {
    c->lost = error;
    c->pend = NULL;
    s->left -= s->unsent;
    s->unsent = 0;
    if (!s->error) {
        s->error = error;
        s->kind = (uint16_t)kinds_note(c->kinds, "connection lost", "the rest of a split I/O could not be sent");
    }
    if (s->left == 0) c->orphan = s;
}

/* True: nothing waits any more. */
static bool send_rest(struct context *c) {
    struct split *s = c->pend;
    struct request *first = &c->piece[s->request->slot * c->per + s->count - s->unsent];
    for (unsigned i = 0; i < s->unsent; i++) c->batch[i] = first + i;
    int taken = c->engine->submit(c->below, c->batch, s->unsent);
    if (taken < 0) {
        fail_rest(c, s, taken);
        return false;
    }
    s->unsent -= (unsigned)taken;
    if (s->unsent) return false;
    c->pend = NULL;
    return true;
}

/* How many requests are `taken` pieces? Of the last one, some may be missing. */
static unsigned count_taken(struct context *c, struct request *const *requests, unsigned n, unsigned taken) {
    unsigned i;
    for (i = 0; i < n && taken; i++) {
        unsigned pieces = pieces_of(c, requests[i]);
        struct split *s = &c->split[requests[i]->slot];
        if (pieces == 1) {
            taken--;
            continue;
        }
        c->splits++;
        s->unsent = taken < pieces ? pieces - taken : 0;
        if (s->unsent) c->pend = s;
        taken -= pieces - s->unsent;
    }
    return i;
}

static int split_submit(struct context *c, struct request *const *requests, unsigned n) {
    unsigned total = 0;
    if (c->lost) return c->lost;
    if (c->pend && !send_rest(c)) return c->lost;
    for (unsigned i = 0; i < n; i++) {
        unsigned pieces = pieces_of(c, requests[i]);
        if (pieces == 1) c->batch[total++] = requests[i];
        else total += cut(c, requests[i], pieces, c->batch + total);
    }
    int taken = c->engine->submit(c->below, c->batch, total);
    if (taken < 0) return c->lost = taken;
    return (int)count_taken(c, requests, n, (unsigned)taken);
}

/* ---- reap ---- */

static void give(struct split *s, int64_t t, struct completion *out) {
    *out = (struct completion){.request = s->request, .result = s->error ? s->error : s->bytes, .t_done = t,
                               .kind = s->kind, .stable = s->stable && !s->error};
    s->request = NULL;
}

/* A completion from below as the caller's; false while other pieces are out. */
static bool translate(struct context *c, const struct completion *in, struct completion *out) {
    struct request *r = in->request;
    if (r->slot < c->depth) {
        *out = *in;
        return true;
    }
    struct split *s = &c->split[(r->slot - c->depth) / c->per];
    if (in->result >= 0) s->bytes += in->result;
    else if (!s->error) {
        s->error = in->result;
        s->kind = in->kind;
    }
    s->stable &= in->stable;
    if (--s->left) return false;
    give(s, in->t_done, out);
    return true;
}

static int split_reap(struct context *c, struct completion *out, unsigned max, unsigned min, int64_t timeout_ns) {
    int64_t now = timeout_ns > 0 ? sock_now() : 0, end = now + timeout_ns;
    unsigned got = 0;

    for (;;) {
        if (c->pend) send_rest(c);
        if (c->orphan && got < max) {
            give(c->orphan, clock_now(c->clock), &out[got++]);
            c->orphan = NULL;
        }
        unsigned room = max - got < c->depth ? max - got : c->depth, want = min > got ? min - got : 0;
        int64_t wait = want ? end - now : 0;
        if (c->pend && want) {
            want = 1;
            if (wait > RETRY_NS) wait = RETRY_NS;
        }
        int n = room ? c->engine->reap(c->below, c->done, room, want < room ? want : room, wait) : 0;
        if (n < 0) {
            if (!c->lost) c->lost = n;
            if (c->pend) fail_rest(c, c->pend, n);
            if (c->orphan && got < max) continue;
            return got ? (int)got : n;
        }
        for (int i = 0; i < n; i++) got += translate(c, &c->done[i], &out[got]);
        if (got >= min || timeout_ns <= 0 || (n == 0 && !c->pend)) return (int)got;
        now = sock_now();
        if (now >= end) return (int)got;
    }
}

/* ---- the rest ---- */

static void split_counters(struct context *c, struct kv *out) {
    c->engine->counters(c->below, out);
    kv_uint(out, "split_ios", c->splits);
}

static void split_watch(struct context *c, struct tcpinfo_watch *w) {
    c->engine->watch(c->below, w);
}

static const struct nfsbe_engine engine_split = {
    .name = "split",
    .detach = split_detach,
    .submit = split_submit,
    .reap = split_reap,
    .counters = split_counters,
    .watch = split_watch,
};
