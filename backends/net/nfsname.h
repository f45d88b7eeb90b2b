/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A name for a file on an NFS server that is the same by every address of the server and by every client: from the file
 * handle, which the server makes, together with what changes with every write. Two files of one name are hardly two;
 * two names say nothing. */
#ifndef BACKENDS_NET_NFSNAME_H
#define BACKENDS_NET_NFSNAME_H

#include <stddef.h>
#include <stdint.h>

struct nfsname {
    uint64_t fsid, fileid;      /* as NFSv3 has them */
    const unsigned char *handle;
    size_t handle_len;
    uint64_t ctime_ns, size;
};

/* "nfs-handle:769591d6059a06fd" */
const char *nfsname(const struct nfsname *n, char *buf, size_t len);

#endif
