/* SPDX-License-Identifier: GPL-2.0-or-later */
/* canned_nfsd: an NFSv3 and MOUNT3 server without a file system. It answers as fast as one thread can, so that a client
 * can be measured against it; it holds replies back for a known time; and it can answer wrongly on purpose.
 *
 * Content: the 8 bytes at offset o (a multiple of 8) of any file are, little endian, ((o mod PERIOD) + 1) * MIX. */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define PROGRAM      "canned_nfsd"
#define EXPORT       "/canned"
#define HEAD         2048u /* bytes of a request that hold all but the payload of WRITE */
#define RECORD_LIMIT (8u << 20)
#define MAX_FILES    64

enum proc {
    NFS_NULL,
    GETATTR,
    SETATTR,
    LOOKUP,
    ACCESS,
    READLINK,
    READ,
    WRITE,
    CREATE,
    MKDIR,
    SYMLINK,
    MKNOD,
    REMOVE,
    RMDIR,
    RENAME,
    LINK,
    READDIR,
    READDIRPLUS,
    FSSTAT,
    FSINFO,
    PATHCONF,
    COMMIT,
    NFS_PROCS
};
#define BIT(proc)  (1u << (proc))
#define DATA_PROCS (BIT(READ) | BIT(WRITE) | BIT(COMMIT))

enum status {
    OK = 0,
    ERR_NOENT = 2,
    ERR_IO = 5,
    ERR_EXIST = 17,
    ERR_NOTDIR = 20,
    ERR_ISDIR = 21,
    ERR_INVAL = 22,
    ERR_NOSPC = 28,
    ERR_NAMETOOLONG = 63,
    ERR_STALE = 70,
    ERR_BADHANDLE = 10001,
    ERR_NOT_SYNC = 10002,
    ERR_NOTSUPP = 10004,
    ERR_TOOSMALL = 10005,
    ERR_JUKEBOX = 10008
};

/* What a hostile reply does wrong; `ops` are the procedures it makes sense for. */
enum mode {
    FRAGMENTS,
    WRONG_XID,
    DUPLICATE,
    NO_REPLY,
    SHORT_READ,
    EARLY_EOF,
    SHORT_WRITE,
    JUKEBOX,
    IO_ERROR,
    NO_SPACE,
    STALE,
    GONE,
    REPLACED,
    VERF_CHANGE,
    COMMITTED_LOWER,
    NO_ATTRS,
    ODD_VERF,
    GARBAGE_MARKER,
    GARBAGE_COUNT,
    CLOSE_MID,
    AUTH_REJECT,
    SYSTEM_ERROR,
    SEGMENTS,
    NONE
};
static const struct {
    const char *name;
    uint32_t ops;
} modes[] = {
    [FRAGMENTS] = {"fragments", DATA_PROCS},
    [WRONG_XID] = {"wrong-xid", DATA_PROCS},
    [DUPLICATE] = {"duplicate", DATA_PROCS},
    [NO_REPLY] = {"no-reply", DATA_PROCS},
    [SHORT_READ] = {"short-read", BIT(READ)},
    [EARLY_EOF] = {"eof", BIT(READ)},
    [SHORT_WRITE] = {"short-write", BIT(WRITE)},
    [JUKEBOX] = {"jukebox", DATA_PROCS},
    [IO_ERROR] = {"io-error", DATA_PROCS},
    [NO_SPACE] = {"nospc", BIT(WRITE)},
    [STALE] = {"stale", DATA_PROCS},
    [GONE] = {"gone", DATA_PROCS},
    [REPLACED] = {"replaced", DATA_PROCS},
    [VERF_CHANGE] = {"verf-change", BIT(WRITE) | BIT(COMMIT)},
    [COMMITTED_LOWER] = {"committed-lower", BIT(WRITE)},
    [NO_ATTRS] = {"no-attrs", DATA_PROCS},
    [ODD_VERF] = {"odd-verf", DATA_PROCS},
    [GARBAGE_MARKER] = {"garbage-marker", DATA_PROCS},
    [GARBAGE_COUNT] = {"garbage-count", BIT(READ)},
    [CLOSE_MID] = {"close-mid", DATA_PROCS},
    [AUTH_REJECT] = {"auth-reject", DATA_PROCS},
    [SYSTEM_ERROR] = {"system-error", DATA_PROCS},
    [SEGMENTS] = {"one-byte", DATA_PROCS},
    [NONE] = {NULL, 0},
};

