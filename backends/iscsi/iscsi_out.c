/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes the PDUs that go to the target. Headers, digests and padding stand one behind the other in out.bytes, payloads
 * are referred to where the requests have them; the iovs say in which order they go. */
#include "backends/iscsi/iscsi_crc32c.h"
#include "backends/iscsi/iscsi_facts.h"
#include "backends/iscsi/iscsi_native.h"

#define FUA      0x08
#define AT_LBA   (AT_CDB + 2)
#define AT_COUNT (AT_CDB + 10)
#define SYNC_10  0x35
#define PDU_IOVS 3u  /* header, payload, padding and digest */
#define PDU_BYTES (ISCSI_BHS + 4 + 3 + 4)

static inline bool room(const struct native_out *o) {
    return o->n + PDU_IOVS <= NATIVE_OUT_IOVS && o->used + PDU_BYTES <= NATIVE_OUT_BYTES;
}

static inline uint8_t *grab(struct native_out *o, unsigned n) {
    uint8_t *p = o->bytes + o->used;
    if (o->open) o->iov[o->n - 1].iov_len += n;
    else o->iov[o->n++] = (struct iovec){ .iov_base = p, .iov_len = n };
    o->open = true;
    o->used += n;
    o->total += n;
    return p;
}

static inline uint8_t *header(struct context *c, const uint8_t like[ISCSI_BHS]) {
    uint8_t *h = grab(&c->out, ISCSI_BHS + (c->header_digest ? 4u : 0));
    memcpy(h, like, ISCSI_BHS);
    iscsiw_put32(h + AT_EXP_STAT_SN, c->exp_stat_sn);
    return h;
}

/* The header is as it will go. */
static inline void seal(struct context *c, uint8_t *h) {
    if (__builtin_expect(c->header_digest, 0)) iscsiw_put_digest(h + ISCSI_BHS, iscsibe_crc32c(0, h, ISCSI_BHS));
}

static void tail(struct context *c, const uint8_t *data, uint32_t len) {
    uint32_t padding = iscsiw_padding(len);
    uint8_t *p = grab(&c->out, padding + (c->data_digest ? 4 : 0));
    memset(p, 0, padding);
    if (c->data_digest) iscsiw_put_digest(p + padding, iscsibe_crc32c(iscsibe_crc32c(0, data, len), p, padding));
}

/* The header so far, and its data segment. */
static inline void attach_data(struct context *c, uint8_t *h, const uint8_t *data, uint32_t len) {
    struct native_out *o = &c->out;
    iscsiw_put24(h + AT_LENGTH, len);
    seal(c, h);
    o->iov[o->n++] = (struct iovec){ .iov_base = (void *)(uintptr_t)data, .iov_len = len };
    o->open = false;
    o->total += len;
    if (__builtin_expect(c->data_digest | ((len & 3) != 0), 0)) tail(c, data, len);
}

/* ---- Data-Out ---- */

void iscsibe_out_data(struct context *c, struct native_slot *s, uint32_t ttt, uint32_t at, uint32_t len) {
    c->jobs[(c->job_first + c->job_n++) & c->job_mask] =
        (struct native_job){ .slot = s->itt & c->slot_mask, .itt = s->itt, .ttt = ttt, .at = at, .left = len };
}

static void put_data_out(struct context *c, struct native_slot *s, struct native_job *j) {
    uint32_t len = j->left < c->segment_max ? j->left : c->segment_max;
    uint8_t plain[ISCSI_BHS] = { ISCSI_DATA_OUT, len == j->left ? ISCSI_FINAL : 0 };
    uint8_t *h = header(c, plain);

    memcpy(h + AT_LUN, c->write_bhs + AT_LUN, 8);
    iscsiw_put32(h + AT_ITT, j->itt);
    iscsiw_put32(h + AT_TTT, j->ttt);
    iscsiw_put32(h + AT_DATA_SN, j->data_sn++);
    iscsiw_put32(h + AT_OFFSET, j->at);
    attach_data(c, h, (const uint8_t *)s->request->buf + j->at, len);
    s->batch = c->batch;
    s->moved += len;
    j->at += len;
    j->left -= len;
    c->counts.data_outs++;
}

