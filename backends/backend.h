/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The contract between the core and everything that moves data: one struct backend each. tests/contract runs one body of
 * tests over all of them; backends/skeleton.c is where a new one starts.
 *
 *   configure --- open ----------------------------------------- close          control path: may block, fills struct err
 *                   |  per run, in each worker thread:           |
 *                   +-- attach -- [submit / reap]* -- detach ----+               data path: negative errno, no malloc, no lock
 *
 * A handle is one opened object (file, LUN, device); after open it does not change, and several threads may attach to it at
 * once. A context belongs to the thread that attached it: own connections, own rings, slots preallocated.
 * Backends never exit, abort or print, and never use another backend. Library headers stay inside their file. */
#ifndef BACKENDS_BACKEND_H
#define BACKENDS_BACKEND_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/kinds.h"
#include "base/kv.h"
#include "base/url.h"
#include "option/option.h"

struct handle;  /* each backend's own */
struct context; /* each backend's own */

/* ---- control path ---- */

/* From now on, what this thread has to wait for on the control path (connecting, logging in, asking, detach) is given up
 * soon after the flag is set, with any error. NULL: never. The flag must live until the next call. */
void backend_heed(const volatile sig_atomic_t *stop);
bool backend_stopped(void);

enum open_mode {
    OPEN_READ,   /* never writes, never creates. A file that does not exist: success with facts->exists false, and the handle
                    then only serves close */
    OPEN_WRITE,  /* for reading and writing what exists; a block device O_EXCL */
    OPEN_CREATE  /* a file that does not exist, exclusively (O_EXCL|O_NOFOLLOW, NFS EXCLUSIVE or GUARDED), with create_size bytes */
};

enum object_kind { OBJECT_FILE, OBJECT_LUN, OBJECT_DEVICE, OBJECT_NULL };
enum answer { ANSWER_UNKNOWN, ANSWER_NO, ANSWER_YES };

#define FACTS_IDENTITIES 8

/* The truth about one opened object, as far as it could be asked. Constant after open. */
struct facts {
    bool exists;
    enum object_kind kind;
    uint64_t size;              /* bytes */
    uint64_t allocated;         /* bytes that have storage behind them; UINT64_MAX: unknown */
    uint32_t block;             /* offsets and lengths must be multiples of it (1 where anything goes) */
    uint32_t mem_align;         /* of buffers; a power of two, 1 where anything goes */
    uint32_t max_io;            /* bytes of the largest I/O that goes out as one request; larger ones are refused by the plan */
    uint32_t max_depth;         /* per context; 0: no limit of its own */
    bool kernel_aio;            /* each request of a context is one of fs.aio-max-nr, which this client's programs share */
    bool read_only;             /* would refuse writes */
    enum answer dpofua;         /* can a single write be made durable (FUA, stable WRITE, RWF_DSYNC)? */
    enum answer volatile_cache; /* is a plain completed write in a volatile cache (WCE, queue/write_cache)? */
    bool can_flush;
    uint64_t fs_free, fs_total; /* OBJECT_FILE: of the file system, for unprivileged use; fs_total 0: unknown */
    /* "fsid:.../fileid:..." | "naa.6006..." "eui..." "t10..." "serial..." (VPD 83, then 80) | "dev:8:16" | "file:MAJ:MIN:INO";
     * [0] is the one to show and to consent by. A loop device lists its backing file's identity as [1], a file on a kernel
     * NFS mount what nfs:// may call it. */
    char identity[FACTS_IDENTITIES][128];
    dev_t rdev;                 /* OBJECT_DEVICE: the device; else 0 */
    uint64_t incarnation;       /* OBJECT_DEVICE: another one whenever another disk or medium has come under this name; 0: unknown */
    char root_fs;               /* OBJECT_FILE: 1 if it lies on the machine's root file system */
    char in_use[256];           /* not "": words why this is never to be written (reservation, .lck- beside it, O_EXCL refused) */
    char summary[280];          /* one line for people: "NFSv3 TCP 10.0.0.1:/vol1 vm.dat, 4 GiB" */
    uint64_t delay_ns;          /* delay=: latency that is to be added by a filter above; 0: none */
    char engine[64];            /* what drives it: "libnfs", "libiscsi", "libaio O_DIRECT", "helper threads" */
    struct kv negotiated;       /* all that was asked and answered: rtmax, block limits, mount options, ... */
    struct kv warnings;         /* key: code; text: what the user should know */
};

