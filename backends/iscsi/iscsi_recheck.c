/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/iscsi/iscsi_recheck.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "backends/iscsi/iscsi_again.h"
#include "backends/net/again.h"

enum step { STEP_INQUIRY, STEP_VPD83, STEP_VPD80, STEP_CAPACITY16, STEP_CAPACITY10, STEP_SEAL, STEP_END };
enum { GOOD = 0x00, CHECK_CONDITION = 0x02, NO_STATUS = 0xff };

/* ---- names ---- */

static const char *or_none(const char *name) {
    return *name ? name : "without a name";
}

bool iscsibe_same_names(const char was[][128], const char is[][128], char *buf, size_t len) {
    for (unsigned i = 0; i < FACTS_IDENTITIES; i++) {
        if (strcmp(was[i], is[i]) == 0) continue;
        snprintf(buf, len, "was %.70s, is %.70s", or_none(was[i]), or_none(is[i]));
        return false;
    }
    return true;
}

/* A question without a reason goes for what VPD 83 gives alone, if the unit has names there. */
static bool by_vpd83(const struct iscsibe_recheck *r) {
    return r->routine && r->unit->vpd83 && *r->unit->identity[0] && strncmp(r->unit->identity[0], "serial", 6) != 0;
}

static bool same_names(struct iscsibe_recheck *r, char *buf, size_t len) {
    char is[FACTS_IDENTITIES][128] = { "" };
    const char (*was)[128] = r->unit->identity;
    char expected[FACTS_IDENTITIES][128] = { "" };
    bool weak;

    iscsibe_identities(r->vpd83, r->n83, r->vpd80, r->n80, &r->inquiry, is, FACTS_IDENTITIES, &weak);
    for (unsigned i = 0; i < FACTS_IDENTITIES; i++)
        if (!by_vpd83(r) || strncmp(was[i], "serial", 6) != 0) memcpy(expected[i], was[i], sizeof expected[i]);
    return iscsibe_same_names((const char (*)[128])expected, (const char (*)[128])is, buf, len);
}

/* ---- verdicts ---- */

static enum recheck_verdict lost(struct iscsibe_recheck *r, const char *kind, const char *text) {
    r->asking = false;
    r->kind = kind;
    snprintf(r->text, sizeof r->text, "%.230s%s%s%s", text, *r->why ? " (asked after " : "", r->why, *r->why ? ")" : "");
    return RECHECK_LOST;
}

/* Without a sign of the exchange, writing went on until the answer came. */
static const char *harm(const struct iscsibe_recheck *r) {
    return r->routine && r->writes ? "what was written since it was asked last, about a second ago, may be in it"
                                   : "nothing more is written";
}

/* By its names. */
static bool exchanged(struct iscsibe_recheck *r) {
    char names[160], text[300];

    if (same_names(r, names, sizeof names)) return false;
    snprintf(text, sizeof text, "the LUN is another object now: %s; %s", names, harm(r));
    lost(r, "LUN exchanged", text);
    return true;
}

static enum recheck_verdict verdict(struct iscsibe_recheck *r) {
    if (exchanged(r)) return RECHECK_LOST;
    if (r->writes && !r->seal_len && r->unit->weak && *r->why)
        return lost(r, "LUN unknown",
                    "the LUN bears the same name, but one that another may bear, and nothing that was written to it tells "
                    "them apart; nothing more is written");
    if (r->writes && !r->seal_len && !*r->unit->identity[0])
        return lost(r, "LUN unknown", "the LUN has no name (VPD 83 or 80): whether it is still the same cannot be told");
    r->asking = false;
    return RECHECK_SAME;
}

static enum recheck_verdict judge_size(struct iscsibe_recheck *r, const struct iscsibe_capacity *now) {
    const struct iscsibe_unit *u = r->unit;
    char text[240];

    if (now->block == u->block && now->blocks >= u->size / u->block) return RECHECK_MORE; /* it may have grown */
    snprintf(text, sizeof text,
             "the LUN has shrunk or is another one, nothing more is written: it had %" PRIu64 " blocks of %u bytes, and "
             "has %" PRIu64 " of %u",
             u->size / u->block, (unsigned)u->block, now->blocks, (unsigned)now->block);
    return lost(r, "LUN shrank", text);
}

