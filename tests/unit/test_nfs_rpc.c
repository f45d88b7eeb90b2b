/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls before the load against servers that answer well, badly, or without end: an error within timeout=, in bounded
 * memory. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <time.h>

#include "backends/net/sock.h"
#include "backends/nfs/nfs_calls.h"
#include "tests/unit/nfs_script.h"

enum how { WELL, ONE_BYTE, EARLIER, NEVER_SENT, TEXT, HUGE, MANY_FRAGMENTS, EMPTY_FRAGMENTS, DRIP, SHORT, EARLY_END,
           CLOSE, DENIED, JUKEBOX_TWICE, JUKEBOX, BAD_BOOL, ONLY_4, NO_PROGRAM, SILENT };

struct behaviour { enum how how; _Atomic unsigned seen; };

static void getattr_reply(struct bytes *b, const struct script_call *c, unsigned fragment) {
    const struct shape shape = { .attributes = 1, .fragment = fragment };
    reply_getattr(b, c->xid, 4711, 77, &shape);
}

/* Sends the same again and again until the client hangs up. */
static void flood(int fd, const void *p, size_t n, int64_t pause_ns) {
    struct timespec ts = { .tv_nsec = pause_ns };
    while (send(fd, p, n, MSG_NOSIGNAL) == (ssize_t)n)
        if (pause_ns) nanosleep(&ts, NULL);
}

static void answer(void *arg, const struct script_call *c, struct bytes *b) {
    static const struct shape plain = { 0 };
    struct behaviour *how = arg;
    struct script_call other = *c;
    how->seen++;
    switch (how->how) {
    case WELL: if (c->procedure) getattr_reply(b, c, 0); else script_words(b, c, 0, NULL); return;
    case ONE_BYTE: getattr_reply(b, c, 1); return;
    case EARLIER: /* two late replies, to a call before this one and to this one, and the next call's comes behind them */
        if (how->seen == 2) {
            other.xid--;
            getattr_reply(b, &other, 0);
        }
        getattr_reply(b, c, 0);
        return;
    case NEVER_SENT:
        other.xid += 7;
        getattr_reply(b, &other, 0);
        return;
    case TEXT: add_bytes(b, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", 47); return;
    case HUGE: add_word(b, 0x80000000u | 100u << 20); return;
    case MANY_FRAGMENTS: flood(c->fd, "\0\0\0\1x", 5, 0); return;
    case EMPTY_FRAGMENTS: flood(c->fd, "\0\0\0\0", 4, 0); return;
    case DRIP:
        send(c->fd, "\x80\0\xff\xff", 4, MSG_NOSIGNAL);
        flood(c->fd, "", 1, 10000000);
        return;
    case SHORT: {
        static const uint32_t ok_and_type[] = { 0, 1 };
        script_words(b, c, 2, ok_and_type);
        return;
    }
    case EARLY_END:
        add_word(b, 0x80000000u | 12);
        add_word(b, c->xid);
        add_word(b, 1);
        add_word(b, 0);
        return;
    case CLOSE: shutdown(c->fd, SHUT_RDWR); return;
    case DENIED: reply_denied(b, c->xid, 1, 5, &plain); return;
    case JUKEBOX_TWICE:
        if (how->seen > 2) getattr_reply(b, c, 0);
        else reply_status(b, c->xid, 10008, &plain);
        return;
    case JUKEBOX: reply_status(b, c->xid, 10008, &plain); return;
    case BAD_BOOL: { /* LOOKUP: OK, a handle, and neither "attributes follow" nor not */
        static const uint32_t words[] = { 0, 4, 0xfeedf00d, 2 };
        script_words(b, c, 4, words);
        return;
    }
    case ONLY_4: script_not_done(b, c, 2, 4, 4); return;
    case NO_PROGRAM: script_not_done(b, c, 1, 0, 0); return;
    case SILENT: return;
    }
}

struct try {
    struct script script;
    struct behaviour how;
    struct nfsbe_server server;
    struct nfsbe_conn *conn;
    struct nfsbe_attr attr;
    struct err err;
};

static void begin(struct try *t, enum how how, int64_t timeout) {
    memset(t, 0, sizeof *t);
    t->how.how = how;
    script_start(&t->script, 0, true, false, answer, &t->how);
    snprintf(t->server.host, sizeof t->server.host, "127.0.0.1");
    t->server.port = t->script.port;
    t->server.timeout = timeout;
    if (nfsbe_conn_tcp(&t->server, NFS_PROGRAM_ID, 3, t->script.port, &t->conn, &t->err) != 0) fail_msg("%s", t->err.msg);
}

static int getattr(struct try *t) {
    static const struct nfsbe_fh fh = { .len = 32 };
    return nfsbe_call_getattr(t->conn, &fh, &t->attr, &t->err);
}

static void end(struct try *t) {
    nfsbe_conn_close(t->conn);
    script_stop(&t->script);
}

static void says(const struct try *t, const char *words) {
    if (!strstr(t->err.msg, words)) fail_msg("\"%s\" has no \"%s\"", t->err.msg, words);
}

static void good_replies(void **state) {
    static const enum how hows[] = { WELL, ONE_BYTE, EARLIER };
    struct try t;
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        begin(&t, hows[i], 10 * NS_PER_SEC);
        for (int k = 0; k < 3; k++) {
            if (getattr(&t) != 0) fail_msg("%s", t.err.msg);
            assert_int_equal(t.attr.size, 4711);
            assert_int_equal(t.attr.fileid, 77);
            assert_true(t.attr.fsid == 0x1100000022u);
        }
        end(&t);
    }
}

