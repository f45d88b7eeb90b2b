/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The NFS backend's ping: procedure NULL, which a server answers without looking at any file, on a connection that
 * carries nothing else. */
#ifndef BACKENDS_NFS_NFS_PING_H
#define BACKENDS_NFS_NFS_PING_H

#include "backends/nfs/nfs.h"

extern const char *const nfsbe_pings[]; /* struct backend's `pings`, and the calls beside it */
int nfsbe_ping_open(struct handle *h, struct pinger **out, struct err *err);
int64_t nfsbe_ping(struct pinger *p, unsigned kind, int64_t timeout_ns);
int64_t nfsbe_ping_floor(struct pinger *p);
void nfsbe_ping_abort(struct pinger *p);
void nfsbe_ping_close(struct pinger *p);

/* Over a connected socket, which is the pinger's own from now on; the first call has the number behind `xid`. NULL: no
 * memory. */
struct pinger *nfsbe_ping_over(int fd, uint32_t xid);

#endif
