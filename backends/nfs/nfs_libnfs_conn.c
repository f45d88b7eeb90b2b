/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/nfs/nfs_libnfs_conn.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backends/net/sock.h"
#include "backends/net/stuck.h"
#include "backends/net/tcpinfo.h"
#include "base/text.h"

/* One wait is no longer, so that the library is called now and then, as it wants to be. */
#define TICK_NS (100 * NS_PER_MS)
#define GUARD_NS (50 * NS_PER_MS)
#define FLOOD_BYTES (64u << 20) /* far more than the largest reply */

static struct rpc_context *new_rpc(const struct nfsbe_server *server, struct nfs_context **holder) {
    uint32_t groups[NFSBE_GROUPS_MAX];
    memcpy(groups, server->groups, sizeof groups);
    struct rpc_context *rpc = nfsbe_compat_new(holder);
    struct AUTH *auth =
        rpc ? libnfs_authunix_create("samedisk", server->uid, server->gid, server->n_groups, groups) : NULL;
    if (!auth) {
        nfsbe_compat_destroy(rpc, *holder);
        return NULL;
    }
    rpc_set_auth(rpc, auth);
    return rpc;
}

static void connected(struct rpc_context *rpc, int status, void *data, void *private_data) {
    struct nfslib_conn *conn = private_data;
    (void)rpc;
    if (!conn->waiting) return; /* given up */
    conn->waiting = false;
    conn->status = status;
    if (status == RPC_STATUS_ERROR && data)
        text_safe(conn->words, sizeof conn->words, data, strnlen(data, sizeof conn->words));
}

/* ---- the guard ---- */

/* A call that lasts too long. */
static void cut_and_wait(struct nfslib_guard *g, unsigned inside) {
    int64_t end = sock_now() + STUCK_NS;
    __atomic_store_n(&g->flooded, true, __ATOMIC_RELAXED);
    shutdown(g->fd, SHUT_RDWR);
    while (sock_wait(g->stop, POLLIN, GUARD_NS) <= 0 && __atomic_load_n(&g->calls, __ATOMIC_RELAXED) == inside)
        if (sock_now() > end) stuck_in("libnfs");
}

static void *guard(void *arg) {
    struct nfslib_guard *g = arg;
    unsigned seen = 0, last = 0;
    uint64_t base = 0;
    int64_t since = sock_now();
    while (sock_wait(g->stop, POLLIN, GUARD_NS) <= 0) {
        unsigned calls = __atomic_load_n(&g->calls, __ATOMIC_RELAXED);
        int64_t now = sock_now();
        if (!(calls & 1) || calls != last) since = now;
        last = calls;
        if (now - since >= g->timeout) {
            cut_and_wait(g, calls);
            break;
        }
        unsigned replies = __atomic_load_n(&g->replies, __ATOMIC_RELAXED);
        uint64_t bytes = tcpinfo_received(g->fd);
        if (replies != seen) base = bytes;
        seen = replies;
        if (bytes < base || bytes - base <= FLOOD_BYTES) continue;
        __atomic_store_n(&g->flooded, true, __ATOMIC_RELAXED);
        shutdown(g->fd, SHUT_RDWR);
        break;
    }
    return NULL;
}

static int guard_start(struct nfslib_conn *conn, struct err *err) {
    struct nfslib_guard *g = &conn->guard;
    sigset_t all, before;
    g->fd = rpc_get_fd(conn->rpc);
    g->timeout = conn->server->timeout;
    g->stop = eventfd(0, EFD_CLOEXEC);
    if (g->stop < 0) return err_set(err, STATUS_TARGET, "eventfd: %s", strerror(errno));
    sigfillset(&all); /* signals are the main thread's */
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int error = pthread_create(&g->thread, NULL, guard, g);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    g->running = error == 0;
    return error == 0 ? 0 : err_set(err, STATUS_TARGET, "a thread: %s", strerror(error));
}

static void guard_stop(struct nfslib_guard *g) {
    if (g->running) {
        eventfd_write(g->stop, 1);
        pthread_join(g->thread, NULL);
    }
    if (g->stop >= 0) close(g->stop);
}

