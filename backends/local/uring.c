/* SPDX-License-Identifier: GPL-2.0-or-later */
/* linux/openat2.h, which liburing.h includes, has a struct with a name of the contract's. */
#define open_how linux_open_how
#include <liburing.h>
#undef open_how

#include "backends/local/uring.h"

#include <errno.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#define REGISTERED_MAX ((size_t)1 << 30) /* the kernel's limit for one buffer */

struct uring {
    struct io_uring ring;
    bool ready;                 /* the ring is there */
    unsigned depth, lent;       /* lent: taken and not yet returned */
    char *registered;           /* buffers that the kernel holds; NULL: none */
    size_t registered_len;
    struct uring_how how;
    struct clock *clock;
    struct kinds *kinds;
    int lost;                   /* negative errno */
    unsigned seen;             /* doubts of how.guard */
    uint64_t submits, waits, full;
};

/* ---- attach, detach ---- */

/* Work that ends an I/O is done when this thread enters the kernel anyway, in place of an interrupt of its own, and a flag
 * tells when there is some; kernels before 5.19 do not know that. */
static int make_ring(struct uring *u) {
    struct io_uring_params p = {.flags = IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG};
    int rc = io_uring_queue_init_params(u->depth, &u->ring, &p);
    if (rc == -EINVAL) {
        p = (struct io_uring_params){0};
        rc = io_uring_queue_init_params(u->depth, &u->ring, &p);
    }
    if (rc < 0) return rc;
    u->ready = true;
    if (!(p.features & IORING_FEAT_EXT_ARG)) return -ENOSYS; /* to wait with a timeout without a request for it */
    return io_uring_register_files(&u->ring, &u->how.fd, 1);
}

/* What is not registered works too, and costs the kernel a little more per I/O. */
static void register_buffers(struct uring *u, const struct attach_how *attach) {
    size_t len = attach->depth * attach->stride;
    if (attach->more) len = attach->first_more * attach->stride;
    struct iovec iov = {.iov_base = attach->buffers, .iov_len = len};
    if (!attach->buffers || !len || len > REGISTERED_MAX || io_uring_register_buffers(&u->ring, &iov, 1) < 0) return;
    u->registered = attach->buffers;
    u->registered_len = len;
}

int uring_attach(const struct uring_how *how, const struct attach_how *attach, struct uring **out, struct err *err) {
    struct uring *u = calloc(1, sizeof *u);
    if (!u) return err_set(err, STATUS_TARGET, "out of memory for %u requests", attach->depth);
    u->depth = attach->depth;
    u->how = *how;
    u->clock = attach->clock;
    u->kinds = attach->kinds;
    int rc = make_ring(u);
    if (rc < 0) {
        uring_detach(u);
        return err_set(err, STATUS_TARGET, "io_uring for %u requests: %s%s", attach->depth, strerrordesc_np(-rc),
                       rc == -ENOSYS ? "; it needs Linux 5.11, engine=libaio does not" :
                       rc == -EPERM || rc == -EACCES ? "; it is forbidden here (sysctl kernel.io_uring_disabled, or a "
                       "container's policy); engine=libaio does without" :
                       rc == -ENOMEM ? "; raise the limit on locked memory (ulimit -l), or use engine=libaio" : "");
    }
    register_buffers(u, attach);
    *out = u;
    return 0;
}

void uring_detach(struct uring *u) {
    struct io_uring_cqe *cqe;
    if (!u) return;
    /* The end of the ring alone does not wait for disk I/O. */
    while (u->lent) {
        int rc = io_uring_wait_cqe(&u->ring, &cqe);
        if (rc == -EINTR || rc == -EAGAIN) continue;
        if (rc < 0) break;
        io_uring_cqe_seen(&u->ring, cqe);
        u->lent--;
    }
    if (u->ready) {
        /* The kernel ends a ring some time after it is closed, and would keep the file open until then. */
        io_uring_unregister_files(&u->ring);
        if (u->registered) io_uring_unregister_buffers(&u->ring);
        io_uring_queue_exit(&u->ring);
    }
    free(u);
}

/* ---- submit ---- */

static inline bool is_registered(const struct uring *u, const struct request *r) {
    size_t at = (size_t)((const char *)r->buf - u->registered); /* wraps below it */
    return u->registered && at < u->registered_len && r->len <= u->registered_len - at;
}

static inline void fill(struct uring *u, struct io_uring_sqe *sqe, struct request *r) {
    static const unsigned char flags[] = {
        [SYNC_NONE] = 0, [SYNC_DATASTORE] = 0, [SYNC_DSYNC] = RWF_DSYNC, [SYNC_SYNC] = RWF_DSYNC | RWF_SYNC
    };
    if (__builtin_expect(r->op == IO_FLUSH, 0)) {
        io_uring_prep_fsync(sqe, 0, 0);
    } else {
        bool fixed = is_registered(u, r);
        int op = r->op == IO_WRITE ? (fixed ? IORING_OP_WRITE_FIXED : IORING_OP_WRITE)
                                   : (fixed ? IORING_OP_READ_FIXED : IORING_OP_READ);
        io_uring_prep_rw(op, sqe, 0, r->buf, r->len, r->offset);
        sqe->rw_flags = r->op == IO_WRITE ? flags[r->sync] : 0;
    }
    sqe->flags |= IOSQE_FIXED_FILE;
    io_uring_sqe_set_data(sqe, r);
}

