/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The questions that both opening and every attach ask a logical unit. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "backends/iscsi/iscsi_session.h"
#include "backends/net/sock.h"
#include "base/units.h"

#define REPORT_LUNS_WLUN (0xc101ULL << 48) /* the well known logical unit that has nothing but the list */

bool iscsibe_report_luns(struct iscsibe_session *s, struct iscsibe_reply *reply) {
    const uint8_t cdb[12] = { 0xa0, [7] = 1 }; /* 65536 bytes: 8191 LUNs */

    if (iscsibe_ask_lun(s, 0, cdb, sizeof cdb, 65536, reply)) return true;
    return !s->dead && iscsibe_ask_lun(s, REPORT_LUNS_WLUN, cdb, sizeof cdb, 65536, reply);
}

int iscsibe_no_such_lun(struct iscsibe_session *s, const char *why, struct err *err) {
    struct iscsibe_reply reply;
    char luns[300] = "unknown";

    if (iscsibe_report_luns(s, &reply)) iscsibe_luns_words(reply.data, reply.len, luns, sizeof luns);
    return err_set(err, STATUS_TARGET, "no such LUN %u (%s). Initiator %s sees these LUNs of the target: %s",
                   s->login->lun, why, s->login->initiator, luns);
}

int iscsibe_ready(struct iscsibe_session *s, bool *reserved, struct err *err) {
    static const struct timespec pause = { .tv_nsec = 200 * NS_PER_MS };
    const uint8_t cdb[6] = { 0x00 };
    int64_t end = s->deadline ? s->deadline : sock_now() + s->login->timeout;
    struct iscsibe_reply reply;
    char words[160];

    *reserved = false;
    for (;;) {
        if (iscsibe_command(s, s->login->wire, cdb, sizeof cdb, 0, &reply, err) != 0) return -1;
        if (reply.status == SCSI_STATUS_GOOD) return 0;
        if (reply.status == SCSI_STATUS_RESERVATION_CONFLICT) {
            *reserved = true;
            return 0;
        }
        iscsibe_reply_words(&reply, words, sizeof words);
        bool check = reply.status == SCSI_STATUS_CHECK_CONDITION;
        if (check && reply.key == SCSI_SENSE_ILLEGAL_REQUEST &&
            reply.ascq == SCSI_SENSE_ASCQ_LOGICAL_UNIT_NOT_SUPPORTED)
            return iscsibe_no_such_lun(s, words, err);
        /* 04/00 to 04/0x: becoming ready; no medium, standby and the like will not change by waiting */
        bool soon = check && reply.key == SCSI_SENSE_NOT_READY && (reply.ascq == 0x0400 || reply.ascq == 0x0401);
        if (!soon || sock_now() >= end)
            return err_set(err, STATUS_TARGET, "LUN %u is not ready: %s", s->login->lun, words);
        nanosleep(&pause, NULL);
    }
}

int iscsibe_capacity(struct iscsibe_session *s, struct iscsibe_capacity *out, struct err *err) {
    const uint8_t cdb16[16] = { 0x9e, 0x10, [13] = 32 }, cdb10[10] = { 0x25 };
    struct iscsibe_reply reply;
    char words[160] = "";

    if (iscsibe_command(s, s->login->wire, cdb16, sizeof cdb16, 32, &reply, err) != 0) return -1;
    if (reply.status == SCSI_STATUS_GOOD) {
        if (iscsibe_parse_capacity16(reply.data, reply.len, out)) return 0;
        return err_set(err, STATUS_TARGET, "READ CAPACITY(16): the answer makes no sense");
    }
    if (iscsibe_not_there(&reply)) {
        if (iscsibe_command(s, s->login->wire, cdb10, sizeof cdb10, 8, &reply, err) != 0) return -1;
        if (reply.status == SCSI_STATUS_GOOD && iscsibe_parse_capacity10(reply.data, reply.len, out)) return 0;
    }
    return err_set(err, STATUS_TARGET, "READ CAPACITY: %s", iscsibe_reply_words(&reply, words, sizeof words));
}

int iscsibe_identify(struct iscsibe_session *s, bool has83, bool has80, const struct iscsibe_inquiry *inquiry,
                     char out[FACTS_IDENTITIES][128], bool *weak, uint8_t *keep, size_t *n83, struct err *err) {
    struct iscsibe_reply reply;
    int there;

    memset(out, 0, FACTS_IDENTITIES * sizeof out[0]);
    *n83 = 0;
    there = has83 ? iscsibe_vpd_must(s, 0x83, &reply, err) : 0;
    if (there < 0) return -1;
    if (there) {
        *n83 = reply.len;
        memcpy(keep, reply.data, reply.len);
    }
    there = has80 ? iscsibe_vpd_must(s, 0x80, &reply, err) : 0;
    if (there < 0) return -1;
    if (!there) reply.len = 0;
    return (int)iscsibe_identities(keep, *n83, s->data, reply.len, inquiry, out, FACTS_IDENTITIES, weak);
}

