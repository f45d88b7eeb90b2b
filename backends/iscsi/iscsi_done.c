/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How a request ends: status, residual and sense of its command, or a retry. Kinds have the names that the libiscsi
 * engine gives them. */
#include <errno.h>
#include <stdio.h>

#include "backends/iscsi/iscsi_facts.h"
#include "backends/iscsi/iscsi_native.h"

#define SYNC_16 0x91
#define SYNC_10 0x35

enum { GOOD = 0x00, CHECK_CONDITION = 0x02, CONDITION_MET = 0x04, BUSY = 0x08, RESERVATION_CONFLICT = 0x18,
       TASK_SET_FULL = 0x28, ACA_ACTIVE = 0x30, TASK_ABORTED = 0x40 };

/* The rest of its data still stands in `out`, and goes before the buffer is given back. */
static void hold(struct context *c, struct native_slot *s, int64_t result, unsigned kind, bool stable) {
    s->held = true;
    s->held_result = result;
    s->held_kind = (uint16_t)kind;
    s->held_stable = stable;
    s->out = false;
    c->held++;
}

void iscsibe_done(struct context *c, struct native_slot *s, int64_t t, int64_t result, unsigned kind, bool stable) {
    if (__builtin_expect(s->batch == c->batch && c->out.n && !c->lost && s->request->op == IO_WRITE, 0)) {
        hold(c, s, result, kind, stable);
        return;
    }
    native_give(c, s, t, result, kind, stable);
    if (__builtin_expect(s->t_retry != 0, 0)) {
        s->t_retry = 0;
        c->retrying--;
    }
}

void iscsibe_done_failed(struct context *c, struct native_slot *s, int64_t t, int error, const char *kind,
                         const char *text) {
    iscsibe_done(c, s, t, -error, kinds_note(c->kinds, kind, text), false);
}

void iscsibe_done_held(struct context *c) {
    int64_t t = clock_now(c->clock);
    for (unsigned i = 0; i < c->depth && c->held; i++) {
        struct native_slot *s = &c->slots[i];
        if (!s->held) continue;
        s->held = false;
        c->held--;
        iscsibe_done(c, s, t, s->held_result, s->held_kind, s->held_stable);
    }
}

static inline bool moves_data(const struct native_slot *s) {
    return s->request->op != IO_FLUSH && !s->syncing;
}

/* "Not now": the same command again after a while. A unit attention says that something happened to the unit, not that
 * this command failed. False: it has been put off for as long as timeout= allows. */
static bool again(struct context *c, struct native_slot *s, enum iscsibe_again kind) {
    int64_t pause = iscsibe_again_after(&c->counts.again, kind, ++s->answers, c->age - s->taken, c->timeout);
    if (pause < 0) return false;
    s->t_retry = c->wall + pause;
    if (c->retrying++ == 0 || s->t_retry < c->retry_due) c->retry_due = s->t_retry;
    return true;
}

/* The unit does not know the command that was sent, so it is (10) in place of (16) from now on; and where there is
 * neither, what was written stays volatile. */
static void no_sync(struct context *c, struct native_slot *s, int64_t t) {
    if (s->sync_op == c->sync_op) c->sync_op = c->sync_op == SYNC_16 ? SYNC_10 : 0;
    if (c->sync_op) {
        iscsibe_out_again(c, s);
        return;
    }
    c->sync_behind = false;
    c->counts.no_sync++;
    if (s->syncing) iscsibe_done(c, s, t, s->written, 0, false);
    else iscsibe_done_failed(c, s, t, EOPNOTSUPP, FLUSH_IMPOSSIBLE, FLUSH_IMPOSSIBLE_TEXT);
}

static void sensed(struct context *c, struct native_slot *s, unsigned key, unsigned ascq, int64_t t) {
    char name[48];
    const char *words = iscsibe_sense_text(key, ascq);

    if (!*words && c->ascq_words) words = c->ascq_words((int)ascq);
    iscsibe_done_failed(c, s, t, iscsibe_sense_errno(key, ascq), iscsibe_sense_kind(key, ascq, name, sizeof name),
                        words);
}

