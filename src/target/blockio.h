/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Simple transfers over a backend, outside of measurement: inspection, filling, checking, settling. */
#ifndef TARGET_BLOCKIO_H
#define TARGET_BLOCKIO_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/backend.h"

/* An attached context with a few slots. One thread. */
struct blockio;

int blockio_open(const struct backend *backend, struct handle *h, const struct facts *facts, struct clock *clock,
                 unsigned depth, uint32_t max_io, bool write, struct blockio **out, struct err *err);
/* The same by one of the backend's roads alone (attach_how.road; 0: by all). */
int blockio_open_road(const struct backend *backend, struct handle *h, const struct facts *facts, struct clock *clock,
                      unsigned depth, uint32_t max_io, bool write, unsigned road, struct blockio **out,
                      struct err *err);
/* For writing to an object that bears a seal (attach_how.seal). */
int blockio_open_sealed(const struct backend *backend, struct handle *h, const struct facts *facts, struct clock *clock,
                        unsigned depth, uint32_t max_io, const struct seal *seal, struct blockio **out, struct err *err);
unsigned blockio_roads(const struct backend *backend, const struct handle *h); /* at least 1 */
/* The road by which an object is examined before all are known to lead to it: 1, or 0 where there is one only. */
unsigned blockio_first_road(const struct backend *backend, const struct handle *h);
void blockio_close(struct blockio *b);
/* Was the context given up by its backend, which found no proof that this is still the same object? */
bool blockio_gave_up(const struct blockio *b);
/* Where backend_stopped() says that the end is wanted, a transfer ends with 1 and STATUS_INTERRUPTED in `err`: nothing more
 * goes out, and what is out is waited for no longer than BLOCKIO_PATIENCE, however silent the target is. */
#define BLOCKIO_PATIENCE (500 * NS_PER_MS)
/* Samples are read so many at a time: over a long way what counts is the number of round trips. */
#define BLOCKIO_LOOK_DEPTH 64u
/* Adds up how many of its requests were answered "not now" so far and sent again, and the pauses before that, ns. */
void blockio_put_offs(struct blockio *b, uint64_t *n, uint64_t *ns);
/* Reads or writes [offset, offset+len) whole, in pieces of max_io, any len and offset that are multiples of the block
 * (a shorter last piece at the object's end is allowed where the block is 1). Error: STATUS_TARGET or STATUS_IO, with
 * kind. */
int blockio_read(struct blockio *b, uint64_t offset, void *buf, size_t len, struct err *err);
int blockio_write(struct blockio *b, uint64_t offset, const void *buf, size_t len, struct err *err);
/* Reads `len` bytes at each of n places, at full depth (one after the other where the target, or the max_io it was opened
 * with, moves less at once); `see` gets them in order of completion, and stops as in blockio_stream. */
int blockio_read_places(struct blockio *b, const uint64_t *place, size_t n, uint32_t len,
                        int (*see)(void *arg, uint64_t offset, void *buf, size_t len), void *arg, struct err *err);
/* One read of `len` bytes at depth 1; its latency in ns. */
int blockio_ping(struct blockio *b, uint64_t offset, uint32_t len, int64_t *latency, struct err *err);
/* From now on a call fails with STATUS_TARGET when nothing has moved for so long (120 s at first), and the blockio is only
 * good for closing. */
void blockio_patience(struct blockio *b, int64_t ns);
/* The present value of one of the backend's tracks; NAN: unknown. False: it has none of this name. */
bool blockio_track(const struct blockio *b, const struct handle *h, const char *name, double *value);
int blockio_flush(struct blockio *b, int64_t *latency, struct err *err);
/* Streams over [offset, offset+len) at full depth in pieces of max_io, which end at stripes where there are stripes.
 * For writes `fill` makes each piece in place, for reads `fill` (may be NULL) sees it. `fill` returns nonzero to stop
 * (interrupted, error): the stream then drains and returns that value. Progress: `fill` is called in order of offset
 * for writes, in order of completion for reads. */
int blockio_stream(struct blockio *b, enum io_op op, enum io_sync sync, uint64_t offset, uint64_t len,
                   int (*fill)(void *arg, uint64_t offset, void *buf, size_t len), void *arg, struct err *err);

#endif
