/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/nfs/nfs_names.h"

#include <errno.h>
#include <stdio.h>

#define ACCESS_HINT                                                                                                    \
    "see the export's options on the server: ro or rw, allowed clients, root_squash/no_root_squash and "               \
    "anonuid; uid= and gid= choose another identity"

struct status {
    unsigned code;
    const char *name; /* without its prefix */
    int error;
    const char *hint;
};

static const struct status table[] = {
    { 1, "PERM", EPERM, ACCESS_HINT },
    { 2, "NOENT", ENOENT, "it does not exist on the server" },
    { 5, "IO", EIO, "the server's own disk or file system failed: see its log" },
    { 6, "NXIO", ENXIO, "" },
    { 13, "ACCES", EACCES, ACCESS_HINT },
    { 17, "EXIST", EEXIST, "" },
    { 18, "XDEV", EXDEV, "" },
    { 19, "NODEV", ENODEV, "" },
    { 20, "NOTDIR", ENOTDIR, "" },
    { 21, "ISDIR", EISDIR, "" },
    { 22, "INVAL", EINVAL, "" },
    { 27, "FBIG", EFBIG, "larger than the server's file system allows (maxfilesize)" },
    { 28, "NOSPC", ENOSPC, "the file system on the server is full" },
    { NFS_STATUS_ROFS, "ROFS", EROFS, "the export or its file system is read-only: export it rw" },
    { 31, "MLINK", EMLINK, "" },
    { 63, "NAMETOOLONG", ENAMETOOLONG, "" },
    { 66, "NOTEMPTY", ENOTEMPTY, "" },
    { 69, "DQUOT", EDQUOT, "the quota of this uid on the server is used up" },
    { NFS_STATUS_STALE, "STALE", ESTALE, "the file was removed or the export changed on the server since it was opened" },
    { 71, "REMOTE", EREMOTE, "" },
    { NFS_STATUS_BADHANDLE, "BADHANDLE", ESTALE, "the server does not know the file handle any more" },
    { 10002, "NOT_SYNC", EIO, "" },
    { 10003, "BAD_COOKIE", EIO, "" },
    { 10004, "NOTSUPP", EOPNOTSUPP, "" },
    { 10005, "TOOSMALL", EINVAL, "" },
    { 10006, "SERVERFAULT", EIO, "the server failed: see its log" },
    { 10007, "BADTYPE", EINVAL, "" },
    { NFS_STATUS_JUKEBOX, "JUKEBOX", EBUSY, "the server asks to try again later (recall from tape, or overload)" },
};

static const struct status *find(unsigned code) {
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].code == code) return &table[i];
    return NULL;
}

static const char *name_with(const char *prefix, unsigned status, char *buf, size_t len) {
    const struct status *s = find(status);
    if (s) snprintf(buf, len, "%s_%s", prefix, s->name);
    else snprintf(buf, len, "%s %u", prefix, status);
    return buf;
}

const char *nfsbe_status_name(unsigned status, char *buf, size_t len) {
    return name_with("NFS3ERR", status, buf, len);
}

const char *nfsbe_mount_name(unsigned status, char *buf, size_t len) {
    return name_with("MNT3ERR", status, buf, len);
}

int nfsbe_status_errno(unsigned status) {
    const struct status *s = find(status);
    return s ? s->error : EIO;
}

const char *nfsbe_status_hint(unsigned status) {
    const struct status *s = find(status);
    return s ? s->hint : "";
}

void nfsbe_counts_put(const struct nfsbe_counts *n, struct kv *out) {
    kv_uint(out, "wire_ios", n->rpcs);
    kv_uint(out, "writes_unstable", n->asked[0]);
    kv_uint(out, "writes_datasync", n->asked[1]);
    kv_uint(out, "writes_filesync", n->asked[2]);
    kv_uint(out, "answered_unstable", n->answered[0]);
    kv_uint(out, "answered_datasync", n->answered[1]);
    kv_uint(out, "answered_filesync", n->answered[2]);
    kv_uint(out, "commits", n->commits);
    kv_uint(out, "verifier_changes", n->verifier_changes);
    kv_uint(out, "jukebox", n->jukebox);
    kv_uint(out, "retries", n->retries);
    kv_uint(out, "retries_jukebox", n->retries);
    kv_uint(out, "retry_wait_ns", n->retry_wait);
    kv_uint(out, "short_reads", n->short_reads);
    kv_uint(out, "short_writes", n->short_writes);
    kv_uint(out, "send_buffer_full", n->held);
}
