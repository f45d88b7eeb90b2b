/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From a URL to an NFS file handle: export list, MOUNT, path walk. */
#include "backends/nfs/nfs_open.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/net/sock.h"
#include "backends/nfs/nfs_names.h"
#include "base/text.h"
#include "base/units.h"

struct opening {
    const struct nfsbe_conf *conf;
    struct handle *h;
    struct facts *facts;
    struct nfsbe_exports exports;
    char *export_path;         /* chosen; owned */
    const char *rest;          /* of conf->path, below the export */
    struct nfsbe_fh root;
};

int nfsbe_refused(struct err *err, const struct nfsbe_conn *conn, unsigned status, const char *what) {
    char name[40], asker[200];
    const char *hint = nfsbe_status_hint(status);
    return err_set(err, STATUS_TARGET, "%s: %s (%s)%s%s", what, nfsbe_status_name(status, name, sizeof name),
                   nfsbe_conn_asker(conn, asker, sizeof asker), *hint ? ": " : "", hint);
}

/* ---- MOUNT ---- */

static int choose_export(struct nfsbe_conn *conn, struct opening *o, struct err *err) {
    const struct nfsbe_conf *conf = o->conf;
    char words[500], path[300];

    text_safe(path, sizeof path, conf->path, strlen(conf->path));
    if (conf->export_path) {
        char *dir = conf->export_path;
        struct nfsbe_exports one = { .dir = &dir, .n = 1 };
        nfsbe_export_match(&one, conf->path, &o->rest); /* check() has seen to it that it matches */
        o->export_path = strdup(dir);
    } else {
        int status = nfsbe_call_exports(conn, &o->exports, err);
        if (status < 0) {
            err_prefix(err, "the server's export list (export= names the export without it)");
            return -1;
        }
        int i = nfsbe_export_match(&o->exports, conf->path, &o->rest);
        if (i < 0)
            return err_set(err, STATUS_TARGET, "no export of %s holds %s; it exports: %s", conf->host, path,
                           nfsbe_exports_words(&o->exports, words, sizeof words));
        o->export_path = strdup(o->exports.dir[i]);
    }
    if (!o->export_path) return err_set(err, STATUS_TARGET, "no memory");
    if (!*o->rest)
        return err_set(err, STATUS_TARGET, "%s is the export itself: name a file below it", path);
    return 0;
}

static int mount_export(struct opening *o, struct err *err) {
    struct nfsbe_server mountd = o->h->server;
    struct nfsbe_conn *conn;
    char dir[300], name[40], asker[200];
    int rc = -1;

    mountd.port = (unsigned)o->conf->mountport;
    if (nfsbe_conn_open(&mountd, NFS_MOUNT_PROGRAM_ID, &conn, err) != 0) return -1;
    if (choose_export(conn, o, err) != 0) goto out;
    text_safe(dir, sizeof dir, o->export_path, strlen(o->export_path));
    int status = nfsbe_call_mnt(conn, o->export_path, &o->root, err);
    if (status > 0) {
        err_set(err, STATUS_TARGET, "mounting %s:%s: %s (%s)%s", o->conf->host, dir,
                nfsbe_mount_name((unsigned)status, name, sizeof name), nfsbe_conn_asker(conn, asker, sizeof asker),
                status == MNT3ERR_NOENT ? ": the server has no such export"
                                        : ": is this client admitted to the export?");
        goto out;
    }
    if (status == 0) rc = 0;
    if (rc == 0) nfsbe_call_umnt(conn, o->export_path, &(struct err){0}); /* only for the server's showmount list */
out:
    nfsbe_conn_close(conn);
    return rc;
}

/* ---- path walk ---- */

static int lookup_failed(struct err *err, const struct nfsbe_conn *conn, int status, const char *what) {
    return status < 0 ? -1 : nfsbe_refused(err, conn, (unsigned)status, what);
}

/* Follows `rest` down to the last component, which is left in h->name; h->dir is the directory it is in. */
static int walk(struct nfsbe_conn *conn, struct opening *o, struct err *err) {
    struct handle *h = o->h;
    const char *p = o->rest;
    struct nfsbe_attr attr;

    h->dir = o->root;
    for (;;) {
        size_t len = strcspn(p, "/");
        char safe[300], what[600];
        if (len >= sizeof h->name) return err_set(err, STATUS_TARGET, "a name in the path is too long");
        memcpy(h->name, p, len);
        h->name[len] = '\0';
        if (!p[len]) return 0;

        struct nfsbe_fh next;
        text_safe(safe, sizeof safe, o->rest, (size_t)(p - o->rest) + len);
        snprintf(what, sizeof what, "directory %s in export %s of %s", safe, o->export_path, o->conf->host);
        int status = nfsbe_call_lookup(conn, &h->dir, h->name, &next, &attr, err);
        if (status != 0) return lookup_failed(err, conn, status, what);
        if (attr.type == NFS_TYPE_SYMLINK)
            return err_set(err, STATUS_TARGET, "%s is a symbolic link: write the path without it", what);
        if (attr.type != NFS_TYPE_DIRECTORY) return err_set(err, STATUS_TARGET, "%s is not a directory", what);
        h->dir = next;
        p += len + 1;
    }
}

