/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/nfs/nfs_names.h"
#include "backends/nfs/nfs_native.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backends/net/again.h"
#include "backends/net/sock.h"
#include "backends/net/tcp.h"
#include "backends/net/tcpinfo.h"
#include "base/rng.h"

#define DRAIN_NS (500 * NS_PER_MS)       /* detach waits so long for what is still out */
#define MACHINE "samedisk"

/* ---- memory ---- */

static void context_free(struct context *c) {
    if (!c) return;
    for (unsigned i = 0; c->conn && i < c->n_conns; i++) free(c->conn[i].in);
    free(c->conn);
    free(c->verfs.at);
    free(c->late);
    free(c->calls);
    free(c->poll);
    free(c->heads);
    free(c->drained);
    free(c);
}

static bool allocate(struct context *c, unsigned n) {
    c->n_conns = n;
    c->conn = calloc(n, sizeof *c->conn);
    c->verfs = (struct nfsbe_verfs){ .at = calloc(n, sizeof *c->verfs.at), .n = n };
    c->late = calloc((size_t)c->mask + 1, sizeof *c->late);
    c->calls = aligned_alloc(sizeof *c->calls, ((size_t)c->mask + 1) * sizeof *c->calls);
    c->poll = calloc(n, sizeof *c->poll);
    c->heads = malloc(NFSNATIVE_BATCH * (NFSWIRE_CALL_MAX + 4));
    c->drained = calloc(c->depth, sizeof *c->drained);
    if (!c->conn || !c->verfs.at || !c->late || !c->calls || !c->poll || !c->heads || !c->drained) return false;
    memset(c->heads, 0, NFSNATIVE_BATCH * (NFSWIRE_CALL_MAX + 4)); /* pages are there before the clock starts */
    for (unsigned i = 0; i < n; i++) {
        if (!(c->conn[i].in = malloc(NFSNATIVE_IN))) return false;
        memset(c->conn[i].in, 0, NFSNATIVE_IN);
    }
    return true;
}

static void take_socket(struct context *c, unsigned i, int fd, uint32_t max_io) {
    struct timeval tick = { .tv_usec = NFSNATIVE_RCVTIMEO_MS * 1000 };
    struct nfsnative_conn *conn = &c->conn[i];
    char address[54], shown[56];
    unsigned port;
    if (sock_peer(fd, address, sizeof address, &port))
        snprintf(conn->road, sizeof conn->road, "port %u to %s:%u", sock_local_port(fd),
                 sock_bracket(address, shown, sizeof shown), port);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tick, sizeof tick);
    conn->fd = fd;
    conn->index = (uint16_t)i;
    conn->verf = &c->verfs.at[i];
    nfswire_init(&conn->wire, c->calls, c->mask, conn->index, max_io);
}

struct context *nfsnative_new(const struct nfsnative_how *how, const int *fds, unsigned n) {
    const struct attach_how *a = how->attach;
    struct context *c = calloc(1, sizeof *c);
    uint32_t mask = 0;

    if (!c) return NULL;
    c->depth = a->depth ? a->depth : 1;
    if (n > 1) c->extras = (n - 1) * (c->depth < NFSNATIVE_FLUSHES ? c->depth : NFSNATIVE_FLUSHES);
    while (mask + 1 < c->depth + 1 + c->extras) mask = mask * 2 + 1;
    c->mask = mask;
    if (!allocate(c, n)) {
        context_free(c);
        return NULL;
    }
    c->common.engine = &nfsbe_engine_native;
    c->clock = a->clock;
    c->kinds = a->kinds;
    c->may_write = a->write;
    c->apart = (a->write ? 0 : 1u << IO_WRITE) | (n > 1 ? 1u << IO_FLUSH : 0);
    c->handle = how->handle;
    c->next_due = INT64_MAX;
    c->deliver = how->native->deliver || a->looks;
    c->tend = tcp_settings_to_tend(how->tcp);
    c->wait = (enum nfsbe_wait)how->native->wait;
    c->timeout = how->server->timeout;
    c->servers = how->servers;
    c->n_servers = how->servers ? how->servers->n : 0;
    nfsbe_who_words(how->server, c->who, sizeof c->who);
    c->seen = sock_now();
    struct nfswire_who who = {
        .machine = MACHINE, .uid = how->server->uid, .gid = how->server->gid, .groups = how->server->groups,
        .n_groups = how->server->n_groups, .fh = how->file->data, .fh_len = how->file->len
    };
    nfswire_templates(c->templates, &who);
    nfswire_calls_init(c->calls, c->mask,
                       (uint32_t)rng_mix((uint64_t)c->seen ^ (uint64_t)(uintptr_t)c ^ (uint64_t)getpid() << 40));
    for (unsigned i = 0; i < n; i++) take_socket(c, i, fds[i], a->max_io);
    return c;
}