struct file {
    bool used, exclusive;
    char name[256];
    uint64_t size, created; /* created: the EXCLUSIVE verifier */
    uint32_t mode, uid, gid, generation, change;
};

struct config {
    struct file file[MAX_FILES]; /* 0 is the export's root */
    uint32_t rtmax, wtmax, generation, replaced, only;
    uint64_t verf;
    unsigned char reply[32 << 10];
};

struct session {
    char unused; /* NFSv3 keeps nothing between calls */
};

#include "tests/lab/canned.h"

struct call {
    struct server *s;
    const unsigned char *at, *end; /* not yet read of the request */
    bool bad;                      /* it is too short, or garbled */
    unsigned char *out;
    uint32_t xid, program, proc, reply_len;
    enum mode mode;
    bool stored; /* payload of READ */
    uint64_t offset;
    uint32_t count;
};

static const unsigned char *take_bytes(struct call *k, size_t len) {
    static const unsigned char nothing[8];
    if ((size_t)(k->end - k->at) < len) {
        k->bad = true;
        k->at = k->end;
        return len <= sizeof nothing ? nothing : NULL;
    }
    k->at += len;
    return k->at - len;
}

static uint32_t get32(struct call *k) {
    return load32(take_bytes(k, 4));
}
static uint64_t get64(struct call *k) {
    return load64(take_bytes(k, 8));
}

static const unsigned char *get_opaque(struct call *k, uint32_t *len, uint32_t max) {
    *len = get32(k);
    if (*len > max) k->bad = true;
    const unsigned char *p = k->bad ? NULL : take_bytes(k, (*len + 3u) & ~3u);
    if (k->bad) *len = 0;
    return p;
}

static void out32(struct call *k, uint32_t v) {
    store32(k->out, v);
    k->out += 4;
}

static void out64(struct call *k, uint64_t v) {
    store64(k->out, v);
    k->out += 8;
}

static void out_opaque(struct call *k, const void *p, uint32_t len) {
    out32(k, len);
    memset(k->out + (len & ~3u), 0, 4);
    memcpy(k->out, p, len);
    k->out += (len + 3) & ~3u;
}

static uint32_t file_id(const struct call *k, const struct file *f) {
    return (uint32_t)(f - k->s->p.file) + 1;
}

static void out_fattr(struct call *k, const struct file *f) {
    bool root = f == k->s->p.file;
    out32(k, root ? 2 : 1);
    out32(k, f->mode);
    out32(k, root ? 2 : 1);
    out32(k, f->uid);
    out32(k, f->gid);
    out64(k, root ? 4096 : f->size);
    out64(k, root ? 4096 : f->size);
    out64(k, 0);
    out64(k, 0xca);
    out64(k, file_id(k, f) + k->s->p.replaced);
    for (int i = 0; i < 3; i++) { /* atime, mtime, ctime: a change counter is all that anybody needs */
        out32(k, 1700000000);
        out32(k, i ? f->change % 1000000000 : 0);
    }
}

static void out_attr(struct call *k, const struct file *f) {
    bool there = k->mode != NO_ATTRS;
    out32(k, there);
    if (there) out_fattr(k, f);
}

static void out_wcc(struct call *k, const struct file *f) {
    out32(k, 0);
    out_attr(k, f);
}

static void out_handle(struct call *k, const struct file *f) {
    unsigned char fh[32] = "canned";
    store32(fh + 8, file_id(k, f));
    store32(fh + 12, f->generation);
    out_opaque(k, fh, sizeof fh);
}

static enum status get_file(struct call *k, struct file **f) {
    uint32_t len;
    const unsigned char *fh = get_opaque(k, &len, 64);
    if (k->bad || len != 32 || memcmp(fh, "canned", 7)) return ERR_BADHANDLE;
    uint32_t i = load32(fh + 8) - 1;
    if (i >= MAX_FILES) return ERR_BADHANDLE;
    *f = &k->s->p.file[i];
    return (*f)->used && (*f)->generation == load32(fh + 12) ? OK : ERR_STALE;
}

static enum status get_name(struct call *k, char name[256]) {
    uint32_t len;
    const unsigned char *p = get_opaque(k, &len, 4096);
    if (k->bad || !len || memchr(p, '/', len) || memchr(p, 0, len)) return ERR_INVAL;
    if (len > 255) return ERR_NAMETOOLONG;
    memcpy(name, p, len);
    name[len] = '\0';
    return OK;
}

