/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bytes from servers that are asked before the load: record marks, reply headers, and the results of every call. The
 * first byte chooses which call they are a reply to. The results come from memory of exactly their size. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backends/nfs/nfs_calls.h"
#include "backends/nfs/nfs_mount.h"
#include "backends/nfs/nfs_portmap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- in place of nfs_rpc.c: every call gets the rest of the input ---- */

static const uint8_t *rest;
static size_t rest_n;
static unsigned char *own; /* the last result's bytes */

static void require(int promise) {
    if (!promise) abort();
}

struct nfsbe_server nfsbe_server_share(const struct nfsbe_server *server, int64_t ns) {
    struct nfsbe_server share = *server;
    share.timeout = ns;
    return share;
}

void nfsbe_conn_begin(struct nfsbe_conn *conn, uint32_t procedure, struct xdr_out *args) {
    (void)procedure;
    *args = (struct xdr_out){ .at = conn->out, .end = conn->out + sizeof conn->out };
}

int nfsbe_conn_call(struct nfsbe_conn *conn, struct xdr_out *args, const char *what, struct xdr_in *result,
                    struct err *err) {
    (void)conn;
    require(!args->full);
    if (rest_n == 0) return err_set(err, STATUS_TARGET, "%s: nothing more", what);
    size_t n = rest_n < 1 + (size_t)rest[0] * 8 ? rest_n : 1 + (size_t)rest[0] * 8;
    free(own);
    own = malloc(n);
    require(own != NULL);
    memcpy(own, rest, n);
    rest += n;
    rest_n -= n;
    *result = (struct xdr_in){ .at = own + 1, .end = own + n };
    return 0;
}

int nfsbe_conn_garbled(struct nfsbe_conn *conn, const char *what, struct err *err) {
    conn->dead = true;
    return err_set(err, STATUS_TARGET, "%s: garbled", what);
}

int nfsbe_conn_tcp(const struct nfsbe_server *server, unsigned program, unsigned version, unsigned port,
                   struct nfsbe_conn **out, struct err *err) {
    (void)port;
    *out = calloc(1, sizeof **out);
    if (!*out) return err_set(err, STATUS_TARGET, "no memory");
    **out = (struct nfsbe_conn){ .fd = -1, .server = server, .program = program, .version = version, .timeout = 1 };
    return 0;
}

int nfsbe_conn_udp(const struct nfsbe_server *server, unsigned program, unsigned version, unsigned port,
                   struct nfsbe_conn **out, struct err *err) {
    return nfsbe_conn_tcp(server, program, version, port, out, err);
}

void nfsbe_conn_close(struct nfsbe_conn *conn) {
    free(conn);
}

/* ---- records and headers ---- */

static void records(const uint8_t *data, size_t size) {
    struct nfsrecord whole = { .len = 0 }, pieces = { .len = 0 };
    struct nfsreply reply;
    const unsigned char *p = data, *q = data;
    size_t n = size;
    int a = nfsrecord_feed(&whole, &p, &n), b = 0;
    for (size_t i = 0; i < size && b == 0; i++) {
        size_t one = 1;
        b = nfsrecord_feed(&pieces, &q, &one);
        if (b == 1 && one == 1) break; /* it was complete before this byte */
    }
    if (a == 1) require(b == 1 || (size_t)(p - data) == size);
    require(whole.room <= 2 * NFSRECORD_MAX && whole.len <= size);
    if (a < 0) require(whole.why[0] != '\0');
    if (a == 1 && b == 1) require(whole.len == pieces.len && (!whole.len || !memcmp(whole.bytes, pieces.bytes, whole.len)));
    struct xdr_in x = { .at = whole.bytes, .end = whole.bytes + whole.len };
    if (a == 1 && whole.len) {
        nfsreply_parse(&reply, &x, 0x01020304);
        if (reply.kind != NFSREPLY_BODY && reply.kind != NFSREPLY_OTHER) require(reply.words[0] != '\0');
    }
    nfsrecord_free(&whole);
    nfsrecord_free(&pieces);
}

/* ---- results ---- */

static void see(void *arg, const char *name) {
    *(uint64_t *)arg += strlen(name);
}

static void text(const uint8_t *data, size_t size) {
    char *copy = malloc(size + 1);
    require(copy != NULL);
    memcpy(copy, data, size);
    copy[size] = '\0';
    int port = nfsbe_portmap_uaddr(copy);
    require(port >= -1 && port <= 65535);
    free(copy);
}

static void portmap(void) {
    static const struct nfsbe_server server = { .host = "127.0.0.1", .timeout = 1 };
    struct nfsbe_ports ports;
    struct err err;
    if (nfsbe_portmap(&server, NFS_PROGRAM_ID, &ports, &err) == 0) require(ports.tcp <= 65535 && ports.udp <= 65535);
}

static void results(unsigned which, struct nfsbe_conn *conn) {
    static const struct nfsbe_fh dir = { .len = 32 };
    struct nfsbe_fh fh = { .len = 0 };
    struct nfsbe_attr attr;
    struct nfsbe_fsinfo info;
    struct nfsbe_fsstat stat;
    struct nfsbe_pathconf conf;
    struct nfsbe_mnt mnt = { .n = 0 };
    struct nfsbe_exports exports = { .n = 0 };
    struct err err;
    char words[200];
    uint32_t granted;
    uint64_t sum = 0;
    bool cut;

    switch (which) {
    case 0: nfsbe_call_getattr(conn, &dir, &attr, &err); break;
    case 1: if (nfsbe_call_lookup(conn, &dir, "f", &fh, &attr, &err) == 0) require(fh.len && fh.len <= NFS_FH_MAX); break;
    case 2: nfsbe_call_access(conn, &dir, 1, &granted, &err); break;
    case 3: nfsbe_call_fsinfo(conn, &dir, &info, &err); break;
    case 4: nfsbe_call_fsstat(conn, &dir, &stat, &err); break;
    case 5: nfsbe_call_pathconf(conn, &dir, &conf, &err); break;
    case 6: if (nfsbe_call_create(conn, &dir, "f", "verifier", &fh, &err) == 0) require(fh.len <= NFS_FH_MAX); break;
    case 7: nfsbe_call_setattr(conn, &dir, 0600, 1, &err); break;
    case 8: nfsbe_call_remove(conn, &dir, "f", &err); break;
    case 9: nfsbe_call_readdir(conn, &dir, 32768, see, &sum, &cut, &err); break;
    case 10:
        if (nfsbe_call_mnt(conn, "/export", &mnt, &err) == 0) require(mnt.root.len && mnt.n <= NFSBE_FLAVORS_MAX);
        nfsbe_mnt_takes_sys(&mnt);
        nfsbe_mnt_flavors(&mnt, words, sizeof words);
        break;
    default:
        nfsbe_call_exports(conn, &exports, &err);
        require(exports.n <= NFS_EXPORTS_MAX);
        nfsbe_exports_free(&exports);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct nfsbe_conn *conn;
    if (size < 1) return 0;
    rest = data + 1;
    rest_n = size - 1;
    if (data[0] % 15 == 13) {
        records(rest, rest_n);
    } else if (data[0] % 15 == 12) {
        text(rest, rest_n);
    } else if (data[0] % 15 == 14) {
        portmap();
    } else {
        conn = calloc(1, sizeof *conn);
        require(conn != NULL);
        conn->timeout = 1; /* ns: no pause for JUKEBOX */
        results(data[0] % 15, conn);
        free(conn);
    }
    free(own);
    own = NULL;
    return 0;
}
