/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One connection to one RPC program, and calls over it one at a time, each with a deadline. Control plane only. */
#ifndef BACKENDS_NFS_NFS_RPC_H
#define BACKENDS_NFS_NFS_RPC_H

#include "backends/nfs/nfs.h"
#include "backends/nfs/nfs_compat.h"

struct nfsbe_conn {
    struct rpc_context *rpc;
    struct nfs_context *holder; /* owns rpc where it is not NULL */
    const struct nfsbe_server *server;
    /* The one call that is out. It lives here, not on the caller's stack: a call that was given up is still known to
     * the library, which calls back when the context is destroyed. */
    bool waiting;               /* for the callback */
    int status;                 /* RPC_STATUS_... */
    unsigned result;            /* of take(): nfsstat3, mountstat3 */
    unsigned (*take)(const void *res, void *arg); /* copies what is wanted out of a reply */
    void *arg;
    char words[256];            /* the library's */
    bool connected;             /* to the program itself */
    bool dead;                  /* after a timeout or a lost connection: nothing more is sent */
};

/* Connects to `program` version 3 of the server, with AUTH_SYS. *out is NULL after failure. */
int nfsbe_conn_open(const struct nfsbe_server *server, unsigned program, struct nfsbe_conn **out, struct err *err);
void nfsbe_conn_close(struct nfsbe_conn *conn);

/* The callback to queue a call with (private data: the connection), after nfsbe_conn_begin. */
void nfsbe_conn_cb(struct rpc_context *rpc, int status, void *data, void *private_data);
void nfsbe_conn_begin(struct nfsbe_conn *conn, unsigned (*take)(const void *res, void *arg), void *arg);
/* Sends and waits. 0: *result is take()'s. -1: no reply; err says why. `queued`: what the queueing returned. */
int nfsbe_conn_finish(struct nfsbe_conn *conn, int queued, const char *what, unsigned *result, struct err *err);

/* "asked as uid 0 gid 0 from TCP port 700", with what follows from a port that is not reserved. */
const char *nfsbe_conn_asker(const struct nfsbe_conn *conn, char *buf, size_t len);

/* Fresh context of the server's user; NULL: no memory. */
struct rpc_context *nfsbe_rpc_new(const struct nfsbe_server *server, struct nfs_context **holder);

#endif
