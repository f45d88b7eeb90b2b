/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which engine drives the load, and what engine=native looks at before it starts: against a server of the test's own on
 * loopback, which knows GETATTR only. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backends/nfs/nfs.h"
#include "tests/unit/nfs_replies.h"

/* In place of the library's. */
const struct nfsbe_engine nfsbe_engine_libnfs = {.name = "libnfs", .max_io = 1u << 20};

#define SIZE (1u << 30)
#define FSID 0x1100000022u
#define CALL_LEN 140u /* of a GETATTR with a file handle of 64 bytes */

/* ---- the server ---- */

enum answer_how { ANSWER_WELL, ANSWER_DENIED, ANSWER_STALE, ANSWER_GARBAGE, ANSWER_TWICE, ANSWER_CLOSE };

struct server {
    int listener, stop[2];
    unsigned port, calls;
    enum answer_how how;
    pthread_t thread;
};

static void answer_one(struct server *s, int fd) {
    static const struct shape plain = {.attributes = 1};
    unsigned char call[CALL_LEN];
    struct bytes b = {0};
    size_t n = 0;
    while (n < sizeof call) {
        ssize_t r = recv(fd, call + n, sizeof call - n, 0);
        if (r <= 0) return;
        n += (size_t)r;
    }
    uint32_t xid = (uint32_t)call[4] << 24 | (uint32_t)call[5] << 16 | (uint32_t)call[6] << 8 | call[7];
    s->calls++;
    if (s->how == ANSWER_WELL || s->how == ANSWER_TWICE) reply_getattr(&b, xid, SIZE, 77, &plain);
    if (s->how == ANSWER_TWICE) reply_getattr(&b, xid, SIZE, 77, &plain);
    if (s->how == ANSWER_DENIED) reply_denied(&b, xid, 1, 5, &plain);
    if (s->how == ANSWER_STALE) reply_status(&b, xid, 70, &plain);
    if (s->how == ANSWER_GARBAGE) add_bytes(&b, "220 this is a mail server\r\n", 27);
    if (s->how == ANSWER_CLOSE) shutdown(fd, SHUT_RDWR);
    if (b.n) send(fd, b.at, b.n, MSG_NOSIGNAL);
    free_bytes(&b);
}

static void *serve(void *arg) {
    struct server *s = arg;
    struct pollfd p[16] = {{.fd = s->stop[0], .events = POLLIN}, {.fd = s->listener, .events = POLLIN}};
    nfds_t n = 2;
    while (poll(p, n, -1) > 0 && !p[0].revents) {
        for (nfds_t i = 2; i < n; i++) {
            char byte;
            if (!p[i].revents) continue;
            if (recv(p[i].fd, &byte, 1, MSG_PEEK) > 0) {
                answer_one(s, p[i].fd);
            } else {
                close(p[i].fd);
                p[i--] = p[--n];
            }
        }
        if (p[1].revents && n < 16) p[n++] = (struct pollfd){.fd = accept(s->listener, NULL, NULL), .events = POLLIN};
    }
    for (nfds_t i = 2; i < n; i++) close(p[i].fd);
    return NULL;
}

