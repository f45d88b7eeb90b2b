/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/nfs/nfs_record.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"

#define LAST_FRAGMENT 0x80000000u
#define VERIFIER_MAX 400u

/* ---- records ---- */

static bool printable(const unsigned char *p, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (p[i] < 0x20 || p[i] > 0x7e) return false;
    return true;
}

/* HTTP, SMTP, SSH and their like begin with text, which as a record mark is a huge length. */
static int too_large(struct nfsrecord *r, size_t size, const unsigned char *p, size_t n) {
    char text[60], safe[80];
    size_t len = n < 40 ? n : 40, line = 0;
    if (r->fragments == 1 && printable(r->mark, sizeof r->mark)) {
        while (line < len && p[line] >= 0x20 && p[line] <= 0x7e) line++;
        snprintf(text, sizeof text, "%.4s%.*s", (const char *)r->mark, (int)line, (const char *)p);
        snprintf(r->why, sizeof r->why, "it begins with the text `%s`: this is no RPC server",
                 text_safe(safe, sizeof safe, text, strlen(text)));
    } else {
        snprintf(r->why, sizeof r->why, "a reply of %zu bytes (at most %u)", size, NFSRECORD_MAX);
    }
    return -1;
}

static bool reserve(struct nfsrecord *r, size_t more) {
    size_t room = r->room ? r->room : 1024;
    while (room < r->len + more) room *= 2;
    if (room == r->room) return true;
    unsigned char *grown = realloc(r->bytes, room);
    if (!grown) return false;
    r->bytes = grown;
    r->room = room;
    return true;
}

static int no_memory(struct nfsrecord *r) {
    snprintf(r->why, sizeof r->why, "no memory for a reply");
    return -1;
}

/* 1: the mark is complete; 0: more bytes are needed. */
static int take_mark(struct nfsrecord *r, const unsigned char **p, size_t *n) {
    while (r->mark_n < sizeof r->mark && *n) {
        r->mark[r->mark_n++] = *(*p)++;
        --*n;
    }
    if (r->mark_n < sizeof r->mark) return 0;
    uint32_t mark = (uint32_t)r->mark[0] << 24 | (uint32_t)r->mark[1] << 16 | (uint32_t)r->mark[2] << 8 | r->mark[3];
    r->last = (mark & LAST_FRAGMENT) != 0;
    r->left = mark & ~LAST_FRAGMENT;
    r->mark_n = 0;
    r->fragments++;
    return 1;
}

int nfsrecord_feed(struct nfsrecord *r, const unsigned char **p, size_t *n) {
    if (!r->bytes && !reserve(r, 0)) return no_memory(r); /* an empty record has an address, too */
    for (;;) {
        if (r->left == 0) {
            if (r->fragments && r->last) return 1;
            if (take_mark(r, p, n) == 0) return 0;
            if (r->left > NFSRECORD_MAX || r->len + r->left > NFSRECORD_MAX)
                return too_large(r, r->len + r->left, *p, *n);
            if (r->fragments > NFSRECORD_FRAGMENTS) {
                snprintf(r->why, sizeof r->why, "a reply of more than %u fragments", NFSRECORD_FRAGMENTS);
                return -1;
            }
            continue;
        }
        size_t k = *n < r->left ? *n : r->left;
        if (k == 0) return 0;
        if (!reserve(r, k)) return no_memory(r);
        memcpy(r->bytes + r->len, *p, k);
        r->len += k;
        r->left -= (uint32_t)k;
        *p += k;
        *n -= k;
    }
}

void nfsrecord_again(struct nfsrecord *r) {
    r->len = 0;
    r->mark_n = r->fragments = 0;
    r->left = 0;
    r->last = false;
}

void nfsrecord_free(struct nfsrecord *r) {
    free(r->bytes);
    memset(r, 0, sizeof *r);
}

/* ---- the header of a reply ---- */

