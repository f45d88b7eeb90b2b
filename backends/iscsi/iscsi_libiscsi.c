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
 * Durable writes: WRITE(16) with FUA where the unit has DPOFUA, else SYNCHRONIZE CACHE(16) over the same blocks behind
 * it; the I/O is complete when that is. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/iscsi/iscsi_session.h"
#include "backends/net/sock.h"
#include "backends/net/tcpinfo.h"
#include "base/text.h"

#define TICK_NS (100 * NS_PER_MS)   /* timeouts are looked at so often */
#define DRAIN_NS (2 * NS_PER_SEC)   /* detach waits so long for what is still out */
#define SUBMIT_NS NS_PER_MS         /* one submit takes no more after so long: replies wait to be stamped */
#define BUSY_NS NS_PER_MS           /* a command that the target had no room for is sent again after so long */

struct slot {
    struct context *context;
    struct request *request;        /* NULL: free */
    struct scsi_task task;
    struct scsi_iovec iov;
    int64_t t_taken, t_sent;        /* t_sent: of the command that is out */
    int64_t t_retry;                /* when to send again; 0: it is out */
    int64_t moved;                  /* result of the WRITE while its SYNCHRONIZE CACHE is out */
    bool syncing, attention;        /* attention: was repeated after one already */
};

struct counts {
    uint64_t commands, fua, caches_synced, busy, task_set_full, attentions, resets, window, full;
};

struct context {
    struct iscsibe_context head;
    struct iscsibe_session *s;      /* NULL once lost */
    struct iscsi_context *iscsi;
    int fd;
    unsigned lun;                   /* as on the wire */
    uint32_t block;
    struct clock *clock;
    struct kinds *kinds;
    int64_t timeout;
    unsigned depth, lent, retrying;
    struct slot *slots;             /* by request->slot */
    struct completion *done;        /* ring of `depth` */
    unsigned done_first, done_n;
    struct counts counts;
    int64_t t_scan;                 /* when timeouts were last looked at */
    bool dpofua, stable;            /* stable: what is written is not in a volatile cache */
    bool may_write, lost;
    int lost_error;                 /* errno of why */
    bool broken;                    /* callbacks have said that the session is gone */
    bool closing;                   /* callbacks have nothing to say any more */
};

const char *iscsibe_library(void) {
#ifdef SAMEDISK_LIBISCSI_VERSION
    return "libiscsi " SAMEDISK_LIBISCSI_VERSION;
#else
    return "libiscsi";
#endif
}

/* ---- completions ---- */

static void push(struct context *c, struct slot *s, int64_t t, int64_t result, unsigned kind, bool stable) {
    struct completion *d = &c->done[(c->done_first + c->done_n++) % c->depth];
    *d = (struct completion){ .request = s->request, .result = result, .t_done = t, .kind = (uint16_t)kind,
                              .stable = stable };
    s->request = NULL;
    c->lent--;
    if (s->t_retry) c->retrying--;
    s->t_retry = 0;
}

static void fail(struct context *c, struct slot *s, int64_t t, int error, const char *name, const char *text) {
    push(c, s, t, -error, kinds_note(c->kinds, name, text), false);
}

static void retry_at(struct context *c, struct slot *s, int64_t when) {
    s->t_retry = when;
    c->retrying++;
}

static void fail_library(struct context *c, struct slot *s, int64_t t) {
    char text[240];
    const char *words = iscsi_get_error(c->iscsi);
    fail(c, s, t, EIO, "iSCSI error", words ? text_safe(text, sizeof text, words, strlen(words)) : "");
}

/* CHECK CONDITION. A unit attention says that something happened to the unit, not that this command failed. */
static void sensed(struct context *c, struct slot *s, int64_t t) {
    char name[48];
    unsigned key = (unsigned)s->task.sense.key, ascq = (unsigned)s->task.sense.ascq;

    if (key == SCSI_SENSE_UNIT_ATTENTION) {
        c->counts.attentions++;
        if (ascq >> 8 == 0x29) c->counts.resets++;
        if (!s->attention) {
            s->attention = true;
            retry_at(c, s, 1);
            return;
        }
    }
    const char *words = iscsibe_sense_text(key, ascq);
    fail(c, s, t, iscsibe_sense_errno(key, ascq), iscsibe_sense_kind(key, ascq, name, sizeof name),
         *words ? words : scsi_sense_ascq_str((int)ascq));
}

static void send_cache_sync(struct context *c, struct slot *s);

static void good(struct context *c, struct slot *s, int64_t t) {
    const struct request *r = s->request;
    const struct scsi_task *task = &s->task;
    bool durable = r->op == IO_WRITE && r->sync >= SYNC_DSYNC;
    int64_t result = r->op == IO_FLUSH ? 0 : r->len;

    if (s->syncing) {
        push(c, s, t, s->moved, 0, true);
        return;
    }
    if (task->residual_status == SCSI_RESIDUAL_OVERFLOW) {
        fail(c, s, t, EPROTO, "residual overflow", "the target had more data than the command asked for");
        return;
    }
    if (task->residual_status == SCSI_RESIDUAL_UNDERFLOW && r->op != IO_FLUSH)
        result = task->residual < r->len ? (int64_t)(r->len - task->residual) : 0;
    if (durable && !c->dpofua) {
        s->moved = result;
        s->syncing = true;
        send_cache_sync(c, s);
        return;
    }
    push(c, s, t, result, 0, r->op == IO_WRITE && (durable || c->stable));
}

