/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The native data path of one session, in three parts: iscsi_out.c makes PDUs, iscsi_in.c takes in what the target
 * sends, iscsi_native.c has the socket, the time and the backend's contract. The first two know neither, so that tests
 * and the fuzzer can drive them with bytes alone.
 *
 * A request is taken when a byte of its command is in the socket. What is built but not sent stands in `out`; the PDUs
 * that follow a command (Data-Out) are jobs, made from the request's buffer when there is room. Nothing is copied and
 * nothing is allocated between attach and detach. */
#ifndef BACKENDS_ISCSI_ISCSI_NATIVE_H
#define BACKENDS_ISCSI_ISCSI_NATIVE_H

#include <sys/uio.h>

#include "backends/backend.h"
#include "backends/iscsi/iscsi.h"
#include "backends/iscsi/iscsi_again.h"
#include "backends/iscsi/iscsi_recheck.h"
#include "backends/iscsi/iscsi_wire.h"

#define NATIVE_IN_SIZE   (256u << 10) /* what one recv brings at most, apart from what goes straight to its buffer */
#define NATIVE_OUT_IOVS  1024u        /* IOV_MAX of Linux */
#define NATIVE_OUT_BYTES (64u << 10)  /* headers, digests and padding of one sendmsg */
#define NATIVE_RECV_NS   (50 * NS_PER_MS) /* SO_RCVTIMEO: the longest sleep in recv */
#define NATIVE_R2T_MAX   64u          /* the largest MaxOutstandingR2T that is offered */
#define NATIVE_NOPS      8192u        /* NOP-Ins to answer: more than one recv can bring */
#define NATIVE_LARGE     (32u << 10)  /* a data segment at least this long is worth receiving into its buffer */

struct native_slot {
    struct request *request;      /* NULL: free */
    uint32_t itt;                 /* generation << bits | slot number, of the last command */
    uint32_t batch;               /* which contents of `out` its newest PDU is in */
    uint32_t moved;               /* bytes of data that came (in order), or were made ready to go */
    uint32_t next_sn;             /* DataSN of the next Data-In, or R2TSN of the next R2T */
    int64_t age, taken;           /* context->age when the command was sent, when the request was taken */
    bool out;                     /* a command is out */
    bool syncing;                 /* it is the SYNCHRONIZE CACHE behind a WRITE, which moved `written` bytes */
    uint8_t sync_op;              /* of its last SYNCHRONIZE CACHE */
    uint16_t answers;             /* so many in a row said "not now" */
    bool held;                    /* over, but its buffer still stands in `out`: the completion waits */
    bool held_stable;
    uint16_t held_kind;
    uint32_t r2ts;                /* outstanding: told, and not yet answered in full */
    uint32_t written;
    uint32_t again_batch;         /* the contents of `out` that its command was put into again, ... */
    size_t again_at;              /* ... and where in them */
    int64_t t_retry;              /* when to send again; 0: nothing of the kind */
    int64_t held_result;
};

/* Data-Out PDUs to be made: an R2T's, or what is unsolicited. */
struct native_job {
    uint32_t slot, itt, ttt;
    uint32_t at, left, data_sn;
};

struct native_out {
    struct iovec iov[NATIVE_OUT_IOVS];
    unsigned first, n;            /* unsent: iov[first .. n) */
    uint8_t *bytes;               /* NATIVE_OUT_BYTES */
    unsigned used;
    bool open;                    /* the last iov is of `bytes` and can grow */
    size_t total;                 /* bytes in the iovs from first to n */
    size_t gone;                  /* bytes of these contents that were sent before */
};

struct native_counts {
    uint64_t commands, fua, caches_synced, attentions, resets, window, window_ns, full;
    uint64_t sends, recvs, polls, r2ts, data_outs, nops, asyncs, rejects, gaps;
    uint64_t r2t_waits;           /* R2Ts for which a write had to wait: nothing of it could be sent before */
    uint64_t fruitless;           /* READs and WRITEs that did not end GOOD */
    uint64_t flushes;             /* that ended well, also those that changed nothing */
    uint64_t checks, holds, hold_ns; /* commands of iscsi_hold.c; times that it held all others back */
    uint64_t no_sync;             /* flushes and durable writes for which there was no command */
    struct iscsibe_again_counts again;
    unsigned out_max;             /* the most requests that were out at once */
};

/* What else is to be thought of than I/O. */
enum { ASIDE_LEAVE = 1,           /* the target asked to log out */
       ASIDE_HOLD = 2,            /* is it still the same unit? No other command goes before that is known */
       ASIDE_ASK = 4,             /* the same question, but without a reason: the I/O goes on */
       ASIDE_STOP = ASIDE_LEAVE | ASIDE_HOLD };

