/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/net/tcpwindow.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/net/sock.h"
#include "base/units.h"

#define DEPTH     16u                   /* of small reads; */
#define DEPTH_LARGE 4u                  /* more would take many round trips through a small window */
#define LARGE     (1u << 20)
#define LARGE_MIN (64u << 10)
#define SMALL     (4u << 10)
#define LOAD_NS   (150 * NS_PER_MS)     /* of each size */
#define LOAD_IOS  2000u
#define WAIT_NS   (5 * NS_PER_SEC)      /* for one answer */
#define ROUNDS    6
#define CLOSE     0.02                  /* nearer than that to what was asked for: good */

struct loaded {
    struct context *c;
    struct attach_how how;
    struct request request[DEPTH], *batch[DEPTH];
    struct completion done[DEPTH];
    unsigned n_batch;
    uint32_t window;                    /* that was asked for */
    uint64_t area, at;
    uint32_t block;
    char *buffers;
    /* seen, over all connections */
    double part;                        /* of sk_rcvbuf: the largest bound of the window */
    uint32_t bound, largest;            /* the bound; the largest window advertised; bytes */
    uint32_t buffer;                    /* in the kernel's terms, which is twice SO_RCVBUF */
};

static uint32_t get(int fd, int level, int option) {
    int n = 0;
    socklen_t len = sizeof n;
    return getsockopt(fd, level, option, &n, &len) == 0 && n > 0 ? (uint32_t)n : 0;
}

static void look(const struct tcpwindow_rig *rig, struct loaded *l) {
    struct tcpinfo_watch w = { .n = 0 };
    rig->watch(l->c, &w);
    for (unsigned i = 0; i < w.n; i++) {
        uint32_t bound = get(w.fd[i], IPPROTO_TCP, TCP_WINDOW_CLAMP), buffer = get(w.fd[i], SOL_SOCKET, SO_RCVBUF);
        uint32_t window = tcpinfo_rcv_wnd(w.fd[i]);
        if (!buffer || bound > buffer) continue;
        if (bound < window) bound = window;
        if ((double)bound / buffer > l->part) l->part = (double)bound / buffer;
        if (bound > l->bound) l->bound = bound;
        if (window > l->largest) l->largest = window;
        l->buffer = buffer;
    }
}

static int failed(const char *what, int error, struct err *err) {
    return err_set(err, STATUS_TARGET, "window=: the throw-away connection: %s: %s", what, strerror(error));
}

/* Reads of `len` bytes at this depth for LOAD_NS; then waits for those that are out. */
static int load(const struct tcpwindow_rig *rig, struct loaded *l, uint32_t len, unsigned depth, struct err *err) {
    int64_t end = sock_now() + LOAD_NS, heard = sock_now();
    unsigned issued = 0, lent = 0;

    for (l->n_batch = 0; l->n_batch < depth; l->n_batch++) l->batch[l->n_batch] = &l->request[l->n_batch];
    for (;;) {
        bool more = sock_now() < end && issued < LOAD_IOS;
        if (!more && lent == 0) return 0;
        for (unsigned i = 0; more && i < l->n_batch; i++) {
            if (l->at + len > l->area) l->at = 0;
            l->batch[i]->len = len;
            l->batch[i]->offset = l->at;
            l->at += len;
        }
        int n = more && l->n_batch ? rig->submit(l->c, l->batch, l->n_batch) : 0;
        if (n < 0) return failed("submit", -n, err);
        issued += (unsigned)n;
        lent += (unsigned)n;
        l->n_batch -= (unsigned)n;
        memmove(l->batch, l->batch + n, l->n_batch * sizeof l->batch[0]);
        n = rig->reap(l->c, l->done, DEPTH, lent ? 1 : 0, 100 * NS_PER_MS);
        if (n < 0) return failed("reap", -n, err);
        look(rig, l);
        for (int i = 0; i < n; i++) {
            if (l->done[i].result < 0) return failed("reading", (int)-l->done[i].result, err);
            l->batch[l->n_batch++] = l->done[i].request;
        }
        lent -= (unsigned)n;
        if (n > 0) heard = sock_now();
        else if (sock_now() - heard > WAIT_NS) return failed("reading", ETIMEDOUT, err);
    }
}

