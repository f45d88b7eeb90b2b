/* SPDX-License-Identifier: GPL-2.0-or-later */
/* engine=libnfs: what a reply means. Nothing is sent from within a callback: what has to go out (again) waits in its slot
 * until the next round of reap. */
#include "backends/nfs/nfs_libnfs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "backends/net/again.h"
#include "backends/net/sock.h"
#include "backends/nfs/nfs_names.h"
#include "base/text.h"

const stable_how nfsbe_libnfs_stable[] = {
    [SYNC_NONE] = UNSTABLE, [SYNC_DATASTORE] = FILE_SYNC, [SYNC_DSYNC] = DATA_SYNC, [SYNC_SYNC] = FILE_SYNC
};

/* ---- completions ---- */

static void push(struct context *c, struct slot *s, int64_t t, int64_t result, unsigned kind, bool stable) {
    struct completion *d = &c->done[(c->done_first + c->done_n++) % c->depth];
    *d = (struct completion){ .request = s->request, .result = result, .t_done = t, .kind = (uint16_t)kind,
                              .stable = stable };
    c->counts.good += result >= 0;
    s->request = NULL;
    c->lent--;
}

void nfsbe_libnfs_fail(struct context *c, struct slot *s, int64_t t, int error, const char *kind,
                       const char *text) {
    push(c, s, t, -error, kinds_note(c->kinds, kind, text), false);
}

/* ---- what is sent again, or goes on ---- */

static void put_off(struct context *c, struct slot *s, int64_t pause) {
    int64_t now = sock_now();
    s->t_due = now + pause;
    s->since = pause ? now : 0;
    c->waiting++;
}

/* "Try again later". False: that was said until the request was too old. */
static bool pause_slot(struct context *c, struct slot *s) {
    int64_t left = c->timeout - (sock_now() - s->t_first), ns = again_pause(++s->answers);
    if (left <= 0) return false;
    put_off(c, s, ns < left ? ns : left);
    return true;
}

/* `count` bytes more were moved, which is not all. True: the rest is to be asked for; false: the request is over, short. */
static bool go_on(struct context *c, struct slot *s, uint32_t count, bool eof) {
    const struct request *r = s->request;
    bool read = r->op == IO_READ;
    const char *why = NULL;
    char text[240];

    if (eof) why = "the file ends before the end of the I/O";
    else if (count == 0 && s->still) why = "the server moved nothing, twice";
    else if (sock_now() - s->t_first > c->timeout) why = "the server moved only parts of it until timeout=";
    if (why) {
        snprintf(text, sizeof text, "%s: %s of %u bytes at %llu moved %u", why, read ? "READ" : "WRITE", r->len,
                 (unsigned long long)r->offset, s->done);
        kinds_note(c->kinds, read ? "short read" : "short write", text); /* the caller names it so */
        return false;
    }
    s->still = count == 0;
    c->counts.good++;
    if (read) c->counts.short_reads++;
    else c->counts.short_writes++;
    put_off(c, s, 0);
    return true;
}

void nfsbe_libnfs_fail_status(struct context *c, struct slot *s, int64_t t, unsigned status) {
    char name[40], text[240];
    const struct nfsbe_server *as = c->conn->server;
    const char *hint = nfsbe_status_hint(status);
    nfsbe_status_name(status, name, sizeof name);
    snprintf(text, sizeof text, "%s by the server (uid %u gid %u)%s%s", io_op_name((enum io_op)s->request->op), as->uid,
             as->gid, *hint ? ": " : "", hint);
    nfsbe_libnfs_fail(c, s, t, nfsbe_status_errno(status), name, text);
}

static void not_ok(struct context *c, struct slot *s, int64_t t, unsigned status) {
    if (status == NFS_STATUS_JUKEBOX) {
        c->counts.jukebox++;
        if (pause_slot(c, s)) return;
    }
    if (status != NFS_STATUS_STALE && status != NFS_STATUS_BADHANDLE) {
        nfsbe_libnfs_fail_status(c, s, t, status);
        return;
    }
    s->stale = status;
    if (c->doubt != SURE) return;
    c->doubt = TO_ASK;
    c->t_doubt = c->ask_due = sock_now();
    c->ask_answers = 0;
}

const char *nfsbe_libnfs_why_lost(const struct context *c, char *buf, size_t len) {
    char peer[100], words[120];
    const char *error = rpc_get_error(c->conn->rpc);
    text_safe(words, sizeof words, error ? error : "", error ? strlen(error) : 0);
    if (nfslib_flooded(c->conn)) return "the server sends a reply without end: cut off";
    snprintf(buf, len, "%s%s%s", sock_why(c->fd, peer, sizeof peer), *words ? "; libnfs: " : "", words);
    return buf;
}

/* The call itself failed: rejected by the server's RPC layer, or the connection is gone and all calls are cancelled. */
static void fail_rpc(struct context *c, struct slot *s, int64_t t, int status, const char *words) {
    char text[240];
    if (status == RPC_STATUS_TIMEOUT) {
        nfsbe_libnfs_fail(c, s, t, ETIMEDOUT, "timeout", "libnfs: no reply");
    } else if (status == RPC_STATUS_CANCEL || (words && strncmp(words, "RPC ERROR", 9) == 0)) {
        c->broken = true;
        nfsbe_libnfs_fail(c, s, t, ECONNRESET, "connection lost", nfsbe_libnfs_why_lost(c, text, sizeof text));
    } else {
        nfsbe_libnfs_fail(c, s, t, EIO, "RPC error", words ? text_safe(text, sizeof text, words, strnlen(words, sizeof text)) : "");
    }
}

