/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The native engine's socket: when to send, when to receive, how to wait.
 *
 * Stamps. One clock_now() right after each recv, for all that it brought: what came together was complete together, as
 * far as anyone can know here.
 *
 * Waiting. A recv that blocks is one system call where poll and recv are two, so with nothing to send and time enough
 * it is left to sleep in recv, for NATIVE_RECV_NS at most; that socket option has the kernel's coarse time, so shorter
 * waits go through ppoll, which keeps to the nanosecond. What is likely there already is fetched without any waiting.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backends/iscsi/iscsi_native.h"
#include "backends/net/sock.h"
#include "backends/net/tcpinfo.h"

#define TICK_NS     (100 * NS_PER_MS) /* timeouts are looked at so often */
#define GAP_NS      (200 * NS_PER_MS) /* a longer time in which nobody looked counts as so much */
#define RECV_MIN_NS (60 * NS_PER_MS)  /* only so long a wait may sleep in recv */
#define SPIN_NS     (50 * NS_PER_US)  /* wait=adaptive */
#define SOON_NS     NS_PER_MS         /* the longest wait where something is to be sent later */
#define DRAIN_NS    (500 * NS_PER_MS)
#define LOGOUT_NS   NS_PER_SEC
#define DIRECT_NEXT (4u << 10)  /* the rest of a data segment is received into its buffer from this size on, and with it
                                   so much of the next PDU */
#define MISSES_MAX  6u

/* ---- sending ---- */

static int receive(struct context *c, int flags);

/* The target may have said why before it closed: that is read first. */
static void send_failed(struct context *c, int error) {
    while (!c->lost && receive(c, MSG_DONTWAIT) > 0) continue;
    iscsibe_native_lose(c, ECONNRESET, "connection lost", strerror(error));
}

