/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Creating a file, removing it again, and what of it has storage behind it. */
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "backends/nfs/nfs_open.h"

#define FILE_MODE 0600

static int gone(struct err *err, const struct handle *h, const char *how) {
    return err_set(err, STATUS_TARGET, "%s: the file that was created is gone (%s): what has its name is left alone", h->where, how);
}

/* Is h->name still the file that was created? A file id does not tell: ext4 gives the inode number of a file that was
 * removed to the next one. The handle that CREATE gave holds its generation as well, and no other file ever gets it. A
 * server may remember what it knew of name and file (Ganesha's cache, for a minute), when somebody else changed them on
 * its disk: new times for the file make it look there, and a file that has no name any more shows. */
static int is_own(struct nfsbe_conn *conn, const struct handle *h, struct err *err) {
    struct nfsbe_fh fh;
    struct nfsbe_attr attr;

    int status = nfsbe_call_touch(conn, &h->file, err);
    if (status == NFSBE_STALE) return gone(err, h, "NFS3ERR_STALE");
    if (status >= 0) status = nfsbe_call_lookup(conn, &h->dir, h->name, &fh, &attr, err);
    if (status == NFSBE_NOENT) return err_set(err, STATUS_TARGET, "%s is gone already", h->where);
    if (status > 0) return nfsbe_refused(err, conn, (unsigned)status, h->where);
    if (status < 0) return -1;
    if (fh.len != h->file.len || memcmp(fh.data, h->file.data, fh.len) != 0)
        return err_set(err, STATUS_TARGET, "%s is another file by now (fileid %llu, created was %llu; its file handle is "
                       "another one): left alone", h->where, (unsigned long long)attr.fileid,
                       (unsigned long long)h->fileid);
    status = nfsbe_call_getattr(conn, &h->file, &attr, err);
    if (status == NFSBE_STALE) return gone(err, h, "NFS3ERR_STALE");
    if (status == 0 && attr.nlink == 0) return gone(err, h, "no name leads to it");
    if (status > 0) return nfsbe_refused(err, conn, (unsigned)status, h->where);
    if (status < 0) return -1;
    if (h->exists && attr.size > h->size)
        return err_set(err, STATUS_TARGET, "%s has grown from %llu to %llu bytes: what somebody has added to it is not of this "
                       "program: left alone", h->where, (unsigned long long)h->size, (unsigned long long)attr.size);
    if (attr.fsid == h->fsid && attr.fileid == h->fileid) return 0;
    return err_set(err, STATUS_TARGET, "%s: its file handle stands for another file by now: left alone", h->where);
}

/* NFSv3 has no "remove this very file": between the last look and REMOVE there is one round trip. */
static int remove_own(struct nfsbe_conn *conn, const struct handle *h, struct err *err) {
    if (is_own(conn, h, err) != 0) return -1;
    int status = nfsbe_call_remove(conn, &h->dir, h->name, err);
    if (status > 0) {
        nfsbe_refused(err, conn, (unsigned)status, h->where);
        return err_prefix(err, "removing");
    }
    return status;
}

/* CREATE gave no handle. LOOKUP has one; whether it is that of the file just created tells CREATE with the same
 * verifier: it succeeds only if the name stands for the file that this verifier made. */
static int handle_of_new(struct nfsbe_conn *conn, struct handle *h, const char *verifier, struct err *err) {
    struct nfsbe_fh again;
    struct nfsbe_attr attr;
    int status = nfsbe_call_lookup(conn, &h->dir, h->name, &h->file, &attr, err);
    if (status == 0 && verifier) status = nfsbe_call_create(conn, &h->dir, h->name, verifier, &again, err);
    if (status > 0) nfsbe_refused(err, conn, (unsigned)status, h->where);
    return status ? err_prefix(err, "it was created, but cannot be seen (an empty file may be left)") : 0;
}

/* CREATE without an answer of use: `err` says what came instead. Is there a file, and is it ours? Then it is removed as
 * any file of ours. -1, and err says what was found and done. */
static int look_for_new(struct handle *h, const char *verifier, struct err *err) {
    struct nfsbe_conn *conn;
    struct nfsbe_fh again;
    struct nfsbe_attr attr;
    struct err why = { .status = STATUS_OK };
    int status = -1, ours = -1;

    if (nfsbe_conn_open(&h->server, NFS_PROGRAM_ID, &conn, &why) == 0) {
        status = nfsbe_call_lookup(conn, &h->dir, h->name, &h->file, &attr, &why);
        if (status == 0 && verifier) ours = nfsbe_call_create(conn, &h->dir, h->name, verifier, &again, &why);
        nfsbe_conn_close(conn);
    }
    if (status == 0 && ours == 0) {
        h->created = true;
        h->fsid = attr.fsid;
        h->fileid = attr.fileid;
        int rc = nfsbe_remove(h, &why);
        h->created = false;
        if (rc == 0) return err_prefix(err, "creating %s: a file was made, and removed again; CREATE", h->where);
        return err_prefix(err, "creating %s: an empty file is left there (%.400s); CREATE", h->where, why.msg);
    }
    if (status == NFSBE_NOENT) return err_prefix(err, "creating %s: no file was made", h->where);
    if (status != 0)
        return err_prefix(err, "creating %s: an empty file may be left there (it could not be looked for); CREATE", h->where);
    return err_prefix(err, "creating %s: a file is there now, and that it is this run's cannot be proven: an empty file may be "
                      "left; CREATE", h->where);
}

