/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Helper threads: asynchronous I/O where the kernel has none (the page cache, file systems without O_DIRECT).
 *
 * Each slot has a thread of its own, which does preadv2, pwritev2 or fsync for the one request that the slot can
 * hold, so there is no queue and no lock: a semaphore per slot one way, a lock-free list and an eventfd back.
 *
 * T3 is taken by the thread that reaps, as it returns the completion, not by the helper after its system call: as
 * with every other backend it is the time at which the completion can be acted upon, the wake-up included, and a
 * request counts as outstanding until then. The price is that both hand-overs (to the helper and back, two wake-ups)
 * are in the latency. */
#ifndef BACKENDS_LOCAL_HELPERS_H
#define BACKENDS_LOCAL_HELPERS_H

#include "backends/backend.h"
#include "backends/local/devguard.h"
#include "backends/local/errors.h"

#define HELPERS_MAX 256 /* threads per context, so also its largest depth */

struct helpers; /* one per context */

struct helpers_how {
    int fd;                   /* stays the caller's */
    enum local_object object;
    bool plain_stable, dsync_stable; /* as in struct aio_ring_how */
    struct devguard *guard;   /* of a device; NULL: none */
};

int helpers_attach(const struct helpers_how *how, const struct attach_how *attach, struct helpers **out,
                   struct err *err);
/* Waits for the system calls in progress: nothing can cancel them. */
void helpers_detach(struct helpers *p);
int helpers_submit(struct helpers *p, struct request *const *requests, unsigned n);
int helpers_reap(struct helpers *p, struct completion *out, unsigned max, unsigned min, int64_t timeout_ns);
void helpers_counters(struct helpers *p, struct kv *out);

#endif
