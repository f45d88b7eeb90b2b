/* SPDX-License-Identifier: GPL-2.0-or-later */
/* MOUNT version 3: which exports there are, and the file handle of one. Each call returns the status of the reply (0 is
 * OK, else MNT3ERR_), or -1 when there was none; then err says why. */
#ifndef BACKENDS_NFS_NFS_MOUNT_H
#define BACKENDS_NFS_NFS_MOUNT_H

#include "backends/nfs/nfs_export.h"
#include "backends/nfs/nfs_rpc.h"

#define NFSBE_FLAVORS_MAX 16u

struct nfsbe_mnt {
    struct nfsbe_fh root;
    uint32_t flavor[NFSBE_FLAVORS_MAX]; /* how users may prove who they are: AUTH_SYS is 1 */
    unsigned n;
};

int nfsbe_call_mnt(struct nfsbe_conn *conn, const char *export_path, struct nfsbe_mnt *mnt, struct err *err);
void nfsbe_call_umnt(struct nfsbe_conn *conn, const char *export_path); /* only for the server's own list */
int nfsbe_call_exports(struct nfsbe_conn *conn, struct nfsbe_exports *exports, struct err *err);

/* May AUTH_SYS be used? Servers that name no flavour, or AUTH_NONE, take what comes. */
bool nfsbe_mnt_takes_sys(const struct nfsbe_mnt *mnt);
/* "krb5, krb5i" */
const char *nfsbe_mnt_flavors(const struct nfsbe_mnt *mnt, char *buf, size_t len);

#endif