static struct file *find_file(struct server *s, const char *name) {
    if (!strcmp(name, ".") || !strcmp(name, "..")) return s->p.file;
    for (struct file *f = s->p.file + 1; f < s->p.file + MAX_FILES; f++)
        if (f->used && !strcmp(f->name, name)) return f;
    return NULL;
}

static struct file *add_file(struct server *s, const char *name, uint64_t size) {
    struct file *f = s->p.file;
    while (f < s->p.file + MAX_FILES && f->used) f++;
    if (f == s->p.file + MAX_FILES) return NULL;
    *f = (struct file){.used = true, .size = size, .mode = 0666, .generation = ++s->p.generation};
    strcpy(f->name, name);
    return f;
}

#define STORE_DEFAULT (64u << 20) /* of a file that is created */

/* The file that --store keeps is the first one. */
static bool stored(const struct server *s, const struct file *f) {
    return s->store && f == s->p.file + 1;
}

static enum status set_size(struct server *s, struct file *f, uint64_t size) {
    if (f == s->p.file) return ERR_ISDIR;
    if (stored(s, f)) {
        if (size > s->store_len) return ERR_NOSPC;
        if (size < f->size) memset(s->store + size, 0, f->size - size);
    }
    f->size = size;
    return OK;
}

/* sattr3; with `f` NULL it is only read. */
static enum status get_attributes(struct call *k, struct file *f) {
    struct file new = f ? *f : (struct file){0};
    uint64_t size = 0;
    if (get32(k)) new.mode = get32(k) & 07777;
    if (get32(k)) new.uid = get32(k);
    if (get32(k)) new.gid = get32(k);
    bool resize = get32(k);
    if (resize) size = get64(k);
    for (int i = 0; i < 2; i++)
        if (get32(k) == 2) get64(k);
    if (k->bad || !f) return OK;
    enum status status = resize ? set_size(k->s, f, size) : OK;
    if (status) return status;
    new.size = f->size;
    new.change++;
    *f = new;
    return OK;
}

static enum status nfs_setattr(struct call *k, struct file *f) {
    const unsigned char *start = k->at;
    get_attributes(k, NULL);
    if (get32(k)) {
        get32(k);
        if (get32(k) != f->change % 1000000000) return ERR_NOT_SYNC;
    }
    k->at = start;
    enum status status = k->bad ? OK : get_attributes(k, f);
    if (!status) out_wcc(k, f);
    return status;
}

static enum status nfs_lookup(struct call *k, struct file *dir) {
    char name[256];
    enum status status = get_name(k, name);
    if (status) return status;
    struct file *f = find_file(k->s, name);
    if (!f) return ERR_NOENT;
    out_handle(k, f);
    out_attr(k, f);
    out_attr(k, dir);
    return OK;
}

static enum status nfs_read(struct call *k, struct file *f) {
    uint64_t offset = get64(k);
    uint32_t count = get32(k);
    uint64_t left = offset < f->size ? f->size - offset : 0;
    if (count > k->s->p.rtmax) count = k->s->p.rtmax;
    if (k->mode == SHORT_READ) count -= count / 2;
    if (k->mode == EARLY_EOF) left = 0;
    if (count > left) count = (uint32_t)left;
    out_attr(k, f);
    out32(k, count);
    out32(k, count == left);
    out32(k, k->mode == GARBAGE_COUNT ? 0x7ffffff0 : count);
    k->stored = stored(k->s, f);
    k->offset = offset;
    k->count = count;
    return OK;
}

static enum status nfs_write(struct call *k, struct file *f, size_t not_kept) {
    uint64_t offset = get64(k);
    uint32_t count = get32(k), stable = get32(k), len = get32(k);
    if (k->bad || stable > 2 || len != count || len > (size_t)(k->end - k->at) + not_kept) {
        k->bad = true;
        return OK;
    }
    k->offset = offset;
    if (count > k->s->p.wtmax) count = k->s->p.wtmax;
    if (k->mode == SHORT_WRITE) count -= count / 2;
    if (k->mode == VERF_CHANGE) k->s->p.verf++;
    if (offset > (uint64_t)INT64_MAX - count) return ERR_INVAL;
    if (stored(k->s, f)) {
        if (offset + count > k->s->store_len) return ERR_NOSPC;
        memcpy(k->s->store + offset, k->at, count);
    }
    if (offset + count > f->size) f->size = offset + count;
    f->change++;
    out_wcc(k, f);
    out32(k, count);
    out32(k, k->mode == COMMITTED_LOWER ? 0 : stable);
    out64(k, k->s->p.verf);
    return OK;
}

