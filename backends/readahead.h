/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A filter: one client-side readahead over any backend, so that "what does readahead give" means the same on all.
 *
 * It works as the kernel's does. A read that begins where an earlier one ended makes a stream; behind it a window is
 * read ahead, at first of up to four times the request, then doubled from window to window until it is `window` bytes.
 * The next one is sent as soon as the application touches the last, so that at most two are out or in memory. Up to
 * READAHEAD_STREAMS streams are followed at once, the one that was used longest ago gives way; a write at a stream's
 * position moves it on, as a mixed load with one position does.
 *
 * A window goes out in requests of one size, a power of two: of 256 KiB, or a sixteenth of the window up to 1 MiB where
 * that is more, or less where the target or the window is smaller. None crosses a multiple of it, nor goes beyond `to`.
 *
 * A read of which every byte is there or on its way is answered from the buffers, by a copy; every other I/O goes
 * through as it is. What a write touches is forgotten when the write is done, so that no read that follows it sees old
 * data. Errors of what was read ahead are counted; a read that needed the data is sent again by itself. */
#ifndef BACKENDS_READAHEAD_H
#define BACKENDS_READAHEAD_H

#include "backends/backend.h"

#define READAHEAD_STREAMS 4
#define READAHEAD_MAX     (64u << 20) /* bytes of the largest window */

struct readahead_how {
    const struct backend *backend;
    struct handle *handle;      /* opened; stays the caller's, and outlives the filter */
    const struct facts *facts;
    uint64_t window;            /* bytes, 1 .. READAHEAD_MAX; at least the largest read */
    uint64_t to;                /* the working set's end: nothing beyond it is read ahead */
    /* I/Os that cross a multiple of it have an address of their own below (stripe.h): they are passed through, and such
     * a write forgets everything. 0: there are none. */
    uint32_t boundary;
    bool shared_writes;         /* one context may read what another one writes */
};

/* Requests that it has out at most beside those of the application; 0: facts->max_depth has no room for one stream
 * beside `depth`. */
unsigned readahead_requests(const struct facts *facts, uint64_t window, unsigned depth);
/* In place of backend->open. What `facts` says holds for the filter too, but max_depth: the application shares it. */
int readahead_open(const struct readahead_how *how, struct handle **out, struct err *err);

/* Its configure and open are NULL; close frees the filter, not what is below. remove, holes and pings are asked there.
 * Its first tracks tell what is outstanding below: "wire_ios" (completed), "wire_depth_area_ns" (outstanding x time),
 * "wire_lat_sum_ns", and the one that does not add up, "wire_lat_max_ns"; then "readahead_hits", "readahead_misses",
 * "readahead_wasted_bytes". Those of the backend below follow. */
extern const struct backend backend_readahead;

#endif
