/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests that do not end with the first reply to their first call:
 *   - "try again later" (NFS3ERR_JUKEBOX): the same call again after a pause, by the policy of net/again.h;
 *   - a short READ or WRITE: the rest is asked for, at once. It is the server's right, and says nothing of the file;
 *   - a flush of data that is on several servers: a COMMIT to each, all at once;
 *   - GETATTR in place of the context, after an answer that means that the file may be another one by now. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "backends/net/again.h"
#include "backends/net/sock.h"
#include "backends/nfs/nfs_names.h"
#include "backends/nfs/nfs_native.h"

#define NO_ROOM_NS NS_PER_MS /* what the socket did not take is tried again after so long */

static struct nfsnative_late *late_of(struct context *c, const struct nfswire_call *call) {
    return &c->late[call->slot];
}

static void make_late(struct context *c, const struct nfsnative_conn *conn, struct nfswire_call *call) {
    struct nfsnative_late *l = late_of(c, call);
    if (!call->late) *l = (struct nfsnative_late){ .first = call->sent, .committed = NFSWIRE_FILE_SYNC };
    l->conn = conn->index;
    call->late = true;
}

static void forget(struct context *c, struct nfswire_call *call) {
    memset(late_of(c, call), 0, sizeof *c->late);
    call->late = false;
}

static void finish(struct context *c, struct nfswire_call *call, int64_t t, int64_t result, unsigned kind, bool stable) {
    c->beside += result < 0;
    forget(c, call);
    nfsnative_done(c, call, t, result, kind, stable);
}

/* ---- what waits ---- */

static void put_off(struct context *c, struct nfswire_call *call, int64_t pause) {
    struct nfsnative_late *l = late_of(c, call);
    int64_t now = sock_now();
    l->state = LATE_WAITS;
    l->due = now + pause;
    l->since = pause ? now : 0;
    if (l->due < c->next_due) c->next_due = l->due;
    c->waiting++;
}

/* The server asks to try again later. False: that was said until the request was too old. */
static bool wait_a_while(struct context *c, struct nfswire_call *call) {
    struct nfsnative_late *l = late_of(c, call);
    int64_t left = c->timeout - (c->age - l->first), ns = again_pause(++l->answers);
    if (left <= 0) return false;
    put_off(c, call, ns < left ? ns : left);
    return true;
}

static bool send_one(struct context *c, struct nfswire_call *call, int64_t now) {
    struct nfsnative_late *l = late_of(c, call);
    if (c->asking && call->op == NFSWIRE_WRITE) return false;
    if (!nfsnative_send_call(c, &c->conn[l->conn], call)) return false;
    if (l->since) {
        c->retries++;
        c->retry_wait += (uint64_t)(now - l->since);
    }
    l->state = LATE_OUT;
    c->waiting--;
    return true;
}

void nfsnative_send_late(struct context *c, int64_t now) {
    int64_t next = INT64_MAX;
    unsigned left = c->waiting;

    if (now < c->next_due) return;
    for (uint32_t slot = 0; slot <= c->mask && left; slot++) {
        struct nfsnative_late *l = &c->late[slot];
        if (l->state != LATE_WAITS) continue;
        left--;
        if (l->due <= now && send_one(c, &c->calls[slot], now)) continue;
        int64_t due = l->due > now ? l->due : now + NO_ROOM_NS;
        if (due < next) next = due;
    }
    c->next_due = next;
}

/* ---- is it still the same file? ---- */

/* It is: what was answered otherwise failed by itself. */
static void settled(struct context *c) {
    if (c->may_write) c->apart &= ~(1u << IO_WRITE);
    for (uint32_t slot = 0; slot < c->depth; slot++) {
        if (c->late[slot].state != LATE_STALE) continue;
        c->late[slot].state = LATE_FAILED;
        c->failed++;
    }
    nfsnative_give_back(c);
}

/* No write is sent until this is answered well, on every connection where the doubt arose. */
static void ask(struct context *c) {
    struct nfswire_call *call = &c->calls[c->depth];
    unsigned i = 0;

    while (i < c->n_conns && !c->conn[i].stale) i++;
    c->asking = i < c->n_conns;
    if (!c->asking) {
        settled(c);
        return;
    }
    c->apart |= 1u << IO_WRITE;
    call->op = NFSWIRE_GETATTR;
    call->late = true;
    *late_of(c, call) = (struct nfsnative_late){ .conn = (uint16_t)i, .first = c->age };
    put_off(c, call, 0);
}

