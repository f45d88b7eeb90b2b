/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How a request ends: status, residual and sense of its command, or a retry. Kinds have the names that the libiscsi
 * engine gives them. */
#include <errno.h>
#include <stdio.h>

#include "backends/iscsi/iscsi_facts.h"
#include "backends/iscsi/iscsi_native.h"

#define BUSY_NS NS_PER_MS /* a command that the target had no room for is sent again after so long */

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

/* A unit attention says that something happened to the unit, not that this command failed. */
static void sensed(struct context *c, struct native_slot *s, const uint8_t *segment, size_t len, int64_t t) {
    char name[48];
    unsigned key, ascq;

    iscsiw_sense(segment, len, &key, &ascq);
    if (key == 6) {
        c->counts.attentions++;
        if (ascq >> 8 == 0x29) c->counts.resets++;
        if (!s->attention) {
            s->attention = true;
            iscsibe_out_again(c, s);
            return;
        }
    }
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
        iscsibe_done(c, s, t, 0, 0, false);
        return;
    }
    if (__builtin_expect(bhs[AT_FLAGS] & (ISCSI_OVERFLOW | ISCSI_UNDERFLOW), 0)) {
        if (bhs[AT_FLAGS] & ISCSI_OVERFLOW) {
            iscsibe_done_failed(c, s, t, EPROTO, "residual overflow",
                                "the target had more data than the command asked for");
            return;
        }
        uint32_t residual = iscsiw_get32(bhs + AT_RESIDUAL);
        len = residual < len ? len - residual : 0;
    }
    if (__builtin_expect(r->op == IO_READ ? s->moved != len : s->moved < len, 0)) {
        snprintf(text, sizeof text, "the target says GOOD after %u of %u bytes", (unsigned)s->moved, (unsigned)len);
        iscsibe_done_failed(c, s, t, EIO, "data missing", text);
        return;
    }
    if (durable && !c->dpofua) {
        s->written = len;
        s->syncing = true;
        iscsibe_out_again(c, s);
        return;
    }
    iscsibe_done(c, s, t, len, 0, r->op == IO_WRITE && (durable || c->stable));
}

static void bad(struct context *c, struct native_slot *s, const uint8_t *bhs, const uint8_t *segment, size_t len,
                int64_t t) {
    unsigned status = bhs[AT_STATUS];
    char text[60];

    switch (status) {
    case CHECK_CONDITION:
        sensed(c, s, segment, len, t);
        break;
    case BUSY:
    case TASK_SET_FULL:
        if (status == BUSY) c->counts.busy++;
        else c->counts.task_set_full++;
        s->t_retry = c->wall + BUSY_NS;
        c->retrying++;
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

void iscsibe_done_answered(struct context *c, struct native_slot *s, const uint8_t *bhs, const uint8_t *segment,
                           size_t len, int64_t t) {
    unsigned status = bhs[AT_STATUS];
    char text[80];

    s->out = false;
    if ((bhs[0] & ISCSI_OPCODE) == ISCSI_RESPONSE && bhs[AT_RESPONSE] != 0) {
        snprintf(text, sizeof text, "the target could not do the command (iSCSI response %02Xh)", bhs[AT_RESPONSE]);
        iscsibe_done_failed(c, s, t, EIO, "iSCSI error", text);
    } else if (__builtin_expect(status == GOOD || status == CONDITION_MET, 1)) {
        good(c, s, bhs, t);
    } else {
        bad(c, s, bhs, segment, len, t);
    }
}
