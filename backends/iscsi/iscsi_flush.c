/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How the unit makes writes durable: with SYNCHRONIZE CACHE(16), with (10) where that is all it knows, or not at all. */
#include "backends/iscsi/iscsi_session.h"

enum { SYNC_16 = 0x91, SYNC_10 = 0x35 };

/* REPORT SUPPORTED OPERATION CODES, of one: a hint, as many targets cannot be asked. */
static bool hinted_missing(struct iscsibe_session *s, uint8_t opcode) {
    const uint8_t cdb[12] = { 0xa3, 0x0c, 0x01, opcode, [9] = 64 };
    struct iscsibe_reply reply;
    return iscsibe_ask(s, cdb, sizeof cdb, 64, &reply) && reply.len >= 4 && (reply.data[1] & 7u) == 1;
}

/* The command itself, for the first block alone. Only "invalid command operation code" counts as a no. */
static bool tried_missing(struct iscsibe_session *s, uint8_t opcode) {
    const uint8_t cdb[16] = { opcode, [8] = opcode == SYNC_10, [13] = opcode == SYNC_16 };
    struct iscsibe_reply reply;
    return !iscsibe_ask(s, cdb, opcode == SYNC_16 ? 16 : 10, 0, &reply) &&
           reply.status == SCSI_STATUS_CHECK_CONDITION && reply.key == SCSI_SENSE_ILLEGAL_REQUEST &&
           reply.ascq == 0x2000;
}

void iscsibe_ask_flush(struct iscsibe_session *s, struct handle *h, struct facts *f) {
    bool (*missing)(struct iscsibe_session *, uint8_t) = h->writable ? tried_missing : hinted_missing;
    bool through = f->volatile_cache == ANSWER_NO;

    h->sync_op = SYNC_16;
    if (!through && missing(s, SYNC_16)) h->sync_op = missing(s, SYNC_10) ? 0 : SYNC_10;
    f->can_flush = through || h->sync_op;
    kv_text(&f->negotiated, "flush_by", "%s%s", through ? "nothing: the cache is write-through" :
            h->sync_op == SYNC_16 ? "SYNCHRONIZE CACHE(16)" : h->sync_op ? "SYNCHRONIZE CACHE(10)" : "not possible",
            through || h->writable || !h->sync_op ? "" : ", not tried");
    kv_text(&f->negotiated, "durable_by", "%s", through ? "write-through" : f->dpofua == ANSWER_YES ? "fua" :
            h->sync_op ? "cache sync" : "not possible");
    if (!f->can_flush)
        kv_text(&f->warnings, "no-flush", "the LUN has a volatile cache and neither SYNCHRONIZE CACHE(16) nor (10): a flush "
                "is not possible, and what is written without FUA stays volatile");
}