static void bad_replies(void **state) {
    static const struct { enum how how; const char *says; } cases[] = {
        { NEVER_SENT, "malformed reply: it is to a call that was never sent" },
        { TEXT, "it begins with the text `HTTP/1.1 400 Bad Request`: this is no RPC server" },
        { HUGE, "malformed reply: a reply of 104857600 bytes (at most 4194304)" },
        { MANY_FRAGMENTS, "a reply of more than 4096 fragments" },
        { EMPTY_FRAGMENTS, "a reply of more than 4096 fragments" },
        { DRIP, "no answer from 127.0.0.1 within 1 s (timeout=)" },
        { SILENT, "no answer from 127.0.0.1 within 1 s (timeout=)" },
        { SHORT, "malformed reply: its result ends early" },
        { EARLY_END, "malformed reply: it ends" },
        { CLOSE, "closed the connection" },
        { DENIED, "AUTH_TOOWEAK: the export wants more than AUTH_SYS (sec=krb5, krb5i or krb5p)" },
        { NO_PROGRAM, "PROG_UNAVAIL" },
    };
    struct try t;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        begin(&t, cases[i].how, NS_PER_SEC);
        int64_t from = sock_now();
        assert_int_equal(getattr(&t), -1);
        assert_true(sock_now() - from < 4 * NS_PER_SEC);
        says(&t, cases[i].says);
        assert_int_equal(t.err.status, STATUS_TARGET);
        assert_true(t.conn->record.room <= 2 * NFSRECORD_MAX);
        bool usable = cases[i].how == DENIED || cases[i].how == NO_PROGRAM;
        assert_int_equal(t.conn->dead, !usable);
        unsigned seen = t.how.seen;
        assert_int_equal(getattr(&t), -1); /* nothing more is sent over a connection that is not understood */
        if (!usable) assert_int_equal(t.how.seen, seen);
        end(&t);
    }
}

static void what_cannot_be(void **state) {
    static const struct nfsbe_fh dir = { .len = 32 };
    struct nfsbe_fh fh;
    struct try t;
    (void)state;
    begin(&t, BAD_BOOL, NS_PER_SEC);
    assert_int_equal(nfsbe_call_lookup(t.conn, &dir, "x", &fh, &t.attr, &t.err), -1);
    says(&t, "LOOKUP: malformed reply");
    end(&t);
}