/* EXCLUSIVE is what a retransmission cannot confuse; a server without it says so, and gets GUARDED. */
static int create_exclusively(struct nfsbe_conn *conn, struct handle *h, struct err *err) {
    char verifier[8];
    bool exclusive = true;
    if (getrandom(verifier, sizeof verifier, 0) != (ssize_t)sizeof verifier)
        return err_set(err, STATUS_TARGET, "no random numbers from the system");
    int status = nfsbe_call_create(conn, &h->dir, h->name, verifier, &h->file, err);
    if (status == NFSBE_NOTSUPP) {
        exclusive = false;
        status = nfsbe_call_create(conn, &h->dir, h->name, NULL, &h->file, err);
    }
    if (status > 0) {
        nfsbe_refused(err, conn, (unsigned)status, h->where);
        return err_prefix(err, "creating");
    }
    if (status < 0) return look_for_new(h, exclusive ? verifier : NULL, err);
    return h->file.len ? 0 : handle_of_new(conn, h, exclusive ? verifier : NULL, err);
}

int nfsbe_create(struct nfsbe_conn *conn, struct handle *h, uint64_t size, struct nfsbe_attr *attr, struct err *err) {
    if (create_exclusively(conn, h, err) != 0) return -1;
    int status = nfsbe_call_getattr(conn, &h->file, attr, err);
    if (status > 0) nfsbe_refused(err, conn, (unsigned)status, h->where);
    if (status != 0) return err_prefix(err, "it was created, but cannot be seen (an empty file may be left)");
    h->created = true;
    h->fsid = attr->fsid;
    h->fileid = attr->fileid;

    status = nfsbe_call_setattr(conn, &h->file, FILE_MODE, size, err);
    if (status > 0) {
        nfsbe_refused(err, conn, (unsigned)status, h->where);
        err_prefix(err, "setting size and mode");
    }
    if (status == 0) status = nfsbe_call_getattr(conn, &h->file, attr, err);
    if (status > 0) nfsbe_refused(err, conn, (unsigned)status, h->where);
    if (status == 0 && attr->size != size)
        status = err_set(err, STATUS_TARGET, "%s: the size was set to %llu, and the server says %llu", h->where,
                         (unsigned long long)size, (unsigned long long)attr->size);
    if (status == 0) {
        h->exists = true;
        return 0;
    }
    return -1; /* nfsbe_open removes what was created */
}

int nfsbe_remove(struct handle *h, struct err *err) {
    struct nfsbe_conn *conn;
    if (!h->created) return err_set(err, STATUS_TARGET, "%s was not created by this run: left alone", h->where);
    if (nfsbe_conn_open(&h->server, NFS_PROGRAM_ID, &conn, err) != 0) return -1;
    int rc = remove_own(conn, h, err);
    if (rc == 0) h->created = h->exists = false;
    nfsbe_conn_close(conn);
    return rc;
}

/* NFSv3 tells how much of a file has storage, not where. The answer for a part of it lies between two bounds; it is
 * given only where they (nearly) meet: nothing allocated, all allocated, or the whole file asked for. */
int nfsbe_holes(struct handle *h, uint64_t offset, uint64_t len, int64_t until, double *share) {
    struct nfsbe_conn *conn;
    struct nfsbe_attr attr;
    struct err err;

    (void)until; /* one question */
    if (!h->exists || len == 0 || nfsbe_conn_open(&h->server, NFS_PROGRAM_ID, &conn, &err) != 0) return -1;
    int status = nfsbe_call_getattr(conn, &h->file, &attr, &err);
    nfsbe_conn_close(conn);
    if (status != 0 || offset >= attr.size) return -1;
    if (len > attr.size - offset) len = attr.size - offset;
    uint64_t missing = attr.used < attr.size ? attr.size - attr.used : 0;
    double high = missing >= len ? 1.0 : (double)missing / (double)len;
    double low = attr.used >= len ? 0.0 : (double)(len - attr.used) / (double)len;
    if (high - low > 0.01) return -1;
    *share = low;
    return 0;
}
