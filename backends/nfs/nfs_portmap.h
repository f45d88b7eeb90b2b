/* SPDX-License-Identifier: GPL-2.0-or-later */
/* At which ports a program is: asked of the portmapper (RFC 1833), version 2, and where that is refused, as by servers
 * with IPv6 or rpcbind alone, versions 4 and 3. */
#ifndef BACKENDS_NFS_NFS_PORTMAP_H
#define BACKENDS_NFS_NFS_PORTMAP_H

#include "backends/nfs/nfs_rpc.h"

struct nfsbe_ports {
    unsigned tcp, udp;              /* 0: not registered */
    char address[64];               /* of the portmapper that answered, numeric */
};

/* Version 3 of the program. -1: no portmapper answers, or it refuses; err says what was tried. */
int nfsbe_portmap(const struct nfsbe_server *server, unsigned program, struct nfsbe_ports *ports, struct err *err);

/* The port of a universal address ("192.0.2.1.8.1", "::.8.1"); 0: "" (not registered); -1: it is none. Pure. */
int nfsbe_portmap_uaddr(const char *text);

#endif
