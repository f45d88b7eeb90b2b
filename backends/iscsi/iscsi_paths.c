/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/iscsi/iscsi_paths.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "backends/net/silence.h"
#include "backends/net/sock.h"

#define TICK_NS  (100 * NS_PER_MS) /* all paths are looked at so often */
#define BUSY_NS  NS_PER_MS         /* the longest wait while a command is to be sent again */
#define SPIN_NS  (50 * NS_PER_US)  /* wait=adaptive */
#define DRAIN_NS (500 * NS_PER_MS)
#define LAST_NS  (900 * NS_PER_MS) /* a logout that took longer was not answered */
#define DRAINED  64u

struct path {
    struct context *c;
    const char *portal;
    uint64_t ios, bytes;
    struct silence silence;
};

struct paths {
    struct iscsibe_context head;
    unsigned n, every;
    unsigned turn, run;         /* the path whose turn it is, and how many I/Os of its turn have been taken */
    int wait;
    bool lost;
    int lost_error;
    int64_t swept;              /* sock_now() when all paths were last looked at */
    struct path *path;
    struct pollfd *poll;
};

static struct paths *paths_of(struct context *c) {
    return (struct paths *)(void *)c;
}

/* ---- loss ---- */

static void lose_all(struct paths *p, const struct path *first) {
    if (p->lost) return;
    p->lost = true;
    p->lost_error = first->c->lost_error;
    for (unsigned i = 0; i < p->n; i++) {
        struct context *c = p->path[i].c;
        if (c->lent || &p->path[i] == first) silence_ends(&p->path[i].silence, clock_now(c->clock));
        p->path[i].c->portal = NULL; /* the words are about the first, and name it */
        iscsibe_native_lose(p->path[i].c, p->lost_error, "other path lost", first->c->lost_text);
    }
}

/* ---- sending ---- */

int iscsibe_paths_submit(struct context *context, struct request *const *requests, unsigned n) {
    struct paths *p = paths_of(context);
    unsigned taken = 0;

    if (p->lost) return -p->lost_error;
    while (taken < n) {
        struct path *path = &p->path[p->turn];
        unsigned share = p->every - p->run;
        if (share > n - taken) share = n - taken;
        if (path->c->lent == 0) silence_begins(&path->silence, clock_now(path->c->clock));
        int got = iscsibe_native_submit(path->c, requests + taken, share);
        if (path->c->lost) lose_all(p, path);
        if (got < 0) return taken ? (int)taken : got;
        taken += (unsigned)got;
        p->run += (unsigned)got;
        if (p->run == p->every) {
            p->run = 0;
            if (++p->turn == p->n) p->turn = 0;
        }
        if ((unsigned)got < share || p->lost) break;
    }
    return (int)taken;
}

/* ---- receiving ---- */

static void count(struct path *path, const struct completion *done, unsigned n) {
    if (!path->c->lost) silence_ends(&path->silence, done[n - 1].t_done);
    for (unsigned i = 0; i < n; i++) {
        if (done[i].result < 0 || done[i].request->op == IO_FLUSH) continue;
        path->ios++;
        path->bytes += (uint64_t)done[i].result;
    }
}

/* What could not be handed over when it came, the oldest first: stamps never go backwards. */
static unsigned leftovers(struct paths *p, struct completion *out, unsigned max) {
    unsigned n = 0;
    while (n < max) {
        struct path *oldest = NULL;
        for (unsigned i = 0; i < p->n; i++) {
            const struct context *c = p->path[i].c;
            if (c->done_n && (!oldest || c->done[c->done_first].t_done < oldest->c->done[oldest->c->done_first].t_done))
                oldest = &p->path[i];
        }
        if (!oldest) break;
        struct context *c = oldest->c;
        out[n] = c->done[c->done_first];
        c->done_first = (c->done_first + 1) % c->depth;
        c->done_n--;
        count(oldest, &out[n++], 1);
    }
    return n;
}

/* One path's reap; `max` is not 0. */
static unsigned take(struct paths *p, struct path *path, struct completion *out, unsigned max, unsigned min,
                     int64_t timeout_ns) {
    int got = iscsibe_native_reap(path->c, out, max, min, timeout_ns);
    if (got > 0) count(path, out, (unsigned)got);
    if (__builtin_expect(path->c->lost, 0)) lose_all(p, path);
    return got > 0 ? (unsigned)got : 0;
}