static void put_jobs(struct context *c) {
    while (c->job_n && room(&c->out)) {
        struct native_job *j = &c->jobs[c->job_first & c->job_mask];
        struct native_slot *s = &c->slots[j->slot];
        bool alive = s->out && s->itt == j->itt; /* the target may answer a command whose data it did not wait for */
        if (alive) put_data_out(c, s, j);
        if (alive && j->left) continue;
        if (alive && j->ttt != ISCSI_NO_TAG) s->r2ts--;
        c->job_first++;
        c->job_n--;
    }
}

/* ---- commands ---- */

static inline void put_write(struct context *c, struct native_slot *s, const struct request *r, uint8_t *h) {
    uint32_t now = r->len < c->immediate_max ? r->len : c->immediate_max;
    uint32_t unasked = r->len < c->unsolicited_max ? r->len : c->unsolicited_max;

    if (r->sync >= SYNC_DSYNC && c->fua) {
        h[AT_CDB + 1] = FUA;
        c->counts.fua++;
    }
    s->moved = now;
    if (unasked > now) {
        h[AT_FLAGS] &= (uint8_t)~ISCSI_FINAL; /* Data-Out follows without being asked for */
        iscsibe_out_data(c, s, ISCSI_NO_TAG, now, unasked - now);
    }
    if (now) attach_data(c, h, r->buf, now);
    else seal(c, h);
}

static inline void begin(struct context *c, struct native_slot *s, uint8_t *h) {
    s->itt = (s->itt + c->slot_mask + 1) & 0x7fffffffu; /* never ISCSI_NO_TAG */
    s->moved = s->next_sn = s->r2ts = 0;
    s->batch = c->batch;
    s->age = c->age;
    s->out = true;
    iscsiw_put32(h + AT_ITT, s->itt);
    iscsiw_put32(h + AT_CMD_SN, c->cmd_sn++);
    c->counts.commands++;
}

static inline void address(struct context *c, const struct request *r, uint8_t *h) {
    iscsiw_put64(h + AT_LBA, r->offset >> c->block_shift);
    iscsiw_put32(h + AT_COUNT, r->len >> c->block_shift);
}

static void address_10(const struct context *c, const struct request *r, uint8_t *h) {
    uint64_t lba = r->offset >> c->block_shift;
    uint32_t blocks = r->len >> c->block_shift;
    if (lba > UINT32_MAX || blocks > UINT16_MAX) return; /* then everything */
    iscsiw_put32(h + AT_LBA, (uint32_t)lba);
    iscsiw_put16(h + AT_CDB + 7, blocks);
}

/* SYNCHRONIZE CACHE, of everything (no blocks means all) or of what a WRITE wrote. */
static void put_sync(struct context *c, struct native_slot *s, const struct request *r) {
    uint8_t *h = header(c, c->sync_bhs);
    begin(c, s, h);
    c->counts.caches_synced++;
    h[AT_CDB] = s->sync_op = c->sync_op;
    if (s->syncing && c->sync_op == SYNC_10) address_10(c, r, h);
    else if (s->syncing) address(c, r, h);
    seal(c, h);
}

/* The next command of the question who the unit is. */
static void put_check(struct context *c) {
    struct native_slot *s = &c->slots[c->depth];
    uint8_t *h = header(c, c->read_bhs);
    unsigned alloc = iscsibe_recheck_cdb(&c->check, h + AT_CDB);
    s->request = &c->check_request;
    begin(c, s, h);
    c->counts.commands--;
    c->counts.checks++;
    c->check_due = false;
    iscsiw_put32(h + AT_EXPECTED_LENGTH, alloc);
    seal(c, h);
}

