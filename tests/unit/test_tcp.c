/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Connections over the loopback: settings have an effect that both ends can see, and TCP_INFO tells what was done. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <math.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backends/net/tcp.h"
#include "backends/net/tcpinfo.h"

struct pair {
    int listener, client, server;
    unsigned port;
    char from[64];
    struct err err;
};

static void listen_here(struct pair *p) {
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof a;
    memset(p, 0, sizeof *p);
    p->client = p->server = -1;
    p->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(p->listener, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(p->listener, 8), 0);
    assert_int_equal(getsockname(p->listener, (struct sockaddr *)&a, &len), 0);
    p->port = ntohs(a.sin_port);
}

static int try_connect(struct pair *p, const char *host, const struct tcp_settings *s) {
    const struct tcp_how how = { .host = host, .port = p->port, .timeout = 10 * NS_PER_SEC, .settings = s };
    return p->client = tcp_connect(&how, &p->err);
}

static void connected(struct pair *p, const struct tcp_settings *s) {
    struct sockaddr_in a;
    socklen_t len = sizeof a;
    int on = 1;
    listen_here(p);
    if (try_connect(p, "127.0.0.1", s) < 0) fail_msg("%s", p->err.msg);
    p->server = accept(p->listener, (struct sockaddr *)&a, &len);
    assert_true(p->server >= 0);
    inet_ntop(AF_INET, &a.sin_addr, p->from, sizeof p->from);
    setsockopt(p->server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static void end(struct pair *p) {
    if (p->client >= 0) close(p->client);
    if (p->server >= 0) close(p->server);
    close(p->listener);
}

static int get(int fd, int level, int option) {
    int n = -1;
    socklen_t len = sizeof n;
    assert_int_equal(getsockopt(fd, level, option, &n, &len), 0);
    return n;
}

static void move(int from, int to, size_t n) {
    char buf[4096] = "";
    while (n) {
        size_t some = n < sizeof buf ? n : sizeof buf;
        assert_int_equal(send(from, buf, some, 0), some);
        assert_int_equal(recv(to, buf, some, MSG_WAITALL), some);
        n -= some;
    }
}

/* ---- settings ---- */

static void settings_are_in_force(void **state) {
    (void)state;
    struct tcp_settings s = { .rcvbuf = 65536, .sndbuf = 32768, .mss = 1000, .congestion = "reno" };
    struct kv negotiated = { 0 }, warnings = { 0 };
    char name[17] = "";
    socklen_t len = sizeof name - 1;
    struct pair p;

    ((struct sockaddr_in *)&s.source)->sin_family = AF_INET;
    ((struct sockaddr_in *)&s.source)->sin_addr.s_addr = inet_addr("127.0.0.7");
    s.source_len = sizeof(struct sockaddr_in);
    connected(&p, &s);
    assert_int_equal(get(p.client, SOL_SOCKET, SO_RCVBUF), 2 * 65536);
    assert_int_equal(get(p.client, SOL_SOCKET, SO_SNDBUF), 2 * 32768);
    assert_int_equal(getsockopt(p.client, IPPROTO_TCP, TCP_CONGESTION, name, &len), 0);
    assert_string_equal(name, "reno");
    assert_string_equal(p.from, "127.0.0.7");
    int mss = get(p.server, IPPROTO_TCP, TCP_MAXSEG); /* the SYN told the other end */
    assert_in_range(mss, 960, 1000);

    tcp_settings_facts(&s, p.client, &negotiated, &warnings);
    assert_int_equal(kv_get_uint(&negotiated, "tcp_rcvbuf", 0), 65536);
    assert_int_equal(kv_get_uint(&negotiated, "tcp_sndbuf", 0), 32768);
    assert_in_range(kv_get_uint(&negotiated, "tcp_mss", 0), 960, 1000);
    assert_string_equal(kv_find(&negotiated, "tcp_congestion")->text, "reno");
    assert_string_equal(kv_find(&negotiated, "tcp_source")->text, "127.0.0.7");
    assert_string_equal(kv_find(&negotiated, "tcp_autotuning")->text, "none");
    assert_non_null(kv_find(&warnings, "rcvbuf-fixed"));
    assert_non_null(kv_find(&warnings, "sndbuf-fixed"));
    assert_null(kv_find(&warnings, "rcvbuf-capped"));
    kv_free(&negotiated);
    kv_free(&warnings);
    end(&p);
}

static void without_settings_the_kernel_tunes(void **state) {
    (void)state;
    const struct tcp_settings none = { 0 };
    struct kv negotiated = { 0 }, warnings = { 0 };
    struct pair p;

    connected(&p, NULL);
    tcp_settings_facts(&none, p.client, &negotiated, &warnings);
    assert_string_equal(kv_find(&negotiated, "tcp_autotuning")->text, "receive and send buffer");
    assert_null(kv_find(&negotiated, "tcp_rcvbuf"));
    assert_int_equal(warnings.n, 0);
    kv_free(&negotiated);
    end(&p);
}

static void what_the_kernel_cuts_is_said(void **state) {
    (void)state;
    const struct tcp_settings s = { .rcvbuf = TCP_BUFFER_MAX, .sndbuf = TCP_BUFFER_MAX };
    struct kv negotiated = { 0 }, warnings = { 0 };
    struct pair p;

    connected(&p, &s);
    tcp_settings_facts(&s, p.client, &negotiated, &warnings);
    bool cut = get(p.client, SOL_SOCKET, SO_RCVBUF) / 2 < (int)TCP_BUFFER_MAX;
    assert_true(cut == (kv_find(&warnings, "rcvbuf-capped") != NULL));
    if (cut) {
        const char *text = kv_find(&warnings, "rcvbuf-capped")->text;
        assert_non_null(strstr(text, "rcvbuf=1g"));
        assert_non_null(strstr(text, "net.core.rmem_max"));
        assert_int_equal(kv_get_uint(&negotiated, "tcp_rcvbuf", 0), get(p.client, SOL_SOCKET, SO_RCVBUF) / 2);
    }
    kv_free(&negotiated);
    kv_free(&warnings);
    end(&p);
}

static void refusals(void **state) {
    (void)state;
    struct tcp_settings s = { .congestion = "nosuch" };
    struct pair p;

    listen_here(&p);
    assert_int_equal(try_connect(&p, "127.0.0.1", &s), -1);
    assert_non_null(strstr(p.err.msg, "no such congestion control"));
    memset(&s, 0, sizeof s);
    ((struct sockaddr_in *)&s.source)->sin_family = AF_INET;
    ((struct sockaddr_in *)&s.source)->sin_addr.s_addr = inet_addr("192.0.2.77");
    s.source_len = sizeof(struct sockaddr_in);
    assert_int_equal(try_connect(&p, "127.0.0.1", &s), -1);
    assert_non_null(strstr(p.err.msg, "no interface of this machine"));
    assert_int_equal(try_connect(&p, "::1", &s), -1);
    assert_non_null(strstr(p.err.msg, "no IPv4 address"));
    end(&p);
}

/* ---- several addresses of one name ---- */

enum { ADDRESSES = 3 };
struct name {
    struct addrinfo list[ADDRESSES];
    struct sockaddr_in at[ADDRESSES];
};

static void add_address(struct name *n, unsigned i, const char *text, unsigned port) {
    n->at[i] = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons((uint16_t)port),
                                     .sin_addr.s_addr = inet_addr(text) };
    n->list[i] = (struct addrinfo){ .ai_family = AF_INET, .ai_socktype = SOCK_STREAM,
                                    .ai_addr = (struct sockaddr *)&n->at[i], .ai_addrlen = sizeof n->at[i] };
    if (i) n->list[i - 1].ai_next = &n->list[i];
}

static int listen_at(const char *address, unsigned port, int backlog) {
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = inet_addr(address) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(fd, backlog), 0);
    return fd;
}

