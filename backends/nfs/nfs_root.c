/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where in the URL's path the export ends: by export=, by the server's export list, or, where that list is hidden, empty
 * or knows no more than "/", by mounting the path's parents, the longest first. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/net/sock.h"
#include "backends/nfs/nfs_mount.h"
#include "backends/nfs/nfs_names.h"
#include "backends/nfs/nfs_open.h"
#include "base/text.h"

#define PARENTS_MAX 32u

struct finding {
    const struct nfsbe_conf *conf;
    const struct nfsbe_server *mountd;
    struct nfsbe_conn *conn;    /* NULL: lost */
    struct nfsbe_root *root;
    char tried[500];            /* "/a/b: MNT3ERR_NOENT, /a: MNT3ERR_ACCES" */
    size_t tried_n;
    char hidden[300];           /* why there is no export list */
    int64_t end;                /* of all calls together, where another address is left; 0: none is */
};

static int flavors_ok(const struct finding *f, const struct nfsbe_mnt *mnt, struct err *err) {
    char dir[300], names[120], host[128];
    if (nfsbe_mnt_takes_sys(mnt)) return 0;
    nfsbe_mnt_flavors(mnt, names, sizeof names);
    return err_set(err, STATUS_TARGET, "%s:%s: the export wants %s (sec=%s); samedisk speaks AUTH_SYS only: add sys to "
                   "its sec=, or export a test directory with sec=sys", sock_bracket(f->conf->host, host, sizeof host),
                   text_safe(dir, sizeof dir, f->root->export_path, strlen(f->root->export_path)),
                   strstr(names, "krb5") ? "Kerberos" : "another way to log in", names);
}

/* Mounts `dir`, of which `rest` is what is left of the path. The status of MNT; -1: no answer, or no use to go on. */
static int mount_one(struct finding *f, const char *dir, const char *rest, struct err *err) {
    struct nfsbe_mnt mnt = { .n = 0 };
    char safe[200], name[40];
    int status = nfsbe_call_mnt(f->conn, dir, &mnt, err);

    if (status < 0) return -1;
    if (status > 0) {
        int n = snprintf(f->tried + f->tried_n, sizeof f->tried - f->tried_n, "%s%s: %s", f->tried_n ? ", " : "",
                         text_safe(safe, sizeof safe, dir, strlen(dir)),
                         nfsbe_mount_name((unsigned)status, name, sizeof name));
        f->tried_n = (size_t)n < sizeof f->tried - f->tried_n ? f->tried_n + (size_t)n : sizeof f->tried - 1;
        return status;
    }
    f->root->fh = mnt.root;
    f->root->rest = rest;
    free(f->root->export_path);
    f->root->export_path = strdup(dir);
    if (!f->root->export_path) return err_set(err, STATUS_TARGET, "no memory");
    nfsbe_call_umnt(f->conn, dir);
    return flavors_ok(f, &mnt, err);
}

/* One export that was named, by the user or the server's list. */
static int mount_named(struct finding *f, const char *dir, const char *rest, struct err *err) {
    char safe[300], name[40], asker[600], path[300], host[128];
    const char *p = f->conf->path;
    if (!*rest)
        return err_set(err, STATUS_TARGET, "%s is the export itself: name a file below it",
                       text_safe(path, sizeof path, p, strlen(p)));
    int status = mount_one(f, dir, rest, err);
    if (status <= 0) return status;
    return err_set(err, STATUS_TARGET, "mounting %s:%s: %s (%s)%s",
                   sock_bracket(f->conf->host, host, sizeof host), text_safe(safe, sizeof safe, dir, strlen(dir)),
                   nfsbe_mount_name((unsigned)status, name, sizeof name),
                   nfsbe_conn_asker(f->conn, asker, sizeof asker),
                   status == NFSBE_NOENT ? ": the server has no such export" : ": is this client admitted to the export?");
}

static int nothing_found(const struct finding *f, struct err *err) {
    char words[400], path[200], asker[600];
    const struct nfsbe_exports *e = &f->root->exports;
    text_safe(path, sizeof path, f->conf->path, strlen(f->conf->path));
    return err_set(err, STATUS_TARGET, "no export of %s holds %s; %s: %.300s; mounting its parents failed too: %s (%.300s); "
                   "export= names the export", f->conf->host, path,
                   f->hidden[0] ? "the server tells no export list" : "it exports",
                   f->hidden[0] ? f->hidden : nfsbe_exports_words(e, words, sizeof words), f->tried,
                   nfsbe_conn_asker(f->conn, asker, sizeof asker));
}

