/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The connection of engine=libnfs: the library's own, made with a deadline. Everything but the load goes another way
 * (nfs_rpc.h). */
#ifndef BACKENDS_NFS_NFS_LIBNFS_CONN_H
#define BACKENDS_NFS_NFS_LIBNFS_CONN_H

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
};

/* Connects to NFS version 3 at server->port, as the server's user. *out is NULL after failure. */
int nfslib_open(const struct nfsbe_server *server, struct nfslib_conn **out, struct err *err);
void nfslib_close(struct nfslib_conn *conn);

#endif