struct context {
    struct iscsibe_context head;
    /* receiving */
    struct iscsiw_in in;
    uint8_t *sink;                /* where the data segment goes; what has no room is dropped */
    uint32_t sink_room;
    struct native_slot *pdu_slot; /* of the Data-In that is coming */
    uint8_t bhs[ISCSI_BHS];       /* header of the PDU that is coming */
    uint8_t side[260];            /* the beginning of a data segment that is not Data-In */
    uint8_t *in_bytes;            /* NATIVE_IN_SIZE + ISCSI_HEADER_MAX */
    size_t in_have;               /* the beginning of a header */
    bool large;                   /* Data-In PDUs are long: receive them into their buffers */
    /* completions: straight into the caller's array while there is room, then into a ring of `depth` */
    struct completion *reply, *done;
    unsigned reply_n, reply_max, done_first, done_n;
    /* numbers */
    uint32_t cmd_sn, max_cmd_sn, exp_stat_sn;
    /* what was agreed on */
    uint32_t immediate_max, unsolicited_max, segment_max, burst_max, r2t_max;
    bool header_digest, data_digest, plain; /* plain: neither */
    /* the unit */
    uint8_t read_bhs[ISCSI_BHS], write_bhs[ISCSI_BHS], sync_bhs[ISCSI_BHS];
    unsigned block_shift;
    uint32_t block_mask;
    bool fua, sync_behind;        /* a durable write has FUA, or SYNCHRONIZE CACHE behind it; neither: it needs none */
    bool stable;                  /* what is written is not in a volatile cache */
    uint8_t sync_op;              /* SYNCHRONIZE CACHE(16) or (10); 0: the unit has neither */
    bool may_write, deliver;
    unsigned aside;
    bool check_due;               /* the next command of `check` is to go */
    struct iscsibe_recheck check;
    struct request check_request; /* its slot is slots[depth] */
    int64_t asked, held_since;    /* wall at the last verdict, and when the hold began */
    const struct tcp_settings *tend; /* NULL: nothing to tend */
    /* slots */
    unsigned depth, lent, slot_mask;
    struct native_slot *slots;    /* by request->slot */
    /* sending */
    struct native_out out;
    uint32_t batch;
    size_t *starts;               /* of the requests of one submit: where they begin in `out` */
    struct native_job *jobs;      /* ring, a power of two */
    unsigned job_mask, job_first, job_n;
    unsigned *again;              /* ring of `depth` slots whose command is to be sent (again) */
    unsigned again_first, again_n, retrying, held;
    int64_t retry_due;            /* wall: when the first of those retrying is to be sent again */
    struct native_nop { uint8_t lun[8]; uint32_t ttt; } *nop; /* ring of NATIVE_NOPS */
    unsigned nop_first, nop_n;
    bool logout, logout_sent, logged_out;
    /* time: `wall` is CLOCK_MONOTONIC as last seen; `age` is the same without the gaps in which nobody looked, so that
     * a caller who was stopped finds no timeouts */
    int64_t wall, age, age_scanned;
    int64_t window_since;         /* clock_now() when the command window was found closed; 0: it is open */
    int64_t leave_by;             /* wall, with ASIDE_LEAVE: when its patience ends */
    /* the end */
    bool lost;
    int lost_error;               /* errno of why */
    char lost_text[340];
    /* the rest */
    int fd;
    const char *portal;           /* names this path in errors; NULL: it is the only one. Outlives the context */
    uint32_t window_at_login;     /* commands that the target had room for */
    uint64_t grown;               /* bytes that the unit has more than when it was opened */
    int wait;                     /* enum native_wait */
    unsigned misses, skip;        /* recv that had nothing to bring: leave it out so many times */
    struct clock *clock;
    struct kinds *kinds;
    int64_t timeout;
    struct native_counts counts;
    const char *(*ascq_words)(int ascq); /* for codes that iscsibe_sense_text does not know; may be NULL */
};

enum native_wait { NATIVE_BLOCK, NATIVE_ADAPTIVE, NATIVE_SPIN };

/* A session that is logged in, and what is to be done with it. */
struct native_how {
    int fd;                       /* in blocking mode; the context's from now on, also after a failure */
    const char *portal;           /* as in the context */
    const struct iscsibe_terms *terms;
    uint32_t cmd_sn, max_cmd_sn, exp_stat_sn;
    uint64_t lun;                 /* as on the wire */
    uint32_t block;
    struct iscsibe_unit *unit;    /* outlives the context */
    bool dpofua, stable, deliver;
    uint8_t sync_op;              /* as in the context */
    const struct tcp_settings *tcp; /* outlives the context; NULL: nothing special */
    int wait;
    int64_t timeout;
    const char *(*ascq_words)(int ascq);
};
int iscsibe_native_start(const struct native_how *session, const struct attach_how *how, struct context **out,
                         struct err *err);
void iscsibe_native_detach(struct context *c);
int iscsibe_native_submit(struct context *c, struct request *const *requests, unsigned n);
int iscsibe_native_reap(struct context *c, struct completion *out, unsigned max, unsigned min, int64_t timeout_ns);
void iscsibe_native_counters(struct context *c, struct kv *out);
void iscsibe_native_watch(struct context *c, struct tcpinfo_watch *w); /* adds */
/* Time has passed, says a caller that waits for several sessions at once: its next reap finds what is too old. */
void iscsibe_native_look(struct context *c);

