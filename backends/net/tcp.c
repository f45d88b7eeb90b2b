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

/* Everything that has to be set before connect(), because the first SYN tells it. The buffers are the kernel's affair:
 * setting SO_RCVBUF, even to a large value, ends its tuning.
 * SO_REUSEADDR: a port whose last connection is in TIME_WAIT may be bound again; reserved ports are few. When the very
 * same pair of addresses and ports is still in use, connect() says so. */
static int before_connect(int fd) {
    int on = 1;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0) return -errno;
    return sock_nodelay(fd);
}

static int bind_port(int fd, int family, unsigned port) {
    struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port) };
    struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    int rc = family == AF_INET6 ? bind(fd, (struct sockaddr *)&six, sizeof six)
                                : bind(fd, (struct sockaddr *)&four, sizeof four);
    return rc == 0 ? 0 : -errno;
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
static int attempt(const struct addrinfo *to, unsigned source, int64_t end) {
    int fd = socket(to->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
    if (fd < 0) return -errno;
    int rc = before_connect(fd);
    if (rc == 0 && source) rc = bind_port(fd, to->ai_family, source);
    if (rc == 0 && connect(fd, to->ai_addr, to->ai_addrlen) != 0) rc = errno == EINPROGRESS ? await(fd, end) : -errno;
    if (rc == 0 && fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK) != 0) rc = -errno;
    if (rc == 0) return fd;
    close(fd);
    return rc;
}

static bool taken(int rc) {
    return rc == -EADDRINUSE || rc == -EADDRNOTAVAIL;
}

static int connect_to(const struct addrinfo *to, bool reserved, int64_t end) {
    int rc = -EACCES;
    if (reserved) {
        unsigned start =
            (unsigned)(rng_mix((uint64_t)sock_now() ^ (uint64_t)(unsigned)getpid() << 32) % RESERVED_PORTS);
        for (unsigned i = 0; i < RESERVED_PORTS; i++) {
            rc = attempt(to, RESERVED_FIRST + (start + i) % RESERVED_PORTS, end);
            if (!taken(rc)) break;
        }
    }
    if (rc == -EACCES || taken(rc)) rc = attempt(to, 0, end);
    return rc;
}

int tcp_connect(const struct tcp_how *how, struct err *err) {
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST }, *list;
    int64_t end = sock_now() + how->timeout;
    char service[16], host[128];
    int rc;

    snprintf(service, sizeof service, "%u", how->port);
    text_safe(host, sizeof host, how->host, strlen(how->host));
    rc = getaddrinfo(how->host, service, &hints, &list);
    if (rc == EAI_NONAME) {
        hints.ai_flags = AI_ADDRCONFIG;
        rc = getaddrinfo(how->host, service, &hints, &list);
    }
    if (rc != 0)
        return err_set(err, STATUS_TARGET, "%s: %s", host, rc == EAI_SYSTEM ? strerror(errno) : gai_strerror(rc));
    rc = -EADDRNOTAVAIL;
    for (const struct addrinfo *to = list; to && rc < 0; to = to->ai_next) rc = connect_to(to, how->reserved, end);
    freeaddrinfo(list);
    if (rc < 0) return err_set(err, STATUS_TARGET, "connecting to %s, TCP port %u: %s", host, how->port, strerror(-rc));
    return rc;
}
