/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Data path over libiscsi: one session of its own for each context; the SCSI commands are ours and live in the slots.
 *
 * Stamps. libiscsi reads every reply with system calls of its own inside iscsi_service(), so a single call brings many
 * replies one after the other. Each callback, which runs right behind the recv() of its reply, takes a stamp.
 *
 * Sending. Every command is followed by an iscsi_service() of its own, and the queue is looked at: libiscsi holds
 * commands back without a word while the target's command window (MaxCmdSN) is closed, and nothing tells how wide it
 * is. So at most one command waits inside the library; while it does, no more are taken.
 *
 * Durable writes: nothing more where the cache is write-through; else WRITE(16) with FUA where the unit has DPOFUA, else
 * SYNCHRONIZE CACHE over the same blocks behind it; the I/O is complete when that is.
 *
 * Doubts about the unit (iscsi_recheck.h): what is out comes back, nothing else is queued but the questions. What waits
 * inside the library cannot be taken back without breaking the numbering of commands, so where that may be a WRITE, the
 * session is given up. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/iscsi/iscsi_libiscsi.h"
#include "backends/net/sock.h"
#include "backends/net/tcpinfo.h"
#include "base/text.h"

#define TICK_NS (100 * NS_PER_MS)   /* timeouts are looked at so often */
#define DRAIN_NS (500 * NS_PER_MS)   /* detach waits so long for what is still out */
#define SUBMIT_NS NS_PER_MS         /* one submit takes no more after so long: replies wait to be stamped */
#define SOON_NS NS_PER_MS           /* the longest wait where something is to be sent later */

const char *iscsibe_library(void) {
#ifdef SAMEDISK_LIBISCSI_VERSION
    return "libiscsi " SAMEDISK_LIBISCSI_VERSION;
#else
    return "libiscsi";
#endif
}

/* ---- sending ---- */

/* Of everything (no blocks means all), or of what a WRITE wrote. */
static void build_sync(struct context *c, struct slot *s, uint64_t lba, uint32_t blocks) {
    struct scsi_task *t = &s->task;

    s->sync_op = c->sync_op;
    if (c->sync_op != SCSI_OPCODE_SYNCHRONIZECACHE10) {
        iscsibe_cdb16(t->cdb, c->sync_op, lba, blocks, false);
        return;
    }
    if (lba > UINT32_MAX || blocks > UINT16_MAX) lba = blocks = 0;
    t->cdb[0] = SCSI_OPCODE_SYNCHRONIZECACHE10;
    t->cdb_size = 10;
    for (int i = 5; i >= 2; i--, lba >>= 8) t->cdb[i] = (uint8_t)lba;
    t->cdb[7] = (uint8_t)(blocks >> 8);
    t->cdb[8] = (uint8_t)blocks;
}

static void build(struct context *c, struct slot *s) {
    const struct request *r = s->request;
    struct scsi_task *t = &s->task;

    memset(t, 0, sizeof *t);
    t->cdb_size = 16;
    t->xfer_dir = SCSI_XFER_NONE;
    if (r->op == IO_FLUSH) {
        build_sync(c, s, 0, 0);
        return;
    }
    uint64_t lba = r->offset / c->block;
    uint32_t blocks = r->len / c->block;
    if (s->syncing) {
        build_sync(c, s, lba, blocks);
        return;
    }
    t->expxferlen = (int)r->len;
    s->iov = (struct scsi_iovec){ .iov_base = r->buf, .iov_len = r->len };
    if (r->op == IO_READ) {
        iscsibe_cdb16(t->cdb, SCSI_OPCODE_READ16, lba, blocks, false);
        t->xfer_dir = SCSI_XFER_READ;
        scsi_task_set_iov_in(t, &s->iov, 1);
    } else {
        iscsibe_cdb16(t->cdb, SCSI_OPCODE_WRITE16, lba, blocks, r->sync >= SYNC_DSYNC && c->fua);
        t->xfer_dir = SCSI_XFER_WRITE;
        scsi_task_set_iov_out(t, &s->iov, 1);
    }
}

/* Queues the slot's command; false: the library could not. */
static bool queue(struct context *c, struct slot *s, int64_t now) {
    build(c, s);
    s->t_sent = now;
    if (iscsi_scsi_command_async(c->iscsi, (int)c->lun, &s->task, iscsibe_lib_done, NULL, s) != 0) return false;
    c->counts.commands++;
    if (s->syncing || s->request->op == IO_FLUSH) c->counts.caches_synced++;
    else if (s->task.cdb[1] & 0x08) c->counts.fua++;
    return true;
}

