/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/nfs/nfs_wire.h"

#include <stdarg.h>
#include <stdio.h>

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

#define LAST_FRAGMENT 0x80000000u
enum { CALL, REPLY };
enum { ACCEPTED, DENIED };
enum { RPC_MISMATCH, AUTH_ERROR };
#define AUTH_NONE 0u
#define AUTH_SYS 1u
#define RPC_VERSION 2u
#define NFS_PROGRAM_NUMBER 100003u
#define NFS_V3 3u

#define VERF_MAX 400u
#define ATTR_LEN 84u                /* fattr3 */
#define WCC_ATTR_LEN 24u
#define ACCEPT_STAT_MAX 5u

static inline uint32_t get32(const unsigned char *p) {
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return __builtin_bswap32(v);
}

static inline uint64_t get64(const unsigned char *p) {
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return __builtin_bswap64(v);
}

/* ---- calls ---- */

static unsigned char *add32(unsigned char *p, uint32_t v) {
    nfswire_put32(p, v);
    return p + 4;
}

static unsigned char *add_opaque(unsigned char *p, const void *bytes, uint32_t len) {
    p = add32(p, len);
    memset(p, 0, len + nfswire_pad(len));
    memcpy(p, bytes, len);
    return p + len + nfswire_pad(len);
}

static void make_template(struct nfswire_template *t, enum nfswire_op op, const struct nfswire_who *who) {
    static const uint32_t procedure[NFSWIRE_OPS] = { [NFSWIRE_READ] = 6, [NFSWIRE_WRITE] = 7, [NFSWIRE_COMMIT] = 21,
                                                     [NFSWIRE_GETATTR] = 1, [NFSWIRE_NULL] = 0 };
    static const uint32_t words[NFSWIRE_OPS] = { [NFSWIRE_READ] = 3, [NFSWIRE_WRITE] = 5, [NFSWIRE_COMMIT] = 3 };
    uint32_t name = (uint32_t)strlen(who->machine);
    unsigned char *p = t->bytes;

    memset(t, 0, sizeof *t);
    p = add32(p, 0);        /* record mark, below */
    p = add32(p, 0);        /* xid */
    p = add32(p, CALL);
    p = add32(p, RPC_VERSION);
    p = add32(p, NFS_PROGRAM_NUMBER);
    p = add32(p, NFS_V3);
    p = add32(p, procedure[op]);
    if (op == NFSWIRE_NULL) { /* asks who is there, as nobody in particular */
        p = add32(p, AUTH_NONE);
        p = add32(p, 0);
    } else {
        p = add32(p, AUTH_SYS);
        p = add32(p, 4 + 4 + name + nfswire_pad(name) + 4 + 4 + 4 + 4 * who->n_groups);
        p = add32(p, 0); /* stamp */
        p = add_opaque(p, who->machine, name);
        p = add32(p, who->uid);
        p = add32(p, who->gid);
        p = add32(p, who->n_groups);
        for (unsigned i = 0; i < who->n_groups; i++) p = add32(p, who->groups[i]);
    }
    p = add32(p, AUTH_NONE); /* verifier ... */
    p = add32(p, 0);         /* ... of no bytes */
    if (op != NFSWIRE_NULL) p = add_opaque(p, who->fh, who->fh_len);
    t->offset_at = (unsigned)(p - t->bytes);
    t->len = t->offset_at + 4 * words[op];
    nfswire_put32(t->bytes, LAST_FRAGMENT | (t->len - 4));
}

void nfswire_templates(struct nfswire_template t[NFSWIRE_OPS], const struct nfswire_who *who) {
    for (unsigned op = 0; op < NFSWIRE_OPS; op++) make_template(&t[op], (enum nfswire_op)op, who);
}

void nfswire_calls_init(struct nfswire_call *calls, uint32_t mask, uint32_t seed) {
    for (uint32_t slot = 0; slot <= mask; slot++) {
        memset(&calls[slot], 0, sizeof calls[slot]);
        calls[slot].slot = slot;
        calls[slot].xid = calls[slot].base = (seed & ~mask) | slot;
        calls[slot].where = NFSWIRE_NOWHERE;
    }
}

