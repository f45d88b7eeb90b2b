/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Inside the readahead filter: which reads make a stream, what is read ahead for it, and which bytes may be given out.
 * No I/O, no clock. One thread, but for `writes`. */
#ifndef BACKENDS_READAHEAD_STREAMS_H
#define BACKENDS_READAHEAD_STREAMS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "backends/backend.h"
#include "backends/readahead.h"

#define RASTREAMS_RECENT 16        /* ends of reads that belong to no stream */
#define RASTREAMS_REGIONS 4096u    /* of the table of writes, a power of two */
#define RASTREAMS_REGION (1u << 20)/* bytes; no piece crosses a multiple of it */
#define RASTREAMS_NONE UINT32_MAX

enum piece_state {
    PIECE_FREE,
    PIECE_QUEUED,   /* not yet taken by the backend below */
    PIECE_SENT,
    PIECE_FILLED,
    PIECE_FAILED
};

/* One request of readahead with its buffer. */
struct piece {
    struct request request;     /* slot and buf are constant; offset and len as it was sent */
    uint64_t lo, hi;            /* what may be given out to further reads */
    uint64_t used;              /* bytes given out */
    uint32_t users;             /* reads that will copy from it: it stays until they have */
    uint32_t waiting;           /* first slot of the application that waits for it, or NONE */
    uint32_t writes;            /* of others to its region, when it was queued */
    uint32_t stream;
    uint8_t state;
    bool dropped;               /* its stream goes on elsewhere: nobody new may use it */
};

struct stream {
    bool live;
    uint64_t next;              /* where the application goes on */
    uint64_t end;               /* up to here it was read ahead */
    uint64_t size, marker;      /* of the last window; a read beyond the marker sends the next one */
    uint64_t tick;              /* when it was last used */
    struct piece *ring;         /* in order of offset, but for dropped ones at its beginning */
    unsigned first, n;
};

/* Completed writes, counted by region over all contexts of a handle. */
struct writes {
    _Atomic uint32_t region[RASTREAMS_REGIONS];
};

struct streams {
    uint64_t to, window;
    uint32_t piece_bytes;       /* a power of two */
    unsigned pieces;            /* in each ring */
    struct stream stream[READAHEAD_STREAMS];
    unsigned n_streams;
    uint64_t tick;
    uint64_t recent[RASTREAMS_RECENT];
    unsigned next_recent;
    struct piece **queue;       /* pieces to send, oldest first; a ring */
    unsigned queue_mask, queue_first, queue_n;
    struct writes *writes;      /* NULL: nobody else writes */
    uint32_t *own_writes;       /* this context's share of them */
    uint64_t wasted;            /* bytes that were read and never given out */
};

/* Where the bytes of a read are. */
struct place {
    struct stream *stream;
    unsigned at;                /* place in the ring of the first piece */
    bool partial;               /* not all of it is there */
};

uint32_t rastreams_piece_bytes(uint64_t window, uint32_t max_io);
unsigned rastreams_pieces(uint64_t window, uint32_t piece_bytes); /* of one stream */

/* Are all bytes there or on their way? */
bool rastreams_find(struct streams *s, uint64_t offset, uint32_t len, struct place *place);
static inline struct piece *rastreams_piece(const struct streams *s, const struct stream *t, unsigned at) {
    return &t->ring[at % s->pieces];
}
/* A read was taken: follows its stream, and queues what is to be read ahead. */
void rastreams_read(struct streams *s, uint64_t offset, uint32_t len);
/* A write was taken: a stream that has come to this place goes on behind it. */
void rastreams_write(struct streams *s, uint64_t offset, uint32_t len);
/* A write is done: what it touched is forgotten. */
void rastreams_written(struct streams *s, uint64_t offset, uint32_t len);
/* Forgets one stream, or all of them. */
void rastreams_drop(struct streams *s, struct stream *t);
void rastreams_drop_all(struct streams *s);
/* All pieces to send, oldest first, into `list`; how many. They stay queued until rastreams_sent() says that the first
 * n went out. */
unsigned rastreams_queued(struct streams *s, struct request **list);
void rastreams_sent(struct streams *s, unsigned n);
/* Frees what nobody will read any more. To be called when users or state of a piece have changed. */
void rastreams_trim(struct streams *s, struct stream *t);

#endif
