/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What an attached context of blockio.h holds. Private to blockio_open.c, which makes it, and blockio.c, which moves data. */
#ifndef TARGET_BLOCKIO_CONTEXT_H
#define TARGET_BLOCKIO_CONTEXT_H

#include "target/blockio.h"

/* What one slot moves. A short transfer is taken up again behind the bytes that were moved. */
struct piece {
    uint64_t offset;
    uint32_t len, moved;
};

struct blockio {
    const struct backend *backend;
    struct context *context;
    struct clock *clock;
    uint32_t block, mem_align;
    uint32_t max_io;
    uint64_t stripe; /* no piece crosses a multiple of it; 0: there are no stripes */
    unsigned depth;
    size_t stride, mapped;
    unsigned char *buffers;
    struct request *requests; /* by slot */
    struct piece *pieces;     /* by slot */
    struct request **free;    /* stack */
    struct request **waiting; /* made, not yet taken by the backend, oldest first */
    struct completion *done;
    unsigned n_free, n_waiting, lent;
    int64_t patience;
    struct handle *sealed; /* of a context for writing to what bears `seal`; else NULL */
    const struct facts *facts;
    struct seal seal;
    bool lost;
    bool came; /* a read has brought data */
    struct kinds kinds;
};

/* Where the data of this slot lies. */
unsigned char *blockio_buffer(const struct blockio *b, unsigned slot);

#endif
