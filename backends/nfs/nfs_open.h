/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The steps of opening that lie in files of their own. */
#ifndef BACKENDS_NFS_NFS_OPEN_H
#define BACKENDS_NFS_NFS_OPEN_H

#include "backends/nfs/nfs_calls.h"
#include "backends/nfs/nfs_export.h"

enum { NFS_TYPE_REGULAR = 1, NFS_TYPE_DIRECTORY = 2, NFS_TYPE_SYMLINK = 5 };

/* Fills err from a reply's status: what was tried, NFS3ERR_ name, who asked from which port, what helps. -1. */
int nfsbe_refused(struct err *err, const struct nfsbe_conn *conn, unsigned status, const char *what);

/* nfs_root.c: the export that the path lies in, mounted. */
struct nfsbe_root {
    struct nfsbe_exports exports; /* the server's list, as far as it tells one */
    char *export_path;            /* owned; as the server knows it */
    const char *rest;             /* of conf->path, below the export */
    const char *chosen_by;        /* for the result */
    struct nfsbe_fh fh;
    char address[256];            /* of the server that answered, numeric */
    bool refused;                 /* it failed, but MOUNT answered: there is nothing to be had by asking elsewhere */
};
int nfsbe_root_find(const struct nfsbe_conf *conf, const struct nfsbe_server *server, struct nfsbe_root *root,
                    struct err *err);
void nfsbe_root_free(struct nfsbe_root *root);

/* nfs_reach.c: a connection to NFS, and the export mounted, at one address of server->host, which becomes numeric, and
 * the port what served. An address where something does not answer is left for the next, each within its share of the
 * timeout; those that were left are put into `warnings`. -1: err names each address. */
int nfsbe_reach(const struct nfsbe_conf *conf, struct nfsbe_server *server, struct nfsbe_root *root,
                struct nfsbe_conn **conn, struct kv *warnings, struct err *err);

/* nfs_facts.c: everything the server says about the file system and the file. `attr` NULL: the file does not exist. */
int nfsbe_facts(struct nfsbe_conn *conn, struct handle *h, const struct nfsbe_attr *attr, struct facts *facts,
                struct err *err);
void nfsbe_identity(const struct handle *h, const struct nfsbe_attr *attr, struct facts *facts);

/* nfs_create.c: exclusively, with size; nothing is left behind on failure. */
int nfsbe_create(struct nfsbe_conn *conn, struct handle *h, uint64_t size, struct nfsbe_attr *attr, struct err *err);

#endif
