/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/nfs/nfs_calls.h"

#include "backends/net/again.h"
#include "backends/net/sock.h"
#include "backends/nfs/nfs_names.h"

enum { GETATTR = 1, SETATTR = 2, LOOKUP = 3, ACCESS = 4, CREATE = 8, REMOVE = 12, READDIR = 16, FSSTAT = 18,
       FSINFO = 19, PATHCONF = 20 };
enum { GUARDED = 1, EXCLUSIVE = 2 };
enum { SET_TO_SERVER_TIME = 1 };
#define NAME_MAX_WIRE 1024u /* of a directory entry; longer ones do not exist */

/* ---- one call ---- */

/* After an answer "not now": false when it is too late for another try. */
static bool again(struct nfsbe_conn *conn, unsigned *answers, int64_t end) {
    int64_t from = sock_now();
    if (!again_sleep(answers, end)) return false;
    conn->retries++;
    conn->retry_wait_ns += (uint64_t)(sock_now() - from);
    return true;
}

int nfsbe_call(struct nfsbe_conn *conn, const struct nfsbe_procedure *p, const void *from, void *to, struct err *err) {
    int64_t end = sock_now() + conn->timeout;
    unsigned answers = 0;
    for (;;) {
        struct xdr_out args;
        struct xdr_in result;
        nfsbe_conn_begin(conn, p->number, &args);
        if (p->put) p->put(&args, from);
        if (nfsbe_conn_call(conn, &args, p->name, &result, err) != 0) return -1;
        uint32_t status = xdr_get32(&result);
        if (status == NFS_STATUS_JUKEBOX && again(conn, &answers, end)) continue;
        if (status == 0 && p->take) p->take(&result, to);
        if (result.bad || status > 0x7fffffffu) return nfsbe_conn_garbled(conn, p->name, err);
        return (int)status;
    }
}

/* ---- pieces ---- */

static void put_fh(struct xdr_out *x, const struct nfsbe_fh *fh) {
    xdr_put_opaque(x, fh->data, fh->len);
}

void nfsbe_get_fh(struct xdr_in *x, struct nfsbe_fh *fh) {
    const unsigned char *p = xdr_get_opaque(x, NFS_FH_MAX, &fh->len);
    if (p && fh->len) memcpy(fh->data, p, fh->len);
    else x->bad = true;
}

static uint64_t get_time(struct xdr_in *x) {
    uint64_t seconds = xdr_get32(x);
    return seconds * NS_PER_SEC + xdr_get32(x);
}

static void get_attr(struct xdr_in *x, struct nfsbe_attr *to) {
    to->type = xdr_get32(x);
    xdr_get32(x); /* mode */
    to->nlink = xdr_get32(x);
    xdr_get(x, 2 * 4); /* uid, gid */
    to->size = xdr_get64(x);
    to->used = xdr_get64(x);
    xdr_get64(x); /* rdev */
    to->fsid = xdr_get64(x);
    to->fileid = xdr_get64(x);
    get_time(x); /* atime */
    get_time(x); /* mtime */
    to->ctime = get_time(x);
}

static bool get_post_attr(struct xdr_in *x, struct nfsbe_attr *to) {
    bool there = xdr_get_bool(x);
    if (there) get_attr(x, to);
    return there;
}

static void put_handle(struct xdr_out *x, const void *fh) {
    put_fh(x, fh);
}

/* ---- GETATTR, LOOKUP, ACCESS ---- */

static void take_getattr(struct xdr_in *x, void *to) {
    get_attr(x, to);
}

int nfsbe_call_getattr(struct nfsbe_conn *conn, const struct nfsbe_fh *fh, struct nfsbe_attr *attr, struct err *err) {
    static const struct nfsbe_procedure getattr = { GETATTR, "GETATTR", put_handle, take_getattr };
    return nfsbe_call(conn, &getattr, fh, attr, err);
}

struct name_in { const struct nfsbe_fh *dir; const char *name; };
struct lookup { struct nfsbe_fh *fh; struct nfsbe_attr *attr; bool have_attr; };

static void put_name(struct xdr_out *x, const void *from) {
    const struct name_in *n = from;
    put_fh(x, n->dir);
    xdr_put_text(x, n->name);
}

static void take_lookup(struct xdr_in *x, void *to) {
    struct lookup *l = to;
    nfsbe_get_fh(x, l->fh);
    l->have_attr = get_post_attr(x, l->attr);
}

