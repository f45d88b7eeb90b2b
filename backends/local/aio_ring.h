/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The libaio data path that block and file share. Needs Linux 4.18 (asynchronous fsync) for flushes.
 *
 * One io_submit per batch. Completions are read from the ring that the kernel maps into the process, without a system
 * call; io_getevents is called only to wait, or where the ring does not look as expected. */
#ifndef BACKENDS_LOCAL_AIO_RING_H
#define BACKENDS_LOCAL_AIO_RING_H

#include "backends/backend.h"
#include "backends/local/devguard.h"
#include "backends/local/errors.h"

struct aio_ring; /* one per context */

struct aio_ring_how {
    int fd;                   /* O_DIRECT; stays the caller's */
    enum local_object object;
    bool plain_stable;        /* a plain completed write is on stable storage */
    bool dsync_stable;        /* so is one with RWF_DSYNC or RWF_SYNC */
    bool plain_getevents;     /* for tests: reap by io_getevents only */
    struct devguard *guard;   /* of a device; NULL: none */
};

int aio_ring_attach(const struct aio_ring_how *how, const struct attach_how *attach, struct aio_ring **out,
                    struct err *err);
/* Waits until the kernel has given up every buffer: there is no way to cancel disk I/O. */
void aio_ring_detach(struct aio_ring *a);
int aio_ring_submit(struct aio_ring *a, struct request *const *requests, unsigned n);
int aio_ring_reap(struct aio_ring *a, struct completion *out, unsigned max, unsigned min, int64_t timeout_ns);
void aio_ring_counters(struct aio_ring *a, struct kv *out);

#endif
