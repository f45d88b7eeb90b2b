/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backends/nfs/nfs_names.h"
#include "backends/nfs/nfs_native.h"

/* ---- words ---- */

static const char *accept_words(uint32_t status) {
    static const char *const words[] = {
        "", "PROG_UNAVAIL: there is no NFS at this port", "PROG_MISMATCH: the server has no NFS version 3",
        "PROC_UNAVAIL", "GARBAGE_ARGS: the server could not decode the call",
        "SYSTEM_ERR: the server failed: see its log"
    };
    return status < sizeof words / sizeof words[0] ? words[status] : "an unknown accept status";
}

static const char *auth_words(uint32_t status) {
    static const char *const words[] = {
        "AUTH_OK", "AUTH_BADCRED", "AUTH_REJECTEDCRED", "AUTH_BADVERF", "AUTH_REJECTEDVERF",
        "AUTH_TOOWEAK: the export wants more than AUTH_SYS, or a source port below 1024",
        "AUTH_INVALIDRESP", "AUTH_FAILED"
    };
    return status < sizeof words / sizeof words[0] ? words[status] : "an unknown authentication status";
}

const char *nfsnative_words(const struct nfswire_reply *r, char *name, size_t name_len, char *text, size_t text_len) {
    switch (r->verdict) {
    case NFSWIRE_STATUS:
        snprintf(text, text_len, "%s", nfsbe_status_hint(r->status));
        return nfsbe_status_name(r->status, name, name_len);
    case NFSWIRE_DENIED:
        if (r->status >> 16 == 0) snprintf(text, text_len, "denied: the server does not speak RPC version 2");
        else snprintf(text, text_len, "denied: %s", auth_words(r->status & 0xffffu));
        return "RPC error";
    case NFSWIRE_NOT_DONE:
        snprintf(text, text_len, "%s", accept_words(r->status));
        return "RPC error";
    default:
        snprintf(text, text_len, "%s", r->verdict == NFSWIRE_WRONG ? r->why : "");
        return "bad reply";
    }
}

/* ---- errors ---- */

unsigned nfsnative_why(struct context *c, const struct nfswire_reply *r, int *error) {
    char name[48], words[200], text[480];
    const char *kind = nfsnative_words(r, name, sizeof name, words, sizeof words);

    *error = r->verdict == NFSWIRE_WRONG ? EPROTO : EIO;
    snprintf(text, sizeof text, "%s", words);
    if (r->verdict == NFSWIRE_STATUS) {
        snprintf(text, sizeof text, "%s by the server (%.120s)%s%s", io_op_name((enum io_op)r->call->op), c->who,
                 *words ? ": " : "", words);
        *error = nfsbe_status_errno(r->status);
    }
    return kinds_note(c->kinds, kind, text);
}

const char *nfsnative_server(const struct context *c, const struct nfsnative_conn *conn, char *buf, size_t len) {
    struct nfsbe_servers one = { .n = 1 };
    if (c->n_servers < 2) return NULL;
    one.at[0] = c->servers->at[conn->index % c->n_servers];
    nfsbe_servers_words(&one, buf, len);
    return buf;
}

unsigned nfsnative_verf_kind(struct context *c, const struct nfsnative_conn *conn, const char *before) {
    char text[240], buf[100];
    const char *server = nfsnative_server(c, conn, buf, sizeof buf);
    snprintf(text, sizeof text, "the server%s%s restarted: unstable writes before this %s are lost", server ? " " : "",
             server ? server : "", before);
    return kinds_note(c->kinds, "write verifier changed", text);
}

/* ---- good replies ---- */

static __attribute__((cold)) void write_failed(struct context *c, const struct nfsnative_conn *conn, bool data_lost,
                                               int64_t t) {
    struct nfswire_call *call = conn->wire.reply.call;
    unsigned kind = data_lost ? nfsnative_verf_kind(c, conn, "one") : kinds_note(c->kinds, NFSNATIVE_LOWER);
    c->beside++;
    nfsnative_done(c, call, t, -EIO, kind, false);
}

