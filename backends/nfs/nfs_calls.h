/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The NFSv3 and MOUNTv3 procedures that opening a file needs. Each returns the status of the reply (0 is OK, else
 * NFS3ERR_, MNT3ERR_), or -1 when there was no reply; then err says why. */
#ifndef BACKENDS_NFS_NFS_CALLS_H
#define BACKENDS_NFS_NFS_CALLS_H

#include "backends/nfs/nfs_export.h"
#include "backends/nfs/nfs_rpc.h"

struct nfsbe_attr {
    unsigned type;       /* ftype3 */
    uint64_t size, used, fsid, fileid;
    uint64_t ctime;      /* ns */
};

struct nfsbe_fsinfo {
    uint32_t rtmax, rtpref, rtmult, wtmax, wtpref, wtmult, dtpref, properties;
    uint64_t maxfilesize, time_delta;
};

struct nfsbe_fsstat { uint64_t tbytes, fbytes, abytes, tfiles, ffiles, afiles; uint32_t invarsec; };
struct nfsbe_pathconf {
    uint32_t linkmax, name_max;
    bool no_trunc, chown_restricted, case_insensitive, case_preserving;
};

int nfsbe_call_mnt(struct nfsbe_conn *conn, const char *export_path, struct nfsbe_fh *root, struct err *err);
int nfsbe_call_umnt(struct nfsbe_conn *conn, const char *export_path, struct err *err);
int nfsbe_call_exports(struct nfsbe_conn *conn, struct nfsbe_exports *exports, struct err *err);

int nfsbe_call_getattr(struct nfsbe_conn *conn, const struct nfsbe_fh *fh, struct nfsbe_attr *attr, struct err *err);
/* With the attributes, asked for by GETATTR where LOOKUP did not bring them. */
int nfsbe_call_lookup(struct nfsbe_conn *conn, const struct nfsbe_fh *dir, const char *name, struct nfsbe_fh *fh,
                    struct nfsbe_attr *attr, struct err *err);
int nfsbe_call_access(struct nfsbe_conn *conn, const struct nfsbe_fh *fh, uint32_t want, uint32_t *granted,
                      struct err *err);
int nfsbe_call_fsinfo(struct nfsbe_conn *conn, const struct nfsbe_fh *fh, struct nfsbe_fsinfo *info, struct err *err);
int nfsbe_call_fsstat(struct nfsbe_conn *conn, const struct nfsbe_fh *fh, struct nfsbe_fsstat *stat, struct err *err);
int nfsbe_call_pathconf(struct nfsbe_conn *conn, const struct nfsbe_fh *fh, struct nfsbe_pathconf *conf,
                        struct err *err);
/* `verifier` NULL: GUARDED instead of EXCLUSIVE. fh->len is 0 where the server did not say it. */
int nfsbe_call_create(struct nfsbe_conn *conn, const struct nfsbe_fh *dir, const char *name, const char *verifier,
                    struct nfsbe_fh *fh, struct err *err);
/* Mode, size, and times of the server (EXCLUSIVE may have left its verifier in them). */
int nfsbe_call_setattr(struct nfsbe_conn *conn, const struct nfsbe_fh *fh, uint32_t mode, uint64_t size,
                       struct err *err);
int nfsbe_call_remove(struct nfsbe_conn *conn, const struct nfsbe_fh *dir, const char *name, struct err *err);
/* `entry` sees every name; it returns false to stop. */
int nfsbe_call_readdir(struct nfsbe_conn *conn, const struct nfsbe_fh *dir, uint32_t count,
                     bool (*entry)(void *arg, const char *name), void *arg, struct err *err);

#endif
