/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Takes in what the target sends. Nothing of it is believed: a PDU that does not fit what is out ends the session,
 * because after it no other can be trusted. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "backends/iscsi/iscsi_native.h"

#define LARGE NATIVE_LARGE

enum { ASYNC_SENSE = 0, ASYNC_LOGOUT = 1, ASYNC_DROP = 2, ASYNC_DROP_ALL = 3, ASYNC_NEGOTIATE = 4 };

__attribute__((format(printf, 2, 3))) static void malformed(struct context *c, const char *fmt, ...) {
    char text[200];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    iscsibe_native_lose(c, EPROTO, "malformed reply", text);
}

/* Every PDU from the target tells how far commands may go. */
static inline void window(struct context *c, const uint8_t *h, int64_t t) {
    uint32_t exp = iscsiw_get32(h + AT_EXP_CMD_SN), max = iscsiw_get32(h + AT_MAX_CMD_SN);
    if (iscsiw_before(max, exp - 1)) return; /* RFC 7143, 4.2.2.1: to be ignored */
    if (!iscsiw_before(c->max_cmd_sn, max)) return;
    c->max_cmd_sn = max;
    if (__builtin_expect(c->window_since != 0, 0) && iscsibe_window_open(c)) {
        if (t > c->window_since) c->counts.window_ns += (uint64_t)(t - c->window_since);
        c->window_since = 0;
    }
}

/* StatSN of a PDU that has one of its own. Over one TCP connection none gets lost: a gap is the target's own mistake,
 * to be counted, not a reason to stop. */
static inline void status_number(struct context *c, const uint8_t *h) {
    uint32_t sn = iscsiw_get32(h + AT_STAT_SN);
    if (__builtin_expect(sn != c->exp_stat_sn, 0)) {
        c->counts.gaps++;
        if (iscsiw_before(sn, c->exp_stat_sn)) return;
    }
    c->exp_stat_sn = sn + 1;
}

/* The slot whose command this PDU answers; NULL after losing the session. */
static inline struct native_slot *slot_of(struct context *c, const uint8_t *h) {
    uint32_t itt = iscsiw_get32(h + AT_ITT);
    struct native_slot *s = &c->slots[itt & c->slot_mask];
    if (__builtin_expect(s->itt == itt && s->out, 1)) return s;
    malformed(c, "opcode %02Xh, task tag %08Xh: no such command is out (a reply for the second time?)",
              h[0] & ISCSI_OPCODE, itt);
    return NULL;
}

/* ---- headers ---- */

static inline bool begin_data_in(struct context *c, const uint8_t *h) {
    struct native_slot *s = slot_of(c, h);
    uint32_t len = iscsiw_get24(h + AT_LENGTH), at = iscsiw_get32(h + AT_OFFSET), sn = iscsiw_get32(h + AT_DATA_SN);

    if (__builtin_expect(!s, 0)) return false;
    const struct request *r = s->request;
    if (__builtin_expect(r->op != IO_READ || at != s->moved || len > r->len - at || sn != s->next_sn, 0)) {
        if (r->op != IO_READ) malformed(c, "Data-In for a command that does not read");
        else
            malformed(c, "Data-In of %u bytes at %u of %u with DataSN %u, where %u bytes and DataSN %u have come",
                      (unsigned)len, (unsigned)at, (unsigned)r->len, (unsigned)sn, (unsigned)s->moved,
                      (unsigned)s->next_sn);
        return false;
    }
    s->next_sn++;
    s->moved += len;
    c->pdu_slot = s;
    c->sink = (uint8_t *)r->buf + at;
    c->sink_room = c->deliver || r == &c->check_request ? len : 0;
    c->large = len >= LARGE && c->deliver;
    return true;
}

static inline bool begin(struct context *c, const uint8_t *h, int64_t t) {
    memcpy(c->bhs, h, ISCSI_BHS);
    window(c, h, t);
    if (__builtin_expect((h[0] & ISCSI_OPCODE) == ISCSI_DATA_IN, 1)) return begin_data_in(c, h);
    c->sink = c->side;
    c->sink_room = sizeof c->side;
    return true;
}

/* ---- whole PDUs ---- */

static void r2t(struct context *c) {
    const uint8_t *h = c->bhs;
    struct native_slot *s = slot_of(c, h);
    uint32_t at = iscsiw_get32(h + AT_OFFSET), len = iscsiw_get32(h + AT_DESIRED), sn = iscsiw_get32(h + AT_R2T_SN);

    if (!s) return;
    const struct request *r = s->request;
    if (r->op != IO_WRITE || s->syncing) {
        malformed(c, "R2T for a command that does not write");
    } else if (len == 0 || len > c->burst_max || at > r->len || len > r->len - at || sn != s->next_sn ||
               iscsiw_get32(h + AT_TTT) == ISCSI_NO_TAG) {
        malformed(c, "R2T for %u bytes at %u of %u with R2TSN %u (MaxBurstLength is %u, R2TSN should be %u)",
                  (unsigned)len, (unsigned)at, (unsigned)r->len, (unsigned)sn, (unsigned)c->burst_max,
                  (unsigned)s->next_sn);
    } else if (s->r2ts >= c->r2t_max) {
        malformed(c, "more R2Ts at the same time than the %u that were agreed on", (unsigned)c->r2t_max);
    } else {
        s->next_sn++;
        c->counts.r2t_waits += s->r2ts == 0;
        s->r2ts++;
        c->counts.r2ts++;
        iscsibe_out_data(c, s, iscsiw_get32(h + AT_TTT), at, len);
    }
}

