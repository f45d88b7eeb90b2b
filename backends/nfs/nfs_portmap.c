/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/nfs/nfs_portmap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/net/sock.h"

#define PORTMAP_PORT 111u
#define PORTMAP_NS (5 * NS_PER_SEC) /* a firewall in front of it must not use up timeout= */
#define UDP_NS (2 * NS_PER_SEC)
#define SILENT_UDP_NS (400 * NS_PER_MS)
#define IP_TCP 6u
#define IP_UDP 17u
#define GETADDR 3u                  /* version 2: GETPORT, also 3 */
#define UADDR_MAX 255u

int nfsbe_portmap_uaddr(const char *text) {
    unsigned long part[2] = { 0, 0 };
    const char *end = text + strlen(text);
    if (!*text) return 0;
    for (int i = 1; i >= 0; i--) { /* the last two numbers are the port's bytes */
        const char *dot = end;
        while (dot > text && dot[-1] >= '0' && dot[-1] <= '9') dot--;
        if (dot == text || dot == end || dot[-1] != '.' || end - dot > 3) return -1;
        part[i] = strtoul(dot, NULL, 10);
        if (part[i] > 255) return -1;
        end = dot - 1;
    }
    return (int)(part[0] << 8 | part[1]);
}

static int getport(struct nfsbe_conn *conn, unsigned program, unsigned protocol, unsigned *port, struct err *err) {
    struct xdr_out args;
    struct xdr_in result;
    conn->version = 2;
    nfsbe_conn_begin(conn, GETADDR, &args);
    xdr_put32(&args, program);
    xdr_put32(&args, 3);
    xdr_put32(&args, protocol);
    xdr_put32(&args, 0);
    if (nfsbe_conn_call(conn, &args, "asking the portmapper (version 2)", &result, err) != 0) return -1;
    *port = xdr_get32(&result);
    return result.bad || *port > 65535 ? nfsbe_conn_garbled(conn, "asking the portmapper (version 2)", err) : 0;
}

static int getaddr(struct nfsbe_conn *conn, unsigned version, unsigned program, const char *netid, unsigned *port,
                   struct err *err) {
    struct xdr_out args;
    struct xdr_in result;
    char text[UADDR_MAX + 1], what[60];
    snprintf(what, sizeof what, "asking the portmapper (version %u)", version);
    conn->version = version;
    nfsbe_conn_begin(conn, GETADDR, &args);
    xdr_put32(&args, program);
    xdr_put32(&args, 3);
    xdr_put_text(&args, netid);
    xdr_put_text(&args, "");
    xdr_put_text(&args, "");
    if (nfsbe_conn_call(conn, &args, what, &result, err) != 0) return -1;
    xdr_get_text(&result, UADDR_MAX, text);
    int got = result.bad ? -1 : nfsbe_portmap_uaddr(text);
    if (got < 0) return nfsbe_conn_garbled(conn, what, err);
    *port = (unsigned)got;
    return 0;
}

/* Every version that the portmapper may have, for as long as the connection holds. */
static int ask(struct nfsbe_conn *conn, unsigned program, struct nfsbe_ports *ports, struct err *err) {
    bool six = strchr(ports->address, ':') != NULL;
    const char *tcp = six ? "tcp6" : "tcp", *udp = six ? "udp6" : "udp";
    int rc = -1;
    if (!six || conn->datagram) rc = getport(conn, program, IP_TCP, &ports->tcp, err);
    if (rc == 0) return getport(conn, program, IP_UDP, &ports->udp, err);
    for (unsigned version = 4; version >= 3 && rc != 0 && !conn->dead; version--)
        if ((rc = getaddr(conn, version, program, tcp, &ports->tcp, err)) == 0)
            rc = getaddr(conn, version, program, udp, &ports->udp, err);
    /* IPv6, and a portmapper that knows version 2 only */
    if (rc != 0 && six && !conn->dead && (rc = getport(conn, program, IP_TCP, &ports->tcp, err)) == 0)
        rc = getport(conn, program, IP_UDP, &ports->udp, err);
    return rc;
}

int nfsbe_portmap(const struct nfsbe_server *server, unsigned program, struct nfsbe_ports *ports, struct err *err) {
    int64_t most = server->timeout / 2 < PORTMAP_NS ? server->timeout / 2 : PORTMAP_NS;
    struct nfsbe_server quick = nfsbe_server_share(server, most);
    struct nfsbe_conn *conn;
    struct err udp = { .status = STATUS_OK };
    unsigned port;

    memset(ports, 0, sizeof *ports);
    int64_t end = sock_now() + quick.timeout;
    if (nfsbe_conn_tcp(&quick, NFSBE_PORTMAP_PROGRAM_ID, 2, PORTMAP_PORT, &conn, err) != 0) {
        /* where TCP was silent to the end, UDP hardly is anything else */
        quick.timeout = sock_now() >= end ? SILENT_UDP_NS : UDP_NS < quick.timeout ? UDP_NS : quick.timeout;
        if (nfsbe_conn_udp(&quick, NFSBE_PORTMAP_PROGRAM_ID, 2, PORTMAP_PORT, &conn, &udp) != 0) return -1;
    }
    bool over_udp = conn->datagram;
    conn->until = sock_now() + quick.timeout; /* there may be six questions */
    sock_peer(conn->fd, ports->address, sizeof ports->address, &port);
    int rc = ask(conn, program, ports, over_udp ? &udp : err);
    nfsbe_conn_close(conn);
    if (rc == 0) return 0;
    if (over_udp && strlen(err->msg) < 600) {
        size_t n = strlen(err->msg);
        snprintf(err->msg + n, sizeof err->msg - n, "; over UDP: %.400s", udp.msg);
    }
    return -1;
}
