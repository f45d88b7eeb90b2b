/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/iscsi/iscsi_libiscsi.h"
#include "backends/net/sock.h"

static void hold(struct context *c, const char *why) {
    int64_t now = sock_now();
    if (!c->hold) {
        c->counts.holds++;
        c->held_since = now;
        if (c->may_write && c->unsent && iscsi_out_queue_length(c->iscsi) > 0) c->give_up = "LUN doubtful";
    }
    c->hold = true;
    iscsibe_recheck_ask(&c->check, now, c->timeout, why);
}

void iscsibe_lib_doubt(struct context *c, const char *why) {
    c->check.doubts = atomic_fetch_add(&c->check.unit->doubts, 1) + 1;
    hold(c, why);
}

/* Another session had a reason to. */
void iscsibe_lib_follow(struct context *c) {
    if (atomic_load_explicit(&c->check.unit->doubts, memory_order_relaxed) == c->check.doubts) return;
    c->check.doubts = atomic_load(&c->check.unit->doubts);
    hold(c, "another session had a reason to");
}

static void judge(struct context *c, enum recheck_verdict v) {
    char why[sizeof c->check.why];
    int64_t now = sock_now();

    if (v == RECHECK_SAME) {
        if (c->hold) c->counts.hold_ns += (uint64_t)(now - c->held_since);
        c->hold = false;
        c->asked = now;
    } else if (v == RECHECK_DOUBT) {
        snprintf(why, sizeof why, "%s", c->check.why);
        iscsibe_lib_doubt(c, why);
    } else if (v == RECHECK_LOST) {
        c->give_up = c->check.kind;
    }
}

void iscsibe_lib_count_attention(struct context *c, unsigned status, unsigned key, unsigned ascq) {
    if (status != SCSI_STATUS_CHECK_CONDITION || key != SCSI_SENSE_UNIT_ATTENTION) return;
    c->counts.attentions++;
    if (ascq >> 8 == 0x29) c->counts.resets++;
}

static void check_done(struct iscsi_context *iscsi, int status, void *data, void *private_data) {
    struct context *c = private_data;
    struct scsi_task *t = &c->check_task;
    bool sense = status == SCSI_STATUS_CHECK_CONDITION;
    unsigned key = sense ? (unsigned)t->sense.key : 0, ascq = sense ? (unsigned)t->sense.ascq : 0;

    (void)iscsi;
    (void)data;
    free(t->datain.data); /* sense data, which the library allocates */
    t->datain.data = NULL;
    if (c->closing) return;
    if (status == SCSI_STATUS_CANCELLED || status == SCSI_STATUS_TIMEOUT) {
        c->broken = true;
        return;
    }
    size_t missing = t->residual_status == SCSI_RESIDUAL_UNDERFLOW ? t->residual : 0;
    iscsibe_lib_count_attention(c, (unsigned)status, key, ascq);
    judge(c, iscsibe_recheck_answer(&c->check, sock_now(), status >= 0 && status < 0xff ? (unsigned)status : 0xff, key, ascq,
                                    c->check_data, missing < c->check_alloc ? c->check_alloc - missing : 0));
}

/* The next question, if it is time for one and nothing else is out. */
void iscsibe_lib_ask(struct context *c, int64_t now) {
    struct scsi_task *t = &c->check_task;

    if (c->check.asking) judge(c, iscsibe_recheck_late(&c->check, now));
    if (c->give_up || !iscsibe_recheck_due(&c->check, now) || (c->hold && c->lent > c->retrying)) return;
    memset(t, 0, sizeof *t);
    memset(c->check_data, 0, sizeof c->check_data);
    c->check_alloc = iscsibe_recheck_cdb(&c->check, t->cdb);
    t->cdb_size = t->cdb[0] == 0x12 ? 6 : t->cdb[0] == 0x25 ? 10 : 16;
    t->xfer_dir = SCSI_XFER_READ;
    t->expxferlen = (int)c->check_alloc;
    c->check_iov = (struct scsi_iovec){ .iov_base = c->check_data, .iov_len = c->check_alloc };
    scsi_task_set_iov_in(t, &c->check_iov, 1);
    c->counts.checks++;
    if (iscsi_scsi_command_async(c->iscsi, (int)c->lun, t, check_done, NULL, c) != 0) c->give_up = "no memory";
}
