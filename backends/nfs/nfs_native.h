/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parts of engine=native: the data path on TCP connections of our own.
 *   nfs_native.c        attach, detach, counters
 *   nfs_native_io.c     submit and reap
 *   nfs_native_reply.c  from a reply, or a broken connection, to a completion
 *
 * Stamps. One clock_now() right after each recv(); it serves all replies whose last byte this call brought.
 *
 * Sending. One sendmsg() for a batch on a connection: headers are copies of a template in one buffer, data goes out of
 * the requests' own buffers. Of what the socket does not take, at most one request has a first byte in it: its rest
 * waits in the connection, and goes on before anything new; the requests behind it are not taken. So nothing else is
 * ever queued here.
 *
 * Several connections. A batch is dealt in runs of neighbours, so that when one connection has no room, what was taken
 * is still the first part of the batch. */
#ifndef BACKENDS_NFS_NFS_NATIVE_H
#define BACKENDS_NFS_NFS_NATIVE_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "backends/nfs/nfs.h"
#include "backends/nfs/nfs_verf.h"
#include "backends/nfs/nfs_wire.h"

#define NFSNATIVE_MAX_IO (64u << 20)
#define NFSNATIVE_BATCH 448u                    /* requests of one sendmsg(): two pieces each stay below IOV_MAX */
#define NFSNATIVE_IOV (2 * NFSNATIVE_BATCH + 1)
#define NFSNATIVE_IN (256u << 10)               /* receive buffer of one connection: fits in a core's own cache */
#define NFSNATIVE_RCVTIMEO_MS 40                /* a receive that blocks comes back after so long, or a little more */

struct nfsnative_conn {
    int fd;                                     /* -1 once lost */
    uint16_t index;
    unsigned lent;
    /* the rest of the one request that is partly sent */
    struct iovec pend[3];
    unsigned pend_n;
    struct nfswire_call *pend_call;
    int send_error;                             /* nothing can be sent any more; what has arrived is still read */
    unsigned char *in;
    int64_t stamp;                              /* of what `wire` was fed last */
    uint64_t rpcs, sends, recvs, bytes;         /* bytes: of data, in good replies */
    struct nfswire wire;
    unsigned char pend_head[NFSWIRE_CALL_MAX];
};

struct context {
    struct nfsbe_context common;                /* first: nfs.c finds the engine by it */
    struct nfsnative_conn *conn;
    unsigned n_conns, turn;                     /* turn: the connection that the next batch begins with */
    unsigned n_servers;                         /* of servers=; connection i goes to i modulo this */
    struct nfswire_call *calls;                 /* by request->slot */
    uint32_t mask, depth;
    unsigned lent, refused;                     /* refused: taken, and never sent */
    bool may_write, deliver, leftover;          /* leftover: replies have arrived that had no place in `out` */
    enum nfsbe_wait wait;
    const struct tcp_settings *tend;            /* the handle's; NULL: nothing to tend */
    struct clock *clock;
    struct kinds *kinds;
    /* where the current reap puts completions */
    struct completion *out;
    unsigned out_n, out_max;
    /* Age counts the time that this context was served, in steps that a pause of the caller's cannot blow up: no
     * request grows old because nobody came to look for its reply. */
    int64_t age, seen, timeout;
    int64_t oldest;                             /* no call that is out was sent before this age */
    struct nfsbe_verf verf;
    bool lost;
    int lost_error;
    unsigned lost_kind, lost_next;              /* lost_next: the first slot that may still have to be given back */
    int64_t lost_at;
    uint64_t asked[3], answered[3], commits, jukebox, held, polls, nonreserved;
    uint32_t uid, gid;                          /* for messages */
    struct pollfd *poll;
    unsigned char *heads;
    struct completion *drained;                 /* detach's */
    struct nfswire_template templates[NFSWIRE_OPS];
    struct iovec iov[NFSNATIVE_IOV];
};

struct nfsnative_how {
    const struct nfsbe_server *server;          /* uid, gid, timeout; where to, if `servers` is NULL or empty */
    const struct nfsbe_servers *servers;
    const struct nfsbe_fh *file;
    const struct nfsbe_native *native;
    const struct tcp_settings *tcp;             /* NULL: the kernel's defaults */
    const struct attach_how *attach;
};

/* A context over `n` connected sockets, which are its own from now on; NULL: no memory, and the sockets are still the
 * caller's. */
struct context *nfsnative_new(const struct nfsnative_how *how, const int *fds, unsigned n);
void nfsnative_detach(struct context *c);
void nfsnative_counters(struct context *c, struct kv *out);
void nfsnative_watch(struct context *c, struct tcpinfo_watch *w);

int nfsnative_submit(struct context *c, struct request *const *requests, unsigned n);
int nfsnative_reap(struct context *c, struct completion *out, unsigned max, unsigned min, int64_t timeout_ns);

/* Parses what `conn` was fed, into c->out, until that is full. */
void nfsnative_parse(struct context *c, struct nfsnative_conn *conn);
/* The connection is gone, or must be: all connections are closed, so that no buffer is touched any more; every request
 * that is out comes back with this error through nfsnative_give_back. */
void nfsnative_lose(struct context *c, int error, const char *kind, const char *text);
void nfsnative_give_back(struct context *c);
/* What a reply that is not NFSWIRE_DONE says, for people; returns the name of its kind. buf is used for names. */
const char *nfsnative_words(const struct nfswire_reply *r, char *name, size_t name_len, char *text, size_t text_len);

static inline void nfsnative_done(struct context *c, struct nfswire_call *call, int64_t t, int64_t result,
                                  unsigned kind, bool stable) {
    c->out[c->out_n++] = (struct completion){ .request = call->request, .result = result, .t_done = t,
                                              .kind = (uint16_t)kind, .stable = stable };
    call->request = NULL;
    c->lent--;
}

#endif