static void not_now(void **state) {
    struct try t;
    (void)state;
    begin(&t, JUKEBOX_TWICE, 10 * NS_PER_SEC);
    assert_int_equal(getattr(&t), 0);
    assert_int_equal(t.conn->retries, 2);
    assert_true(t.conn->retry_wait_ns >= 3 * NS_PER_MS);
    end(&t);
    begin(&t, JUKEBOX, NS_PER_SEC);
    int64_t from = sock_now();
    assert_int_equal(getattr(&t), 10008);
    int64_t took = sock_now() - from;
    assert_true(took >= 700 * NS_PER_MS && took < NS_PER_SEC); /* the last try is before the end, with time for an answer */
    assert_in_range(t.conn->retries, 8, 16);
    end(&t);
}

static void who_is_there(void **state) {
    static const struct { enum how how; const char *says; } cases[] = {
        { ONLY_4, "this server speaks NFSv4 only, or NFSv3 is switched off" },
        { TEXT, "this does not answer as NFS" },
        { CLOSE, "this does not answer as NFS (is nfsport= right?)" },
        { NO_PROGRAM, "PROG_UNAVAIL: the program is not at this port" },
        { SILENT, "within 3 s: this does not answer as NFS" },
    };
    struct try t;
    struct nfsbe_conn *conn;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        begin(&t, cases[i].how, 60 * NS_PER_SEC);
        int64_t from = sock_now();
        assert_int_equal(nfsbe_conn_open(&t.server, NFS_PROGRAM_ID, &conn, &t.err), -1);
        assert_true(sock_now() - from < 10 * NS_PER_SEC);
        assert_null(conn);
        says(&t, cases[i].says);
        end(&t);
    }
    begin(&t, WELL, 10 * NS_PER_SEC);
    assert_int_equal(nfsbe_conn_open(&t.server, NFS_PROGRAM_ID, &conn, &t.err), 0);
    nfsbe_conn_close(conn);
    end(&t);
}

/* ---- who asks, from where ---- */

struct seen { uint32_t cred[40]; unsigned port; struct in_addr source; };

static void look(void *arg, const struct script_call *c, struct bytes *b) {
    struct seen *s = arg;
    uint32_t words = script_word(c->cred) / 4;
    for (uint32_t i = 0; i <= words && i < 40; i++) s->cred[i] = script_word(c->cred + 4 * i);
    s->port = c->source_port;
    s->source = c->source;
    getattr_reply(b, c, 0);
}

static void groups_and_source(void **state) {
    static const struct nfsbe_fh fh = { .len = 8 };
    struct seen seen = { .port = 0 };
    struct script script;
    struct nfsbe_conn *conn;
    struct nfsbe_attr attr;
    struct err err;
    char asker[600];
    struct nfsbe_server server = { .host = "127.0.0.1", .uid = 5, .gid = 100, .groups = { 20, 30 }, .n_groups = 2,
                                   .timeout = 10 * NS_PER_SEC };
    struct sockaddr_in *source = (struct sockaddr_in *)&server.source.source;
    (void)state;

    source->sin_family = AF_INET;
    source->sin_addr.s_addr = inet_addr("127.0.0.9"); /* bind= */
    server.source.source_len = sizeof *source;
    script_start(&script, 0, true, false, look, &seen);
    assert_int_equal(nfsbe_conn_tcp(&server, NFS_PROGRAM_ID, 3, script.port, &conn, &err), 0);
    assert_int_equal(nfsbe_call_getattr(conn, &fh, &attr, &err), 0);
    nfsbe_conn_asker(conn, asker, sizeof asker);
    nfsbe_conn_close(conn);
    script_stop(&script);
    assert_int_equal(seen.cred[0], 36);          /* stamp, name (4 + 8), uid, gid, 2 groups with their number */
    assert_int_equal(seen.cred[5], 5);
    assert_int_equal(seen.cred[6], 100);
    assert_int_equal(seen.cred[7], 2);
    assert_int_equal(seen.cred[8], 20);
    assert_int_equal(seen.cred[9], 30);
    assert_int_equal(seen.source.s_addr, inet_addr("127.0.0.9"));
    if (geteuid() == 0) assert_in_range(seen.port, 512, 1023);
    assert_non_null(strstr(asker, "asked as uid 5 gid 100 groups 20,30 from TCP port "));
}

/* ---- datagrams that are not the answer ---- */

struct strays { struct script *script; int other; unsigned seen; bool answers; };

