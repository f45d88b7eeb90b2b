/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the kernel's NFS client tells of a mount, from the texts of its files in /proc. */
#ifndef BACKENDS_LOCAL_NFSMOUNT_H
#define BACKENDS_LOCAL_NFSMOUNT_H

#include <stdint.h>
#include <sys/types.h>

#include "backends/backend.h"
#include "backends/local/mountinfo.h"

#define NFSMOUNT_VOLUMES "/proc/fs/nfsfs/volumes"
#define NFSMOUNT_STATS   "/proc/self/mountstats"

/* Adds what the file may be called by an nfs:// target or by another mount: "fsid:HEX/fileid:N/server:ADDRESS". NFSv4 has
 * an fsid of two numbers, and what the same server says to NFSv3 depends on its make: each form is one more name, so
 * these names are candidates and no proof. `volumes`: the text of NFSMOUNT_VOLUMES, or NULL. */
void nfsmount_identities(const char *volumes, const struct mount *m, dev_t dev, uint64_t fileid, struct facts *f);
/* "mount_pnfs" into `out`: what mountstats says of parallel NFS on the mount at m->point. `stats`: text or NULL. */
void nfsmount_pnfs(const char *stats, const struct mount *m, struct kv *out);
/* Both, from the running kernel. `fileid` 0: the file does not exist. */
void nfsmount_facts(const struct mount *m, dev_t dev, uint64_t fileid, struct facts *f);

#endif
