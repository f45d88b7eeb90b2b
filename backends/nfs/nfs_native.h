/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parts of engine=native: the data path on TCP connections of our own.
 *   nfs_native.c        attach, detach, counters
 *   nfs_native_io.c     submit and reap
 *   nfs_native_reply.c  from a reply, or a broken connection, to a completion
 *   nfs_native_late.c   requests that take more than one call, and what waits to be sent again
 *
 * Stamps. One clock_now() right after each recv(); it serves all replies whose last byte this call brought.
 *
 * Sending. One sendmsg() for a batch on a connection: headers are copies of a template in one buffer, data goes out of
 * the requests' own buffers. Of what the socket does not take, at most one request has a first byte in it: its rest
 * waits in the connection, and goes on before anything new; the requests behind it are not taken. So nothing else is
 * ever queued here.
 *
 * More than one call. What was answered with "try again later" (net/again.h) or in part, and the further COMMITs of a
 * flush that concerns several servers, waits in a list that is looked at only while something is in it. After
 * NFS3ERR_STALE no write is sent until GETATTR has said that the handle still leads to the file that was opened.
 *
 * Several connections. A batch is dealt in runs of neighbours, so that when one connection has no room, what was taken
 * is still the first part of the batch. */
#ifndef BACKENDS_NFS_NFS_NATIVE_H
#define BACKENDS_NFS_NFS_NATIVE_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "backends/net/silence.h"
#include "backends/nfs/nfs.h"
#include "backends/nfs/nfs_verf.h"
#include "backends/nfs/nfs_wire.h"

#define NFSNATIVE_MAX_IO (64u << 20)
#define NFSNATIVE_BATCH 448u                    /* requests of one sendmsg(): two pieces each stay below IOV_MAX */
#define NFSNATIVE_IOV (2 * NFSNATIVE_BATCH + 1)
#define NFSNATIVE_IN (256u << 10)               /* receive buffer of one connection: fits in a core's own cache */
#define NFSNATIVE_RCVTIMEO_MS 40                /* a receive that blocks comes back after so long, or a little more */
#define NFSNATIVE_FLUSHES 8u                    /* so many flushes may be out at once for several servers */

/* Kind and text of an error. */
#define NFSNATIVE_LOWER \
    "committed lower than asked", "the server did not make a write as stable as it was told to"

struct nfsnative_conn {
    int fd;                                     /* -1 once lost */
    uint16_t index;
    unsigned lent;                              /* calls */
    bool stale;                                 /* the file's handle has to be asked about on this one */
    struct nfsbe_verf *verf;                    /* of c->verfs */
    /* the rest of the one request that is partly sent */
    struct iovec pend[3];
    unsigned pend_n;
    struct nfswire_call *pend_call;
    int send_error;                             /* nothing can be sent any more; what has arrived is still read */
    unsigned char *in;
    int64_t stamp;                              /* of what `wire` was fed last */
    struct silence silence;
    char road[80];                              /* "port 712 to 10.0.0.1:2049"; "": unknown */
    uint64_t rpcs, sends, recvs, bytes;         /* bytes: of data, in good replies */
    struct nfswire wire;
    unsigned char pend_head[NFSWIRE_CALL_MAX];
};

/* What is kept of a call whose `late` is set, by its slot; all zero without. */
struct nfsnative_late {
    enum {
        LATE_OUT,
        LATE_WAITS,                             /* to be sent at `due` */
        LATE_STALE,                             /* answered so: fails when it is known whether the file is lost */
        LATE_FAILED                             /* fails as soon as there is room for it: error and kind */
    } state;
    uint16_t conn;                              /* where it goes */
    uint8_t committed;                          /* WRITE: the lowest of its parts */
    bool still;                                 /* the last answer moved nothing */
    unsigned answers;                           /* "try again later" */
    unsigned left;                              /* a flush with several COMMITs: those without an answer */
    uint32_t owner;                             /* a further COMMIT: the slot of its flush */
    unsigned kind;                              /* of an error, as `error`; a flush's: of its first COMMIT that failed */
    int error;
    int64_t first;                              /* the age at which it was sent first */
    int64_t due, since;                         /* sock_now(); since: of the pause, 0: none */
};