static enum status nfs_create(struct call *k, struct file *dir) {
    char name[256];
    enum status status = get_name(k, name);
    uint32_t how = get32(k);
    uint64_t verf = 0;
    const unsigned char *attributes = k->at;
    if (how == 2)
        verf = get64(k);
    else
        get_attributes(k, NULL);
    if (k->bad || how > 2 || status) return status ? status : ERR_INVAL;
    struct file *f = find_file(k->s, name);
    if (f && !(how == 0 && f != dir) && !(how == 2 && f->exclusive && f->created == verf)) return ERR_EXIST;
    if (!f && !(f = add_file(k->s, name, 0))) return ERR_NOSPC;
    if (how == 2) {
        f->exclusive = true;
        f->created = verf;
    } else {
        k->at = attributes;
        if ((status = get_attributes(k, f))) return status;
    }
    out32(k, 1);
    out_handle(k, f);
    out_attr(k, f);
    out_wcc(k, dir);
    return OK;
}

static enum status nfs_remove(struct call *k, struct file *dir) {
    char name[256];
    enum status status = get_name(k, name);
    if (status) return status;
    struct file *f = find_file(k->s, name);
    if (!f) return ERR_NOENT;
    if (f == dir) return ERR_ISDIR;
    f->used = false;
    out_wcc(k, dir);
    return OK;
}

/* Cookie n stands behind entry n: ".", "..", then the slots of the file table. */
static enum status nfs_readdir(struct call *k, struct file *dir) {
    bool plus = k->proc == READDIRPLUS;
    uint64_t cookie = get64(k);
    get64(k);
    if (plus) get32(k);
    uint32_t max = get32(k);
    size_t limit = max < sizeof k->s->p.reply - 1024 ? max : sizeof k->s->p.reply - 1024;
    unsigned char *start = k->out;
    unsigned entries = 0;
    if (k->bad) return OK;
    out_attr(k, dir);
    out64(k, 0);
    for (; cookie <= MAX_FILES; cookie++) {
        struct file *f = cookie < 2 ? dir : &k->s->p.file[cookie - 1];
        const char *name = cookie == 0 ? "." : cookie == 1 ? ".." : f->name;
        if (!f->used) continue;
        if ((size_t)(k->out - start) + 32 + strlen(name) + (plus ? 128 : 0) + 8 > limit) break;
        out32(k, 1);
        out64(k, file_id(k, f));
        out_opaque(k, name, (uint32_t)strlen(name));
        out64(k, cookie + 1);
        if (plus) {
            out_attr(k, f);
            out32(k, 1);
            out_handle(k, f);
        }
        entries++;
    }
    if (!entries && cookie <= MAX_FILES) return ERR_TOOSMALL;
    out32(k, 0);
    out32(k, cookie > MAX_FILES);
    return OK;
}

static void nfs_fsinfo(struct call *k, const struct file *f) {
    uint32_t rtmax = k->s->p.rtmax, wtmax = k->s->p.wtmax;
    const uint32_t limits[] = {rtmax, rtmax, 4096, wtmax, wtmax, 4096, 8192};
    out_attr(k, f);
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) out32(k, limits[i]);
    out64(k, INT64_MAX);
    out64(k, 1);    /* time_delta: 1 ns */
    out32(k, 0x18); /* homogeneous, can set times */
}

static void nfs_fsstat(struct call *k, const struct file *f) {
    out_attr(k, f);
    for (int i = 0; i < 3; i++) out64(k, (uint64_t)1 << 50);
    for (int i = 0; i < 3; i++) out64(k, MAX_FILES);
    out32(k, 0);
}

static void nfs_pathconf(struct call *k, const struct file *f) {
    const uint32_t values[] = {1, 255, 1, 1, 0, 1};
    out_attr(k, f);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) out32(k, values[i]);
}

static enum status nfs_commit(struct call *k, const struct file *f) {
    get64(k);
    get32(k);
    if (k->mode == VERF_CHANGE) k->s->p.verf++;
    out_wcc(k, f);
    out64(k, k->s->p.verf);
    return OK;
}