static void next_step(struct iscsibe_recheck *r) {
    r->answers = 0;
    do {
        r->step++;
        bool left_out = (r->step == STEP_VPD83 && !r->unit->vpd83) ||
                        (r->step == STEP_VPD80 && (!r->unit->vpd80 || by_vpd83(r))) ||
                        r->step == STEP_CAPACITY10 || (r->step == STEP_CAPACITY16 && r->routine) ||
                        (r->step == STEP_SEAL && !r->seal_len);
        if (!left_out) return;
    } while (r->step < STEP_END);
}

/* ---- answers ---- */

/* The page, if it came; without it, the unit has no such names. */
static size_t keep_page(uint8_t *to, size_t room, unsigned status, const uint8_t *data, size_t len) {
    if (status != GOOD) return 0;
    if (len > room) len = room;
    memcpy(to, data, len);
    return len;
}

static enum recheck_verdict later(struct iscsibe_recheck *r, int64_t now) {
    r->due = now + again_pause(++r->answers);
    return iscsibe_recheck_late(r, now);
}

/* "Not now", "no such unit": asked again until the deadline. What was heard before may be of another unit by then. */
static enum recheck_verdict evasive(struct iscsibe_recheck *r, int64_t now, unsigned status, unsigned key,
                                    unsigned ascq) {
    iscsibe_again_name(status, key, ascq, r->last, sizeof r->last);
    if (!iscsibe_doubtful(status, key, ascq)) return later(r, now);
    if (r->routine) {
        snprintf(r->why, sizeof r->why, "%.59s", r->last);
        r->asking = false;
        return RECHECK_DOUBT;
    }
    r->step = STEP_INQUIRY;
    return later(r, now);
}

static enum recheck_verdict take_inquiry(struct iscsibe_recheck *r, int64_t now, unsigned status, const uint8_t *data,
                                         size_t len) {
    if (status != GOOD || !iscsibe_parse_inquiry(data, len, &r->inquiry))
        return lost(r, "LUN unknown", "the LUN does not say who it is any more (INQUIRY)");
    if (r->inquiry.qualifier == 0) {
        next_step(r);
        return RECHECK_MORE;
    }
    return evasive(r, now, CHECK_CONDITION, 5, 0x2500); /* how many targets say "no such unit" to INQUIRY */
}

static enum recheck_verdict take_capacity(struct iscsibe_recheck *r, unsigned status, const uint8_t *data, size_t len) {
    struct iscsibe_capacity capacity;
    bool ten = r->step == STEP_CAPACITY10;

    if (status == GOOD && (ten ? iscsibe_parse_capacity10(data, len, &capacity)
                               : iscsibe_parse_capacity16(data, len, &capacity))) {
        r->step = STEP_CAPACITY10;
        next_step(r);
        return judge_size(r, &capacity);
    }
    if (ten) return lost(r, "LUN unknown", "the LUN does not say how large it is any more (READ CAPACITY)");
    r->step = STEP_CAPACITY10;
    return RECHECK_MORE;
}

static enum recheck_verdict take_seal(struct iscsibe_recheck *r, unsigned status, const uint8_t *data, size_t len) {
    size_t within = (size_t)(r->seal_at % r->unit->block);
    char text[240];

    if (status != GOOD || len < within + r->seal_len)
        return lost(r, "LUN unknown", "what was written to the LUN cannot be read back (READ); nothing more is written");
    if (memcmp(data + within, r->seal, r->seal_len) == 0) {
        next_step(r);
        return RECHECK_MORE;
    }
    if (exchanged(r)) return RECHECK_LOST;
    snprintf(text, sizeof text,
             "the LUN is another object now, by the same name: the record of who writes is not in it, or was overwritten; %s",
             harm(r));
    return lost(r, "LUN exchanged", text);
}

static enum recheck_verdict take(struct iscsibe_recheck *r, int64_t now, unsigned status, const uint8_t *data,
                                 size_t len) {
    switch (r->step) {
    case STEP_INQUIRY:
        return take_inquiry(r, now, status, data, len);
    case STEP_VPD83:
        r->n83 = keep_page(r->vpd83, sizeof r->vpd83, status, data, len);
        break;
    case STEP_VPD80:
        r->n80 = keep_page(r->vpd80, sizeof r->vpd80, status, data, len);
        break;
    case STEP_SEAL:
        return take_seal(r, status, data, len);
    default:
        return take_capacity(r, status, data, len);
    }
    next_step(r);
    return RECHECK_MORE;
}