int nfsbe_call_lookup(struct nfsbe_conn *conn, const struct nfsbe_fh *dir, const char *name, struct nfsbe_fh *fh,
                      struct nfsbe_attr *attr, struct err *err) {
    static const struct nfsbe_procedure lookup = { LOOKUP, "LOOKUP", put_name, take_lookup };
    struct lookup l = { .fh = fh, .attr = attr };
    int status = nfsbe_call(conn, &lookup, &(struct name_in){ dir, name }, &l, err);
    if (status != 0 || l.have_attr) return status;
    return nfsbe_call_getattr(conn, fh, attr, err);
}

struct access_in { const struct nfsbe_fh *fh; uint32_t want; };

static void put_access(struct xdr_out *x, const void *from) {
    const struct access_in *a = from;
    put_fh(x, a->fh);
    xdr_put32(x, a->want);
}

static void take_access(struct xdr_in *x, void *to) {
    struct nfsbe_attr attr;
    get_post_attr(x, &attr);
    *(uint32_t *)to = xdr_get32(x);
}

int nfsbe_call_access(struct nfsbe_conn *conn, const struct nfsbe_fh *fh, uint32_t want, uint32_t *granted,
                      struct err *err) {
    static const struct nfsbe_procedure access = { ACCESS, "ACCESS", put_access, take_access };
    return nfsbe_call(conn, &access, &(struct access_in){ fh, want }, granted, err);
}

/* ---- FSINFO, FSSTAT, PATHCONF ---- */

static void take_fsinfo(struct xdr_in *x, void *to) {
    struct nfsbe_fsinfo *i = to;
    struct nfsbe_attr attr;
    get_post_attr(x, &attr);
    i->rtmax = xdr_get32(x);
    i->rtpref = xdr_get32(x);
    i->rtmult = xdr_get32(x);
    i->wtmax = xdr_get32(x);
    i->wtpref = xdr_get32(x);
    i->wtmult = xdr_get32(x);
    i->dtpref = xdr_get32(x);
    i->maxfilesize = xdr_get64(x);
    i->time_delta = get_time(x);
    i->properties = xdr_get32(x);
}

int nfsbe_call_fsinfo(struct nfsbe_conn *conn, const struct nfsbe_fh *fh, struct nfsbe_fsinfo *info, struct err *err) {
    static const struct nfsbe_procedure fsinfo = { FSINFO, "FSINFO", put_handle, take_fsinfo };
    return nfsbe_call(conn, &fsinfo, fh, info, err);
}

static void take_fsstat(struct xdr_in *x, void *to) {
    struct nfsbe_fsstat *s = to;
    struct nfsbe_attr attr;
    get_post_attr(x, &attr);
    s->tbytes = xdr_get64(x);
    s->fbytes = xdr_get64(x);
    s->abytes = xdr_get64(x);
    s->tfiles = xdr_get64(x);
    s->ffiles = xdr_get64(x);
    s->afiles = xdr_get64(x);
    s->invarsec = xdr_get32(x);
}

int nfsbe_call_fsstat(struct nfsbe_conn *conn, const struct nfsbe_fh *fh, struct nfsbe_fsstat *stat, struct err *err) {
    static const struct nfsbe_procedure fsstat = { FSSTAT, "FSSTAT", put_handle, take_fsstat };
    return nfsbe_call(conn, &fsstat, fh, stat, err);
}

static void take_pathconf(struct xdr_in *x, void *to) {
    struct nfsbe_pathconf *c = to;
    struct nfsbe_attr attr;
    get_post_attr(x, &attr);
    c->linkmax = xdr_get32(x);
    c->name_max = xdr_get32(x);
    c->no_trunc = xdr_get_bool(x);
    c->chown_restricted = xdr_get_bool(x);
    c->case_insensitive = xdr_get_bool(x);
    c->case_preserving = xdr_get_bool(x);
}

int nfsbe_call_pathconf(struct nfsbe_conn *conn, const struct nfsbe_fh *fh, struct nfsbe_pathconf *conf,
                        struct err *err) {
    static const struct nfsbe_procedure pathconf = { PATHCONF, "PATHCONF", put_handle, take_pathconf };
    return nfsbe_call(conn, &pathconf, fh, conf, err);
}

/* ---- CREATE, SETATTR, REMOVE ---- */

/* sattr3: mode and size where they are given, the times as `when` says; never uid and gid. */
static void put_attributes(struct xdr_out *x, const uint32_t *mode, const uint64_t *size, uint32_t when) {
    xdr_put32(x, mode != NULL);
    if (mode) xdr_put32(x, *mode);
    xdr_put32(x, 0);
    xdr_put32(x, 0);
    xdr_put32(x, size != NULL);
    if (size) xdr_put64(x, *size);
    xdr_put32(x, when);
    xdr_put32(x, when);
}

struct create_in { struct name_in name; const char *verifier; };

