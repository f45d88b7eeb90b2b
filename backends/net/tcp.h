/* SPDX-License-Identifier: GPL-2.0-or-later */
/* TCP connections of our own, for data paths that speak to the server without a library. Control path: may block. */
#ifndef BACKENDS_NET_TCP_H
#define BACKENDS_NET_TCP_H

#include <netdb.h>
#include <stdbool.h>
#include <stdint.h>

#include "backends/net/tcp_options.h"
#include "base/err.h"

#define ADDRESSES_MAX 16u /* of one name; more are not tried */

enum tcp_source {
    TCP_SOURCE_FINE,    /* reserved, or it did not matter */
    TCP_SOURCE_NO_RIGHT,
    TCP_SOURCE_ALL_TAKEN
};

struct tcp_how {
    const char *host;   /* a numeric address or a name */
    unsigned port;
    bool reserved;      /* from a source port of 512 to 1023 where this process may have one, else from any:
                           sock_local_port() tells which it is */
    int64_t timeout;    /* ns, for all attempts together */
    const struct tcp_settings *settings; /* NULL: the kernel's defaults */
    enum tcp_source *source; /* NULL, or where to put what became of `reserved` */
    unsigned *which;    /* NULL, or where to put the place in the list of the address that won */
};

/* What tcp_source_words() says of a source port that is not a reserved one; "" for TCP_SOURCE_FINE. */
const char *tcp_source_words(enum tcp_source source);

/* ns in seconds, to a tenth, for messages: what is left of a timeout after a few ms is told as the timeout. */
double tcp_seconds(int64_t ns);

/* All addresses of the name are tried, a new one every 250 ms while the earlier ones go on (RFC 8305): the first that
 * connects wins. A connected socket in blocking mode, without Nagle's algorithm; -1 after filling err. */
int tcp_connect(const struct tcp_how *how, struct err *err);
/* The same with addresses that were looked up before; how->host is for messages. */
int tcp_connect_any(const struct tcp_how *how, const struct addrinfo *list, struct err *err);
/* The addresses of a name, of the family that bind= has. `type`: SOCK_STREAM, SOCK_DGRAM. The list is the caller's. */
int tcp_resolve(const char *name, unsigned port, int type, const struct tcp_settings *s, struct addrinfo **list,
                struct err *err);

#endif
