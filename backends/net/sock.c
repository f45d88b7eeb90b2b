/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/net/sock.h"

#include <errno.h>
#include <linux/sock_diag.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "backends/backend.h"
#include "base/clock.h"

/* So late is it seen that the user wants the end. */
#define SLICE_NS (100 * NS_PER_MS)

int64_t sock_now(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * NS_PER_SEC + ts.tv_nsec;
}

int64_t sock_end(int64_t end) {
    return backend_stopped() ? INT64_MIN : end;
}

int64_t sock_slice(int64_t end) {
    int64_t left = end - sock_now();
    return left < SLICE_NS ? left : SLICE_NS;
}

int sock_wait(int fd, short events, int64_t timeout_ns) {
    struct pollfd p = { .fd = fd, .events = events };
    if (timeout_ns < 0) timeout_ns = 0;
    struct timespec ts = { .tv_sec = (time_t)(timeout_ns / NS_PER_SEC), .tv_nsec = (long)(timeout_ns % NS_PER_SEC) };
    int r = ppoll(&p, 1, &ts, NULL);
    if (r < 0) return -1;
    return r == 0 ? 0 : p.revents;
}

int sock_nodelay(int fd) {
    int on = 1;
    return setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0 ? 0 : -errno;
}

int sock_send_all(int fd, const void *bytes, size_t len, int64_t end) {
    const char *p = bytes;

    while (len) {
        ssize_t sent = send(fd, p, len, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN && errno != EINTR) return -errno;
        if (sent > 0) {
            p += sent;
            len -= (size_t)sent;
        } else if (sock_now() >= sock_end(end)) {
            return -ETIMEDOUT;
        } else {
            sock_wait(fd, POLLOUT, sock_slice(end));
        }
    }
    return 0;
}

size_t sock_send_room(int fd) {
#ifdef SO_MEMINFO
    uint32_t info[SK_MEMINFO_VARS];
    socklen_t len = sizeof info;
    if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info, &len) != 0) return 0;
    if (len < (SK_MEMINFO_WMEM_QUEUED + 1) * sizeof info[0]) return 0;
    uint32_t size = info[SK_MEMINFO_SNDBUF], used = info[SK_MEMINFO_WMEM_QUEUED];
    return size > used ? size - used : 0;
#else
    (void)fd;
    return 0;
#endif
}

const char *sock_why(int fd, char *buf, size_t len) {
    char byte;
    ssize_t r = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (r == 0) {
        snprintf(buf, len, "the other side closed the connection");
    } else if (r < 0 && errno != EAGAIN && errno != EINTR) {
        snprintf(buf, len, "%s", strerror(errno));
    } else {
        int error = 0;
        socklen_t n = sizeof error;
        if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n) == 0 && error != 0) {
            snprintf(buf, len, "%s", strerror(error));
        } else {
            snprintf(buf, len, "the connection broke");
        }
    }
    return buf;
}

bool sock_peer(int fd, char *address, size_t len, unsigned *port) {
    struct sockaddr_storage ss;
    socklen_t n = sizeof ss;
    char service[8] = "";
    if (getpeername(fd, (struct sockaddr *)&ss, &n) != 0 || ss.ss_family == AF_UNIX) return false; /* tests have those */
    if (getnameinfo((struct sockaddr *)&ss, n, address, (socklen_t)len, service, sizeof service,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0) return false;
    *port = (unsigned)strtoul(service, NULL, 10);
    return true;
}

const char *sock_bracket(const char *host, char *buf, size_t len) {
    bool six = strchr(host, ':') != NULL;
    snprintf(buf, len, "%s%s%s", six ? "[" : "", host, six ? "]" : "");
    return buf;
}

unsigned sock_local_port(int fd) {
    struct sockaddr_storage ss;
    socklen_t n = sizeof ss;
    if (getsockname(fd, (struct sockaddr *)&ss, &n) != 0) return 0;
    if (ss.ss_family == AF_INET) return ntohs(((struct sockaddr_in *)&ss)->sin_port);
    if (ss.ss_family == AF_INET6) return ntohs(((struct sockaddr_in6 *)&ss)->sin6_port);
    return 0;
}