/* ---- connecting ---- */

/* One round of the library. While connecting it wants to hear of errors as "writable", later as "readable". */
static int service(struct nfslib_conn *conn, int64_t wait_ns) {
    int events = rpc_which_events(conn->rpc);
    int got = sock_wait(rpc_get_fd(conn->rpc), (short)events, wait_ns < TICK_NS ? wait_ns : TICK_NS);
    int pass = got > 0 ? got & (POLLIN | POLLOUT) : 0;
    if (got > 0 && (got & (POLLERR | POLLHUP | POLLNVAL))) pass |= events & (POLLIN | POLLOUT);
    return nfslib_service(conn, pass);
}

/* "RPC ERROR: Failed to reconnect" is what the library says of a lost connection that it was told not to bring back. */
static const char *words_of(const struct nfslib_conn *conn, char *buf, size_t len) {
    const char *lib = rpc_get_error(conn->rpc);
    bool lost = strncmp(conn->words, "RPC ERROR", 9) == 0;
    if (conn->words[0] && !lost) return conn->words;
    if (lib && *lib && !lost) return text_safe(buf, len, lib, strlen(lib));
    return sock_why(rpc_get_fd(conn->rpc), buf, len);
}

static int wait_for(struct nfslib_conn *conn, const char *what, struct err *err) {
    char words[256], host[128];
    int64_t end = sock_now() + conn->server->timeout;

    text_safe(host, sizeof host, conn->server->host, strlen(conn->server->host));
    while (conn->waiting) {
        int64_t left = end - sock_now();
        if (left <= 0 || backend_stopped()) {
            conn->waiting = false;
            return err_set(err, STATUS_TARGET, "%s: no answer from %s within %lld s (timeout=)", what, host,
                           (long long)(conn->server->timeout / NS_PER_SEC));
        }
        if (service(conn, left) >= 0 || !conn->waiting) continue;
        conn->waiting = false;
        conn->status = RPC_STATUS_ERROR;
    }
    if (conn->status == RPC_STATUS_SUCCESS) return 0;
    return err_set(err, STATUS_TARGET, "%s: %s: %s", host, what, words_of(conn, words, sizeof words));
}

int nfslib_open(const struct nfsbe_server *server, struct nfslib_conn **out, struct err *err) {
    struct nfslib_conn *conn = calloc(1, sizeof *conn);
    char what[96], words[256];
    int rc = -1;

    *out = NULL;
    if (!conn) return err_set(err, STATUS_TARGET, "no memory");
    conn->server = server;
    conn->guard.stop = -1;
    conn->rpc = new_rpc(server, &conn->holder);
    if (!conn->rpc) {
        free(conn);
        return err_set(err, STATUS_TARGET, "no memory for a libnfs context");
    }
    snprintf(what, sizeof what, "connecting to NFS version 3 at TCP port %u by libnfs", server->port);
    conn->waiting = true;
    if (rpc_connect_port_async(conn->rpc, server->host, (int)server->port, NFS_PROGRAM_ID, 3, connected, conn) == 0) {
        rc = guard_start(conn, err);
        if (rc == 0) rc = wait_for(conn, what, err);
    } else {
        conn->waiting = false;
        err_set(err, STATUS_TARGET, "%s: %s", what, words_of(conn, words, sizeof words));
    }
    if (rc != 0) {
        nfslib_close(conn);
        return -1;
    }
    sock_nodelay(rpc_get_fd(conn->rpc)); /* libnfs 4 and 5 leave Nagle's algorithm on */
    *out = conn;
    return 0;
}

/* libnfs sets SO_LINGER 0 on its sockets, as nfsbe_conn_close does, for the same reason. */
void nfslib_close(struct nfslib_conn *conn) {
    if (!conn) return;
    conn->waiting = false;
    guard_stop(&conn->guard); /* before its descriptor goes */
    nfsbe_compat_destroy(conn->rpc, conn->holder);
    free(conn);
}
