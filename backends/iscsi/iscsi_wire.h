/* SPDX-License-Identifier: GPL-2.0-or-later */
/* iSCSI PDUs as they are on the wire (RFC 7143, section 11): numbers, offsets, and the parser of the stream that comes
 * from the target. Pure: no socket, no clock; what comes in may be anything. */
#ifndef BACKENDS_ISCSI_ISCSI_WIRE_H
#define BACKENDS_ISCSI_ISCSI_WIRE_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define ISCSI_BHS    48u          /* basic header segment */
#define ISCSI_NO_TAG 0xffffffffu
#define ISCSI_HEADER_MAX (ISCSI_BHS + 255 * 4 + 4) /* with additional header segments and digest */

enum {
    ISCSI_NOP_OUT = 0x00, ISCSI_COMMAND = 0x01, ISCSI_LOGIN = 0x03, ISCSI_TEXT = 0x04,
    ISCSI_DATA_OUT = 0x05, ISCSI_LOGOUT = 0x06,
    ISCSI_NOP_IN = 0x20, ISCSI_RESPONSE = 0x21, ISCSI_LOGIN_RESPONSE = 0x23, ISCSI_TEXT_RESPONSE = 0x24,
    ISCSI_DATA_IN = 0x25,
    ISCSI_LOGOUT_RESPONSE = 0x26, ISCSI_R2T = 0x31, ISCSI_ASYNC = 0x32, ISCSI_REJECT = 0x3f,
    ISCSI_OPCODE = 0x3f,          /* mask */
    ISCSI_IMMEDIATE = 0x40        /* beside the opcode: outside of the order of CmdSN */
};
enum {
    ISCSI_FINAL = 0x80, ISCSI_READ = 0x40, ISCSI_WRITE = 0x20, ISCSI_SIMPLE = 0x01, /* byte 1 of a command */
    ISCSI_TRANSIT = 0x80, ISCSI_CONTINUE = 0x40,                                    /* of a login */
    ISCSI_STATUS = 0x01, ISCSI_OVERFLOW = 0x04, ISCSI_UNDERFLOW = 0x02              /* of Data-In and SCSI Response */
};
/* Offsets in the header. */
enum {
    AT_FLAGS = 1, AT_RESPONSE = 2, AT_STATUS = 3, AT_AHS = 4, AT_LENGTH = 5, AT_LUN = 8, AT_ITT = 16, AT_TTT = 20,
    AT_EXPECTED_LENGTH = 20, AT_CMD_SN = 24, AT_STAT_SN = 24, AT_EXP_STAT_SN = 28, AT_EXP_CMD_SN = 28,
    AT_MAX_CMD_SN = 32, AT_CDB = 32, AT_DATA_SN = 36, AT_R2T_SN = 36, AT_EVENT = 36, AT_OFFSET = 40, AT_RESIDUAL = 44,
    AT_DESIRED = 44
};

static inline uint32_t iscsiw_get32(const uint8_t *p) {
    uint32_t v;
    memcpy(&v, p, 4);
    return be32toh(v);
}