static void server_start(struct server *s, enum answer_how how, bool listening) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    memset(s, 0, sizeof *s);
    s->how = how;
    s->listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(s->listener, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(getsockname(s->listener, (struct sockaddr *)&at, &len), 0);
    s->port = ntohs(at.sin_port);
    assert_int_equal(pipe(s->stop), 0);
    if (listening) assert_int_equal(listen(s->listener, 16), 0);
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void server_stop(struct server *s) {
    close(s->stop[1]);
    pthread_join(s->thread, NULL);
    close(s->stop[0]);
    close(s->listener);
}

static void handle_for(struct handle *h, const struct server *s) {
    memset(h, 0, sizeof *h);
    snprintf(h->server.host, sizeof h->server.host, "127.0.0.1");
    snprintf(h->where, sizeof h->where, "the file");
    h->server.port = s->port;
    h->server.timeout = 10 * NS_PER_SEC;
    h->exists = true;
    h->file.len = h->dir.len = NFS_FH_MAX;
    h->fsid = FSID;
    h->fileid = 77;
    h->size = SIZE;
    h->native = (struct nfsbe_native){.nconnect = 1, .deliver = true};
}

/* ---- which engine ---- */

struct choice {
    struct handle h;
    struct facts facts;
    struct err err;
    int rc;
};

static void choose(struct choice *c, enum answer_how how, bool listening, const struct nfsbe_conf *conf) {
    struct server s;
    memset(c, 0, sizeof *c);
    server_start(&s, how, listening);
    handle_for(&c->h, &s);
    c->h.rsize = c->h.wsize = 4u << 20;
    c->rc = nfsbe_engine_choose(&c->h, conf, &c->facts, &c->err);
    server_stop(&s);
}

static void forget(struct choice *c) {
    kv_free(&c->facts.negotiated);
    kv_free(&c->facts.warnings);
}

static const struct nfsbe_conf automatic = {.native = {.nconnect = 1, .deliver = true}};

static void test_auto_native(void **state) {
    (void)state;
    struct choice c;
    choose(&c, ANSWER_WELL, true, &automatic);
    assert_int_equal(c.rc, 0);
    assert_ptr_equal(c.h.engine, &nfsbe_engine_native);
    assert_string_equal(c.facts.engine, "native");
    assert_int_equal(c.facts.max_io, 64u << 20); /* in 16 RPCs */
    assert_int_equal(kv_get_uint(&c.facts.negotiated, "rsize", 0), 4u << 20);
    assert_int_equal(c.facts.warnings.n, 0);
    assert_non_null(kv_find(&c.facts.negotiated, "data_source_port"));
    forget(&c);
}

/* Nothing stands in for engine=native where it does not work: that would be another measurement. */
static void test_auto_does_not_fall_back(void **state) {
    static const struct { enum answer_how how; bool listening; const char *says; } cases[] = {
        {ANSWER_WELL, false, "Connection refused"},
        {ANSWER_DENIED, true, "AUTH_TOOWEAK"},
        {ANSWER_STALE, true, "NFS3ERR_STALE"},
        {ANSWER_GARBAGE, true, "malformed reply: a record mark of 32323020"},
        {ANSWER_CLOSE, true, "closed the connection"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct choice c;
        choose(&c, cases[i].how, cases[i].listening, &automatic);
        assert_int_equal(c.rc, -1);
        assert_int_equal(c.err.status, STATUS_TARGET);
        if (!strstr(c.err.msg, cases[i].says)) fail_msg("\"%s\" has no \"%s\"", c.err.msg, cases[i].says);
        forget(&c);
    }
}

static void test_asked_for(void **state) {
    (void)state;
    struct choice c;
    struct nfsbe_conf native = automatic, libnfs = automatic, many = automatic, drop = automatic, spin = automatic;
    native.engine = NFSBE_NATIVE;
    choose(&c, ANSWER_WELL, false, &native);
    assert_int_equal(c.rc, -1);
    assert_int_equal(c.err.status, STATUS_TARGET);
    assert_non_null(strstr(c.err.msg, "engine=native: "));
    forget(&c);
    libnfs.engine = NFSBE_LIBNFS;
    choose(&c, ANSWER_WELL, true, &libnfs);
    assert_int_equal(c.rc, 0);
    assert_ptr_equal(c.h.engine, &nfsbe_engine_libnfs);
    assert_int_equal(c.facts.warnings.n, 0);
    forget(&c);
    /* what libnfs cannot do is not left out silently */
    many.native.nconnect = 2;
    drop.native.deliver = false;
    spin.native.wait = NFSBE_WAIT_SPIN;
    const struct nfsbe_conf *only[] = {&many, &drop, &spin};
    for (int i = 0; i < 3; i++) {
        choose(&c, ANSWER_WELL, false, only[i]);
        assert_int_equal(c.rc, -1);
        forget(&c);
        choose(&c, ANSWER_WELL, true, only[i]);
        assert_int_equal(c.rc, 0);
        assert_int_equal(kv_find(&c.facts.warnings, "not-delivered") != NULL, i == 1);
        forget(&c);
    }
}

static void test_sizes(void **state) {
    (void)state;
    struct nfsbe_conf conf = automatic;
    struct choice c;
    conf.engine = NFSBE_LIBNFS;
    conf.wsize = 2u << 20;
    choose(&c, ANSWER_WELL, true, &conf);
    assert_int_equal(c.rc, -1);
    assert_non_null(strstr(c.err.msg, "wsize= is more than engine=libnfs moves with one RPC, 1048576 bytes"));
    forget(&c);
}

/* ---- attach ---- */

static int attach(struct handle *h, struct err *err, uint64_t *connections) {
    struct kinds kinds = {.n = 0};
    struct clock clock;
    struct context *c;
    clock_real_init(&clock);
    struct attach_how how = {.depth = 4, .max_io = 4096, .clock = &clock, .kinds = &kinds};
    if (nfsbe_engine_native.attach(h, &how, &c, err) != 0) return -1;
    struct kv kv = {.n = 0};
    nfsbe_engine_native.counters(c, &kv);
    *connections = kv_get_uint(&kv, "connections", 0);
    kv_free(&kv);
    nfsbe_engine_native.detach(c);
    return 0;
}

static void test_servers(void **state) {
    (void)state;
    struct server s[2];
    struct handle h;
    struct err err;
    struct facts facts;
    struct nfsbe_conf conf = automatic;
    char text[64];
    uint64_t connections = 0;
    conf.native.nconnect = 0;
    conf.servers = text;
    for (int stale = 0; stale < 2; stale++) {
        memset(&facts, 0, sizeof facts);
        server_start(&s[0], ANSWER_WELL, true);
        server_start(&s[1], stale ? ANSWER_STALE : ANSWER_WELL, true);
        handle_for(&h, &s[0]);
        h.rsize = h.wsize = 4096;
        h.server.port = 1; /* the data does not go by it */
        snprintf(text, sizeof text, "localhost:%u,127.0.0.1:%u", s[0].port, s[1].port);
        assert_int_equal(nfsbe_servers_fill(&h.servers, text, &err), 0);
        int rc = nfsbe_engine_choose(&h, &conf, &facts, &err);
        if (stale) {
            assert_int_equal(rc, -1);
            assert_non_null(strstr(err.msg, "servers=, address 127.0.0.1"));
            assert_non_null(strstr(err.msg, "NFS3ERR_STALE"));
        } else {
            assert_int_equal(rc, 0);
            assert_string_equal(h.servers.at[0].host, "127.0.0.1"); /* from now on this very one */
            assert_int_equal(h.native.nconnect, 2);
            assert_non_null(kv_find(&facts.negotiated, "servers"));
            assert_int_equal(attach(&h, &err, &connections), 0);
            assert_int_equal(connections, 2);
            h.native.nconnect = 3;
            assert_int_equal(attach(&h, &err, &connections), 0);
        }
        server_stop(&s[0]);
        server_stop(&s[1]);
        assert_int_equal(s[0].calls, stale ? 1 : 1 + 1 + 2);
        assert_int_equal(s[1].calls, stale ? 1 : 1 + 1 + 1);
        kv_free(&facts.negotiated);
        kv_free(&facts.warnings);
    }
}

static void test_attach(void **state) {
    (void)state;
    struct server s;
    struct handle h;
    struct err err;
    uint64_t connections = 0;
    server_start(&s, ANSWER_WELL, true);
    handle_for(&h, &s);
    h.native.nconnect = 3;
    assert_int_equal(attach(&h, &err, &connections), 0);
    assert_int_equal(connections, 3);
    h.size = SIZE + 1;
    assert_int_equal(attach(&h, &err, &connections), -1);
    assert_non_null(strstr(err.msg, "has shrunk from 1073741825 to 1073741824 bytes"));
    handle_for(&h, &s);
    h.fileid = 78;
    assert_int_equal(attach(&h, &err, &connections), -1);
    assert_non_null(strstr(err.msg, "is another file by now"));
    server_stop(&s);
    assert_int_equal(s.calls, 3 + 1 + 1);
}

/* A second reply to the one call is passed over, here as under load. */
static void test_attach_duplicate(void **state) {
    (void)state;
    struct server s;
    struct handle h;
    struct err err;
    uint64_t connections;
    server_start(&s, ANSWER_TWICE, true);
    handle_for(&h, &s);
    assert_int_equal(attach(&h, &err, &connections), 0);
    server_stop(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_auto_native),
        cmocka_unit_test(test_auto_does_not_fall_back),
        cmocka_unit_test(test_asked_for),
        cmocka_unit_test(test_sizes), cmocka_unit_test(test_servers), cmocka_unit_test(test_attach),
        cmocka_unit_test(test_attach_duplicate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
