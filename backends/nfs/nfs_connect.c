/* SPDX-License-Identifier: GPL-2.0-or-later */
/* To which port, over what, and is it NFS that answers there? */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backends/net/sock.h"
#include "backends/net/tcp.h"
#include "backends/nfs/nfs_portmap.h"
#include "base/rng.h"
#include "base/text.h"

#define NULL_NS (3 * NS_PER_SEC) /* so long something at a port that the user gave may be silent */
#define RESERVED_FIRST 512u
#define RESERVED_PORTS 512u
#define NFS_PORT 2049u
#define TRY_NS (5 * NS_PER_SEC)  /* so long one way is tried while another is left: three SYNs */
#define GRACE_NS (400 * NS_PER_MS) /* so long another way is tried when the time is over */

static const char *host_of(const struct nfsbe_server *server, char buf[128]) {
    return text_safe(buf, 128, server->host, strlen(server->host));
}

/* `server` with what is left of the time. */
static struct nfsbe_server within(const struct nfsbe_server *server, int64_t end) {
    int64_t left = end - sock_now();
    return nfsbe_server_share(server, left < GRACE_NS ? GRACE_NS : left);
}

static const char *key_of(unsigned program) {
    return program == NFS_PROGRAM_ID ? "nfsport" : "mountport";
}

/* ---- TCP, UDP ---- */

int nfsbe_conn_tcp(const struct nfsbe_server *server, unsigned program, unsigned version, unsigned port,
                   struct nfsbe_conn **out, struct err *err) {
    enum tcp_source source = TCP_SOURCE_FINE;
    char host[128];
    struct tcp_how how = { .host = server->host, .port = port, .reserved = program != NFSBE_PORTMAP_PROGRAM_ID,
                           .timeout = server->timeout, .settings = &server->source, .source = &source };
    *out = NULL;
    int fd = tcp_connect(&how, err);
    if (fd < 0) return err_prefix(err, "%s: %s version %u at TCP port %u", host_of(server, host),
                                  nfsbe_program_name(program), version, port);
    *out = nfsbe_conn_over(server, program, version, fd, false);
    if (!*out) return err_set(err, STATUS_TARGET, "no memory");
    (*out)->source = source;
    return 0;
}

/* A socket with a reserved source port where one is to be had. Negative errno. */
static int udp_socket(const struct nfsbe_server *server, const struct addrinfo *to) {
    struct sockaddr_storage from = server->source.source;
    socklen_t len = to->ai_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    unsigned start = (unsigned)(rng_mix((uint64_t)sock_now()) % RESERVED_PORTS);
    int fd = socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0) return -errno;
    if (!server->source.source_len) from = (struct sockaddr_storage){ .ss_family = (sa_family_t)to->ai_family };
    for (unsigned i = 0; i <= RESERVED_PORTS; i++) { /* the last one: any */
        uint16_t port = htons((uint16_t)(i < RESERVED_PORTS ? RESERVED_FIRST + (start + i) % RESERVED_PORTS : 0));
        if (to->ai_family == AF_INET6) ((struct sockaddr_in6 *)&from)->sin6_port = port;
        else ((struct sockaddr_in *)&from)->sin_port = port;
        if (bind(fd, (struct sockaddr *)&from, len) == 0) break;
        if (errno == EACCES) i = RESERVED_PORTS - 1;
    }
    if (connect(fd, to->ai_addr, to->ai_addrlen) == 0) return fd;
    int error = errno;
    close(fd);
    return -error;
}

/* The first address of the name: UDP does not tell whether anybody is there. The name is an address by then. */
int nfsbe_conn_udp(const struct nfsbe_server *server, unsigned program, unsigned version, unsigned port,
                   struct nfsbe_conn **out, struct err *err) {
    struct addrinfo *list;
    char host[128];

    *out = NULL;
    if (tcp_resolve(server->host, port, SOCK_DGRAM, &server->source, &list, err) != 0) return -1;
    int fd = udp_socket(server, list);
    freeaddrinfo(list);
    if (fd < 0)
        return err_set(err, STATUS_TARGET, "%s: %s version %u at UDP port %u: %s", host_of(server, host),
                       nfsbe_program_name(program), version, port, strerror(-fd));
    *out = nfsbe_conn_over(server, program, version, fd, true);
    return *out ? 0 : err_set(err, STATUS_TARGET, "no memory");
}

