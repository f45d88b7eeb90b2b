/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/nfs/nfs_ping.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backends/net/sock.h"
#include "backends/net/tcp.h"
#include "backends/net/tcpinfo.h"
#include "backends/nfs/nfs_wire.h"
#include "base/rng.h"

#define CONNECT_NS (3 * NS_PER_SEC)
#define IN_SIZE 1024u

/* The table of calls that are out has one entry. A call that was given up leaves it for the next one, and its reply,
 * when it comes after all, is one to an earlier call, which the parser skips. */
struct pinger {
    struct nfswire_call call;
    struct nfswire wire;
    struct nfswire_template null;
    int fd;
    unsigned char in[IN_SIZE];
};

const char *const nfsbe_pings[] = { "null_rpc", NULL };

struct pinger *nfsbe_ping_over(int fd, uint32_t xid) {
    struct nfswire_template all[NFSWIRE_OPS];
    struct nfswire_who nobody = { .machine = "", .fh = "" };
    size_t align = _Alignof(struct pinger);
    struct pinger *p = aligned_alloc(align, (sizeof *p + align - 1) / align * align);

    if (!p) return NULL;
    memset(p, 0, sizeof *p);
    p->fd = fd;
    nfswire_templates(all, &nobody);
    p->null = all[NFSWIRE_NULL];
    nfswire_calls_init(&p->call, 0, xid);
    nfswire_init(&p->wire, &p->call, 0, 0, 0);
    return p;
}

int nfsbe_ping_open(struct handle *h, struct pinger **out, struct err *err) {
    struct tcp_how how = { .host = h->server.host, .port = h->server.port, .reserved = true, .timeout = CONNECT_NS,
                           .settings = &h->tcp }; /* with bind=, the same link */

    *out = NULL;
    if (!h->ping) return 0;
    if (h->servers.n) { /* where the data goes first */
        how.host = h->servers.at[0].host;
        if (h->servers.at[0].port) how.port = h->servers.at[0].port;
    }
    if (h->server.timeout < how.timeout) how.timeout = h->server.timeout;
    int fd = tcp_connect(&how, err);
    if (fd < 0) return -1;
    *out = nfsbe_ping_over(fd, (uint32_t)rng_mix((uint64_t)sock_now() ^ (uint64_t)getpid() << 40));
    if (*out) return 0;
    close(fd);
    return err_set(err, STATUS_TARGET, "no memory");
}

/* A call is so short that a socket which does not take it whole has not sent anything for a very long time. */
static int send_call(struct pinger *p) {
    unsigned char bytes[NFSWIRE_CALL_MAX];
    nfswire_put(&p->null, bytes, NFSWIRE_NULL, p->call.xid, 0, 0, 0);
    ssize_t n = send(p->fd, bytes, p->null.len, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n == (ssize_t)p->null.len) return 0;
    return n < 0 && errno != EINTR ? -errno : -ENOBUFS;
}

/* 1: the reply to the call that is out; 0: not yet. */
static int parse(struct pinger *p, size_t n) {
    nfswire_feed(&p->wire, p->in, n);
    enum nfswire_got got = nfswire_next(&p->wire);
    if (got == NFSWIRE_MORE) return 0;
    if (got == NFSWIRE_BAD) return -EPROTO;
    if (p->wire.reply.verdict != NFSWIRE_DONE) return -EOPNOTSUPP;
    /* What came behind it can only be late replies to earlier calls, and must be read: the buffer is used again. */
    return nfswire_next(&p->wire) == NFSWIRE_MORE ? 1 : -EPROTO;
}

int64_t nfsbe_ping(struct pinger *p, unsigned kind, int64_t timeout_ns) {
    (void)kind;
    p->call.xid++;
    p->call.op = NFSWIRE_NULL;
    p->call.where = 0;
    int64_t begin = sock_now(), end = begin + timeout_ns, now = begin;
    int rc = send_call(p);
    while (rc == 0) {
        if (now >= end) return -ETIMEDOUT;
        if (sock_wait(p->fd, POLLIN, end - now) > 0) {
            ssize_t n = recv(p->fd, p->in, sizeof p->in, MSG_DONTWAIT);
            now = sock_now();
            if (n > 0) rc = parse(p, (size_t)n);
            else if (n == 0) rc = -ECONNRESET;
            else if (errno != EAGAIN && errno != EINTR) rc = -errno;
        } else {
            now = sock_now();
        }
    }
    return rc < 0 ? rc : now - begin;
}

int64_t nfsbe_ping_floor(struct pinger *p) {
    return tcpinfo_min_rtt(p->fd);
}

void nfsbe_ping_abort(struct pinger *p) {
    shutdown(p->fd, SHUT_RDWR);
}

void nfsbe_ping_close(struct pinger *p) {
    if (!p) return;
    close(p->fd);
    free(p);
}
