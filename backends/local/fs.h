/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What kind of file system a path lies on, and what that means for numbers. */
#ifndef BACKENDS_LOCAL_FS_H
#define BACKENDS_LOCAL_FS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "backends/backend.h"
#include "linux/mountinfo.h"

enum fs_class {
    FS_LOCAL,     /* ext4, xfs, btrfs, zfs, ...: on a disk of this machine */
    FS_MEMORY,    /* tmpfs, ramfs */
    FS_NFS,       /* the kernel's client */
    FS_FUSE,
    FS_NETWORK,   /* other network and cluster file systems */
    FS_OVERLAY,
    FS_PSEUDO     /* proc, sysfs, cgroup, ...: no place for data */
};

/* By the magic number of statfs, and by the mount's type ("" if unknown) where the magic does not tell. */
enum fs_class fs_classify(uint64_t magic, const char *type);
/* Durability answers; type, source, mount options and the parameters that matter to `negotiated`; what people should
 * know to `warnings`. Of parallel NFS f->negotiated tells before ("mount_pnfs"). `m` may be NULL. `direct`: O_DIRECT is in force. */
void fs_facts(enum fs_class class, const struct mount *m, bool direct, struct facts *f);

#endif