static void command_done(struct iscsi_context *iscsi, int status, void *data, void *private_data) {
    struct slot *s = private_data;
    struct context *c = s->context;
    int64_t t = clock_now(c->clock);
    char text[240];

    (void)iscsi;
    (void)data;
    free(s->task.datain.data); /* sense data, which the library allocates */
    s->task.datain.data = NULL;
    if (!s->request || c->closing) return;
    switch (status) {
    case SCSI_STATUS_GOOD:
    case SCSI_STATUS_CONDITION_MET:
        good(c, s, t);
        break;
    case SCSI_STATUS_CHECK_CONDITION:
        sensed(c, s, t);
        break;
    case SCSI_STATUS_BUSY:
    case SCSI_STATUS_TASK_SET_FULL:
        if (status == SCSI_STATUS_BUSY) c->counts.busy++;
        else c->counts.task_set_full++;
        retry_at(c, s, sock_now() + BUSY_NS);
        break;
    case SCSI_STATUS_RESERVATION_CONFLICT:
        fail(c, s, t, EBUSY, "RESERVATION CONFLICT", "another initiator has reserved the LUN");
        break;
    case SCSI_STATUS_TASK_ABORTED:
        fail(c, s, t, ECANCELED, "TASK ABORTED", "another initiator or the target aborted the command");
        break;
    case SCSI_STATUS_CANCELLED: /* without reconnection, a lost session cancels all that was out */
        c->broken = true;
        fail(c, s, t, ECONNRESET, "connection lost", iscsibe_session_why(c->s, text, sizeof text));
        break;
    case SCSI_STATUS_TIMEOUT:
        c->broken = true;
        fail(c, s, t, ETIMEDOUT, "timeout", "libiscsi: no reply");
        break;
    default: /* also ACA ACTIVE */
        fail_library(c, s, t);
    }
}

/* ---- sending ---- */

static void build(struct context *c, struct slot *s) {
    const struct request *r = s->request;
    struct scsi_task *t = &s->task;

    memset(t, 0, sizeof *t);
    t->cdb_size = 16;
    t->xfer_dir = SCSI_XFER_NONE;
    if (r->op == IO_FLUSH) {
        iscsibe_cdb16(t->cdb, SCSI_OPCODE_SYNCHRONIZECACHE16, 0, 0, false); /* no blocks means all */
        return;
    }
    uint64_t lba = r->offset / c->block;
    uint32_t blocks = r->len / c->block;
    if (s->syncing) {
        iscsibe_cdb16(t->cdb, SCSI_OPCODE_SYNCHRONIZECACHE16, lba, blocks, false);
        return;
    }
    t->expxferlen = (int)r->len;
    s->iov = (struct scsi_iovec){ .iov_base = r->buf, .iov_len = r->len };
    if (r->op == IO_READ) {
        iscsibe_cdb16(t->cdb, SCSI_OPCODE_READ16, lba, blocks, false);
        t->xfer_dir = SCSI_XFER_READ;
        scsi_task_set_iov_in(t, &s->iov, 1);
    } else {
        iscsibe_cdb16(t->cdb, SCSI_OPCODE_WRITE16, lba, blocks, r->sync >= SYNC_DSYNC && c->dpofua);
        t->xfer_dir = SCSI_XFER_WRITE;
        scsi_task_set_iov_out(t, &s->iov, 1);
    }
}

/* Queues the slot's command; false: the library could not. */
static bool queue(struct context *c, struct slot *s, int64_t now) {
    build(c, s);
    s->t_sent = now;
    if (iscsi_scsi_command_async(c->iscsi, (int)c->lun, &s->task, command_done, NULL, s) != 0) return false;
    c->counts.commands++;
    if (s->task.cdb[0] == SCSI_OPCODE_SYNCHRONIZECACHE16) c->counts.caches_synced++;
    else if (s->task.cdb[1] & 0x08) c->counts.fua++;
    return true;
}

/* The second half of a durable write goes out with the iscsi_service() that is running, or the next. */
static void send_cache_sync(struct context *c, struct slot *s) {
    if (!queue(c, s, sock_now()))
        fail(c, s, clock_now(c->clock), ENOMEM, "no memory", "libiscsi could not queue SYNCHRONIZE CACHE");
}

/* ---- the session's end ---- */

/* Every request that is still out comes back with an error, once, and the library's context goes, so that neither it
 * nor a late reply can touch a buffer any more. Never called inside a callback. */