static inline uint32_t iscsiw_get24(const uint8_t *p) {
    return (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
}

static inline uint32_t iscsiw_get16(const uint8_t *p) {
    return (uint32_t)p[0] << 8 | p[1];
}

static inline void iscsiw_put16(uint8_t *p, unsigned v) {
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

static inline void iscsiw_put24(uint8_t *p, uint32_t v) {
    p[0] = (uint8_t)(v >> 16);
    p[1] = (uint8_t)(v >> 8);
    p[2] = (uint8_t)v;
}

static inline void iscsiw_put32(uint8_t *p, uint32_t v) {
    v = htobe32(v);
    memcpy(p, &v, 4);
}

static inline void iscsiw_put64(uint8_t *p, uint64_t v) {
    v = htobe64(v);
    memcpy(p, &v, 8);
}

/* A digest is little-endian, unlike all else. */
static inline void iscsiw_put_digest(uint8_t *p, uint32_t crc) {
    crc = htole32(crc);
    memcpy(p, &crc, 4);
}

/* What follows a data segment of `len` bytes to make it a multiple of 4. */
static inline uint32_t iscsiw_padding(uint32_t len) {
    return -len & 3u;
}

/* Serial number arithmetic (RFC 1982): is a before b? */
static inline bool iscsiw_before(uint32_t a, uint32_t b) {
    return (int32_t)(a - b) < 0;
}

/* Sense key and code << 8 | qualifier from the data segment of a SCSI Response; both 0 where there is no sense data. */
void iscsiw_sense(const uint8_t *data, size_t len, unsigned *key, unsigned *ascq);

/* ---- the stream from the target ---- */

enum iscsiw_event {
    WIRE_MORE,           /* after these `used` bytes: what is left is the beginning of a header, which has to stay in
                            one piece, or nothing */
    WIRE_HEADER,         /* `used` bytes: header with additional segments and digest. They stand at the beginning */
    WIRE_DATA,           /* `used` bytes of the data segment */
    WIRE_END,            /* the PDU is complete, digests and all; `used` bytes of padding and digest */
    WIRE_TOO_LONG,       /* a data segment longer than what we declared: nonsense from here on */
    WIRE_HEADER_DIGEST,  /* mismatch */
    WIRE_DATA_DIGEST
};

struct iscsiw_in {
    bool header_digest, data_digest;  /* as negotiated */
    uint32_t max_data;                /* our MaxRecvDataSegmentLength */
    /* the parser's own; all zero between two PDUs */
    enum { WIRE_AT_HEADER, WIRE_AT_DATA, WIRE_AT_TAIL } at;
    uint32_t data_left;               /* of the data segment */
    uint32_t tail_left;               /* of padding and data digest */
    uint32_t digest_left;             /* of these, digest */
    uint32_t crc, digest;
};

/* The rare ways: digests, padding. */
enum iscsiw_event iscsiw_in_head_checked(struct iscsiw_in *w, const uint8_t *p, size_t header);
enum iscsiw_event iscsiw_in_tail(struct iscsiw_in *w, const uint8_t *p, size_t len, size_t *used);

/* `len` bytes of the data segment are at `p`, there or already taken to where they belong. */
void iscsiw_in_digest(struct iscsiw_in *w, const uint8_t *p, size_t len);
static inline void iscsiw_in_data(struct iscsiw_in *w, const uint8_t *p, uint32_t len) {
    if (w->data_digest) iscsiw_in_digest(w, p, len);
    w->data_left -= len;
    if (w->data_left == 0) w->at = WIRE_AT_TAIL;
}

/* One step over `len` bytes at `p`, where the stream goes on. */
static inline enum iscsiw_event iscsiw_in_step(struct iscsiw_in *w, const uint8_t *p, size_t len, size_t *used) {
    *used = 0;
    if (w->at == WIRE_AT_HEADER) {
        if (len < ISCSI_BHS) return WIRE_MORE;
        size_t header = ISCSI_BHS + (size_t)p[AT_AHS] * 4;
        uint32_t data = iscsiw_get24(p + AT_LENGTH);
        if (data > w->max_data) return WIRE_TOO_LONG;
        w->data_left = data;
        if (__builtin_expect(w->header_digest | w->data_digest | (header != ISCSI_BHS) | (data & 3), 0)) {
            header += w->header_digest ? 4 : 0;
            if (len < header) return WIRE_MORE;
            enum iscsiw_event e = iscsiw_in_head_checked(w, p, header);
            if (e != WIRE_HEADER) return e;
        }
        w->at = data ? WIRE_AT_DATA : WIRE_AT_TAIL;
        *used = header;
        return WIRE_HEADER;
    }
    if (w->at == WIRE_AT_DATA) {
        if (len == 0) return WIRE_MORE;
        *used = len < w->data_left ? len : w->data_left;
        iscsiw_in_data(w, p, (uint32_t)*used);
        return WIRE_DATA;
    }
    if (w->tail_left) return iscsiw_in_tail(w, p, len, used);
    w->at = WIRE_AT_HEADER;
    return WIRE_END;
}

#endif
