/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the kernel's NFS client tells of a mount, from the texts of its files in /proc. */
#ifndef BACKENDS_LOCAL_NFSMOUNT_H
#define BACKENDS_LOCAL_NFSMOUNT_H

#include <stdint.h>
#include <sys/types.h>

#include "backends/backend.h"
#include "linux/mountinfo.h"
#include "backends/net/nfsname.h"

#define NFSMOUNT_VOLUMES "/proc/fs/nfsfs/volumes"
#define NFSMOUNT_STATS   "/proc/self/mountstats"

/* Adds what the file may be called by an nfs:// target or by another mount: "fsid:HEX/fileid:N/server:ADDRESS". NFSv4 has
 * an fsid of two numbers, and what the same server says to NFSv3 depends on its make: each form is one more name, so
 * these names are candidates and no proof. `volumes`: the text of NFSMOUNT_VOLUMES, or NULL. */
void nfsmount_identities(const char *volumes, const struct mount *m, dev_t dev, uint64_t fileid, struct facts *f);
/* Adds the name that is the same by every address of the server (net/nfsname.h); n->fsid is filled in here. */
void nfsmount_handle_name(const char *volumes, dev_t dev, struct nfsname *n, struct facts *f);
/* The server's own file handle within what name_to_handle_at() gives for a file on such a mount: the kernel's client puts
 * it behind the inode's number and type. Its length, 0 if the bytes do not have the form. */
size_t nfsmount_server_handle(const unsigned char *p, size_t len, uint64_t fileid, const unsigned char **handle);
/* "mount_pnfs" into `out`: what mountstats says of parallel NFS on the mount at m->point. `stats`: text or NULL. */
void nfsmount_pnfs(const char *stats, const struct mount *m, struct kv *out);
/* All of it, from the running kernel. `fd`: the file, -1 if it does not exist. */
void nfsmount_facts(const struct mount *m, dev_t dev, int fd, struct facts *f);

#endif