/* The data that the status vouches for: all that was asked for but the residual. */
static void good(struct context *c, struct native_slot *s, const uint8_t *bhs, int64_t t) {
    const struct request *r = s->request;
    bool durable = r->op == IO_WRITE && r->sync >= SYNC_DSYNC;
    uint32_t len = r->len;
    char text[100];

    if (s->syncing) {
        iscsibe_done(c, s, t, s->written, 0, true);
        return;
    }
    if (r->op == IO_FLUSH) {
        c->counts.flushes++;
        iscsibe_done(c, s, t, 0, 0, false);
        return;
    }
    if (__builtin_expect(bhs[AT_FLAGS] & (ISCSI_OVERFLOW | ISCSI_UNDERFLOW), 0)) {
        if (bhs[AT_FLAGS] & ISCSI_OVERFLOW) {
            c->counts.fruitless++;
            iscsibe_done_failed(c, s, t, EPROTO, "residual overflow",
                                "the target had more data than the command asked for");
            return;
        }
        uint32_t residual = iscsiw_get32(bhs + AT_RESIDUAL);
        len = residual < len ? len - residual : 0;
    }
    if (__builtin_expect(r->op == IO_READ ? s->moved != len : s->moved < len, 0)) {
        c->counts.fruitless++;
        snprintf(text, sizeof text, "the target says GOOD after %u of %u bytes", (unsigned)s->moved, (unsigned)len);
        iscsibe_done_failed(c, s, t, EIO, "data missing", text);
        return;
    }
    if (durable && c->sync_behind) {
        s->written = len;
        s->syncing = true;
        iscsibe_out_again(c, s);
        return;
    }
    iscsibe_done(c, s, t, len, 0, r->op == IO_WRITE && (c->stable || (durable && c->fua)));
}

void iscsibe_done_rejected(struct context *c, struct native_slot *s, int64_t t, const char *text) {
    if (moves_data(s)) c->counts.fruitless++;
    iscsibe_done_failed(c, s, t, EPROTO, "rejected", text);
}

static void failed(struct context *c, struct native_slot *s, unsigned status, unsigned key, unsigned ascq, int64_t t) {
    char text[60];

    switch (status) {
    case CHECK_CONDITION:
        sensed(c, s, key, ascq, t);
        break;
    case BUSY:
    case TASK_SET_FULL:
        snprintf(text, sizeof text, "the target said so all the time (timeout=)");
        iscsibe_done_failed(c, s, t, EBUSY, status == BUSY ? "BUSY" : "TASK SET FULL", text);
        break;
    case RESERVATION_CONFLICT:
        iscsibe_done_failed(c, s, t, EBUSY, "RESERVATION CONFLICT", "another initiator has reserved the LUN");
        break;
    case TASK_ABORTED:
        iscsibe_done_failed(c, s, t, ECANCELED, "TASK ABORTED", "another initiator or the target aborted the command");
        break;
    default:
        snprintf(text, sizeof text, "SCSI status %02Xh%s", status, status == ACA_ACTIVE ? " (ACA ACTIVE)" : "");
        iscsibe_done_failed(c, s, t, EIO, "iSCSI error", text);
    }
}

static void bad(struct context *c, struct native_slot *s, const uint8_t *bhs, const uint8_t *segment, size_t len,
                int64_t t) {
    unsigned status = bhs[AT_STATUS], key = 0, ascq = 0;
    char why[64];

    if (status == CHECK_CONDITION) iscsiw_sense(segment, len, &key, &ascq);
    if (moves_data(s)) {
        c->counts.fruitless++;
    } else if (status == CHECK_CONDITION && key == 5 && ascq == 0x2000) {
        no_sync(c, s, t);
        return;
    }
    if (status == CHECK_CONDITION && key == 6) {
        c->counts.attentions++;
        if (ascq >> 8 == 0x29) c->counts.resets++;
    }
    if (iscsibe_doubtful(status, key, ascq))
        iscsibe_hold_doubt(c, status == CHECK_CONDITION ? iscsibe_sense_kind(key, ascq, why, sizeof why) : "TASK ABORTED");
    enum iscsibe_again kind = iscsibe_again_kind(status, key, ascq);
    if (kind == AGAIN_NOT || !again(c, s, kind)) failed(c, s, status, key, ascq, t);
}

void iscsibe_done_answered(struct context *c, struct native_slot *s, const uint8_t *bhs, const uint8_t *segment,
                           size_t len, int64_t t) {
    unsigned status = bhs[AT_STATUS];
    char text[80];

    s->out = false;
    if (__builtin_expect(s->request == &c->check_request, 0)) {
        iscsibe_hold_answered(c, bhs, segment, len);
        return;
    }
    if ((bhs[0] & ISCSI_OPCODE) == ISCSI_RESPONSE && bhs[AT_RESPONSE] != 0) {
        if (moves_data(s)) c->counts.fruitless++;
        snprintf(text, sizeof text, "the target could not do the command (iSCSI response %02Xh)", bhs[AT_RESPONSE]);
        iscsibe_done_failed(c, s, t, EIO, "iSCSI error", text);
    } else if (__builtin_expect(status == GOOD || status == CONDITION_MET, 1)) {
        good(c, s, bhs, t);
    } else {
        bad(c, s, bhs, segment, len, t);
    }
}
