/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Access keys for the TCP connections of the data path: one table for every backend that makes its own connections.
 * They are set before connect(), so that the SYN tells the window scale and the segment size that go with them. What is
 * in force is read back from a connection, because the kernel cuts and rounds without a word. */
#ifndef BACKENDS_NET_TCP_OPTIONS_H
#define BACKENDS_NET_TCP_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/kv.h"

/* In a backend's configuration. */
struct tcp_options {
    uint64_t rcvbuf, sndbuf, window, mss; /* bytes; 0: not given */
    bool quickack;
    char *congestion, *bind;              /* NULL: not given */
};

#define TCP_BUFFER_MIN 4096
#define TCP_BUFFER_MAX (1u << 30) /* the kernel doubles it, and keeps it in an int */
#define TCP_WINDOW_MIN 8192
#define TCP_WINDOW_MAX (1u << 30) /* the largest that window scaling can express */
#define TCP_MSS_MIN    88         /* the kernel's own limits */
#define TCP_MSS_MAX    32767

/* Entries of an option table (option/option.h) for the member `m`, a struct tcp_options, of the configuration `conf`. */
#define TCP_OPTION_ENTRIES(conf, m)                                                                                    \
    { .name = "rcvbuf", .type = OPTION_SIZE, .offset = offsetof(conf, m.rcvbuf), .min = TCP_BUFFER_MIN,                \
      .max = TCP_BUFFER_MAX, .value = "SIZE",                                                                          \
      .help = "SO_RCVBUF of each connection, instead of the kernel's tuning; native engine" },                         \
    { .name = "sndbuf", .type = OPTION_SIZE, .offset = offsetof(conf, m.sndbuf), .min = TCP_BUFFER_MIN,                \
      .max = TCP_BUFFER_MAX, .value = "SIZE",                                                                          \
      .help = "SO_SNDBUF of each connection, instead of the kernel's tuning; native engine" },                         \
    { .name = "window", .type = OPTION_SIZE, .offset = offsetof(conf, m.window), .min = TCP_WINDOW_MIN,                \
      .max = TCP_WINDOW_MAX, .value = "SIZE",                                                                          \
      .help = "the largest TCP receive window to advertise: a receive buffer for it is found by measuring; "           \
              "native engine" },                                                                                       \
    { .name = "quickack", .type = OPTION_BOOL, .offset = offsetof(conf, m.quickack), .def = "no", .value = "yes|no",   \
      .help = "acknowledge what arrives at once, never with a delay; native engine" },                                 \
    { .name = "congestion", .type = OPTION_TEXT, .offset = offsetof(conf, m.congestion), .value = "NAME",              \
      .help = "TCP congestion control of what is sent, e.g. cubic; native engine" },                                   \
    { .name = "mss", .type = OPTION_UINT, .offset = offsetof(conf, m.mss), .min = TCP_MSS_MIN, .max = TCP_MSS_MAX,     \
      .value = "N", .help = "largest TCP segment, in bytes, both ways; native engine" },                               \
    { .name = "bind", .type = OPTION_TEXT, .offset = offsetof(conf, m.bind), .value = "ADDRESS",                       \
      .help = "source address of each connection, and so the link it takes; native engine" }

/* The first key that was given, NULL: none. */
const char *tcp_options_given(const struct tcp_options *o);
/* Cross-checks, and what this machine alone can tell: is there such a congestion control, such an address? Makes no
 * connection. Errors: USAGE, with the key in front. */
int tcp_options_check(const struct tcp_options *o, struct err *err);

/* What connections are made with; zeroed: the kernel's defaults. No pointers: a copy is a copy. */
struct tcp_settings {
    uint32_t rcvbuf, sndbuf, mss;   /* bytes; 0: the kernel's */
    uint32_t window;                /* rcvbuf is what tcpwindow_choose() found for it; 0: not asked for */
    bool quickack;
    char congestion[16];            /* "": the kernel's */
    struct sockaddr_storage source; /* without port */
    socklen_t source_len;           /* 0: any */
};

/* From keys that tcp_options_check() has passed. */
void tcp_settings_from(struct tcp_settings *s, const struct tcp_options *o);
/* To a socket that is not connected yet. 0, or negative errno after filling err (status TARGET). */
int tcp_settings_apply(const struct tcp_settings *s, int fd, struct err *err);
/* Of a connected socket: what is in force goes to `negotiated`; where that is not what was asked for, and what follows
 * from what was asked for, to `warnings`. */
void tcp_settings_facts(const struct tcp_settings *s, int fd, struct kv *negotiated, struct kv *warnings);
/* SO_RCVBUF or SO_SNDBUF in the terms of those who set it: the kernel doubles what it is given. 0: unknown. */
uint32_t tcp_buffer(int fd, int option);
/* "the kernel gives 4m at most: net.core.rmem_max is 4194304, ..." for a buffer of `asked` bytes. */
const char *tcp_buffer_capped(char *buf, size_t len, const char *sysctl, uint64_t asked, uint32_t got);

/* What has to be done again and again, because the kernel does not keep to it, right after every receive: NULL where
 * there is nothing, so that nobody pays for it who has not asked. */
static inline const struct tcp_settings *tcp_settings_to_tend(const struct tcp_settings *s) {
    return s && (s->quickack || s->window) ? s : NULL;
}
/* quickack: what has been received is acknowledged now; with the next request that is sent, the kernel goes back to
 * delayed acknowledgements. window: where the kernel has come to think that more fits into the buffer (tcpwindow.h),
 * its bound is brought down again. */
void tcp_settings_tend(const struct tcp_settings *s, int fd);

#endif
