/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parts of engine=libnfs.
 *   nfs_libnfs.c        attach, detach, submit and reap
 *   nfs_libnfs_reply.c  from a reply to a completion, or to what is to be sent next */
#ifndef BACKENDS_NFS_NFS_LIBNFS_H
#define BACKENDS_NFS_NFS_LIBNFS_H

#include "backends/nfs/nfs_libnfs_conn.h"
#include "backends/nfs/nfs_verf.h"

/* One request that is out. */
struct slot {
    struct context *context;
    struct request *request;        /* NULL: free */
    int64_t t_first, t_sent;        /* of its first call and of the one that is out */
    int64_t t_due, since;           /* to be sent (again) then, 0: it is out; since: when the pause began, 0: none */
    uint64_t written;               /* COMMIT: nfsbe_verfs.written when it was sent */
    uint32_t done;                  /* bytes that earlier calls moved */
    unsigned answers;               /* "try again later" */
    uint8_t committed;              /* WRITE: the lowest of its parts */
    bool still;                     /* the last answer moved nothing */
    uint32_t stale;                 /* the status of that kind; it fails when it is known whether the file is lost */
};

struct counts {
    uint64_t good, asked[3], answered[3], commits, held;
    uint64_t jukebox, retries, retry_wait, short_reads, short_writes;
};

struct context {
    struct nfsbe_context common;    /* first: nfs.c finds the engine by it */
    struct nfslib_conn *conn;       /* NULL once lost */
    int fd;
    nfs_fh3 file;
    struct clock *clock;
    struct kinds *kinds;
    int64_t timeout;
    unsigned depth, lent;
    struct slot *slots;             /* by request->slot */
    struct completion *done;        /* ring of `depth` */
    unsigned done_first, done_n;
    struct nfsbe_verf verf;
    struct nfsbe_verfs verfs;       /* of that one */
    unsigned waiting;               /* slots with t_due */
    const struct handle *handle;    /* outlives the context */
    /* After a stale file handle no write is sent until GETATTR has said that it is still the same file. */
    enum { SURE, TO_ASK, ASKING, GONE } doubt;
    int64_t t_doubt, ask_due;       /* when it arose, when GETATTR is to be sent */
    unsigned ask_answers;           /* "try again later" to that */
    char gone[240];                 /* why the file is not the same */
    struct counts counts;
    int64_t t_scan;                 /* when timeouts were last looked at */
    int64_t t_call;                 /* of the submit that is going on */
    bool may_write, lost;
    int lost_error;                 /* errno of why */
    bool broken;                    /* callbacks have said that the connection is gone */
    bool closing;                   /* callbacks have nothing to say any more */
};

/* base/io.h's table */
extern const stable_how nfsbe_libnfs_stable[];

/* Gives the slot's request back, with an error. */
void nfsbe_libnfs_fail(struct context *c, struct slot *s, int64_t t, int error, const char *kind, const char *text);
/* As that, by the status of a reply. */
void nfsbe_libnfs_fail_status(struct context *c, struct slot *s, int64_t t, unsigned status);
/* Why the connection broke: the socket's words, and the library's if it has any of its own. */
const char *nfsbe_libnfs_why_lost(const struct context *c, char *buf, size_t len);

/* Callbacks of the library; their argument is the slot, GETATTR's the context. */
void nfsbe_libnfs_read_done(struct rpc_context *rpc, int status, void *data, void *private_data);
void nfsbe_libnfs_write_done(struct rpc_context *rpc, int status, void *data, void *private_data);
void nfsbe_libnfs_commit_done(struct rpc_context *rpc, int status, void *data, void *private_data);
void nfsbe_libnfs_getattr_done(struct rpc_context *rpc, int status, void *data, void *private_data);

#endif
