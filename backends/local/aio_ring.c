/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/local/aio_ring.h"

#include <errno.h>
#include <libaio.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

/* The head of what io_setup maps; the kernel's ABI since 2.6. Events follow at header_length. The kernel moves tail, we
 * move head. */
struct ring {
    unsigned id, nr, head, tail, magic, compat_features, incompat_features, header_length;
};
#define RING_MAGIC 0xa10a10a1u

struct refused {
    struct request *request;
    int error;
};

struct aio_ring {
    io_context_t ctx;
    struct ring *ring;          /* NULL: reap by io_getevents only */
    struct io_event *ring_events;
    struct iocb *iocb;          /* one per slot */
    struct iocb **batch;
    struct io_event *events;
    unsigned depth, lent;       /* lent: taken and not yet returned, refused ones included */
    struct refused *refused;    /* what the kernel did not accept at submit: comes back as an error */
    unsigned n_refused;
    struct aio_ring_how how;
    struct clock *clock;
    struct kinds *kinds;
    int lost;                   /* negative errno */
    unsigned seen;             /* doubts of how.guard */
    uint64_t submits, waits, full;
};

/* The kernel maps the ring at io_setup and takes it away at io_destroy. TSan sees neither: where a later context gets an
 * earlier one's address, it is told that the one's life ended before the other's began. */
static void ring_begins(void *ring) {
#ifdef __SANITIZE_THREAD__
    __tsan_acquire(ring);
#endif
    (void)ring;
}

static void ring_ends(void *ring) {
#ifdef __SANITIZE_THREAD__
    __tsan_release(ring);
#endif
    (void)ring;
}

static void use_ring(struct aio_ring *a) {
    struct ring *ring = (struct ring *)a->ctx;
    if (a->how.plain_getevents || ring->magic != RING_MAGIC || ring->incompat_features) return;
    a->ring = ring;
    a->ring_events = (struct io_event *)((char *)ring + ring->header_length);
}

int aio_ring_attach(const struct aio_ring_how *how, const struct attach_how *attach, struct aio_ring **out,
                    struct err *err) {
    struct aio_ring *a = calloc(1, sizeof *a);
    unsigned depth = attach->depth;
    if (!a || !(a->iocb = calloc(depth, sizeof *a->iocb)) || !(a->batch = calloc(depth, sizeof *a->batch)) ||
        !(a->events = calloc(depth, sizeof *a->events)) || !(a->refused = calloc(depth, sizeof *a->refused))) {
        err_set(err, STATUS_TARGET, "out of memory for %u requests", depth);
        goto fail;
    }
    int rc = io_setup((int)depth, &a->ctx);
    if (rc) {
        a->ctx = NULL;
        err_set(err, STATUS_TARGET, "io_setup for %u requests: %s%s", depth, strerrordesc_np(-rc),
                rc == -EAGAIN ? "; raise /proc/sys/fs/aio-max-nr (see aio-nr), or lower iodepth or numjobs" :
                rc == -ENOSYS ? "; this kernel has no asynchronous I/O (CONFIG_AIO)" : "");
        goto fail;
    }
    ring_begins(a->ctx);
    a->depth = depth;
    a->how = *how;
    a->clock = attach->clock;
    a->kinds = attach->kinds;
    use_ring(a);
    for (unsigned i = 0; i < depth; i++) io_prep_pread(&a->iocb[i], how->fd, NULL, 0, 0);
    *out = a;
    return 0;
fail:
    aio_ring_detach(a);
    return -1;
}

void aio_ring_detach(struct aio_ring *a) {
    if (!a) return;
    if (a->ctx) {
        ring_ends(a->ctx);
        io_destroy(a->ctx); /* returns when every request is done */
    }
    free(a->iocb);
    free(a->batch);
    free(a->events);
    free(a->refused);
    free(a);
}

static struct iocb *patch(struct aio_ring *a, struct request *r) {
    struct iocb *cb = &a->iocb[r->slot];
    cb->data = r;
    if (__builtin_expect(r->op == IO_FLUSH, 0)) { /* the kernel wants all the rest to be zero */
        cb->aio_lio_opcode = IO_CMD_FSYNC;
        cb->aio_rw_flags = 0;
        cb->u.c.buf = NULL;
        cb->u.c.nbytes = 0;
        cb->u.c.offset = 0;
        return cb;
    }
    static const unsigned char flags[] = {
        [SYNC_NONE] = 0, [SYNC_DATASTORE] = 0, [SYNC_DSYNC] = RWF_DSYNC, [SYNC_SYNC] = RWF_DSYNC | RWF_SYNC
    };
    cb->aio_lio_opcode = r->op == IO_WRITE ? IO_CMD_PWRITE : IO_CMD_PREAD;
    cb->aio_rw_flags = r->op == IO_WRITE ? flags[r->sync] : 0;
    cb->u.c.buf = r->buf;
    cb->u.c.nbytes = r->len;
    cb->u.c.offset = (long long)r->offset;
    return cb;
}

