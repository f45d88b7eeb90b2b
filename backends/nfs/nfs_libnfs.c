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

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/net/sock.h"
#include "backends/net/tcpinfo.h"
#include "backends/nfs/nfs_calls.h"
#include "backends/nfs/nfs_libnfs_conn.h"
#include "backends/nfs/nfs_names.h"
#include "backends/nfs/nfs_verf.h"
#include "base/text.h"

#define TICK_NS (100 * NS_PER_MS)   /* timeouts are looked at so often */
#define DRAIN_NS (2 * NS_PER_SEC)   /* detach waits so long for what is still out */
#define SUBMIT_NS NS_PER_MS         /* one submit takes no more after so long: replies wait to be stamped */
#define BATCH_MAX 16u               /* requests that share one rpc_service() */
#define SKB_OVERHEAD 2560u          /* the kernel's bookkeeping for one small send, rounded up */

struct slot {
    struct context *context;
    struct request *request;        /* NULL: free */
    int64_t t_sent;
    uint64_t written;               /* COMMIT: nfsbe_verf.written when it was sent */
};

struct counts {
    uint64_t rpcs, asked[3], answered[3], commits, jukebox, held;
};

struct context {
    struct nfsbe_context common;    /* first: nfs.c finds the engine by it */
    struct nfslib_conn *conn;       /* NULL once lost */
    int fd;
    nfs_fh3 file;
    struct clock *clock;
    struct kinds *kinds;
    int64_t timeout;
    unsigned depth, lent;
    struct slot *slots;             /* by request->slot */
    struct completion *done;        /* ring of `depth` */
    unsigned done_first, done_n;
    struct nfsbe_verf verf;
    struct counts counts;
    int64_t t_scan;                 /* when timeouts were last looked at */
    int64_t t_call;                 /* of the submit that is going on */
    bool may_write, lost;
    int lost_error;                 /* errno of why */
    bool broken;                    /* callbacks have said that the connection is gone */
    bool closing;                   /* callbacks have nothing to say any more */
};

/* base/io.h's table */
static const stable_how stable_how_of[] = {
    [SYNC_NONE] = UNSTABLE, [SYNC_DATASTORE] = FILE_SYNC, [SYNC_DSYNC] = DATA_SYNC, [SYNC_SYNC] = FILE_SYNC
};

const char *nfsbe_library(void) {
#ifdef SAMEDISK_LIBNFS_VERSION
    return "libnfs " SAMEDISK_LIBNFS_VERSION;
#elif NFS_READ_IN_PLACE
    return "libnfs 6 or later";
#else
    return "libnfs 4 or 5";
#endif
}

/* ---- completions ---- */

static void push(struct context *c, struct slot *s, int64_t t, int64_t result, unsigned kind, bool stable) {
    struct completion *d = &c->done[(c->done_first + c->done_n++) % c->depth];
    *d = (struct completion){ .request = s->request, .result = result, .t_done = t, .kind = (uint16_t)kind,
                              .stable = stable };
    s->request = NULL;
    c->lent--;
}

static void fail(struct context *c, struct slot *s, int64_t t, int error, const char *name, const char *text) {
    push(c, s, t, -error, kinds_note(c->kinds, name, text), false);
}

static void fail_status(struct context *c, struct slot *s, int64_t t, unsigned status) {
    char name[40], text[240];
    const struct nfsbe_server *as = c->conn->server;
    const char *hint = nfsbe_status_hint(status);
    if (status == NFS_STATUS_JUKEBOX) c->counts.jukebox++;
    nfsbe_status_name(status, name, sizeof name);
    snprintf(text, sizeof text, "%s by the server (uid %u gid %u)%s%s", io_op_name((enum io_op)s->request->op), as->uid,
             as->gid, *hint ? ": " : "", hint);
    fail(c, s, t, nfsbe_status_errno(status), name, text);
}

/* Why the connection broke: the socket's words, and the library's if it has any of its own. */
static const char *why_lost(const struct context *c, char *buf, size_t len) {
    char peer[100], words[120];
    const char *error = rpc_get_error(c->conn->rpc);
    text_safe(words, sizeof words, error ? error : "", error ? strlen(error) : 0);
    snprintf(buf, len, "%s%s%s", sock_why(c->fd, peer, sizeof peer), *words ? "; libnfs: " : "", words);
    return buf;
}

/* The call itself failed: rejected by the server's RPC layer, or the connection is gone and all calls are cancelled. */
static void fail_rpc(struct context *c, struct slot *s, int64_t t, int status, const char *words) {
    char text[240];
    if (status == RPC_STATUS_TIMEOUT) {
        fail(c, s, t, ETIMEDOUT, "timeout", "libnfs: no reply");
    } else if (status == RPC_STATUS_CANCEL || (words && strncmp(words, "RPC ERROR", 9) == 0)) {
        c->broken = true;
        fail(c, s, t, ECONNRESET, "connection lost", why_lost(c, text, sizeof text));
    } else {
        fail(c, s, t, EIO, "RPC error", words ? text_safe(text, sizeof text, words, strnlen(words, sizeof text)) : "");
    }
}