static int mount_parents(struct finding *f, struct err *err) {
    const char *path = f->conf->path;
    char dir[NFS_PATH_MAX];
    size_t len = strlen(path);

    for (unsigned i = 0; i < PARENTS_MAX && len > 0; i++) {
        while (len > 0 && path[len - 1] != '/') len--;
        const char *rest = path + len; /* behind the '/' */
        if (len > 0) len--;
        snprintf(dir, sizeof dir, "%.*s", len ? (int)len : 1, len ? path : "/");
        int status = mount_one(f, dir, rest, err);
        if (status < 0) return f->conn->dead && f->tried_n ? err_prefix(err, "after trying %s", f->tried) : -1;
        if (status == 0) {
            f->root->chosen_by = "MNT of the path's parents";
            return 0;
        }
    }
    return nothing_found(f, err);
}

/* No export list. A server that hangs up instead of telling it, or tells more of it than can be, may still mount. */
static int without_a_list(struct finding *f, struct err *err) {
    snprintf(f->hidden, sizeof f->hidden, "%.299s", err->msg);
    if (!f->conn->dead) return 0;
    bool silent = f->conn->error == ETIMEDOUT;
    if (!silent) {
        struct err again = { .status = STATUS_OK };
        nfsbe_conn_close(f->conn);
        int64_t end = f->end ? f->end : sock_now() + f->mountd->timeout;
        if (nfsbe_conn_open_until(f->mountd, NFS_MOUNT_PROGRAM_ID, end, &f->conn, &again) == 0) {
            f->conn->until = f->end;
            return 0;
        }
    }
    return err_prefix(err, "the server's export list (export= names the export without it)");
}

static bool names_more_than_root(const char *dir) {
    return dir[strspn(dir, "/")] != '\0';
}

static int find(struct finding *f, struct err *err) {
    const struct nfsbe_conf *conf = f->conf;
    struct nfsbe_exports *list = &f->root->exports;
    const char *rest;

    if (conf->export_path) {
        char *dir = conf->export_path;
        struct nfsbe_exports one = { .dir = &dir, .n = 1 };
        nfsbe_export_match(&one, conf->path, &rest); /* check() has seen to it that it matches */
        f->root->chosen_by = "export=";
        return mount_named(f, dir, rest, err);
    }
    if (nfsbe_call_exports(f->conn, list, err) != 0 && without_a_list(f, err) != 0) return -1;
    int i = nfsbe_export_match(list, conf->path, &rest);
    if (i < 0 || !names_more_than_root(list->dir[i])) return mount_parents(f, err);
    f->root->chosen_by = "longest match";
    return mount_named(f, list->dir[i], rest, err);
}

/* No way to MOUNT, and a port of NFS that the user gave: where something else is there, that is the mistake. */
static bool is_other_port(const struct nfsbe_server *server, int64_t end, struct err *err) {
    struct nfsbe_conn *conn = NULL;
    struct err why;
    if (!server->port || sock_now() >= end) return false;
    if (nfsbe_conn_open_until(server, NFS_PROGRAM_ID, end, &conn, &why) == 0) nfsbe_conn_close(conn);
    else if (strstr(why.msg, "does not answer as")) return *err = why, true;
    return false;
}

int nfsbe_root_find(const struct nfsbe_conf *conf, const struct nfsbe_server *server, struct nfsbe_root *root,
                    struct err *err) {
    struct nfsbe_server mountd = *server;
    struct finding f = { .conf = conf, .mountd = &mountd, .root = root };
    unsigned port;
    int64_t end = sock_now() + server->timeout;

    mountd.port = (unsigned)conf->mountport;
    if (nfsbe_conn_open_until(&mountd, NFS_MOUNT_PROGRAM_ID, end, &f.conn, err) != 0) {
        struct err no_mount = *err; /* NFSv4 has no use for MOUNT */
        if (is_other_port(server, end, err)) return -1;
        if (nfsbe_conn_only_v4(server, end, err)) err_prefix(err, "no MOUNT, and of NFS another version");
        else *err = no_mount;
        return -1;
    }
    if (!sock_peer(f.conn->fd, root->address, sizeof root->address, &port)) root->address[0] = '\0';
    if (server->whole) f.end = end;
    f.conn->until = f.end;
    int rc = find(&f, err);
    root->refused = rc != 0 && f.conn && !f.conn->dead;
    nfsbe_conn_close(f.conn);
    return rc;
}

void nfsbe_root_free(struct nfsbe_root *root) {
    nfsbe_exports_free(&root->exports);
    free(root->export_path);
    root->export_path = NULL;
}