/* ---- who is there? ---- */

static int other_version(const struct nfsbe_conn *conn, const char *what, struct err *err) {
    const struct nfsreply *r = &conn->reply;
    char host[128];
    bool four = conn->program == NFS_PROGRAM_ID && r->low >= 4;
    return err_set(err, STATUS_TARGET, "%s: %s: %s%s", host_of(conn->server, host), what, r->words,
                   four ? ": this server speaks NFSv4 only, or NFSv3 is switched off there; samedisk needs NFSv3" : "");
}

int nfsbe_conn_null(struct nfsbe_conn *conn, bool port_given, struct err *err) {
    const char *name = nfsbe_program_name(conn->program);
    int64_t timeout = conn->timeout;
    struct xdr_out args;
    struct xdr_in result;
    unsigned port = 0;
    char what[120], address[64];

    sock_peer(conn->fd, address, sizeof address, &port);
    snprintf(what, sizeof what, "%s version %u at %s port %u", name, conn->version, conn->datagram ? "UDP" : "TCP", port);
    if (port_given && timeout > NULL_NS) conn->timeout = NULL_NS;
    nfsbe_conn_begin(conn, 0, &args);
    int rc = nfsbe_conn_call(conn, &args, what, &result, err);
    bool in_time = conn->timeout == timeout;
    conn->timeout = timeout;
    if (rc == 0) return 0;
    if (conn->reply.kind == NFSREPLY_NOT_DONE && conn->reply.accept == NFSRPC_PROG_MISMATCH)
        return other_version(conn, what, err);
    if (!conn->dead) return rc;
    if (!in_time && conn->error == ETIMEDOUT)
        return err_set(err, STATUS_TARGET,
                       "%s: no answer to procedure NULL within %lld s: this does not answer as %s (another service's "
                       "port, or a server that hangs)", what, (long long)(NULL_NS / NS_PER_SEC), name);
    size_t n = strlen(err->msg);
    snprintf(err->msg + n, sizeof err->msg - n, ": this does not answer as %s%s%s%s", name,
             port_given ? " (is " : "", port_given ? key_of(conn->program) : "", port_given ? "= right?)" : "");
    return -1;
}

bool nfsbe_conn_only_v4(const struct nfsbe_server *server, int64_t end, struct err *err) {
    struct nfsbe_server quick = within(server, end);
    struct nfsbe_conn *conn;
    struct err why = { .status = STATUS_OK };
    if (quick.timeout > NULL_NS) quick.timeout = NULL_NS;
    if (nfsbe_conn_tcp(&quick, NFS_PROGRAM_ID, 3, server->port ? server->port : NFS_PORT, &conn, &why) != 0) return false;
    bool only = nfsbe_conn_null(conn, true, &why) != 0 && conn->reply.kind == NFSREPLY_NOT_DONE &&
                conn->reply.accept == NFSRPC_PROG_MISMATCH && conn->reply.low >= 4;
    nfsbe_conn_close(conn);
    if (only) *err = why;
    return only;
}

/* Connected; it has to answer. */
static int there(struct nfsbe_conn **conn, bool given, struct err *err) {
    if (nfsbe_conn_null(*conn, given, err) == 0) return 0;
    nfsbe_conn_close(*conn);
    *conn = NULL;
    return -1;
}

/* To be connected to, over what is left of the time. */
struct way {
    const struct nfsbe_server *server;
    unsigned program;
    int64_t end;
};

/* The same where another way is left: a third of the time, and not long. */
static struct way first_way(const struct way *w) {
    int64_t now = sock_now(), share = (w->end - now) / 3;
    return (struct way){ w->server, w->program, now + (share < TRY_NS ? share : TRY_NS) };
}

/* A connection that stays has the whole timeout for each call, and a server that does not end with this function. */
static int keep(const struct way *w, struct nfsbe_conn **out) {
    (*out)->server = w->server;
    (*out)->timeout = w->server->timeout;
    return 0;
}