/* Every callback begins with this. NULL: the reply of a request that was given up, or that is no longer of interest. */
static struct slot *arrived(void *private_data, int status, const char *words, int64_t *t) {
    struct slot *s = private_data;
    struct context *c = s->context;
    *t = clock_now(c->clock);
    if (!s->request || c->closing) return NULL;
    if (status == RPC_STATUS_SUCCESS) return s;
    fail_rpc(c, s, *t, status, status == RPC_STATUS_ERROR ? words : NULL);
    return NULL;
}

static void read_done(struct rpc_context *rpc, int status, void *data, void *private_data) {
    int64_t t;
    struct slot *s = arrived(private_data, status, data, &t);
    const READ3res *res = data;
    (void)rpc;
    if (!s) return;
    struct context *c = s->context;
    if (res->status != NFS3_OK) {
        fail_status(c, s, t, (unsigned)res->status);
        return;
    }
    const READ3resok *ok = &res->READ3res_u.resok;
    if (ok->count > s->request->len) {
        fail(c, s, t, EPROTO, "bad reply", "READ brought more than was asked for");
        return;
    }
#if !NFS_READ_IN_PLACE
    if (ok->data.data_len < ok->count) {
        fail(c, s, t, EPROTO, "bad reply", "READ's count is larger than its data");
        return;
    }
    memcpy(s->request->buf, ok->data.data_val, ok->count);
#endif
    push(c, s, t, ok->count, 0, false);
}

static void write_done(struct rpc_context *rpc, int status, void *data, void *private_data) {
    int64_t t;
    struct slot *s = arrived(private_data, status, data, &t);
    const WRITE3res *res = data;
    (void)rpc;
    if (!s) return;
    struct context *c = s->context;
    if (res->status != NFS3_OK) {
        fail_status(c, s, t, (unsigned)res->status);
        return;
    }
    const WRITE3resok *ok = &res->WRITE3res_u.resok;
    bool data_lost = false;
    if (ok->committed <= FILE_SYNC) c->counts.answered[ok->committed]++;
    /* The verifier of a stable write vouches for nothing: only what needs a COMMIT can be lost by a change. */
    if (ok->committed == UNSTABLE) {
        data_lost = nfsbe_verf_see(&c->verf, ok->verf);
        nfsbe_verf_written(&c->verf);
    }
    if (ok->count > s->request->len)
        fail(c, s, t, EPROTO, "bad reply", "WRITE says that it wrote more than was sent");
    else if (ok->committed < stable_how_of[s->request->sync])
        fail(c, s, t, EIO, "committed lower than asked", "the server did not make a write as stable as it was told to");
    else if (data_lost)
        fail(c, s, t, EIO, "write verifier changed", "the server restarted: unstable writes before this one are lost");
    else
        push(c, s, t, ok->count, 0, ok->committed >= DATA_SYNC);
}

static void commit_done(struct rpc_context *rpc, int status, void *data, void *private_data) {
    int64_t t;
    struct slot *s = arrived(private_data, status, data, &t);
    const COMMIT3res *res = data;
    (void)rpc;
    if (!s) return;
    struct context *c = s->context;
    if (res->status != NFS3_OK) {
        fail_status(c, s, t, (unsigned)res->status);
    } else if (nfsbe_verf_see(&c->verf, res->COMMIT3res_u.resok.verf)) {
        fail(c, s, t, EIO, "write verifier changed",
             "the server restarted: unstable writes before this flush are lost");
    } else {
        nfsbe_verf_committed(&c->verf, s->written);
        push(c, s, t, 0, 0, false);
    }
}

/* ---- the connection's end ---- */

/* Every request that is still out comes back with an error, once, and the library's context goes, so that neither it
 * nor a late reply can touch a buffer any more. Never called inside a callback. */
static void lose(struct context *c, int error, const char *kind, const char *text) {
    if (c->lost) return;
    c->lost = true;
    c->lost_error = error;
    c->closing = true; /* the cancelled calls call back */
    nfslib_close(c->conn);
    c->conn = NULL;
    c->fd = -1;
    int64_t t = clock_now(c->clock);
    for (unsigned i = 0; i < c->depth && c->lent; i++)
        if (c->slots[i].request) fail(c, &c->slots[i], t, error, kind, text);
}

static bool pending(const struct context *c) {
    return rpc_which_events(c->conn->rpc) & POLLOUT;
}

static void service(struct context *c, int events) {
    char why[240];
    if (rpc_service(c->conn->rpc, events) == 0 && !c->broken) return;
    lose(c, ECONNRESET, "connection lost", why_lost(c, why, sizeof why));
}

