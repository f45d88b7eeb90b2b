/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The target's side of iSCSI, for tests of the native engine: PDUs as bytes, and a session without a socket. */
#ifndef TESTS_UNIT_ISCSI_PDUS_H
#define TESTS_UNIT_ISCSI_PDUS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/iscsi/iscsi_crc32c.h"
#include "backends/iscsi/iscsi_native.h"

#define PDUS_STRIDE 65536u

/* ---- PDUs from the target ---- */

struct pdus {
    uint8_t bytes[5u << 18];
    size_t len;
    bool header_digest, data_digest;
    uint32_t stat_sn, exp_cmd_sn, max_cmd_sn;
};

/* Adds a PDU; its header, for what is to be changed before pdus_seal(). */
static inline uint8_t *pdus_add(struct pdus *p, uint8_t opcode, uint8_t flags, uint32_t itt) {
    uint8_t *h = p->bytes + p->len;
    memset(h, 0, ISCSI_BHS);
    h[0] = opcode;
    h[1] = flags;
    iscsiw_put32(h + AT_ITT, itt);
    iscsiw_put32(h + AT_TTT, ISCSI_NO_TAG);
    iscsiw_put32(h + AT_STAT_SN, p->stat_sn);
    iscsiw_put32(h + AT_EXP_CMD_SN, p->exp_cmd_sn);
    iscsiw_put32(h + AT_MAX_CMD_SN, p->max_cmd_sn);
    return h;
}

/* The header stands: digest, data segment, padding, digest. */
static inline void pdus_seal(struct pdus *p, const void *data, uint32_t len) {
    uint8_t *h = p->bytes + p->len, *at = h + ISCSI_BHS;
    iscsiw_put24(h + AT_LENGTH, len);
    if (p->header_digest) {
        iscsiw_put_digest(at, iscsibe_crc32c(0, h, ISCSI_BHS));
        at += 4;
    }
    uint8_t *segment = at;
    if (len) memcpy(at, data, len);
    at += len;
    for (uint32_t i = 0; i < iscsiw_padding(len); i++) *at++ = 0;
    if (p->data_digest && len) {
        iscsiw_put_digest(at, iscsibe_crc32c(0, segment, (size_t)(at - segment)));
        at += 4;
    }
    p->len = (size_t)(at - p->bytes);
}

static inline void pdus_data_in(struct pdus *p, uint32_t itt, uint32_t sn, uint32_t at, const void *data, uint32_t len,
                                bool status) {
    uint8_t *h = pdus_add(p, ISCSI_DATA_IN, status ? ISCSI_FINAL | ISCSI_STATUS : 0, itt);
    iscsiw_put32(h + AT_DATA_SN, sn);
    iscsiw_put32(h + AT_OFFSET, at);
    if (status) p->stat_sn++;
    pdus_seal(p, data, len);
}

static inline void pdus_response(struct pdus *p, uint32_t itt, unsigned status, const void *sense, uint32_t len) {
    uint8_t *h = pdus_add(p, ISCSI_RESPONSE, ISCSI_FINAL, itt), segment[260];
    h[AT_STATUS] = (uint8_t)status;
    p->stat_sn++;
    if (len) {
        iscsiw_put16(segment, len);
        memcpy(segment + 2, sense, len);
    }
    pdus_seal(p, segment, len ? len + 2 : 0);
}

static inline void pdus_r2t(struct pdus *p, uint32_t itt, uint32_t ttt, uint32_t sn, uint32_t at, uint32_t len) {
    uint8_t *h = pdus_add(p, ISCSI_R2T, ISCSI_FINAL, itt);
    iscsiw_put32(h + AT_TTT, ttt);
    iscsiw_put32(h + AT_R2T_SN, sn);
    iscsiw_put32(h + AT_OFFSET, at);
    iscsiw_put32(h + AT_DESIRED, len);
    pdus_seal(p, NULL, 0);
}

static inline void pdus_nop_in(struct pdus *p, uint32_t ttt) {
    uint8_t *h = pdus_add(p, ISCSI_NOP_IN, ISCSI_FINAL, ISCSI_NO_TAG);
    iscsiw_put32(h + AT_TTT, ttt);
    pdus_seal(p, NULL, 0);
}

/* ---- a session ---- */

struct bench {
    struct context *c;
    struct kinds kinds;
    struct clock_virtual clock;
    unsigned char *buffers;
    struct request *request;       /* one per slot */
    struct request **list;
    struct completion *done;
    unsigned depth, n_done;
    struct iscsibe_terms terms;
    struct iscsibe_unit unit;
    struct native_how how;
};

