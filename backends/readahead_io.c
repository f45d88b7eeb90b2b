/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/readahead_io.h"

#include <string.h>

/* Requests that the backend below had no room for are offered again after so long, if nothing comes back before. */
#define OFFER_AGAIN NS_PER_MS

/* ---- small helpers ---- */

static void push(struct fifo *f, uint32_t slot) {
    f->slot[(f->first + f->n++) & f->mask] = slot;
}

static uint32_t pop(struct fifo *f) {
    uint32_t slot = f->slot[f->first];
    f->first = (f->first + 1) & f->mask;
    f->n--;
    return slot;
}

static bool crosses(const struct context *c, const struct request *r) {
    return c->boundary && r->len && r->offset / c->boundary != (r->offset + r->len - 1) / c->boundary;
}

/* Offers requests to the backend below; how many it took, or negative errno. */
static int offer(struct context *c, struct request *const *requests, unsigned n) {
    int64_t t = clock_now(c->clock);
    int took = c->below->submit(c->inner, requests, n);
    if (took < 0) return c->lost = took;
    for (int i = 0; i < took; i++) c->wire.sent[requests[i]->slot] = t;
    wire_upto(&c->wire, t);
    c->wire.out += (unsigned)took;
    return took;
}

/* ---- reads that are answered from pieces ---- */

static void release(struct context *c, struct reading *r) {
    uint64_t end = r->request->offset + r->request->len;
    for (unsigned at = r->at;; at++) {
        struct piece *p = rastreams_piece(&c->streams, r->stream, at);
        p->users--;
        if (p->request.offset + p->request.len >= end) break;
    }
    rastreams_trim(&c->streams, r->stream);
}

/* From piece to piece: waits for the first that is not there, is ready when all are. */
static void advance(struct context *c, uint32_t slot) {
    struct reading *r = &c->reading[slot];
    uint64_t end = r->request->offset + r->request->len;
    for (;; r->wait_at++) {
        struct piece *p = rastreams_piece(&c->streams, r->stream, r->wait_at);
        if (p->state == PIECE_FAILED) {
            release(c, r);
            push(&c->again, slot);
            return;
        }
        if (p->state != PIECE_FILLED) {
            r->next = p->waiting;
            p->waiting = slot;
            return;
        }
        if (p->request.offset + p->request.len >= end) break;
    }
    push(&c->ready, slot);
}

static void take_hit(struct context *c, struct request *request, const struct place *place) {
    struct reading *r = &c->reading[request->slot];
    uint64_t end = request->offset + request->len;
    *r = (struct reading){.request = request, .stream = place->stream, .at = place->at, .wait_at = place->at};
    for (unsigned at = r->at;; at++) {
        struct piece *p = rastreams_piece(&c->streams, r->stream, at);
        p->users++;
        if (p->request.offset + p->request.len >= end) break;
    }
    rastreams_read(&c->streams, request->offset, request->len);
    unsigned before = c->ready.n;
    advance(c, request->slot);
    c->waits += c->ready.n == before;
    c->lent++;
}

static void copy(struct context *c, const struct reading *r) {
    uint64_t at = r->request->offset, end = at + r->request->len;
    unsigned char *to = r->request->buf;
    for (unsigned i = r->at; at < end; i++) {
        struct piece *p = rastreams_piece(&c->streams, r->stream, i);
        uint64_t upto = p->request.offset + p->request.len, n = (upto < end ? upto : end) - at;
        memcpy(to, (unsigned char *)p->request.buf + (at - p->request.offset), n);
        p->used += n;
        at += n;
        to += n;
    }
}

/* What is ready, copied; what cannot be read any more, with the loss as its error. */
static unsigned deliver(struct context *c, struct completion *out, unsigned max) {
    unsigned got = 0;
    while (got < max && c->ready.n) {
        struct reading *r = &c->reading[pop(&c->ready)];
        copy(c, r);
        release(c, r);
        out[got++] = (struct completion){.request = r->request, .result = r->request->len};
    }
    c->hits += got;
    for (; c->lost && got < max && c->again.n; got++)
        out[got] = (struct completion){
            .request = c->reading[pop(&c->again)].request, .result = c->lost, .kind = (uint16_t)c->last_kind};
    if (!got) return 0;
    int64_t now = clock_now(c->clock); /* the stamp: right after the copies */
    for (unsigned i = 0; i < got; i++) out[i].t_done = now;
    c->lent -= got;
    return got;
}