/* `host` "": the server's. *connected (may be NULL): somebody listens there. */
static int tcp_there(const struct way *w, const char *host, unsigned port, bool given, bool *connected,
                     struct nfsbe_conn **out, struct err *err) {
    struct nfsbe_server at = within(w->server, w->end);
    if (*host) snprintf(at.host, sizeof at.host, "%s", host);
    if (nfsbe_conn_tcp(&at, w->program, 3, port, out, err) != 0) return -1;
    if (connected) *connected = true;
    (*out)->timeout = within(w->server, w->end).timeout;
    return there(out, given, err) == 0 ? keep(w, out) : -1;
}

static int udp_there(const struct way *w, const char *host, unsigned port, struct nfsbe_conn **out, struct err *err) {
    struct nfsbe_server at = within(w->server, w->end);
    if (*host) snprintf(at.host, sizeof at.host, "%s", host);
    if (nfsbe_conn_udp(&at, w->program, 3, port, out, err) != 0) return -1;
    return there(out, true, err) == 0 ? keep(w, out) : -1;
}

/* MOUNT may be there over UDP only, and then nobody listens at TCP's port; data never goes over it. */
static int at_given_port(const struct way *w, struct nfsbe_conn **out, struct err *err) {
    struct err udp = { .status = STATUS_OK };
    bool connected = false, mount = w->program == NFS_MOUNT_PROGRAM_ID;
    const struct way first = mount ? first_way(w) : *w;
    if (tcp_there(&first, "", w->server->port, true, &connected, out, err) == 0) return 0;
    return mount && !connected ? udp_there(w, "", w->server->port, out, &udp) : -1;
}

/* ---- by the portmapper ---- */

static int not_registered(const struct nfsbe_server *server, unsigned program, const char *but, struct err *err) {
    char host[128];
    return err_set(err, STATUS_TARGET, "%s: the portmapper does not know %s version 3%s; %s= names its port",
                   host_of(server, host), nfsbe_program_name(program), but, key_of(program));
}

/* NFS is nearly always at 2049. What the portmapper says is believed first. */
static int nfs_without(const struct way *w, const char *why, struct nfsbe_conn **out, struct err *err) {
    struct err then = { .status = STATUS_OK };
    if (tcp_there(w, "", NFS_PORT, true, NULL, out, &then) == 0) return 0;
    return err_set(err, STATUS_TARGET, "%.500s; tried %u, the port of NFS, as well: %.500s; nfsport= and mountport= name "
                   "the ports", why, NFS_PORT, then.msg);
}

int nfsbe_conn_open_until(const struct nfsbe_server *server, unsigned program, int64_t end, struct nfsbe_conn **out,
                          struct err *err) {
    const struct way w = { server, program, end };
    const struct nfsbe_server asked = within(server, end);
    struct nfsbe_ports ports;
    struct err why = { .status = STATUS_OK };

    *out = NULL;
    if (server->port) return at_given_port(&w, out, err);
    if (nfsbe_portmap(&asked, program, &ports, &why) != 0) {
        if (program == NFS_PROGRAM_ID) return nfs_without(&w, why.msg, out, err);
        return err_set(err, STATUS_TARGET, "%.1000s; without a portmapper mountport= names the port of MOUNT, and "
                       "nfsport= that of NFS", why.msg);
    }
    /* from here on at ports.address: the answer is this address's */
    int rc = -1;
    const struct way first = program == NFS_MOUNT_PROGRAM_ID && ports.udp ? first_way(&w) : w;
    if (ports.tcp) rc = tcp_there(&first, ports.address, ports.tcp, false, NULL, out, err);
    else not_registered(server, program, ports.udp ? " over TCP" : "", err);
    if (rc != 0 && program == NFS_MOUNT_PROGRAM_ID && ports.udp) /* its TCP is missing, or a firewall's victim */
        rc = udp_there(&w, ports.address, ports.udp, out, ports.tcp ? &why : err);
    if (rc != 0 && program == NFS_PROGRAM_ID && !ports.tcp) {
        why = *err;
        rc = nfs_without(&w, why.msg, out, err);
    }
    return rc;
}

int nfsbe_conn_open(const struct nfsbe_server *server, unsigned program, struct nfsbe_conn **out, struct err *err) {
    return nfsbe_conn_open_until(server, program, sock_now() + server->timeout, out, err);
}