int aio_ring_submit(struct aio_ring *a, struct request *const *requests, unsigned n) {
    if (__builtin_expect(a->lost, 0)) return a->lost;
    if ((a->lost = devguard_admit(a->how.guard, &a->seen, a->kinds))) return a->lost;
    if (n > a->depth - a->lent) n = a->depth - a->lent;
    if (!n) return 0;
    for (unsigned i = 0; i < n; i++) a->batch[i] = patch(a, requests[i]);
    int took = io_submit(a->ctx, (long)n, a->batch);
    a->submits++;
    if (took > 0) {
        a->full += (unsigned)took < n;
        a->lent += (unsigned)took;
        return took;
    }
    if (took == 0 || took == -EAGAIN) {
        a->full++;
        return 0;
    }
    /* The kernel stops at the first request that it refuses; so it is this one's own error. It comes back through reap,
     * and the rest is tried by the next call. */
    a->refused[a->n_refused++] = (struct refused){requests[0], -took};
    a->lent++;
    return 1;
}

static void failed(struct aio_ring *a, struct completion *c, int error) {
    if ((error == ENOSPC || error == EIO) && local_gone(a->how.fd, a->how.object)) error = ENODEV;
    c->result = -error;
    c->kind = local_kind(a->kinds, error, a->how.object);
    c->stable = false;
    if (error != EINVAL) devguard_doubt(a->how.guard);
    if (local_is_lost(error)) a->lost = -error;
}

static inline void deliver(struct aio_ring *a, struct completion *out, const struct io_event *ev, int64_t now) {
    struct request *r = ev->data;
    int64_t result = (int64_t)ev->res;
    out->request = r;
    out->result = result;
    out->t_done = now;
    out->kind = 0;
    out->stable = r->op == IO_WRITE && (a->how.plain_stable || (r->sync >= SYNC_DSYNC && a->how.dsync_stable));
    if (__builtin_expect(result <= 0, 0)) {
        if (result < 0) failed(a, out, (int)-result);
        else if (r->op == IO_READ && r->len && local_gone(a->how.fd, a->how.object)) failed(a, out, ENODEV);
    }
    a->lent--;
}

static unsigned reap_refused(struct aio_ring *a, struct completion *out, unsigned max, int64_t now) {
    unsigned got = 0;
    while (got < max && a->n_refused) {
        struct refused *f = &a->refused[--a->n_refused];
        out[got] = (struct completion){.request = f->request, .t_done = now};
        failed(a, &out[got++], f->error);
        a->lent--;
    }
    return got;
}

static unsigned reap_ring(struct aio_ring *a, struct completion *out, unsigned max) {
    struct ring *ring = a->ring;
    unsigned head = ring->head, tail = __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE), got = 0;
    if (head == tail || !max) return 0;
    int64_t now = clock_now(a->clock);
    do {
        deliver(a, &out[got++], &a->ring_events[head], now);
        if (++head >= ring->nr) head = 0;
    } while (head != tail && got < max);
    __atomic_store_n(&ring->head, head, __ATOMIC_RELEASE);
    return got;
}

/* One io_getevents; the result is that of io_getevents. */
static int reap_wait(struct aio_ring *a, struct completion *out, unsigned max, unsigned min, int64_t timeout_ns) {
    struct timespec ts = {timeout_ns / NS_PER_SEC, timeout_ns % NS_PER_SEC};
    int n = io_getevents(a->ctx, (long)min, (long)max, a->events, &ts);
    if (n <= 0) return n;
    int64_t now = clock_now(a->clock);
    for (int i = 0; i < n; i++) deliver(a, &out[i], &a->events[i], now);
    return n;
}

int aio_ring_reap(struct aio_ring *a, struct completion *out, unsigned max, unsigned min, int64_t timeout_ns) {
    if (max > a->depth) max = a->depth;
    if (min > max) min = max;
    unsigned got = 0;
    if (timeout_ns < 0) timeout_ns = 0;
    if (__builtin_expect(a->n_refused, 0)) got = reap_refused(a, out, max, clock_now(a->clock));
    if (a->ring) got += reap_ring(a, out + got, max - got);
    if (__builtin_expect(a->lost, 0)) {
        if (!a->lent) return got ? (int)got : a->lost;
        if (min > got + a->lent) min = got + a->lent; /* no more will come */
    }
    if (got == max || (got >= min && a->ring) || (a->ring && !timeout_ns)) return (int)got;
    unsigned want = min > got ? min - got : 0;
    a->waits++;
    int n = reap_wait(a, out + got, max - got, want, want ? timeout_ns : 0);
    if (n > 0) got += (unsigned)n;
    else if (n < 0 && n != -EINTR && !got) return a->lost = n; /* the context itself is refused: nothing can come */
    return (int)got;
}

void aio_ring_counters(struct aio_ring *a, struct kv *out) {
    kv_uint(out, "io_submit_calls", a->submits);
    kv_uint(out, "io_getevents_calls", a->waits);
    kv_uint(out, "io_submit_partial", a->full);
}
