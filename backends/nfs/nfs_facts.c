/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What an NFS server says about a file and the file system it is on. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "backends/nfs/nfs_open.h"
#include "backends/net/nfsname.h"
#include "backends/nfs/nfs_split.h"
#include "base/text.h"

#define READDIR_COUNT 32768u
#define LOCK_PREFIX ".lck-"

#define FSF_LINK 0x01u
#define FSF_SYMLINK 0x02u
#define FSF_HOMOGENEOUS 0x08u
#define FSF_CANSETTIME 0x10u

static void note_fsinfo(const struct nfsbe_fsinfo *info, struct facts *facts) {
    struct kv *n = &facts->negotiated;
    kv_uint(n, "rtmax", info->rtmax);
    kv_uint(n, "rtpref", info->rtpref);
    kv_uint(n, "rtmult", info->rtmult);
    kv_uint(n, "wtmax", info->wtmax);
    kv_uint(n, "wtpref", info->wtpref);
    kv_uint(n, "wtmult", info->wtmult);
    kv_uint(n, "dtpref", info->dtpref);
    kv_uint(n, "maxfilesize", info->maxfilesize);
    kv_uint(n, "time_delta_ns", info->time_delta);
    kv_text(n, "properties", "0x%x%s%s%s%s", info->properties, info->properties & FSF_LINK ? " LINK" : "",
            info->properties & FSF_SYMLINK ? " SYMLINK" : "", info->properties & FSF_HOMOGENEOUS ? " HOMOGENEOUS" : "",
            info->properties & FSF_CANSETTIME ? " CANSETTIME" : "");
}

/* The size of RPCs in one direction. More than the server says it takes would bring short I/Os at best. */
static int rpc_size(const struct handle *h, const char *key, const char *what, uint32_t most, uint32_t mult,
                    uint32_t *size, struct err *err) {
    if (most == 0) return err_set(err, STATUS_TARGET, "%s: the server says %s 0", h->where, what);
    if (*size > most)
        return err_set(err, STATUS_TARGET, "%s=%u is more than the server takes: its %s is %u", key, *size, what, most);
    *size = nfsbe_piece_size(*size ? *size : most, mult);
    return 0;
}

static int file_system(struct nfsbe_conn *conn, struct handle *h, struct facts *facts, struct err *err) {
    struct nfsbe_fsinfo info;
    struct nfsbe_fsstat stat;
    struct nfsbe_pathconf conf;

    int status = nfsbe_call_fsinfo(conn, &h->dir, &info, err);
    if (status > 0) nfsbe_refused(err, conn, (unsigned)status, "FSINFO");
    if (status != 0) return -1;
    note_fsinfo(&info, facts);
    if (rpc_size(h, "rsize", "rtmax", info.rtmax, info.rtmult, &h->rsize, err) != 0 ||
        rpc_size(h, "wsize", "wtmax", info.wtmax, info.wtmult, &h->wsize, err) != 0)
        return -1;

    status = nfsbe_call_fsstat(conn, &h->dir, &stat, err);
    if (status < 0) return -1;
    if (status == 0) {
        facts->fs_free = stat.abytes;
        facts->fs_total = stat.tbytes;
        kv_uint(&facts->negotiated, "fs_total", stat.tbytes);
        kv_uint(&facts->negotiated, "fs_free", stat.fbytes);
        kv_uint(&facts->negotiated, "fs_available", stat.abytes);
        kv_uint(&facts->negotiated, "fs_files", stat.tfiles);
        kv_uint(&facts->negotiated, "fs_files_free", stat.ffiles);
        kv_uint(&facts->negotiated, "fs_files_available", stat.afiles);
        kv_uint(&facts->negotiated, "fs_invariant_s", stat.invarsec);
    }
    status = nfsbe_call_pathconf(conn, &h->dir, &conf, err);
    if (status < 0) return -1;
    if (status == 0) {
        kv_uint(&facts->negotiated, "link_max", conf.linkmax);
        kv_uint(&facts->negotiated, "name_max", conf.name_max);
        kv_bool(&facts->negotiated, "no_trunc", conf.no_trunc);
        kv_bool(&facts->negotiated, "chown_restricted", conf.chown_restricted);
        kv_bool(&facts->negotiated, "case_insensitive", conf.case_insensitive);
        kv_bool(&facts->negotiated, "case_preserving", conf.case_preserving);
    }
    return 0;
}

