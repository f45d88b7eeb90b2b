/* SPDX-License-Identifier: GPL-2.0-or-later */
/* servers=: by which addresses of the server the data goes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/net/sock.h"
#include "backends/nfs/nfs.h"
#include "base/text.h"

/* "HOST", "HOST:PORT", "[V6]", "[V6]:PORT": as in a URL, so it is read as one. */
static int one_server(struct nfsbe_address *to, const char *text, size_t n, struct err *err) {
    char as_url[sizeof to->host + 32], safe[300];
    struct url url;
    int rc = -1;

    text_safe(safe, sizeof safe, text, n);
    if (n == 0) return err_set(err, STATUS_USAGE, "servers=: an address is missing between the commas");
    if (n >= sizeof to->host) return err_set(err, STATUS_USAGE, "servers=: an address is too long");
    if (memchr(text, '/', n) || memchr(text, '?', n))
        return err_set(err, STATUS_USAGE, "servers=: `%s` is no address: HOST, HOST:PORT or [IPV6]:PORT is needed", safe);
    snprintf(as_url, sizeof as_url, "nfs://%.*s/", (int)n, text);
    if (url_parse(as_url, &url, err) != 0) {
        err_prefix(err, "servers=: %s", safe);
    } else {
        snprintf(to->host, sizeof to->host, "%s", url.host);
        to->port = url.port;
        rc = 0;
    }
    url_free(&url);
    return rc;
}

int nfsbe_servers_fill(struct nfsbe_servers *out, const char *text, struct err *err) {
    out->n = 0;
    for (const char *p = text; p; p++) {
        size_t n = strcspn(p, ",");
        if (out->n == NFSBE_SERVERS_MAX)
            return err_set(err, STATUS_USAGE, "servers=: more than %u addresses", NFSBE_SERVERS_MAX);
        if (one_server(&out->at[out->n], p, n, err) != 0) return -1;
        for (unsigned i = 0; i < out->n; i++)
            if (strcmp(out->at[i].host, out->at[out->n].host) == 0 && out->at[i].port == out->at[out->n].port)
                return err_set(err, STATUS_USAGE,
                               "servers=: %s is there twice: nconnect= makes several connections to one address",
                               out->at[i].host);
        out->n++;
        p += n;
        if (!*p) break;
    }
    return 0;
}

void nfsbe_servers_words(const struct nfsbe_servers *s, char *buf, size_t len) {
    size_t at = 0;
    if (len) *buf = '\0';
    char shown[sizeof s->at[0].host + 2];
    for (unsigned i = 0; i < s->n && at < len; i++)
        at += (size_t)snprintf(buf + at, len - at, "%s%s:%u", i ? ", " : "",
                               sock_bracket(s->at[i].host, shown, sizeof shown), s->at[i].port);
}
