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

struct attempts {
    const struct tcp_how *how;
    int64_t end;
    struct err *err;
    bool said;          /* err is filled: the same at every address and port */
};

/* Everything that has to be set before connect(), because the first SYN tells it. Unasked, the buffers are the kernel's
 * affair: setting SO_RCVBUF, even to a large value, ends its tuning.
 * SO_REUSEADDR: a port whose last connection is in TIME_WAIT may be bound again; reserved ports are few. When the very
 * same pair of addresses and ports is still in use, connect() says so. */
static int before_connect(int fd, struct attempts *a) {
    int on = 1, rc;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0) return -errno;
    if ((rc = sock_nodelay(fd)) != 0 || !a->how->settings) return rc;
    rc = tcp_settings_apply(a->how->settings, fd, a->err);
    a->said = rc != 0;
    return rc;
}

static int bind_source(int fd, int family, unsigned port, struct attempts *a) {
    const struct tcp_settings *s = a->how->settings;
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
        a->said = true;
        err_set(a->err, STATUS_TARGET, "bind=: no interface of this machine has this address");
    }
    return -error;
}

static int await(int fd, int64_t end) {
    int error = 0, got = 0;
    socklen_t len = sizeof error;
    while (got <= 0) {
        int64_t left = end - sock_now();
        if (left <= 0) return -ETIMEDOUT;
        got = sock_wait(fd, POLLOUT, left);
    }
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0) return -errno;
    return -error;
}

/* One attempt from one source port (0: any). A descriptor, or negative errno. */
static int attempt(const struct addrinfo *to, unsigned source, struct attempts *a) {
    int fd = socket(to->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
    if (fd < 0) return -errno;
    int rc = before_connect(fd, a);
    if (rc == 0) rc = bind_source(fd, to->ai_family, source, a);
    if (rc == 0 && connect(fd, to->ai_addr, to->ai_addrlen) != 0)
        rc = errno == EINPROGRESS ? await(fd, a->end) : -errno;
    if (rc == 0 && fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK) != 0) rc = -errno;
    if (rc == 0) return fd;
    close(fd);
    return rc;
}

static bool taken(int rc) {
    return rc == -EADDRINUSE || rc == -EADDRNOTAVAIL;
}

static int connect_to(const struct addrinfo *to, struct attempts *a) {
    int rc = -EACCES;
    if (a->how->reserved) {
        unsigned start =
            (unsigned)(rng_mix((uint64_t)sock_now() ^ (uint64_t)(unsigned)getpid() << 32) % RESERVED_PORTS);
        for (unsigned i = 0; i < RESERVED_PORTS; i++) {
            rc = attempt(to, RESERVED_FIRST + (start + i) % RESERVED_PORTS, a);
            if (!taken(rc) || a->said) break;
        }
    }
    if (!a->said && (rc == -EACCES || taken(rc))) rc = attempt(to, 0, a);
    return rc;
}

int tcp_connect(const struct tcp_how *how, struct err *err) {
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST }, *list;
    struct attempts a = { .how = how, .end = sock_now() + how->timeout, .err = err };
    const struct tcp_settings *s = how->settings;
    char service[16], host[128];
    int rc;

    if (s && s->source_len) hints.ai_family = s->source.ss_family;
    snprintf(service, sizeof service, "%u", how->port);
    text_safe(host, sizeof host, how->host, strlen(how->host));
    rc = getaddrinfo(how->host, service, &hints, &list);
    if (rc == EAI_NONAME) {
        hints.ai_flags = AI_ADDRCONFIG;
        rc = getaddrinfo(how->host, service, &hints, &list);
    }
    if (rc != 0 && hints.ai_family)
        return err_set(err, STATUS_TARGET, "%s: no %s address, as bind= wants it: %s", host,
                       hints.ai_family == AF_INET ? "IPv4" : "IPv6", gai_strerror(rc));
    if (rc != 0)
        return err_set(err, STATUS_TARGET, "%s: %s", host, rc == EAI_SYSTEM ? strerror(errno) : gai_strerror(rc));
    rc = -EADDRNOTAVAIL;
    for (const struct addrinfo *to = list; to && rc < 0 && !a.said; to = to->ai_next) rc = connect_to(to, &a);
    freeaddrinfo(list);
    if (rc < 0 && a.said) return err_prefix(err, "connecting to %s, TCP port %u", host, how->port);
    if (rc < 0) return err_set(err, STATUS_TARGET, "connecting to %s, TCP port %u: %s", host, how->port, strerror(-rc));
    return rc;
}