/* ACCESS is what the server would say to this user; the export's own ro shows only here and in the first WRITE. */
static int rights(struct nfsbe_conn *conn, struct handle *h, struct facts *facts, struct err *err) {
    uint32_t granted = 0, want = NFS_ACCESS_READ | NFS_ACCESS_MODIFY | NFS_ACCESS_EXTEND;
    const struct nfsbe_fh *fh = h->exists ? &h->file : &h->dir;

    int status = nfsbe_call_access(conn, fh, want, &granted, err);
    if (status > 0) return nfsbe_refused(err, conn, (unsigned)status, h->where);
    if (status != 0) return -1;
    kv_text(&facts->negotiated, "access", "%s%s%s", granted & NFS_ACCESS_READ ? "READ" : "no READ",
            granted & NFS_ACCESS_MODIFY ? " MODIFY" : "", granted & NFS_ACCESS_EXTEND ? " EXTEND" : "");
    facts->read_only = !(granted & NFS_ACCESS_MODIFY);
    if (h->exists && !(granted & NFS_ACCESS_READ)) {
        nfsbe_refused(err, conn, NFSBE_ACCES, h->where);
        return err_prefix(err, "reading");
    }
    if (h->writable && facts->read_only) {
        nfsbe_refused(err, conn, NFSBE_ACCES, h->where);
        return err_prefix(err, "writing");
    }
    return 0;
}

/* ---- locks of ESXi ---- */

struct locks {
    char first[256];
    unsigned n;
    uint64_t names;
};

static void see_name(void *arg, const char *name) {
    struct locks *l = arg;
    l->names++;
    if (strncmp(name, LOCK_PREFIX, strlen(LOCK_PREFIX)) != 0) return;
    if (l->n++ == 0) snprintf(l->first, sizeof l->first, "%.255s", name);
}

/* ESXi keeps `.lck-<hexadecimal fileid>` beside each file that a host has open. Which byte order the digits have
 * differs between versions, and another VM's lock means a datastore in use all the same: any such name counts. */
static int locks(struct nfsbe_conn *conn, const struct handle *h, struct facts *facts, struct err *err) {
    struct locks l = { .n = 0 };
    char safe[120];
    bool cut;

    int status = nfsbe_call_readdir(conn, &h->dir, READDIR_COUNT, see_name, &l, &cut, err);
    if (status < 0) return -1;
    if (status > 0) {
        nfsbe_refused(err, conn, (unsigned)status, "listing the directory");
        kv_text(&facts->warnings, "directory-not-readable", "%s; locks of ESXi (.lck-...) would not be seen", err->msg);
        return 0;
    }
    if (cut)
        kv_text(&facts->warnings, "directory-not-read", "the listing of the directory was given up after %" PRIu64 " names "
                "(timeout=); locks of ESXi (.lck-...) behind them would not be seen", l.names);
    kv_uint(&facts->negotiated, "directory_entries", l.names);
    if (l.n)
        snprintf(facts->in_use, sizeof facts->in_use, "the directory holds %s%s: an ESXi host has files in it open",
                 text_safe(safe, sizeof safe, l.first, strlen(l.first)), l.n > 1 ? " and other locks" : "");
    return 0;
}

/* ---- identity ---- */

/* fsid and fileid are unique within one server only, and NFSv3 has no name for a server; so the address that was
 * connected to is part of it. The same server by another address is found by the second identity: the file handle,
 * which the server makes, together with what changes with every write. It is no proof in the other direction, so it is
 * never the first. */
void nfsbe_identity(const struct handle *h, const struct nfsbe_attr *attr, struct facts *facts) {
    snprintf(facts->identity[0], sizeof facts->identity[0], "fsid:%" PRIx64 "/fileid:%" PRIu64 "/server:%.60s",
             attr->fsid, attr->fileid, h->server.host);
    const struct nfsname name = { .fsid = attr->fsid, .fileid = attr->fileid, .size = attr->size,
                                  .handle = (const unsigned char *)h->file.data, .handle_len = h->file.len,
                                  .ctime_ns = attr->ctime };
    nfsname(&name, facts->identity[1], sizeof facts->identity[1]);
}

int nfsbe_facts(struct nfsbe_conn *conn, struct handle *h, const struct nfsbe_attr *attr, struct facts *facts,
                struct err *err) {
    facts->exists = attr != NULL;
    facts->kind = OBJECT_FILE;
    facts->allocated = UINT64_MAX;
    facts->block = 1;
    facts->mem_align = 1;
    facts->dpofua = ANSWER_YES;              /* stable_how */
    facts->volatile_cache = ANSWER_UNKNOWN;  /* each reply to a WRITE tells */
    facts->can_flush = true;
    if (file_system(conn, h, facts, err) != 0) return -1;
    if (rights(conn, h, facts, err) != 0) return -1;
    if (locks(conn, h, facts, err) != 0) return -1;
    if (!attr) return 0;
    h->fsid = attr->fsid;
    h->fileid = attr->fileid;
    h->size = attr->size;
    facts->size = attr->size;
    facts->allocated = attr->used;
    kv_uint(&facts->negotiated, "file_size", attr->size);
    kv_uint(&facts->negotiated, "file_used", attr->used);
    nfsbe_identity(h, attr, facts);
    return 0;
}