/* A request older than the timeout means that the server is gone: a reply that comes after all could not be told from
 * one that is due, and the library has no way to take a call back. */
static void check_age(struct context *c, int64_t now) {
    char text[120];
    if (now - c->t_scan < TICK_NS) return;
    c->t_scan = now;
    if (c->lost || !c->lent) return;
    for (unsigned i = 0; i < c->depth; i++) {
        if (!c->slots[i].request || now - c->slots[i].t_sent <= c->timeout) continue;
        snprintf(text, sizeof text, "no reply within %lld ms (timeout=)", (long long)(c->timeout / NS_PER_MS));
        lose(c, ETIMEDOUT, "timeout", text);
        return;
    }
}

/* ---- submit ---- */

static int queue(struct context *c, struct request *r) {
    struct rpc_context *rpc = c->conn->rpc;
    struct slot *s = &c->slots[r->slot];
    int rc;

    s->request = r;
    s->t_sent = c->t_call;
    c->lent++;
    if (r->op == IO_READ) {
        READ3args args = { .file = c->file, .offset = r->offset, .count = r->len };
        rc = nfsbe_compat_read(rpc, read_done, r->buf, r->len, &args, s);
    } else if (r->op == IO_WRITE && !c->may_write) {
        /* the last line of defence: nothing that was attached for reading ever sends a WRITE */
        fail(c, s, clock_now(c->clock), EBADF, "write on a reading context", "");
        return 0;
    } else if (r->op == IO_WRITE) {
        WRITE3args args = { .file = c->file, .offset = r->offset, .count = r->len, .stable = stable_how_of[r->sync],
                            .data = { .data_len = r->len, .data_val = r->buf } };
        rc = NFS_CALL(write, rpc, write_done, &args, s);
        if (rc == 0) c->counts.asked[stable_how_of[r->sync]]++;
    } else {
        COMMIT3args args = { .file = c->file, .offset = 0, .count = 0 };
        s->written = c->verf.written;
        rc = NFS_CALL(commit, rpc, commit_done, &args, s);
        if (rc == 0) c->counts.commits++;
    }
    if (rc == 0) {
        c->counts.rpcs++;
        return 0;
    }
    s->request = NULL;
    c->lent--;
    return -1;
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
        bool stop = taken < end; /* no memory */
        if (pending(c)) service(c, POLLOUT);
        if (!c->lost && pending(c)) c->counts.held++;
        if (stop) return taken ? (int)taken : -ENOMEM;
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
        if (enough && c->done_n && !pending(c)) break;
        if (!round_trip(c, enough ? 0 : end - now)) break;
        now = sock_now();
        check_age(c, now);
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

/* The same file, still as large, before anything is read from or written to it. */
static int still_the_same(const struct handle *h, struct err *err) {
    struct nfsbe_attr attr;
    struct nfsbe_conn *conn;
    if (nfsbe_conn_open(&h->server, NFS_PROGRAM_ID, &conn, err) != 0) return -1;
    int status = nfsbe_call_getattr(conn, &h->file, &attr, err);
    nfsbe_conn_close(conn);
    if (status > 0) return err_set(err, STATUS_TARGET, "%s: NFS status %d", h->where, status);
    if (status < 0) return -1;
    if (attr.fsid != h->fsid || attr.fileid != h->fileid)
        return err_set(err, STATUS_TARGET, "%s is another file by now (fsid:%llx/fileid:%llu)", h->where,
                       (unsigned long long)attr.fsid, (unsigned long long)attr.fileid);
    if (attr.size < h->size)
        return err_set(err, STATUS_TARGET, "%s has shrunk from %llu to %llu bytes since it was opened", h->where,
                       (unsigned long long)h->size, (unsigned long long)attr.size);
    return 0;
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
    c->file.data.data_len = h->file.len;
    c->file.data.data_val = h->file.data;
    if (nfslib_open(&h->server, &c->conn, err) != 0 || still_the_same(h, err) != 0) {
        nfslib_close(c->conn);
        context_free(c);
        return -1;
    }
    c->fd = rpc_get_fd(c->conn->rpc);
    c->t_scan = sock_now();
    *out = c;
    return 0;
}

static void libnfs_detach(struct context *c) {
    int64_t end = sock_now() + DRAIN_NS, now;
    while (!c->lost && c->lent && (now = sock_now()) < end) round_trip(c, end - now);
    c->closing = true;
    nfslib_close(c->conn);
    context_free(c);
}

static void libnfs_counters(struct context *c, struct kv *out) {
    const struct counts *n = &c->counts;
    const struct nfsbe_counts counts = {.rpcs = n->rpcs,
                                        .commits = n->commits,
                                        .verifier_changes = c->verf.changes,
                                        .jukebox = n->jukebox,
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