/* ---- replies: the header ---- */

void nfswire_init(struct nfswire *w, struct nfswire_call *calls, uint32_t mask, uint16_t where, uint32_t max_io) {
    memset(w, 0, sizeof *w);
    w->calls = calls;
    w->mask = mask;
    w->where = where;
    w->record_max = NFSWIRE_HEAD_MAX + max_io + 3;
    w->state = NFSWIRE_AT_MARK;
    w->after_mark = NFSWIRE_IN_HEAD;
}

static int bad(struct nfswire *w, const char *fmt, ...) __attribute__((cold, format(printf, 2, 3)));
static int bad(struct nfswire *w, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(w->why, sizeof w->why, fmt, ap);
    va_end(ap);
    w->state = NFSWIRE_BROKEN;
    w->record = 1; /* usual() must not begin anew */
    w->at = w->end;
    return -1;
}

/* The header is read as far as it must be there; a caller with less is told how much that is, byte for byte, so that
 * nothing of the data is ever taken for header. */
#define NEED(n_bytes)                          \
    do {                                       \
        if (UNLIKELY(n < (n_bytes))) {         \
            w->need = (unsigned)(n_bytes);     \
            return 0;                          \
        }                                      \
    } while (0)

static int wrong(struct nfswire_reply *r, unsigned used, const char *why) {
    r->verdict = NFSWIRE_WRONG;
    r->why = why;
    return (int)used;
}

/* No such call is out on this connection. A call that had its reply may get it again, which is skipped; anything else
 * has no place on the wire. 0: skip. */
static __attribute__((cold)) int not_out(struct nfswire *w, uint32_t xid) {
    const struct nfswire_call *call = &w->calls[xid & w->mask];
    if (call->xid == xid && call->where == NFSWIRE_SENDING)
        return bad(w, "a reply to a call that was not sent completely (xid %08x)", xid);
    if (call->xid == xid && call->where != NFSWIRE_NOWHERE)
        return bad(w, "a reply on another connection than its call (xid %08x)", xid);
    if (call->xid - xid < call->xid - call->base) return 0;
    return bad(w, "a reply to a call that was never sent (xid %08x)", xid);
}

/* "attributes follow", and the attributes: moves *at behind them. */
#define ATTRIBUTES(length)                                                                \
    do {                                                                                  \
        NEED(at + 4);                                                                     \
        uint32_t follow = get32(p + at);                                                  \
        if (UNLIKELY(follow > 1)) return bad(w, "%u for \"attributes follow\"", follow);  \
        at += 4 + (follow ? (length) : 0);                                                \
    } while (0)

static inline int decode_read(struct nfswire *w, const unsigned char *p, size_t n, unsigned at) {
    struct nfswire_reply *r = &w->reply;
    const struct nfswire_call *call = r->call;

    ATTRIBUTES(ATTR_LEN);
    NEED(at + 12);
    r->count = get32(p + at);
    r->eof = get32(p + at + 4) != 0;
    w->data_len = w->data_left = get32(p + at + 8);
    at += 12;
    if (UNLIKELY(w->data_left > w->record_max)) return bad(w, "READ with %u bytes of data", w->data_left);
    if (UNLIKELY(r->count != w->data_left)) return wrong(r, at, "READ's count differs from the length of its data");
    if (UNLIKELY(r->count > call->len)) return wrong(r, at, "READ brought more than was asked for");
    if (UNLIKELY(r->count != call->len)) r->verdict = NFSWIRE_SHORT;
    w->to = call->buf;
    w->keep = call->buf ? r->count : 0;
    return (int)at;
}

