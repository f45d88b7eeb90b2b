/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/readahead.h"

#include <stdlib.h>
#include <string.h>

#include "backends/readahead_io.h"

#define OWN_TRACKS 7
static const struct track own_tracks[OWN_TRACKS] = {
    {"wire_ios", TRACK_SUM, true},       {"wire_depth_area_ns", TRACK_SUM, true},
    {"wire_lat_sum_ns", TRACK_SUM, true}, {"wire_lat_max_ns", TRACK_MAX, false},
    {"readahead_hits", TRACK_SUM, true}, {"readahead_misses", TRACK_SUM, true},
    {"readahead_wasted_bytes", TRACK_SUM, true},
};

struct handle {
    struct readahead_how how;
    uint32_t mem_align, max_depth, max_io;
    struct writes *writes;      /* NULL: no context reads what another one writes */
    bool tracks_below;          /* they found room */
    struct track tracks[BACKEND_TRACKS + 1];
};

/* ---- open ---- */

unsigned readahead_requests(const struct facts *facts, uint64_t window, unsigned depth) {
    unsigned one = rastreams_pieces(window, rastreams_piece_bytes(window, facts->max_io)), n = READAHEAD_STREAMS;
    if (facts->max_depth) {
        unsigned room = facts->max_depth > depth ? facts->max_depth - depth : 0;
        if (n > room / one) n = room / one;
    }
    return n * one;
}

static void join_tracks(struct handle *h) {
    const struct backend *b = h->how.backend;
    const struct track *below = b->tracks ? b->tracks(h->how.handle) : NULL;
    unsigned n = 0;
    memcpy(h->tracks, own_tracks, sizeof own_tracks);
    while (below && below[n].name) n++;
    h->tracks_below = n && n <= BACKEND_TRACKS - OWN_TRACKS;
    if (h->tracks_below) memcpy(h->tracks + OWN_TRACKS, below, n * sizeof *below);
}

int readahead_open(const struct readahead_how *how, struct handle **out, struct err *err) {
    uint32_t block = how->facts->block ? how->facts->block : 1;
    if (how->window < block)
        return err_set(err, STATUS_USAGE, "readahead: a window of %llu bytes is less than a block of %u",
                       (unsigned long long)how->window, block);
    struct handle *h = calloc(1, sizeof *h);
    if (h && how->shared_writes) h->writes = calloc(1, sizeof *h->writes);
    if (!h || (how->shared_writes && !h->writes)) {
        free(h);
        return err_set(err, STATUS_TARGET, "readahead: out of memory");
    }
    h->how = *how;
    h->how.facts = NULL;
    h->mem_align = how->facts->mem_align > 4096 ? how->facts->mem_align : 4096;
    h->max_depth = how->facts->max_depth;
    h->max_io = how->facts->max_io;
    h->how.window -= how->window % block;
    if (h->how.to > how->facts->size) h->how.to = how->facts->size;
    h->how.to -= h->how.to % block;
    join_tracks(h);
    *out = h;
    return 0;
}

static void readahead_close(struct handle *h) {
    if (!h) return;
    free(h->writes);
    free(h);
}

static int readahead_wire_ios(struct handle *h, uint64_t *ios) {
    return h->how.backend->wire_ios ? h->how.backend->wire_ios(h->how.handle, ios) : -1;
}

/* ---- attach ---- */

static void readahead_detach(struct context *c) {
    if (!c) return;
    if (c->inner) c->below->detach(c->inner);
    free(c->pieces);
    free(c->buffers);
    free(c->reading);
    free(c->batch);
    free(c->ready.slot);
    free(c->again.slot);
    free(c->wire.sent);
    free(c->streams.queue);
    free(c->streams.own_writes);
    free(c);
}

static bool make_fifo(struct fifo *f, unsigned depth) {
    unsigned cap = 1;
    while (cap < depth) cap *= 2;
    f->mask = cap - 1;
    f->slot = calloc(cap, sizeof *f->slot);
    return f->slot != NULL;
}

static bool make_streams(struct context *c, const struct handle *h) {
    struct streams *s = &c->streams;
    unsigned cap = 1;
    while (cap < c->n_pieces) cap *= 2;
    s->queue = calloc(cap, sizeof(struct piece *));
    s->queue_mask = cap - 1;
    s->writes = h->writes;
    if (h->writes) s->own_writes = calloc(RASTREAMS_REGIONS, sizeof *s->own_writes);
    for (unsigned i = 0; i < RASTREAMS_RECENT; i++) s->recent[i] = UINT64_MAX;
    for (unsigned i = 0; i < s->n_streams; i++) s->stream[i].ring = c->pieces + i * s->pieces;
    for (unsigned i = 0; i < c->n_pieces; i++) {
        struct piece *p = &c->pieces[i];
        p->stream = i / s->pieces;
        p->waiting = RASTREAMS_NONE;
        p->request.op = IO_READ;
        p->request.slot = c->depth + i;
        p->request.buf = c->buffers + i * c->stride;
    }
    return s->queue && (!h->writes || s->own_writes);
}