static inline void bench_terms(struct iscsibe_terms *t, uint32_t first_burst, uint32_t max_burst, uint32_t segment) {
    memset(t, 0, sizeof *t);
    t->value[KEY_IMMEDIATE_DATA] = 1;
    t->value[KEY_FIRST_BURST] = first_burst;
    t->value[KEY_MAX_BURST] = max_burst;
    t->value[KEY_MAX_RECV] = 1u << 18;
    t->value[KEY_MAX_R2T] = 4;
    t->target_max_recv = segment;
}

/* CmdSN begins at 0x100, StatSN at 0x50; the window is wide open. `fd`: -1 for bytes alone. */
static inline void bench_begin(struct bench *b, unsigned depth, int fd) {
    struct err err;
    b->depth = depth;
    b->n_done = 0;
    memset(&b->kinds, 0, sizeof b->kinds);
    clock_virtual_init(&b->clock, 1000);
    b->buffers = calloc(depth, PDUS_STRIDE);
    b->request = calloc(depth, sizeof *b->request);
    b->list = calloc(depth, sizeof *b->list);
    b->done = calloc(depth, sizeof *b->done);
    b->how = (struct native_how){ .fd = fd, .terms = &b->terms, .cmd_sn = 0x100, .max_cmd_sn = 0x100 + 4095,
                                  .exp_stat_sn = 0x50, .lun = 3ULL << 48, .block = 512, .dpofua = true, .deliver = true,
                                  .unit = &b->unit, .sync_op = 0x91, .timeout = 30 * NS_PER_SEC };
    b->unit = (struct iscsibe_unit){ .size = 1 << 20, .block = 512 }; /* no name: nothing is asked unless in doubt */
    struct attach_how attach = { .depth = depth, .max_io = PDUS_STRIDE, .buffers = b->buffers, .stride = PDUS_STRIDE,
                                 .clock = &b->clock.clock, .kinds = &b->kinds, .write = true };
    if (fd >= 0) {
        assert_int_equal(iscsibe_native_start(&b->how, &attach, &b->c, &err), 0);
        return;
    }
    b->c = iscsibe_native_new(&b->how, &attach, &err);
    assert_non_null(b->c);
    b->c->reply = b->done; /* as if in a reap */
    b->c->reply_max = depth;
}

static inline void bench_free(struct bench *b) {
    free(b->buffers);
    free(b->request);
    free(b->list);
    free(b->done);
}

static inline void bench_end(struct bench *b) {
    iscsibe_native_free(b->c);
    bench_free(b);
}

static inline struct request *bench_request(struct bench *b, unsigned slot, enum io_op op, uint64_t offset,
                                            uint32_t len) {
    struct request *r = &b->request[slot];
    *r = (struct request){ .buf = b->buffers + slot * PDUS_STRIDE, .offset = offset, .len = len, .slot = slot,
                           .op = (uint8_t)op };
    if (op == IO_WRITE)
        for (uint32_t i = 0; i < len; i++) ((uint8_t *)r->buf)[i] = (uint8_t)(slot * 7 + i * 13 + (i >> 8));
    return r;
}

/* What stands in `out`, as one piece. */
static inline size_t bench_unsent(const struct bench *b, uint8_t *bytes, size_t room) {
    size_t n = 0;
    const struct native_out *o = &b->c->out;
    for (unsigned i = o->first; i < o->n; i++) {
        assert_true(n + o->iov[i].iov_len <= room);
        memcpy(bytes + n, o->iov[i].iov_base, o->iov[i].iov_len);
        n += o->iov[i].iov_len;
    }
    assert_int_equal(n, o->total);
    return n;
}

/* Builds the commands of slots 0 .. n-1, and lets all of `out` go. */
static inline void bench_send(struct bench *b, unsigned n) {
    for (unsigned i = 0; i < n; i++) b->list[i] = &b->request[i];
    assert_int_equal(iscsibe_out_commands(b->c, b->list, n), n);
    assert_int_equal(iscsibe_out_sent(b->c, b->c->out.total, b->list, n), n);
}

static inline uint32_t bench_itt(const struct bench *b, unsigned slot) {
    return b->c->slots[slot].itt;
}

static inline const char *bench_kind(const struct bench *b, unsigned i) {
    return b->kinds.kind[b->c->reply[i].kind].name;
}

#endif
