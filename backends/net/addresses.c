/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/net/addresses.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "backends/net/sock.h"

static void link_them(struct addresses *a) {
    for (unsigned i = 0; i < a->n; i++) a->left[i].ai_next = i + 1 < a->n ? &a->left[i + 1] : NULL;
}

static bool is_there(const struct addresses *a, const struct addrinfo *one) {
    for (unsigned i = 0; i < a->n; i++)
        if (a->left[i].ai_addrlen == one->ai_addrlen && memcmp(a->left[i].ai_addr, one->ai_addr, one->ai_addrlen) == 0)
            return true;
    return false;
}

int addresses_fill(struct addresses *a, const char *host, unsigned port, const struct tcp_settings *s, struct err *err) {
    memset(a, 0, sizeof *a);
    if (tcp_resolve(host, port, SOCK_STREAM, s, &a->list, err) != 0) return -1;
    for (const struct addrinfo *one = a->list; one && a->n < ADDRESSES_MAX; one = one->ai_next)
        if (!is_there(a, one)) a->left[a->n++] = *one;
    link_them(a);
    a->several = a->n > 1;
    return 0;
}

void addresses_free(struct addresses *a) {
    if (a->list) freeaddrinfo(a->list);
    a->list = NULL;
    a->n = 0;
}

int addresses_connect(const struct addresses *a, const struct tcp_how *how, unsigned *which, struct err *err) {
    struct tcp_how ours = *how;
    ours.which = which;
    return tcp_connect_any(&ours, a->left, err);
}

const char *addresses_words(const struct addresses *a, unsigned which, char *buf, size_t len) {
    const struct addrinfo *one = &a->left[which];
    if (getnameinfo(one->ai_addr, one->ai_addrlen, buf, (socklen_t)len, NULL, 0, NI_NUMERICHOST) != 0)
        snprintf(buf, len, "an address");
    return buf;
}

int64_t addresses_share(const struct addresses *a, int64_t end) {
    int64_t left = end - sock_now(), share = a->n > 1 ? left / a->n : left;
    return a->n > 1 && share > ADDRESSES_SHARE_NS ? ADDRESSES_SHARE_NS : share;
}

int addresses_none(const struct addresses *a, struct err *err) {
    struct err last = *err;
    return *a->why ? err_set(err, STATUS_TARGET, "%s; %.400s", a->why, last.msg) : -1;
}

/* Most messages name the address themselves. */
static void note(struct addresses *a, const char *address, const char *why) {
    size_t used = strlen(a->why);
    bool named = strstr(why, address) != NULL;
    snprintf(a->why + used, sizeof a->why - used, "%s%s%s%.500s", used ? "; " : "", named ? "" : address,
             named ? "" : ": ", why);
}

bool addresses_failed(struct addresses *a, unsigned which, int64_t end, struct err *err) {
    char address[64];

    if (!a->several) return false; /* the message stands as it is */
    note(a, addresses_words(a, which, address, sizeof address), err->msg);
    a->n--;
    memmove(&a->left[which], &a->left[which + 1], (a->n - which) * sizeof a->left[0]);
    link_them(a);
    if (a->n && sock_now() < sock_end(end)) return true;
    for (unsigned i = 0; i < a->n; i++) note(a, addresses_words(a, i, address, sizeof address), "not tried");
    err_set(err, STATUS_TARGET, "%s", a->why);
    return false;
}
