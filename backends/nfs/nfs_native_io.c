/* SPDX-License-Identifier: GPL-2.0-or-later */
/* submit and reap: no malloc, no lock, and no system call but send, receive, and the wait between them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "backends/net/sock.h"
#include "backends/nfs/nfs_native.h"

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

#define BATCH_BYTES (1u << 20)          /* of data in one sendmsg(): headers are not built for what will not be taken */
#define DIRECT_MIN (32u << 10)          /* so much of READ's data is received straight into its buffer */
#define LARGE (NFSNATIVE_IN / 2)        /* replies so large are received one at a time, ... */
#define AHEAD 4096u                     /* ... with so much of the next one, which is copied from the receive buffer */
#define TICK_NS (100 * NS_PER_MS)       /* the longest single wait: timeouts are looked at in between */
#define AGE_STEP_MAX (200 * NS_PER_MS)
#define SPIN_NS (50 * NS_PER_US)        /* wait=adaptive */
#define LONG_WAIT_NS (70 * NS_PER_MS)   /* so long a wait may begin with a receive that blocks */
#define MORE_LIKELY 4u                  /* with so many requests out, replies are likely there before we look */

/* base/io.h's table */
static const uint8_t stable_of[] = { [SYNC_NONE] = NFSWIRE_UNSTABLE, [SYNC_DATASTORE] = NFSWIRE_FILE_SYNC,
                                     [SYNC_DSYNC] = NFSWIRE_DATA_SYNC, [SYNC_SYNC] = NFSWIRE_FILE_SYNC };

/* ---- sending ---- */

