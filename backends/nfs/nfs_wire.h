/* SPDX-License-Identifier: GPL-2.0-or-later */
/* NFSv3 READ, WRITE, COMMIT, GETATTR and NULL on the wire (RFC 5531 record marking and call headers, RFC 1813). Pure: no
 * socket, no clock, no memory of its own.
 *
 * Calls are copies of a template in which a few words are patched. Replies are parsed as they come: every byte that is
 * fed is consumed, whatever the pieces are, so a receive buffer is always empty afterwards; READ's data goes straight
 * to where the call wants it. The usual reply, whose header lies in one piece, is decoded in place. */
#ifndef BACKENDS_NFS_NFS_WIRE_H
#define BACKENDS_NFS_NFS_WIRE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct request;

/* The first three as enum io_op. */
enum nfswire_op { NFSWIRE_READ, NFSWIRE_WRITE, NFSWIRE_COMMIT, NFSWIRE_GETATTR, NFSWIRE_NULL };
#define NFSWIRE_OPS 5

enum nfswire_stable { NFSWIRE_UNSTABLE, NFSWIRE_DATA_SYNC, NFSWIRE_FILE_SYNC };

/* ---- calls ---- */

#define NFSWIRE_CALL_MAX 320u       /* of a header, whatever machine name and file handle nfswire_templates() takes */

struct nfswire_template {
    unsigned len;                   /* of the header, record mark included */
    unsigned offset_at;             /* where the offset stands; WRITE: then count, stable, length of the data */
    unsigned char bytes[NFSWIRE_CALL_MAX];
};

struct nfswire_who {
    const char *machine;            /* at most 64 bytes */
    uint32_t uid, gid;
    const uint32_t *groups;
    unsigned n_groups;              /* at most 16 */
    const void *fh;
    unsigned fh_len;                /* at most 64 */
};

void nfswire_templates(struct nfswire_template t[NFSWIRE_OPS], const struct nfswire_who *who);

static inline void nfswire_put32(unsigned char *p, uint32_t v) {
    v = __builtin_bswap32(v);
    memcpy(p, &v, sizeof v);
}

static inline void nfswire_put64(unsigned char *p, uint64_t v) {
    v = __builtin_bswap64(v);
    memcpy(p, &v, sizeof v);
}

static inline uint32_t nfswire_pad(uint32_t len) {
    return -len & 3u;
}

/* Writes a call header (t->len bytes) to `to`, which has room for NFSWIRE_CALL_MAX: what lies behind the header is
 * undefined. After a WRITE's the data follows, and nfswire_pad(len) bytes of zero. */
static inline void nfswire_put(const struct nfswire_template *t, unsigned char *to, enum nfswire_op op, uint32_t xid,
                               uint64_t offset, uint32_t len, uint32_t stable) {
    /* Fixed lengths, which become a few moves, cost less than a call for the exact one. */
    if (__builtin_expect(t->len <= 128, 1)) memcpy(to, t->bytes, 128);
    else if (t->len <= 160) memcpy(to, t->bytes, 160);
    else memcpy(to, t->bytes, NFSWIRE_CALL_MAX);
    nfswire_put32(to + 4, xid);
    if (op > NFSWIRE_WRITE) return; /* COMMIT is always of the whole file: offset and count 0 */
    unsigned char *p = to + t->offset_at;
    nfswire_put64(p, offset);
    nfswire_put32(p + 8, len);
    if (op == NFSWIRE_READ) return;
    nfswire_put32(p + 12, stable);
    nfswire_put32(p + 16, len);
    nfswire_put32(to, 0x80000000u | (t->len - 4 + len + nfswire_pad(len)));
}

/* ---- calls that are out ---- */

/* In place of a connection's number: */
#define NFSWIRE_NOWHERE 0xffffu     /* no call is out */
#define NFSWIRE_SENDING 0xfffeu     /* the socket does not have all of it yet, so no reply can be true */

/* One entry for each slot of a context, in a table of a power of two. xid = generation << k | slot, so the entry is
 * found by a mask, and a reply of an earlier generation is known for what it is. One cache line holds all that a reply
 * needs. */
struct nfswire_call {
    uint32_t xid;                   /* of the call that is out, or of the last one */
    uint32_t base;                  /* the xid before the first one */
    uint32_t len;                   /* what was asked for; READ: room in buf */
    uint16_t where;                 /* the connection whose socket has the whole call, or one of the above */
    uint8_t op, stable;
    void *buf;                      /* READ: where the data goes; NULL: nowhere */
    /* the owner's */
    struct request *request;
    uint32_t slot;
    bool late;                      /* it does not end as usual: see struct nfsnative_late */
    int64_t sent;
    uint64_t written;
} __attribute__((aligned(64)));

