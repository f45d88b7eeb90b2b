/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/net/tcp.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backends/net/sock.h"
#include "base/clock.h"
#include "base/rng.h"
#include "base/text.h"

#define RESERVED_FIRST 512u
#define RESERVED_PORTS 512u
#define STAGGER_NS (250 * NS_PER_MS) /* RFC 8305's "connection attempt delay" */

/* One address of the name. */
struct attempt {
    const struct addrinfo *to;
    int fd;             /* being connected; -1: not yet, or not any more */
    int error;          /* why not: positive errno */
    enum tcp_source source;
};

/* All of them: begun one after another, a new one every STAGGER_NS or when one has failed; the first to connect wins. So
 * neither an address that is silent nor one that is slow to refuse keeps the others waiting. */
struct race {
    const struct tcp_how *how;
    int64_t end;
    struct err *err;
    bool said;          /* err is filled: the same at every address and port */
    struct attempt at[ADDRESSES_MAX];
    unsigned n, begun;
};

/* Everything that has to be set before connect(), because the first SYN tells it. Unasked, the buffers are the kernel's
 * affair: setting SO_RCVBUF, even to a large value, ends its tuning.
 * SO_REUSEADDR: a port whose last connection is in TIME_WAIT may be bound again; reserved ports are few. When the very
 * same pair of addresses and ports is still in use, connect() says so. */
static int before_connect(int fd, struct race *r) {
    int on = 1, rc;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0) return -errno;
    if ((rc = sock_nodelay(fd)) != 0 || !r->how->settings) return rc;
    rc = tcp_settings_apply(r->how->settings, fd, r->err);
    r->said = rc != 0;
    return rc;
}

static int bind_source(int fd, int family, unsigned port, struct race *r) {
    const struct tcp_settings *s = r->how->settings;
    bool own = s && s->source_len;
    struct sockaddr_storage from = { .ss_family = (sa_family_t)family };
    socklen_t len = family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    int on = 1;

    if (!own && !port) return 0;
    if (own) from = s->source;
    if (family == AF_INET6) ((struct sockaddr_in6 *)&from)->sin6_port = htons((uint16_t)port);
    else ((struct sockaddr_in *)&from)->sin_port = htons((uint16_t)port);
    /* Without a port of its own, connect() chooses one by the whole pair of addresses: they are never used up early. */
    if (!port) setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&from, len) == 0) return 0;
    int error = errno;
    if (own && error == EADDRNOTAVAIL) {
        r->said = true;
        err_set(r->err, STATUS_TARGET, "bind=: no interface of this machine has this address");
    }
    return -error;
}

