/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/nfs/nfs_calls.h"

#include <string.h>

static nfs_fh3 fh_of(const struct nfsbe_fh *fh) {
    nfs_fh3 out;
    out.data.data_len = fh->len;
    out.data.data_val = (char *)fh->data; /* only read by the encoder */
    return out;
}

static bool fh_copy(struct nfsbe_fh *to, const char *data, unsigned len) {
    if (len == 0 || len > NFS_FH_MAX || !data) return false;
    to->len = len;
    memcpy(to->data, data, len);
    return true;
}

static void attr_copy(struct nfsbe_attr *to, const fattr3 *from) {
    to->type = (unsigned)from->type;
    to->size = from->size;
    to->used = from->used;
    to->fsid = from->fsid;
    to->fileid = from->fileid;
    to->ctime = from->ctime.seconds * 1000000000ULL + from->ctime.nseconds;
}

static int finish(struct nfsbe_conn *conn, int queued, const char *what, struct err *err) {
    unsigned result;
    return nfsbe_conn_finish(conn, queued, what, &result, err) == 0 ? (int)result : -1;
}

/* ---- MOUNT ---- */

static unsigned take_mnt(const void *res, void *arg) {
    const mountres3 *r = res;
    const fhandle3 *fh = &r->mountres3_u.mountinfo.fhandle;
    if (r->fhs_status != MNT3_OK) return (unsigned)r->fhs_status;
    return fh_copy(arg, fh->fhandle3_val, fh->fhandle3_len) ? 0 : (unsigned)MNT3ERR_SERVERFAULT;
}

int nfsbe_call_mnt(struct nfsbe_conn *conn, const char *export_path, struct nfsbe_fh *root, struct err *err) {
    nfsbe_conn_begin(conn, take_mnt, root);
    return finish(conn, NFS_RAW_CALL(rpc_mount3, mnt, conn->rpc, nfsbe_conn_cb, (char *)export_path, conn), "MOUNT MNT",
                  err);
}

int nfsbe_call_umnt(struct nfsbe_conn *conn, const char *export_path, struct err *err) {
    nfsbe_conn_begin(conn, NULL, NULL);
    return finish(conn, NFS_RAW_CALL(rpc_mount3, umnt, conn->rpc, nfsbe_conn_cb, (char *)export_path, conn),
                  "MOUNT UMNT", err);
}

static unsigned take_exports(const void *res, void *arg) {
    exportnode e;
    for (const exportnode *next = *(exports const *)res; next; next = e.ex_next) {
        memcpy(&e, next, sizeof e); /* libnfs aligns the nodes of its lists to 4 bytes only */
        if (e.ex_dir && nfsbe_exports_add(arg, e.ex_dir) != 0) return 0; /* a list cut short is still of use */
    }
    return 0;
}

int nfsbe_call_exports(struct nfsbe_conn *conn, struct nfsbe_exports *exports, struct err *err) {
    nfsbe_conn_begin(conn, take_exports, exports);
    return finish(conn, NFS_RAW_CALL(rpc_mount3, export, conn->rpc, nfsbe_conn_cb, conn), "MOUNT EXPORT", err);
}

/* ---- NFS ---- */

static unsigned take_getattr(const void *res, void *arg) {
    const GETATTR3res *r = res;
    if (r->status == NFS3_OK) attr_copy(arg, &r->GETATTR3res_u.resok.obj_attributes);
    return (unsigned)r->status;
}

int nfsbe_call_getattr(struct nfsbe_conn *conn, const struct nfsbe_fh *fh, struct nfsbe_attr *attr, struct err *err) {
    GETATTR3args args = { .object = fh_of(fh) };
    nfsbe_conn_begin(conn, take_getattr, attr);
    return finish(conn, NFS_CALL(getattr, conn->rpc, nfsbe_conn_cb, &args, conn), "GETATTR", err);
}

struct lookup { struct nfsbe_fh *fh; struct nfsbe_attr *attr; bool have_attr; };

static unsigned take_lookup(const void *res, void *arg) {
    const LOOKUP3res *r = res;
    struct lookup *l = arg;
    if (r->status != NFS3_OK) return (unsigned)r->status;
    const LOOKUP3resok *ok = &r->LOOKUP3res_u.resok;
    l->have_attr = ok->obj_attributes.attributes_follow != 0;
    if (l->have_attr) attr_copy(l->attr, &ok->obj_attributes.post_op_attr_u.attributes);
    return fh_copy(l->fh, ok->object.data.data_val, ok->object.data.data_len) ? 0 : (unsigned)NFS3ERR_BADHANDLE;
}

