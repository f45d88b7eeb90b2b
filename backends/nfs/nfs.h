/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the parts of the NFS backend share. Control plane: nfs_open.c, nfs_facts.c, nfs_create.c over nfs_calls.c over
 * nfs_rpc.c. Data path: one struct nfsbe_engine, which needs of the handle no more than where the server is and the
 * file's NFS file handle. Names begin with nfsbe_, because nfs_open() and its like are libnfs's own: a function of ours
 * by that name would be called by the library in place of its own. */
#ifndef BACKENDS_NFS_NFS_H
#define BACKENDS_NFS_NFS_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/backend.h"

#define NFS_FH_MAX 64
#define NFS_PROGRAM_ID 100003
#define NFS_MOUNT_PROGRAM_ID 100005

enum nfsbe_choice { NFSBE_AUTO, NFSBE_NATIVE, NFSBE_LIBNFS };
enum nfsbe_wait { NFSBE_WAIT_BLOCK, NFSBE_WAIT_ADAPTIVE, NFSBE_WAIT_SPIN };

/* What only engine=native can do otherwise than by default. */
struct nfsbe_native {
    uint64_t nconnect;   /* connections of each context */
    bool deliver;        /* READ's data goes into the requests' buffers */
    int wait;            /* enum nfsbe_wait */
};

struct nfsbe_conf {
    char *host;          /* from the URL */
    char *path;          /* from the URL, normal form */
    char *export_path;   /* export= */
    uint64_t nfsport, mountport; /* 0: ask the portmapper */
    uint64_t uid, gid;
    uint64_t timeout;    /* ns */
    int engine;          /* enum nfsbe_choice */
    struct nfsbe_native native;
};

/* An NFSv3 file handle. */
struct nfsbe_fh {
    unsigned len;
    char data[NFS_FH_MAX];
};

/* Where and as whom to connect. */
struct nfsbe_server {
    char host[256];      /* numeric once it was connected to, so that every connection goes to the same server */
    unsigned port;       /* 0: ask the portmapper */
    uint32_t uid, gid;
    int64_t timeout;     /* ns, of one call */
};

struct handle {
    struct nfsbe_server server;
    struct nfsbe_fh file, dir;
    char name[256];      /* in dir */
    char where[512];     /* "host:/export/path" made safe, for messages */
    uint64_t fsid, fileid, size;
    bool exists, created, writable;
    const struct nfsbe_engine *engine;
    struct nfsbe_native native;
};

/* What drives the data path: nfs_native.c, nfs_libnfs.c. */
struct nfsbe_engine {
    const char *name;
    uint32_t max_io;     /* its own limit of one request */
    int (*attach)(struct handle *h, const struct attach_how *how, struct context **out, struct err *err);
    void (*detach)(struct context *c);
    int (*submit)(struct context *c, struct request *const *requests, unsigned n);
    int (*reap)(struct context *c, struct completion *out, unsigned max, unsigned min, int64_t timeout_ns);
    void (*counters)(struct context *c, struct kv *out);
};

/* The first member of every engine's context: by it the calls find their engine. */
struct nfsbe_context {
    const struct nfsbe_engine *engine;
};

extern const struct nfsbe_engine nfsbe_engine_native, nfsbe_engine_libnfs;
const char *nfsbe_library(void);

/* Is something asked for that engine=libnfs cannot do? */
bool nfsbe_only_native(const struct nfsbe_native *n);
/* Can engine=native talk to the server? One connection like those of the data path, one call. */
int nfsbe_native_probe(const struct handle *h, struct kv *negotiated, struct err *err);
/* Puts h->engine by the key engine=, and what it means into the facts. */
int nfsbe_engine_choose(struct handle *h, const struct nfsbe_conf *conf, struct facts *facts, struct err *err);

int nfsbe_open(const struct open_how *how, struct handle **out, struct facts *facts, struct err *err);
void nfsbe_close(struct handle *h);
int nfsbe_remove(struct handle *h, struct err *err);
int nfsbe_holes(struct handle *h, uint64_t offset, uint64_t len, double *share);

#endif