/* One connect() from one source port (0: any) that goes on by itself: a descriptor, or negative errno. */
static int connect_from(const struct addrinfo *to, unsigned source, struct race *r) {
    int fd = socket(to->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
    if (fd < 0) return -errno;
    int rc = before_connect(fd, r);
    if (rc == 0) rc = bind_source(fd, to->ai_family, source, r);
    if (rc == 0 && connect(fd, to->ai_addr, to->ai_addrlen) != 0 && errno != EINPROGRESS) rc = -errno;
    if (rc == 0) return fd;
    close(fd);
    return rc;
}

static bool taken(int rc) {
    return rc == -EADDRINUSE || rc == -EADDRNOTAVAIL;
}

static void begin(struct race *r) {
    struct attempt *a = &r->at[r->begun++];
    int rc = -EACCES;
    if (r->how->reserved) {
        unsigned start =
            (unsigned)(rng_mix((uint64_t)sock_now() ^ (uint64_t)(unsigned)getpid() << 32) % RESERVED_PORTS);
        for (unsigned i = 0; i < RESERVED_PORTS; i++) {
            rc = connect_from(a->to, RESERVED_FIRST + (start + i) % RESERVED_PORTS, r);
            if (!taken(rc) || r->said) break;
        }
        if (taken(rc)) a->source = TCP_SOURCE_ALL_TAKEN;
        if (rc == -EACCES) a->source = TCP_SOURCE_NO_RIGHT;
    }
    if (!r->said && (rc == -EACCES || taken(rc))) rc = connect_from(a->to, 0, r);
    a->fd = rc < 0 ? -1 : rc;
    a->error = rc < 0 ? -rc : 0;
}

/* A connection is there, or not yet (-1). What has failed is noted. */
static int look(struct race *r, struct pollfd *p) {
    for (unsigned i = 0; i < r->begun; i++) {
        struct attempt *a = &r->at[i];
        socklen_t len = sizeof a->error;
        if (a->fd < 0 || !p[i].revents) continue;
        if (getsockopt(a->fd, SOL_SOCKET, SO_ERROR, &a->error, &len) != 0) a->error = errno;
        if (a->error == 0) return (int)i;
        close(a->fd);
        a->fd = -1;
    }
    return -1;
}

static unsigned fill_poll(const struct race *r, struct pollfd *p) {
    unsigned going_on = 0;
    for (unsigned i = 0; i < r->begun; i++) {
        p[i] = (struct pollfd){ .fd = r->at[i].fd, .events = POLLOUT };
        going_on += r->at[i].fd >= 0;
    }
    return going_on;
}

/* The number of the attempt that won; -1: none. */
static int run(struct race *r) {
    struct pollfd p[ADDRESSES_MAX];
    int64_t next = sock_now();
    for (;;) {
        int64_t now = sock_now();
        unsigned going_on = fill_poll(r, p);
        if (now >= sock_end(r->end)) return -1;
        if (r->begun < r->n && (now >= next || going_on == 0)) {
            begin(r);
            if (r->said) return -1;
            next = now + STAGGER_NS;
            continue;
        }
        if (going_on == 0) return -1;
        int64_t until = r->begun < r->n && next < r->end ? next : r->end;
        struct timespec ts = { .tv_sec = sock_slice(until) / NS_PER_SEC, .tv_nsec = sock_slice(until) % NS_PER_SEC };
        int got = ppoll(p, r->begun, &ts, NULL);
        int winner = got > 0 ? look(r, p) : -1;
        if (winner >= 0) return winner;
        if (got > 0) next = sock_now(); /* one has failed: no reason to wait */
    }
}

const char *tcp_source_words(enum tcp_source source) {
    static const char *const words[] = {
        [TCP_SOURCE_FINE] = "",
        [TCP_SOURCE_NO_RIGHT] = "a source port below 1024 takes root or CAP_NET_BIND_SERVICE",
        [TCP_SOURCE_ALL_TAKEN] = ("all 512 reserved source ports (512 to 1023) are in use towards this server, so one "
                                 "above was taken: use fewer connections (nconnect=, numjobs=); `ss -tn` shows who has them")
    };
    return words[source];
}

double tcp_seconds(int64_t ns) {
    const int64_t tenth = NS_PER_SEC / 10;
    return (double)((ns + tenth / 2) / tenth) / 10;
}

static int failed(const struct race *r, struct err *err) {
    const char *host = r->how->host;
    char safe[128], address[INET6_ADDRSTRLEN + 20], all[600];
    size_t at = 0;

    text_safe(safe, sizeof safe, host, strlen(host));
    if (r->said) return err_prefix(err, "connecting to %s, TCP port %u", safe, r->how->port);
    all[0] = '\0';
    for (unsigned i = 0; i < r->n && at < sizeof all; i++) {
        const struct attempt *a = &r->at[i];
        const struct addrinfo *to = a->to;
        bool silent = i < r->begun && a->fd >= 0;
        if (getnameinfo(to->ai_addr, to->ai_addrlen, address, sizeof address, NULL, 0, NI_NUMERICHOST) != 0)
            snprintf(address, sizeof address, "an address");
        if (r->n == 1 && strcmp(address, host) == 0) address[0] = '\0';
        at += (size_t)snprintf(all + at, sizeof all - at, "%s%s%s", i ? "; " : "", address, *address ? ": " : "");
        if (at >= sizeof all) break;
        if (silent) at += (size_t)snprintf(all + at, sizeof all - at, "no answer within %g s",
                                          tcp_seconds(r->how->timeout));
        else at += (size_t)snprintf(all + at, sizeof all - at, "%s", a->error ? strerror(a->error) : "not tried");
    }
    return err_set(err, STATUS_TARGET, "connecting to %s, TCP port %u: %s", safe, r->how->port, all);
}

int tcp_connect_any(const struct tcp_how *how, const struct addrinfo *list, struct err *err) {
    struct race r = { .how = how, .end = sock_now() + how->timeout, .err = err };
    int fd = -1;

    for (; list && r.n < ADDRESSES_MAX; list = list->ai_next)
        r.at[r.n++] = (struct attempt){ .to = list, .fd = -1 };
    int winner = run(&r);
    if (winner >= 0) {
        if (how->source) *how->source = r.at[winner].source;
        if (how->which) *how->which = (unsigned)winner;
        fd = r.at[winner].fd;
        r.at[winner].fd = -1;
    } else {
        failed(&r, err);
    }
    for (unsigned i = 0; i < r.begun; i++)
        if (r.at[i].fd >= 0) close(r.at[i].fd);
    if (fd < 0 || fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK) == 0) return fd;
    close(fd);
    return err_set(err, STATUS_TARGET, "a connection cannot be used: %s", strerror(errno));
}

int tcp_resolve(const char *name, unsigned port, int type, const struct tcp_settings *s, struct addrinfo **list,
                struct err *err) {
    struct addrinfo hints = { .ai_socktype = type, .ai_flags = AI_NUMERICHOST };
    char service[16], host[128];
    int rc;

    *list = NULL;
    if (s && s->source_len) hints.ai_family = s->source.ss_family;
    snprintf(service, sizeof service, "%u", port);
    text_safe(host, sizeof host, name, strlen(name));
    rc = getaddrinfo(name, service, &hints, list);
    if (rc == EAI_NONAME) {
        hints.ai_flags = AI_ADDRCONFIG;
        rc = getaddrinfo(name, service, &hints, list);
    }
    if (rc != 0 && hints.ai_family)
        return err_set(err, STATUS_TARGET, "%s: no %s address, as bind= wants it: %s", host,
                       hints.ai_family == AF_INET ? "IPv4" : "IPv6", gai_strerror(rc));
    if (rc != 0)
        return err_set(err, STATUS_TARGET, "host %s not found: %s", host,
                       rc == EAI_SYSTEM ? strerror(errno) : gai_strerror(rc));
    return 0;
}

int tcp_connect(const struct tcp_how *how, struct err *err) {
    struct addrinfo *list;
    if (tcp_resolve(how->host, how->port, SOCK_STREAM, how->settings, &list, err) != 0) return -1;
    int fd = tcp_connect_any(how, list, err);
    freeaddrinfo(list);
    return fd;
}
