/* SPDX-License-Identifier: GPL-2.0-or-later */
/* TCP connections of our own, for data paths that speak to the server without a library. Control path: may block. */
#ifndef BACKENDS_NET_TCP_H
#define BACKENDS_NET_TCP_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/net/tcp_options.h"
#include "base/err.h"

struct tcp_how {
    const char *host;   /* a numeric address or a name */
    unsigned port;
    bool reserved;      /* from a source port of 512 to 1023 where this process may have one, else from any:
                           sock_local_port() tells which it is */
    int64_t timeout;    /* ns, for all attempts together */
    const struct tcp_settings *settings; /* NULL: the kernel's defaults */
};

/* A connected socket in blocking mode, without Nagle's algorithm; -1 after filling err. */
int tcp_connect(const struct tcp_how *how, struct err *err);

#endif