static void send_strays(void *arg, const struct script_call *c, struct bytes *b) {
    static const struct shape shape = { .attributes = 1 };
    struct strays *s = arg;
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr = c->source, .sin_port = htons((uint16_t)c->source_port) };
    struct bytes wrong = { 0 };
    unsigned char noise[400];
    s->seen++;
    memset(noise, 0xff, sizeof noise);
    sendto(s->script->udp, "\0\0", 3, 0, (struct sockaddr *)&to, sizeof to);
    sendto(s->script->udp, noise, sizeof noise, 0, (struct sockaddr *)&to, sizeof to);
    reply_getattr(&wrong, c->xid + 7, 1, 1, &shape);
    sendto(s->script->udp, wrong.at + 4, wrong.n - 4, 0, (struct sockaddr *)&to, sizeof to);
    wrong.n = 0;
    reply_getattr(&wrong, c->xid, 2, 2, &shape); /* well made, by somebody else */
    sendto(s->other, wrong.at + 4, wrong.n - 4, 0, (struct sockaddr *)&to, sizeof to);
    free_bytes(&wrong);
    if (s->answers) getattr_reply(b, c, 0);
}

static void stray_datagrams(void **state) {
    static const struct nfsbe_fh fh = { .len = 8 };
    struct script script;
    struct strays strays = { .script = &script, .other = socket(AF_INET, SOCK_DGRAM, 0) };
    (void)state;
    for (int answers = 0; answers < 2; answers++) {
        struct nfsbe_server server = { .host = "127.0.0.1", .timeout = answers ? 10 * NS_PER_SEC : NS_PER_SEC };
        struct nfsbe_conn *conn;
        struct nfsbe_attr attr = { .size = 0 };
        struct err err = { .status = STATUS_OK };
        strays.answers = answers;
        script_start(&script, 0, false, true, send_strays, &strays);
        assert_int_equal(nfsbe_conn_udp(&server, NFS_PROGRAM_ID, 3, script.port, &conn, &err), 0);
        assert_int_equal(nfsbe_call_getattr(conn, &fh, &attr, &err), answers ? 0 : -1);
        if (answers) assert_int_equal(attr.size, 4711);
        else assert_non_null(strstr(err.msg, "no answer from 127.0.0.1 within 1 s"));
        nfsbe_conn_close(conn);
        script_stop(&script);
    }
    close(strays.other);
}

/* ---- records ---- */

static void records(void **state) {
    struct nfsrecord r = { .len = 0 };
    static unsigned char big[1 << 16];
    const unsigned char *p;
    size_t n, total = 0;
    (void)state;

    for (unsigned i = 0; i < NFSRECORD_MAX >> 16; i++) { /* as large as may be */
        const unsigned char mark[4] = { (i + 1) * sizeof big == NFSRECORD_MAX ? 0x80 : 0, 1, 0, 0 };
        p = mark;
        n = 4;
        assert_int_equal(nfsrecord_feed(&r, &p, &n), 0);
        p = big;
        n = sizeof big;
        total += n;
        assert_int_equal(nfsrecord_feed(&r, &p, &n), total == NFSRECORD_MAX);
        assert_int_equal(n, 0);
    }
    assert_int_equal(r.len, NFSRECORD_MAX);
    nfsrecord_again(&r);
    p = (const unsigned char *)"\x80\0\0\4abcdX"; /* what follows is not its own */
    n = 9;
    assert_int_equal(nfsrecord_feed(&r, &p, &n), 1);
    assert_int_equal(n, 1);
    assert_int_equal(r.len, 4);
    nfsrecord_again(&r);
    p = (const unsigned char *)"\x80\x40\0\1"; /* one more than may be, and nothing of it is waited for */
    n = 4;
    assert_int_equal(nfsrecord_feed(&r, &p, &n), -1);
    nfsrecord_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_replies),      cmocka_unit_test(bad_replies), cmocka_unit_test(what_cannot_be),
        cmocka_unit_test(not_now),           cmocka_unit_test(who_is_there), cmocka_unit_test(groups_and_source),
        cmocka_unit_test(stray_datagrams),   cmocka_unit_test(records),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
