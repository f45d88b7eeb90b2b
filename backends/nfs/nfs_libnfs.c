/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Data path over libnfs's raw interface: one connection of its own for each context, one RPC for each request.
 *
 * Stamps. libnfs reads every reply with system calls of its own inside rpc_service(), so a single call brings many
 * replies one after the other, the later ones long after the first. One stamp for all would make the later ones look
 * faster than they were: each callback, which runs right behind the recv() of its reply, takes a stamp.
 *
 * Sending. libnfs 4 and 5 only queue; bytes leave in rpc_service(). That call is expensive in libnfs 4 (it walks 1024
 * queues), so a few requests share one, but only as many as the socket is sure to take: what would wait inside the
 * library is not taken. libnfs 6 and 7 write in the call itself, so there every request is looked at for itself. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "backends/nfs/nfs_libnfs.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/net/sock.h"
#include "backends/net/tcpinfo.h"
#include "backends/nfs/nfs_names.h"

#define TICK_NS (100 * NS_PER_MS)   /* timeouts are looked at so often */
#define DRAIN_NS (500 * NS_PER_MS)   /* detach waits so long for what is still out */
#define SUBMIT_NS NS_PER_MS         /* one submit takes no more after so long: replies wait to be stamped */
#define BATCH_MAX 16u               /* requests that share one rpc_service() */
#define SKB_OVERHEAD 2560u          /* the kernel's bookkeeping for one small send, rounded up */

const char *nfsbe_library(void) {
#ifdef SAMEDISK_LIBNFS_VERSION
    return "libnfs " SAMEDISK_LIBNFS_VERSION;
#elif NFS_READ_IN_PLACE
    return "libnfs 6 or later";
#else
    return "libnfs 4 or 5";
#endif
}

/* ---- the connection's end ---- */

/* Every request that is still out comes back with an error, once, and the library's context goes, so that neither it
 * nor a late reply can touch a buffer any more. Never called inside a callback. */
static void lose(struct context *c, int error, const char *kind, const char *text) {
    if (c->lost) return;
    c->lost = true;
    c->lost_error = error;
    kinds_lost(c->kinds, kind, text);
    c->closing = true; /* the cancelled calls call back */
    nfslib_close(c->conn);
    c->conn = NULL;
    c->fd = -1;
    int64_t t = clock_now(c->clock);
    for (unsigned i = 0; i < c->depth && c->lent; i++)
        if (c->slots[i].request) nfsbe_libnfs_fail(c, &c->slots[i], t, error, kind, text);
}

static bool pending(const struct context *c) {
    return rpc_which_events(c->conn->rpc) & POLLOUT;
}

static void service(struct context *c, int events) {
    char why[240];
    unsigned done = c->done_n;
    bool fine = nfslib_service(c->conn, events) == 0 && !c->broken;
    if (c->done_n != done) nfslib_replied(c->conn);
    if (fine) return;
    lose(c, ECONNRESET, "connection lost", nfsbe_libnfs_why_lost(c, why, sizeof why));
}

/* A request older than the timeout means that the server is gone: a reply that comes after all could not be told from
 * one that is due, and the library has no way to take a call back. */
static void check_age(struct context *c, int64_t now) {
    char text[120];
    if (now - c->t_scan < TICK_NS) return;
    c->t_scan = now;
    if (c->lost || !c->lent) return;
    for (unsigned i = 0; i < c->depth; i++) {
        if (!c->slots[i].request || c->slots[i].t_due || c->slots[i].stale || now - c->slots[i].t_sent <= c->timeout) continue;
        snprintf(text, sizeof text, "no reply within %lld ms (timeout=)", (long long)(c->timeout / NS_PER_MS));
        lose(c, ETIMEDOUT, "timeout", text);
        return;
    }
}

/* ---- is it still the same file? ---- */

static void settle_doubt(struct context *c) {
    GETATTR3args args = { .object = c->file };
    int64_t now = sock_now();
    if (c->doubt == SURE) {
        for (unsigned i = 0; i < c->depth; i++)
            if (c->slots[i].request && c->slots[i].stale)
                nfsbe_libnfs_fail_status(c, &c->slots[i], clock_now(c->clock), c->slots[i].stale);
    } else if (c->doubt == GONE) {
        lose(c, ESTALE, "file lost", c->gone);
    } else if (c->doubt == ASKING && now - c->ask_due > c->timeout) {
        lose(c, ETIMEDOUT, "timeout", "no reply to the GETATTR after a stale file handle (timeout=)");
    } else if (c->doubt == TO_ASK && now >= c->ask_due &&
               NFS_CALL(getattr, c->conn->rpc, nfsbe_libnfs_getattr_done, &args, c) == 0) {
        c->doubt = ASKING;
    }
}

/* ---- submit ---- */