static const char *auth_words(uint32_t status, char *buf, size_t len) {
    static const char *const words[] = {
        [1] = "AUTH_BADCRED: the server does not take these credentials",
        [2] = "AUTH_REJECTEDCRED: the server wants a new session",
        [3] = "AUTH_BADVERF",
        [4] = "AUTH_REJECTEDVERF",
        [NFSRPC_AUTH_TOOWEAK] = "AUTH_TOOWEAK: the export wants more than AUTH_SYS (sec=krb5, krb5i or krb5p), or a source "
                                "port below 1024; samedisk speaks AUTH_SYS only",
        [6] = "AUTH_INVALIDRESP",
        [7] = "AUTH_FAILED",
        [8] = "AUTH_KERB_GENERIC",
        [13] = "RPCSEC_GSS_CREDPROBLEM: the server wants Kerberos; samedisk speaks AUTH_SYS only",
        [14] = "RPCSEC_GSS_CTXPROBLEM: the server wants Kerberos; samedisk speaks AUTH_SYS only",
    };
    if (status < sizeof words / sizeof words[0] && words[status]) return words[status];
    snprintf(buf, len, "authentication status %u", status);
    return buf;
}

static void denied(struct nfsreply *reply, struct xdr_in *x) {
    char buf[40];
    uint32_t why = xdr_get32(x);
    reply->kind = NFSREPLY_DENIED;
    if (why == 0) {
        reply->low = xdr_get32(x);
        reply->high = xdr_get32(x);
        snprintf(reply->words, sizeof reply->words, "denied: the server does not speak RPC version 2");
    } else if (why == 1) {
        reply->auth = xdr_get32(x);
        snprintf(reply->words, sizeof reply->words, "denied: %s", auth_words(reply->auth, buf, sizeof buf));
    } else {
        reply->kind = NFSREPLY_BAD;
        snprintf(reply->words, sizeof reply->words, "a call denied for a reason %u that does not exist", why);
    }
}

static void not_done(struct nfsreply *reply, struct xdr_in *x) {
    static const char *const words[] = { "", "PROG_UNAVAIL: the program is not at this port", "",
                                         "PROC_UNAVAIL: the server does not have this procedure",
                                         "GARBAGE_ARGS: the server could not decode the call",
                                         "SYSTEM_ERR: the server failed: see its log" };
    reply->kind = NFSREPLY_NOT_DONE;
    if (reply->accept == NFSRPC_PROG_MISMATCH) {
        reply->low = xdr_get32(x);
        reply->high = xdr_get32(x);
        snprintf(reply->words, sizeof reply->words, "PROG_MISMATCH: the server has versions %u to %u of it", reply->low,
                 reply->high);
    } else if (reply->accept <= NFSRPC_SYSTEM_ERR) {
        snprintf(reply->words, sizeof reply->words, "%s", words[reply->accept]);
    } else {
        reply->kind = NFSREPLY_BAD;
        snprintf(reply->words, sizeof reply->words, "accept status %u", reply->accept);
    }
}

void nfsreply_parse(struct nfsreply *reply, struct xdr_in *x, uint32_t xid) {
    uint32_t type, status, len;

    *reply = (struct nfsreply){ .kind = NFSREPLY_BAD };
    reply->xid = xdr_get32(x);
    type = xdr_get32(x);
    status = xdr_get32(x);
    if (!x->bad && type != 1)
        snprintf(reply->words, sizeof reply->words, "message type %u where a reply (1) belongs", type);
    else if (!x->bad && reply->xid != xid)
        reply->kind = NFSREPLY_OTHER;
    else if (!x->bad && status > 1)
        snprintf(reply->words, sizeof reply->words, "reply status %u", status);
    else if (status == 1)
        denied(reply, x);
    else {
        xdr_get32(x); /* the verifier's flavour */
        xdr_get_opaque(x, VERIFIER_MAX, &len);
        reply->accept = xdr_get32(x);
        if (reply->accept) not_done(reply, x);
        else reply->kind = NFSREPLY_BODY;
    }
    if (!x->bad) return;
    reply->kind = NFSREPLY_BAD;
    snprintf(reply->words, sizeof reply->words, "it ends, or is odd, within the header");
}