static enum status nfs_call(struct call *k, size_t not_kept) {
    struct file *f = NULL;
    enum status status = get_file(k, &f);
    if (k->mode == JUKEBOX) return ERR_JUKEBOX;
    if (k->mode == IO_ERROR) return ERR_IO;
    if (k->mode == NO_SPACE) return ERR_NOSPC;
    if (k->mode == GONE && !status) f->used = false;
    if (k->mode == REPLACED) k->s->p.replaced = 1000;
    if (k->mode == STALE || k->mode == GONE || k->mode == REPLACED) return ERR_STALE;
    if (status) return status;
    bool dir = f == k->s->p.file;
    if (!dir && BIT(k->proc) & (BIT(LOOKUP) | BIT(CREATE) | BIT(REMOVE) | BIT(READDIR) | BIT(READDIRPLUS)))
        return ERR_NOTDIR;
    if (dir && BIT(k->proc) & DATA_PROCS) return ERR_ISDIR;
    switch (k->proc) {
    case GETATTR: out_fattr(k, f); return OK;
    case SETATTR: return nfs_setattr(k, f);
    case LOOKUP: return nfs_lookup(k, f);
    case ACCESS:
        out_attr(k, f);
        out32(k, get32(k) & (dir ? 0x1f : 0x2d));
        return OK;
    case READ: return nfs_read(k, f);
    case WRITE: return nfs_write(k, f, not_kept);
    case CREATE: return nfs_create(k, f);
    case REMOVE: return nfs_remove(k, f);
    case READDIR:
    case READDIRPLUS: return nfs_readdir(k, f);
    case FSSTAT: nfs_fsstat(k, f); return OK;
    case FSINFO: nfs_fsinfo(k, f); return OK;
    case PATHCONF: nfs_pathconf(k, f); return OK;
    case COMMIT: return nfs_commit(k, f);
    default: return ERR_NOTSUPP;
    }
}

/* The result behind the RPC header. False: there is no such procedure. */
static bool nfs_result(struct call *k, size_t not_kept) {
    /* words of "no attributes" in the failure arm of each procedure's result */
    static const unsigned char absent[NFS_PROCS] = {
        [SETATTR] = 2, [LOOKUP] = 1,      [ACCESS] = 1, [READLINK] = 1, [READ] = 1,     [WRITE] = 2,  [CREATE] = 2,
        [MKDIR] = 2,   [SYMLINK] = 2,     [MKNOD] = 2,  [REMOVE] = 2,   [RMDIR] = 2,    [RENAME] = 4, [LINK] = 3,
        [READDIR] = 1, [READDIRPLUS] = 1, [FSSTAT] = 1, [FSINFO] = 1,   [PATHCONF] = 1, [COMMIT] = 2,
    };
    if (k->proc >= NFS_PROCS) return false;
    if (k->proc == NFS_NULL) return true;
    unsigned char *status_at = k->out;
    k->out += 4;
    enum status status = nfs_call(k, not_kept);
    store32(status_at, status);
    if (status) {
        k->out = status_at + 4;
        k->count = 0;
        for (unsigned i = 0; i < absent[k->proc]; i++) out32(k, 0);
    }
    return true;
}

static bool mount_result(struct call *k) {
    uint32_t len;
    const unsigned char *path;
    switch (k->proc) {
    case 0:
    case 4: return true; /* NULL, UMNTALL */
    case 1:              /* MNT */
        path = get_opaque(k, &len, 1024);
        while (len > 1 && path[len - 1] == '/') len--;
        if (k->bad || len != strlen(EXPORT) || memcmp(path, EXPORT, len)) {
            out32(k, ERR_NOENT);
            return true;
        }
        out32(k, OK);
        out_handle(k, k->s->p.file);
        out32(k, 2); /* AUTH_SYS, AUTH_NONE */
        out32(k, 1);
        out32(k, 0);
        return true;
    case 2: out32(k, 0); return true;               /* DUMP: nobody */
    case 3: get_opaque(k, &len, 1024); return true; /* UMNT */
    case 5:                                         /* EXPORT: one, for everybody */
        out32(k, 1);
        out_opaque(k, EXPORT, strlen(EXPORT));
        out64(k, 0);
        return true;
    default: return false;
    }
}

