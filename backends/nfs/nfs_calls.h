/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The NFSv3 procedures that opening a file needs. Each returns the status of the reply (0 is OK, else NFS3ERR_), or -1
 * when there was no reply, or no whole one; then err says why. NFS3ERR_JUKEBOX is asked again, with pauses that grow
 * (backends/net/again.h), up to timeout=. */
#ifndef BACKENDS_NFS_NFS_CALLS_H
#define BACKENDS_NFS_NFS_CALLS_H

#include "backends/nfs/nfs_rpc.h"

struct nfsbe_attr {
    unsigned type;       /* ftype3 */
    uint32_t nlink;
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

/* NFS3ERR_, MNT3ERR_: those that decide something. */
enum { NFSBE_NOENT = 2, NFSBE_ACCES = 13, NFSBE_STALE = 70, NFSBE_NOTSUPP = 10004 };
enum { NFS_ACCESS_READ = 1, NFS_ACCESS_MODIFY = 4, NFS_ACCESS_EXTEND = 8 };

/* One call for nfs_mount.c too: `put` writes the arguments, `take` reads the result behind the status. */
struct nfsbe_procedure {
    uint32_t number;
    const char *name;
    void (*put)(struct xdr_out *args, const void *from);
    void (*take)(struct xdr_in *result, void *to);
};
int nfsbe_call(struct nfsbe_conn *conn, const struct nfsbe_procedure *p, const void *from, void *to, struct err *err);
/* A file handle; bad: empty, or longer than 64 bytes. */
void nfsbe_get_fh(struct xdr_in *x, struct nfsbe_fh *fh);

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
/* Only the times, those of the server. */
int nfsbe_call_touch(struct nfsbe_conn *conn, const struct nfsbe_fh *fh, struct err *err);
int nfsbe_call_remove(struct nfsbe_conn *conn, const struct nfsbe_fh *dir, const char *name, struct err *err);
/* `entry` sees every name. *cut: not all of them, because the listing took longer than timeout=, or does not move on. */
int nfsbe_call_readdir(struct nfsbe_conn *conn, const struct nfsbe_fh *dir, uint32_t count,
                       void (*entry)(void *arg, const char *name), void *arg, bool *cut, struct err *err);

#endif