static void doubt(struct context *c, struct nfsnative_conn *conn) {
    conn->stale = c->handle != NULL;
    if (!c->asking) ask(c);
}

static void asked(struct context *c, struct nfsnative_conn *conn) {
    const struct nfswire_reply *r = &conn->wire.reply;
    char name[48], text[200], words[260];
    struct err err;

    c->beside++;
    if (r->verdict == NFSWIRE_STATUS && r->status == NFS_STATUS_JUKEBOX) {
        c->jukebox++;
        if (wait_a_while(c, r->call)) return;
    }
    forget(c, r->call);
    if (r->verdict != NFSWIRE_DONE) {
        bool gone = r->verdict == NFSWIRE_STATUS && (r->status == NFS_STATUS_STALE || r->status == NFS_STATUS_BADHANDLE);
        const char *kind = nfsnative_words(r, name, sizeof name, text, sizeof text);
        snprintf(words, sizeof words, "%s (%s)", gone ? NFSBE_GONE : NFSBE_NOT_SAID, kind);
        nfsnative_lose(c, ESTALE, "file lost", words);
    } else if (nfsnative_same(c->handle, r, &err) != 0) {
        nfsnative_lose(c, ESTALE, "file lost", err.msg);
    } else {
        conn->stale = false;
        ask(c);
    }
}

/* ---- flushes ---- */

static struct nfswire_call *extra_slot(struct context *c) {
    for (uint32_t slot = c->depth + 1; slot <= c->depth + c->extras; slot++)
        if (!c->calls[slot].late) return &c->calls[slot];
    return NULL;
}

static unsigned extra_room(const struct context *c) {
    unsigned n = 0;
    for (uint32_t slot = c->depth + 1; slot <= c->depth + c->extras; slot++) n += !c->calls[slot].late;
    return n;
}

static void begin_commit(struct context *c, struct nfswire_call *call) {
    call->op = NFSWIRE_COMMIT;
    call->len = 0;
    call->written = c->verfs.written;
}

bool nfsnative_flush(struct context *c, const struct nfsnative_conn *conn, struct request *r) {
    struct nfswire_call *call = &c->calls[r->slot], *more;
    uint16_t to[UINT8_MAX];
    unsigned n = nfsbe_verf_to_commit(&c->verfs, conn->index, to);

    if (n > 1 && extra_room(c) < n - 1) return false;
    begin_commit(c, call);
    call->request = r;
    if (!nfsnative_send_call(c, &c->conn[to[0]], call)) {
        call->request = NULL;
        return false;
    }
    c->lent++;
    if (n == 1) return true;
    make_late(c, &c->conn[to[0]], call);
    late_of(c, call)->left = n;
    for (unsigned i = 1; i < n; i++) {
        more = extra_slot(c);
        begin_commit(c, more);
        more->sent = c->age;
        make_late(c, &c->conn[to[i]], more);
        late_of(c, more)->owner = r->slot;
        if (!nfsnative_send_call(c, &c->conn[to[i]], more)) put_off(c, more, 0);
    }
    return true;
}

static void committed(struct context *c, struct nfsnative_conn *conn, int64_t t) {
    const struct nfswire_reply *r = &conn->wire.reply;
    bool extra = r->call->slot > c->depth;
    struct nfswire_call *flush = extra ? &c->calls[late_of(c, r->call)->owner] : r->call;
    struct nfsnative_late *l = late_of(c, flush);
    int error = 0;
    unsigned kind = 0;

    if (r->verdict != NFSWIRE_DONE) {
        kind = nfsnative_why(c, r, &error);
    } else if (nfsbe_verf_see(&c->verfs, conn->verf, r->verf)) {
        error = EIO;
        kind = nfsnative_verf_kind(c, conn, "flush");
    } else {
        nfsbe_verf_committed(&c->verfs, conn->verf, r->call->written);
    }
    if (extra) {
        c->beside++;
        forget(c, r->call);
    }
    if (error && !l->error) {
        l->error = error;
        l->kind = kind;
    }
    if (l->left > 1) l->left--;
    else finish(c, flush, t, -l->error, l->kind, false);
}

