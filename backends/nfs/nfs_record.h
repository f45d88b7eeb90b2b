/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Replies of an RPC server (RFC 5531): from the bytes of a connection to one record, and from a record to its body.
 * Pure. Memory is bounded whatever the server sends: a record grows only with the bytes that came, up to
 * NFSRECORD_MAX, in at most NFSRECORD_FRAGMENTS fragments. */
#ifndef BACKENDS_NFS_NFS_RECORD_H
#define BACKENDS_NFS_NFS_RECORD_H

#include "backends/nfs/nfs_xdr.h"

#define NFSRECORD_MAX (4u << 20)      /* an export list or a directory; everything else has a few hundred bytes */
#define NFSRECORD_FRAGMENTS 4096u

struct nfsrecord {
    unsigned char *bytes; /* owned */
    size_t len, room;
    unsigned char mark[4];
    unsigned mark_n, fragments;
    uint32_t left;        /* of the fragment */
    bool last;
    char why[160];        /* malformed: why */
};

/* Takes what belongs to the record out of *n bytes at *p. 1: it is complete; 0: more are needed; -1: malformed, or no
 * memory (`why`). */
int nfsrecord_feed(struct nfsrecord *r, const unsigned char **p, size_t *n);
void nfsrecord_again(struct nfsrecord *r);  /* for the next record; keeps the memory */
void nfsrecord_free(struct nfsrecord *r);

enum nfsreply_kind {
    NFSREPLY_BODY,        /* SUCCESS: the reader stands before the result */
    NFSREPLY_OTHER,       /* a reply to another call: xid */
    NFSREPLY_DENIED,      /* by the RPC layer: `words`, auth_stat */
    NFSREPLY_NOT_DONE,    /* accept_stat, and for PROG_MISMATCH low and high: `words` */
    NFSREPLY_BAD          /* malformed: `words` */
};

enum { NFSRPC_PROG_UNAVAIL = 1, NFSRPC_PROG_MISMATCH, NFSRPC_PROC_UNAVAIL, NFSRPC_GARBAGE_ARGS, NFSRPC_SYSTEM_ERR };
enum { NFSRPC_AUTH_TOOWEAK = 5 };

struct nfsreply {
    enum nfsreply_kind kind;
    uint32_t xid;
    uint32_t accept;      /* accept_stat */
    uint32_t auth;        /* auth_stat; 0: denied for another reason */
    uint32_t low, high;   /* versions that the server has */
    char words[160];
};

/* The header of a reply to the call `xid`. */
void nfsreply_parse(struct nfsreply *reply, struct xdr_in *x, uint32_t xid);

#endif
