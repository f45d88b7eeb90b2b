/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/nfs/nfs_rpc.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backends/net/sock.h"
#include "base/rng.h"
#include "base/text.h"

#define MACHINE "samedisk"
#define AUTH_NONE 0u
#define AUTH_SYS 1u
#define RESEND_NS (500 * NS_PER_MS) /* UDP: the first wait for a reply; then twice as long each time */
#define STRAYS_MAX 1000u            /* late replies to earlier calls that are passed over */

const char *nfsbe_program_name(unsigned program) {
    return program == NFS_PROGRAM_ID ? "NFS" : program == NFS_MOUNT_PROGRAM_ID ? "MOUNT" : "portmapper";
}

struct nfsbe_server nfsbe_server_share(const struct nfsbe_server *server, int64_t ns) {
    struct nfsbe_server s = *server;
    if (!s.whole) s.whole = s.timeout;
    s.timeout = ns;
    return s;
}

struct nfsbe_conn *nfsbe_conn_over(const struct nfsbe_server *server, unsigned program, unsigned version, int fd,
                                   bool datagram) {
    struct nfsbe_conn *conn = calloc(1, sizeof *conn);
    if (!conn) {
        close(fd);
        return NULL;
    }
    conn->fd = fd;
    conn->datagram = datagram;
    conn->server = server;
    conn->program = program;
    conn->version = version;
    conn->timeout = server->timeout;
    /* A server may keep replies by client and xid, so they differ from those of other connections. */
    conn->xid = conn->first_xid =
        (uint32_t)rng_mix((uint64_t)sock_now() ^ (uint64_t)(uintptr_t)conn ^ (uint64_t)getpid() << 40);
    return conn;
}

/* A reset, where that is harmless: it leaves no TIME_WAIT behind, and reserved ports are few (512 to 1023). One that
 * waits for a minute after every run would be missing in the next. A connection is closed only after its last reply. */