static void nop_in(struct context *c) {
    const uint8_t *h = c->bhs;
    if (iscsiw_get32(h + AT_ITT) != ISCSI_NO_TAG) {
        malformed(c, "NOP-In for a NOP-Out that was not sent");
        return;
    }
    c->counts.nops++;
    if (iscsiw_get32(h + AT_TTT) == ISCSI_NO_TAG) return; /* only tells the command window */
    if (c->nop_n == NATIVE_NOPS) {
        malformed(c, "the target asks faster whether we are there (NOP-In) than it takes the answers");
        return;
    }
    unsigned i = (c->nop_first + c->nop_n++) % NATIVE_NOPS;
    memcpy(c->nop[i].lun, h + AT_LUN, 8);
    c->nop[i].ttt = iscsiw_get32(h + AT_TTT);
}

static void async(struct context *c) {
    const uint8_t *h = c->bhs;
    status_number(c, h);
    c->counts.asyncs++;
    switch (h[AT_EVENT]) {
    case ASYNC_LOGOUT:
        if (!(c->aside & ASIDE_LEAVE)) c->leave_by = c->wall + iscsiw_get16(h + AT_EVENT + 6) * NS_PER_SEC;
        c->aside |= ASIDE_LEAVE;
        break;
    case ASYNC_DROP:
    case ASYNC_DROP_ALL:
        iscsibe_native_lose(c, ECONNRESET, "connection lost", "the target announced that it drops the connection");
        break;
    case ASYNC_SENSE:
        iscsibe_hold_doubt(c, "an asynchronous event");
        break;
    default:
        break; /* ASYNC_NEGOTIATE, the vendor's own: they change nothing here */
    }
}

static const char *reject_words(unsigned reason) {
    switch (reason) {
    case 0x02: return "data digest error";
    case 0x03: return "SNACK reject";
    case 0x04: return "protocol error";
    case 0x05: return "command not supported";
    case 0x06: return "too many immediate commands";
    case 0x07: return "task in progress";
    case 0x08: return "invalid data acknowledgement";
    case 0x09: return "invalid PDU field";
    case 0x0a: return "long operation";
    case 0x0c: return "waiting for logout";
    default: return "unknown reason";
    }
}

/* A rejected command gets no other answer; after anything else of ours was rejected, the target answers its command. */
static void reject(struct context *c, uint32_t len, int64_t t) {
    char text[100];
    struct native_slot *s = NULL;

    status_number(c, c->bhs);
    c->counts.rejects++;
    snprintf(text, sizeof text, "the target rejected a PDU: %s (%02Xh)", reject_words(c->bhs[AT_RESPONSE]),
             c->bhs[AT_RESPONSE]);
    if (len >= ISCSI_BHS && (c->side[0] & ISCSI_OPCODE) == ISCSI_COMMAND) {
        uint32_t itt = iscsiw_get32(c->side + AT_ITT), i = itt & c->slot_mask;
        if (c->slots[i].out && c->slots[i].itt == itt) s = &c->slots[i];
    }
    if (len >= ISCSI_BHS) iscsibe_hold_doubt(c, text);
    if (s && s->request == &c->check_request) {
        s->out = false;
        iscsibe_hold_answered(c, NULL, NULL, 0);
    } else if (s) {
        iscsibe_done_rejected(c, s, t, text);
    } if (len < ISCSI_BHS) {
        iscsibe_native_lose(c, EPROTO, "rejected", text); /* which one is not told */
    }
}

static void end_other(struct context *c, int64_t t) {
    uint32_t len = iscsiw_get24(c->bhs + AT_LENGTH);
    struct native_slot *s;

    if (len > sizeof c->side) len = sizeof c->side;
    switch (c->bhs[0] & ISCSI_OPCODE) {
    case ISCSI_RESPONSE:
        if (!(s = slot_of(c, c->bhs))) return;
        status_number(c, c->bhs);
        iscsibe_done_answered(c, s, c->bhs, c->side, len, t);
        break;
    case ISCSI_R2T: r2t(c); break;
    case ISCSI_NOP_IN: nop_in(c); break;
    case ISCSI_ASYNC: async(c); break;
    case ISCSI_REJECT: reject(c, len, t); break;
    case ISCSI_LOGOUT_RESPONSE:
        if (c->logout_sent) c->logged_out = true;
        else malformed(c, "an answer to a logout that was not asked for");
        break;
    default: malformed(c, "opcode %02Xh", c->bhs[0] & ISCSI_OPCODE);
    }
}