/* ---- what goes out ---- */

/* A piece is there, or will not come: who waits for it goes on, in order of coming. */
static void wake(struct context *c, struct piece *p) {
    uint32_t first = RASTREAMS_NONE, slot = p->waiting, next;
    p->waiting = RASTREAMS_NONE;
    for (; slot != RASTREAMS_NONE; slot = next) {
        next = c->reading[slot].next;
        c->reading[slot].next = first;
        first = slot;
    }
    for (slot = first; slot != RASTREAMS_NONE; slot = next) {
        next = c->reading[slot].next;
        advance(c, slot);
    }
    rastreams_trim(&c->streams, &c->streams.stream[p->stream]);
}

static void lose_queue(struct context *c) {
    if (c->last_kind < 0)
        c->last_kind = (int)kinds_note(c->kinds, "target lost", "the target was lost before the data was read");
    unsigned n = rastreams_queued(&c->streams, c->batch);
    rastreams_sent(&c->streams, n);
    for (unsigned i = 0; i < n; i++) {
        struct piece *p = &c->pieces[c->batch[i]->slot - c->depth];
        p->state = PIECE_FAILED;
        wake(c, p);
    }
}

/* Reads whose piece failed first, then pieces. What finds no room stays where it is. */
static void send_own(struct context *c) {
    while (c->again.n && !c->lost) {
        struct request *r = c->reading[c->again.slot[c->again.first]].request;
        if (offer(c, &r, 1) <= 0) break;
        pop(&c->again);
        c->misses++;
    }
    unsigned n = c->lost || c->again.n ? 0 : rastreams_queued(&c->streams, c->batch);
    int took = n ? offer(c, c->batch, n) : 0;
    for (int i = 0; i < took; i++) {
        c->pieces[c->batch[i]->slot - c->depth].state = PIECE_SENT;
        c->pieces_out++;
        c->sent++;
        c->sent_bytes += c->batch[i]->len;
    }
    if (took > 0) rastreams_sent(&c->streams, (unsigned)took);
    if (c->lost) lose_queue(c);
}

static bool is_hit(struct context *c, const struct request *r, struct place *place) {
    place->partial = false;
    return r->op == IO_READ && !crosses(c, r) && rastreams_find(&c->streams, r->offset, r->len, place);
}

/* Once for each request, however often it is offered. */
static void note(struct context *c, const struct request *r, bool partial) {
    struct reading *slot = &c->reading[r->slot];
    if (slot->noted) return;
    slot->noted = true;
    c->partial += partial;
    if (r->op == IO_FLUSH || crosses(c, r)) return;
    if (r->op == IO_READ) rastreams_read(&c->streams, r->offset, r->len);
    else rastreams_write(&c->streams, r->offset, r->len);
}

/* Sends as many of the n requests as pass through, up to the first that is answered from pieces. Returns how many were
 * taken, or negative errno. */
static int pass(struct context *c, struct request *const *requests, unsigned n, unsigned *run, struct place *hit) {
    unsigned k = 0;
    for (; k < n && !is_hit(c, requests[k], hit); k++) note(c, requests[k], hit->partial);
    *run = k;
    int took = k ? offer(c, requests, k) : 0;
    for (int i = 0; i < took; i++) {
        c->reading[requests[i]->slot].noted = false;
        c->misses += requests[i]->op == IO_READ;
    }
    if (took > 0) c->lent += (unsigned)took;
    return took;
}

int raio_submit(struct context *c, struct request *const *requests, unsigned n) {
    unsigned taken = 0, run;
    struct place hit;
    if (c->lost) return c->lost;
    if (n > c->depth - c->lent) n = c->depth - c->lent;
    while (taken < n) {
        int took = pass(c, requests + taken, n - taken, &run, &hit);
        if (took > 0) taken += (unsigned)took;
        if (took < 0 || (unsigned)took < run) break;
        if (taken < n) take_hit(c, requests[taken++], &hit);
    }
    if (c->streams.queue_n || c->again.n) send_own(c);
    return taken || !c->lost ? (int)taken : c->lost;
}

