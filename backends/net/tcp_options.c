/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/net/tcp_options.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "base/units.h"

/* One line of a file under /proc/sys; "" where there is none. */
static const char *sysctl_read(const char *path, char *buf, size_t len) {
    FILE *f = fopen(path, "re");
    buf[0] = '\0';
    if (!f) return buf;
    if (!fgets(buf, (int)len, f)) buf[0] = '\0';
    fclose(f);
    buf[strcspn(buf, "\n")] = '\0';
    return buf;
}

const char *tcp_options_given(const struct tcp_options *o) {
    if (o->rcvbuf) return "rcvbuf";
    if (o->sndbuf) return "sndbuf";
    if (o->window) return "window";
    if (o->quickack) return "quickack";
    if (o->congestion) return "congestion";
    if (o->mss) return "mss";
    return o->bind ? "bind" : NULL;
}

/* ---- keys ---- */

static int parse_source(const char *text, struct sockaddr_storage *source, socklen_t *len) {
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST }, *list;
    if (getaddrinfo(text, NULL, &hints, &list) != 0) return -1;
    memset(source, 0, sizeof *source);
    memcpy(source, list->ai_addr, list->ai_addrlen);
    *len = list->ai_addrlen;
    freeaddrinfo(list);
    return 0;
}

static int congestion_failed(const char *name, int error, enum status status, struct err *err) {
    static const char available[] = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    static const char allowed[] = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";
    char safe[40], list[200];
    text_safe(safe, sizeof safe, name, strlen(name));
    if (error == EPERM)
        return err_set(err, status, "congestion=%s: only root may take it; others: %s", safe,
                       sysctl_read(allowed, list, sizeof list));
    if (error != ENOENT) return err_set(err, status, "congestion=%s: %s", safe, strerror(error));
    return err_set(err, status, "congestion=%s: this kernel has no such congestion control; it has: %s", safe,
                   sysctl_read(available, list, sizeof list));
}

static int check_congestion(const char *name, struct err *err) {
    int fd, rc = 0;
    if (strlen(name) >= sizeof(((struct tcp_settings *)0)->congestion))
        return congestion_failed(name, ENOENT, STATUS_USAGE, err);
    if ((fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP)) < 0) return 0; /* connecting will tell */
    if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name)) != 0)
        rc = congestion_failed(name, errno, STATUS_USAGE, err);
    close(fd);
    return rc;
}

static bool is_multicast(const struct sockaddr_storage *s) {
    if (s->ss_family == AF_INET6) return IN6_IS_ADDR_MULTICAST(&((const struct sockaddr_in6 *)s)->sin6_addr);
    return IN_MULTICAST(ntohl(((const struct sockaddr_in *)s)->sin_addr.s_addr));
}

/* bind() takes a broadcast address too, and connect() from there fails: so does a datagram's way from it to itself. */
static bool is_broadcast(const struct sockaddr_storage *s, socklen_t len) {
    struct sockaddr_in to;
    if (s->ss_family != AF_INET) return false;
    memcpy(&to, s, sizeof to);
    to.sin_port = htons(9);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return false;
    bool is = connect(fd, (struct sockaddr *)&to, len) != 0 && errno == EACCES; /* SO_BROADCAST is not set */
    close(fd);
    return is;
}

static int check_source(const char *text, struct err *err) {
    struct sockaddr_storage source;
    socklen_t len;
    char safe[100];
    int fd, rc = 0;

    text_safe(safe, sizeof safe, text, strlen(text));
    if (parse_source(text, &source, &len) != 0)
        return err_set(err, STATUS_USAGE, "bind=%s: an IPv4 or IPv6 address of this machine is wanted", safe);
    if (is_multicast(&source) || is_broadcast(&source, len))
        return err_set(err, STATUS_USAGE, "bind=%s: no TCP connection can come from a %s address: one of this machine's own is "
                       "wanted (`ip -br addr` lists them)", safe, is_multicast(&source) ? "multicast" : "broadcast");
    if ((fd = socket(source.ss_family, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP)) < 0) return 0;
    if (bind(fd, (struct sockaddr *)&source, len) != 0)
        rc = err_set(err, STATUS_USAGE, "bind=%s: %s", safe,
                     errno == EADDRNOTAVAIL ? "no interface of this machine has this address" : strerror(errno));
    close(fd);
    return rc;
}

int tcp_options_check(const struct tcp_options *o, struct err *err) {
    if (o->window && o->rcvbuf)
        return err_set(err, STATUS_USAGE,
                       "window= and rcvbuf= both decide about the receive buffer: give one of them");
    if (o->congestion && check_congestion(o->congestion, err) != 0) return -1;
    return o->bind ? check_source(o->bind, err) : 0;
}

void tcp_settings_from(struct tcp_settings *s, const struct tcp_options *o) {
    memset(s, 0, sizeof *s);
    s->rcvbuf = (uint32_t)o->rcvbuf;
    s->sndbuf = (uint32_t)o->sndbuf;
    s->window = (uint32_t)o->window;
    s->mss = (uint32_t)o->mss;
    s->quickack = o->quickack;
    if (o->congestion) snprintf(s->congestion, sizeof s->congestion, "%s", o->congestion);
    if (o->bind && parse_source(o->bind, &s->source, &s->source_len) != 0) s->source_len = 0;
}

/* ---- sockets ---- */

static int set_int(int fd, int level, int option, uint32_t value, const char *key, struct err *err) {
    int n = (int)value, error;
    if (value == 0 || setsockopt(fd, level, option, &n, sizeof n) == 0) return 0;
    error = errno;
    err_set(err, STATUS_TARGET, "%s=%u: %s", key, value, strerror(error));
    return -error;
}

