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
#include "backends/net/tcp_options.h"
#include "backends/net/tcpinfo.h"

#define NFS_FH_MAX 64
#define NFS_PROGRAM_ID 100003
#define NFS_MOUNT_PROGRAM_ID 100005
#define NFSBE_PORTMAP_PROGRAM_ID 100000
#define NFSBE_GROUPS_MAX 16u /* of AUTH_SYS, besides the gid */

enum nfsbe_choice { NFSBE_AUTO, NFSBE_NATIVE, NFSBE_LIBNFS };
enum nfsbe_wait { NFSBE_WAIT_BLOCK, NFSBE_WAIT_ADAPTIVE, NFSBE_WAIT_SPIN };

/* What only engine=native can do otherwise than by default. */
struct nfsbe_native {
    uint64_t nconnect;   /* connections of each context; in a configuration 0: not given */
    bool deliver;        /* READ's data goes into the requests' buffers */
    int wait;            /* enum nfsbe_wait */
};

struct nfsbe_conf {
    char *host;          /* from the URL */
    char *path;          /* from the URL, normal form */
    char *export_path;   /* export= */
    char *servers;       /* servers= */
    uint64_t nfsport, mountport; /* 0: ask the portmapper */
    uint64_t uid;
    char *gid;           /* gid=N[,N...]; NULL: that of this process */
    uint64_t timeout;    /* ns */
    uint64_t nrfiles;    /* files that the URL stands for: the command line makes a configuration of each */
    uint64_t rsize, wsize; /* bytes of one RPC; 0: what the server allows */
    int engine;          /* enum nfsbe_choice */
    bool ping;           /* protocol pings beside the load */
    struct nfsbe_native native;
    struct tcp_options tcp;
};

/* Where the data connections go, in turn: connection i to address i modulo n. n 0: to where the control plane is. */
#define NFSBE_SERVERS_MAX 16u
struct nfsbe_servers {
    unsigned n;
    struct nfsbe_address {
        char host[256];  /* numeric once it was connected to */
        unsigned port;   /* 0: that of the control plane */
    } at[NFSBE_SERVERS_MAX];
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
    uint32_t groups[NFSBE_GROUPS_MAX];
    unsigned n_groups;
    int64_t timeout;     /* ns, of one call */
    int64_t whole;       /* ns: timeout= where `timeout` is a share of it, because others are left to be tried; else 0 */
    struct tcp_settings source; /* of bind= alone, for every connection that is not the data's */
};

struct handle {
    struct nfsbe_server server;
    struct nfsbe_servers servers;
    struct nfsbe_fh file, dir;
    char name[256];      /* in dir */
    char where[512];     /* "host:/export/path" made safe, for messages */
    uint64_t fsid, fileid, size;
    uint32_t rsize, wsize; /* bytes of the largest READ and WRITE */
    bool exists, created, writable, ping;
    const struct nfsbe_engine *engine;
    struct nfsbe_native native;
    struct tcp_settings tcp; /* of the data's connections */
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
    void (*watch)(struct context *c, struct tcpinfo_watch *w);
};

/* The first member of every engine's context: by it the calls find their engine. */
struct nfsbe_context {
    const struct nfsbe_engine *engine;
};

extern const struct nfsbe_engine nfsbe_engine_native, nfsbe_engine_libnfs;
const char *nfsbe_library(void);

/* The key that asks for what engine=libnfs cannot do, or NULL. */
const char *nfsbe_needs_native(const struct nfsbe_conf *conf);
/* Can engine=native talk to the server, or to each of h->servers, whose addresses become numeric? One connection like
 * those of the data path, one call. */
int nfsbe_native_probe(struct handle *h, struct facts *facts, struct err *err);
/* Puts h->engine by the key engine=, and what it means into the facts. */
int nfsbe_engine_choose(struct handle *h, const struct nfsbe_conf *conf, struct facts *facts, struct err *err);

/* nfs_servers.c: from the key's text, NULL: none. Errors: USAGE. */
int nfsbe_servers_fill(struct nfsbe_servers *out, const char *text, struct err *err);
void nfsbe_servers_words(const struct nfsbe_servers *s, char *buf, size_t len);

/* Is what GETATTR says of the handle's file handle still the file that was opened: a regular one, by these numbers, and
 * not smaller than it was? Asked on every connection, and whenever there is doubt, before anything is written. */
int nfsbe_same_file(const struct handle *h, unsigned type, uint64_t fsid, uint64_t fileid, uint64_t size,
                    struct err *err);
/* Words for a GETATTR that failed. */
#define NFSBE_GONE "the file is gone or was replaced"
#define NFSBE_NOT_SAID "after a stale file handle the server did not say whether the file is still the same"

/* nfs_who.c: gid and groups from the key's text. Errors: USAGE. */
int nfsbe_gids_fill(struct nfsbe_server *server, const char *text, struct err *err);
/* "uid 0 gid 0 groups 4,5" */
const char *nfsbe_who_words(const struct nfsbe_server *server, char *buf, size_t len);

int nfsbe_open(const struct open_how *how, struct handle **out, struct facts *facts, struct err *err);
void nfsbe_close(struct handle *h);
int nfsbe_remove(struct handle *h, struct err *err);
int nfsbe_holes(struct handle *h, uint64_t offset, uint64_t len, int64_t until, double *share);

#endif