/* The second half of a durable write goes out with the iscsi_service() that is running, or the next. */
void iscsibe_lib_sync(struct context *c, struct slot *s) {
    c->unsent = true;
    if (!queue(c, s, sock_now()))
        iscsibe_lib_fail(c, s, clock_now(c->clock), ENOMEM, "no memory", "libiscsi could not queue SYNCHRONIZE CACHE");
}

/* ---- the session's end ---- */

/* Every request that is still out comes back with an error, once, and the library's context goes, so that neither it
 * nor a late reply can touch a buffer any more. Never called inside a callback. */
static void lose(struct context *c, int error, const char *kind, const char *text) {
    char words[120];

    if (c->lost) return;
    if (libguard_stop(c->guard)) {
        error = ETIMEDOUT;
        kind = "timeout";
        snprintf(words, sizeof words, "the target sent for longer than %lld ms (timeout=), but not what was asked for",
                 (long long)(c->timeout / NS_PER_MS));
        text = words;
    }
    c->guard = NULL;
    c->lost = true;
    c->lost_error = error;
    kinds_lost(c->kinds, kind, text);
    c->closing = true; /* the cancelled commands call back */
    c->s->dead = true; /* no logout */
    iscsibe_session_close(c->s);
    c->s = NULL;
    c->iscsi = NULL;
    c->fd = -1;
    int64_t t = clock_now(c->clock);
    for (unsigned i = 0; i < c->depth && c->lent; i++)
        if (c->slots[i].request) iscsibe_lib_fail(c, &c->slots[i], t, error, kind, text);
}

/* Does something wait inside the library: for the socket, or for the command window? */
static bool pending(const struct context *c) {
    return (iscsi_which_events(c->iscsi) & POLLOUT) || iscsi_out_queue_length(c->iscsi) > 0;
}

static void give_up(struct context *c) {
    const char *kind = c->give_up;
    if (strcmp(kind, c->check.kind ? c->check.kind : "") == 0) {
        lose(c, ESTALE, kind, c->check.text);
        return;
    }
    lose(c, ESTALE, kind,
         "the LUN may be another one now, and libiscsi holds back a command that cannot be taken back (engine=native can)");
}

static void service_once(struct context *c, int events) {
    char why[240];
    unsigned calls = atomic_load_explicit(&c->calls, memory_order_relaxed);
    atomic_store_explicit(&c->calls, calls + 1, memory_order_relaxed);
    int rc = iscsi_service(c->iscsi, events);
    atomic_store_explicit(&c->calls, calls + 2, memory_order_relaxed);
    if (c->give_up) give_up(c);
    else if (rc != 0 || c->broken) lose(c, ECONNRESET, "connection lost", iscsibe_session_why(c->s, why, sizeof why));
    else if (c->unsent && !pending(c)) c->unsent = false;
}

/* What has come is looked at before anything is sent: it may forbid that. */
static void service(struct context *c, int events) {
    if (events == (POLLIN | POLLOUT) && c->unsent) {
        service_once(c, POLLIN);
        events = POLLOUT;
    }
    if (!c->lost) service_once(c, events);
}

static void resend(struct context *c) {
    int64_t now = sock_now();
    for (unsigned i = 0; i < c->depth && c->retrying && !c->hold; i++) {
        struct slot *s = &c->slots[i];
        if (!s->t_retry || s->t_retry > now) continue;
        s->t_retry = 0;
        c->retrying--;
        if (!queue(c, s, now))
            iscsibe_lib_fail(c, s, clock_now(c->clock), ENOMEM, "no memory", "libiscsi could not queue a command again");
    }
    if (!pending(c)) return;
    c->unsent = true;
    service(c, POLLOUT);
}

/* A command older than the timeout means that the target is gone: the library cannot forget a command that is partly
 * sent, and an answer after all would find the slot used anew. What the target puts off has its own end. */