static inline int decode_write(struct nfswire *w, const unsigned char *p, size_t n, unsigned at) {
    struct nfswire_reply *r = &w->reply;

    ATTRIBUTES(WCC_ATTR_LEN);
    ATTRIBUTES(ATTR_LEN);
    NEED(at + 16);
    r->count = get32(p + at);
    r->committed = get32(p + at + 4);
    memcpy(r->verf, p + at + 8, sizeof r->verf);
    at += 16;
    if (UNLIKELY(r->count > r->call->len)) return wrong(r, at, "WRITE says that it wrote more than was sent");
    if (UNLIKELY(r->committed > NFSWIRE_FILE_SYNC))
        return wrong(r, at, "WRITE answered with a stability that does not exist");
    if (UNLIKELY(r->count != r->call->len)) r->verdict = NFSWIRE_SHORT;
    return (int)at;
}

static int decode_commit(struct nfswire *w, const unsigned char *p, size_t n, unsigned at) {
    ATTRIBUTES(WCC_ATTR_LEN);
    ATTRIBUTES(ATTR_LEN);
    NEED(at + 8);
    memcpy(w->reply.verf, p + at, sizeof w->reply.verf);
    return (int)at + 8;
}

static int decode_getattr(struct nfswire *w, const unsigned char *p, size_t n, unsigned at) {
    struct nfswire_reply *r = &w->reply;
    NEED(at + ATTR_LEN);
    r->type = get32(p + at);
    r->size = get64(p + at + 20);
    r->fsid = get64(p + at + 44);
    r->fileid = get64(p + at + 52);
    return (int)(at + ATTR_LEN);
}

/* RFC 5531: the server did not even look at the arguments. */
static __attribute__((cold)) int decode_denied(struct nfswire *w, const unsigned char *p, size_t n) {
    struct nfswire_reply *r = &w->reply;
    NEED(16u);
    uint32_t reject = get32(p + 12);
    r->verdict = NFSWIRE_DENIED;
    r->status = reject << 16;
    if (reject == RPC_MISMATCH) return 16;
    if (reject != AUTH_ERROR) return bad(w, "a call denied for a reason %u that does not exist", reject);
    NEED(20u);
    r->status |= get32(p + 16) & 0xffffu;
    return 20;
}

/* Bytes of `p` that are header; 0: more are needed (w->need); -1: malformed. */
static int decode(struct nfswire *w, const unsigned char *p, size_t n) {
    struct nfswire_reply *r = &w->reply;

    NEED(12u);
    uint32_t xid = get32(p);
    if (UNLIKELY(get32(p + 4) != REPLY)) return bad(w, "message type %u where a reply (1) belongs", get32(p + 4));
    r->call = &w->calls[xid & w->mask];
    w->data_left = w->keep = 0;
    if (UNLIKELY(r->call->xid != xid || r->call->where != w->where)) {
        r->call = NULL;
        return not_out(w, xid) == 0 ? 12 : -1;
    }
    r->verdict = NFSWIRE_DONE;
    if (UNLIKELY(get32(p + 8) == DENIED)) return decode_denied(w, p, n);
    if (UNLIKELY(get32(p + 8) != ACCEPTED)) return bad(w, "reply status %u", get32(p + 8));
    NEED(20u);
    uint32_t verf = get32(p + 16);
    if (UNLIKELY(verf > VERF_MAX)) return bad(w, "a verifier of %u bytes (at most 400)", verf);
    unsigned at = 20 + verf + nfswire_pad(verf);
    NEED(at + 4);
    r->status = get32(p + at);
    at += 4;
    if (UNLIKELY(r->status != 0)) {
        if (r->status > ACCEPT_STAT_MAX) return bad(w, "accept status %u", r->status);
        r->verdict = NFSWIRE_NOT_DONE;
        return (int)at;
    }
    if (UNLIKELY(r->call->op == NFSWIRE_NULL)) return (int)at;
    NEED(at + 4);
    r->status = get32(p + at);
    at += 4;
    if (UNLIKELY(r->status != 0)) {
        r->verdict = NFSWIRE_STATUS;
        return (int)at;
    }
    if (LIKELY(r->call->op == NFSWIRE_READ)) return decode_read(w, p, n, at);
    if (LIKELY(r->call->op == NFSWIRE_WRITE)) return decode_write(w, p, n, at);
    return r->call->op == NFSWIRE_COMMIT ? decode_commit(w, p, n, at) : decode_getattr(w, p, n, at);
}

/* ---- replies: the record ---- */