static void put_create(struct xdr_out *x, const void *from) {
    static const uint32_t mode = 0600;
    const struct create_in *c = from;
    put_name(x, &c->name);
    xdr_put32(x, c->verifier ? EXCLUSIVE : GUARDED);
    if (c->verifier) xdr_put(x, c->verifier, 8);
    else put_attributes(x, &mode, NULL, 0);
}

static void take_create(struct xdr_in *x, void *to) {
    struct nfsbe_fh *fh = to;
    fh->len = 0;
    if (xdr_get_bool(x)) nfsbe_get_fh(x, fh);
}

int nfsbe_call_create(struct nfsbe_conn *conn, const struct nfsbe_fh *dir, const char *name, const char *verifier,
                      struct nfsbe_fh *fh, struct err *err) {
    static const struct nfsbe_procedure create = { CREATE, "CREATE", put_create, take_create };
    return nfsbe_call(conn, &create, &(struct create_in){ { dir, name }, verifier }, fh, err);
}

struct setattr_in { const struct nfsbe_fh *fh; uint32_t mode; uint64_t size; };

static void put_setattr(struct xdr_out *x, const void *from) {
    const struct setattr_in *s = from;
    put_fh(x, s->fh);
    put_attributes(x, &s->mode, &s->size, SET_TO_SERVER_TIME);
    xdr_put32(x, 0); /* no guard */
}

int nfsbe_call_setattr(struct nfsbe_conn *conn, const struct nfsbe_fh *fh, uint32_t mode, uint64_t size,
                       struct err *err) {
    static const struct nfsbe_procedure setattr = { SETATTR, "SETATTR", put_setattr, NULL };
    return nfsbe_call(conn, &setattr, &(struct setattr_in){ fh, mode, size }, NULL, err);
}

static void put_touch(struct xdr_out *x, const void *fh) {
    put_fh(x, fh);
    put_attributes(x, NULL, NULL, SET_TO_SERVER_TIME);
    xdr_put32(x, 0); /* no guard */
}

int nfsbe_call_touch(struct nfsbe_conn *conn, const struct nfsbe_fh *fh, struct err *err) {
    static const struct nfsbe_procedure touch = { SETATTR, "SETATTR", put_touch, NULL };
    return nfsbe_call(conn, &touch, fh, NULL, err);
}

int nfsbe_call_remove(struct nfsbe_conn *conn, const struct nfsbe_fh *dir, const char *name, struct err *err) {
    static const struct nfsbe_procedure remove = { REMOVE, "REMOVE", put_name, NULL };
    return nfsbe_call(conn, &remove, &(struct name_in){ dir, name }, NULL, err);
}

/* ---- READDIR ---- */

struct listing {
    const struct nfsbe_fh *dir;
    uint32_t count;
    void (*entry)(void *arg, const char *name);
    void *arg;
    uint64_t cookie, before;
    unsigned char verf[8];
    bool end;
};

static void put_readdir(struct xdr_out *x, const void *from) {
    const struct listing *l = from;
    put_fh(x, l->dir);
    xdr_put64(x, l->cookie);
    xdr_put(x, l->verf, sizeof l->verf);
    xdr_put32(x, l->count);
}

static void take_readdir(struct xdr_in *x, void *to) {
    struct listing *l = to;
    struct nfsbe_attr attr;
    char name[NAME_MAX_WIRE + 1];
    bool any = false;

    get_post_attr(x, &attr);
    const unsigned char *verf = xdr_get(x, sizeof l->verf);
    if (verf) memcpy(l->verf, verf, sizeof l->verf);
    l->before = l->cookie;
    while (xdr_get_bool(x)) {
        xdr_get64(x); /* fileid */
        xdr_get_text(x, NAME_MAX_WIRE, name);
        l->cookie = xdr_get64(x);
        if (x->bad) return;
        l->entry(l->arg, name);
        any = true;
    }
    /* a server that sends neither names nor the end would be asked for ever */
    l->end = xdr_get_bool(x) || !any;
}

int nfsbe_call_readdir(struct nfsbe_conn *conn, const struct nfsbe_fh *dir, uint32_t count,
                       void (*entry)(void *arg, const char *name), void *arg, bool *cut, struct err *err) {
    static const struct nfsbe_procedure readdir = { READDIR, "READDIR", put_readdir, take_readdir };
    struct listing l = { .dir = dir, .count = count, .entry = entry, .arg = arg };
    int64_t end = sock_now() + conn->timeout;

    *cut = false;
    while (!l.end && !*cut) {
        int status = nfsbe_call(conn, &readdir, &l, &l, err);
        if (status != 0) return status;
        *cut = !l.end && (l.cookie == l.before || sock_now() >= end);
    }
    return 0;
}
