/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/local/fs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"

/* Magic numbers are part of the kernel's ABI; those that linux/magic.h lacks are here too, so all are spelled out. */
static const struct { uint32_t magic; enum fs_class class; } magics[] = {
    {0x01021994, FS_MEMORY},  /* tmpfs */
    {0x858458f6, FS_MEMORY},  /* ramfs */
    {0x958458f6, FS_MEMORY},  /* hugetlbfs */
    {0x00006969, FS_NFS},
    {0x65735546, FS_FUSE},
    {0x794c7630, FS_OVERLAY},
    {0xff534d42, FS_NETWORK}, /* cifs */
    {0xfe534d42, FS_NETWORK}, /* smb3 */
    {0x00c36400, FS_NETWORK}, /* ceph */
    {0x01021997, FS_NETWORK}, /* 9p */
    {0x0bd00bd0, FS_NETWORK}, /* lustre */
    {0x47504653, FS_NETWORK}, /* gpfs */
    {0x01161970, FS_NETWORK}, /* gfs2 */
    {0x7461636f, FS_NETWORK}, /* ocfs2 */
    {0x19830326, FS_NETWORK}, /* beegfs */
    {0x5346414f, FS_NETWORK}, /* afs */
    {0x00009fa0, FS_PSEUDO},  /* proc */
    {0x62656572, FS_PSEUDO},  /* sysfs */
    {0x0027e0eb, FS_PSEUDO},  /* cgroup */
    {0x63677270, FS_PSEUDO},  /* cgroup2 */
    {0x00001cd1, FS_PSEUDO},  /* devpts */
    {0x64626720, FS_PSEUDO},  /* debugfs */
    {0x74726163, FS_PSEUDO},  /* tracefs */
    {0x73636673, FS_PSEUDO},  /* securityfs */
    {0xde5e81e4, FS_PSEUDO},  /* efivarfs */
    {0xcafe4a11, FS_PSEUDO},  /* bpf */
    {0x19800202, FS_PSEUDO},  /* mqueue */
    {0x62656570, FS_PSEUDO},  /* configfs */
};

enum fs_class fs_classify(uint64_t magic, const char *type) {
    if (!strcmp(type, "devtmpfs")) return FS_PSEUDO; /* has the magic of tmpfs */
    if (!strcmp(type, "virtiofs")) return FS_NETWORK; /* has that of FUSE: the host's cache is in the path */
    if (!strcmp(type, "fuseblk")) return FS_FUSE;
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++)
        if (magics[i].magic == (uint32_t)magic) return magics[i].class;
    return FS_LOCAL;
}

/* Those options of a mount that change what is measured, as facts of their own. */
static void option_facts(enum fs_class class, const struct mount *m, struct kv *out) {
    static const char *const nfs[] = {
        "vers", "proto", "rsize", "wsize", "nconnect", "max_connect", "addr", "timeo", "retrans", "sec", "local_lock",
        "sync", "hard", "soft", "softerr", "noac", "acregmax", "lookupcache", NULL
    };
    static const char *const fuse[] = {"max_read", "blksize", NULL};
    static const char *const network[] = {
        "vers", "rsize", "wsize", "bsize", "cache", "max_channels", "trans", "msize", NULL
    };
    const char *const *names = class == FS_NFS ? nfs : class == FS_FUSE ? fuse : class == FS_NETWORK ? network : NULL;
    char value[256], key[48], safe[300];
    uint64_t number;
    struct err err;
    for (; names && *names; names++) {
        if (!mountinfo_option(m->super, *names, value, sizeof value)) continue;
        snprintf(key, sizeof key, "mount_%s", *names);
        if (!*value) kv_bool(out, key, true);
        else if (units_parse_uint(value, &number, &err) == 0) kv_uint(out, key, number);
        else kv_text(out, key, "%s", text_safe(safe, sizeof safe, value, strlen(value)));
    }
}

static void mount_facts(enum fs_class class, const struct mount *m, struct kv *out) {
    char safe[2400];
    kv_text(out, "fs_type", "%s", text_safe(safe, sizeof safe, m->type, strlen(m->type)));
    kv_text(out, "mount_source", "%s", text_safe(safe, sizeof safe, m->source, strlen(m->source)));
    kv_text(out, "mount_point", "%s", text_safe(safe, sizeof safe, m->point, strlen(m->point)));
    kv_text(out, "mount_options", "%s", text_safe(safe, sizeof safe, m->options, strlen(m->options)));
    kv_text(out, "fs_options", "%s", text_safe(safe, sizeof safe, m->super, strlen(m->super)));
    if (!strncmp(m->type, "fuse.", 5))
        kv_text(out, "fuse_subtype", "%s", text_safe(safe, sizeof safe, m->type + 5, strlen(m->type + 5)));
    option_facts(class, m, out);
}