/* One system call. Bytes that went, 0 if the socket takes none now, negative errno. */
static inline ssize_t send_out(struct context *c) {
    struct native_out *o = &c->out;
    struct msghdr m = { .msg_iov = o->iov + o->first, .msg_iovlen = o->n - o->first };
    ssize_t sent = o->n - o->first == 1
                       ? send(c->fd, m.msg_iov->iov_base, m.msg_iov->iov_len, MSG_DONTWAIT | MSG_NOSIGNAL)
                       : sendmsg(c->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
    c->counts.sends++;
    if (__builtin_expect(sent >= 0, 1)) return sent;
    return errno == EAGAIN || errno == EINTR ? 0 : -errno;
}

static void flush(struct context *c) {
    while (!c->lost) {
        if (c->out.n == 0) iscsibe_out_fill(c);
        if (c->out.n == 0) return;
        ssize_t sent = send_out(c);
        if (sent < 0) {
            send_failed(c, (int)-sent);
            return;
        }
        bool all = (size_t)sent == c->out.total;
        iscsibe_out_sent(c, (size_t)sent, NULL, 0);
        if (!all) {
            c->counts.full++;
            return;
        }
    }
}

/* Commands that the target put off, when their time has come. */
static void retry(struct context *c) {
    if (c->wall < c->retry_due) return;
    c->retry_due = INT64_MAX;
    for (unsigned i = 0; i < c->depth; i++) {
        struct native_slot *s = &c->slots[i];
        if (!s->t_retry) continue;
        if (s->t_retry > c->wall) {
            if (s->t_retry < c->retry_due) c->retry_due = s->t_retry;
            continue;
        }
        s->t_retry = 0;
        c->retrying--;
        iscsibe_out_again(c, s);
    }
}

/* ---- time ---- */

static inline void observe(struct context *c, int64_t now) {
    int64_t passed = now - c->wall;
    c->wall = now;
    c->age += passed < GAP_NS ? passed : GAP_NS;
    if (__builtin_expect(passed >= GAP_NS, 0)) iscsibe_hold_stood_still(c);
}

static inline int64_t look(struct context *c) {
    int64_t now = sock_now();
    observe(c, now);
    return now;
}

/* A command older than the timeout means that the target is gone: a late answer would find the slot used anew. What the
 * target puts off has its own end (iscsi_done.c), and so has what waits to know the unit (iscsi_hold.c). */
static void check_age(struct context *c) {
    char text[360], missing[220];
    c->age_scanned = c->age;
    if (iscsibe_hold_told(c)) iscsibe_hold_follow(c);
    if (c->may_write && c->wall - c->asked >= RECHECK_EVERY_NS) iscsibe_hold_ask(c);
    for (unsigned i = 0; i < c->depth && !c->lost && c->lent; i++) {
        struct native_slot *s = &c->slots[i];
        if (!s->request || s->t_retry || (!s->out && c->aside & ASIDE_HOLD)) continue;
        if (c->age - s->age > c->timeout) {
            snprintf(text, sizeof text, "no reply within %lld ms (timeout=)%s", (long long)(c->timeout / NS_PER_MS),
                     tcpinfo_missing(c->fd, missing, sizeof missing));
            iscsibe_native_lose(c, ETIMEDOUT, "timeout", text);
        }
    }
}

/* The target has asked for a logout: with the last answer, or when its patience ends. */
static void check_leave(struct context *c) {
    if (c->lent && c->wall < c->leave_by) return;
    if (!c->lent) {
        c->logout = true;
        flush(c);
    }
    iscsibe_native_lose(c, ESHUTDOWN, "logout requested", "the target asked for a logout and ends the session");
}

static __attribute__((noinline)) void aside(struct context *c) {
    look(c);
    if (iscsibe_hold_told(c)) iscsibe_hold_follow(c);
    iscsibe_hold_work(c);
    if (c->retrying) retry(c);
}

/* All that is to be done between two receives. */
static inline void work(struct context *c) {
    if (__builtin_expect((c->retrying | c->aside) != 0, 0)) aside(c);
    if (iscsibe_out_due(c)) flush(c);
    if (__builtin_expect(c->age - c->age_scanned >= TICK_NS, 0)) check_age(c);
    if (__builtin_expect(c->aside & ASIDE_LEAVE, 0) && !c->lost) check_leave(c);
}

/* ---- receiving ---- */

/* What arrived behind in_have. */
static inline void arrived(struct context *c, size_t n, int64_t t) {
    size_t len = c->in_have + n, used = iscsibe_in_take(c, c->in_bytes, len, t);
    c->in_have = len - used;
    if (c->in_have) memmove(c->in_bytes, c->in_bytes + used, c->in_have);
}

/* The rest of a long data segment goes straight to where it belongs, and with it comes only the beginning of what
 * follows: of that, too, most is to be received into its buffer. */
static ssize_t receive_large(struct context *c, int flags, size_t *direct) {
    bool data = c->in.at == WIRE_AT_DATA;
    struct iovec iov[2];
    struct msghdr m = { .msg_iov = iov, .msg_iovlen = 2 };

    *direct = data && c->sink_room >= c->in.data_left && c->in.data_left >= DIRECT_NEXT ? c->in.data_left : 0;
    if (*direct == 0) {
        size_t most = (data ? c->in.data_left : 0) + DIRECT_NEXT;
        return recv(c->fd, c->in_bytes + c->in_have, most < NATIVE_IN_SIZE ? most : NATIVE_IN_SIZE, flags);
    }
    iov[0] = (struct iovec){ .iov_base = c->sink, .iov_len = *direct };
    iov[1] = (struct iovec){ .iov_base = c->in_bytes, .iov_len = DIRECT_NEXT };
    return recvmsg(c->fd, &m, flags);
}

static void receive_failed(struct context *c, ssize_t r, int error) {
    iscsibe_native_lose(c, ECONNRESET, "connection lost",
                        r == 0 ? "the other side closed the connection" : strerror(error));
}

/* One system call. 1: something came, or the end did; 0: nothing is there; -1: a signal came. */
static int receive(struct context *c, int flags) {
    size_t direct = 0;
    ssize_t r;

    if (c->large) r = receive_large(c, flags, &direct);
    else r = recv(c->fd, c->in_bytes + c->in_have, NATIVE_IN_SIZE, flags);
    int64_t t = clock_now(c->clock);
    c->counts.recvs++;
    if (__builtin_expect(r <= 0, 0)) {
        if (r < 0 && errno == EAGAIN) return 0;
        if (r < 0 && errno == EINTR) return -1;
        receive_failed(c, r, errno);
        return 1;
    }
    if (__builtin_expect(c->tend != NULL, 0)) tcp_settings_tend(c->tend, c->fd);
    observe(c, clock_is_virtual(c->clock) ? sock_now() : t);
    if (direct) {
        size_t n = (size_t)r < direct ? (size_t)r : direct;
        iscsibe_in_direct(c, (uint32_t)n);
        r -= (ssize_t)n;
    }
    arrived(c, (size_t)r, t);
    return 1;
}

/* ---- waiting ---- */

/* False: a signal came. */
static bool doze(struct context *c, int64_t left) {
    bool sending = iscsibe_out_pending(c);

    if (left >= RECV_MIN_NS && !sending && !c->retrying && !c->aside) {
        int r = receive(c, 0);
        if (r == 0) look(c);
        return r >= 0;
    }
    int64_t most = c->retrying || c->aside & ASIDE_HOLD ? SOON_NS : TICK_NS;
    int got = sock_wait(c->fd, (short)(POLLIN | (sending ? POLLOUT : 0)), left < most ? left : most);
    c->counts.polls++;
    if (got < 0) return false;
    if (got == 0) look(c);
    if (got & ~POLLOUT) receive(c, MSG_DONTWAIT);
    return true;
}

static bool spin(struct context *c, int64_t until) {
    int64_t now;
    do {
        if (receive(c, MSG_DONTWAIT) > 0) return true;
        now = look(c);
        work(c);
    } while (now < until && !c->lost);
    return c->lost;
}

/* Something that would come without waiting? Where it seldom does, it is seldom tried. */
static bool fetch(struct context *c) {
    if (c->skip) {
        c->skip--;
        return false;
    }
    if (receive(c, MSG_DONTWAIT) > 0) {
        c->misses = 0;
        return true;
    }
    if (c->misses < MISSES_MAX) c->misses++;
    c->skip = 1u << c->misses;
    return false;
}

/* Until something has come, at most until *end (0: the time is not known yet, timeout_ns is). False: it is over. */
static bool await(struct context *c, int64_t timeout_ns, int64_t *end) {
    if (timeout_ns <= 0) {
        receive(c, MSG_DONTWAIT);
        return false;
    }
    if (c->wait == NATIVE_BLOCK && fetch(c)) return true;
    if (c->lost) return false;
    int64_t now = look(c);
    if (*end == 0) *end = timeout_ns < INT64_MAX - now ? now + timeout_ns : INT64_MAX;
    if (now >= *end) return false;
    if (c->wait != NATIVE_BLOCK) {
        int64_t until = c->wait == NATIVE_SPIN || *end - now < SPIN_NS ? *end : now + SPIN_NS;
        if (spin(c, until)) return true;
        if (until == *end) return false;
        now = c->wall;
    }
    return doze(c, *end - now);
}

/* ---- the contract ---- */

/* A request that is not sent: because it would change nothing, or may not be, the last line of defence. */
static void refuse(struct context *c, struct request *r) {
    struct native_slot *s = &c->slots[r->slot];
    s->request = r;
    c->lent++;
    s->batch = c->batch - 1; /* nothing of it is in `out` */
    if (r->op == IO_FLUSH && c->stable) {
        c->counts.flushes++;
        iscsibe_done(c, s, clock_now(c->clock), 0, 0, false);
    } else if (r->op == IO_FLUSH) {
        c->counts.no_sync++;
        iscsibe_done_failed(c, s, clock_now(c->clock), EOPNOTSUPP, FLUSH_IMPOSSIBLE, FLUSH_IMPOSSIBLE_TEXT);
    } else if (r->op == IO_WRITE && !c->may_write)
        iscsibe_done_failed(c, s, clock_now(c->clock), EBADF, "write on a reading context", "");
    else
        iscsibe_done_failed(c, s, clock_now(c->clock), EINVAL, "not a multiple of the block",
                            "offset and length must be");
}

static void window_closed(struct context *c) {
    c->counts.window++;
    if (!c->window_since) c->window_since = clock_now(c->clock);
}

static bool stopped(struct context *c) {
    if (iscsibe_hold_told(c)) iscsibe_hold_follow(c);
    return c->aside & ASIDE_STOP;
}

int iscsibe_native_submit(struct context *c, struct request *const *requests, unsigned n) {
    unsigned taken = 0, k, stay;

    if (c->lost) return -c->lost_error;
    if (__builtin_expect(c->aside != 0 || iscsibe_hold_told(c), 0) && stopped(c)) return 0;
    if (__builtin_expect(iscsibe_out_due(c), 0)) {
        flush(c);
        if (c->lost) return -c->lost_error;
        if (iscsibe_out_pending(c)) return 0;
    }
    do {
        k = stay = iscsibe_out_commands(c, requests + taken, n - taken);
        if (k == 0) break;
        ssize_t sent = send_out(c);
        bool all = sent >= 0 && (size_t)sent == c->out.total;
        stay = iscsibe_out_sent(c, sent > 0 ? (size_t)sent : 0, requests + taken, k);
        taken += stay;
        if (c->lent > c->counts.out_max) c->counts.out_max = c->lent;
        if (__builtin_expect(sent < 0, 0)) {
            send_failed(c, (int)-sent);
            return taken ? (int)taken : -c->lost_error;
        }
        if (!all) {
            c->counts.full++;
            return (int)taken;
        }
    } while (taken < n && c->job_n == 0);
    if (__builtin_expect(taken < n, 0)) {
        if (!iscsibe_window_open(c)) window_closed(c);
        else if (taken == 0 && c->job_n == 0 && iscsibe_out_refused(c, requests[0])) {
            refuse(c, requests[0]);
            taken = 1;
        }
    }
    return (int)taken;
}

static void hand_over(struct context *c) {
    while (c->done_n && c->reply_n < c->reply_max) {
        c->reply[c->reply_n++] = c->done[c->done_first];
        c->done_first = (c->done_first + 1) % c->depth;
        c->done_n--;
    }
}

int iscsibe_native_reap(struct context *c, struct completion *out, unsigned max, unsigned min, int64_t timeout_ns) {
    int64_t end = 0;
    bool more = true;

    c->reply = out;
    c->reply_n = 0;
    c->reply_max = max;
    if (c->done_n) hand_over(c);
    if (!c->lost) work(c);
    if (min == 0) timeout_ns = 0;
    while (more && !c->lost && c->reply_n < max && (c->reply_n == 0 || c->reply_n < min)) {
        more = await(c, timeout_ns, &end);
        if (!c->lost) work(c);
    }
    unsigned n = c->reply_n;
    c->reply_n = c->reply_max = 0;
    return n == 0 && c->lost ? -c->lost_error : (int)n;
}

void iscsibe_native_detach(struct context *c) {
    int64_t end = sock_end(sock_now() + DRAIN_NS), unset = 0, now;

    while (!c->lost && c->lent && (now = sock_now()) < end) {
        work(c);
        unset = 0;
        if (!c->lost && c->lent) await(c, end - now, &unset);
    }
    c->logout = !c->lost && c->lent == 0; /* who does not answer would not answer a logout either */
    end = sock_now() + LOGOUT_NS;
    while (!c->lost && (c->logout || c->logout_sent) && !c->logged_out && (now = sock_now()) < end) {
        if (c->logout || c->out.n) flush(c);
        unset = 0;
        if (!c->lost) await(c, end - now, &unset);
    }
    iscsibe_native_free(c);
}

void iscsibe_native_look(struct context *c) {
    look(c);
}

/* With the time that it is shut now. */
static uint64_t window_closed_ns(const struct context *c) {
    int64_t now = c->window_since ? clock_now(c->clock) : 0;
    return c->counts.window_ns + (now > c->window_since ? (uint64_t)(now - c->window_since) : 0);
}

void iscsibe_native_watch(struct context *c, struct tcpinfo_watch *w) {
    if (w->n < TCPINFO_FDS) w->fd[w->n++] = c->fd;
    w->outstanding += c->lent;
    w->window_closed_ns += (int64_t)window_closed_ns(c);
    w->r2t_waits += (int64_t)c->counts.r2t_waits;
}

/* Of what the engine asked for, what has ended well, by one command each. Cache syncs behind a write, commands that had
 * to be sent again and those that failed are counted elsewhere. */
static uint64_t wire_ios(const struct context *c) {
    uint64_t out = 0;
    for (unsigned i = 0; i < c->depth; i++)
        out += c->slots[i].out && c->slots[i].request->op != IO_FLUSH && !c->slots[i].syncing;
    return c->counts.commands - c->counts.caches_synced - c->counts.fruitless - out + c->counts.flushes;
}

void iscsibe_native_counters(struct context *c, struct kv *out) {
    const struct native_counts *n = &c->counts;
    kv_uint(out, "wire_ios", wire_ios(c));
    kv_uint(out, "fua_writes", n->fua);
    kv_uint(out, "cache_syncs", n->caches_synced);
    kv_uint(out, "flushes_not_possible", n->no_sync);
    iscsibe_again_counters(&n->again, out);
    iscsibe_hold_counters(c, out);
    kv_uint(out, "unit_attentions", n->attentions);
    kv_uint(out, "unit_resets", n->resets);
    kv_uint(out, "command_window_closed", n->window);
    kv_uint(out, "command_window_closed_ns", window_closed_ns(c));
    kv_gauge(out, "command_window", c->window_at_login);
    kv_gauge(out, "outstanding_max", n->out_max);
    if (c->grown) kv_gauge(out, "lun_grown_bytes", c->grown);
    kv_uint(out, "send_buffer_full", n->full);
    kv_uint(out, "sends", n->sends);
    kv_uint(out, "recvs", n->recvs);
    kv_uint(out, "polls", n->polls);
    kv_uint(out, "r2ts", n->r2ts);
    kv_uint(out, "data_out_pdus", n->data_outs);
    kv_gauge(out, "first_burst", c->unsolicited_max > c->immediate_max ? c->unsolicited_max : c->immediate_max);
    kv_gauge(out, "max_burst", c->burst_max);
    kv_gauge(out, "max_outstanding_r2t", c->r2t_max);
    kv_uint(out, "nop_ins", n->nops);
    kv_uint(out, "async_messages", n->asyncs);
    kv_uint(out, "rejects", n->rejects);
    kv_uint(out, "status_number_gaps", n->gaps);
    tcpinfo_counters(c->fd, out);
}
