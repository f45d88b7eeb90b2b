/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The connection of engine=libnfs: the library's own, made with a deadline. Everything but the load goes another way
 * (nfs_rpc.h). */
#ifndef BACKENDS_NFS_NFS_LIBNFS_CONN_H
#define BACKENDS_NFS_NFS_LIBNFS_CONN_H

#include <pthread.h>

#include "backends/nfs/nfs.h"
#include "backends/nfs/nfs_compat.h"

struct nfslib_conn {
    struct rpc_context *rpc;
    struct nfs_context *holder; /* owns rpc where it is not NULL */
    const struct nfsbe_server *server;
    /* The one call that is out, the connecting. It lives here, not on the caller's stack: a call that was given up is
     * still known to the library, which calls back when the context is destroyed. */
    bool waiting;
    int status;                 /* RPC_STATUS_... */
    char words[256];            /* the library's */
    /* The library keeps the fragments of a record without end, and does not come back while more arrive. So a thread looks
     * at the connection now and then, and cuts it when more has come since the last reply than a reply can have, or one
     * call lasts longer than timeout=. */
    struct nfslib_guard {
        pthread_t thread;
        bool running, flooded;  /* flooded: atomic */
        int fd, stop;           /* stop: an eventfd */
        unsigned replies;       /* atomic; the owner counts them */
        unsigned calls;         /* atomic; odd while the owner is inside the library */
        int64_t timeout;
    } guard;
};

/* Connects to NFS version 3 at server->port, as the server's user. *out is NULL after failure. */
int nfslib_open(const struct nfsbe_server *server, struct nfslib_conn **out, struct err *err);
/* rpc_service(), watched. */
static inline int nfslib_service(struct nfslib_conn *conn, int events) {
    unsigned calls = conn->guard.calls;
    __atomic_store_n(&conn->guard.calls, calls + 1, __ATOMIC_RELAXED);
    int rc = rpc_service(conn->rpc, events);
    __atomic_store_n(&conn->guard.calls, calls + 2, __ATOMIC_RELAXED);
    return rc;
}
/* To be said after each round of the library that brought a reply. */
static inline void nfslib_replied(struct nfslib_conn *conn) {
    __atomic_store_n(&conn->guard.replies, conn->guard.replies + 1, __ATOMIC_RELAXED);
}
/* Was the connection cut because of a reply without end? */
static inline bool nfslib_flooded(const struct nfslib_conn *conn) {
    return __atomic_load_n(&conn->guard.flooded, __ATOMIC_RELAXED);
}
void nfslib_close(struct nfslib_conn *conn);

#endif
