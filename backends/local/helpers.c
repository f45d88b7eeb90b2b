/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/local/helpers.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#define STACK_BYTES (64u << 10) /* a helper only makes system calls */

struct helper {
    pthread_t thread;
    bool started;
    sem_t work;                /* posted once per request, and once to stop */
    struct request *request;
    int64_t result;
    struct helper *next;       /* in `done`, then in `ready` */
    struct helpers *pool;
};

struct helpers {
    struct helpers_how how;
    struct helper *helper;     /* one per slot */
    unsigned depth, lent;
    atomic_bool stop;
    _Atomic(struct helper *) done; /* finished, newest first; helpers push, the owner takes all */
    int event;                 /* eventfd: written when `done` was empty before a push */
    struct helper *ready, **ready_end; /* taken, oldest first, not yet returned */
    struct clock *clock;
    struct kinds *kinds;
    int lost;
    unsigned seen;             /* doubts of how.guard */
    uint64_t waits;
};

/* ---- in the helpers ---- */

static int64_t perform(int fd, const struct request *r) {
    if (r->op == IO_FLUSH) return fsync(fd) < 0 ? -errno : 0;
    struct iovec iov = {r->buf, r->len};
    ssize_t n;
    if (r->op == IO_READ) {
        n = preadv2(fd, &iov, 1, (off_t)r->offset, 0);
    } else {
        int flags = r->sync == SYNC_SYNC ? RWF_DSYNC | RWF_SYNC : r->sync == SYNC_DSYNC ? RWF_DSYNC : 0;
        n = pwritev2(fd, &iov, 1, (off_t)r->offset, flags);
    }
    return n < 0 ? -errno : n;
}

static void push_done(struct helpers *p, struct helper *h) {
    struct helper *top = atomic_load_explicit(&p->done, memory_order_relaxed);
    do {
        h->next = top;
    } while (!atomic_compare_exchange_weak_explicit(&p->done, &top, h, memory_order_acq_rel, memory_order_relaxed));
    uint64_t one = 1;
    /* Cannot fail: the counter is far from its end, for it is written once per emptied list. */
    if (!top && write(p->event, &one, sizeof one) < 0) return;
}

static void *helper_main(void *arg) {
    struct helper *h = arg;
    for (;;) {
        while (sem_wait(&h->work) < 0) {} /* EINTR */
        if (atomic_load_explicit(&h->pool->stop, memory_order_acquire)) return NULL;
        h->result = perform(h->pool->how.fd, h->request);
        push_done(h->pool, h);
    }
}

/* ---- in the owner ---- */