int iscsibe_ask_alua(struct iscsibe_session *s, unsigned tpgs, const uint8_t *vpd83, size_t n83, bool nonoptimized,
                     struct err *err) {
    const uint8_t cdb[12] = { 0xa3, 0x0a, [8] = 0x10 }; /* REPORT TARGET PORT GROUPS, 4096 bytes */
    struct iscsibe_alua *a = &s->alua;
    struct iscsibe_reply reply;

    *a = (struct iscsibe_alua){ .used = tpgs != 0 };
    if (!a->used) return 0;
    a->known = iscsibe_port_group(vpd83, n83, &a->group) && iscsibe_ask(s, cdb, sizeof cdb, 4096, &reply) &&
               iscsibe_alua_state(reply.data, reply.len, a->group, &a->state);
    const char *refused = a->known ? iscsibe_alua_refused(a->state, nonoptimized) : NULL;
    return refused ? err_set(err, STATUS_TARGET, "this path is ALUA %s: %s", iscsibe_alua_name(a->state), refused) : 0;
}

int iscsibe_check_size(const struct iscsibe_capacity *now, const struct handle *h, uint64_t *grown, struct err *err) {
    char was[24], is[24];
    uint64_t size = now->blocks * now->block;

    *grown = size > h->size ? size - h->size : 0;
    if (now->block == h->block && size >= h->size) return 0;
    units_size_human(was, sizeof was, h->size);
    units_size_human(is, sizeof is, size);
    if (now->block != h->block)
        return err_set(err, STATUS_TARGET, "the LUN has blocks of %u bytes now, and had %u when it was opened",
                       now->block, h->block);
    return err_set(err, STATUS_TARGET,
                   "the LUN has shrunk since it was opened: from %s (%llu blocks of %u bytes) to %s (%llu blocks)", was,
                   (unsigned long long)(h->size / h->block), h->block, is, (unsigned long long)now->blocks);
}

static int same_lun(struct iscsibe_session *s, const struct handle *h, struct err *err) {
    char identity[FACTS_IDENTITIES][128];
    struct iscsibe_inquiry inquiry = { .vendor = "" };
    struct iscsibe_capacity capacity;
    struct iscsibe_reply reply;
    const uint8_t cdb[6] = { 0x12, [4] = 96 };
    uint8_t vpd83[4096];
    size_t n83;
    bool reserved, weak;

    if (iscsibe_ready(s, &reserved, err) != 0) return -1;
    if (reserved) return err_set(err, STATUS_TARGET, "the LUN is reserved by another initiator (RESERVATION CONFLICT)");
    if (iscsibe_capacity(s, &capacity, err) != 0) return -1;
    if (iscsibe_ask(s, cdb, sizeof cdb, 96, &reply)) iscsibe_parse_inquiry(reply.data, reply.len, &inquiry);
    if (s->dead) *err = s->cause;
    if (s->dead || iscsibe_identify(s, h->vpd83, h->vpd80, &inquiry, identity, &weak, vpd83, &n83, err) < 0)
        return s->dead ? err_prefix(err, "the session was lost while the LUN was checked") : -1;
    for (unsigned i = 0; i < FACTS_IDENTITIES; i++)
        if (strcmp(identity[i], h->identity[i]) != 0)
            return err_set(err, STATUS_TARGET, "the LUN is another one than was opened: %s, not %s",
                           *identity[i] ? identity[i] : "without a name",
                           *h->identity[i] ? h->identity[i] : "without a name");
    if (iscsibe_check_size(&capacity, h, &s->grown, err) != 0) return -1;
    return iscsibe_ask_alua(s, inquiry.tpgs, vpd83, n83, h->nonoptimized, err);
}

/* The names are right; but so are those of a copy, and a portal's address may lead to several machines. */
static int same_seal(struct iscsibe_session *s, const struct handle *h, const struct seal *seal, struct err *err) {
    uint64_t lba = seal->offset / h->block;
    uint8_t cdb[16] = { 0x88, [13] = 1 }; /* READ(16) of one block */
    size_t within = (size_t)(seal->offset % h->block);
    struct iscsibe_reply reply;
    char words[160];

    if (within + seal->len > h->block || h->block > LINK_DATA_MAX) return 0;
    for (unsigned i = 0; i < 8; i++) cdb[2 + i] = (uint8_t)(lba >> (56 - 8 * i));
    if (iscsibe_command(s, s->login->wire, cdb, sizeof cdb, h->block, &reply, err) != 0) return -1;
    if (reply.status != SCSI_STATUS_GOOD || reply.len < within + seal->len)
        return err_set(err, STATUS_TARGET, "what was written to the LUN cannot be read back: %s",
                       iscsibe_reply_words(&reply, words, sizeof words));
    if (memcmp(reply.data + within, seal->bytes, seal->len) == 0) return 0;
    return err_set(err, STATUS_TARGET,
                   "this session leads to another object by the same name: the record of who writes to it is not in it, or "
                   "was overwritten; nothing is written");
}

int iscsibe_same_lun(struct iscsibe_session *s, const struct handle *h, const struct seal *seal, struct err *err) {
    s->deadline = sock_now() + s->login->timeout;
    int rc = same_lun(s, h, err);
    if (rc == 0 && seal && seal->len) rc = same_seal(s, h, seal, err);
    s->deadline = 0;
    return rc;
}
