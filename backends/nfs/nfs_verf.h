/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The write verifier (RFC 1813, 3.3.7): a server that restarted, or lost what it had not written yet, answers with
 * another one than before. What it had acknowledged as UNSTABLE under the old one and was not committed since is lost.
 *
 * Kept for each connection, because behind the addresses of servers=, or behind one address, there may be several
 * servers, each with a verifier of its own. Connections whose verifiers agree lead to one server: a COMMIT on one of
 * them vouches for the writes of all, and a change on one says that the writes of all are lost. Until an UNSTABLE write
 * or a COMMIT was answered on a connection nothing is known of it, and nothing on it needs a COMMIT.
 *
 * Writes are numbered in the order of their answers, over all connections, so that a COMMIT needs to know one number
 * only: that of the last write answered before it was sent. Pure. */
#ifndef BACKENDS_NFS_NFS_VERF_H
#define BACKENDS_NFS_NFS_VERF_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct nfsbe_verf {      /* of one connection */
    bool known;
    char verf[8];
    uint64_t last;       /* the last write that was answered UNSTABLE; 0: none */
    uint64_t safe;       /* writes up to this one are committed, or are known to be lost and that was said */
};

struct nfsbe_verfs {     /* of a context */
    struct nfsbe_verf *at; /* by connection */
    unsigned n;
    uint64_t written;    /* the number of the last write */
    uint64_t changes;    /* new verifiers of servers that had another one */
};

static inline bool nfsbe_verf_at_stake(const struct nfsbe_verf *v) {
    return v->last > v->safe;
}

static inline bool nfsbe_verf_same(const struct nfsbe_verf *a, const struct nfsbe_verf *b) {
    return a->known && b->known && memcmp(a->verf, b->verf, sizeof a->verf) == 0;
}

/* Another verifier than before, or the first one. */
bool nfsbe_verf_changed(struct nfsbe_verfs *all, struct nfsbe_verf *v, const char *verf);

/* Looks at the verifier of a reply on v's connection. True: acknowledged data was lost, which is told once. */
static inline bool nfsbe_verf_see(struct nfsbe_verfs *all, struct nfsbe_verf *v, const char *verf) {
    if (__builtin_expect(v->known && memcmp(v->verf, verf, sizeof v->verf) == 0, 1)) return false;
    return nfsbe_verf_changed(all, v, verf);
}

/* A write was answered UNSTABLE, and its verifier was looked at. */
static inline void nfsbe_verf_written(struct nfsbe_verfs *all, struct nfsbe_verf *v) {
    v->last = ++all->written;
}

/* A COMMIT on v's connection, sent when write number `written` was the last one answered, has succeeded, and its
 * verifier was looked at. */
void nfsbe_verf_committed(struct nfsbe_verfs *all, const struct nfsbe_verf *v, uint64_t written);

/* The connections that a flush has to send a COMMIT on: one of each server that has data at stake, `prefer` for its own;
 * where nothing is at stake `prefer` alone, because a flush asks the server all the same. Their numbers go to `to`
 * (room: all->n); how many. */
unsigned nfsbe_verf_to_commit(const struct nfsbe_verfs *all, unsigned prefer, uint16_t *to);

#endif