static int start(struct helpers *p, struct err *err) {
    pthread_attr_t attr;
    sigset_t all, old;
    int rc = pthread_attr_init(&attr);
    if (rc) return err_set(err, STATUS_TARGET, "helper threads: %s", strerrordesc_np(rc));
    size_t least = (size_t)sysconf(_SC_THREAD_STACK_MIN);
    (void)pthread_attr_setstacksize(&attr, least + STACK_BYTES);
    sigfillset(&all); /* signals are for the program's own threads */
    pthread_sigmask(SIG_SETMASK, &all, &old);
    for (unsigned i = 0; i < p->depth && !rc; i++) {
        struct helper *h = &p->helper[i];
        h->pool = p;
        sem_init(&h->work, 0, 0);
        rc = pthread_create(&h->thread, &attr, helper_main, h);
        h->started = !rc;
        if (rc) sem_destroy(&h->work);
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    if (rc) err_set(err, STATUS_TARGET, "%u helper threads: %s", p->depth, strerrordesc_np(rc));
    return rc ? -1 : 0;
}

int helpers_attach(const struct helpers_how *how, const struct attach_how *attach, struct helpers **out,
                   struct err *err) {
    if (attach->depth > HELPERS_MAX)
        return err_set(err, STATUS_TARGET, "depth %u: helper threads serve at most %d", attach->depth, HELPERS_MAX);
    struct helpers *p = calloc(1, sizeof *p);
    if (!p || !(p->helper = calloc(attach->depth, sizeof *p->helper))) {
        free(p);
        return err_set(err, STATUS_TARGET, "out of memory for %u requests", attach->depth);
    }
    p->how = *how;
    p->depth = attach->depth;
    p->clock = attach->clock;
    p->kinds = attach->kinds;
    p->ready_end = &p->ready;
    p->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (p->event < 0) {
        err_set(err, STATUS_TARGET, "eventfd: %s", strerrordesc_np(errno));
        goto fail;
    }
    if (start(p, err) < 0) goto fail;
    *out = p;
    return 0;
fail:
    helpers_detach(p);
    return -1;
}

void helpers_detach(struct helpers *p) {
    if (!p) return;
    atomic_store_explicit(&p->stop, true, memory_order_release);
    for (unsigned i = 0; i < p->depth; i++)
        if (p->helper[i].started) sem_post(&p->helper[i].work);
    for (unsigned i = 0; i < p->depth; i++) {
        if (!p->helper[i].started) continue;
        pthread_join(p->helper[i].thread, NULL);
        sem_destroy(&p->helper[i].work);
    }
    if (p->event >= 0) close(p->event);
    free(p->helper);
    free(p);
}

int helpers_submit(struct helpers *p, struct request *const *requests, unsigned n) {
    if (p->lost || (p->lost = devguard_admit(p->how.guard, &p->seen, p->kinds))) return p->lost;
    if (n > p->depth - p->lent) n = p->depth - p->lent;
    for (unsigned i = 0; i < n; i++) {
        struct helper *h = &p->helper[requests[i]->slot];
        h->request = requests[i];
        sem_post(&h->work);
    }
    p->lent += n;
    return (int)n;
}

/* Everything that is finished goes to the end of `ready`, in order. */
static void take_done(struct helpers *p) {
    if (!atomic_load_explicit(&p->done, memory_order_relaxed)) return;
    struct helper *h = atomic_exchange_explicit(&p->done, NULL, memory_order_acquire), *first = NULL, *last = h;
    while (h) {
        struct helper *older = h->next;
        h->next = first;
        first = h;
        h = older;
    }
    *p->ready_end = first;
    p->ready_end = &last->next;
}

static void deliver(struct helpers *p, struct completion *out, const struct helper *h, int64_t now) {
    const struct request *r = h->request;
    *out = (struct completion){.request = h->request, .result = h->result, .t_done = now};
    out->stable = r->op == IO_WRITE && (p->how.plain_stable || (r->sync >= SYNC_DSYNC && p->how.dsync_stable));
    if (h->result < 0) {
        out->kind = local_kind(p->kinds, (int)-h->result, p->how.object);
        out->stable = false;
        devguard_doubt(p->how.guard);
        if (local_is_lost((int)-h->result)) p->lost = (int)h->result;
    }
    p->lent--;
}

static unsigned return_ready(struct helpers *p, struct completion *out, unsigned max) {
    unsigned got = 0;
    if (!p->ready || !max) return 0;
    int64_t now = clock_now(p->clock); /* the stamp: what stays for another call is stamped by that */
    while (got < max && p->ready) {
        struct helper *h = p->ready;
        p->ready = h->next;
        if (!p->ready) p->ready_end = &p->ready;
        deliver(p, &out[got++], h, now);
    }
    return got;
}

/* Waits are real, whatever clock stamps. */
static int64_t real_now(void) {
    struct clock real;
    clock_real_init(&real);
    return clock_now(&real);
}

int helpers_reap(struct helpers *p, struct completion *out, unsigned max, unsigned min, int64_t timeout_ns) {
    int64_t deadline = 0, now;
    unsigned got = 0;
    if (min > max) min = max;
    for (;;) {
        take_done(p);
        got += return_ready(p, out + got, max - got);
        if (p->lost) {
            if (!p->lent) return got ? (int)got : p->lost;
            if (min > got + p->lent) min = got + p->lent; /* no more will come */
        }
        if (got >= min || timeout_ns <= 0) return (int)got;
        now = real_now();
        if (!deadline) deadline = timeout_ns < INT64_MAX - now ? now + timeout_ns : INT64_MAX;
        if (now >= deadline) return (int)got;
        struct timespec ts = {(deadline - now) / NS_PER_SEC, (deadline - now) % NS_PER_SEC};
        struct pollfd fd = {.fd = p->event, .events = POLLIN};
        p->waits++;
        int rc = ppoll(&fd, 1, &ts, NULL);
        uint64_t count;
        if (rc > 0 && read(p->event, &count, sizeof count) < 0 && errno != EAGAIN) return got ? (int)got : -errno;
        if (rc < 0) timeout_ns = 0; /* a signal: what is there, and back */
    }
}

void helpers_counters(struct helpers *p, struct kv *out) {
    kv_uint(out, "helper_threads", p->depth);
    kv_uint(out, "helper_waits", p->waits);
}
