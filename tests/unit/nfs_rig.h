/* SPDX-License-Identifier: GPL-2.0-or-later */
/* engine=native over socket pairs. The server is played by the test itself, step by step, in the same thread: what it
 * has read, what it answers and when is all in the script. To be included behind cmocka.h. */
#ifndef TESTS_NFS_RIG_H
#define TESTS_NFS_RIG_H

#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backends/nfs/nfs_native.h"
#include "tests/unit/nfs_replies.h"

#define MAX_DEPTH 512u
#define MAX_CONNS 4u
#define HEAD 92u                    /* of a READ or COMMIT behind its record mark; WRITE has 8 more */

static const struct shape plain = {.attributes = 1};

/* ---- the server ---- */

struct call {
    uint32_t xid, procedure, count, stable;
    uint64_t offset;
};

struct peer {
    int fd;
    struct bytes in, out;
    size_t sent;                    /* of `out` */
    struct call call[MAX_DEPTH * 4];
    unsigned n_calls, answered;
};

static inline uint32_t word_at(const unsigned char *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline void understand(struct peer *p, const unsigned char *record, uint32_t len) {
    struct call *c = &p->call[p->n_calls++];
    const unsigned char *args = record + 68 + 4 + 8; /* a file handle of 5 bytes */
    assert_true(p->n_calls <= sizeof p->call / sizeof p->call[0]);
    assert_int_equal(word_at(record + 4), 0);
    if (word_at(record + 20) == 1) { /* GETATTR: nothing behind the handle */
        assert_int_equal(len, HEAD - 12);
        *c = (struct call){.xid = word_at(record), .procedure = 1};
        return;
    }
    assert_true(len >= HEAD);
    *c = (struct call){.xid = word_at(record), .procedure = word_at(record + 20), .count = word_at(args + 8),
                       .offset = (uint64_t)word_at(args) << 32 | word_at(args + 4)};
    for (unsigned i = 0; i + 1 < p->n_calls; i++) assert_int_not_equal(p->call[i].xid, c->xid);
    if (c->procedure != 7) {
        assert_int_equal(len, HEAD);
        return;
    }
    c->stable = word_at(args + 12);
    assert_int_equal(word_at(args + 16), c->count);
    assert_int_equal(len, HEAD + 8 + ((c->count + 3) & ~3u));
    for (uint32_t i = 0; i < c->count; i++)
        if (args[20 + i] != data_byte(c->offset + i))
            fail_msg("byte %u of the WRITE at %llu is wrong", i, (unsigned long long)c->offset);
    for (uint32_t i = c->count; i % 4; i++) assert_int_equal(args[20 + i], 0);
}

/* Reads at most `most` bytes. True: something came. */
static inline bool peer_read(struct peer *p, size_t most) {
    static unsigned char buf[1 << 16];
    bool some = false;
    while (most) {
        ssize_t r = recv(p->fd, buf, most < sizeof buf ? most : sizeof buf, MSG_DONTWAIT);
        if (r <= 0) break;
        add_bytes(&p->in, buf, (size_t)r);
        most -= (size_t)r;
        some = true;
    }
    size_t at = 0;
    while (p->in.n - at >= 4) {
        uint32_t mark = word_at(p->in.at + at), len = mark & 0x7fffffff;
        assert_true(mark & 0x80000000);
        if (p->in.n - at - 4 < len) break;
        understand(p, p->in.at + at + 4, len);
        at += 4 + len;
    }
    if (at) memmove(p->in.at, p->in.at + at, p->in.n - at);
    p->in.n -= at;
    return some;
}

static inline void answer(struct peer *p, const struct call *c, const struct shape *s) {
    if (c->procedure == 6) reply_read(&p->out, c->xid, c->offset, c->count, s);
    else if (c->procedure == 7) reply_write(&p->out, c->xid, c->count, c->stable, "verifier", s);
    else reply_commit(&p->out, c->xid, "verifier", s);
}

static inline void answer_all(struct peer *p) {
    while (p->answered < p->n_calls) answer(p, &p->call[p->answered++], &plain);
}

/* Sends at most `most` bytes of what is answered. True: nothing is left of that. */
static inline bool peer_send(struct peer *p, size_t most) {
    if (most > p->out.n - p->sent) most = p->out.n - p->sent;
    while (most) {
        ssize_t r = send(p->fd, p->out.at + p->sent, most, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (r <= 0) return false;
        p->sent += (size_t)r;
        most -= (size_t)r;
    }
    return p->sent == p->out.n;
}

/* ---- the client ---- */

struct rig {
    struct context *c;
    struct peer *peer;              /* one for each connection */
    unsigned n, depth;
    size_t stride;
    unsigned char *buffers;
    struct request request[MAX_DEPTH];
    struct request *list[MAX_DEPTH];
    unsigned lent[MAX_DEPTH];       /* 1: out */
    struct completion done[MAX_DEPTH];
    unsigned n_done;                /* since the last call of begin() */
    struct kinds kinds;
    struct clock clock;
};

struct setup {
    unsigned depth, conns, sndbuf;
    bool write, discard;
    const struct handle *handle;    /* NULL: none */
    int wait;
    size_t stride;
    int64_t timeout;
};

static inline struct rig *rig_new(const struct setup *s) {
    struct rig *r = calloc(1, sizeof *r);
    struct nfsbe_server server = {.uid = 1, .gid = 2, .timeout = s->timeout ? s->timeout : 10 * NS_PER_SEC};
    struct nfsbe_fh fh = {.len = 5, .data = "\xf0\xf1\xf2\xf3\xf4"};
    struct nfsbe_native native = {.deliver = !s->discard, .wait = s->wait};
    int fds[MAX_CONNS];

    assert_non_null(r);
    r->n = s->conns ? s->conns : 1;
    r->depth = s->depth;
    r->stride = s->stride ? s->stride : 4096;
    r->peer = calloc(r->n, sizeof *r->peer);
    r->buffers = calloc(r->depth, r->stride);
    assert_true(r->peer && r->buffers);
    clock_real_init(&r->clock);
    for (unsigned i = 0; i < r->n; i++) {
        int pair[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
        if (s->sndbuf) {
            int size = (int)s->sndbuf;
            assert_int_equal(setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size), 0);
            assert_int_equal(setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof size), 0);
        }
        fds[i] = pair[0];
        r->peer[i].fd = pair[1];
    }
    struct attach_how attach = {.depth = s->depth,
                                .max_io = (uint32_t)r->stride,
                                .buffers = r->buffers,
                                .stride = r->stride,
                                .clock = &r->clock,
                                .kinds = &r->kinds,
                                .write = s->write};
    struct nfsnative_how how = {.server = &server, .file = &fh, .native = &native, .attach = &attach,
                                .handle = s->handle};
    r->c = nfsnative_new(&how, fds, r->n);
    assert_non_null(r->c);
    return r;
}

static inline void rig_free(struct rig *r) {
    for (unsigned i = 0; i < r->n; i++) {
        if (r->peer[i].fd >= 0) close(r->peer[i].fd);
        free_bytes(&r->peer[i].in);
        free_bytes(&r->peer[i].out);
    }
    if (r->c) nfsnative_detach(r->c);
    free(r->peer);
    free(r->buffers);
    free(r);
}

static inline struct request *prepare(struct rig *r, unsigned slot, enum io_op op, uint64_t offset, uint32_t len) {
    struct request *q = &r->request[slot];
    assert_false(r->lent[slot]);
    assert_true(len <= r->stride);
    *q = (struct request){
        .buf = r->buffers + slot * r->stride, .offset = offset, .len = len, .slot = slot, .op = (uint8_t)op};
    for (uint32_t i = 0; i < len; i++) ((unsigned char *)q->buf)[i] = op == IO_WRITE ? data_byte(offset + i) : 0;
    return q;
}

/* Slots from .. to - 1; returns what submit does. */
static inline int submit(struct rig *r, unsigned from, unsigned to) {
    for (unsigned i = from; i < to; i++) {
        r->list[i - from] = &r->request[i];
        r->request[i].t_submit = clock_now(&r->clock);
    }
    int took = nfsnative_submit(r->c, r->list, to - from);
    for (int i = 0; i < took; i++) r->lent[from + (unsigned)i] = 1;
    return took;
}

static inline int reap(struct rig *r, unsigned max, unsigned min, int64_t timeout) {
    int n = nfsnative_reap(r->c, r->done, max, min, timeout);
    assert_true(n <= (int)max);
    for (int i = 0; i < n; i++) {
        const struct completion *d = &r->done[i];
        unsigned slot = d->request->slot;
        assert_ptr_equal(d->request, &r->request[slot]);
        if (!r->lent[slot]) fail_msg("slot %u came back twice", slot);
        assert_true(d->t_done >= d->request->t_submit && d->t_done <= clock_now(&r->clock));
        assert_true(i == 0 || d->t_done >= r->done[i - 1].t_done);
        r->lent[slot] = 0;
        r->n_done++;
    }
    return n;
}

static inline unsigned lent(const struct rig *r) {
    unsigned n = 0;
    for (unsigned i = 0; i < r->depth; i++) n += r->lent[i];
    return n;
}

static inline void check_read(const struct rig *r, unsigned slot) {
    const struct request *q = &r->request[slot];
    for (uint32_t i = 0; i < q->len; i++)
        if (((unsigned char *)q->buf)[i] != data_byte(q->offset + i)) fail_msg("byte %u of slot %u is wrong", i, slot);
}

static inline const char *kind_of(const struct rig *r, unsigned i) {
    assert_true(r->done[i].result < 0 && r->done[i].kind < r->kinds.n);
    return r->kinds.kind[r->done[i].kind].name;
}

static inline uint64_t counter(struct rig *r, const char *key) {
    struct kv kv = {.n = 0};
    nfsnative_counters(r->c, &kv);
    uint64_t v = kv_get_uint(&kv, key, UINT64_MAX);
    kv_free(&kv);
    return v;
}

#endif