int nfsbe_call_lookup(struct nfsbe_conn *conn, const struct nfsbe_fh *dir, const char *name, struct nfsbe_fh *fh,
                    struct nfsbe_attr *attr, struct err *err) {
    struct lookup l = { .fh = fh, .attr = attr };
    LOOKUP3args args = { .what = { .dir = fh_of(dir), .name = (char *)name } };
    nfsbe_conn_begin(conn, take_lookup, &l);
    int status = finish(conn, NFS_CALL(lookup, conn->rpc, nfsbe_conn_cb, &args, conn), "LOOKUP", err);
    if (status != 0 || l.have_attr) return status;
    return nfsbe_call_getattr(conn, fh, attr, err);
}

static unsigned take_access(const void *res, void *arg) {
    const ACCESS3res *r = res;
    if (r->status == NFS3_OK) *(uint32_t *)arg = r->ACCESS3res_u.resok.access;
    return (unsigned)r->status;
}

int nfsbe_call_access(struct nfsbe_conn *conn, const struct nfsbe_fh *fh, uint32_t want, uint32_t *granted,
                      struct err *err) {
    ACCESS3args args = { .object = fh_of(fh), .access = want };
    nfsbe_conn_begin(conn, take_access, granted);
    return finish(conn, NFS_CALL(access, conn->rpc, nfsbe_conn_cb, &args, conn), "ACCESS", err);
}

static unsigned take_fsinfo(const void *res, void *arg) {
    const FSINFO3res *r = res;
    if (r->status != NFS3_OK) return (unsigned)r->status;
    const FSINFO3resok *ok = &r->FSINFO3res_u.resok;
    *(struct nfsbe_fsinfo *)arg = (struct nfsbe_fsinfo){
        .rtmax = ok->rtmax, .rtpref = ok->rtpref, .rtmult = ok->rtmult, .wtmax = ok->wtmax, .wtpref = ok->wtpref,
        .wtmult = ok->wtmult, .dtpref = ok->dtpref, .properties = ok->properties, .maxfilesize = ok->maxfilesize,
        .time_delta = ok->time_delta.seconds * 1000000000ULL + ok->time_delta.nseconds };
    return 0;
}

int nfsbe_call_fsinfo(struct nfsbe_conn *conn, const struct nfsbe_fh *fh, struct nfsbe_fsinfo *info, struct err *err) {
    FSINFO3args args = { .fsroot = fh_of(fh) };
    nfsbe_conn_begin(conn, take_fsinfo, info);
    return finish(conn, NFS_CALL(fsinfo, conn->rpc, nfsbe_conn_cb, &args, conn), "FSINFO", err);
}

static unsigned take_fsstat(const void *res, void *arg) {
    const FSSTAT3res *r = res;
    if (r->status != NFS3_OK) return (unsigned)r->status;
    const FSSTAT3resok *ok = &r->FSSTAT3res_u.resok;
    *(struct nfsbe_fsstat *)arg =
        (struct nfsbe_fsstat){ .tbytes = ok->tbytes, .fbytes = ok->fbytes, .abytes = ok->abytes,
                               .tfiles = ok->tfiles, .ffiles = ok->ffiles, .afiles = ok->afiles,
                               .invarsec = ok->invarsec };
    return 0;
}

int nfsbe_call_fsstat(struct nfsbe_conn *conn, const struct nfsbe_fh *fh, struct nfsbe_fsstat *stat, struct err *err) {
    FSSTAT3args args = { .fsroot = fh_of(fh) };
    nfsbe_conn_begin(conn, take_fsstat, stat);
    return finish(conn, NFS_CALL(fsstat, conn->rpc, nfsbe_conn_cb, &args, conn), "FSSTAT", err);
}

static unsigned take_pathconf(const void *res, void *arg) {
    const PATHCONF3res *r = res;
    if (r->status != NFS3_OK) return (unsigned)r->status;
    const PATHCONF3resok *ok = &r->PATHCONF3res_u.resok;
    *(struct nfsbe_pathconf *)arg = (struct nfsbe_pathconf){ .linkmax = ok->linkmax, .name_max = ok->name_max,
        .no_trunc = ok->no_trunc != 0, .chown_restricted = ok->chown_restricted != 0,
        .case_insensitive = ok->case_insensitive != 0, .case_preserving = ok->case_preserving != 0 };
    return 0;
}

int nfsbe_call_pathconf(struct nfsbe_conn *conn, const struct nfsbe_fh *fh, struct nfsbe_pathconf *conf,
                        struct err *err) {
    PATHCONF3args args = { .object = fh_of(fh) };
    nfsbe_conn_begin(conn, take_pathconf, conf);
    return finish(conn, NFS_CALL(pathconf, conn->rpc, nfsbe_conn_cb, &args, conn), "PATHCONF", err);
}