/* Once a listener's queue is full, it drops SYNs without a word: as silent as an address behind a dead route. */
struct hole { int listener, fill[4]; };

static void dig(struct hole *h, const char *address, unsigned port) {
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = inet_addr(address) };
    h->listener = listen_at(address, port, 0);
    for (unsigned i = 0; i < 4; i++) {
        h->fill[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        connect(h->fill[i], (struct sockaddr *)&a, sizeof a);
    }
}

static void fill_in(struct hole *h) {
    for (unsigned i = 0; i < 4; i++) close(h->fill[i]);
    close(h->listener);
}

static int64_t ms_now(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void a_silent_address_does_not_keep_the_next_waiting(void **state) {
    (void)state;
    struct pair p;
    struct hole hole;
    struct name name;
    struct sockaddr_in a;
    socklen_t len = sizeof a;

    listen_here(&p);
    dig(&hole, "127.0.0.3", p.port);
    add_address(&name, 0, "127.0.0.3", p.port);
    add_address(&name, 1, "127.0.0.4", p.port); /* nobody listens */
    add_address(&name, 2, "127.0.0.1", p.port);
    const struct tcp_how how = { .host = "filer", .port = p.port, .timeout = 20 * NS_PER_SEC };
    int64_t from = ms_now();
    p.client = tcp_connect_any(&how, name.list, &p.err);
    if (p.client < 0) fail_msg("%s", p.err.msg);
    assert_true(ms_now() - from < 5000); /* 250 ms; the rest is for a machine that is busy */
    assert_int_equal(getpeername(p.client, (struct sockaddr *)&a, &len), 0);
    assert_int_equal(a.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
    fill_in(&hole);
    end(&p);
}

static void each_address_has_its_reason(void **state) {
    (void)state;
    struct pair p;
    struct hole hole;
    struct name name;

    listen_here(&p);
    dig(&hole, "127.0.0.3", p.port);
    add_address(&name, 0, "127.0.0.3", p.port);
    add_address(&name, 1, "127.0.0.4", p.port);
    const struct tcp_how how = { .host = "filer", .port = p.port, .timeout = NS_PER_SEC - 3 * NS_PER_MS };
    int64_t from = ms_now();
    assert_int_equal(tcp_connect_any(&how, name.list, &p.err), -1);
    int64_t took = ms_now() - from;
    assert_in_range(took, 900, 4000);
    assert_non_null(strstr(p.err.msg, "connecting to filer, TCP port"));
    assert_non_null(strstr(p.err.msg, "127.0.0.3: no answer within 1 s"));
    assert_non_null(strstr(p.err.msg, "127.0.0.4: Connection refused"));
    fill_in(&hole);
    end(&p);
}

static void without_a_reserved_port_that_is_said(void **state) {
    (void)state;
    enum { RESERVED = 512 };
    static int client[RESERVED];
    struct pair p;
    enum tcp_source source = TCP_SOURCE_FINE;
    unsigned n = 0;

    if (geteuid() != 0) skip();
    listen_here(&p);
    assert_int_equal(listen(p.listener, 2 * RESERVED), 0);
    const struct tcp_how how = { .host = "127.0.0.1", .port = p.port, .timeout = 10 * NS_PER_SEC, .reserved = true,
                                 .source = &source };
    for (; n < RESERVED; n++) {
        if ((client[n] = tcp_connect(&how, &p.err)) < 0) break;
        if (source != TCP_SOURCE_FINE) break; /* another program holds some of them */
    }
    if (n == RESERVED) p.client = tcp_connect(&how, &p.err);
    else p.client = client[n];
    if (p.client < 0) fail_msg("%s", p.err.msg);
    assert_true(n > 0);
    assert_int_equal(source, TCP_SOURCE_ALL_TAKEN);
    assert_non_null(strstr(tcp_source_words(source), "all 512 reserved source ports"));
    for (unsigned i = 0; i < n; i++) { /* no TIME_WAIT, which would keep the ports from the next test */
        struct linger now = { .l_onoff = 1 };
        setsockopt(client[i], SOL_SOCKET, SO_LINGER, &now, sizeof now);
        close(client[i]);
    }
    end(&p);
}

/* ---- quickack ---- */

/* Pure acknowledgements that the client sent in 100 exchanges, after the first ones, which are always quick. */
static double acks(bool quick) {
    enum { BEFORE = 50, COUNTED = 100 };
    const struct tcp_settings s = { .quickack = quick };
    double from[TCPINFO_TRACKS], to[TCPINFO_TRACKS];
    struct pair p;

    connected(&p, NULL);
    for (int i = 0; i < BEFORE + COUNTED; i++) {
        if (i == BEFORE) tcpinfo_sample(&p.client, 1, from);
        move(p.client, p.server, 100);
        move(p.server, p.client, 200);
        if (tcp_settings_to_tend(&s)) tcp_settings_tend(&s, p.client);
    }
    tcpinfo_sample(&p.client, 1, to);
    end(&p);
    return to[10] - from[10];
}

static void quickack_acknowledges_every_receive(void **state) {
    (void)state;
    double quick = acks(true), delayed = acks(false);
    assert_true(quick >= 90);
    assert_true(delayed < quick); /* requests take them along, as far as they come in time */
}

/* ---- window ---- */

static void a_bound_that_rises_is_brought_down(void **state) {
    (void)state;
    const struct tcp_settings s = { .rcvbuf = 200000, .window = 30000 };
    struct pair p;
    connected(&p, &s);
    assert_true(get(p.client, IPPROTO_TCP, TCP_WINDOW_CLAMP) > 30000);
    assert_ptr_equal(tcp_settings_to_tend(&s), &s);
    tcp_settings_tend(&s, p.client);
    assert_int_equal(get(p.client, IPPROTO_TCP, TCP_WINDOW_CLAMP), 30000);
    tcp_settings_tend(&s, p.client);
    assert_int_equal(get(p.client, IPPROTO_TCP, TCP_WINDOW_CLAMP), 30000);
    end(&p);
}

/* ---- TCP_INFO ---- */

static void tracks_have_their_order(void **state) {
    (void)state;
    static const struct track list[TCPINFO_TRACKS] = { TCPINFO_TRACK_ENTRIES };
    assert_string_equal(list[0].name, "tcp_connections");
    assert_string_equal(list[10].name, "tcp_pure_acks");
    assert_string_equal(list[13].name, "tcp_sndbuf_limited_ns");
    assert_string_equal(list[TCPINFO_TRACKS - 1].name, "tcp_dsacks");
}

static void sample_tells_what_was_done(void **state) {
    (void)state;
    double v[TCPINFO_TRACKS];
    struct pair a, b;

    connected(&a, NULL);
    connected(&b, NULL);
    move(a.client, a.server, 1 << 20);
    const int fds[3] = { a.client, b.client, -1 };
    tcpinfo_sample(fds, 3, v);
    assert_true(v[0] == 2);                  /* connections */
    assert_true(v[1] > 0 && v[1] <= v[2]);   /* the smallest round trip, the mean one */
    assert_true(v[3] > 0);                   /* congestion window */
    assert_true(v[5] > 0);                   /* the other side's window */
    assert_true(v[6] >= 0 && v[7] >= 0);
    assert_true(v[11] >= 0 && v[12] >= 0 && v[13] >= 0);
    assert_true(tcpinfo_min_rtt(a.client) > 0);
    end(&a);
    end(&b);
}

static void a_full_receiver_limits(void **state) {
    (void)state;
    double v[TCPINFO_TRACKS];
    char buf[65536] = "";
    struct pair p;

    /* The server does not read: its window closes, and our data waits for it. */
    connected(&p, NULL);
    while (send(p.client, buf, sizeof buf, MSG_DONTWAIT) > 0) continue;
    int64_t until = 0, now = 0;
    struct timespec ts;
    do {
        clock_gettime(CLOCK_MONOTONIC, &ts);
        now = ts.tv_sec * NS_PER_SEC + ts.tv_nsec;
        if (!until) until = now + 20 * NS_PER_SEC;
        tcpinfo_sample(&p.client, 1, v);
    } while (!(v[12] > 0) && now < until);
    assert_true(v[12] > 0);                  /* limited by the receive window */
    assert_true(v[11] >= v[12]);             /* which is a part of the time that there was something to send */
    end(&p);
}

static void no_connection_is_unknown(void **state) {
    (void)state;
    double v[TCPINFO_TRACKS];
    const int none = -1;
    struct kv out = { 0 };
    tcpinfo_sample(&none, 1, v);
    for (unsigned i = 0; i < TCPINFO_TRACKS; i++) assert_true(isnan(v[i]));
    assert_int_equal(tcpinfo_min_rtt(-1), 0);
    assert_int_equal(tcpinfo_rcv_wnd(-1), 0);
    tcpinfo_counters(-1, &out);
    assert_int_equal(out.n, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_are_in_force),
        cmocka_unit_test(without_settings_the_kernel_tunes),
        cmocka_unit_test(what_the_kernel_cuts_is_said),
        cmocka_unit_test(refusals),
        cmocka_unit_test(a_silent_address_does_not_keep_the_next_waiting),
        cmocka_unit_test(each_address_has_its_reason),
        cmocka_unit_test(without_a_reserved_port_that_is_said),
        cmocka_unit_test(quickack_acknowledges_every_receive),
        cmocka_unit_test(a_bound_that_rises_is_brought_down),
        cmocka_unit_test(tracks_have_their_order),
        cmocka_unit_test(sample_tells_what_was_done),
        cmocka_unit_test(a_full_receiver_limits),
        cmocka_unit_test(no_connection_is_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