/* Bytes [from, to) of a reply without its record marker: what was built, the payload, its padding. */
static void put_range(struct server *s, struct conn *c, const struct call *k, size_t from, size_t to, unsigned flags) {
    static const unsigned char zeros[4];
    size_t built = k->reply_len, data_end = built + k->count;
    if (from < built) {
        size_t n = (to < built ? to : built) - from;
        put_copy(c, s->p.reply + from, n, to <= built ? flags : flags & ONE_BYTE);
        from += n;
    }
    if (from < to && from < data_end) {
        size_t n = (to < data_end ? to : data_end) - from;
        put_content(s, c, k->stored, k->offset + from - built, n, to <= data_end ? flags : flags & ONE_BYTE);
        from += n;
    }
    if (from < to) put_copy(c, zeros, to - from, flags);
}

static void put_fragment(struct server *s, struct conn *c, const struct call *k, size_t from, size_t to, bool last) {
    unsigned char marker[4];
    size_t len = k->mode == GARBAGE_MARKER ? 0x7fffffff : to - from;
    store32(marker, (uint32_t)len | (last ? 0x80000000u : 0));
    put_copy(c, marker, 4, k->mode == SEGMENTS ? ONE_BYTE : 0);
    if (k->mode == CLOSE_MID) to = from + (to - from) / 2;
    put_range(s, c, k, from, to, k->mode == SEGMENTS ? ONE_BYTE : k->mode == CLOSE_MID ? CLOSE_AFTER : 0);
}

static void put_reply(struct server *s, struct conn *c, const struct call *k) {
    size_t len = k->reply_len + ((k->count + 3u) & ~3u);
    if (k->mode == NO_REPLY) return;
    if (k->mode == FRAGMENTS) { /* one ends inside the xid, one is empty, one ends inside the payload */
        size_t cut = k->count > 1 ? k->reply_len + k->count / 2 : len - 3;
        put_fragment(s, c, k, 0, 2, false);
        put_fragment(s, c, k, 2, 2, false);
        put_fragment(s, c, k, 2, cut, false);
        put_fragment(s, c, k, cut, len, true);
        return;
    }
    put_fragment(s, c, k, 0, len, true);
    if (k->mode == DUPLICATE) put_fragment(s, c, k, 0, len, true);
}

/* The body of an RPC reply whose call could be read. */
static void build_reply(struct call *k, uint32_t rpc_version, uint32_t version, size_t not_kept) {
    bool nfs = k->program == 100003, mount = k->program == 100005;
    out32(k, k->mode == WRONG_XID ? k->xid ^ 0x5a5a5a5a : k->xid);
    out32(k, 1);
    if (rpc_version != 2 || k->mode == AUTH_REJECT) {
        out32(k, 1);                        /* MSG_DENIED */
        out32(k, rpc_version == 2);         /* RPC_MISMATCH, AUTH_ERROR */
        out32(k, rpc_version == 2 ? 5 : 2); /* AUTH_TOOWEAK; lowest version */
        if (rpc_version != 2) out32(k, 2);
        return;
    }
    out32(k, 0);
    out32(k, k->mode == ODD_VERF ? 2 : 0); /* AUTH_SHORT, AUTH_NONE */
    out_opaque(k, "canned", k->mode == ODD_VERF ? 5 : 0);
    unsigned char *accept = k->out;
    uint32_t state = 0;
    out32(k, 0);
    if (!nfs && !mount)
        state = 1; /* PROG_UNAVAIL */
    else if (version != 3)
        state = 2; /* PROG_MISMATCH */
    else if (k->mode == SYSTEM_ERROR)
        state = 5; /* SYSTEM_ERR */
    else if (!(nfs ? nfs_result(k, not_kept) : mount_result(k)))
        state = 3; /* PROC_UNAVAIL */
    else if (k->bad)
        state = 4; /* GARBAGE_ARGS */
    if (!state) return;
    store32(accept, state);
    k->out = accept + 4;
    k->count = 0;
    if (state == 2) out32(k, 3), out32(k, 3);
}