static inline void end(struct context *c, int64_t t) {
    if (__builtin_expect((c->bhs[0] & ISCSI_OPCODE) != ISCSI_DATA_IN, 0)) {
        end_other(c, t);
    } else if (c->bhs[AT_FLAGS] & ISCSI_STATUS) {
        status_number(c, c->bhs);
        iscsibe_done_answered(c, c->pdu_slot, c->bhs, NULL, 0, t);
    }
}

/* ---- the stream ---- */

static void broken_stream(struct context *c, enum iscsiw_event e, const uint8_t *p) {
    if (e == WIRE_TOO_LONG)
        malformed(c, "a PDU (opcode %02Xh) with %u bytes of data, more than the %u that we take", p[0] & ISCSI_OPCODE,
                  (unsigned)iscsiw_get24(p + AT_LENGTH), (unsigned)c->in.max_data);
    else
        iscsibe_native_lose(c, EBADMSG, "digest error",
                            e == WIRE_HEADER_DIGEST ? "CRC32C mismatch in the header of a PDU"
                                                    : "CRC32C mismatch in the data of a PDU");
}

static inline void pour(struct context *c, const uint8_t *p, size_t len) {
    size_t n = len < c->sink_room ? len : c->sink_room;
    memcpy(c->sink, p, n);
    c->sink += n;
    c->sink_room -= (uint32_t)n;
}

/* ---- the two PDUs that nearly all are, in one piece; 0: it is something else, which the slow way looks at ---- */

static inline struct native_slot *quick_slot(struct context *c, const uint8_t *p) {
    uint32_t itt = iscsiw_get32(p + AT_ITT);
    struct native_slot *s = &c->slots[itt & c->slot_mask];
    return s->itt == itt && s->out && iscsiw_get32(p + AT_STAT_SN) == c->exp_stat_sn ? s : NULL;
}

/* Data-In with everything that was asked for, and GOOD. */
static inline size_t quick_read(struct context *c, const uint8_t *p, size_t len, int64_t t) {
    static const uint8_t no_sn_no_offset[8];
    struct native_slot *s = quick_slot(c, p);
    if (!s) return 0;
    const struct request *r = s->request;
    /* below LARGE also means that the length and no additional header segment is what is compared */
    if (r->op != IO_READ || iscsiw_get32(p + AT_AHS) != r->len || r->len >= LARGE || len < ISCSI_BHS + r->len ||
        r->len > c->in.max_data || (s->moved | s->next_sn) || memcmp(p + AT_DATA_SN, no_sn_no_offset, 8) != 0)
        return 0;
    size_t used = ISCSI_BHS + r->len;
    c->large = false;
    c->exp_stat_sn++;
    window(c, p, t);
    if (c->deliver) memcpy(r->buf, p + ISCSI_BHS, r->len);
    native_give(c, s, t, r->len, 0, false);
    return used;
}

/* SCSI Response with GOOD to a WRITE that needs no more. */
static inline size_t quick_write(struct context *c, const uint8_t *p, int64_t t) {
    struct native_slot *s = quick_slot(c, p);
    if (!s) return 0;
    const struct request *r = s->request;
    bool durable = r->sync >= SYNC_DSYNC;
    if (r->op != IO_WRITE || s->moved < r->len || s->syncing || iscsiw_get32(p + AT_AHS) != 0 ||
        (durable && c->sync_behind) || (s->batch == c->batch && c->out.n))
        return 0;
    c->exp_stat_sn++;
    window(c, p, t);
    native_give(c, s, t, r->len, 0, c->stable || (durable && c->fua));
    return ISCSI_BHS;
}

static inline size_t quick(struct context *c, const uint8_t *p, size_t len, int64_t t) {
    static const uint8_t read[4] = { ISCSI_DATA_IN, ISCSI_FINAL | ISCSI_STATUS },
                         write[4] = { ISCSI_RESPONSE, ISCSI_FINAL };
    if (len < ISCSI_BHS) return 0;
    if (memcmp(p, read, 4) == 0) return quick_read(c, p, len, t);
    return memcmp(p, write, 4) == 0 ? quick_write(c, p, t) : 0;
}

size_t iscsibe_in_take(struct context *c, const uint8_t *p, size_t len, int64_t t) {
    const uint8_t *from = p, *stop = p + len;
    size_t used;

    while (!c->lost) {
        while (c->plain && c->in.at == WIRE_AT_HEADER && (used = quick(c, p, (size_t)(stop - p), t)) != 0) p += used;
        enum iscsiw_event e = iscsiw_in_step(&c->in, p, (size_t)(stop - p), &used);
        switch (e) {
        case WIRE_HEADER: begin(c, p, t); break;
        case WIRE_DATA: pour(c, p, used); break;
        case WIRE_END: end(c, t); break;
        case WIRE_MORE: return (size_t)(p - from) + used;
        default: broken_stream(c, e, p);
        }
        p += used;
    }
    return len;
}

void iscsibe_in_direct(struct context *c, uint32_t len) {
    iscsiw_in_data(&c->in, c->sink, len);
    c->sink += len;
    c->sink_room -= len;
}
