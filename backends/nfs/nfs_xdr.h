/* SPDX-License-Identifier: GPL-2.0-or-later */
/* XDR (RFC 4506) as the calls before the load need it: small, and careful. A reader that meets what cannot be is `bad`
 * from then on and gives zeros; a writer without room is `full`: callers look once, at the end. Pure. */
#ifndef BACKENDS_NFS_NFS_XDR_H
#define BACKENDS_NFS_NFS_XDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct xdr_in {
    const unsigned char *at, *end;
    bool bad;
};

struct xdr_out {
    unsigned char *at, *end;
    bool full;
};

/* ---- reading ---- */

/* The next `len` bytes and the zeros behind them; NULL, and bad, where so many are not there. */
static inline const unsigned char *xdr_get(struct xdr_in *x, size_t len) {
    const unsigned char *p = x->at;
    size_t left = (size_t)(x->end - p);
    if (x->bad || len > left || (-len & 3u) > left - len) {
        x->bad = true;
        return NULL;
    }
    x->at += len + (-len & 3u);
    return p;
}

static inline uint32_t xdr_get32(struct xdr_in *x) {
    const unsigned char *p = xdr_get(x, 4);
    return p ? (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3] : 0;
}

static inline uint64_t xdr_get64(struct xdr_in *x) {
    uint64_t high = xdr_get32(x);
    return high << 32 | xdr_get32(x);
}

/* false, true; any other value is bad. */
static inline bool xdr_get_bool(struct xdr_in *x) {
    uint32_t v = xdr_get32(x);
    if (v > 1) x->bad = true;
    return v == 1 && !x->bad;
}

/* opaque<most>, string<most>: NULL and 0 when bad. The bytes stay where they are. */
static inline const unsigned char *xdr_get_opaque(struct xdr_in *x, uint32_t most, uint32_t *len) {
    *len = xdr_get32(x);
    if (*len > most) x->bad = true;
    const unsigned char *p = xdr_get(x, *len);
    if (!p) *len = 0;
    return p;
}

/* string<most> as C text, which ends at the first NUL; buf has room for most + 1 bytes. */
static inline void xdr_get_text(struct xdr_in *x, uint32_t most, char *buf) {
    uint32_t len;
    const unsigned char *p = xdr_get_opaque(x, most, &len);
    if (p) memcpy(buf, p, len);
    buf[len] = '\0';
}

/* ---- writing ---- */

static inline void xdr_put(struct xdr_out *x, const void *bytes, size_t len) {
    static const unsigned char zero[4];
    size_t pad = -len & 3u;
    if (x->full || len + pad > (size_t)(x->end - x->at)) {
        x->full = true;
        return;
    }
    memcpy(x->at, bytes, len);
    memcpy(x->at + len, zero, pad);
    x->at += len + pad;
}

static inline void xdr_put32(struct xdr_out *x, uint32_t v) {
    const unsigned char p[4] = { (unsigned char)(v >> 24), (unsigned char)(v >> 16), (unsigned char)(v >> 8),
                                 (unsigned char)v };
    xdr_put(x, p, sizeof p);
}

static inline void xdr_put64(struct xdr_out *x, uint64_t v) {
    xdr_put32(x, (uint32_t)(v >> 32));
    xdr_put32(x, (uint32_t)v);
}

static inline void xdr_put_opaque(struct xdr_out *x, const void *bytes, size_t len) {
    xdr_put32(x, (uint32_t)len);
    xdr_put(x, bytes, len);
}

static inline void xdr_put_text(struct xdr_out *x, const char *text) {
    xdr_put_opaque(x, text, strlen(text));
}

#endif
