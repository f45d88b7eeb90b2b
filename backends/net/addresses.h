/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The addresses of a name, for protocols whose server may fail behind a TCP connection that stands: such an address is
 * left for the next one, and what was wrong with each is told. Control path. */
#ifndef BACKENDS_NET_ADDRESSES_H
#define BACKENDS_NET_ADDRESSES_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/net/tcp.h"
#include "base/clock.h"

#define ADDRESSES_SHARE_NS (10 * NS_PER_SEC) /* no address has longer while others are left */

struct addresses {
    struct addrinfo *list;              /* as getaddrinfo() made it */
    struct addrinfo left[ADDRESSES_MAX]; /* copies of what has not failed, linked */
    unsigned n;                         /* of them */
    bool several;                       /* the name has more than one */
    char why[1000];                     /* what was wrong with those that failed; "": none did */
};

/* Resolves. 0, or -1 after filling err. */
int addresses_fill(struct addresses *a, const char *host, unsigned port, const struct tcp_settings *s, struct err *err);
void addresses_free(struct addresses *a);

/* A connection to one of those left, as tcp_connect() makes it; that one is *which from now on. */
int addresses_connect(const struct addresses *a, const struct tcp_how *how, unsigned *which, struct err *err);
/* Numeric. */
const char *addresses_words(const struct addresses *a, unsigned which, char *buf, size_t len);
/* So long the next address may take until `end` (of sock_now): all of it for the last one. */
int64_t addresses_share(const struct addresses *a, int64_t end);

/* It failed, for the reason in `err`: it is not among those left any more. True: others are, and there is time for them
 * until `end`. False: err names all that failed. */
bool addresses_failed(struct addresses *a, unsigned which, int64_t end, struct err *err);
/* None of those left could be connected to, as `err` says; put those before them in front. -1. */
int addresses_none(const struct addresses *a, struct err *err);

#endif