void nfsbe_conn_close(struct nfsbe_conn *conn) {
    struct linger now = { .l_onoff = 1 };
    if (!conn) return;
    if (!conn->datagram) setsockopt(conn->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close(conn->fd);
    nfsrecord_free(&conn->record);
    free(conn);
}

/* ---- words ---- */

const char *nfsbe_conn_asker(const struct nfsbe_conn *conn, char *buf, size_t len) {
    char who[240];
    unsigned port = sock_local_port(conn->fd);
    bool high = port >= 1024;
    snprintf(buf, len, "asked as %s from %s port %u%s%s", nfsbe_who_words(conn->server, who, sizeof who),
             conn->datagram ? "UDP" : "TCP", port, high ? ": not a reserved one, which an export with `secure` wants: " : "",
             high ? tcp_source_words(conn->source ? conn->source : TCP_SOURCE_NO_RIGHT) : "");
    return buf;
}

static int fails(struct nfsbe_conn *conn, const char *what, struct err *err, const char *why) {
    char host[128];
    if (!conn->dead) conn->error = EPROTO;
    conn->dead = true;
    return err_set(err, STATUS_TARGET, "%s: %s: %s",
                   text_safe(host, sizeof host, conn->server->host, strlen(conn->server->host)), what, why);
}

static int fails_errno(struct nfsbe_conn *conn, const char *what, struct err *err, int error) {
    char host[128], whole[60] = "";
    double waited = tcp_seconds(conn->timeout);
    conn->dead = true;
    conn->error = -error;
    if (error == -ECONNRESET) return fails(conn, what, err, "the other side closed the connection");
    if (error != -ETIMEDOUT) return fails(conn, what, err, strerror(-error));
    if (tcp_seconds(conn->server->whole) > waited)
        snprintf(whole, sizeof whole, "its share of timeout=%gs", tcp_seconds(conn->server->whole));
    return err_set(err, STATUS_TARGET, "%s: no answer from %s within %g s (%s)", what,
                   text_safe(host, sizeof host, conn->server->host, strlen(conn->server->host)), waited,
                   *whole ? whole : "timeout=");
}

int nfsbe_conn_garbled(struct nfsbe_conn *conn, const char *what, struct err *err) {
    return fails(conn, what, err, "malformed reply: its result ends early, or holds what cannot be");
}

/* ---- one call ---- */

void nfsbe_conn_begin(struct nfsbe_conn *conn, uint32_t procedure, struct xdr_out *x) {
    const struct nfsbe_server *s = conn->server;
    bool nobody = procedure == 0 || conn->program == NFSBE_PORTMAP_PROGRAM_ID;

    *x = (struct xdr_out){ .at = conn->out, .end = conn->out + sizeof conn->out };
    xdr_put32(x, 0); /* the record mark, later */
    xdr_put32(x, ++conn->xid);
    xdr_put32(x, 0); /* CALL */
    xdr_put32(x, 2); /* RPC version */
    xdr_put32(x, conn->program);
    xdr_put32(x, conn->version);
    xdr_put32(x, procedure);
    xdr_put32(x, nobody ? AUTH_NONE : AUTH_SYS);
    if (nobody) {
        xdr_put32(x, 0);
    } else {
        xdr_put32(x, (uint32_t)(4 + 4 + sizeof MACHINE - 1 + 4 + 4 + 4 + 4 * s->n_groups));
        xdr_put32(x, 0); /* stamp */
        xdr_put_text(x, MACHINE);
        xdr_put32(x, s->uid);
        xdr_put32(x, s->gid);
        xdr_put32(x, s->n_groups);
        for (unsigned i = 0; i < s->n_groups; i++) xdr_put32(x, s->groups[i]);
    }
    xdr_put32(x, AUTH_NONE); /* verifier ... */
    xdr_put32(x, 0);         /* ... of no bytes */
}

/* Bytes into conn->rest until `end`. 0, or negative errno: -ECONNRESET when the server closed the connection. */
static int receive(struct nfsbe_conn *conn, int64_t end) {
    for (;;) {
        int64_t left = sock_slice(end);
        if (left <= 0 || backend_stopped()) return -ETIMEDOUT;
        if (sock_wait(conn->fd, POLLIN, left) <= 0) continue;
        ssize_t r = recv(conn->fd, conn->in, sizeof conn->in, MSG_DONTWAIT);
        if (r == 0 && !conn->datagram) return -ECONNRESET;
        if (r < 0 && errno != EAGAIN && errno != EINTR) return -errno;
        if (r <= 0) continue;
        conn->rest = conn->in;
        conn->rest_n = (size_t)r;
        return 0;
    }
}

/* One record: 1 and *x at its beginning; else negative errno, -EPROTO with conn->record.why. */
static int next_record(struct nfsbe_conn *conn, struct xdr_in *x, int64_t end) {
    int got, rc;
    nfsrecord_again(&conn->record);
    if (conn->datagram) {
        if ((rc = receive(conn, end)) != 0) return rc;
        *x = (struct xdr_in){ .at = conn->in, .end = conn->in + conn->rest_n };
        return 1;
    }
    while ((got = nfsrecord_feed(&conn->record, &conn->rest, &conn->rest_n)) == 0) {
        if (sock_now() >= end) return -ETIMEDOUT; /* also for a server that never stops sending */
        if ((rc = receive(conn, end)) != 0) return rc;
    }
    if (got < 0) return -EPROTO;
    *x = (struct xdr_in){ .at = conn->record.bytes, .end = conn->record.bytes + conn->record.len };
    return 1;
}

/* The reply to the call that is out; those to earlier calls of this connection are passed over. A datagram may come from
 * anywhere, late or forged: only one that bears the call's number ends the waiting. */
static int reply_of(struct nfsbe_conn *conn, struct xdr_in *result, int64_t end) {
    for (unsigned strays = 0; strays < STRAYS_MAX; strays++) {
        int rc = next_record(conn, result, end);
        if (rc < 0) return rc;
        nfsreply_parse(&conn->reply, result, conn->xid);
        bool other = conn->reply.kind == NFSREPLY_OTHER;
        bool earlier = other && conn->reply.xid - conn->first_xid < conn->xid - conn->first_xid;
        if (conn->datagram && conn->reply.xid != conn->xid) strays = 0; /* until the deadline, however many there are */
        else if (!earlier) return 0;
    }
    return -EPROTO;
}

/* Over UDP the call is sent again after a pause that grows. */
static int send_and_wait(struct nfsbe_conn *conn, const struct xdr_out *args, struct xdr_in *result) {
    size_t mark = conn->datagram ? 4 : 0;
    int64_t end = sock_now() + conn->timeout, wait = RESEND_NS;
    if (conn->until && conn->until < end) end = conn->until;
    for (;;) {
        int rc = sock_send_all(conn->fd, conn->out + mark, (size_t)(args->at - conn->out) - mark, end);
        if (rc != 0) return rc;
        int64_t now = sock_now(), until = conn->datagram && now + wait < end ? now + wait : end;
        rc = reply_of(conn, result, until);
        if (rc != -ETIMEDOUT || until == end) return rc;
        wait *= 2;
    }
}

/* The server's RPC layer does not want the call, or this client. */
static int not_wanted(struct nfsbe_conn *conn, const char *what, struct err *err) {
    char host[128], asker[600];
    return err_set(err, STATUS_TARGET, "%s: %s: %s (%s)",
                   text_safe(host, sizeof host, conn->server->host, strlen(conn->server->host)), what,
                   conn->reply.words, nfsbe_conn_asker(conn, asker, sizeof asker));
}

int nfsbe_conn_call(struct nfsbe_conn *conn, struct xdr_out *args, const char *what, struct xdr_in *result,
                    struct err *err) {
    size_t len = (size_t)(args->at - conn->out);
    char words[260];
    int rc;

    memset(&conn->reply, 0, sizeof conn->reply);
    if (conn->dead) return fails(conn, what, err, "the connection is lost");
    if (args->full) return err_set(err, STATUS_TARGET, "%s: a path or name is too long for a call", what);
    struct xdr_out mark = { .at = conn->out, .end = conn->out + 4 };
    xdr_put32(&mark, 0x80000000u | (uint32_t)(len - 4));
    rc = send_and_wait(conn, args, result);
    if (rc == -EPROTO && conn->record.why[0]) {
        snprintf(words, sizeof words, "malformed reply: %s", conn->record.why);
        return fails(conn, what, err, words);
    }
    if (rc != 0) return fails_errno(conn, what, err, rc);
    switch (conn->reply.kind) {
    case NFSREPLY_BODY: return 0;
    case NFSREPLY_OTHER: return fails(conn, what, err, "malformed reply: it is to a call that was never sent");
    case NFSREPLY_BAD:
        snprintf(words, sizeof words, "malformed reply: %s", conn->reply.words);
        return fails(conn, what, err, words);
    default: return not_wanted(conn, what, err);
    }
}