/* What one step came to; GO_ON has no place among what the caller sees. */
#define GO_ON (-1)

static inline uint32_t within(const struct nfswire *w, uint32_t limit) {
    size_t n = (size_t)(w->end - w->at);
    return n < limit ? (uint32_t)n : limit;
}

/* A fragment is used up where more must follow, or the buffer is. */
static int out_of_bytes(struct nfswire *w, const char *in) {
    if (w->left) return NFSWIRE_MORE;
    if (w->last) {
        bad(w, "a record of %u bytes that ends within %s", w->record, in);
        return NFSWIRE_BAD;
    }
    w->after_mark = w->state;
    w->state = NFSWIRE_AT_MARK;
    return GO_ON;
}

static inline int step_mark(struct nfswire *w) {
    uint32_t mark;
    if (LIKELY(w->mark_n == 0 && w->end - w->at >= 4)) {
        mark = get32(w->at);
        w->at += 4;
    } else {
        while (w->mark_n < 4 && w->at != w->end) w->mark[w->mark_n++] = *w->at++;
        if (w->mark_n < 4) return NFSWIRE_MORE;
        w->mark_n = 0;
        mark = get32(w->mark);
    }
    w->last = (mark & LAST_FRAGMENT) != 0;
    w->left = mark & ~LAST_FRAGMENT;
    if (UNLIKELY(w->left > w->record_max - w->record)) {
        bad(w, "a record mark of %08x: no reply here has more than %u bytes", mark, w->record_max);
        return NFSWIRE_BAD;
    }
    w->record += w->left;
    w->state = w->after_mark;
    return GO_ON;
}

static inline int step_head(struct nfswire *w) {
    uint32_t n = within(w, w->left);
    int used;
    if (LIKELY(w->head_n == 0)) {
        used = decode(w, w->at, n);
        if (LIKELY(used > 0)) {
            w->at += used;
            w->left -= (uint32_t)used;
            w->state = w->data_left ? NFSWIRE_IN_DATA : NFSWIRE_IN_REST;
            return GO_ON;
        }
        if (used < 0) return NFSWIRE_BAD;
    }
    if (n > w->need - w->head_n) n = w->need - w->head_n;
    memcpy(w->head + w->head_n, w->at, n);
    w->at += n;
    w->left -= n;
    w->head_n += n;
    if (w->head_n < w->need) return out_of_bytes(w, "its header");
    used = decode(w, w->head, w->head_n);
    if (used < 0) return NFSWIRE_BAD;
    if (used == 0) return GO_ON; /* w->need has grown */
    w->head_n = 0;
    w->state = w->data_left ? NFSWIRE_IN_DATA : NFSWIRE_IN_REST;
    return GO_ON;
}

static inline int step_data(struct nfswire *w) {
    uint32_t n = within(w, w->left);
    if (n > w->data_left) n = w->data_left;
    uint32_t keep = n < w->keep ? n : w->keep;
    if (keep) {
        memcpy(w->to, w->at, keep);
        w->to += keep;
        w->keep -= keep;
    }
    w->at += n;
    w->left -= n;
    w->data_left -= n;
    if (w->data_left) return out_of_bytes(w, "READ's data");
    w->state = NFSWIRE_IN_REST;
    return GO_ON;
}

/* Padding, and what a server may have put behind: nothing of it matters, only where the record ends. */
static inline int step_rest(struct nfswire *w) {
    uint32_t n = within(w, w->left);
    w->at += n;
    w->left -= n;
    if (w->left) return NFSWIRE_MORE;
    if (UNLIKELY(!w->last)) {
        w->after_mark = NFSWIRE_IN_REST;
        w->state = NFSWIRE_AT_MARK;
        return GO_ON;
    }
    w->record = 0;
    w->after_mark = NFSWIRE_IN_HEAD;
    w->state = NFSWIRE_AT_MARK;
    if (UNLIKELY(!w->reply.call)) {
        w->strays++;
        return GO_ON;
    }
    w->reply.call->where = NFSWIRE_NOWHERE;
    return NFSWIRE_REPLY;
}

