/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the parts of the iSCSI backend share. Control plane: iscsi_open.c over iscsi_session.c (one command at a time, over
 * iscsi_link.c's own login, or the library's with engine=libiscsi), with the pure parsers of iscsi_facts.c. Data path: one
 * struct iscsibe_engine. Names begin with iscsibe_, because iscsi_ is libiscsi's own prefix: a function of ours by one of
 * its names would be called by the library in place of its own. */
#ifndef BACKENDS_ISCSI_ISCSI_H
#define BACKENDS_ISCSI_ISCSI_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "backends/backend.h"
#include "backends/iscsi/iscsi_facts.h"
#include "backends/iscsi/iscsi_keys.h"
#include "backends/iscsi/iscsi_recheck.h"
#include "backends/net/tcp_options.h"
#include "backends/net/tcpinfo.h"

#define ISCSIBE_MAX_IO (16u << 20)

struct iscsibe_conf {
    char *host;                 /* from the URL */
    uint64_t port;
    char target[ISCSI_NAME_SIZE];
    unsigned lun;
    char *password;             /* from the URL; wiped by conf_free */
    char *user;                 /* from the URL or user= */
    char *password_file;
    char *target_user, *target_password_file;
    char *initiator;
    uint64_t timeout;           /* ns */
    int header_digest;          /* 0 none, 1 crc32c */
    int data_digest;
    int engine;                 /* ISCSIBE_ENGINE_... */
    int wait;                   /* of the native engine: block, adaptive, spin */
    bool deliver, immediate_data, initial_r2t;
    uint64_t first_burst, max_burst, max_recv; /* 0: the engine's own choice */
    uint64_t max_outstanding_r2t;
    bool nonoptimized;          /* ALUA active/non-optimized paths may be used */
    uint64_t sessions;          /* of each context; 0: one for each portal */
    char *portals;              /* "HOST[:PORT],..."; NULL: the URL's alone */
    uint64_t rr;                /* I/Os until the next path; 0: not given */
    bool ping;                  /* protocol pings beside the load */
    struct tcp_options tcp;
};
enum { ISCSIBE_ENGINE_AUTO, ISCSIBE_ENGINE_NATIVE, ISCSIBE_ENGINE_LIBISCSI };

#define ISCSIBE_PORTAL_SIZE  (ISCSI_NAME_SIZE + 16)
#define ISCSIBE_PORTALS_MAX  16u
#define ISCSIBE_SESSIONS_MAX 64u

/* The ways by which a context reaches the unit: session i goes to portal[i % n_portals], I/O number i to session
 * (i / every) % sessions. Behind them, up to n_roads, stands the URL's portal where no data goes by it: the unit was
 * opened there, so it has to be the same one. */
struct iscsibe_roads {
    unsigned sessions, n_portals, n_roads, every;
    unsigned own; /* where the URL's portal stands */
    char portal[ISCSIBE_PORTALS_MAX + 1][ISCSIBE_PORTAL_SIZE]; /* printable */
    /* Numeric, once connected to: a name may stand for several machines, and all sessions must go to the same one. */
    char address[ISCSIBE_PORTALS_MAX + 1][ISCSIBE_PORTAL_SIZE];
};

/* Where and as whom to log in. Holds secrets: wiped by iscsibe_login_wipe. */
struct iscsibe_login {
    char portal[ISCSIBE_PORTAL_SIZE]; /* "host:port", "[v6]:port" */
    char target[ISCSI_NAME_SIZE], initiator[ISCSI_NAME_SIZE];
    char user[ISCSI_NAME_SIZE], password[ISCSI_NAME_SIZE];
    char target_user[ISCSI_NAME_SIZE], target_password[ISCSI_NAME_SIZE];
    unsigned lun;               /* as the user names it */
    uint64_t wire;              /* as on the wire: the eight bytes that the target's list has for it */
    int64_t timeout;
    bool library;               /* engine=libiscsi: it logs in */
    struct iscsibe_offer offer; /* libiscsi knows only header_digest, initial_r2t and immediate_data */
    const struct tcp_settings *tcp; /* of connections of our own; NULL: the kernel's defaults */
};

struct handle {
    struct iscsibe_login login; /* its portal is the URL's, where the unit was opened */
    struct iscsibe_roads roads; /* of the data */
    struct tcp_settings tcp;    /* of the data's connections */
    bool nonoptimized;
    char where[400];            /* "10.0.0.1:3260 iqn... LUN 1" made safe, for messages */
    char identity[FACTS_IDENTITIES][128];
    uint64_t size;
    uint32_t block;
    bool writable, dpofua, vpd83, vpd80;
    enum answer volatile_cache;
    uint8_t sync_op;            /* SYNCHRONIZE CACHE(16) or (10), as the unit knows it; 0: neither */
    struct iscsibe_unit unit;   /* the same as identity, size, block, vpd83 and vpd80; the data path's */
    const struct iscsibe_engine *engine;
    bool deliver;               /* what is read comes into the request's buffer */
    bool ping;
    int wait;
    uint32_t isid_base;         /* 24 random bits; with isid_next, which starts anywhere, the session's own ISID */
    atomic_uint isid_next;
};

/* iscsi_secret.c: from conf, password files and the environment. */
int iscsibe_login_fill(struct iscsibe_login *login, const struct iscsibe_conf *conf, struct err *err);
void iscsibe_login_wipe(struct iscsibe_login *login);
/* iscsi_roads.c: from the keys, and the portal of the URL. Errors: USAGE. */
int iscsibe_roads_fill(struct iscsibe_roads *roads, const struct iscsibe_conf *conf, const char *portal,
                       struct err *err);

struct iscsibe_engine {
    const char *name;
    int (*attach)(struct handle *h, const struct attach_how *how, struct context **out, struct err *err);
    void (*detach)(struct context *c);
    int (*submit)(struct context *c, struct request *const *requests, unsigned n);
    int (*reap)(struct context *c, struct completion *out, unsigned max, unsigned min, int64_t timeout_ns);
    void (*counters)(struct context *c, struct kv *out);
    void (*watch)(struct context *c, struct tcpinfo_watch *w); /* adds */
};

/* Every engine's struct context begins with this, set by its attach. */
struct iscsibe_context {
    const struct iscsibe_engine *engine;
};

extern const struct iscsibe_engine iscsibe_engine_libiscsi, iscsibe_engine_native;
/* Into h->engine and facts: libiscsi if the user wants it, else the native one, which has to get in at every portal. */
int iscsibe_choose_engine(struct handle *h, const struct iscsibe_conf *conf, struct facts *f, struct err *err);
const char *iscsibe_needs_native(const struct iscsibe_conf *conf); /* the key that libiscsi has nothing for, or NULL */
/* Where to connect for road i. */
/* Which portal is the backend's road number 1 (the URL's own, where the unit was opened and looked at), 2, ... */
unsigned iscsibe_road_portal(const struct iscsibe_roads *roads, unsigned road);
const char *iscsibe_road_address(const struct iscsibe_roads *roads, unsigned i);
/* iscsi_attach.c: the next session's ISID, of the random type, so that it is never that of another session to the same
 * target. Any thread. */
void iscsibe_next_isid(struct handle *h, uint8_t isid[6]);
const char *iscsibe_library(void);

int iscsibe_open(const struct open_how *how, struct handle **out, struct facts *facts, struct err *err);
void iscsibe_close(struct handle *h);
int iscsibe_holes(struct handle *h, uint64_t offset, uint64_t len, int64_t until, double *share);

#endif