int tcp_settings_apply(const struct tcp_settings *s, int fd, struct err *err) {
    const char *key = s->window ? "window" : "rcvbuf";
    int rc;
    if ((rc = set_int(fd, SOL_SOCKET, SO_RCVBUF, s->rcvbuf, key, err)) != 0) return rc;
    if ((rc = set_int(fd, SOL_SOCKET, SO_SNDBUF, s->sndbuf, "sndbuf", err)) != 0) return rc;
    if ((rc = set_int(fd, IPPROTO_TCP, TCP_MAXSEG, s->mss, "mss", err)) != 0) return rc;
    if (s->congestion[0] &&
        setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, s->congestion, (socklen_t)strlen(s->congestion)) != 0) {
        rc = -errno;
        congestion_failed(s->congestion, -rc, STATUS_TARGET, err);
    }
    return rc;
}

void tcp_settings_tend(const struct tcp_settings *s, int fd) {
    int on = 1, clamp, window = (int)s->window;
    socklen_t len = sizeof clamp;
    if (s->quickack) setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on);
    if (window && getsockopt(fd, IPPROTO_TCP, TCP_WINDOW_CLAMP, &clamp, &len) == 0 && clamp > window)
        setsockopt(fd, IPPROTO_TCP, TCP_WINDOW_CLAMP, &window, sizeof window);
}

/* ---- what is in force ---- */

uint32_t tcp_buffer(int fd, int option) {
    int n = 0;
    socklen_t len = sizeof n;
    return getsockopt(fd, SOL_SOCKET, option, &n, &len) == 0 && n > 0 ? (uint32_t)n / 2 : 0;
}

const char *tcp_buffer_capped(char *buf, size_t len, const char *sysctl, uint64_t asked, uint32_t got) {
    char path[64], value[32], size[32];
    snprintf(path, sizeof path, "/proc/sys/net/core/%s", sysctl);
    sysctl_read(path, value, sizeof value);
    snprintf(buf, len, "the kernel gives %s: net.core.%s%s%s caps it; sysctl -w net.core.%s=%llu would allow it",
             units_size(size, sizeof size, got), sysctl, value[0] ? " = " : "", value, sysctl,
             (unsigned long long)asked);
    return buf;
}

static void buffer_facts(int fd, int option, const char *key, const char *sysctl, uint32_t asked,
                         struct kv *negotiated, struct kv *warnings) {
    uint32_t got = tcp_buffer(fd, option);
    char name[24], code[24], size[32], cap[200];

    snprintf(name, sizeof name, "tcp_%s", key);
    snprintf(code, sizeof code, "%s-capped", key);
    if (!asked) return;
    kv_uint(negotiated, name, got);
    units_size(size, sizeof size, asked);
    if (got < asked)
        kv_text(warnings, code, "%s=%s: %s", key, size, tcp_buffer_capped(cap, sizeof cap, sysctl, asked, got));
}

static void tuning_facts(const struct tcp_settings *s, struct kv *negotiated, struct kv *warnings) {
    bool receive = !s->rcvbuf && !s->window, send = !s->sndbuf;
    kv_text(negotiated, "tcp_autotuning", "%s",
            receive && send ? "receive and send buffer" : receive ? "receive buffer" : send ? "send buffer" : "none");
    if (!receive)
        kv_text(warnings, "rcvbuf-fixed",
                "%s= fixes the receive buffer: the kernel does not tune it to the path any more",
                s->window ? "window" : "rcvbuf");
    if (!send)
        kv_text(warnings, "sndbuf-fixed",
                "sndbuf= fixes the send buffer: the kernel does not tune it to the path any more");
}

static void mss_facts(int fd, uint32_t asked, struct kv *negotiated, struct kv *warnings) {
    enum { HEADER_OPTIONS = 40 }; /* the most that TCP options take from a segment */
    int mss = 0;
    socklen_t len = sizeof mss;
    if (getsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &mss, &len) != 0 || mss <= 0) return;
    kv_uint(negotiated, "tcp_mss", (unsigned)mss);
    if (asked && (uint32_t)mss + HEADER_OPTIONS < asked)
        kv_text(warnings, "mss-smaller", "mss=%u: segments of the connection hold %d bytes: the path, or the server, "
                                         "allows no more", asked, mss);
}

void tcp_settings_facts(const struct tcp_settings *s, int fd, struct kv *negotiated, struct kv *warnings) {
    char name[17] = "", address[100];
    socklen_t len = sizeof name - 1;
    struct sockaddr_storage own;
    socklen_t own_len = sizeof own;

    if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &len) == 0) kv_text(negotiated, "tcp_congestion", "%s", name);
    mss_facts(fd, s->mss, negotiated, warnings);
    tuning_facts(s, negotiated, warnings);
    if (!s->window) buffer_facts(fd, SO_RCVBUF, "rcvbuf", "rmem_max", s->rcvbuf, negotiated, warnings);
    buffer_facts(fd, SO_SNDBUF, "sndbuf", "wmem_max", s->sndbuf, negotiated, warnings);
    kv_bool(negotiated, "tcp_quickack", s->quickack);
    if (getsockname(fd, (struct sockaddr *)&own, &own_len) == 0 &&
        getnameinfo((struct sockaddr *)&own, own_len, address, sizeof address, NULL, 0, NI_NUMERICHOST) == 0)
        kv_text(negotiated, "tcp_source", "%s", address);
}