static int find_file(struct nfsbe_conn *conn, struct opening *o, enum open_mode mode, struct nfsbe_attr *attr,
                     struct err *err) {
    struct handle *h = o->h;
    int status = nfsbe_call_lookup(conn, &h->dir, h->name, &h->file, attr, err);

    if (status == NFS3ERR_NOENT) {
        if (mode == OPEN_WRITE) return err_set(err, STATUS_TARGET, "%s does not exist", h->where);
        return 0;
    }
    if (status != 0) return lookup_failed(err, conn, status, h->where);
    if (mode == OPEN_CREATE)
        return err_set(err, STATUS_TARGET, "creating %s: NFS3ERR_EXIST: it exists already", h->where);
    if (attr->type == NFS_TYPE_SYMLINK)
        return err_set(err, STATUS_TARGET, "%s is a symbolic link: name the file itself", h->where);
    if (attr->type == NFS_TYPE_DIRECTORY)
        return err_set(err, STATUS_TARGET, "%s is a directory: name a file in it", h->where);
    if (attr->type != NFS_TYPE_REGULAR) return err_set(err, STATUS_TARGET, "%s is not a regular file", h->where);
    h->exists = true;
    return 0;
}

/* ---- open ---- */

static struct handle *handle_new(const struct nfsbe_conf *conf, enum open_mode mode) {
    struct handle *h = calloc(1, sizeof *h);
    if (!h) return NULL;
    char path[400];
    snprintf(h->server.host, sizeof h->server.host, "%s", conf->host);
    h->server.port = (unsigned)conf->nfsport;
    h->server.uid = (uint32_t)conf->uid;
    h->server.gid = (uint32_t)conf->gid;
    h->server.timeout = (int64_t)conf->timeout;
    h->writable = mode != OPEN_READ;
    tcp_settings_from(&h->tcp, &conf->tcp);
    h->ping = conf->ping;
    h->rsize = (uint32_t)conf->rsize;
    h->wsize = (uint32_t)conf->wsize;
    snprintf(h->where, sizeof h->where, "%.100s:%s", conf->host,
             text_safe(path, sizeof path, conf->path, strlen(conf->path)));
    return h;
}

/* Later connections go to the very address and port of the first: a name may stand for several servers. */
static void pin_server(struct handle *h, const struct nfsbe_conn *conn) {
    char address[sizeof h->server.host];
    unsigned port;
    if (!sock_peer(rpc_get_fd(conn->rpc), address, sizeof address, &port)) return;
    snprintf(h->server.host, sizeof h->server.host, "%s", address);
    h->server.port = port;
}

static void describe(const struct opening *o, const struct nfsbe_conn *conn, struct facts *facts) {
    const struct handle *h = o->h;
    char dir[60], rest[60], size[24] = "not there yet", words[600];

    text_safe(dir, sizeof dir, o->export_path, strlen(o->export_path));
    text_safe(rest, sizeof rest, o->rest, strlen(o->rest));
    if (h->exists) units_size_human(size, sizeof size, facts->size);
    snprintf(facts->summary, sizeof facts->summary, "NFSv3 TCP %.40s:%s %s, %s", o->conf->host, dir, rest, size);
    kv_text(&facts->negotiated, "protocol", "NFSv3 over TCP");
    kv_text(&facts->negotiated, "export", "%s", dir);
    kv_text(&facts->negotiated, "export_chosen_by", "%s", o->conf->export_path ? "export=" : "longest match");
    if (o->exports.n)
        kv_text(&facts->negotiated, "exports", "%s", nfsbe_exports_words(&o->exports, words, sizeof words));
    kv_text(&facts->negotiated, "server_address", "%s", h->server.host);
    kv_uint(&facts->negotiated, "nfs_port", h->server.port);
    kv_uint(&facts->negotiated, "source_port", sock_local_port(rpc_get_fd(conn->rpc)));
    kv_uint(&facts->negotiated, "uid", h->server.uid);
    kv_uint(&facts->negotiated, "gid", h->server.gid);
}

static void undo_create(struct handle *h, struct err *err) {
    struct err why = { .status = STATUS_OK };
    if (nfsbe_remove(h, &why) != 0) err_prefix(err, "the new file could not be removed again (%.400s)", why.msg);
}

int nfsbe_open(const struct open_how *how, struct handle **out, struct facts *facts, struct err *err) {
    struct opening o = { .conf = how->conf, .facts = facts };
    struct nfsbe_conn *conn = NULL;
    struct nfsbe_attr attr;
    int rc = -1;

    *out = NULL;
    o.h = handle_new(o.conf, how->mode);
    if (!o.h) return err_set(err, STATUS_TARGET, "no memory");
    if (mount_export(&o, err) != 0) goto out;
    if (nfsbe_conn_open(&o.h->server, NFS_PROGRAM_ID, &conn, err) != 0) goto out;
    pin_server(o.h, conn);
    if (walk(conn, &o, err) != 0) goto out;
    if (find_file(conn, &o, how->mode, &attr, err) != 0) goto out;
    if (how->mode == OPEN_CREATE && nfsbe_create(conn, o.h, how->create_size, &attr, err) != 0) goto out;
    if (nfsbe_servers_fill(&o.h->servers, o.conf->servers, err) != 0) goto out;
    rc = nfsbe_facts(conn, o.h, o.h->exists ? &attr : NULL, facts, err);
    if (rc == 0) rc = nfsbe_engine_choose(o.h, o.conf, facts, err);
    if (rc == 0) describe(&o, conn, facts);
out:
    nfsbe_conn_close(conn);
    nfsbe_exports_free(&o.exports);
    free(o.export_path);
    if (rc != 0 && o.h->created) undo_create(o.h, err);
    if (rc == 0) *out = o.h;
    else nfsbe_close(o.h);
    return rc;
}

void nfsbe_close(struct handle *h) {
    free(h);
}
