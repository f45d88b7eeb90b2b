/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The io_uring data path that block and file share, with liburing; engine=io_uring. Needs Linux 5.11.
 *
 * One io_uring_enter per batch; completions are read from the ring in memory, and io_uring_enter is called again only to
 * wait. The file is registered, and so are the buffers where the limit on locked memory admits it. */
#ifndef BACKENDS_LOCAL_URING_H
#define BACKENDS_LOCAL_URING_H

#include "backends/backend.h"
#include "backends/local/devguard.h"
#include "backends/local/errors.h"

struct uring; /* one per context */

struct uring_how {
    int fd;                   /* O_DIRECT; stays the caller's. Of a file O_NONBLOCK too: else the kernel hands every I/O on a
                                 file system without IOCB_NOWAIT (tmpfs, FUSE) to a thread, at three times the cost */
    enum local_object object;
    bool plain_stable;        /* a plain completed write is on stable storage */
    bool dsync_stable;        /* so is one with RWF_DSYNC or RWF_SYNC */
    struct devguard *guard;   /* of a device; NULL: none */
};

int uring_attach(const struct uring_how *how, const struct attach_how *attach, struct uring **out, struct err *err);
/* Waits until the kernel has given up every buffer: there is no way to cancel disk I/O. */
void uring_detach(struct uring *u);
int uring_submit(struct uring *u, struct request *const *requests, unsigned n);
int uring_reap(struct uring *u, struct completion *out, unsigned max, unsigned min, int64_t timeout_ns);
void uring_counters(struct uring *u, struct kv *out);

#endif