static void check_age(struct context *c, int64_t now) {
    char text[120];
    if (now - c->t_scan < TICK_NS) return;
    if (c->may_write && now - c->t_scan >= RECHECK_EVERY_NS && iscsibe_recheck_can_ask(&c->check) && !c->hold)
        iscsibe_lib_doubt(c, "this client stood still");
    c->t_scan = now;
    if (c->may_write && now - c->asked >= RECHECK_EVERY_NS && !c->check.asking && iscsibe_recheck_can_ask(&c->check))
        iscsibe_recheck_ask(&c->check, now, c->timeout, NULL);
    for (unsigned i = 0; i < c->depth && !c->lost && c->lent; i++) {
        struct slot *s = &c->slots[i];
        if (!s->request || s->t_retry) continue;
        if (now - s->t_sent > c->timeout) {
            snprintf(text, sizeof text, "no reply within %lld ms (timeout=)", (long long)(c->timeout / NS_PER_MS));
            lose(c, ETIMEDOUT, "timeout", text);
        }
    }
}

/* ---- submit ---- */

static void count_held(struct context *c) {
    if (iscsi_which_events(c->iscsi) & POLLOUT) c->counts.full++;
    else c->counts.window++;
}

/* It would change nothing, or is not possible. */
static void not_flushed(struct context *c, struct slot *s) {
    int64_t t = clock_now(c->clock);
    if (c->stable) {
        c->counts.done++;
        iscsibe_lib_push(c, s, t, 0, 0, false);
        return;
    }
    c->counts.no_sync++;
    iscsibe_lib_fail(c, s, t, EOPNOTSUPP, FLUSH_IMPOSSIBLE, FLUSH_IMPOSSIBLE_TEXT);
}

static int libiscsi_submit(struct context *c, struct request *const *requests, unsigned n) {
    unsigned taken = 0;

    if (!c->lost && pending(c)) service(c, POLLOUT);
    if (c->lost) return -c->lost_error;
    iscsibe_lib_follow(c);
    if (c->hold) return 0;
    int64_t now = sock_now();
    while (taken < n && !c->lost && !pending(c)) {
        struct request *r = requests[taken];
        struct slot *s = &c->slots[r->slot];
        s->request = r;
        s->t_taken = now;
        s->syncing = false;
        s->answers = 0;
        c->lent++;
        if (r->op == IO_WRITE && !c->may_write) {
            /* the last line of defence: nothing that was attached for reading ever sends a WRITE */
            iscsibe_lib_fail(c, s, clock_now(c->clock), EBADF, "write on a reading context", "");
            taken++;
            continue;
        }
        if (r->op == IO_FLUSH && (c->stable || !c->sync_op)) {
            not_flushed(c, s);
            taken++;
            continue;
        }
        if (!queue(c, s, now)) {
            s->request = NULL;
            c->lent--;
            return taken ? (int)taken : -ENOMEM;
        }
        taken++;
        c->unsent = true;
        service(c, POLLOUT);
        if (!c->lost && pending(c)) count_held(c);
        if (taken < n && taken % 8 == 0 && sock_now() - now > SUBMIT_NS) break;
    }
    return (int)taken;
}

/* ---- reap ---- */

/* One round: waits at most wait_ns for the socket, moves what can be moved. False: a signal came. */
static bool round_trip(struct context *c, int64_t wait_ns) {
    int got = POLLIN;
    iscsibe_lib_follow(c);
    if (c->check.asking) iscsibe_lib_ask(c, sock_now());
    if (c->give_up) give_up(c);
    if (!c->lost && c->retrying) resend(c);
    if (c->lost) return true;
    if (wait_ns > 0) {
        int64_t most = c->retrying || c->hold ? SOON_NS : TICK_NS;
        short events = (short)(POLLIN | (iscsi_which_events(c->iscsi) & POLLOUT));
        got = sock_wait(c->fd, events, wait_ns < most ? wait_ns : most);
        if (got < 0) return false;
    }
    /* An error or hang-up goes in as "readable": what arrived before it is read first, then the library sees it itself.
     */
    int pass = got & (POLLIN | POLLERR | POLLHUP | POLLNVAL) ? POLLIN : 0;
    service(c, pass ? pass | POLLOUT : got & POLLOUT);
    return true;
}

