/* SPDX-License-Identifier: GPL-2.0-or-later */
/* I/Os that are larger than rsize or wsize, as several RPCs: over either engine, and only for contexts that may see such
 * I/Os at all, so that others pay nothing for it. An I/O that is small enough is passed on as it is. A larger one goes as
 * consecutive pieces, all at once, and completes with the last of them. */
#ifndef BACKENDS_NFS_NFS_SPLIT_H
#define BACKENDS_NFS_NFS_SPLIT_H

#include "backends/nfs/nfs.h"

#define NFSBE_PIECES_MAX 64u       /* of one I/O */
#define NFSBE_IO_MAX (64u << 20)

/* The largest I/O that goes out as one RPC in a context that only reads, or may write too. */
static inline uint32_t nfsbe_piece(const struct handle *h, bool write) {
    return write && h->wsize < h->rsize ? h->wsize : h->rsize;
}

/* What one RPC moves, at most `most` bytes: whole pages of 4 KiB, so that the pieces of an aligned I/O are aligned too, or
 * whole multiples of what the server prefers (rtmult, wtmult), where that is made of pages; below a page whole sectors.
 * Never 0, unless `most` is. */
static inline uint32_t nfsbe_piece_size(uint32_t most, uint32_t mult) {
    uint32_t unit = most < 4096 ? 512 : mult > 4096 && mult % 4096 == 0 && mult <= most ? mult : 4096;
    return most < unit ? most : most - most % unit;
}

/* As an engine's attach, for how->max_io above nfsbe_piece(). */
int nfsbe_split_attach(struct handle *h, const struct attach_how *how, struct context **out, struct err *err);

#endif