enum recheck_verdict iscsibe_recheck_answer(struct iscsibe_recheck *r, int64_t now, unsigned status, unsigned key,
                                            unsigned ascq, const uint8_t *data, size_t len) {
    r->out = false;
    if (r->stale) {
        r->stale = false;
        return RECHECK_MORE;
    }
    if (iscsibe_again_kind(status, key, ascq) != AGAIN_NOT ||
        (status == CHECK_CONDITION && key == 5 && ascq == 0x2500))
        return evasive(r, now, status, key, ascq);
    if (status != GOOD && status != CHECK_CONDITION) {
        char text[120];
        snprintf(text, sizeof text, "the LUN does not say who it is any more (status %02Xh)", status);
        return lost(r, "LUN unknown", status == NO_STATUS ? "the target could not ask the LUN who it is" : text);
    }
    enum recheck_verdict v = take(r, now, status, data, len);
    return v == RECHECK_MORE && r->step == STEP_END ? verdict(r) : v;
}

enum recheck_verdict iscsibe_recheck_late(struct iscsibe_recheck *r, int64_t now) {
    char text[240];

    if (now < r->deadline) return RECHECK_MORE;
    snprintf(text, sizeof text, "the LUN did not say who it is within %" PRId64 " ms (timeout=)%s%s",
             (int64_t)(r->timeout / NS_PER_MS), *r->last ? ", but " : "", r->last);
    return lost(r, "LUN gone", text);
}

/* ---- asking ---- */

void iscsibe_recheck_ask(struct iscsibe_recheck *r, int64_t now, int64_t timeout, const char *why) {
    bool doubted = r->asking && !r->routine;

    if (!doubted) {
        r->deadline = now + timeout;
        r->timeout = timeout;
        snprintf(r->why, sizeof r->why, "%s", why ? why : "");
        r->last[0] = '\0';
    }
    r->asking = true;
    r->routine = !why;
    r->stale = r->out;
    r->answers = 0;
    r->due = now;
    r->n83 = r->n80 = 0;
    r->step = STEP_INQUIRY;
    if (by_vpd83(r)) next_step(r);
}

void iscsibe_recheck_seal(struct iscsibe_recheck *r, const struct seal *seal) {
    uint32_t block = r->unit->block;

    r->seal_len = 0;
    if (!seal->len || seal->len > sizeof r->seal || !block || block > RECHECK_ALLOC) return;
    if (seal->offset % block + seal->len > block) return;
    r->seal_at = seal->offset;
    r->seal_len = seal->len;
    memcpy(r->seal, seal->bytes, seal->len);
}

bool iscsibe_recheck_can_ask(const struct iscsibe_recheck *r) {
    return r->unit && (*r->unit->identity[0] || r->seal_len);
}

bool iscsibe_recheck_due(const struct iscsibe_recheck *r, int64_t now) {
    return r->asking && !r->out && now >= r->due;
}

unsigned iscsibe_recheck_cdb(struct iscsibe_recheck *r, uint8_t cdb[16]) {
    static const uint8_t vpd[] = { [STEP_VPD83] = 0x83, [STEP_VPD80] = 0x80 };

    memset(cdb, 0, 16);
    r->out = true;
    switch (r->step) {
    case STEP_INQUIRY:
        cdb[0] = 0x12;
        cdb[4] = 96;
        return 96;
    case STEP_VPD83:
    case STEP_VPD80:
        cdb[0] = 0x12;
        cdb[1] = 0x01;
        cdb[2] = vpd[r->step];
        cdb[3] = RECHECK_ALLOC >> 8;
        return RECHECK_ALLOC;
    case STEP_SEAL: {
        uint64_t lba = r->seal_at / r->unit->block;
        cdb[0] = 0x88; /* READ(16) of one block */
        for (unsigned i = 0; i < 8; i++) cdb[2 + i] = (uint8_t)(lba >> (56 - 8 * i));
        cdb[13] = 1;
        return r->unit->block;
    }
    case STEP_CAPACITY16:
        cdb[0] = 0x9e;
        cdb[1] = 0x10;
        cdb[13] = 32;
        return 32;
    default:
        cdb[0] = 0x25;
        return 8;
    }
}