static void lose(struct context *c, int error, const char *kind, const char *text) {
    if (c->lost) return;
    c->lost = true;
    c->lost_error = error;
    c->closing = true; /* the cancelled commands call back */
    c->s->dead = true; /* no logout */
    iscsibe_session_close(c->s);
    c->s = NULL;
    c->iscsi = NULL;
    c->fd = -1;
    int64_t t = clock_now(c->clock);
    for (unsigned i = 0; i < c->depth && c->lent; i++)
        if (c->slots[i].request) fail(c, &c->slots[i], t, error, kind, text);
}

/* Does something wait inside the library: for the socket, or for the command window? */
static bool pending(const struct context *c) {
    return (iscsi_which_events(c->iscsi) & POLLOUT) || iscsi_out_queue_length(c->iscsi) > 0;
}

static void service(struct context *c, int events) {
    char why[240];
    if (iscsi_service(c->iscsi, events) == 0 && !c->broken) return;
    lose(c, ECONNRESET, "connection lost", iscsibe_session_why(c->s, why, sizeof why));
}

static void resend(struct context *c) {
    int64_t now = sock_now();
    for (unsigned i = 0; i < c->depth && c->retrying; i++) {
        struct slot *s = &c->slots[i];
        if (!s->t_retry || s->t_retry > now) continue;
        s->t_retry = 0;
        c->retrying--;
        if (!queue(c, s, now))
            fail(c, s, clock_now(c->clock), ENOMEM, "no memory", "libiscsi could not queue a command again");
    }
    if (pending(c)) service(c, POLLOUT);
}

/* A command older than the timeout means that the target is gone: the library cannot forget a command that is partly
 * sent, and an answer after all would find the slot used anew. One that the target keeps putting off fails alone. */
static void check_age(struct context *c, int64_t now) {
    char text[120];
    if (now - c->t_scan < TICK_NS) return;
    c->t_scan = now;
    for (unsigned i = 0; i < c->depth && !c->lost && c->lent; i++) {
        struct slot *s = &c->slots[i];
        if (!s->request) continue;
        if (s->t_retry) {
            if (now - s->t_taken > c->timeout)
                fail(c, s, clock_now(c->clock), EBUSY, "BUSY", "the target said BUSY or TASK SET FULL all the time");
        } else if (now - s->t_sent > c->timeout) {
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

static int libiscsi_submit(struct context *c, struct request *const *requests, unsigned n) {
    unsigned taken = 0;

    if (!c->lost && pending(c)) service(c, POLLOUT);
    if (c->lost) return -c->lost_error;
    int64_t now = sock_now();
    while (taken < n && !c->lost && !pending(c)) {
        struct request *r = requests[taken];
        struct slot *s = &c->slots[r->slot];
        s->request = r;
        s->t_taken = now;
        s->syncing = s->attention = false;
        c->lent++;
        if (r->op == IO_WRITE && !c->may_write) {
            /* the last line of defence: nothing that was attached for reading ever sends a WRITE */
            fail(c, s, clock_now(c->clock), EBADF, "write on a reading context", "");
            taken++;
            continue;
        }
        if (!queue(c, s, now)) {
            s->request = NULL;
            c->lent--;
            return taken ? (int)taken : -ENOMEM;
        }
        taken++;
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
    if (c->retrying) resend(c);
    if (c->lost) return true;
    if (wait_ns > 0) {
        int64_t most = c->retrying ? BUSY_NS : TICK_NS;
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
    c->dpofua = h->dpofua;
    c->stable = h->volatile_cache == ANSWER_NO;
    if (iscsibe_session_open(&h->login, &c->s, &status, err) != 0 || iscsibe_same_lun(c->s, h, err) != 0) {
        err_prefix(err, "%s", h->where);
        iscsibe_session_close(c->s);
        context_free(c);
        return -1;
    }
    c->iscsi = c->s->iscsi;
    c->fd = iscsi_get_fd(c->iscsi);
    c->counts.attentions = c->s->unit_attentions;
    c->t_scan = sock_now();
    *out = c;
    return 0;
}

static void libiscsi_detach(struct context *c) {
    int64_t end = sock_now() + DRAIN_NS, now;
    while (!c->lost && c->lent && (now = sock_now()) < end) round_trip(c, end - now);
    if (c->s && c->lent) c->s->dead = true; /* the target does not answer: it would not answer a logout either */
    c->closing = true;
    iscsibe_session_close(c->s);
    context_free(c);
}

static void libiscsi_counters(struct context *c, struct kv *out) {
    const struct counts *n = &c->counts;
    kv_uint(out, "wire_ios", n->commands);
    kv_uint(out, "fua_writes", n->fua);
    kv_uint(out, "cache_syncs", n->caches_synced);
    kv_uint(out, "retries_busy", n->busy);
    kv_uint(out, "retries_task_set_full", n->task_set_full);
    kv_uint(out, "unit_attentions", n->attentions);
    kv_uint(out, "unit_resets", n->resets);
    kv_uint(out, "command_window_closed", n->window);
    kv_uint(out, "send_buffer_full", n->full);
    tcpinfo_counters(c->fd, out);
}

static void libiscsi_watch(struct context *c, struct tcpinfo_watch *w) {
    w->fd[w->n++] = c->lost ? -1 : c->fd;
    w->outstanding = c->lent;
    w->window_closed_ns = -1;
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
