/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How requests end over libiscsi: status, residual and sense of their command, or a retry. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/iscsi/iscsi_libiscsi.h"
#include "backends/net/sock.h"
#include "base/text.h"

void iscsibe_lib_push(struct context *c, struct slot *s, int64_t t, int64_t result, unsigned kind, bool stable) {
    struct completion *d = &c->done[(c->done_first + c->done_n++) % c->depth];
    *d = (struct completion){ .request = s->request, .result = result, .t_done = t, .kind = (uint16_t)kind,
                              .stable = stable };
    s->request = NULL;
    c->lent--;
    if (s->t_retry) c->retrying--;
    s->t_retry = 0;
}

void iscsibe_lib_fail(struct context *c, struct slot *s, int64_t t, int error, const char *name, const char *text) {
    iscsibe_lib_push(c, s, t, -error, kinds_note(c->kinds, name, text), false);
}

static void retry_at(struct context *c, struct slot *s, int64_t when) {
    s->t_retry = when;
    c->retrying++;
}

static void fail_library(struct context *c, struct slot *s, int64_t t) {
    char text[240];
    const char *words = iscsi_get_error(c->iscsi);
    iscsibe_lib_fail(c, s, t, EIO, "iSCSI error", words ? text_safe(text, sizeof text, words, strlen(words)) : "");
}

/* ---- completions that are none yet ---- */

/* "Not now": the same command again after a while. A unit attention says that something happened to the unit, not that
 * this command failed. False: it has been put off for as long as timeout= allows. */
static bool again(struct context *c, struct slot *s, enum iscsibe_again kind) {
    int64_t now = sock_now();
    int64_t pause = iscsibe_again_after(&c->counts.again, kind, ++s->answers, now - s->t_taken, c->timeout);
    if (pause < 0) return false;
    retry_at(c, s, now + pause);
    return true;
}

/* The unit does not know the command that was sent, so it is (10) in place of (16) from now on; and where there is
 * neither, what was written stays volatile. */
static void no_sync(struct context *c, struct slot *s, int64_t t) {
    if (s->sync_op == c->sync_op) c->sync_op = c->sync_op == SCSI_OPCODE_SYNCHRONIZECACHE16 ? SCSI_OPCODE_SYNCHRONIZECACHE10 : 0;
    if (c->sync_op) {
        retry_at(c, s, 1);
        return;
    }
    c->sync_behind = false;
    c->counts.no_sync++;
    if (s->syncing) iscsibe_lib_push(c, s, t, s->moved, 0, false);
    else iscsibe_lib_fail(c, s, t, EOPNOTSUPP, FLUSH_IMPOSSIBLE, FLUSH_IMPOSSIBLE_TEXT);
}

static void sensed(struct context *c, struct slot *s, unsigned key, unsigned ascq, int64_t t) {
    char name[48];
    const char *words = iscsibe_sense_text(key, ascq);
    iscsibe_lib_fail(c, s, t, iscsibe_sense_errno(key, ascq), iscsibe_sense_kind(key, ascq, name, sizeof name),
         *words ? words : scsi_sense_ascq_str((int)ascq));
}

static void good(struct context *c, struct slot *s, int64_t t) {
    const struct request *r = s->request;
    const struct scsi_task *task = &s->task;
    bool durable = r->op == IO_WRITE && r->sync >= SYNC_DSYNC;
    int64_t result = r->op == IO_FLUSH ? 0 : r->len;

    if (s->syncing) {
        iscsibe_lib_push(c, s, t, s->moved, 0, true);
        return;
    }
    if (task->residual_status == SCSI_RESIDUAL_OVERFLOW) {
        iscsibe_lib_fail(c, s, t, EPROTO, "residual overflow", "the target had more data than the command asked for");
        return;
    }
    if (task->residual_status == SCSI_RESIDUAL_UNDERFLOW && r->op != IO_FLUSH)
        result = task->residual < r->len ? (int64_t)(r->len - task->residual) : 0;
    c->counts.done++;
    if (durable && c->sync_behind) {
        s->moved = result;
        s->syncing = true;
        if (c->hold) retry_at(c, s, 1);
        else iscsibe_lib_sync(c, s);
        return;
    }
    iscsibe_lib_push(c, s, t, result, 0, r->op == IO_WRITE && (c->stable || (durable && c->fua)));
}

/* Any SCSI status but GOOD. False: it is over, and `status` says how. */
static bool bad(struct context *c, struct slot *s, unsigned status, unsigned key, unsigned ascq, int64_t t) {
    bool data = s->request->op != IO_FLUSH && !s->syncing;
    char why[64];

    if (!data && status == SCSI_STATUS_CHECK_CONDITION && key == SCSI_SENSE_ILLEGAL_REQUEST && ascq == 0x2000) {
        no_sync(c, s, t);
        return true;
    }
    iscsibe_lib_count_attention(c, status, key, ascq);
    if (iscsibe_doubtful(status, key, ascq))
        iscsibe_lib_doubt(c, status == SCSI_STATUS_CHECK_CONDITION ? iscsibe_sense_kind(key, ascq, why, sizeof why) : "TASK ABORTED");
    enum iscsibe_again kind = iscsibe_again_kind(status, key, ascq);
    return kind != AGAIN_NOT && again(c, s, kind);
}

void iscsibe_lib_done(struct iscsi_context *iscsi, int status, void *data, void *private_data) {
    struct slot *s = private_data;
    struct context *c = s->context;
    int64_t t = clock_now(c->clock);
    char text[240];

    (void)iscsi;
    (void)data;
    free(s->task.datain.data); /* sense data, which the library allocates */
    s->task.datain.data = NULL;
    if (!s->request || c->closing) return;
    bool sense = status == SCSI_STATUS_CHECK_CONDITION;
    unsigned key = sense ? (unsigned)s->task.sense.key : 0, ascq = sense ? (unsigned)s->task.sense.ascq : 0;
    if (status != SCSI_STATUS_GOOD && bad(c, s, (unsigned)status, key, ascq, t)) return;
    switch (status) {
    case SCSI_STATUS_GOOD:
    case SCSI_STATUS_CONDITION_MET:
        good(c, s, t);
        break;
    case SCSI_STATUS_CHECK_CONDITION:
        sensed(c, s, key, ascq, t);
        break;
    case SCSI_STATUS_BUSY:
    case SCSI_STATUS_TASK_SET_FULL:
        iscsibe_lib_fail(c, s, t, EBUSY, status == SCSI_STATUS_BUSY ? "BUSY" : "TASK SET FULL",
             "the target said so all the time (timeout=)");
        break;
    case SCSI_STATUS_RESERVATION_CONFLICT:
        iscsibe_lib_fail(c, s, t, EBUSY, "RESERVATION CONFLICT", "another initiator has reserved the LUN");
        break;
    case SCSI_STATUS_TASK_ABORTED:
        iscsibe_lib_fail(c, s, t, ECANCELED, "TASK ABORTED", "another initiator or the target aborted the command");
        break;
    case SCSI_STATUS_CANCELLED: /* without reconnection, a lost session cancels all that was out */
        c->broken = true;
        iscsibe_lib_fail(c, s, t, ECONNRESET, "connection lost", iscsibe_session_why(c->s, text, sizeof text));
        break;
    case SCSI_STATUS_TIMEOUT:
        c->broken = true;
        iscsibe_lib_fail(c, s, t, ETIMEDOUT, "timeout", "libiscsi: no reply");
        break;
    default: /* also ACA ACTIVE */
        fail_library(c, s, t);
    }
}