/* ---- iscsi_native.c: memory, and the end ---- */
struct context *iscsibe_native_new(const struct native_how *session, const struct attach_how *how, struct err *err);
void iscsibe_native_free(struct context *c);
/* The session is over: every request that is out comes back with this error, once. */
void iscsibe_native_lose(struct context *c, int error, const char *kind, const char *text);

/* ---- iscsi_hold.c: is it still the same unit? ---- */
/* There is a reason to doubt it: all commands wait until it is known, also those of other sessions to the unit. */
void iscsibe_hold_doubt(struct context *c, const char *why);
/* Another session had one. */
/* Its thread was away for a while: if the last verdict is older than it should be, there is to be one before more goes. */
void iscsibe_hold_stood_still(struct context *c);
void iscsibe_hold_follow(struct context *c);
static inline bool iscsibe_hold_told(const struct context *c) {
    return atomic_load_explicit(&c->check.unit->doubts, memory_order_relaxed) != c->check.doubts;
}
/* No reason, but it is time to ask. */
void iscsibe_hold_ask(struct context *c);
/* Between two receives, while there is a question. */
void iscsibe_hold_work(struct context *c);
/* The answer to a question's command; `bhs` NULL: it was rejected. */
void iscsibe_hold_answered(struct context *c, const uint8_t *bhs, const uint8_t *segment, size_t len);
void iscsibe_hold_counters(const struct context *c, struct kv *out);

/* ---- iscsi_out.c ---- */
/* Is this request not to be sent at all? Not a block's multiple, a write where nothing may be written, a flush that
 * changes nothing or is not possible. */
bool iscsibe_out_refused(const struct context *c, const struct request *r);
/* Adds commands for the first requests; how many. They are only taken when iscsibe_out_sent says so. */
unsigned iscsibe_out_commands(struct context *c, struct request *const *requests, unsigned n);
/* `sent` bytes of `out` have gone. Of the `n` requests added last, those without a byte in them are taken back; how
 * many stay. */
unsigned iscsibe_out_sent(struct context *c, size_t sent, struct request *const *requests, unsigned n);
void iscsibe_out_fill(struct context *c); /* `out` is empty: puts what waits into it */
static inline bool iscsibe_out_pending(const struct context *c) {
    return c->out.n | c->job_n | c->nop_n | c->logout;
}
static inline bool iscsibe_window_open(const struct context *c) {
    return !iscsiw_before(c->max_cmd_sn, c->cmd_sn);
}
static inline bool iscsibe_out_due(const struct context *c) { /* is there anything that could be sent now? */
    return iscsibe_out_pending(c) || ((c->again_n | c->check_due) && iscsibe_window_open(c));
}
/* Commands that were put into `out` again and of which no byte has gone wait once more. */
void iscsibe_out_unsend(struct context *c);
void iscsibe_out_again(struct context *c, struct native_slot *s); /* queues the slot's command */
void iscsibe_out_data(struct context *c, struct native_slot *s, uint32_t ttt, uint32_t at, uint32_t len);

/* ---- iscsi_in.c ---- */
/* Takes in what arrived, at time t. How many bytes: the rest is the beginning of a header. */
size_t iscsibe_in_take(struct context *c, const uint8_t *p, size_t len, int64_t t);
/* `len` bytes of the data segment have been received straight into `sink`. */
void iscsibe_in_direct(struct context *c, uint32_t len);

/* ---- iscsi_done.c: how requests end ---- */
/* Gives the slot's request back. */
static inline void native_give(struct context *c, struct native_slot *s, int64_t t, int64_t result, unsigned kind,
                               bool stable) {
    struct completion *d = __builtin_expect(c->reply_n < c->reply_max, 1)
                               ? &c->reply[c->reply_n++] : &c->done[(c->done_first + c->done_n++) % c->depth];
    d->request = s->request;
    d->result = result;
    d->t_done = t;
    d->kind = (uint16_t)kind;
    d->stable = stable;
    s->request = NULL;
    s->out = false;
    c->lent--;
}
void iscsibe_done(struct context *c, struct native_slot *s, int64_t t, int64_t result, unsigned kind, bool stable);
void iscsibe_done_failed(struct context *c, struct native_slot *s, int64_t t, int error, const char *kind,
                         const char *text);
void iscsibe_done_rejected(struct context *c, struct native_slot *s, int64_t t, const char *text);
void iscsibe_done_held(struct context *c); /* `out` has gone: what waited for it */
/* The target has answered the slot's command. `bhs`: a SCSI Response, or a Data-In with status; its data segment. */
void iscsibe_done_answered(struct context *c, struct native_slot *s, const uint8_t *bhs, const uint8_t *segment,
                           size_t len, int64_t t);

#endif
