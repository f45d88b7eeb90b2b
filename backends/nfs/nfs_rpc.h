/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ONC RPC (RFC 5531) for everything but the load: one connection to one program, calls over it one at a time, each with
 * a deadline for all of it, whatever the server sends: memory is bounded too (nfs_record.h). May block. */
#ifndef BACKENDS_NFS_NFS_RPC_H
#define BACKENDS_NFS_NFS_RPC_H

#include "backends/net/tcp.h"
#include "backends/nfs/nfs.h"
#include "backends/nfs/nfs_record.h"

#define NFSRPC_CALL_MAX 6144u       /* a whole call; the longest hold a path */

struct nfsbe_conn {
    int fd;
    bool datagram;                  /* UDP: what is lost is sent again */
    bool dead;                      /* after a timeout, a lost connection, nonsense: nothing more is sent ... */
    int error;                      /* ... and which of these it was: errno; EPROTO: nonsense */
    const struct nfsbe_server *server;
    uint32_t program, version;
    uint32_t xid, first_xid;
    int64_t timeout;                /* ns, of one call */
    int64_t until;                  /* of sock_now: the end of all its calls together; 0: none */
    uint64_t retries, retry_wait_ns; /* calls that were answered "not now" and sent again; the pauses before that */
    struct nfsreply reply;          /* what the last call got from the RPC layer */
    struct nfsrecord record;
    enum tcp_source source;         /* is its source port a reserved one, and if not, why */
    const unsigned char *rest;      /* received, not looked at yet */
    size_t rest_n;
    unsigned char in[16384], out[NFSRPC_CALL_MAX];
};

/* To NFS or MOUNT, version 3, of the server: at the port that `server` has, else where the portmapper says. It has
 * answered procedure NULL. *out is NULL after failure. `server` stays in use. */
int nfsbe_conn_open(const struct nfsbe_server *server, unsigned program, struct nfsbe_conn **out, struct err *err);
/* The same, all of it, portmapper and UDP too, until `end` (of sock_now), with half a second of grace at most: each way
 * that is left at the end is tried for a moment. */
int nfsbe_conn_open_until(const struct nfsbe_server *server, unsigned program, int64_t end, struct nfsbe_conn **out,
                          struct err *err);
/* The parts of it: TCP, UDP, and whether the program answers there. `port_given`: by the user, who may be wrong. */
int nfsbe_conn_tcp(const struct nfsbe_server *server, unsigned program, unsigned version, unsigned port,
                   struct nfsbe_conn **out, struct err *err);
int nfsbe_conn_udp(const struct nfsbe_server *server, unsigned program, unsigned version, unsigned port,
                   struct nfsbe_conn **out, struct err *err);
int nfsbe_conn_null(struct nfsbe_conn *conn, bool port_given, struct err *err);
/* Does NFS answer, at its port or else at 2049, that it has no version 3 but later ones? Then err says so, and true. Asked
 * until `end`, as above. */
bool nfsbe_conn_only_v4(const struct nfsbe_server *server, int64_t end, struct err *err);
/* Over a connected socket, which is its own from now on; NULL: no memory, and the socket is closed. */
struct nfsbe_conn *nfsbe_conn_over(const struct nfsbe_server *server, unsigned program, unsigned version, int fd,
                                   bool datagram);
void nfsbe_conn_close(struct nfsbe_conn *conn);

/* One call: begin, put the arguments, send and wait. 0: `result` stands at the result, and stays valid until the next
 * call. -1: there is none; err says why, conn->reply what the RPC layer said. */
void nfsbe_conn_begin(struct nfsbe_conn *conn, uint32_t procedure, struct xdr_out *args);
int nfsbe_conn_call(struct nfsbe_conn *conn, struct xdr_out *args, const char *what, struct xdr_in *result,
                    struct err *err);
/* The result was not what it has to be: fills err, -1. Nothing more is asked on this connection. */
int nfsbe_conn_garbled(struct nfsbe_conn *conn, const char *what, struct err *err);

/* A copy that has no more time than `ns`: a share of timeout=, which messages then say. */
struct nfsbe_server nfsbe_server_share(const struct nfsbe_server *server, int64_t ns);

/* "asked as uid 0 gid 0 from TCP port 700", with what follows from a port that is not reserved. */
const char *nfsbe_conn_asker(const struct nfsbe_conn *conn, char *buf, size_t len);
const char *nfsbe_program_name(unsigned program); /* "NFS", "MOUNT", "portmapper" */

#endif