/* The slot's next call: the first, the same once more, or for the rest. */
static int call(struct context *c, struct slot *s) {
    struct rpc_context *rpc = c->conn->rpc;
    const struct request *r = s->request;
    uint32_t len = r->len - s->done;
    char *buf = r->buf ? (char *)r->buf + s->done : NULL;
    int rc;

    if (r->op == IO_READ) {
        READ3args args = { .file = c->file, .offset = r->offset + s->done, .count = len };
        rc = nfsbe_compat_read(rpc, nfsbe_libnfs_read_done, buf, len, &args, s);
    } else if (r->op == IO_WRITE) {
        WRITE3args args = { .file = c->file, .offset = r->offset + s->done, .count = len,
                            .stable = nfsbe_libnfs_stable[r->sync], .data = { .data_len = len, .data_val = buf } };
        rc = NFS_CALL(write, rpc, nfsbe_libnfs_write_done, &args, s);
        if (rc == 0) c->counts.asked[nfsbe_libnfs_stable[r->sync]]++;
    } else {
        COMMIT3args args = { .file = c->file, .offset = 0, .count = 0 };
        s->written = c->verfs.written;
        rc = NFS_CALL(commit, rpc, nfsbe_libnfs_commit_done, &args, s);
        if (rc == 0) c->counts.commits++;
    }
    return rc;
}

static int queue(struct context *c, struct request *r) {
    struct slot *s = &c->slots[r->slot];

    if (r->op == IO_WRITE && c->may_write && c->doubt) return -1;
    *s = (struct slot){ .context = c, .request = r, .t_first = c->t_call, .t_sent = c->t_call,
                        .committed = FILE_SYNC };
    c->lent++;
    if (r->op == IO_WRITE && !c->may_write) {
        /* the last line of defence: nothing that was attached for reading ever sends a WRITE */
        nfsbe_libnfs_fail(c, s, clock_now(c->clock), EBADF, "write on a reading context", "");
        return 0;
    }
    if (call(c, s) == 0) return 0;
    s->request = NULL;
    c->lent--;
    return -1;
}

/* Sends what is due; returns when the next is. */
static int64_t send_waiting(struct context *c, int64_t now) {
    int64_t next = INT64_MAX;
    unsigned left = c->waiting;
    for (unsigned i = 0; i < c->depth && left; i++) {
        struct slot *s = &c->slots[i];
        if (!s->request || !s->t_due) continue;
        left--;
        int64_t due = s->t_due > now ? s->t_due : now + NS_PER_MS;
        if (s->t_due > now || pending(c) || (c->doubt && s->request->op == IO_WRITE) || call(c, s) != 0) {
            if (due < next) next = due;
            continue;
        }
        if (s->since) {
            c->counts.retries++;
            c->counts.retry_wait += (uint64_t)(now - s->since);
        }
        s->t_sent = now;
        s->t_due = 0;
        c->waiting--;
    }
    return next;
}

/* How many of the n requests may share one rpc_service()? */
static unsigned batch_size(const struct context *c, struct request *const *requests, unsigned n) {
    unsigned k = 1;
#if !NFS_READ_IN_PLACE
    size_t room, need = 0;
    if (n <= 1) return n;
    room = sock_send_room(c->fd) / 2;
    for (k = 0; k < n && k < BATCH_MAX; k++) {
        need += SKB_OVERHEAD + (requests[k]->op == IO_WRITE ? requests[k]->len + requests[k]->len / 16 : 0);
        if (need > room) break;
    }
    if (k == 0) k = 1;
#else
    (void)c;
    (void)requests;
    (void)n;
#endif
    return k;
}

static int libnfs_submit(struct context *c, struct request *const *requests, unsigned n) {
    unsigned taken = 0;

    if (!c->lost && pending(c)) service(c, POLLOUT);
    if (c->lost) return -c->lost_error;
    c->t_call = sock_now();
    while (taken < n && !c->lost && !pending(c)) {
        unsigned end = taken + batch_size(c, requests + taken, n - taken);
        while (taken < end && queue(c, requests[taken]) == 0) taken++;
        bool stop = taken < end; /* no memory, or a write that has to wait */
        if (pending(c)) service(c, POLLOUT);
        if (!c->lost && pending(c)) c->counts.held++;
        if (stop) return taken || c->doubt ? (int)taken : -ENOMEM;
        if (taken < n && sock_now() - c->t_call > SUBMIT_NS) break;
    }
    return (int)taken;
}

/* ---- reap ---- */

/* One round: waits at most wait_ns for the socket, moves what can be moved. False: a signal came. */
static bool round_trip(struct context *c, int64_t wait_ns) {
    int got = POLLIN;
    if (wait_ns > 0) {
        short events = (short)(POLLIN | (pending(c) ? POLLOUT : 0));
        got = sock_wait(c->fd, events, wait_ns < TICK_NS ? wait_ns : TICK_NS);
        if (got < 0) return false;
    }
    /* An error or hang-up goes in as "readable": what arrived before it is read first, then the library sees it itself.
     */
    int pass = got & (POLLIN | POLLERR | POLLHUP | POLLNVAL) ? POLLIN : 0;
    service(c, pass ? pass | POLLOUT : got & POLLOUT);
    return true;
}