static inline void write_done(struct context *c, struct nfsnative_conn *conn, int64_t t) {
    const struct nfswire_reply *r = &conn->wire.reply;
    struct nfswire_call *call = r->call;
    bool data_lost = false;

    c->answered[r->committed]++;
    /* The verifier of a stable write vouches for nothing: only what needs a COMMIT can be lost by a change. */
    if (r->committed == NFSWIRE_UNSTABLE) {
        data_lost = nfsbe_verf_see(&c->verfs, conn->verf, r->verf);
        nfsbe_verf_written(&c->verfs, conn->verf);
    }
    if (__builtin_expect(r->committed >= call->stable && !data_lost, 1))
        nfsnative_done(c, call, t, r->count, 0, r->committed >= NFSWIRE_DATA_SYNC);
    else
        write_failed(c, conn, data_lost, t);
}

static void commit_done(struct context *c, struct nfsnative_conn *conn, int64_t t) {
    const struct nfswire_reply *r = &conn->wire.reply;
    if (nfsbe_verf_see(&c->verfs, conn->verf, r->verf)) {
        c->beside++;
        nfsnative_done(c, r->call, t, -EIO, nfsnative_verf_kind(c, conn, "flush"), false);
        return;
    }
    nfsbe_verf_committed(&c->verfs, conn->verf, r->call->written);
    nfsnative_done(c, r->call, t, 0, 0, false);
}

void nfsnative_parse(struct context *c, struct nfsnative_conn *conn) {
    const struct nfswire_reply *r = &conn->wire.reply;
    int64_t t = conn->stamp;

    while (c->out_n < c->out_max) {
        enum nfswire_got got = nfswire_next(&conn->wire);
        if (got == NFSWIRE_MORE) return;
        if (__builtin_expect(got == NFSWIRE_BAD, 0)) {
            nfsnative_lose_conn(c, conn, EPROTO, "malformed reply", conn->wire.why);
            return;
        }
        conn->lent--;
        if (__builtin_expect(((unsigned)r->verdict | r->call->late) != NFSWIRE_DONE, 0)) nfsnative_not_plain(c, conn, t);
        else if (r->call->op == NFSWIRE_READ) {
            conn->bytes += r->count;
            nfsnative_done(c, r->call, t, r->count, 0, false);
        } else if (r->call->op == NFSWIRE_WRITE) {
            conn->bytes += r->count;
            write_done(c, conn, t);
        } else commit_done(c, conn, t);
    }
    if (nfswire_fed(&conn->wire)) c->leftover = true;
}

/* ---- the end of the connections ---- */

void nfsnative_lose(struct context *c, int error, const char *kind, const char *text) {
    if (c->lost) return;
    c->lost = true;
    c->lost_error = error;
    c->lost_kind = kinds_lost(c->kinds, kind, text);
    c->lost_at = clock_now(c->clock);
    for (unsigned i = 0; i < c->n_conns; i++) {
        if (c->conn[i].lent) silence_ends(&c->conn[i].silence, c->lost_at);
        close(c->conn[i].fd);
        c->conn[i].fd = -1;
    }
}

void nfsnative_lose_conn(struct context *c, const struct nfsnative_conn *conn, int error, const char *kind,
                         const char *text) {
    char words[240], buf[100];
    const char *server = nfsnative_server(c, conn, buf, sizeof buf);
    snprintf(words, sizeof words, "%s%s%s", server ? server : "", server ? ": " : "", text);
    nfsnative_lose(c, error, kind, words);
}

void nfsnative_give_back(struct context *c) {
    for (uint32_t slot = 0; c->failed && slot < c->depth && c->out_n < c->out_max; slot++) {
        struct nfsnative_late *l = &c->late[slot];
        if (l->state != LATE_FAILED) continue;
        c->failed--;
        c->calls[slot].late = false;
        nfsnative_done(c, &c->calls[slot], clock_now(c->clock), -l->error, l->kind, false);
        memset(l, 0, sizeof *l);
    }
    if (!c->lost || c->failed) return;
    for (; c->lost_next < c->depth && c->out_n < c->out_max; c->lost_next++)
        if (c->calls[c->lost_next].request)
            nfsnative_done(c, &c->calls[c->lost_next], c->lost_at, -c->lost_error, c->lost_kind, false);
}
