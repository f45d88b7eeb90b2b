/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From a URL to an NFS file handle: the export (nfs_root.c), and the path below it. */
#include "backends/nfs/nfs_open.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "backends/net/sock.h"
#include "backends/nfs/nfs_names.h"
#include "base/text.h"
#include "base/units.h"

struct opening {
    const struct nfsbe_conf *conf;
    struct handle *h;
    struct nfsbe_root root;
};

int nfsbe_refused(struct err *err, const struct nfsbe_conn *conn, unsigned status, const char *what) {
    char name[40], asker[600];
    const char *hint = nfsbe_status_hint(status);
    bool groups = status == NFSBE_ACCES && conn->server->n_groups;
    return err_set(err, STATUS_TARGET, "%s: %s (%s)%s%s%s", what, nfsbe_status_name(status, name, sizeof name),
                   nfsbe_conn_asker(conn, asker, sizeof asker), *hint ? ": " : "", hint,
                   groups ? "; a server with manage-gids (rpc.mountd, Debian's default) looks the uid's groups up itself, and "
                            "does not look at those of gid=" : "");
}

/* ---- path walk ---- */

static int lookup_failed(struct err *err, const struct nfsbe_conn *conn, int status, const char *what) {
    return status < 0 ? -1 : nfsbe_refused(err, conn, (unsigned)status, what);
}

/* Follows `rest` down to the last component, which is left in h->name; h->dir is the directory it is in. */
static int walk(struct nfsbe_conn *conn, struct opening *o, struct err *err) {
    struct handle *h = o->h;
    const char *p = o->root.rest;
    struct nfsbe_attr attr;

    h->dir = o->root.fh;
    for (;;) {
        size_t len = strcspn(p, "/");
        char safe[300], what[600];
        if (len >= sizeof h->name) return err_set(err, STATUS_TARGET, "a name in the path is too long");
        memcpy(h->name, p, len);
        h->name[len] = '\0';
        if (!p[len]) return 0;

        struct nfsbe_fh next;
        text_safe(safe, sizeof safe, o->root.rest, (size_t)(p - o->root.rest) + len);
        snprintf(what, sizeof what, "directory %s in export %s of %s", safe, o->root.export_path, o->conf->host);
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

    if (status == NFSBE_NOENT) {
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
    char path[400], host[128];
    snprintf(h->server.host, sizeof h->server.host, "%s", conf->host);
    h->server.port = (unsigned)conf->nfsport;
    h->server.uid = (uint32_t)conf->uid;
    h->server.timeout = (int64_t)conf->timeout;
    h->writable = mode != OPEN_READ;
    tcp_settings_from(&h->tcp, &conf->tcp);
    h->server.source.source = h->tcp.source;
    h->server.source.source_len = h->tcp.source_len;
    h->ping = conf->ping;
    h->rsize = (uint32_t)conf->rsize;
    h->wsize = (uint32_t)conf->wsize;
    snprintf(h->where, sizeof h->where, "%.100s:%s", sock_bracket(conf->host, host, sizeof host),
             text_safe(path, sizeof path, conf->path, strlen(conf->path)));
    return h;
}

static void note_conn(const struct nfsbe_conn *conn, struct facts *facts) {
    if (conn->source == TCP_SOURCE_ALL_TAKEN)
        kv_text(&facts->warnings, "reserved-ports", "%s", tcp_source_words(conn->source));
    if (!conn->retries) return;
    kv_uint(&facts->negotiated, "open_retries", conn->retries);
    kv_text(&facts->warnings, "server-not-ready", "while the file was looked at the server answered %llu times "
            "NFS3ERR_JUKEBOX (not now); %.3f s were spent waiting for it", (unsigned long long)conn->retries,
            (double)conn->retry_wait_ns / NS_PER_SEC);
}

static void describe(const struct opening *o, const struct nfsbe_conn *conn, struct facts *facts) {
    const struct handle *h = o->h;
    char dir[60], rest[60], size[24] = "not there yet", words[600], host[128];

    text_safe(dir, sizeof dir, o->root.export_path, strlen(o->root.export_path));
    text_safe(rest, sizeof rest, o->root.rest, strlen(o->root.rest));
    if (h->exists) units_size_human(size, sizeof size, facts->size);
    snprintf(facts->summary, sizeof facts->summary, "NFSv3 TCP %.42s:%s %s, %s",
             sock_bracket(o->conf->host, host, sizeof host), dir, rest, size);
    kv_text(&facts->negotiated, "protocol", "NFSv3 over TCP");
    kv_text(&facts->negotiated, "export", "%s", dir);
    kv_text(&facts->negotiated, "export_chosen_by", "%s", o->root.chosen_by);
    if (o->root.exports.n)
        kv_text(&facts->negotiated, "exports", "%s", nfsbe_exports_words(&o->root.exports, words, sizeof words));
    kv_text(&facts->negotiated, "server_address", "%s", h->server.host);
    kv_uint(&facts->negotiated, "nfs_port", h->server.port);
    kv_uint(&facts->negotiated, "source_port", sock_local_port(conn->fd));
    kv_uint(&facts->negotiated, "uid", h->server.uid);
    kv_uint(&facts->negotiated, "gid", h->server.gid);
    if (h->server.n_groups) kv_text(&facts->negotiated, "groups", "%s", strstr(nfsbe_who_words(&h->server, words,
                                    sizeof words), "groups ") + strlen("groups "));
    note_conn(conn, facts);
}

static void undo_create(struct handle *h, struct err *err) {
    struct err why = { .status = STATUS_OK };
    if (nfsbe_remove(h, &why) != 0) err_prefix(err, "the new file could not be removed again (%.400s)", why.msg);
}

int nfsbe_open(const struct open_how *how, struct handle **out, struct facts *facts, struct err *err) {
    struct opening o = { .conf = how->conf };
    struct nfsbe_conn *conn = NULL;
    struct nfsbe_attr attr;
    int rc = -1;

    *out = NULL;
    o.h = handle_new(o.conf, how->mode);
    if (!o.h) return err_set(err, STATUS_TARGET, "no memory");
    if (nfsbe_gids_fill(&o.h->server, o.conf->gid, err) != 0) goto out;
    if (nfsbe_reach(o.conf, &o.h->server, &o.root, &conn, &facts->warnings, err) != 0) goto out;
    if (walk(conn, &o, err) != 0) goto out;
    if (find_file(conn, &o, how->mode, &attr, err) != 0) goto out;
    if (how->mode == OPEN_CREATE && nfsbe_create(conn, o.h, how->create_size, &attr, err) != 0) goto out;
    if (nfsbe_servers_fill(&o.h->servers, o.conf->servers, err) != 0) goto out;
    rc = nfsbe_facts(conn, o.h, o.h->exists ? &attr : NULL, facts, err);
    if (rc == 0) rc = nfsbe_engine_choose(o.h, o.conf, facts, err);
    if (rc == 0) describe(&o, conn, facts);
out:
    nfsbe_conn_close(conn);
    nfsbe_root_free(&o.root);
    if (rc != 0 && o.h->created) undo_create(o.h, err);
    if (rc == 0) *out = o.h;
    else nfsbe_close(o.h);
    return rc;
}

void nfsbe_close(struct handle *h) {
    free(h);
}