struct open_how {
    const void *conf;
    enum open_mode mode;
    uint64_t create_size;       /* OPEN_CREATE */
    struct clock *clock;        /* outlives the handle */
};

/* Bytes that samedisk has written to the object, and that no other object holds. Who has reason to doubt that it still
 * reaches the same one reads them again: names alone may be another's, too. They lie in one logical block. */
struct seal {
    uint64_t offset;
    const void *bytes; /* not owned; do not change while a context with them lives */
    size_t len;        /* at most SEAL_MAX; 0: there are none */
};
#define SEAL_MAX 256u

struct attach_how {
    unsigned depth;             /* requests lent at the same time; their slot numbers are 0 .. depth-1 */
    uint32_t max_io;            /* bytes of the largest request */
    void *buffers;              /* depth buffers of `stride` bytes each, page-aligned; request.buf lies in buffer[slot] */
    size_t stride;
    unsigned first_more;        /* `more` not NULL, where a filter adds requests of its own: from this slot on, request.buf */
    void *more;                 /* lies in buffer[slot - first_more] of this memory instead */
    size_t more_stride;
    struct clock *clock;        /* the stamp's clock */
    struct kinds *kinds;        /* where errors of this context get their kind */
    bool write;                 /* writes may come (the handle was opened for it) */
    bool looks;                 /* what is read is looked at, and must come into the buffers whatever deliver= says */
    unsigned road;              /* not 0: by this one of the roads alone, counted from 1 */
    struct seal seal;           /* on the object, while the context lives */
};

/* ---- data path ---- */

/* Preallocated by the engine, lent to the backend from the submit that takes it to the reap that returns it. */
struct request {
    /* set by the engine, read by the backend */
    void *buf;
    uint64_t offset;
    uint32_t len;
    uint32_t slot;
    uint8_t op;                 /* enum io_op; a FLUSH has no buf, offset, len */
    uint8_t sync;               /* enum io_sync; writes */
    /* the engine's own */
    bool in_window;
    int64_t t_due, t_submit;
};

struct completion {
    struct request *request;
    int64_t result;             /* bytes moved (0 for a flush), or negative errno */
    int64_t t_done;             /* stamped with clock_now() at one place in each backend: right after the system call that
                                   brought it; one stamp serves all that the call brought */
    uint16_t kind;              /* if result < 0: index into kinds */
    bool stable;                /* write: the target answered that this data is on stable storage */
};

/* ---- what can be watched while a load runs ---- */

/* One value that a context can be asked for about once a second. Several connections, members or workers become one by
 * `merge`. A cumulative one only grows while the context lives: its series holds what each interval added. */
enum track_merge { TRACK_SUM, TRACK_MIN, TRACK_MAX, TRACK_MEAN };
struct track {
    const char *name;           /* unit last: "tcp_rtt_ns"; NULL ends a list */
    enum track_merge merge;
    bool cumulative;
};
#define BACKEND_TRACKS 32       /* at most so many in a list */

/* One road to the server beside those of the load, to ask it for an answer that needs no data: its own connection or
 * session. Belongs to one thread. Each backend's own. */
struct pinger;

struct backend {
    const char *name;           /* "nfs" */
    const char *summary;        /* one line */
    const struct option_entry *options; /* access keys; fields of the configuration */
    size_t conf_size;
    /* Library and its version for --version and results: "libnfs 4.0.0". NULL: none. */
    const char *(*library)(void);
    /* Host, port, path, user of the URL into a zeroed configuration that has its defaults; keys come later through options. */
    int (*configure)(const struct url *url, void *conf, struct err *err);
    /* Cross-checks all keys, before any connection. May be NULL. */
    int (*check)(const void *conf, struct err *err);
    void (*conf_free)(void *conf); /* what configure allocated; options are freed by option_free. May be NULL */

