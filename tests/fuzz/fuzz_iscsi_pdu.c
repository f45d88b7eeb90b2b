/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What an iSCSI target may send to the native engine, which has no reason to trust it: during a login, or to a session
 * with requests out. Besides memory errors it looks for broken promises: a request that comes back twice, bytes outside
 * of a request's buffer, a lost session that keeps requests, a password in an error.
 *
 * First byte: 1 header digests, 2 data digests, 4 login (8 with CHAP, 16 mutual, 32 for discovery), 64 a list of LUNs. Second
 * byte: the stream comes in
 * pieces of so many bytes (0: all at once). Needs, besides what every fuzz target is linked with, these of
 * backends/iscsi: iscsi_chap, iscsi_context, iscsi_crc32c, iscsi_done, iscsi_hash, iscsi_in, iscsi_keys, iscsi_login,
 * iscsi_luns, iscsi_out, iscsi_wire, iscsi_words; and of backends/net: sock. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "backends/iscsi/iscsi_login.h"
#include "backends/iscsi/iscsi_native.h"

#define DEPTH 8u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int promise) {
    if (!promise) abort();
}

/* ---- login ---- */

static void login(unsigned mode, const uint8_t *p, size_t size) {
    static const struct iscsibe_offer offer = { .immediate_data = true, .max_burst = 65536, .first_burst = 4096,
                                                .max_recv = 65536, .max_r2t = 2 };
    static const uint8_t isid[6] = { 0x80 }, challenge[CHALLENGE_SIZE] = { 1 };
    const struct iscsibe_credentials who = { "iqn.a:a", mode & 32 ? "" : "iqn.b:b", mode & 8 ? "joe" : "", mode & 8 ? "0penSesame" : "",
                                             mode & 16 ? "tom" : "", mode & 16 ? "0therSesame" : "" };
    struct iscsibe_talk *t = malloc(sizeof *t);
    enum iscsibe_talk_next next = TALK_SEND;
    struct err err = { .msg = "" };
    bool told = memmem(p, size, "Sesame", 6) != NULL; /* then it may well be quoted */

    require(t != NULL);
    iscsibe_talk_begin(t, &who, &offer, isid, challenge, 5);
    while (next == TALK_SEND && size >= ISCSI_BHS) {
        size_t len = iscsiw_get24(p + AT_LENGTH), padded = len + iscsiw_padding((uint32_t)len);
        require(t->out_len >= ISCSI_BHS && t->out_len <= sizeof t->out && t->out_len % 4 == 0);
        if (len > size - ISCSI_BHS) break;
        uint8_t *segment = malloc(len ? len : 1);
        require(segment != NULL);
        memcpy(segment, p + ISCSI_BHS, len);
        next = iscsibe_talk_answer(t, p, segment, len, &err);
        free(segment);
        if (padded > size - ISCSI_BHS) padded = size - ISCSI_BHS;
        p += ISCSI_BHS + padded;
        size -= ISCSI_BHS + padded;
    }
    if (next == TALK_DONE)
        require(t->terms.value[KEY_FIRST_BURST] <= t->terms.value[KEY_MAX_BURST] && t->terms.target_max_recv >= 512 &&
                t->terms.value[KEY_MAX_R2T] >= 1);
    if (next == TALK_FAILED) require(err.msg[0] && (told || !strstr(err.msg, "Sesame")));
    free(t);
}

/* ---- REPORT LUNS ---- */

static void list_of_luns(const uint8_t *p, size_t size) {
    uint64_t wire = 0;
    char words[64];
    unsigned lun = size >= 10 ? (unsigned)p[8] << 8 | p[9] : 0;
    uint8_t *list = malloc(size ? size : 1); /* exactly so long that reading beyond it is seen */

    require(list != NULL);
    memcpy(list, p, size);
    unsigned found = iscsibe_luns_find(list, size, lun, &wire);
    require(found <= size / 8 && (found || wire == 0));
    iscsibe_luns_words(list, size, words, sizeof words);
    require(strlen(words) < sizeof words);
    free(list);
}

/* ---- a session ---- */

struct bench {
    struct context *c;
    struct kinds kinds;
    struct clock_virtual clock;
    struct request request[DEPTH];
    bool lent[DEPTH];
    struct completion done[DEPTH];
};

static void submit(struct bench *b) {
    static const struct {
        enum io_op op;
        uint32_t len;
    } as[DEPTH] = { { IO_READ, 4096 }, { IO_READ, 512 },   { IO_WRITE, 8192 }, { IO_WRITE, 512 },
                    { IO_FLUSH, 0 },   { IO_READ, 40960 }, { IO_WRITE, 4096 }, { IO_WRITE, 40960 } };
    struct request *list[DEPTH];
    unsigned n = 0;
    for (unsigned i = 0; i < DEPTH; i++) {
        struct request *r = &b->request[i];
        if (b->lent[i]) continue;
        free(r->buf);
        *r = (struct request){ .buf = calloc(1, as[i].len ? as[i].len : 1),
                               .len = as[i].len,
                               .slot = i,
                               .op = (uint8_t)as[i].op,
                               .sync = i == 6 ? SYNC_DSYNC : SYNC_NONE };
        require(r->buf != NULL);
        list[n++] = r;
    }
    n = iscsibe_out_commands(b->c, list, n);
    require(iscsibe_out_sent(b->c, b->c->out.total, list, n) == n);
    for (unsigned i = 0; i < n; i++) b->lent[list[i]->slot] = true;
}