/* `seed` gives the first generation: it differs between connections, because a server may keep replies by client and
 * xid, and answer a call of this run with the reply of an earlier one. */
void nfswire_calls_init(struct nfswire_call *calls, uint32_t mask, uint32_t seed);

/* ---- replies ---- */

#define NFSWIRE_HEAD_MAX 640u       /* a reply without its data: 28 + a verifier of 400 + two sets of attributes */

enum nfswire_verdict {
    NFSWIRE_DONE,                   /* NFS3_OK; READ, WRITE: all that was asked for */
    NFSWIRE_STATUS,                 /* status: nfsstat3 */
    NFSWIRE_DENIED,                 /* status: reject_stat << 16 | auth_stat */
    NFSWIRE_NOT_DONE,               /* status: accept_stat, not SUCCESS */
    NFSWIRE_WRONG,                  /* well-formed, and still no answer to this call: why */
    NFSWIRE_SHORT                   /* NFS3_OK; READ, WRITE: less than was asked for */
};

struct nfswire_reply {
    struct nfswire_call *call;
    enum nfswire_verdict verdict;
    uint32_t status;
    uint32_t count;                 /* READ, WRITE */
    bool eof;                       /* READ that is short: the file ends there */
    uint32_t committed;             /* WRITE */
    char verf[8];                   /* WRITE, COMMIT */
    uint32_t type;                  /* GETATTR */
    uint64_t size, fsid, fileid;    /* GETATTR */
    const char *why;
};

enum nfswire_got {
    NFSWIRE_MORE,                   /* all that was fed is consumed */
    NFSWIRE_REPLY,                  /* one whole reply, to its last byte: `reply`. Its call is out no more */
    NFSWIRE_BAD                     /* malformed: `why`; nothing can be parsed any more */
};

enum nfswire_state { NFSWIRE_AT_MARK, NFSWIRE_IN_HEAD, NFSWIRE_IN_DATA, NFSWIRE_IN_REST, NFSWIRE_BROKEN };

struct nfswire {
    /* set by nfswire_init */
    struct nfswire_call *calls;
    uint32_t mask;                  /* entries - 1 */
    uint16_t where;                 /* this connection's number */
    uint32_t record_max;
    /* what is fed and not consumed yet */
    const unsigned char *at, *end;
    /* the record that is being read */
    enum nfswire_state state, after_mark;
    uint32_t left;                  /* of the fragment */
    uint32_t record;                /* bytes of the record in all fragments so far */
    bool last;                      /* the fragment is the record's last */
    unsigned char mark[4];
    unsigned mark_n;                /* bytes in `mark`, when it came in pieces */
    unsigned head_n, need;          /* bytes in `head`; bytes that the header is known to have at least */
    uint32_t data_left;             /* READ's data still to come ... */
    uint32_t keep;                  /* ... of which so many go to `to` */
    unsigned char *to;
    uint32_t data_len;              /* of the last READ's data: a hint of what to expect */
    struct nfswire_reply reply;
    uint64_t strays;                /* replies to calls that had their reply before: skipped */
    char why[120];
    unsigned char head[NFSWIRE_HEAD_MAX];
};

/* `max_io`: of the largest READ. A record that is larger than that makes necessary is malformed. */
void nfswire_init(struct nfswire *w, struct nfswire_call *calls, uint32_t mask, uint16_t where, uint32_t max_io);

/* The next bytes of the connection; what was fed before must be consumed. They stay where they are until then. */
static inline void nfswire_feed(struct nfswire *w, const void *bytes, size_t n) {
    w->at = bytes;
    w->end = w->at + n;
}

static inline bool nfswire_fed(const struct nfswire *w) {
    return w->at != w->end;
}

enum nfswire_got nfswire_next(struct nfswire *w);

/* Where the next bytes of the connection belong, when everything fed is consumed and they are READ's data: they may be
 * received there directly, at most *len of them. NULL: they have to be fed. */
static inline void *nfswire_direct(const struct nfswire *w, size_t *len) {
    if (w->state != NFSWIRE_IN_DATA || w->at != w->end) return NULL;
    *len = w->keep < w->left ? w->keep : w->left;
    return *len ? w->to : NULL;
}

/* n bytes (at most *len, which is not 0) have been received there. nfswire_next() may have a reply now. */
void nfswire_took(struct nfswire *w, size_t n);

#endif