/* ---- one call at a time, before the load ---- */

static int ask_failed(const struct context *c, const char *what, struct err *err) {
    return err_set(err, STATUS_TARGET, "GETATTR: %s (asked as %s from TCP port %u)", what, c->who,
                   sock_local_port(c->conn[0].fd));
}

static int receive(struct nfsnative_conn *conn, int64_t end) {
    for (;;) {
        int64_t left = sock_slice(end);
        if (left <= 0 || backend_stopped()) return -ETIMEDOUT;
        if (sock_wait(conn->fd, POLLIN, left) <= 0) continue;
        ssize_t r = recv(conn->fd, conn->in, NFSNATIVE_IN, MSG_DONTWAIT);
        if (r == 0) return -ECONNRESET;
        if (r < 0 && errno != EAGAIN && errno != EINTR) return -errno;
        if (r < 0) continue;
        nfswire_feed(&conn->wire, conn->in, (size_t)r);
        return 0;
    }
}

static int exchange(struct context *c, struct nfsnative_conn *conn, int64_t end, struct err *err) {
    struct nfswire_call *call = &c->calls[0];
    enum nfswire_got got;

    call->xid += c->mask + 1;
    call->op = NFSWIRE_GETATTR;
    call->where = conn->index;
    nfswire_put(&c->templates[NFSWIRE_GETATTR], c->heads, NFSWIRE_GETATTR, call->xid, 0, 0, 0);
    int rc = sock_send_all(conn->fd, c->heads, c->templates[NFSWIRE_GETATTR].len, end);
    while (rc == 0 && (got = nfswire_next(&conn->wire)) != NFSWIRE_REPLY) {
        if (got == NFSWIRE_BAD) {
            char words[260];
            snprintf(words, sizeof words, "malformed reply: %s", conn->wire.why);
            return ask_failed(c, words, err);
        }
        rc = receive(conn, end);
    }
    if (rc == 0 && nfswire_next(&conn->wire) != NFSWIRE_MORE) rc = -EPROTO; /* nothing else is out */
    if (rc == -ECONNRESET) return ask_failed(c, "the server closed the connection", err);
    return rc == 0 ? 0 : ask_failed(c, strerror(-rc), err);
}

/* GETATTR of the template's file; 0: the reply is in conn->wire.reply. */
static int getattr(struct context *c, struct nfsnative_conn *conn, struct err *err) {
    const struct nfswire_reply *r = &conn->wire.reply;
    int64_t end = sock_now() + c->timeout;
    char name[48], text[200], words[260];
    unsigned answers = 0;

    do {
        if (exchange(c, conn, end, err) != 0) return -1;
        if (r->verdict == NFSWIRE_DONE) return 0;
    } while (r->verdict == NFSWIRE_STATUS && r->status == NFS_STATUS_JUKEBOX && again_sleep(&answers, end));
    const char *kind = nfsnative_words(r, name, sizeof name, text, sizeof text);
    snprintf(words, sizeof words, "%s%s%s", kind, *text ? ": " : "", text);
    return ask_failed(c, words, err);
}

int nfsnative_same(const struct handle *h, const struct nfswire_reply *r, struct err *err) {
    return nfsbe_same_file(h, r->type, r->fsid, r->fileid, r->size, err);
}

/* ---- attach, detach ---- */

/* *none_left counts the connections that would have a reserved source port if one were left. */
static int connect_one(const struct nfsnative_how *native, unsigned i, uint64_t *none_left, struct err *err) {
    enum tcp_source source = TCP_SOURCE_FINE;
    const struct nfsbe_server *server = native->server;
    const struct nfsbe_servers *servers = native->servers;
    struct tcp_how how = { .host = server->host, .port = server->port, .reserved = true, .timeout = server->timeout,
                           .settings = native->tcp, .source = &source };
    if (servers && servers->n) {
        how.host = servers->at[i % servers->n].host;
        if (servers->at[i % servers->n].port) how.port = servers->at[i % servers->n].port;
    }
    int fd = tcp_connect(&how, err);
    *none_left += fd >= 0 && source == TCP_SOURCE_ALL_TAKEN;
    return fd;
}

