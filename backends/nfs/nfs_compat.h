/* SPDX-License-Identifier: GPL-2.0-or-later */
/* libnfs changed its raw interface twice; the rest of the backend sees one. libnfs 4 and 5: rpc_nfs3_X_async() returns
 * 0, READ delivers a pointer into the library's buffer. libnfs 6 and 7 (LIBNFS_API_V2, which their header defines):
 * rpc_nfs3_X_task() returns the call or NULL, READ goes straight into the caller's buffer, WRITE is sent out of it. */
#ifndef BACKENDS_NFS_NFS_COMPAT_H
#define BACKENDS_NFS_NFS_COMPAT_H

#include <stdint.h>
#include <sys/time.h> /* libnfs.h uses struct timeval */

#include <nfsc/libnfs.h>
#include <nfsc/libnfs-raw.h>
#include <nfsc/libnfs-raw-mount.h>
#include <nfsc/libnfs-raw-nfs.h>
#include <nfsc/libnfs-zdr.h>

#ifdef LIBNFS_API_V2
#define NFS_TASK_NAME(prefix, proc) prefix##_##proc##_task
#define NFS_RAW_CALL(prefix, proc, ...) (NFS_TASK_NAME(prefix, proc)(__VA_ARGS__) ? 0 : -1)
#define NFS_LIBRARY_MAX_IO (4u << 20)  /* libnfs 6's own limit of a reply; 7 has more */
#define NFS_READ_IN_PLACE 1
#else
#define NFS_TASK_NAME(prefix, proc) prefix##_##proc##_async
#define NFS_RAW_CALL(prefix, proc, ...) (NFS_TASK_NAME(prefix, proc)(__VA_ARGS__) == 0 ? 0 : -1)
#define NFS_LIBRARY_MAX_IO (1u << 20)  /* larger replies make libnfs 4 and 5 close the connection */
#define NFS_READ_IN_PLACE 0
#endif

/* Queues one call; 0, or -1 when the library could not (out of memory). */
#define NFS_CALL(proc, rpc, cb, args, priv) NFS_RAW_CALL(rpc_nfs3, proc, rpc, cb, args, priv)

static inline int nfsbe_compat_read(struct rpc_context *rpc, rpc_cb cb, void *buf, uint32_t len, READ3args *args,
                                    void *priv) {
#if NFS_READ_IN_PLACE
    return rpc_nfs3_read_task(rpc, cb, buf, len, args, priv) ? 0 : -1;
#else
    (void)buf;
    (void)len;
    return rpc_nfs3_read_async(rpc, cb, args, priv) == 0 ? 0 : -1;
#endif
}

/* A raw RPC context that never reconnects and has no timeouts: ours are the only ones. From libnfs 6 on it is born with a
 * timeout of 60 s, which libnfs 6 applies to every call that is out when it looks, once a second (without retransmission
 * it takes the "major" timeout for over at once); and only an nfs context around it can switch that off. *holder is then
 * what has to be destroyed. */
static inline struct rpc_context *nfsbe_compat_new(struct nfs_context **holder) {
#ifdef LIBNFS_API_V2
    *holder = nfs_init_context();
    if (!*holder) return NULL;
    nfs_set_autoreconnect(*holder, 0);
    nfs_set_timeout(*holder, -1);
    return nfs_get_rpc_context(*holder);
#else
    *holder = NULL;
    return rpc_init_context();
#endif
}

static inline void nfsbe_compat_destroy(struct rpc_context *rpc, struct nfs_context *holder) {
    if (holder) nfs_destroy_context(holder);
    else if (rpc) rpc_destroy_context(rpc);
}

#endif