/* ---- READ and WRITE in parts ---- */

/* Why the rest is not asked for; NULL: it is. */
static const char *no_rest(const struct context *c, const struct nfswire_reply *r, struct nfsnative_late *l) {
    if (r->eof && r->call->op == NFSWIRE_READ) return "the file ends before the end of the I/O";
    if (r->count == 0 && l->still) return "the server moved nothing, twice";
    if (c->age - l->first > c->timeout) return "the server moved only parts of it until timeout=";
    l->still = r->count == 0;
    return NULL;
}

static void in_part(struct context *c, struct nfsnative_conn *conn, uint32_t done, int64_t t) {
    const struct nfswire_reply *r = &conn->wire.reply;
    struct nfswire_call *call = r->call;
    const struct request *q = call->request;
    bool read = call->op == NFSWIRE_READ;
    const char *why = no_rest(c, r, late_of(c, call));
    char text[240];

    if (why) {
        snprintf(text, sizeof text, "%s: %s of %u bytes at %llu moved %u", why, read ? "READ" : "WRITE", q->len,
                 (unsigned long long)q->offset, done);
        kinds_note(c->kinds, read ? "short read" : "short write", text); /* the caller names it so */
        c->beside++;
        finish(c, call, t, done, 0, false);
        return;
    }
    if (read) c->short_reads++;
    else c->short_writes++;
    call->len = q->len - done;
    if (call->buf) call->buf = (char *)q->buf + done;
    put_off(c, call, 0);
}

static void moved(struct context *c, struct nfsnative_conn *conn, int64_t t) {
    const struct nfswire_reply *r = &conn->wire.reply;
    struct nfswire_call *call = r->call;
    struct nfsnative_late *l = late_of(c, call);
    uint32_t done = call->request->len - call->len + r->count;
    bool lost = false;

    conn->bytes += r->count;
    if (call->op == NFSWIRE_WRITE) {
        c->answered[r->committed]++;
        if (r->committed < l->committed) l->committed = (uint8_t)r->committed;
        if (r->committed == NFSWIRE_UNSTABLE && r->count) {
            lost = nfsbe_verf_see(&c->verfs, conn->verf, r->verf);
            nfsbe_verf_written(&c->verfs, conn->verf);
        }
    }
    if (lost) finish(c, call, t, -EIO, nfsnative_verf_kind(c, conn, "one"), false);
    else if (r->verdict == NFSWIRE_SHORT) in_part(c, conn, done, t);
    else if (call->op == NFSWIRE_WRITE && l->committed < call->stable)
        finish(c, call, t, -EIO, kinds_note(c->kinds, NFSNATIVE_LOWER), false);
    else finish(c, call, t, done, 0, call->op == NFSWIRE_WRITE && l->committed >= NFSWIRE_DATA_SYNC);
}

void nfsnative_not_plain(struct context *c, struct nfsnative_conn *conn, int64_t t) {
    const struct nfswire_reply *r = &conn->wire.reply;
    uint32_t status = r->verdict == NFSWIRE_STATUS ? r->status : 0;
    struct nfsnative_late *l;
    int error;

    if (r->call->slot == c->depth) {
        asked(c, conn);
        return;
    }
    make_late(c, conn, r->call);
    l = late_of(c, r->call);
    if (status == NFS_STATUS_JUKEBOX) {
        c->jukebox++;
        if (wait_a_while(c, r->call)) {
            c->beside++;
            return;
        }
    }
    bool stale = status == NFS_STATUS_STALE || status == NFS_STATUS_BADHANDLE;
    if (stale) doubt(c, conn);
    if (r->call->op == NFSWIRE_COMMIT) {
        committed(c, conn, t);
    } else if (r->verdict == NFSWIRE_DONE || r->verdict == NFSWIRE_SHORT) {
        moved(c, conn, t);
    } else {
        unsigned kind = nfsnative_why(c, r, &error);
        if (!stale || !c->asking) {
            finish(c, r->call, t, -error, kind, false);
            return;
        }
        c->beside++;
        l->state = LATE_STALE;
        l->error = error;
        l->kind = kind;
    }
}