static void serve(struct server *s, struct conn *c, const unsigned char *p, size_t kept, size_t total, uint64_t t) {
    struct call k = {.s = s, .at = p + 4, .end = p + kept, .out = s->p.reply};
    uint32_t len;
    k.xid = get32(&k);
    uint32_t type = get32(&k), rpc_version = get32(&k);
    k.program = get32(&k);
    uint32_t version = get32(&k);
    k.proc = get32(&k);
    for (int i = 0; i < 2; i++) { /* credential and verifier */
        get32(&k);
        get_opaque(&k, &len, 400);
    }
    if (type || k.bad) {
        violation(s, c, "a record that is not an RPC call");
        return;
    }
    bool nfs = k.program == 100003;
    uint32_t bit = nfs && k.proc < NFS_PROCS ? BIT(k.proc) : 0;
    k.mode = s->p.only && !(s->p.only & bit) ? NONE : choose_mode(s, bit);
    build_reply(&k, rpc_version, version, total - kept);
    if (k.bad || rpc_version != 2) {
        fprintf(stderr, PROGRAM ": connection %u: the call of procedure %u is garbled\n", c->id, k.proc);
        s->errors++;
    }
    k.reply_len = (uint32_t)(k.out - s->p.reply);
    put_reply(s, c, &k);
    note(s, c, k.xid, nfs ? k.proc : 100 + k.proc, k.offset, t);
}

static size_t frame(struct conn *c, const unsigned char *p, size_t have) {
    (void)c;
    if (have < 4) return 0;
    uint32_t marker = load32(p);
    /* Clients send one fragment; RFC 5531 allows more, which this server does not put together. */
    if (!(marker & 0x80000000u) || (marker & 0x7fffffff) > RECORD_LIMIT) return SIZE_MAX;
    return 4 + (size_t)(marker & 0x7fffffff);
}

static void arrived(struct server *s, struct conn *c, const unsigned char *p, size_t kept, size_t total, uint64_t t) {
    submit(s, c, p, kept, total, t);
}

static void forget(struct conn *c) {
    (void)c;
}

enum { O_FILE = O_OWN, O_RTMAX, O_WTMAX, O_ONLY };
static const struct option options[] = {
    COMMON_OPTIONS, {"file", 1, NULL, O_FILE}, {"rtmax", 1, NULL, O_RTMAX}, {"wtmax", 1, NULL, O_WTMAX},
    {"only", 1, NULL, O_ONLY},  {0}};
static const char own_help[] =
    "  --file NAME=SIZE            a file that is there (any number of them; none)\n"
    "  --rtmax N, --wtmax N        largest READ and WRITE (1m)\n"
    "  --only read|write|commit    --hostile concerns only this procedure\n"
    "The export is " EXPORT "; clients need nfsport=N and mountport=N. --store keeps the first --file, or without\n"
    "any the first file that is created (64m at most).\n";

static void add_named(struct server *s, char *text) {
    char *size = strrchr(text, '=');
    if (!size || size == text || size - text > 255 || memchr(text, '/', (size_t)(size - text)))
        die("--file %s: NAME=SIZE is needed", text);
    *size++ = '\0';
    if (find_file(s, text)) die("--file %s: given twice", text);
    if (!add_file(s, text, number("file", size, 0, INT64_MAX))) die("--file: at most %d files", MAX_FILES - 1);
}

static uint32_t only(const char *name) {
    if (!strcmp(name, "read")) return BIT(READ);
    if (!strcmp(name, "write")) return BIT(WRITE);
    if (!strcmp(name, "commit")) return BIT(COMMIT);
    die("--only %s: read, write or commit", name);
}

int main(int argc, char **argv) {
    struct server *s = grow(NULL, sizeof *s);
    memset(s, 0, sizeof *s);
    common_defaults(s);
    s->p.rtmax = s->p.wtmax = 1u << 20;
    s->p.verf = now();
    add_file(s, "/", 0)->mode = 0777;
    for (int opt; (opt = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (common_option(s, opt)) continue;
        if (opt == O_FILE)
            add_named(s, optarg);
        else if (opt == O_RTMAX)
            s->p.rtmax = (uint32_t)number("rtmax", optarg, 512, RECORD_LIMIT / 2);
        else if (opt == O_WTMAX)
            s->p.wtmax = (uint32_t)number("wtmax", optarg, 512, RECORD_LIMIT / 2);
        else if (opt == O_ONLY)
            s->p.only = only(optarg);
        else if (opt == O_HELP)
            usage(own_help);
        else
            return 1;
    }
    if (optind < argc) die("%s: not an option; --help lists them", argv[optind]);
    open_store(s, s->p.file[1].used ? s->p.file[1].size : STORE_DEFAULT);
    start(s);
    printf("port=%u\n", s->port);
    fflush(stdout);
    run(s);
    finish(s);
    printf("connections=%" PRIu64 " requests=%" PRIu64 " hostile=%" PRIu64 " errors=%" PRIu64 "\n", s->accepted,
           s->requests, s->hits, s->errors);
    free(s);
    return 0;
}