static inline void put_command(struct context *c, struct native_slot *s, const struct request *r) {
    if (__builtin_expect(r->op == IO_FLUSH || s->syncing, 0)) {
        put_sync(c, s, r);
        return;
    }
    uint8_t *h = header(c, r->op == IO_READ ? c->read_bhs : c->write_bhs);
    begin(c, s, h);
    address(c, r, h);
    iscsiw_put32(h + AT_EXPECTED_LENGTH, r->len);
    if (r->op == IO_READ) seal(c, h);
    else put_write(c, s, r, h);
}

static inline bool refused(const struct context *c, const struct request *r) {
    if (__builtin_expect(r->op == IO_FLUSH, 0)) return c->stable || !c->sync_op;
    return ((r->offset | r->len) & c->block_mask) || r->len == 0 || (r->op == IO_WRITE && !c->may_write);
}

bool iscsibe_out_refused(const struct context *c, const struct request *r) {
    return refused(c, r);
}

/* How many commands there is room for, in `out` and in the command window. */
static unsigned command_room(const struct context *c) {
    unsigned iovs = (NATIVE_OUT_IOVS - c->out.n) / PDU_IOVS, bytes = (NATIVE_OUT_BYTES - c->out.used) / PDU_BYTES;
    uint32_t window = iscsibe_window_open(c) ? c->max_cmd_sn - c->cmd_sn + 1 : 0;
    unsigned least = iovs < bytes ? iovs : bytes;
    return window < least ? window : least;
}

unsigned iscsibe_out_commands(struct context *c, struct request *const *requests, unsigned n) {
    unsigned i = 0, most = command_room(c);
    while (i < n && i < most) {
        struct request *r = requests[i];
        struct native_slot *s = &c->slots[r->slot];
        if (__builtin_expect(refused(c, r), 0)) break;
        s->request = r;
        s->taken = c->age;
        s->syncing = false;
        s->answers = 0;
        c->starts[i++] = c->out.total;
        put_command(c, s, r);
        if (__builtin_expect(c->job_n != 0, 0)) { /* its data took up room, too, or did not find enough */
            put_jobs(c);
            most = c->job_n ? i : i + command_room(c);
        }
    }
    c->lent += i;
    return i;
}

/* Nothing of these has gone: as if they had never been here. Data-Out that could not be made yet is the last one's. */
static void take_back(struct context *c, struct request *const *requests, unsigned n) {
    for (unsigned i = 0; i < n; i++) {
        const struct request *r = requests[i];
        struct native_slot *s = &c->slots[r->slot];
        uint32_t now = r->len < c->immediate_max ? r->len : c->immediate_max;
        s->request = NULL;
        s->out = false;
        c->cmd_sn--;
        c->lent--;
        c->counts.commands--;
        if (r->op == IO_FLUSH) c->counts.caches_synced--;
        if (r->op == IO_WRITE && r->sync >= SYNC_DSYNC && c->fua) c->counts.fua--;
        if (r->op == IO_WRITE) c->counts.data_outs -= (s->moved - now + c->segment_max - 1) / c->segment_max;
    }
    c->job_n = 0;
}

/* Keeps the first `len` bytes. */
static void cut(struct native_out *o, size_t len) {
    size_t before = 0;
    unsigned i = o->first;
    o->total = len;
    for (; i < o->n && before + o->iov[i].iov_len < len; i++) before += o->iov[i].iov_len;
    if (i < o->n) o->iov[i].iov_len = len - before;
    o->n = i < o->n ? i + 1 : o->n;
    o->open = false;
}

static void skip(struct native_out *o, size_t sent) {
    o->total -= sent;
    o->gone += sent;
    while (sent >= o->iov[o->first].iov_len) sent -= o->iov[o->first++].iov_len;
    o->iov[o->first].iov_base = (char *)o->iov[o->first].iov_base + sent;
    o->iov[o->first].iov_len -= sent;
    o->open = false;
}