static int libnfs_reap(struct context *c, struct completion *out, unsigned max, unsigned min, int64_t timeout_ns) {
    int64_t now = sock_now(), end = now + (timeout_ns > 0 ? timeout_ns : 0);

    while (!c->lost && c->done_n < max) {
        bool enough = c->done_n >= min;
        int64_t wait = enough ? 0 : end - now;
        if (c->waiting) {
            int64_t next = send_waiting(c, now);
            if (wait > next - now) wait = next - now;
        }
        if (enough && c->done_n && !pending(c)) break;
        bool doubted = c->doubt != SURE;
        if (!round_trip(c, wait)) break;
        doubted |= c->doubt != SURE;
        now = sock_now();
        check_age(c, now);
        if (doubted && !c->lost) settle_doubt(c);
        if (enough || now >= end) break;
    }
    unsigned n = c->done_n < max ? c->done_n : max;
    if (n == 0 && c->lost) return -c->lost_error;
    for (unsigned i = 0; i < n; i++) out[i] = c->done[(c->done_first + i) % c->depth];
    c->done_first = (c->done_first + n) % c->depth;
    c->done_n -= n;
    return (int)n;
}

/* ---- attach, detach ---- */

/* The same file, asked on this very connection, before anything is read from or written to it. */
static int still_the_same(struct context *c, const struct handle *h, struct err *err) {
    struct kinds kinds = { .n = 0 }, *callers = c->kinds;
    int64_t end = sock_now() + c->timeout;

    c->doubt = TO_ASK;
    c->t_doubt = c->ask_due = sock_now();
    c->kinds = &kinds; /* what is wrong here is told in another way */
    while (c->doubt != SURE && c->doubt != GONE && !c->lost && sock_now() < end) {
        settle_doubt(c);
        if (!c->lost) round_trip(c, NS_PER_MS);
    }
    c->kinds = callers;
    c->counts = (struct counts){ .good = 0 };
    if (c->doubt == SURE) return 0;
    if (c->doubt == GONE) return err_set(err, STATUS_TARGET, "%s", c->gone);
    return err_set(err, STATUS_TARGET, "%s: GETATTR: %s", h->where, c->lost ? "the connection is lost" : "no answer");
}

static void context_free(struct context *c) {
    free(c->slots);
    free(c->done);
    free(c);
}

static int libnfs_attach(struct handle *h, const struct attach_how *how, struct context **out, struct err *err) {
    struct context *c = calloc(1, sizeof *c);
    if (!c) return err_set(err, STATUS_TARGET, "no memory");
    c->depth = how->depth ? how->depth : 1;
    c->slots = calloc(c->depth, sizeof *c->slots);
    c->done = calloc(c->depth, sizeof *c->done);
    if (!c->slots || !c->done) {
        context_free(c);
        return err_set(err, STATUS_TARGET, "no memory for %u requests", how->depth);
    }
    for (unsigned i = 0; i < c->depth; i++) c->slots[i].context = c;
    c->common.engine = &nfsbe_engine_libnfs;
    c->clock = how->clock;
    c->kinds = how->kinds;
    c->may_write = how->write;
    c->timeout = h->server.timeout;
    c->verfs = (struct nfsbe_verfs){ .at = &c->verf, .n = 1 };
    c->handle = h;
    c->file.data.data_len = h->file.len;
    c->file.data.data_val = h->file.data;
    if (nfslib_open(&h->server, &c->conn, err) == 0) {
        c->fd = rpc_get_fd(c->conn->rpc);
        c->t_scan = sock_now();
    }
    if (!c->conn || still_the_same(c, h, err) != 0) {
        c->closing = true;
        nfslib_close(c->conn);
        context_free(c);
        return -1;
    }
    *out = c;
    return 0;
}

static void libnfs_detach(struct context *c) {
    int64_t end = sock_end(sock_now() + DRAIN_NS), now;
    while (!c->lost && c->lent && (now = sock_now()) < end) round_trip(c, end - now);
    c->closing = true;
    nfslib_close(c->conn);
    context_free(c);
}

static void libnfs_counters(struct context *c, struct kv *out) {
    const struct counts *n = &c->counts;
    const struct nfsbe_counts counts = {.rpcs = n->good,
                                        .commits = n->commits,
                                        .verifier_changes = c->verfs.changes,
                                        .jukebox = n->jukebox,
                                        .retries = n->retries,
                                        .retry_wait = n->retry_wait,
                                        .short_reads = n->short_reads,
                                        .short_writes = n->short_writes,
                                        .held = n->held,
                                        .asked = n->asked,
                                        .answered = n->answered};
    nfsbe_counts_put(&counts, out);
    tcpinfo_counters(c->fd, out);
}

static void libnfs_watch(struct context *c, struct tcpinfo_watch *w) {
    w->fd[w->n++] = c->lost ? -1 : c->fd;
    w->outstanding = c->lent;
}

const struct nfsbe_engine nfsbe_engine_libnfs = {
    .name = "libnfs",
    .max_io = NFS_LIBRARY_MAX_IO,
    .attach = libnfs_attach,
    .detach = libnfs_detach,
    .submit = libnfs_submit,
    .reap = libnfs_reap,
    .counters = libnfs_counters,
    .watch = libnfs_watch,
};