/* All paths, without waiting; each learns that time has passed. */
static unsigned sweep(struct paths *p, struct completion *out, unsigned max, int64_t now) {
    unsigned n = 0;
    p->swept = now;
    for (unsigned i = 0; i < p->n && n < max && !p->lost; i++) {
        iscsibe_native_look(p->path[i].c);
        n += take(p, &p->path[i], out + n, max - n, 0, 0);
    }
    return n;
}

static bool has_to_do(const struct context *c) {
    return c->lent || c->retrying || c->aside || iscsibe_out_due(c);
}

/* The one path that has anything to do; NULL: none or several have. */
static struct path *only(struct paths *p) {
    struct path *one = NULL;
    for (unsigned i = 0; i < p->n; i++) {
        if (!has_to_do(p->path[i].c)) continue;
        if (one) return NULL;
        one = &p->path[i];
    }
    return one;
}

/* One wait for all; then what has come. */
static unsigned wait_for_all(struct paths *p, struct completion *out, unsigned max, int64_t left, int64_t now,
                             bool *over) {
    int64_t most = TICK_NS;
    unsigned n = 0;

    for (unsigned i = 0; i < p->n; i++) {
        const struct context *c = p->path[i].c;
        p->poll[i] = (struct pollfd){ .fd = c->fd, .events = (short)(POLLIN | (iscsibe_out_pending(c) ? POLLOUT : 0)) };
        if (c->retrying || c->aside & ASIDE_HOLD) most = BUSY_NS;
    }
    if (left > most) left = most;
    const struct timespec ts = { .tv_nsec = (long)left };
    int ready = ppoll(p->poll, p->n, &ts, NULL);
    p->path[0].c->counts.polls++;
    if (ready < 0) *over = true; /* a signal */
    if (ready == 0 && left > 0) return sweep(p, out, max, now + left);
    for (unsigned i = 0; ready > 0 && i < p->n && n < max && !p->lost; i++)
        if (p->poll[i].revents) n += take(p, &p->path[i], out + n, max - n, 0, 0);
    return n;
}

/* Whatever can be moved, after a wait of at most `left`. *over: a signal ended the wait. */
static unsigned look(struct paths *p, struct completion *out, unsigned max, unsigned min, int64_t left, int64_t now,
                     bool spinning, bool *over) {
    struct path *one;

    if (spinning || now - p->swept >= TICK_NS) return sweep(p, out, max, now);
    if ((one = only(p)) == NULL) return wait_for_all(p, out, max, left, now, over);
    if (left > TICK_NS) left = TICK_NS;
    unsigned n = take(p, one, out, max, min, left);
    if (n < min && !p->lost && left > 0 && sock_now() < now + left) *over = true;
    return n;
}

int iscsibe_paths_reap(struct context *context, struct completion *out, unsigned max, unsigned min,
                       int64_t timeout_ns) {
    struct paths *p = paths_of(context);
    unsigned n = leftovers(p, out, max);

    if (min == 0 || timeout_ns < 0) timeout_ns = 0;
    int64_t now = sock_now(), end = timeout_ns < INT64_MAX - now ? now + timeout_ns : INT64_MAX;
    int64_t spin = p->wait == NATIVE_SPIN ? end : p->wait == NATIVE_ADAPTIVE ? now + SPIN_NS : now;
    bool over = false;
    while (!p->lost && !over && n < max && (n == 0 || n < min)) {
        unsigned wanted = min > n ? min - n : 0;
        n += look(p, out + n, max - n, wanted, end - now, now, now < spin && only(p) == NULL, &over);
        now = sock_now();
        if (now >= end) over = true;
    }
    if (p->lost && n < max) n += leftovers(p, out + n, max - n);
    return n == 0 && p->lost ? -p->lost_error : (int)n;
}

/* ---- beginning and end ---- */

int iscsibe_paths_start(struct context *const *session, unsigned n, unsigned every, struct context **out,
                        struct err *err) {
    struct paths *p = calloc(1, sizeof *p);

    *out = NULL;
    if (p) {
        p->path = calloc(n, sizeof *p->path);
        p->poll = calloc(n, sizeof *p->poll);
    }
    if (!p || !p->path || !p->poll) {
        for (unsigned i = 0; i < n; i++) iscsibe_native_detach(session[i]);
        if (p) {
            free(p->path);
            free(p->poll);
        }
        free(p);
        return err_set(err, STATUS_TARGET, "no memory for %u sessions", n);
    }
    for (unsigned i = 0; i < n; i++) p->path[i] = (struct path){ .c = session[i], .portal = session[i]->portal };
    p->head.engine = &iscsibe_engine_paths;
    p->n = n;
    p->every = every;
    p->wait = session[0]->wait;
    p->swept = sock_now();
    *out = (struct context *)(void *)p;
    return 0;
}