/* ---- the usual reply ---- */

static inline uint32_t raw32(const unsigned char *p) {
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline uint64_t raw64(const unsigned char *p) {
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* "attributes follow", 0 or 1 as it stands on the wire; anything else gives a length that no record has. */
static inline size_t follows(const unsigned char *p) {
    return get32(p);
}

/* A READ or WRITE that moved all that it was to, in one fragment that has arrived completely: nearly all replies of a load. Says the
 * same as the steps above would; whatever is not as usual in any way is left to them, untouched. */
static inline bool usual(struct nfswire *w) {
    const unsigned char *p = w->at;
    struct nfswire_reply *r = &w->reply;
    size_t n = (size_t)(w->end - p), at;

    if (w->record | w->mark_n) return false;
    if (n < 4 + 48) return false;
    size_t len = get32(p) ^ LAST_FRAGMENT;
    p += 4;
    if (len > n - 4 || len > w->record_max || len < 48) return false;
    struct nfswire_call *call = &w->calls[get32(p) & w->mask];
    if (call->xid != get32(p) || call->where != w->where) return false;
    if (raw64(p + 4) != __builtin_bswap64((uint64_t)REPLY << 32 | ACCEPTED)) return false;
    if (raw64(p + 16) | raw32(p + 24)) return false; /* no verifier, SUCCESS, NFS3_OK */
    if (call->op == NFSWIRE_READ) {
        at = follows(p + 28);
        if (at > 1 || (at = 32 + at * ATTR_LEN) + 12 > len) return false;
        uint32_t count = get32(p + at);
        if (raw32(p + at) != raw32(p + at + 8) || count != call->len || count > len - at - 12) return false;
        if (call->buf) memcpy(call->buf, p + at + 12, count);
        r->count = w->data_len = count;
    } else if (call->op == NFSWIRE_WRITE) {
        at = follows(p + 28);
        if (at > 1 || (at = 32 + at * WCC_ATTR_LEN) + 4 > len) return false;
        size_t after = follows(p + at);
        if (after > 1 || (at += 4 + after * ATTR_LEN) + 16 > len) return false;
        r->count = get32(p + at);
        r->committed = get32(p + at + 4);
        memcpy(r->verf, p + at + 8, sizeof r->verf);
        if (r->count != call->len || r->committed > NFSWIRE_FILE_SYNC) return false;
    } else {
        return false;
    }
    r->call = call;
    r->verdict = NFSWIRE_DONE;
    r->status = 0;
    call->where = NFSWIRE_NOWHERE;
    w->at = p + len;
    return true;
}

enum nfswire_got nfswire_next(struct nfswire *w) {
    int got;
    if (LIKELY(usual(w))) return NFSWIRE_REPLY;
    for (;;) {
        switch (w->state) {
        case NFSWIRE_AT_MARK:
            if (UNLIKELY((got = step_mark(w)) != GO_ON)) return (enum nfswire_got)got;
            if (UNLIKELY(w->state != NFSWIRE_IN_HEAD)) break;
            /* fall through */
        case NFSWIRE_IN_HEAD:
            if (UNLIKELY((got = step_head(w)) != GO_ON)) return (enum nfswire_got)got;
            if (UNLIKELY(w->state != NFSWIRE_IN_DATA)) break;
            /* fall through */
        case NFSWIRE_IN_DATA:
            if (UNLIKELY((got = step_data(w)) != GO_ON)) return (enum nfswire_got)got;
            if (UNLIKELY(w->state != NFSWIRE_IN_REST)) break;
            /* fall through */
        case NFSWIRE_IN_REST:
            if ((got = step_rest(w)) != GO_ON) return (enum nfswire_got)got;
            break;
        default:
            w->at = w->end;
            return NFSWIRE_BAD;
        }
    }
}

void nfswire_took(struct nfswire *w, size_t n) {
    w->to += n;
    w->keep -= (uint32_t)n;
    w->data_left -= (uint32_t)n;
    w->left -= (uint32_t)n;
    if (w->data_left == 0) w->state = NFSWIRE_IN_REST;
}