static void reap(struct bench *b) {
    for (unsigned i = 0; i < b->c->reply_n; i++) {
        const struct completion *d = &b->done[i];
        unsigned slot = d->request->slot;
        require(slot < DEPTH && d->request == &b->request[slot] && b->lent[slot]);
        require(d->result <= (int64_t)d->request->len || d->request->op == IO_FLUSH);
        require(d->result >= 0 || d->kind < b->kinds.n);
        b->lent[slot] = false;
    }
    b->c->reply_n = 0;
}

/* What is due is sent, with all its payload looked at. */
static void send_all(struct bench *b) {
    struct context *c = b->c;
    for (unsigned i = 0; i < DEPTH; i++) {
        if (!c->slots[i].t_retry) continue;
        c->slots[i].t_retry = 0;
        c->retrying--;
        iscsibe_out_again(c, &c->slots[i]);
    }
    for (unsigned rounds = 0; !c->lost; rounds++) {
        c->age += NS_PER_SEC / 64;
        iscsibe_hold_work(c);
        if (c->lost) break;
        iscsibe_out_fill(c);
        if (c->out.n == 0) break;
        require(rounds < 10000);
        unsigned sum = 0;
        for (unsigned i = 0; i < c->out.n; i++)
            for (size_t k = 0; k < c->out.iov[i].iov_len; k++) sum += ((const uint8_t *)c->out.iov[i].iov_base)[k];
        require(sum != 1); /* so that the bytes are read */
        iscsibe_out_sent(c, c->out.total, NULL, 0);
    }
}

static void session(unsigned mode, size_t step, const uint8_t *p, size_t size) {
    struct iscsibe_terms terms = { .target_max_recv = 1024 };
    struct iscsibe_unit unit = { .identity = { "naa.6001405000000001" }, .size = 1 << 20, .block = 512, .vpd83 = true };
    struct bench *b = calloc(1, sizeof *b);
    struct err err;
    size_t have = 0;

    require(b != NULL);
    clock_virtual_init(&b->clock, 1);
    terms.value[KEY_HEADER_DIGEST] = mode & 1;
    terms.value[KEY_DATA_DIGEST] = (mode & 2) != 0;
    terms.value[KEY_IMMEDIATE_DATA] = 1;
    terms.value[KEY_FIRST_BURST] = 2048;
    terms.value[KEY_MAX_BURST] = 16384;
    terms.value[KEY_MAX_RECV] = 65536;
    terms.value[KEY_MAX_R2T] = 2;
    struct native_how how = { .fd = -1, .terms = &terms, .cmd_sn = 1, .max_cmd_sn = 20, .exp_stat_sn = 1, .block = 512,
                              .unit = &unit, .sync_op = 0x91, .deliver = true, .timeout = NS_PER_SEC };
    struct attach_how attach = { .depth = DEPTH, .clock = &b->clock.clock, .kinds = &b->kinds, .write = true };
    require((b->c = iscsibe_native_new(&how, &attach, &err)) != NULL);
    b->c->reply = b->done;
    b->c->reply_max = DEPTH;
    submit(b);
    if (step == 0) step = size;
    while (size && !b->c->lost) {
        size_t n = size < step ? size : step;
        uint8_t *buffer = malloc(have + n); /* exactly so long that reading beyond it is seen */
        require(buffer != NULL);
        if (have) memcpy(buffer, b->c->in_bytes, have);
        memcpy(buffer + have, p, n);
        size_t used = iscsibe_in_take(b->c, buffer, have + n, 2);
        require(used <= have + n);
        have = have + n - used;
        require(b->c->lost || have < ISCSI_HEADER_MAX);
        if (!b->c->lost) memcpy(b->c->in_bytes, buffer + used, have);
        free(buffer);
        p += n;
        size -= n;
        reap(b);
        if (!b->c->lost) {
            send_all(b);
            submit(b);
        }
    }
    reap(b);
    if (b->c->lost) {
        require(b->c->lent == 0 && b->c->lost_error > 0);
        for (unsigned i = 0; i < DEPTH; i++) require(!b->lent[i]);
    }
    for (unsigned i = 0; i < DEPTH; i++) free(b->request[i].buf);
    iscsibe_native_free(b->c);
    free(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) return 0;
    if (data[0] & 64) list_of_luns(data + 2, size - 2);
    else if (data[0] & 4) login(data[0], data + 2, size - 2);
    else session(data[0], data[1], data + 2, size - 2);
    return 0;
}