static bool allocate(struct context *c, const struct handle *h) {
    size_t bytes = c->n_pieces * c->stride;
    c->pieces = calloc(c->n_pieces, sizeof *c->pieces);
    c->buffers = aligned_alloc(h->mem_align, bytes);
    c->reading = calloc(c->depth, sizeof *c->reading);
    c->batch = calloc(c->n_pieces, sizeof(struct request *));
    c->wire.sent = calloc(c->depth + c->n_pieces, sizeof *c->wire.sent);
    if (!c->pieces || !c->buffers || !c->reading || !c->batch || !c->wire.sent) return false;
    memset(c->buffers, 0, bytes); /* pages are there before the clock starts */
    return make_fifo(&c->ready, c->depth) && make_fifo(&c->again, c->depth) && make_streams(c, h);
}

static int attach_below(struct context *c, const struct handle *h, const struct attach_how *how, struct err *err) {
    struct attach_how below = *how;
    below.depth = c->depth + c->n_pieces;
    if (below.max_io < c->streams.piece_bytes) below.max_io = c->streams.piece_bytes;
    below.first_more = c->depth;
    below.more = c->buffers;
    below.more_stride = c->stride;
    if (h->how.backend->attach(h->how.handle, &below, &c->inner, err) == 0) return 0;
    c->inner = NULL;
    return -1;
}

static int readahead_attach(struct handle *h, const struct attach_how *how, struct context **out, struct err *err) {
    struct facts limits = {.max_io = h->max_io, .max_depth = h->max_depth};
    unsigned n = readahead_requests(&limits, h->how.window, how->depth);
    if (!n)
        return err_set(err, STATUS_TARGET, "readahead: of %u requests at a time, a depth of %u leaves too few",
                       h->max_depth, how->depth);
    struct context *c = calloc(1, sizeof *c);
    if (!c) return err_set(err, STATUS_TARGET, "readahead: out of memory");
    c->below = h->how.backend;
    c->depth = how->depth;
    c->n_pieces = n;
    c->boundary = h->how.boundary;
    c->clock = how->clock;
    c->kinds = how->kinds;
    c->streams.window = h->how.window;
    c->streams.to = h->how.to;
    c->streams.piece_bytes = rastreams_piece_bytes(h->how.window, h->max_io);
    c->streams.pieces = rastreams_pieces(h->how.window, c->streams.piece_bytes);
    c->streams.n_streams = n / c->streams.pieces;
    c->stride = (c->streams.piece_bytes + (size_t)h->mem_align - 1) / h->mem_align * h->mem_align;
    c->below_samples = h->tracks_below && h->how.backend->sample;
    c->last_kind = -1;
    if (!allocate(c, h))
        err_set(err, STATUS_TARGET, "readahead: no memory for %u buffers of %u bytes", n, c->streams.piece_bytes);
    else if (attach_below(c, h, how, err) == 0)
        return *out = c, 0;
    readahead_detach(c);
    return -1;
}

/* ---- what it did ---- */

static void readahead_counters(struct context *c, struct kv *out) {
    if (c->below->counters) c->below->counters(c->inner, out);
    kv_uint(out, "readahead_hits", c->hits);
    kv_uint(out, "readahead_hits_in_flight", c->waits);
    kv_uint(out, "readahead_misses", c->misses);
    kv_uint(out, "readahead_partial", c->partial);
    kv_uint(out, "readahead_ios", c->sent);
    kv_uint(out, "readahead_bytes", c->sent_bytes);
    kv_uint(out, "readahead_wasted_bytes", c->streams.wasted);
    kv_uint(out, "readahead_errors", c->errors);
}

static const struct track *readahead_tracks(const struct handle *h) {
    return h->tracks;
}

static void readahead_sample(struct context *c, double *values) {
    wire_upto(&c->wire, clock_now(c->clock));
    const uint64_t own[OWN_TRACKS] = {c->wire.ios, c->wire.area_ns, c->wire.lat_sum_ns, c->wire.lat_max_ns,
                                      c->hits,     c->misses,       c->streams.wasted};
    for (unsigned i = 0; i < OWN_TRACKS; i++) values[i] = (double)own[i];
    if (c->below_samples) c->below->sample(c->inner, values + OWN_TRACKS);
}

const struct backend backend_readahead = {
    .name = "readahead",
    .summary = "client-side readahead over another backend",
    .close = readahead_close,
    .wire_ios = readahead_wire_ios,
    .attach = readahead_attach,
    .detach = readahead_detach,
    .submit = raio_submit,
    .reap = raio_reap,
    .counters = readahead_counters,
    .tracks = readahead_tracks,
    .sample = readahead_sample,
};
