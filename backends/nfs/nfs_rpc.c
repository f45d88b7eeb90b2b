/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/nfs/nfs_rpc.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/net/sock.h"
#include "base/text.h"

/* One wait is no longer, so that the library is called now and then, as it wants to be. */
#define TICK_NS (100 * NS_PER_MS)

struct rpc_context *nfsbe_rpc_new(const struct nfsbe_server *server, struct nfs_context **holder) {
    struct rpc_context *rpc = nfsbe_compat_new(holder);
    struct AUTH *auth = rpc ? libnfs_authunix_create("samedisk", server->uid, server->gid, 0, NULL) : NULL;
    if (!auth) {
        nfsbe_compat_destroy(rpc, *holder);
        return NULL;
    }
    rpc_set_auth(rpc, auth);
    return rpc;
}

void nfsbe_conn_begin(struct nfsbe_conn *conn, unsigned (*take)(const void *res, void *arg), void *arg) {
    conn->waiting = true;
    conn->take = take;
    conn->arg = arg;
    conn->words[0] = '\0';
}

void nfsbe_conn_cb(struct rpc_context *rpc, int status, void *data, void *private_data) {
    struct nfsbe_conn *conn = private_data;
    (void)rpc;
    if (!conn->waiting) return; /* given up */
    conn->waiting = false;
    conn->status = status;
    if (status == RPC_STATUS_SUCCESS) conn->result = conn->take ? conn->take(data, conn->arg) : 0;
    else if (status == RPC_STATUS_ERROR && data)
        text_safe(conn->words, sizeof conn->words, data, strnlen(data, sizeof conn->words));
}

/* One round of the library. While connecting it wants to hear of errors as "writable", later as "readable". */
static int service(struct nfsbe_conn *conn, int64_t wait_ns) {
    int events = rpc_which_events(conn->rpc);
    int got = sock_wait(rpc_get_fd(conn->rpc), (short)events, wait_ns < TICK_NS ? wait_ns : TICK_NS);
    int pass = got > 0 ? got & (POLLIN | POLLOUT) : 0;
    if (got > 0 && (got & (POLLERR | POLLHUP | POLLNVAL))) pass |= events & (POLLIN | POLLOUT);
    return rpc_service(conn->rpc, pass);
}

/* "RPC ERROR: Failed to reconnect" is what the library says of a lost connection that it was told not to bring back. */
static const char *words_of(const struct nfsbe_conn *conn, char *buf, size_t len) {
    const char *lib = rpc_get_error(conn->rpc);
    bool lost = strncmp(conn->words, "RPC ERROR", 9) == 0;
    if (conn->words[0] && !lost) return conn->words;
    if (lib && *lib && !lost) return text_safe(buf, len, lib, strlen(lib));
    return sock_why(rpc_get_fd(conn->rpc), buf, len);
}

const char *nfsbe_conn_asker(const struct nfsbe_conn *conn, char *buf, size_t len) {
    unsigned port = sock_local_port(rpc_get_fd(conn->rpc));
    snprintf(buf, len, "asked as uid %u gid %u from TCP port %u%s", conn->server->uid, conn->server->gid, port,
             port < 1024
                 ? ""
                 : ": an export with `secure` wants a port below 1024, which takes root or CAP_NET_BIND_SERVICE");
    return buf;
}

int nfsbe_conn_finish(struct nfsbe_conn *conn, int queued, const char *what, unsigned *result, struct err *err) {
    char words[256], host[128], asker[200];
    int64_t end = sock_now() + conn->server->timeout;
    const char *why = NULL;

    text_safe(host, sizeof host, conn->server->host, strlen(conn->server->host));
    if (conn->dead || queued != 0) why = conn->dead ? "the connection is lost" : "no memory";
    while (!why && conn->waiting) {
        int64_t left = end - sock_now();
        if (left <= 0) {
            conn->dead = true;
            conn->waiting = false;
            return err_set(err, STATUS_TARGET, "%s: no answer from %s within %lld s (timeout=)", what, host,
                           (long long)(conn->server->timeout / NS_PER_SEC));
        }
        if (service(conn, left) < 0) {
            conn->dead = true;
            if (conn->waiting) why = words_of(conn, words, sizeof words);
        }
    }
    if (!why && conn->status == RPC_STATUS_TIMEOUT) why = "no answer";
    if (!why && conn->status != RPC_STATUS_SUCCESS) why = words_of(conn, words, sizeof words);
    conn->waiting = false;
    if (why && conn->connected && !conn->dead) /* the server's RPC layer does not want this client */
        return err_set(err, STATUS_TARGET, "%s: %s: %s (%s)", host, what, why,
                       nfsbe_conn_asker(conn, asker, sizeof asker));
    if (why) return err_set(err, STATUS_TARGET, "%s: %s: %s", host, what, why);
    *result = conn->result;
    return 0;
}

int nfsbe_conn_open(const struct nfsbe_server *server, unsigned program, struct nfsbe_conn **out, struct err *err) {
    struct nfsbe_conn *conn = calloc(1, sizeof *conn);
    const char *service_name = program == NFS_PROGRAM_ID ? "NFS" : "MOUNT";
    const char *key = program == NFS_PROGRAM_ID ? "nfsport" : "mountport";
    char what[96];
    unsigned result;
    int queued;

    *out = NULL;
    if (!conn) return err_set(err, STATUS_TARGET, "no memory");
    conn->server = server;
    conn->rpc = nfsbe_rpc_new(server, &conn->holder);
    if (!conn->rpc) {
        free(conn);
        return err_set(err, STATUS_TARGET, "no memory for a libnfs context");
    }
    nfsbe_conn_begin(conn, NULL, NULL);
    if (server->port) {
        snprintf(what, sizeof what, "connecting to %s version 3 at TCP port %u", service_name, server->port);
        queued =
            rpc_connect_port_async(conn->rpc, server->host, (int)server->port, (int)program, 3, nfsbe_conn_cb, conn);
    } else {
        snprintf(what, sizeof what, "asking the portmapper (TCP port 111) for %s version 3 (or give %s=)", service_name,
                 key);
        queued = rpc_connect_program_async(conn->rpc, server->host, (int)program, 3, nfsbe_conn_cb, conn);
    }
    if (queued != 0) {
        char words[256];
        conn->waiting = false;
        err_set(err, STATUS_TARGET, "%s: %s", what, words_of(conn, words, sizeof words));
    } else if (nfsbe_conn_finish(conn, 0, what, &result, err) == 0) {
        sock_nodelay(rpc_get_fd(conn->rpc)); /* libnfs 4 and 5 leave Nagle's algorithm on */
        conn->connected = true;
        *out = conn;
        return 0;
    }
    nfsbe_conn_close(conn);
    return -1;
}

/* libnfs sets SO_LINGER 0 on its sockets, so that closing one sends RST and leaves no TIME_WAIT behind. That is wanted
 * here: reserved ports are few (512 to 1023), and one that waits for a minute after every run would be missing in the
 * next. It is also harmless, because a connection is closed only after its last reply has come (or was given up). */
void nfsbe_conn_close(struct nfsbe_conn *conn) {
    if (!conn) return;
    conn->waiting = false;
    nfsbe_compat_destroy(conn->rpc, conn->holder);
    free(conn);
}
