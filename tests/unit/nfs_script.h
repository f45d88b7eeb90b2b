/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An RPC server that answers as a function of the test's says, over TCP, UDP or both, in a thread of its own. */
#ifndef TESTS_NFS_SCRIPT_H
#define TESTS_NFS_SCRIPT_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/nfs_replies.h"

#define SCRIPT_CONNS 30

struct script_call {
    uint32_t xid, program, version, procedure;
    const unsigned char *args;   /* behind credential and verifier */
    size_t n;
    const unsigned char *cred;   /* its length word */
    unsigned source_port;
    struct in_addr source;
    int fd;                      /* TCP: the connection */
};

/* Puts the bytes to send into `out`, record mark included; none: no answer. */
typedef void script_answer(void *arg, const struct script_call *call, struct bytes *out);

struct script {
    int tcp, udp, stop[2];
    unsigned port, calls;
    script_answer *answer;
    void *arg;
    pthread_t thread;
};

static inline uint32_t script_word(const unsigned char *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline void script_take(struct script *s, int fd, const struct sockaddr_in *from, const unsigned char *p,
                               size_t n, struct bytes *out) {
    struct script_call c = { .fd = fd, .source = from->sin_addr, .source_port = ntohs(from->sin_port) };
    if (n < 40) return;
    c.xid = script_word(p);
    c.program = script_word(p + 12);
    c.version = script_word(p + 16);
    c.procedure = script_word(p + 20);
    c.cred = p + 28;
    size_t at = 32 + script_word(p + 28);
    if (at + 8 > n) return;
    c.args = p + at + 8;
    c.n = n - at - 8;
    s->calls++;
    s->answer(s->arg, &c, out);
}

static inline bool script_all(int fd, unsigned char *p, size_t n) {
    while (n) {
        ssize_t r = recv(fd, p, n, 0);
        if (r <= 0) return false;
        p += r;
        n -= (size_t)r;
    }
    return true;
}

static inline bool script_tcp(struct script *s, int fd) {
    unsigned char mark[4], call[8192];
    struct sockaddr_in from;
    socklen_t len = sizeof from;
    struct bytes out = { 0 };
    if (!script_all(fd, mark, 4)) return false;
    size_t n = script_word(mark) & 0x7fffffff;
    if (n > sizeof call || !script_all(fd, call, n)) return false;
    getpeername(fd, (struct sockaddr *)&from, &len);
    script_take(s, fd, &from, call, n, &out);
    bool ok = !out.n || send(fd, out.at, out.n, MSG_NOSIGNAL) == (ssize_t)out.n;
    free_bytes(&out);
    return ok;
}

static inline void script_udp(struct script *s) {
    unsigned char call[8192];
    struct sockaddr_in from;
    socklen_t len = sizeof from;
    struct bytes out = { 0 };
    ssize_t n = recvfrom(s->udp, call, sizeof call, 0, (struct sockaddr *)&from, &len);
    if (n > 0) script_take(s, -1, &from, call, (size_t)n, &out);
    if (out.n > 4) sendto(s->udp, out.at + 4, out.n - 4, 0, (struct sockaddr *)&from, len);
    free_bytes(&out);
}

static inline void *script_run(void *arg) {
    struct script *s = arg;
    struct pollfd p[3 + SCRIPT_CONNS] = { { .fd = s->stop[0], .events = POLLIN }, { .fd = s->tcp, .events = POLLIN },
                                          { .fd = s->udp, .events = POLLIN } };
    nfds_t n = 3;
    while (poll(p, n, -1) > 0 && !p[0].revents) {
        for (nfds_t i = 3; i < n; i++) {
            if (!p[i].revents || script_tcp(s, p[i].fd)) continue;
            close(p[i].fd);
            p[i--] = p[--n];
        }
        if (p[2].revents) script_udp(s);
        if (p[1].revents && n < 3 + SCRIPT_CONNS)
            p[n++] = (struct pollfd){ .fd = accept(s->tcp, NULL, NULL), .events = POLLIN };
    }
    for (nfds_t i = 3; i < n; i++) close(p[i].fd);
    return NULL;
}

/* Port 0: any. */
static inline void script_start_at(struct script *s, const char *address, unsigned port, bool tcp, bool udp,
                                   script_answer *answer, void *arg) {
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = inet_addr(address),
                              .sin_port = htons((uint16_t)port) };
    socklen_t len = sizeof at;
    int on = 1;
    *s = (struct script){ .tcp = -1, .udp = -1, .answer = answer, .arg = arg };
    if (tcp) {
        s->tcp = socket(AF_INET, SOCK_STREAM, 0);
        setsockopt(s->tcp, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (bind(s->tcp, (struct sockaddr *)&at, sizeof at) != 0 || listen(s->tcp, 16) != 0) abort();
        getsockname(s->tcp, (struct sockaddr *)&at, &len);
    }
    if (udp) {
        s->udp = socket(AF_INET, SOCK_DGRAM, 0);
        if (bind(s->udp, (struct sockaddr *)&at, sizeof at) != 0) abort();
        getsockname(s->udp, (struct sockaddr *)&at, &len);
    }
    s->port = ntohs(at.sin_port);
    if (pipe(s->stop) != 0 || pthread_create(&s->thread, NULL, script_run, s) != 0) abort();
}

static inline void script_start(struct script *s, unsigned port, bool tcp, bool udp, script_answer *answer, void *arg) {
    script_start_at(s, "127.0.0.1", port, tcp, udp, answer, arg);
}

static inline void script_stop(struct script *s) {
    close(s->stop[1]);
    pthread_join(s->thread, NULL);
    close(s->stop[0]);
    if (s->tcp >= 0) close(s->tcp);
    if (s->udp >= 0) close(s->udp);
}

/* A reply that succeeded: its beginning; end_reply() after the result. */
static inline size_t script_begin(struct bytes *b, const struct script_call *c) {
    static const struct shape plain = { 0 };
    size_t start = begin_reply(b, c->xid, &plain);
    add_word(b, 0); /* SUCCESS */
    return start;
}

static inline void script_end(struct bytes *b, size_t start) {
    static const struct shape plain = { 0 };
    end_reply(b, start, &plain);
}

/* A result that is nothing but these words. */
static inline void script_words(struct bytes *b, const struct script_call *c, unsigned n, const uint32_t *words) {
    size_t start = script_begin(b, c);
    for (unsigned i = 0; i < n; i++) add_word(b, words[i]);
    script_end(b, start);
}

/* accept_stat, and two words for PROG_MISMATCH */
static inline void script_not_done(struct bytes *b, const struct script_call *c, uint32_t accept, uint32_t low,
                                   uint32_t high) {
    static const struct shape plain = { 0 };
    size_t start = begin_reply(b, c->xid, &plain);
    add_word(b, accept);
    if (accept == 2) {
        add_word(b, low);
        add_word(b, high);
    }
    end_reply(b, start, &plain);
}

static inline void script_opaque(struct bytes *b, const void *p, uint32_t n) {
    add_word(b, n);
    add_bytes(b, p, n);
    add_bytes(b, "\0\0\0", -n & 3);
}

#endif
