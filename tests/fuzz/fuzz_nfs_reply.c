/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bytes from an NFS server: nfs_wire.c's parser. The stream is parsed in one piece, and again in pieces as the first
 * input byte says, READ's data partly received where it belongs: both must come to the same replies, data and end.
 * Buffers are exactly as large as the calls say, and every piece lies in memory of its own. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/nfs/nfs_wire.h"
#include "base/rng.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CALLS 8u
#define MASK (CALLS - 1)
#define WHERE 1u
#define MAX_IO 8000u

static void require(int promise) {
    if (!promise) abort();
}

static const struct { enum nfswire_op op; uint32_t len; } plan[CALLS] = {
    { NFSWIRE_READ, 64 }, { NFSWIRE_WRITE, 4096 }, { NFSWIRE_COMMIT, 0 }, { NFSWIRE_READ, MAX_IO },
    { NFSWIRE_GETATTR, 0 }, { NFSWIRE_READ, 1 }, { NFSWIRE_WRITE, 3 }, { NFSWIRE_READ, 0 },
};

struct run {
    struct nfswire w;
    struct nfswire_call *calls;
    unsigned char *buf[CALLS];
    uint64_t replies, hash; /* of everything that was said */
    enum nfswire_got end;
};

static void call_out(struct run *r, unsigned slot) {
    struct nfswire_call *call = &r->calls[slot];
    call->xid += MASK + 1;
    call->op = (uint8_t)plan[slot].op;
    call->len = plan[slot].len;
    call->buf = plan[slot].op == NFSWIRE_READ && slot != 5 ? r->buf[slot] : NULL;
    call->where = WHERE;
}

static void begin(struct run *r) {
    memset(r, 0, sizeof *r);
    r->calls = aligned_alloc(64, CALLS * sizeof *r->calls);
    require(r->calls != NULL);
    nfswire_calls_init(r->calls, MASK, 0x10203040);
    nfswire_init(&r->w, r->calls, MASK, WHERE, MAX_IO);
    for (unsigned i = 0; i < CALLS; i++) {
        r->buf[i] = calloc(1, plan[i].len ? plan[i].len : 1);
        require(r->buf[i] != NULL);
        if (i != 6) call_out(r, i); /* one has never been sent */
    }
}

static void finish(struct run *r) {
    for (unsigned i = 0; i < CALLS; i++) free(r->buf[i]);
    free(r->calls);
}

static void say(struct run *r, uint64_t value) {
    r->hash = rng_mix(r->hash ^ value);
}

static void replied(struct run *r) {
    const struct nfswire_reply *a = &r->w.reply;
    unsigned slot = a->call->slot;
    bool moved = a->verdict == NFSWIRE_DONE || a->verdict == NFSWIRE_SHORT;
    require(a->call == &r->calls[slot] && a->call->where == NFSWIRE_NOWHERE && slot != 6);
    r->replies++;
    say(r, slot);
    say(r, (uint64_t)a->verdict << 32 | a->status);
    if (a->verdict == NFSWIRE_WRONG) require(a->why && a->why[0]);
    if (moved && (a->call->op == NFSWIRE_READ || a->call->op == NFSWIRE_WRITE)) {
        require(a->verdict == NFSWIRE_DONE ? a->count == a->call->len : a->count < a->call->len);
        say(r, a->count);
        for (uint32_t i = 0; a->call->buf && i < a->count; i++) say(r, r->buf[slot][i]);
    }
    if (a->verdict == NFSWIRE_SHORT) require(a->call->op == NFSWIRE_READ || a->call->op == NFSWIRE_WRITE);
    if (moved && a->call->op == NFSWIRE_WRITE) say(r, a->committed);
    if (a->verdict == NFSWIRE_SHORT && a->call->op == NFSWIRE_READ) say(r, a->eof);
    if (a->verdict == NFSWIRE_DONE && a->call->op == NFSWIRE_GETATTR) say(r, a->size ^ a->fsid ^ a->fileid ^ a->type);
    call_out(r, slot);
}

static void feed(struct run *r, const uint8_t *p, size_t n) {
    unsigned char *own = malloc(n ? n : 1);
    require(own != NULL);
    if (n) memcpy(own, p, n);
    nfswire_feed(&r->w, own, n);
    while ((r->end = nfswire_next(&r->w)) == NFSWIRE_REPLY) replied(r);
    require(!nfswire_fed(&r->w));
    free(own);
}

static void in_pieces(struct run *r, const uint8_t *p, size_t n, uint64_t seed) {
    struct rng rng;
    rng_seed(&rng, seed);
    while (n && r->end != NFSWIRE_BAD) {
        size_t k = 1 + rng_below(&rng, seed % 4 == 0 ? 1 : seed % 4 == 1 ? 8 : seed % 4 == 2 ? 200 : 20000), len = 0;
        if (k > n) k = n;
        void *to = rng_next(&rng) & 1 ? nfswire_direct(&r->w, &len) : NULL;
        if (to) {
            require(len > 0);
            if (k > len) k = len;
            memcpy(to, p, k);
            nfswire_took(&r->w, k);
            feed(r, NULL, 0);
        } else {
            feed(r, p, k);
        }
        p += k;
        n -= k;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct run whole, pieces;
    if (size < 1) return 0;
    begin(&whole);
    begin(&pieces);
    feed(&whole, data + 1, size - 1);
    in_pieces(&pieces, data + 1, size - 1, data[0]);
    require(whole.end == pieces.end || size == 1);
    require(whole.replies == pieces.replies && whole.hash == pieces.hash && whole.w.strays == pieces.w.strays);
    require(strcmp(whole.w.why, pieces.w.why) == 0);
    if (whole.end == NFSWIRE_BAD) require(whole.w.why[0] != '\0');
    finish(&whole);
    finish(&pieces);
    return 0;
}