    /* On failure nothing is left behind. Errors say what was tried, the library's or server's own words, and what would help;
     * status STATUS_TARGET. `facts` is zeroed by the caller, who frees its lists (facts_free). */
    int (*open)(const struct open_how *how, struct handle **out, struct facts *facts, struct err *err);
    void (*close)(struct handle *h);
    /* Puts the settings of this host in force that access keys ask for, and what they were and are into `facts`; close puts
     * them back. At most once, when runs are about to begin. Errors: STATUS_TARGET. NULL: there are none. */
    int (*adjust)(struct handle *h, struct facts *facts, struct err *err);
    /* Deletes the file that this handle created, if it is still the same file. NULL: nothing can be deleted. */
    int (*remove)(struct handle *h, struct err *err);
    /* Share (0..1) of [offset, offset+len) without storage behind it (holes, unmapped). NULL or -1: unknown. Blocks, but
     * not beyond `until` (CLOCK_MONOTONIC) nor when backend_stopped(): then what was learned is not enough, -1. */
    int (*holes)(struct handle *h, uint64_t offset, uint64_t len, int64_t until, double *share);
    /* Requests that reached the device since boot (block statistics); any thread. NULL: counters() has "wire_ios",
     * the requests of a context that ended well, without what the protocol sends beside them or again. */
    int (*wire_ios)(struct handle *h, uint64_t *ios);

    /* How many ways the data goes that could lead to different objects: portals, servers. That their names agree is
     * looked at by attach; whether they are one is for the core to find out, by what is read through each. NULL: one. */
    unsigned (*roads)(const struct handle *h);
    /* Where its thread was away for a second, a context for writing asks by itself whether the object is still the same. */
    bool asks_after_standstill;
    /* In the worker thread. May block (connect, login). Slots are preallocated here. */
    int (*attach)(struct handle *h, const struct attach_how *how, struct context **out, struct err *err);
    /* Cancels and drains: afterwards no lent request or buffer is touched any more. */
    void (*detach)(struct context *c);
    /* Takes and sends the first k of the n requests and returns k; one system call for the batch where possible. Never blocks:
     * what has no first byte in the socket or kernel is not taken. 0 is "no room now: reap first". Negative errno: the context
     * is lost (nothing of this call was taken; what was lent before still comes back through reap). */
    int (*submit)(struct context *c, struct request *const *requests, unsigned n);
    /* Up to `max` completions; waits until `min` (<= max) are there or timeout_ns has passed (0: polls; never longer, also
     * when signals come: EINTR returns what is there). While bytes are pending it keeps sending and receiving. A lost context
     * first returns every lent request with an error; when none is left, negative errno. */
    int (*reap)(struct context *c, struct completion *out, unsigned max, unsigned min, int64_t timeout_ns);
    /* Cumulative protocol counters and gauges of this context: "wire_ios", "writes_unstable", "commits", "retries", ...
     * Owner thread, at most once a second. NULL: none. */
    void (*counters)(struct context *c, struct kv *out);
    /* What sample() tells, in its order; the same for all contexts of a handle. NULL: nothing. */
    const struct track *(*tracks)(const struct handle *h);
    /* The present values, NAN where unknown. Owner thread, once a second at most: a few microseconds, no malloc. */
    void (*sample)(struct context *c, double *values);

    /* ---- protocol ping: all NULL where no question answers without touching the data (block, file, null) ---- */
    /* Kinds of ping, NULL-terminated: "null_rpc"; "nop_out", "test_unit_ready". */
    const char *const *pings;
    /* Blocks for a few seconds at most; errors STATUS_TARGET. 0 with *out NULL: the user does not want it. */
    int (*ping_open)(struct handle *h, struct pinger **out, struct err *err);
    /* One round trip of kind `kind`: ns from just before the send to just after the receive. Blocks until then, at most
     * timeout_ns: -ETIMEDOUT, and the late answer is not taken for that of a later ping. Other negative errno: the pinger
     * is only good for closing. */
    int64_t (*ping)(struct pinger *p, unsigned kind, int64_t timeout_ns);
    /* The smallest round trip that the connection's TCP has seen, ns: the network's share. 0: unknown. */
    int64_t (*ping_floor)(struct pinger *p);
    /* From any thread: a ping() that waits ends at once, with an error. */
    void (*ping_abort)(struct pinger *p);
    void (*ping_close)(struct pinger *p);
};

void facts_free(struct facts *f);

/* The registry: the only place that names backends. */
const struct backend *backend_for_url(const struct url *url, struct err *err); /* NULL: unknown scheme, or left out of this build */
const struct backend *const *backend_all(void);                               /* NULL-terminated */

#endif