static unsigned take_create(const void *res, void *arg) {
    const CREATE3res *r = res;
    struct nfsbe_fh *fh = arg;
    if (r->status != NFS3_OK) return (unsigned)r->status;
    const post_op_fh3 *obj = &r->CREATE3res_u.resok.obj;
    fh->len = 0;
    if (obj->handle_follows)
        fh_copy(fh, obj->post_op_fh3_u.handle.data.data_val, obj->post_op_fh3_u.handle.data.data_len);
    return 0;
}

int nfsbe_call_create(struct nfsbe_conn *conn, const struct nfsbe_fh *dir, const char *name, const char *verifier,
                    struct nfsbe_fh *fh, struct err *err) {
    CREATE3args args;
    memset(&args, 0, sizeof args);
    args.where.dir = fh_of(dir);
    args.where.name = (char *)name;
    if (verifier) {
        args.how.mode = EXCLUSIVE;
        memcpy(args.how.createhow3_u.verf, verifier, sizeof args.how.createhow3_u.verf);
    } else {
        args.how.mode = GUARDED;
        args.how.createhow3_u.g_obj_attributes.mode.set_it = 1;
        args.how.createhow3_u.g_obj_attributes.mode.set_mode3_u.mode = 0600;
    }
    nfsbe_conn_begin(conn, take_create, fh);
    return finish(conn, NFS_CALL(create, conn->rpc, nfsbe_conn_cb, &args, conn), "CREATE", err);
}

static unsigned take_setattr(const void *res, void *arg) {
    (void)arg;
    return (unsigned)((const SETATTR3res *)res)->status;
}

int nfsbe_call_setattr(struct nfsbe_conn *conn, const struct nfsbe_fh *fh, uint32_t mode, uint64_t size,
                       struct err *err) {
    SETATTR3args args;
    memset(&args, 0, sizeof args);
    args.object = fh_of(fh);
    args.new_attributes.mode.set_it = 1;
    args.new_attributes.mode.set_mode3_u.mode = mode;
    args.new_attributes.size.set_it = 1;
    args.new_attributes.size.set_size3_u.size = size;
    args.new_attributes.atime.set_it = SET_TO_SERVER_TIME;
    args.new_attributes.mtime.set_it = SET_TO_SERVER_TIME;
    nfsbe_conn_begin(conn, take_setattr, NULL);
    return finish(conn, NFS_CALL(setattr, conn->rpc, nfsbe_conn_cb, &args, conn), "SETATTR", err);
}

static unsigned take_remove(const void *res, void *arg) {
    (void)arg;
    return (unsigned)((const REMOVE3res *)res)->status;
}

int nfsbe_call_remove(struct nfsbe_conn *conn, const struct nfsbe_fh *dir, const char *name, struct err *err) {
    REMOVE3args args = { .object = { .dir = fh_of(dir), .name = (char *)name } };
    nfsbe_conn_begin(conn, take_remove, NULL);
    return finish(conn, NFS_CALL(remove, conn->rpc, nfsbe_conn_cb, &args, conn), "REMOVE", err);
}

struct listing {
    bool (*entry)(void *arg, const char *name);
    void *arg;
    uint64_t cookie;
    cookieverf3 verf;
    bool end;
};

static unsigned take_readdir(const void *res, void *arg) {
    const READDIR3res *r = res;
    struct listing *l = arg;
    if (r->status != NFS3_OK) return (unsigned)r->status;
    const READDIR3resok *ok = &r->READDIR3res_u.resok;
    memcpy(l->verf, ok->cookieverf, sizeof l->verf);
    bool go_on = true;
    entry3 e;
    for (const entry3 *next = ok->reply.entries; next && go_on; next = e.nextentry) {
        memcpy(&e, next, sizeof e); /* not aligned, either */
        l->cookie = e.cookie;
        if (e.name) go_on = l->entry(l->arg, e.name);
    }
    /* a server that sends neither names nor the end would be asked for ever */
    l->end = ok->reply.eof || !ok->reply.entries || !go_on;
    return 0;
}

int nfsbe_call_readdir(struct nfsbe_conn *conn, const struct nfsbe_fh *dir, uint32_t count,
                     bool (*entry)(void *arg, const char *name), void *arg, struct err *err) {
    struct listing l = { .entry = entry, .arg = arg };
    while (!l.end) {
        READDIR3args args = { .dir = fh_of(dir), .cookie = l.cookie, .count = count };
        memcpy(args.cookieverf, l.verf, sizeof args.cookieverf);
        nfsbe_conn_begin(conn, take_readdir, &l);
        int status = finish(conn, NFS_CALL(readdir, conn->rpc, nfsbe_conn_cb, &args, conn), "READDIR", err);
        if (status != 0) return status;
    }
    return 0;
}