static ssize_t send_iov(struct nfsnative_conn *conn, struct iovec *iov, unsigned n) {
    conn->sends++;
    if (n == 1) return send(conn->fd, iov->iov_base, iov->iov_len, MSG_DONTWAIT | MSG_NOSIGNAL);
    struct msghdr m = { .msg_iov = iov, .msg_iovlen = n };
    return sendmsg(conn->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* What had arrived when sending failed is still read: only then is the connection lost. */
static void send_failed(struct nfsnative_conn *conn, int error) {
    if (error != EAGAIN && error != EINTR && error != ENOBUFS) conn->send_error = error;
}

/* The rest of the request that is partly sent. True: nothing is pending any more. */
static bool flush_pending(struct nfsnative_conn *conn) {
    if (conn->send_error) return false;
    ssize_t sent = send_iov(conn, conn->pend, conn->pend_n);
    if (sent < 0) {
        send_failed(conn, errno);
        return false;
    }
    unsigned gone = 0;
    while (gone < conn->pend_n && (size_t)sent >= conn->pend[gone].iov_len) sent -= (ssize_t)conn->pend[gone++].iov_len;
    conn->pend_n -= gone;
    memmove(conn->pend, conn->pend + gone, conn->pend_n * sizeof conn->pend[0]);
    if (conn->pend_n == 0) {
        conn->pend_call->where = conn->index;
        return true;
    }
    conn->pend[0].iov_base = (char *)conn->pend[0].iov_base + sent;
    conn->pend[0].iov_len -= (size_t)sent;
    return false;
}

/* Leaves out the first `gone` bytes of what is to be appended. */
static void pend_add(struct nfsnative_conn *conn, const void *bytes, size_t len, size_t *gone) {
    size_t skip = *gone < len ? *gone : len;
    *gone -= skip;
    if (len > skip)
        conn->pend[conn->pend_n++] = (struct iovec){ .iov_base = (char *)bytes + skip, .iov_len = len - skip };
}

/* `gone` bytes of this request are in the socket: it is taken, and its rest will follow. `head` is its header. */
static void pend(struct nfsnative_conn *conn, struct nfswire_call *call, const unsigned char *head, unsigned head_len,
                 size_t gone) {
    static const unsigned char zeros[4];
    memcpy(conn->pend_head, head, head_len);
    conn->pend_n = 0;
    conn->pend_call = call;
    call->where = NFSWIRE_SENDING;
    pend_add(conn, conn->pend_head, head_len, &gone);
    if (call->op != NFSWIRE_WRITE) return;
    pend_add(conn, (char *)call->request->buf + (call->request->len - call->len), call->len, &gone);
    pend_add(conn, zeros, nfswire_pad(call->len), &gone);
}

static void undo(struct context *c, const struct request *r) {
    struct nfswire_call *call = &c->calls[r->slot];
    call->xid -= c->mask + 1;
    call->request = NULL;
    call->where = NFSWIRE_NOWHERE;
    if (r->op == IO_WRITE) c->asked[call->stable]--;
    else if (r->op == IO_FLUSH) c->commits--;
}

/* The socket took `sent` bytes, not all: how many requests is that? */
static __attribute__((noinline)) unsigned taken_part(struct context *c, struct nfsnative_conn *conn,
                                                     struct request *const *requests, unsigned n, size_t sent) {
    const unsigned char *head = c->heads;
    unsigned i;
    c->held++;
    for (i = 0; i < n && sent; i++) {
        struct nfswire_call *call = &c->calls[requests[i]->slot];
        unsigned head_len = c->templates[call->op].len;
        size_t size = head_len;
        if (call->op == NFSWIRE_WRITE) size += call->len + nfswire_pad(call->len);
        if (sent < size) {
            pend(conn, call, head, head_len, sent);
            i++;
            break;
        }
        sent -= size;
        head += head_len + (call->op == NFSWIRE_WRITE ? nfswire_pad(call->len) : 0);
    }
    for (unsigned k = i; k < n; k++) undo(c, requests[k]);
    return i;
}

static inline unsigned char *build(struct context *c, const struct nfsnative_conn *conn, struct request *r,
                                   unsigned char *head) {
    struct nfswire_call *call = &c->calls[r->slot];
    const struct nfswire_template *t = &c->templates[r->op];

    call->xid += c->mask + 1;
    call->where = conn->index;
    call->op = r->op;
    call->len = r->len;
    call->request = r;
    call->sent = c->age;
    if (r->op == IO_READ) {
        call->buf = c->deliver ? r->buf : NULL;
    } else if (r->op == IO_WRITE) {
        call->stable = stable_of[r->sync];
        c->asked[call->stable]++;
    } else {
        call->written = c->verfs.written;
        c->commits++;
    }
    nfswire_put(t, head, (enum nfswire_op)r->op, call->xid, r->offset, r->len, call->stable);
    return head + t->len;
}

/* Takes requests in their order with one system call, until one is not to be sent at all, or the batch is large enough.
 * *all: everything that was tried has been taken. */
static unsigned send_batch(struct context *c, struct nfsnative_conn *conn, struct request *const *requests, unsigned n,
                           bool *all) {
    unsigned char *head = c->heads, *run = head;
    struct iovec *v = c->iov;
    size_t data = 0;
    unsigned i;

    if (n > NFSNATIVE_BATCH) n = NFSNATIVE_BATCH;
    for (i = 0; i < n && data < BATCH_BYTES; i++) {
        struct request *r = requests[i];
        if (UNLIKELY(c->apart >> r->op & 1)) break;
        head = build(c, conn, r, head);
        if (r->op != IO_WRITE) continue;
        uint32_t pad = nfswire_pad(r->len);
        *v++ = (struct iovec){ .iov_base = run, .iov_len = (size_t)(head - run) };
        *v++ = (struct iovec){ .iov_base = r->buf, .iov_len = r->len };
        data += r->len;
        run = head;
        if (UNLIKELY(pad)) {
            memset(head, 0, pad);
            head += pad;
        }
    }
    *all = true;
    if (i == 0) return 0;
    if (head > run) *v++ = (struct iovec){ .iov_base = run, .iov_len = (size_t)(head - run) };
    ssize_t sent = send_iov(conn, c->iov, (unsigned)(v - c->iov));
    unsigned taken = i;
    if (UNLIKELY(sent != (ssize_t)((size_t)(head - c->heads) + data))) {
        if (sent < 0) send_failed(conn, errno);
        taken = taken_part(c, conn, requests, i, sent < 0 ? 0 : (size_t)sent);
        *all = false;
    }
    if (UNLIKELY(c->n_conns > 1) && conn->lent == 0) silence_begins(&conn->silence, clock_now(c->clock));
    conn->lent += taken;
    conn->rpcs += taken;
    c->lent += taken;
    return taken;
}

bool nfsnative_send_call(struct context *c, struct nfsnative_conn *conn, struct nfswire_call *call) {
    static const unsigned char zeros[4];
    const struct nfswire_template *t = &c->templates[call->op];
    const struct request *r = call->request;
    bool write = call->op == NFSWIRE_WRITE;
    uint32_t done = call->op <= NFSWIRE_WRITE ? r->len - call->len : 0, pad = write ? nfswire_pad(call->len) : 0;

    if (conn->send_error || (conn->pend_n && !flush_pending(conn))) return false;
    nfswire_put(t, c->heads, (enum nfswire_op)call->op, call->xid + c->mask + 1, r ? r->offset + done : 0, call->len,
                call->stable);
    c->iov[0] = (struct iovec){ .iov_base = c->heads, .iov_len = t->len };
    if (write) c->iov[1] = (struct iovec){ .iov_base = (char *)r->buf + done, .iov_len = call->len };
    if (pad) c->iov[2] = (struct iovec){ .iov_base = (void *)(uintptr_t)zeros, .iov_len = pad };
    ssize_t sent = send_iov(conn, c->iov, 1u + write + (pad != 0));
    if (sent <= 0) {
        if (sent < 0) send_failed(conn, errno);
        return false;
    }
    call->xid += c->mask + 1;
    call->where = conn->index;
    call->sent = c->age;
    if (write) c->asked[call->stable]++;
    c->commits += call->op == NFSWIRE_COMMIT;
    conn->rpcs++;
    if (conn->lent++ == 0) silence_begins(&conn->silence, clock_now(c->clock));
    if ((size_t)sent == t->len + (write ? call->len + pad : 0)) return true;
    c->held++;
    pend(conn, call, c->heads, t->len, (size_t)sent);
    return true;
}

/* What has no place in a batch. False: it has to wait, and so has all behind it. The last line of defence: nothing that
 * was attached for reading ever sends a WRITE. */
static bool send_apart(struct context *c, struct nfsnative_conn *conn, struct request *r) {
    if (r->op == IO_FLUSH) return nfsnative_flush(c, conn, r);
    if (c->may_write) return false; /* until it is known that the file is still the same */
    c->calls[r->slot].request = r;
    c->calls[r->slot].where = NFSWIRE_NOWHERE;
    c->late[r->slot] = (struct nfsnative_late){
        .state = LATE_FAILED, .error = EBADF, .kind = kinds_note(c->kinds, "write on a reading context", "") };
    c->failed++;
    c->lent++;
    return true;
}

/* At most n requests on one connection, and at least one. *all as above. */
static unsigned send_share(struct context *c, struct nfsnative_conn *conn, struct request *const *requests, unsigned n,
                           bool *all) {
    unsigned taken = 0;
    for (;;) {
        taken += send_batch(c, conn, requests + taken, n - taken, all);
        if (LIKELY(taken == n) || !*all) return taken;
        if (!(c->apart >> requests[taken]->op & 1)) continue;
        *all = send_apart(c, conn, requests[taken]);
        taken += *all;
        if (taken == n || !*all) return taken;
    }
}

int nfsnative_submit(struct context *c, struct request *const *requests, unsigned n) {
    unsigned taken = 0, at = c->turn;
    bool all = true;

    if (UNLIKELY(c->lost)) return -c->lost_error;
    for (unsigned i = 0; i < c->n_conns && taken < n && all; i++) {
        struct nfsnative_conn *conn = &c->conn[at];
        unsigned rest = c->n_conns - i, share = rest == 1 ? n - taken : (n - taken + rest - 1) / rest;
        if (++at == c->n_conns) at = 0;
        if (UNLIKELY(conn->send_error)) continue;
        if (UNLIKELY(conn->pend_n) && !flush_pending(conn)) continue;
        taken += send_share(c, conn, requests + taken, share, &all);
    }
    if (c->n_conns > 1) c->turn = (c->turn + taken) % c->n_conns;
    return (int)taken;
}

/* ---- time ---- */

static __attribute__((noinline)) void look_for_old(struct context *c) {
    int64_t oldest = c->age;
    uint32_t where = 0;
    char text[440], missing[220];
    for (uint32_t slot = 0; slot <= c->mask; slot++) {
        if (c->calls[slot].where == NFSWIRE_NOWHERE || c->calls[slot].sent >= oldest) continue;
        oldest = c->calls[slot].sent;
        where = c->calls[slot].where;
    }
    c->oldest = oldest;
    if (c->age - oldest <= c->timeout) return;
    int at = snprintf(text, sizeof text, "no reply within %lld ms (timeout=)", (long long)(c->timeout / NS_PER_MS));
    if (c->n_conns > 1)
        at += snprintf(text + at, sizeof text - (size_t)at, " on connection %u of %u%s%s", where + 1, c->n_conns,
                       c->conn[where].road[0] ? ", " : "", c->conn[where].road);
    snprintf(text + at, sizeof text - (size_t)at, "%s", tcpinfo_missing(c->conn[where].fd, missing, sizeof missing));
    nfsnative_lose(c, ETIMEDOUT, "timeout", text);
}

static inline void pass_time(struct context *c, int64_t now) {
    int64_t step = now - c->seen;
    c->seen = now;
    c->age += step < AGE_STEP_MAX ? step : AGE_STEP_MAX;
    if (UNLIKELY(c->age - c->oldest > c->timeout)) look_for_old(c);
}

/* ---- receiving ---- */

enum look { LOOK_NOTHING, LOOK_SOMETHING, LOOK_SIGNAL };

static __attribute__((cold)) enum look received_nothing(struct context *c, const struct nfsnative_conn *conn, ssize_t r,
                                                        int error) {
    if (r < 0 && error == EINTR) return LOOK_SIGNAL;
    if (r < 0 && (error == EAGAIN || error == EWOULDBLOCK) && !conn->send_error) return LOOK_NOTHING;
    if (conn->send_error && conn->send_error != EPIPE) error = conn->send_error;
    else if (r == 0) error = 0;
    nfsnative_lose_conn(c, conn, ECONNRESET, "connection lost",
                        error ? strerror(error) : "the other side closed the connection");
    return LOOK_NOTHING;
}

/* One receive, its stamp, and what follows from it. c->out has room. */
static enum look look(struct context *c, struct nfsnative_conn *conn, int flags) {
    struct nfswire *w = &conn->wire;
    size_t direct = 0, ahead = w->data_len > LARGE ? AHEAD : NFSNATIVE_IN;
    ssize_t r;

    conn->recvs++;
    void *to = nfswire_direct(w, &direct);
    if (direct >= DIRECT_MIN && to) {
        struct iovec iov[2] = { { .iov_base = to, .iov_len = direct }, { .iov_base = conn->in, .iov_len = ahead } };
        struct msghdr m = { .msg_iov = iov, .msg_iovlen = 2 };
        r = recvmsg(conn->fd, &m, flags);
    } else {
        direct = 0;
        r = recv(conn->fd, conn->in, ahead, flags);
    }
    if (r <= 0) return received_nothing(c, conn, r, errno);
    conn->stamp = clock_now(c->clock);
    silence_ends(&conn->silence, conn->stamp);
    if (UNLIKELY(c->tend != NULL)) tcp_settings_tend(c->tend, conn->fd);
    if (direct) {
        size_t n = (size_t)r < direct ? (size_t)r : direct;
        nfswire_took(w, n);
        r -= (ssize_t)n;
    }
    nfswire_feed(w, conn->in, (size_t)r);
    nfsnative_parse(c, conn);
    return LOOK_SOMETHING;
}

static int wait_for(struct context *c, struct pollfd *p, unsigned n, int64_t wait_ns) {
    struct timespec ts = { .tv_nsec = (long)(wait_ns < TICK_NS ? wait_ns : TICK_NS) };
    c->polls++;
    return ppoll(p, n, &ts, NULL);
}

static short wanted(const struct nfsnative_conn *conn) {
    return (short)(POLLIN | (conn->pend_n && !conn->send_error ? POLLOUT : 0));
}

/* One round with one connection: what can be moved is moved, after a wait of at most `left`. `busy`: looking, not
 * sleeping. */
static enum look round_one(struct context *c, int64_t left, bool busy) {
    struct nfsnative_conn *conn = c->conn;

    if (UNLIKELY(conn->send_error)) return look(c, conn, MSG_DONTWAIT);
    if (LIKELY(!conn->pend_n && c->lent)) {
        if (left <= 0 || busy) return look(c, conn, MSG_DONTWAIT);
        if (left >= LONG_WAIT_NS) return look(c, conn, 0); /* SO_RCVTIMEO ends it */
        if (c->lent >= MORE_LIKELY) {
            enum look got = look(c, conn, MSG_DONTWAIT);
            if (got != LOOK_NOTHING || c->lost) return got;
        }
    }
    if (left > 0 && !busy) {
        struct pollfd p = { .fd = conn->fd, .events = wanted(conn) };
        int ready = wait_for(c, &p, 1, left);
        if (ready <= 0) return ready < 0 && errno == EINTR ? LOOK_SIGNAL : LOOK_NOTHING;
        if (p.revents & POLLOUT) flush_pending(conn);
        if (!(p.revents & ~POLLOUT)) return LOOK_NOTHING;
    } else if (conn->pend_n) {
        flush_pending(conn);
    }
    return look(c, conn, MSG_DONTWAIT);
}

static enum look look_at_all(struct context *c) {
    enum look got = LOOK_NOTHING;
    for (unsigned i = 0; i < c->n_conns && !c->lost && c->out_n < c->out_max; i++) {
        struct nfsnative_conn *conn = &c->conn[i];
        if (conn->pend_n) flush_pending(conn);
        if ((conn->lent || conn->send_error) && look(c, conn, MSG_DONTWAIT) == LOOK_SOMETHING) got = LOOK_SOMETHING;
    }
    return got;
}

static enum look round_many(struct context *c, int64_t left, bool busy) {
    enum look got = LOOK_NOTHING;

    if (busy) return look_at_all(c);
    for (unsigned i = 0; i < c->n_conns; i++) {
        if (UNLIKELY(c->conn[i].send_error)) return look_at_all(c);
        c->poll[i] = (struct pollfd){ .fd = c->conn[i].fd, .events = wanted(&c->conn[i]) };
    }
    int ready = wait_for(c, c->poll, c->n_conns, left > 0 ? left : 0);
    if (ready <= 0) return ready < 0 && errno == EINTR ? LOOK_SIGNAL : LOOK_NOTHING;
    for (unsigned i = 0; i < c->n_conns && !c->lost && c->out_n < c->out_max; i++) {
        short events = c->poll[i].revents;
        if (events & POLLOUT) flush_pending(&c->conn[i]);
        if ((events & ~POLLOUT) && look(c, &c->conn[i], MSG_DONTWAIT) == LOOK_SOMETHING) got = LOOK_SOMETHING;
    }
    return got;
}

/* ---- reap ---- */

static __attribute__((noinline)) void take_leftovers(struct context *c) {
    c->leftover = false;
    for (unsigned i = 0; i < c->n_conns && !c->lost && c->out_n < c->out_max; i++) nfsnative_parse(c, &c->conn[i]);
    for (unsigned i = 0; i < c->n_conns; i++)
        if (nfswire_fed(&c->conn[i].wire)) c->leftover = true;
}

/* Sends what is due. How long to wait at most for something to arrive, where it would be `left`. */
static __attribute__((noinline)) int64_t wait_for_due(struct context *c, int64_t now, int64_t left) {
    nfsnative_send_late(c, now);
    if (c->waiting && left > c->next_due - now) left = c->next_due - now;
    return left > 0 ? left : 0;
}

static void serve(struct context *c, unsigned min, int64_t timeout_ns) {
    int64_t now = sock_now(), end = now + (timeout_ns > 0 ? timeout_ns : 0);
    int64_t spin = c->wait == NFSBE_WAIT_BLOCK ? now : c->wait == NFSBE_WAIT_SPIN ? end : now + SPIN_NS;

    for (;;) {
        pass_time(c, now);
        if (c->lost || c->out_n >= c->out_max) return;
        bool enough = c->out_n >= min, busy = now < spin && c->lent;
        int64_t left = enough ? 0 : end - now;
        if (UNLIKELY(c->waiting)) left = wait_for_due(c, now, left);
        enum look got = c->n_conns == 1 ? round_one(c, left, busy) : round_many(c, left, busy);
        if (enough || c->out_n >= min || got == LOOK_SIGNAL) return;
        now = sock_now();
        if (now >= end) return;
    }
}

int nfsnative_reap(struct context *c, struct completion *out, unsigned max, unsigned min, int64_t timeout_ns) {
    c->out = out;
    c->out_n = 0;
    c->out_max = max;
    if (UNLIKELY(c->leftover) && !c->lost) take_leftovers(c);
    if (UNLIKELY(c->failed)) nfsnative_give_back(c);
    if (LIKELY(!c->lost) && c->out_n < max) serve(c, min, timeout_ns);
    if (UNLIKELY(c->waiting) && !c->lost) nfsnative_send_late(c, sock_now());
    if (UNLIKELY(c->lost)) {
        nfsnative_give_back(c);
        if (c->out_n == 0) return -c->lost_error;
    }
    return (int)c->out_n;
}