static void close_all(const int *fds, unsigned n) {
    for (unsigned i = 0; i < n; i++) close(fds[i]);
}

static struct context *connect_context(const struct nfsnative_how *how, unsigned n, struct err *err) {
    int *fds = calloc(n, sizeof *fds);
    struct context *c = NULL;
    unsigned got = 0;
    uint64_t none_left = 0;

    if (!fds) {
        err_set(err, STATUS_TARGET, "no memory");
        return NULL;
    }
    while (got < n && (fds[got] = connect_one(how, got, &none_left, err)) >= 0) got++;
    if (got == n && !(c = nfsnative_new(how, fds, n)))
        err_set(err, STATUS_TARGET, "no memory for %u requests on %u connections", how->attach->depth, n);
    if (!c) close_all(fds, got);
    else c->none_left = none_left;
    for (unsigned i = 0; c && i < n; i++) c->nonreserved += sock_local_port(fds[i]) >= 1024;
    free(fds);
    return c;
}

static void context_close(struct context *c) {
    for (unsigned i = 0; i < c->n_conns; i++)
        if (c->conn[i].fd >= 0) close(c->conn[i].fd);
    context_free(c);
}

static int native_attach(struct handle *h, const struct attach_how *how, struct context **out, struct err *err) {
    struct nfsbe_servers one = { .n = how->road > 1 };
    const struct nfsbe_servers *servers = how->road ? &one : &h->servers;
    struct nfsnative_how native = { .server = &h->server, .servers = servers, .file = &h->file,
                                    .native = &h->native, .tcp = &h->tcp, .attach = how,
                                    .handle = h };
    if (one.n) one.at[0] = h->servers.at[how->road - 2];
    struct context *c = connect_context(&native, how->road ? 1 : (unsigned)h->native.nconnect, err);

    if (!c) return -1;
    for (unsigned i = 0; i < c->n_conns; i++) {
        if (getattr(c, &c->conn[i], err) != 0 || nfsnative_same(h, &c->conn[i].wire.reply, err) != 0) {
            context_close(c);
            if (servers->n == 0) return -1;
            return err_prefix(err, "servers=, address %s", servers->at[i % servers->n].host);
        }
    }
    *out = c;
    return 0;
}

void nfsnative_detach(struct context *c) {
    int64_t end = sock_end(sock_now() + DRAIN_NS), now;
    c->wait = NFSBE_WAIT_BLOCK;
    while (c->lent && (now = sock_now()) < end)
        if (nfsnative_reap(c, c->drained, c->depth, 1, end - now) < 0) break;
    context_close(c);
}

/* `at`: the address of servers= to try; NULL: the control plane's. */
static int probe_one(struct handle *h, struct nfsbe_address *at, struct facts *facts, struct err *err) {
    struct kinds kinds = { .n = 0 };
    struct clock clock;
    struct attach_how attach = { .depth = 1, .clock = &clock, .kinds = &kinds };
    struct nfsbe_servers one = { .n = at != NULL };
    struct nfsnative_how how = { .server = &h->server, .servers = &one, .file = h->exists ? &h->file : &h->dir,
                                 .native = &h->native, .tcp = &h->tcp, .attach = &attach };
    clock_real_init(&clock);
    if (at) one.at[0] = *at;
    struct context *c = connect_context(&how, 1, err);
    if (!c) return -1;
    int rc = getattr(c, &c->conn[0], err);
    if (rc == 0 && at && h->exists) rc = nfsnative_same(h, &c->conn[0].wire.reply, err);
    if (rc == 0 && at) sock_peer(c->conn[0].fd, at->host, sizeof at->host, &at->port);
    if (rc == 0 && facts) {
        unsigned port = sock_local_port(c->conn[0].fd);
        kv_uint(&facts->negotiated, "data_source_port", port);
        kv_bool(&facts->negotiated, "data_source_port_reserved", port && port < 1024);
        tcp_settings_facts(&h->tcp, c->conn[0].fd, &facts->negotiated, &facts->warnings);
    }
    context_close(c);
    return rc;
}