/* Every callback begins with this. NULL: the reply of a request that was given up, or that is no longer of interest. */
static struct slot *arrived(void *private_data, int status, const char *words, int64_t *t) {
    struct slot *s = private_data;
    struct context *c = s->context;
    *t = clock_now(c->clock);
    if (!s->request || c->closing) return NULL;
    if (status == RPC_STATUS_SUCCESS) return s;
    fail_rpc(c, s, *t, status, status == RPC_STATUS_ERROR ? words : NULL);
    return NULL;
}

void nfsbe_libnfs_read_done(struct rpc_context *rpc, int status, void *data, void *private_data) {
    int64_t t;
    struct slot *s = arrived(private_data, status, data, &t);
    const READ3res *res = data;
    (void)rpc;
    if (!s) return;
    struct context *c = s->context;
    if (res->status != NFS3_OK) {
        not_ok(c, s, t, (unsigned)res->status);
        return;
    }
    const READ3resok *ok = &res->READ3res_u.resok;
    if (ok->count > s->request->len - s->done) {
        nfsbe_libnfs_fail(c, s, t, EPROTO, "bad reply", "READ brought more than was asked for");
        return;
    }
#if !NFS_READ_IN_PLACE
    if (ok->data.data_len < ok->count) {
        nfsbe_libnfs_fail(c, s, t, EPROTO, "bad reply", "READ's count is larger than its data");
        return;
    }
    memcpy((char *)s->request->buf + s->done, ok->data.data_val, ok->count);
#endif
    s->done += ok->count;
    if (s->done < s->request->len && go_on(c, s, ok->count, ok->eof != 0)) return;
    push(c, s, t, s->done, 0, false);
}

void nfsbe_libnfs_write_done(struct rpc_context *rpc, int status, void *data, void *private_data) {
    int64_t t;
    struct slot *s = arrived(private_data, status, data, &t);
    const WRITE3res *res = data;
    (void)rpc;
    if (!s) return;
    struct context *c = s->context;
    if (res->status != NFS3_OK) {
        not_ok(c, s, t, (unsigned)res->status);
        return;
    }
    const WRITE3resok *ok = &res->WRITE3res_u.resok;
    uint32_t room = s->request->len - s->done;
    bool data_lost = false;
    if (ok->committed <= FILE_SYNC) c->counts.answered[ok->committed]++;
    if (ok->committed < s->committed) s->committed = (uint8_t)ok->committed;
    /* The verifier of a stable write vouches for nothing: only what needs a COMMIT can be lost by a change. */
    if (ok->committed == UNSTABLE && ok->count) {
        data_lost = nfsbe_verf_see(&c->verfs, &c->verf, ok->verf);
        nfsbe_verf_written(&c->verfs, &c->verf);
    }
    if (ok->count <= room) s->done += ok->count;
    if (ok->count > room)
        nfsbe_libnfs_fail(c, s, t, EPROTO, "bad reply", "WRITE says that it wrote more than was sent");
    else if (data_lost)
        nfsbe_libnfs_fail(c, s, t, EIO, "write verifier changed", "the server restarted: unstable writes before this one are lost");
    else if (s->done < s->request->len && go_on(c, s, ok->count, false))
        return;
    else if (s->committed < nfsbe_libnfs_stable[s->request->sync])
        nfsbe_libnfs_fail(c, s, t, EIO, "committed lower than asked", "the server did not make a write as stable as it was told to");
    else
        push(c, s, t, s->done, 0, s->committed >= DATA_SYNC);
}

void nfsbe_libnfs_commit_done(struct rpc_context *rpc, int status, void *data, void *private_data) {
    int64_t t;
    struct slot *s = arrived(private_data, status, data, &t);
    const COMMIT3res *res = data;
    (void)rpc;
    if (!s) return;
    struct context *c = s->context;
    if (res->status != NFS3_OK) {
        not_ok(c, s, t, (unsigned)res->status);
    } else if (nfsbe_verf_see(&c->verfs, &c->verf, res->COMMIT3res_u.resok.verf)) {
        nfsbe_libnfs_fail(c, s, t, EIO, "write verifier changed",
             "the server restarted: unstable writes before this flush are lost");
    } else {
        nfsbe_verf_committed(&c->verfs, &c->verf, s->written);
        push(c, s, t, 0, 0, false);
    }
}

/* ---- is it still the same file? ---- */

void nfsbe_libnfs_getattr_done(struct rpc_context *rpc, int status, void *data, void *private_data) {
    struct context *c = private_data;
    const GETATTR3res *res = data;
    struct err err;
    (void)rpc;
    if (c->closing) return;
    if (status == RPC_STATUS_SUCCESS && res->status == NFS3ERR_JUKEBOX && sock_now() - c->t_doubt < c->timeout) {
        c->counts.jukebox++;
        c->doubt = TO_ASK;
        c->ask_due = sock_now() + again_pause(++c->ask_answers);
        return;
    }
    c->doubt = GONE;
    if (status != RPC_STATUS_SUCCESS) {
        snprintf(c->gone, sizeof c->gone, "GETATTR after a stale file handle had no answer");
    } else if (res->status != NFS3_OK) {
        char name[40];
        bool gone = res->status == NFS3ERR_STALE || res->status == NFS3ERR_BADHANDLE;
        snprintf(c->gone, sizeof c->gone, "%s (%s)", gone ? NFSBE_GONE : NFSBE_NOT_SAID,
                 nfsbe_status_name((unsigned)res->status, name, sizeof name));
    } else {
        const fattr3 *a = &res->GETATTR3res_u.resok.obj_attributes;
        if (nfsbe_same_file(c->handle, (unsigned)a->type, a->fsid, a->fileid, a->size, &err) == 0) c->doubt = SURE;
        else snprintf(c->gone, sizeof c->gone, "%.200s", err.msg);
    }
}