static bool lends(const struct paths *p) {
    for (unsigned i = 0; i < p->n; i++)
        if (p->path[i].c->lent || p->path[i].c->done_n) return true;
    return false;
}

/* First all together are drained; then each has a logout of its own, until one of them is not answered. */
void iscsibe_paths_detach(struct context *context) {
    struct paths *p = paths_of(context);
    struct completion drained[DRAINED];
    int64_t end = sock_end(sock_now() + DRAIN_NS), now;
    bool deaf = false;

    p->wait = NATIVE_BLOCK;
    while (lends(p) && (now = sock_now()) < end)
        if (iscsibe_paths_reap(context, drained, DRAINED, 1, end - now) < 0) break;
    for (unsigned i = 0; i < p->n; i++) {
        struct context *c = p->path[i].c;
        if (deaf || c->lent) iscsibe_native_lose(c, ECANCELED, "cancelled", "not answered before the end");
        now = sock_now();
        iscsibe_native_detach(c);
        deaf = deaf || sock_now() - now >= LAST_NS;
    }
    free(p->path);
    free(p->poll);
    free(p);
}

/* ---- figures ---- */

struct context *iscsibe_paths_session(struct context *context, unsigned i) {
    return paths_of(context)->path[i].c;
}

static void path_counters(struct path *path, const struct kv *counted, unsigned number, struct kv *out) {
    static const char *const amounts[] = { "command_window_closed", "command_window_closed_ns", "send_buffer_full",
                                           "tcp_retransmits" };
    static const char *const levels[] = { "command_window", "outstanding_max", "tcp_min_rtt_ns" };
    char key[sizeof(((struct kv_item *)0)->key)];

    snprintf(key, sizeof key, "path%u_portal", number);
    kv_text(out, key, "%s", path->portal);
    snprintf(key, sizeof key, "path%u_ios", number);
    kv_uint(out, key, path->ios);
    snprintf(key, sizeof key, "path%u_bytes", number);
    kv_uint(out, key, path->bytes);
    if (!path->c->lost && path->c->lent) silence_ends(&path->silence, clock_now(path->c->clock));
    snprintf(key, sizeof key, "path%u_silent_max_ns", number);
    kv_gauge(out, key, (uint64_t)path->silence.longest);
    for (size_t i = 0; i < sizeof amounts / sizeof *amounts; i++) {
        if (!kv_find(counted, amounts[i])) continue;
        snprintf(key, sizeof key, "path%u_%s", number, amounts[i]);
        kv_uint(out, key, kv_get_uint(counted, amounts[i], 0));
    }
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        if (!kv_find(counted, levels[i])) continue;
        snprintf(key, sizeof key, "path%u_%s", number, levels[i]);
        kv_gauge(out, key, kv_get_uint(counted, levels[i], 0));
    }
}

void iscsibe_paths_counters(struct context *context, struct kv *out) {
    struct paths *p = paths_of(context);
    struct kv each = { 0 };

    for (unsigned i = 0; i < p->n; i++) {
        struct kv one = { 0 };
        iscsibe_native_counters(p->path[i].c, &one);
        path_counters(&p->path[i], &one, i + 1, &each);
        kv_merge_sum(out, &one);
        kv_free(&one);
    }
    kv_gauge(out, "sessions", p->n);
    kv_gauge(out, "rr", p->every);
    kv_merge_sum(out, &each);
    kv_free(&each);
}

static void paths_watch(struct context *context, struct tcpinfo_watch *w) {
    const struct paths *p = paths_of(context);
    for (unsigned i = 0; i < p->n; i++) iscsibe_native_watch(p->path[i].c, w);
}

const struct iscsibe_engine iscsibe_engine_paths = {
    .name = "native",
    .detach = iscsibe_paths_detach,
    .submit = iscsibe_paths_submit,
    .reap = iscsibe_paths_reap,
    .counters = iscsibe_paths_counters,
    .watch = paths_watch,
};