/* What the kernel did not take does not stay in the queue: it is the engine's again. The kernel looks at the queue only
 * while a call of ours is in it. */
static void take_back(struct uring *u) {
    struct io_uring_sq *sq = &u->ring.sq;
    unsigned head = __atomic_load_n(sq->khead, __ATOMIC_ACQUIRE);
    sq->sqe_tail = sq->sqe_head = head; /* all three count from the same 0 */
    __atomic_store_n(sq->ktail, head, __ATOMIC_RELEASE);
}

int uring_submit(struct uring *u, struct request *const *requests, unsigned n) {
    if (__builtin_expect(u->lost, 0)) return u->lost;
    if ((u->lost = devguard_admit(u->how.guard, &u->seen, u->kinds))) return u->lost;
    if (n > u->depth - u->lent) n = u->depth - u->lent;
    if (!n) return 0;
    for (unsigned i = 0; i < n; i++) fill(u, io_uring_get_sqe(&u->ring), requests[i]);
    int took = io_uring_submit(&u->ring);
    u->submits++;
    if (__builtin_expect(took != (int)n, 0)) {
        take_back(u);
        u->full++;
        if (took == -EAGAIN || took == -EBUSY || took == -EINTR) took = 0;
        if (took < 0) return u->lost = took;
    }
    u->lent += (unsigned)took;
    return took;
}

/* ---- reap ---- */

static void failed(struct uring *u, struct completion *c, int error) {
    if ((error == ENOSPC || error == EIO) && local_gone(u->how.fd, u->how.object)) error = ENODEV;
    c->result = -error;
    c->kind = local_kind(u->kinds, error, u->how.object);
    c->stable = false;
    if (error != EINVAL) devguard_doubt(u->how.guard);
    if (local_is_lost(error)) u->lost = -error;
}

static inline void deliver(struct uring *u, struct completion *out, const struct io_uring_cqe *cqe, int64_t now) {
    struct request *r = io_uring_cqe_get_data(cqe);
    out->request = r;
    out->result = cqe->res;
    out->t_done = now;
    out->kind = 0;
    out->stable = r->op == IO_WRITE && (u->how.plain_stable || (r->sync >= SYNC_DSYNC && u->how.dsync_stable));
    if (__builtin_expect(cqe->res <= 0, 0)) {
        if (cqe->res < 0) failed(u, out, -cqe->res);
        else if (r->op == IO_READ && r->len && local_gone(u->how.fd, u->how.object)) failed(u, out, ENODEV);
    }
    u->lent--;
}

static unsigned collect(struct uring *u, struct completion *out, unsigned max) {
    unsigned head, got = 0;
    struct io_uring_cqe *cqe;
    if (!max || !io_uring_cq_ready(&u->ring)) return 0;
    int64_t now = clock_now(u->clock);
    io_uring_for_each_cqe(&u->ring, head, cqe) {
        if (got == max) break;
        deliver(u, &out[got++], cqe, now);
    }
    io_uring_cq_advance(&u->ring, got);
    return got;
}

/* One wait for `want` completions, or with 0 a look that lets the kernel finish what has ended. */
static int wait_for(struct uring *u, unsigned want, int64_t timeout_ns) {
    struct __kernel_timespec ts = {timeout_ns / NS_PER_SEC, timeout_ns % NS_PER_SEC};
    struct io_uring_cqe *cqe;
    if (!want) return io_uring_peek_cqe(&u->ring, &cqe);
    u->waits++;
    return io_uring_wait_cqes(&u->ring, &cqe, want, &ts, NULL);
}

int uring_reap(struct uring *u, struct completion *out, unsigned max, unsigned min, int64_t timeout_ns) {
    if (max > u->depth) max = u->depth;
    if (min > max) min = max;
    unsigned got = collect(u, out, max);
    if (__builtin_expect(u->lost, 0)) {
        if (!u->lent) return got ? (int)got : u->lost;
        if (min > got + u->lent) min = got + u->lent; /* no more will come */
    }
    if (got == max || (got && got >= min)) return (int)got;
    unsigned want = min > got && timeout_ns > 0 ? min - got : 0;
    int rc = wait_for(u, want, timeout_ns);
    got += collect(u, out + got, max - got);
    if (rc < 0 && rc != -EINTR && rc != -ETIME && rc != -EAGAIN && !got) return u->lost = rc; /* nothing can come */
    return (int)got;
}

void uring_counters(struct uring *u, struct kv *out) {
    kv_uint(out, "io_uring_submits", u->submits);
    kv_uint(out, "io_uring_waits", u->waits);
    kv_uint(out, "io_uring_submit_partial", u->full);
}
