/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Inside the readahead filter: a context, and what readahead.c (control path) and readahead_io.c (data path) share. */
#ifndef BACKENDS_READAHEAD_IO_H
#define BACKENDS_READAHEAD_IO_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/backend.h"
#include "backends/readahead_streams.h"

/* One per slot of the application: a read that is answered from pieces. */
struct reading {
    struct request *request;
    struct stream *stream;
    unsigned at, wait_at;       /* places in the ring: of its first piece, of the one it waits for */
    uint32_t next;              /* slot of the next one that waits for the same piece */
    bool noted;                 /* offered before, and known to the streams */
};

/* Slots in order of their coming; each slot of the application is in one of them at most once. */
struct fifo {
    uint32_t *slot;
    unsigned mask, first, n;
};

struct wire {                   /* what is outstanding below */
    uint64_t ios, area_ns, lat_sum_ns, lat_max_ns;
    int64_t last;
    unsigned out;
    int64_t *sent;              /* per slot */
};

struct context {
    const struct backend *below;
    struct context *inner;
    struct streams streams;
    uint32_t boundary;
    bool below_samples;
    unsigned depth, lent, n_pieces, pieces_out;
    struct piece *pieces;
    unsigned char *buffers;
    size_t stride;
    struct reading *reading;
    struct request **batch;     /* pieces on their way out */
    struct fifo ready, again;   /* can be copied; must be read by themselves, for their piece failed */
    struct wire wire;
    int lost, last_kind;        /* the kind of the last failure, -1: none: a loss has made it */
    uint64_t hits, waits, misses, partial, sent, sent_bytes, errors;
    struct clock *clock;
    struct kinds *kinds;
};

static inline void wire_upto(struct wire *w, int64_t t) {
    if (t <= w->last) return;
    w->area_ns += w->out * (uint64_t)(t - w->last);
    w->last = t;
}

int raio_submit(struct context *c, struct request *const *requests, unsigned n);
int raio_reap(struct context *c, struct completion *out, unsigned max, unsigned min, int64_t timeout_ns);

#endif