/* Slots: requests', one for GETATTR (number `depth`), and those for further COMMITs. */
struct context {
    struct nfsbe_context common;                /* first: nfs.c finds the engine by it */
    struct nfsnative_conn *conn;
    unsigned n_conns, turn;                     /* turn: the connection that the next batch begins with */
    unsigned n_servers;                         /* of servers=; connection i goes to i modulo this */
    const struct nfsbe_servers *servers;        /* outlives the context, as the handle does */
    struct nfswire_call *calls;                 /* by request->slot */
    uint32_t mask, depth;
    unsigned lent, failed;                      /* requests. failed: in LATE_FAILED */
    unsigned extras;                            /* slots for further COMMITs */
    unsigned apart;                             /* bits of enum io_op: requests that do not go in a batch */
    bool may_write, deliver, leftover;          /* leftover: replies have arrived that had no place in `out` */
    bool asking;                                /* GETATTR is to be sent, or out */
    const struct handle *handle;                /* what GETATTR has to say; NULL: it is not asked */
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
    struct nfsbe_verfs verfs;
    struct nfsnative_late *late;                /* by slot */
    unsigned waiting;                           /* in LATE_WAITS */
    int64_t next_due;                           /* of these */
    bool lost;
    int lost_error;
    unsigned lost_kind, lost_next;              /* lost_next: the first slot that may still have to be given back */
    int64_t lost_at;
    uint64_t asked[3], answered[3], commits, jukebox, held, polls, nonreserved, none_left;
    uint64_t retries, retry_wait, short_reads, short_writes;
    uint64_t beside;                            /* calls that no request ended well by: "not now", failed, our own */
    char who[240];                              /* uid, gid and groups, for messages */
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
    const struct handle *handle;                /* as in the context, which it outlives */
};

/* A context over `n` connected sockets, which are its own from now on; NULL: no memory, and the sockets are still the
 * caller's. */
struct context *nfsnative_new(const struct nfsnative_how *how, const int *fds, unsigned n);
void nfsnative_detach(struct context *c);
void nfsnative_counters(struct context *c, struct kv *out);
void nfsnative_watch(struct context *c, struct tcpinfo_watch *w);

int nfsnative_submit(struct context *c, struct request *const *requests, unsigned n);
int nfsnative_reap(struct context *c, struct completion *out, unsigned max, unsigned min, int64_t timeout_ns);

/* The same file, still as large? GETATTR's reply before anything is read from or written to it. */
int nfsnative_same(const struct handle *h, const struct nfswire_reply *r, struct err *err);

/* Sends one call that is in its slot already, or the rest of its request, on this connection. False: there is no room. */
bool nfsnative_send_call(struct context *c, struct nfsnative_conn *conn, struct nfswire_call *call);

/* Parses what `conn` was fed, into c->out, until that is full. */
void nfsnative_parse(struct context *c, struct nfsnative_conn *conn);
/* "10.0.0.1:2049" where there are several servers, for messages that concern one of them; else NULL. */
const char *nfsnative_server(const struct context *c, const struct nfsnative_conn *conn, char *buf, size_t len);
/* What a reply that is no success says: its kind, in c->kinds, and errno. */
unsigned nfsnative_why(struct context *c, const struct nfswire_reply *r, int *error);
/* The kind of an error that a new verifier of `conn`'s server means; `before`: what comes after the lost writes. */
unsigned nfsnative_verf_kind(struct context *c, const struct nfsnative_conn *conn, const char *before);

/* ---- nfs_native_late.c ---- */
/* A reply that is no plain success, or to a call that is late. Its completion may be put. */
void nfsnative_not_plain(struct context *c, struct nfsnative_conn *conn, int64_t t);
/* Sends what is due. `now`: sock_now(). */
void nfsnative_send_late(struct context *c, int64_t now);
/* A flush where there are several connections: a COMMIT to each server that has uncommitted data. False: no room. */
bool nfsnative_flush(struct context *c, const struct nfsnative_conn *conn, struct request *r);

/* The connection is gone, or must be: all connections are closed, so that no buffer is touched any more; every request
 * that is out comes back with this error through nfsnative_give_back. */
void nfsnative_lose(struct context *c, int error, const char *kind, const char *text);
/* The same, because of what happened on this connection, whose server is named. */
void nfsnative_lose_conn(struct context *c, const struct nfsnative_conn *conn, int error, const char *kind,
                         const char *text);
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