static void class_warnings(enum fs_class class, const char *type, struct kv *w) {
    switch (class) {
    case FS_MEMORY:
        kv_text(w, "memory",
                "%s keeps files in memory: the number is that of memory copies, done inside submit; fsync and "
                "sync= do nothing there",
                type);
        break;
    case FS_NFS:
        kv_text(w, "kernel-nfs", "this goes through the kernel's NFS client, with its own splitting into rsize/wsize; "
                "an nfs:// target measures the server without it");
        break;
    case FS_FUSE:
        kv_text(w, "fuse",
                "a user-space file system (%s) is in the path: its daemon's threads, caches and what it makes "
                "of fsync are part of the number",
                type);
        break;
    case FS_NETWORK:
        kv_text(w, "network-fs",
                "%s is a network, cluster or shared file system: where data is cached and when it is safe "
                "is its own affair",
                type);
        break;
    case FS_OVERLAY:
        kv_text(w, "overlay", "an overlay: the file system of its upper folder does the work, and the first write to a "
                "file from a lower one copies it whole");
        break;
    default:
        break;
    }
    if (!strcmp(type, "zfs"))
        kv_text(w, "zfs", "zfs: O_DIRECT does not keep reads from the ARC in every version and dataset; compare the "
                "working set with memory");
    if (!strcmp(type, "btrfs"))
        kv_text(w, "btrfs", "btrfs copies on write: overwriting spreads a file over the disk, unless it has the nocow "
                "attribute");
}

/* The kernel's client with O_DIRECT returns no write before the server has said that it is on stable storage: FILE_SYNC
 * where one request does, UNSTABLE and a COMMIT where it takes several. With parallel NFS it depends on the layout. */
static void nfs_durability(const struct mount *m, struct facts *f) {
    char version[16] = "", wsize[32] = "";
    const struct kv_item *pnfs = kv_find(&f->negotiated, "mount_pnfs");
    if (m) mountinfo_option(m->super, "vers", version, sizeof version);
    if (m) mountinfo_option(m->super, "wsize", wsize, sizeof wsize);
    bool old = !strcmp(version, "3") || !strcmp(version, "2") || !strcmp(version, "4.0");
    if (!old && !(*version && pnfs && !strcmp(pnfs->text, "not configured"))) {
        f->volatile_cache = ANSWER_UNKNOWN;
        return;
    }
    f->volatile_cache = ANSWER_NO;
    kv_text(&f->negotiated, "nfs_writes", "up to wsize%s%.31s%s FILE_SYNC, larger ones UNSTABLE with COMMIT before they "
            "are done: on stable storage when answered, if the server speaks the truth", *wsize ? " (" : "", wsize,
            *wsize ? " bytes)" : "");
}

static bool mounted_sync(const struct mount *m) {
    char value[8];
    return m && (mountinfo_option(m->super, "sync", value, sizeof value) ||
                 mountinfo_option(m->options, "sync", value, sizeof value));
}

static void durability(enum fs_class class, const struct mount *m, bool direct, struct facts *f) {
    f->dpofua = ANSWER_YES;
    f->volatile_cache = ANSWER_YES; /* the disk's cache, or the page cache; and metadata is not yet written */
    f->can_flush = true;
    if (class == FS_MEMORY) {
        f->dpofua = ANSWER_NO;
        f->can_flush = false; /* fsync succeeds and vouches for nothing */
    } else if (class == FS_FUSE || class == FS_NETWORK) {
        f->dpofua = ANSWER_UNKNOWN; /* a server without an fsync of its own answers success too */
        if (direct) f->volatile_cache = ANSWER_UNKNOWN;
    } else if (class == FS_NFS && direct) {
        nfs_durability(m, f);
    }
}

void fs_facts(enum fs_class class, const struct mount *m, bool direct, struct facts *f) {
    const char *type = m ? m->type : "file system";
    char safe[80], data[32];
    text_safe(safe, sizeof safe, type, strlen(type));
    if (m) mount_facts(class, m, &f->negotiated);
    durability(class, m, direct, f);
    class_warnings(class, safe, &f->warnings);
    if (m && !strcmp(type, "ext4") && mountinfo_option(m->super, "data", data, sizeof data) && !strcmp(data, "journal"))
        kv_text(&f->warnings, "data-journal",
                "data=journal: every write goes to the journal first, and O_DIRECT is ignored");
    if (m && (mountinfo_option(m->super, "nobarrier", data, sizeof data) ||
              (mountinfo_option(m->super, "barrier", data, sizeof data) && !strcmp(data, "0")) ||
              (class == FS_OVERLAY && mountinfo_option(m->super, "volatile", data, sizeof data)))) {
        f->dpofua = ANSWER_UNKNOWN;
        kv_text(&f->warnings, "no-barrier",
                "mounted so that fsync does not flush caches (nobarrier, or an overlay that is "
                "volatile): writes that were called stable may be lost");
    }
    /* Every write is one with O_SYNC then. */
    if ((class == FS_LOCAL || class == FS_NFS) && f->dpofua == ANSWER_YES && mounted_sync(m)) f->volatile_cache = ANSWER_NO;
    if (!direct)
        kv_text(&f->warnings, "page-cache", "the page cache of this host is in the path: reads of what it holds never "
                "reach the storage, and writes are done when they are %s",
                f->volatile_cache == ANSWER_NO ? "stored (mounted sync)" : "in memory");
}
