/* SPDX-License-Identifier: GPL-2.0-or-later */
/* By which of a name's addresses: the first at which portmapper, MOUNT and NFS all answer. */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backends/net/addresses.h"
#include "backends/net/sock.h"
#include "backends/nfs/nfs_open.h"

#define PORTMAP_PORT 111u
#define RACE_NS (2 * NS_PER_SEC)
#define NFS_NS (5 * NS_PER_SEC) /* three SYNs, while another address is left */

struct reaching {
    const struct nfsbe_conf *conf;
    struct nfsbe_server *server;
    struct nfsbe_root *root;
};

/* Everything goes to one address: that which served MOUNT. */
static int connect_nfs(struct reaching *r, const struct nfsbe_server *at, int64_t end, struct nfsbe_conn **conn,
                       struct err *err) {
    struct nfsbe_server *server = r->server, same = *at;
    char address[sizeof server->host];
    unsigned port;

    if (r->root->address[0]) snprintf(same.host, sizeof same.host, "%s", r->root->address);
    if (nfsbe_conn_open_until(&same, NFS_PROGRAM_ID, end, conn, err) != 0) return -1;
    (*conn)->server = server; /* `same` ends here */
    (*conn)->timeout = server->timeout;
    if (!sock_peer((*conn)->fd, address, sizeof address, &port)) return 0;
    snprintf(server->host, sizeof server->host, "%s", address);
    server->port = port;
    return 0;
}

/* MOUNT and NFS. `*final`: it failed, but by an answer, which another address has no other one to. MOUNT may have to ask
 * a name service about us first; that NFS answers is a matter of moments. */
static int reach_at(struct reaching *r, const struct nfsbe_server *at, bool last, bool *final,
                    struct nfsbe_conn **conn, struct err *err) {
    int64_t end = sock_now() + at->timeout;
    int rc = nfsbe_root_find(r->conf, at, r->root, err);
    *final = rc != 0 && r->root->refused;
    if (!at->whole) end = sock_now() + at->timeout; /* nobody else waits for a turn */
    else if (!last && end > sock_now() + NFS_NS) end = sock_now() + NFS_NS;
    if (rc == 0) rc = connect_nfs(r, at, end, conn, err);
    if (rc != 0) nfsbe_root_free(r->root);
    return rc;
}

/* The one that answers first comes first, so that a dead one costs a moment only; where none does, as they stand. */
static unsigned first_of(const struct reaching *r, const struct addresses *a, int64_t end) {
    const struct nfsbe_server *server = r->server;
    int64_t left = (end - sock_now()) / 4;
    struct tcp_how how = { .host = server->host, .timeout = left < RACE_NS ? left : RACE_NS, .settings = &server->source };
    struct err none;
    unsigned which = 0;
    int fd = a->n > 1 ? addresses_connect(a, &how, &which, &none) : -1;
    if (fd >= 0) close(fd);
    return which;
}

int nfsbe_reach(const struct nfsbe_conf *conf, struct nfsbe_server *server, struct nfsbe_root *root,
                struct nfsbe_conn **conn, struct kv *warnings, struct err *err) {
    struct reaching r = { conf, server, root };
    int64_t end = sock_now() + server->timeout;
    struct addresses a;
    bool final = false;
    int rc;

    *conn = NULL;
    /* A name that is none is no question of ports and ways: said alone, before anything is asked. */
    if (addresses_fill(&a, server->host, conf->mountport ? (unsigned)conf->mountport : PORTMAP_PORT, &server->source,
                       err) != 0) return -1;
    for (;;) {
        unsigned which = first_of(&r, &a, end);
        struct nfsbe_server at = a.several ? nfsbe_server_share(server, addresses_share(&a, end)) : *server;
        if (a.several) addresses_words(&a, which, at.host, sizeof at.host);
        rc = reach_at(&r, &at, a.n == 1, &final, conn, err);
        if (rc == 0 || final || !addresses_failed(&a, which, end, err)) break;
    }
    if (rc == 0 && *a.why)
        kv_text(warnings, "address-left", "%s has addresses that do not serve: %s; everything goes to %s", conf->host,
                a.why, server->host);
    addresses_free(&a);
    return rc;
}