unsigned iscsibe_out_sent(struct context *c, size_t sent, struct request *const *requests, unsigned n) {
    struct native_out *o = &c->out;
    unsigned stay = n;

    if (__builtin_expect(sent < o->total && n > 0, 0)) {
        while (stay > 0 && c->starts[stay - 1] >= sent) stay--;
        if (stay < n) {
            cut(o, c->starts[stay]);
            take_back(c, requests + stay, n - stay);
        }
    }
    if (sent < o->total) {
        skip(o, sent);
        return stay;
    }
    o->first = o->n = o->used = 0;
    o->total = o->gone = 0;
    o->open = false;
    c->batch++;
    if (__builtin_expect(c->held != 0, 0)) iscsibe_done_held(c);
    return stay;
}

/* ---- what waits ---- */

void iscsibe_out_again(struct context *c, struct native_slot *s) {
    c->again[(c->again_first + c->again_n++) % c->depth] = s->itt & c->slot_mask;
}

/* Behind the first of them stand only others, and their data. */
void iscsibe_out_unsend(struct context *c) {
    struct native_out *o = &c->out;
    size_t from = o->gone + o->total;

    for (unsigned i = 0; o->n && i < c->depth; i++) {
        struct native_slot *s = &c->slots[i];
        if (!s->out || s->batch != c->batch || s->again_batch != c->batch || s->again_at < o->gone) continue;
        if (s->again_at < from) from = s->again_at;
        s->out = false;
        c->cmd_sn--;
        c->counts.commands--;
        if (s->syncing || s->request->op == IO_FLUSH) c->counts.caches_synced--;
        else if (s->request->op == IO_WRITE && s->request->sync >= SYNC_DSYNC && c->fua) c->counts.fua--;
        iscsibe_out_again(c, s);
    }
    if (from == o->gone + o->total) return;
    if (from > o->gone) {
        cut(o, from - o->gone);
        return;
    }
    o->first = o->n = o->used = 0;
    o->total = o->gone = 0;
    o->open = false;
    c->batch++;
    if (c->held) iscsibe_done_held(c);
}

static void put_nop(struct context *c) {
    const uint8_t plain[ISCSI_BHS] = { ISCSI_NOP_OUT | ISCSI_IMMEDIATE, ISCSI_FINAL };
    unsigned i = c->nop_first++ % NATIVE_NOPS;
    uint8_t *h = header(c, plain);
    c->nop_n--;
    memcpy(h + AT_LUN, c->nop[i].lun, 8);
    iscsiw_put32(h + AT_ITT, ISCSI_NO_TAG);
    iscsiw_put32(h + AT_TTT, c->nop[i].ttt);
    iscsiw_put32(h + AT_CMD_SN, c->cmd_sn);
    seal(c, h);
}

static void put_logout(struct context *c) {
    const uint8_t plain[ISCSI_BHS] = { ISCSI_LOGOUT | ISCSI_IMMEDIATE, ISCSI_FINAL }; /* reason 0: close the session */
    uint8_t *h = header(c, plain);
    iscsiw_put32(h + AT_ITT, 0x7ffffffeu); /* of no slot's generation that matters: nothing is out any more */
    iscsiw_put32(h + AT_CMD_SN, c->cmd_sn);
    seal(c, h);
    c->logout = false;
    c->logout_sent = true;
}

void iscsibe_out_fill(struct context *c) {
    while (c->nop_n && room(&c->out)) put_nop(c);
    put_jobs(c);
    if (c->check_due && c->job_n == 0 && room(&c->out) && iscsibe_window_open(c)) put_check(c);
    if (c->again_n && iscsibe_hold_told(c)) iscsibe_hold_follow(c);
    while (c->again_n && !(c->aside & ASIDE_HOLD) && c->job_n == 0 && room(&c->out) && iscsibe_window_open(c)) {
        struct native_slot *s = &c->slots[c->again[c->again_first++ % c->depth]];
        c->again_n--;
        s->again_batch = c->batch;
        s->again_at = c->out.gone + c->out.total;
        put_command(c, s, s->request);
        put_jobs(c);
    }
    if (c->logout && c->job_n == 0 && room(&c->out)) put_logout(c);
}