static int libiscsi_reap(struct context *c, struct completion *out, unsigned max, unsigned min, int64_t timeout_ns) {
    int64_t now = sock_now(), end = now + (timeout_ns > 0 ? timeout_ns : 0);

    while (!c->lost && c->done_n < max) {
        bool enough = c->done_n >= min;
        if (enough && c->done_n && !c->retrying && !pending(c)) break;
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

static void context_free(struct context *c) {
    free(c->slots);
    free(c->done);
    free(c);
}

static int libiscsi_attach(struct handle *h, const struct attach_how *how, struct context **out, struct err *err) {
    struct context *c = calloc(1, sizeof *c);
    unsigned status;

    if (!c) return err_set(err, STATUS_TARGET, "no memory");
    c->depth = how->depth ? how->depth : 1;
    c->slots = calloc(c->depth, sizeof *c->slots);
    c->done = calloc(c->depth, sizeof *c->done);
    if (!c->slots || !c->done) {
        context_free(c);
        return err_set(err, STATUS_TARGET, "no memory for %u requests", how->depth);
    }
    c->head.engine = &iscsibe_engine_libiscsi;
    for (unsigned i = 0; i < c->depth; i++) c->slots[i].context = c;
    c->clock = how->clock;
    c->kinds = how->kinds;
    c->may_write = how->write;
    c->timeout = h->login.timeout;
    c->lun = (unsigned)(h->login.wire >> 48); /* opening made sure that it takes no more */
    c->block = h->block;
    c->stable = h->volatile_cache == ANSWER_NO; /* durable when it is answered: nothing more is asked for */
    c->sync_op = h->sync_op;
    c->fua = h->dpofua && !c->stable;
    c->sync_behind = !h->dpofua && !c->stable && c->sync_op;
    c->check.unit = &h->unit;
    c->check.writes = how->write;
    if (how->write) iscsibe_recheck_seal(&c->check, &how->seal);
    c->check.doubts = atomic_load(&h->unit.doubts);
    if (iscsibe_session_open(&h->login, &c->s, &status, err) != 0 || iscsibe_same_lun(c->s, h, how->write ? &how->seal : NULL, err) != 0) {
        err_prefix(err, "%s", h->where);
        iscsibe_session_close(c->s);
        context_free(c);
        return -1;
    }
    c->iscsi = c->s->iscsi;
    c->fd = iscsi_get_fd(c->iscsi);
    c->guard = libguard_start(c->fd, c->timeout, &c->calls);
    if (!c->guard) {
        err_set(err, STATUS_TARGET, "%s: no memory, or no thread, to watch over libiscsi", h->where);
        iscsibe_session_close(c->s);
        context_free(c);
        return -1;
    }
    c->counts.attentions = c->s->unit_attentions;
    c->t_scan = c->asked = sock_now();
    *out = c;
    return 0;
}

static void libiscsi_detach(struct context *c) {
    int64_t end = sock_end(sock_now() + DRAIN_NS), now;
    while (!c->lost && c->lent && (now = sock_now()) < end) round_trip(c, end - now);
    if (libguard_stop(c->guard) && c->s) c->s->dead = true;
    if (c->s && c->lent) c->s->dead = true; /* the target does not answer: it would not answer a logout either */
    c->closing = true;
    iscsibe_session_close(c->s);
    context_free(c);
}

static void libiscsi_counters(struct context *c, struct kv *out) {
    const struct counts *n = &c->counts;
    kv_uint(out, "wire_ios", n->done);
    kv_uint(out, "fua_writes", n->fua);
    kv_uint(out, "cache_syncs", n->caches_synced);
    kv_uint(out, "flushes_not_possible", n->no_sync);
    iscsibe_again_counters(&n->again, out);
    kv_uint(out, "identity_checks", n->checks);
    kv_uint(out, "identity_holds", n->holds);
    kv_uint(out, "identity_hold_ns", n->hold_ns);
    kv_uint(out, "unit_attentions", n->attentions);
    kv_uint(out, "unit_resets", n->resets);
    kv_uint(out, "command_window_closed", n->window);
    kv_uint(out, "send_buffer_full", n->full);
    tcpinfo_counters(c->fd, out);
}

static void libiscsi_watch(struct context *c, struct tcpinfo_watch *w) {
    w->fd[w->n++] = c->lost ? -1 : c->fd;
    w->outstanding = c->lent;
    w->window_closed_ns = w->r2t_waits = -1;
}

const struct iscsibe_engine iscsibe_engine_libiscsi = {
    .name = "libiscsi",
    .attach = libiscsi_attach,
    .detach = libiscsi_detach,
    .submit = libiscsi_submit,
    .reap = libiscsi_reap,
    .counters = libiscsi_counters,
    .watch = libiscsi_watch,
};