/* One context with the buffer as it is set now, under both loads. */
static int try(const struct tcpwindow_rig *rig, struct loaded *l, struct err *err) {
    uint32_t large = l->how.max_io, small = SMALL / l->block * l->block;
    int rc;

    l->part = 0;
    l->bound = l->largest = l->buffer = 0;
    if (rig->attach(rig->handle, &l->how, &l->c, err) != 0) return err_prefix(err, "window=");
    if (small == 0) small = l->block;
    rc = load(rig, l, large, DEPTH_LARGE, err);
    if (rc == 0) rc = load(rig, l, small < large ? small : large, DEPTH, err);
    rig->detach(l->c);
    return rc;
}

static void say(const struct loaded *l, uint32_t rcvbuf, bool capped, struct facts *f) {
    uint32_t bound = l->bound < l->window ? l->bound : l->window; /* tcp_settings_tend() sees to that */
    uint32_t got = capped ? l->buffer / 2 : rcvbuf;
    char asked[32], size[32], cap[200];

    kv_uint(&f->negotiated, "tcp_window_asked", l->window);
    kv_uint(&f->negotiated, "tcp_window_bound", bound);
    if (l->largest) kv_uint(&f->negotiated, "tcp_window_largest_seen", l->largest);
    kv_uint(&f->negotiated, "tcp_rcvbuf", got);
    if (capped)
        kv_text(&f->warnings, "window-capped", "window=%s: %s is the most: %s",
                units_size(asked, sizeof asked, l->window), units_size_human(size, sizeof size, bound),
                tcp_buffer_capped(cap, sizeof cap, "rmem_max", rcvbuf, got));
}

/* First with a buffer that cannot be too large: the window is less than it. Then with what the largest part that was
 * seen makes of it, until the bound is just below what was asked for. */
static int search(const struct tcpwindow_rig *rig, struct loaded *l, struct facts *f, struct err *err) {
    struct tcp_settings *s = rig->settings;
    bool capped = false;
    double part = 0;

    s->rcvbuf = l->window / 2;
    for (int round = 0; round < ROUNDS; round++) {
        if (try(rig, l, err) != 0) return -1;
        if (l->part > part) part = l->part;
        if (part == 0) return failed("its buffer or its window cannot be read", ENOTSUP, err);
        capped = l->buffer / 2 < s->rcvbuf;
        if (l->bound <= l->window && (capped || l->bound >= (1 - CLOSE) * l->window)) break;
        uint32_t next = (uint32_t)(l->window / part / 2);
        if (next == s->rcvbuf) break;
        s->rcvbuf = next;
    }
    say(l, s->rcvbuf, capped, f);
    return 0;
}

int tcpwindow_choose(const struct tcpwindow_rig *rig, struct facts *f, struct err *err) {
    struct kinds kinds = { .n = 0 };
    struct clock clock;
    struct loaded *l = calloc(1, sizeof *l);
    uint32_t max = f->max_io < LARGE ? f->max_io : LARGE;

    if (!l) return err_set(err, STATUS_TARGET, "no memory");
    l->window = rig->settings->window;
    if (max > l->window) max = l->window > LARGE_MIN ? l->window : LARGE_MIN;
    if (max > f->max_io) max = f->max_io;
    l->block = f->block ? f->block : 1;
    if (max > f->size) max = (uint32_t)f->size;
    max = max / l->block * l->block;
    l->area = f->size < 64 * (uint64_t)LARGE ? f->size : 64 * (uint64_t)LARGE;
    clock_real_init(&clock);
    l->how = (struct attach_how){ .depth = DEPTH, .max_io = max, .stride = LARGE, .clock = &clock, .kinds = &kinds };
    l->how.buffers = l->buffers = aligned_alloc(4096, DEPTH * (size_t)LARGE);
    int rc = -1;
    if (!l->buffers) {
        err_set(err, STATUS_TARGET, "no memory");
    } else if (max == 0) {
        err_set(err, STATUS_USAGE, "window=: it is found by reading, and there is nothing to read");
    } else {
        for (unsigned i = 0; i < DEPTH; i++)
            l->request[i] = (struct request){ .op = IO_READ, .slot = i, .buf = l->buffers + (size_t)i * LARGE };
        rig->settings->window = 0; /* nobody is to mend what is looked at */
        rc = search(rig, l, f, err);
        rig->settings->window = l->window;
    }
    free(l->buffers);
    free(l);
    return rc;
}