/* ---- what comes back ---- */

static void piece_done(struct context *c, const struct completion *done) {
    struct piece *p = &c->pieces[done->request->slot - c->depth];
    c->pieces_out--;
    p->state = done->result == (int64_t)p->request.len ? PIECE_FILLED : PIECE_FAILED;
    if (p->state == PIECE_FAILED) {
        c->errors++;
        if (!p->dropped) rastreams_drop(&c->streams, &c->streams.stream[p->stream]);
    }
    wake(c, p);
}

static void written(struct context *c, const struct request *r) {
    rastreams_written(&c->streams, r->offset, r->len);
    if (crosses(c, r)) rastreams_drop_all(&c->streams);
}

/* Takes the pieces out of what came back; returns how many of the application's are left. */
static unsigned sort(struct context *c, struct completion *out, unsigned n) {
    unsigned got = 0;
    for (unsigned i = 0; i < n; i++) {
        const struct request *r = out[i].request;
        wire_upto(&c->wire, out[i].t_done);
        c->wire.out--;
        c->wire.ios++;
        uint64_t lat = (uint64_t)(out[i].t_done - c->wire.sent[r->slot]);
        c->wire.lat_sum_ns += lat;
        if (lat > c->wire.lat_max_ns) c->wire.lat_max_ns = lat;
        if (out[i].result < 0) c->last_kind = out[i].kind;
        if (r->slot >= c->depth) {
            piece_done(c, &out[i]);
            continue;
        }
        if (r->op == IO_WRITE) written(c, r);
        if (got < i) out[got] = out[i];
        got++;
    }
    c->lent -= got;
    return got;
}

/* *all: the backend below keeps nothing back that it has stamped already. */
static unsigned reap_below(struct context *c, struct completion *out, unsigned max, unsigned min, int64_t timeout_ns,
                           bool *all) {
    int n = c->below->reap(c->inner, out, max, min, timeout_ns);
    *all = n < (int)max;
    if (n < 0) {
        if (!c->lost) c->lost = n;
        lose_queue(c);
        return 0;
    }
    return sort(c, out, (unsigned)n);
}

/* What came back below, and then what is ready of our own: stamps do not go backwards, so nothing of ours passes what
 * was stamped before it. */
static unsigned collect(struct context *c, struct completion *out, unsigned max, bool wait, int64_t timeout_ns) {
    unsigned got = 0;
    bool all = false;
    while (got < max && !all) {
        got += reap_below(c, out + got, max - got, wait, timeout_ns, &all);
        wait = false;
        timeout_ns = 0;
    }
    return all ? got + deliver(c, out + got, max - got) : got;
}

/* Nothing of ours is between the application and the backend below: one call answers for both. */
static bool idle(const struct context *c) {
    return !(c->pieces_out || c->streams.queue_n || c->ready.n || c->again.n);
}

int raio_reap(struct context *c, struct completion *out, unsigned max, unsigned min, int64_t timeout_ns) {
    unsigned got = 0;
    bool all;
    if (idle(c)) {
        got = reap_below(c, out, max, min, timeout_ns, &all);
        return !got && c->lost && !c->lent ? c->lost : (int)got;
    }
    int64_t now = clock_now(c->clock), deadline = timeout_ns < INT64_MAX - now ? now + timeout_ns : INT64_MAX;
    for (;;) {
        send_own(c);
        bool time = now < deadline && !(c->lost && !c->wire.out), wait = time && got < min && !c->ready.n;
        int64_t from = now, upto = wait ? deadline - now : 0;
        if (wait && (c->streams.queue_n || c->again.n) && upto > OFFER_AGAIN) upto = OFFER_AGAIN;
        uint64_t came = c->wire.ios;
        got += collect(c, out + got, max - got, wait, upto);
        if (got >= min || !time || (c->lost && !c->lent)) break;
        now = clock_now(c->clock);
        if (wait && c->wire.ios == came && now - from < upto) break; /* a signal ended the wait */
    }
    if (c->streams.queue_n || c->again.n) send_own(c); /* what came back may have made room */
    return !got && c->lost && !c->lent ? c->lost : (int)got;
}