int nfsbe_native_probe(struct handle *h, struct facts *facts, struct err *err) {
    if (h->servers.n == 0) return probe_one(h, NULL, facts, err);
    for (unsigned i = 0; i < h->servers.n; i++) {
        char host[sizeof h->servers.at[i].host];
        snprintf(host, sizeof host, "%s", h->servers.at[i].host);
        if (probe_one(h, &h->servers.at[i], i ? NULL : facts, err) != 0)
            return err_prefix(err, "servers=, address %s, asked for the file that %s has", host, h->server.host);
    }
    return 0;
}

/* ---- counters ---- */

/* Numbered from 1, in the order of servers=. */
static void count_server(const struct context *c, unsigned s, struct kv *out) {
    uint64_t ios = 0, bytes = 0;
    char key[40], address[100];
    unsigned port;

    for (unsigned i = s; i < c->n_conns; i += c->n_servers) {
        ios += c->conn[i].rpcs;
        bytes += c->conn[i].bytes;
    }
    snprintf(key, sizeof key, "server%u_addr", s + 1);
    if (sock_peer(c->conn[s].fd, address, sizeof address, &port)) kv_text(out, key, "%s", address);
    snprintf(key, sizeof key, "server%u_ios", s + 1);
    kv_uint(out, key, ios);
    snprintf(key, sizeof key, "server%u_bytes", s + 1);
    kv_uint(out, key, bytes);
}

/* Of several connections, each by itself; numbered from 0. */
static void count_conn(const struct context *c, struct nfsnative_conn *conn, const struct kv *tcp, struct kv *out) {
    char key[40];

    if (!c->lost && conn->lent) silence_ends(&conn->silence, clock_now(c->clock));
    snprintf(key, sizeof key, "conn%u_wire_ios", conn->index);
    kv_uint(out, key, conn->rpcs);
    snprintf(key, sizeof key, "conn%u_silent_max_ns", conn->index);
    kv_gauge(out, key, (uint64_t)conn->silence.longest);
    snprintf(key, sizeof key, "conn%u_road", conn->index);
    if (conn->road[0]) kv_text(out, key, "%s", conn->road);
    snprintf(key, sizeof key, "conn%u_tcp_retransmits", conn->index);
    if (kv_find(tcp, "tcp_retransmits")) kv_uint(out, key, kv_get_uint(tcp, "tcp_retransmits", 0));
}

void nfsnative_counters(struct context *c, struct kv *out) {
    uint64_t rpcs = 0, sends = 0, recvs = 0, strays = 0;

    for (unsigned i = 0; i < c->n_conns; i++) {
        struct nfsnative_conn *conn = &c->conn[i];
        rpcs += conn->rpcs - conn->lent;
        sends += conn->sends;
        recvs += conn->recvs;
        strays += conn->wire.strays;
        struct kv tcp = { .n = 0 };
        tcpinfo_counters(conn->fd, &tcp);
        kv_merge_sum(out, &tcp);
        if (c->n_conns > 1) count_conn(c, conn, &tcp, out);
        kv_free(&tcp);
    }
    for (unsigned s = 0; s < c->n_servers; s++) count_server(c, s, out);
    const struct nfsbe_counts counts = {.rpcs = rpcs - c->beside,
                                        .commits = c->commits,
                                        .verifier_changes = c->verfs.changes,
                                        .jukebox = c->jukebox,
                                        .retries = c->retries,
                                        .retry_wait = c->retry_wait,
                                        .short_reads = c->short_reads,
                                        .short_writes = c->short_writes,
                                        .held = c->held,
                                        .asked = c->asked,
                                        .answered = c->answered};
    nfsbe_counts_put(&counts, out);
    kv_uint(out, "stray_replies", strays);
    kv_uint(out, "connections", c->n_conns);
    kv_uint(out, "nonreserved_ports", c->nonreserved);
    if (c->none_left) kv_uint(out, "reserved_ports_short", c->none_left);
    kv_uint(out, "sends", sends);
    kv_uint(out, "recvs", recvs);
    kv_uint(out, "polls", c->polls);
}

void nfsnative_watch(struct context *c, struct tcpinfo_watch *w) {
    for (unsigned i = 0; i < c->n_conns && w->n < TCPINFO_FDS; i++) w->fd[w->n++] = c->conn[i].fd;
    w->outstanding = c->lent;
}

const struct nfsbe_engine nfsbe_engine_native = {
    .name = "native",
    .max_io = NFSNATIVE_MAX_IO,
    .attach = native_attach,
    .detach = nfsnative_detach,
    .submit = nfsnative_submit,
    .reap = nfsnative_reap,
    .counters = nfsnative_counters,
    .watch = nfsnative_watch,
};
