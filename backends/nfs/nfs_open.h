/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The steps of opening that lie in files of their own. */
#ifndef BACKENDS_NFS_NFS_OPEN_H
#define BACKENDS_NFS_NFS_OPEN_H

#include "backends/nfs/nfs_calls.h"

enum { NFS_TYPE_REGULAR = 1, NFS_TYPE_DIRECTORY = 2, NFS_TYPE_SYMLINK = 5 };

/* Fills err from a reply's status: what was tried, NFS3ERR_ name, who asked from which port, what helps. -1. */
int nfsbe_refused(struct err *err, const struct nfsbe_conn *conn, unsigned status, const char *what);

/* nfs_facts.c: everything the server says about the file system and the file. `attr` NULL: the file does not exist. */
int nfsbe_facts(struct nfsbe_conn *conn, struct handle *h, const struct nfsbe_attr *attr, struct facts *facts,
                struct err *err);
void nfsbe_identity(const struct handle *h, const struct nfsbe_attr *attr, struct facts *facts);

/* nfs_create.c: exclusively, with size; nothing is left behind on failure. */
int nfsbe_create(struct nfsbe_conn *conn, struct handle *h, uint64_t size, struct nfsbe_attr *attr, struct err *err);

#endif
