/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The nfs backend: its keys, and the struct backend that ties control plane and data path together. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "backends/nfs/nfs.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/net/tcpwindow.h"
#include "backends/nfs/nfs_export.h"
#include "backends/nfs/nfs_ping.h"
#include "backends/nfs/nfs_split.h"
#include "base/text.h"

#define ID_MAX 0xffffffffu

extern const struct backend backend_nfs;

static const char *const engine_names[] = { "auto", "native", "libnfs", NULL };
static const char *const wait_names[] = { "block", "adaptive", "spin", NULL };

static const struct option_entry options[] = {
    { .name = "export", .type = OPTION_TEXT, .offset = offsetof(struct nfsbe_conf, export_path), .value = "/PATH",
      .help = "the export, where the longest match in the server's export list is not the one" },
    { .name = "nfsport", .type = OPTION_UINT, .offset = offsetof(struct nfsbe_conf, nfsport), .min = 0, .max = 65535,
      .value = "PORT", .help = "TCP port of NFS; 0: ask the portmapper" },
    { .name = "mountport", .type = OPTION_UINT, .offset = offsetof(struct nfsbe_conf, mountport), .min = 0,
      .max = 65535, .value = "PORT", .help = "TCP port of MOUNT; 0: ask the portmapper" },
    { .name = "uid", .type = OPTION_UINT, .offset = offsetof(struct nfsbe_conf, uid), .min = 0, .max = ID_MAX,
      .value = "N", .help = "user id sent to the server (AUTH_SYS); default: that of this process" },
    { .name = "gid", .type = OPTION_TEXT, .offset = offsetof(struct nfsbe_conf, gid), .value = "N[,N...]",
      .help = "group id sent to the server, and up to 16 further groups (AUTH_SYS); default: that of this process, "
              "and no further ones" },
    { .name = "rsize", .type = OPTION_SIZE, .offset = offsetof(struct nfsbe_conf, rsize), .min = 512, .max = 64u << 20,
      .value = "SIZE", .help = "the largest READ; larger I/Os go as several; default: the server's rtmax" },
    { .name = "wsize", .type = OPTION_SIZE, .offset = offsetof(struct nfsbe_conf, wsize), .min = 512, .max = 64u << 20,
      .value = "SIZE", .help = "the largest WRITE; larger I/Os go as several; default: the server's wtmax" },
    { .name = "nrfiles", .type = OPTION_UINT, .offset = offsetof(struct nfsbe_conf, nrfiles), .min = 1, .max = 64,
      .def = "1", .value = "N", .help = "files PATH.0 to PATH.N-1, driven together, in place of PATH" },
    { .name = "timeout", .type = OPTION_TIME, .offset = offsetof(struct nfsbe_conf, timeout), .min = NS_PER_SEC,
      .max = 3600ULL * NS_PER_SEC, .def = "30s", .value = "TIME",
      .help = "a request without an answer for so long means that the server is lost" },
    { .name = "engine", .type = OPTION_ENUM, .offset = offsetof(struct nfsbe_conf, engine), .names = engine_names,
      .def = "auto", .value = "auto|native|libnfs",
      .help = "what drives the data path: connections of our own (auto means the same), or the library" },
    { .name = "nconnect", .type = OPTION_UINT, .offset = offsetof(struct nfsbe_conf, native.nconnect), .min = 1,
      .max = 16, .value = "N", .help = "connections of each worker; default 1, or one to each of servers= (native)" },
    { .name = "servers", .type = OPTION_TEXT, .offset = offsetof(struct nfsbe_conf, servers),
      .value = "HOST[:PORT],...", .help = "addresses of the server that the data goes by, the connections in turn "
                                          "(native)" },
    { .name = "deliver", .type = OPTION_BOOL, .offset = offsetof(struct nfsbe_conf, native.deliver), .def = "yes",
      .value = "yes|no", .help = "whether data that was read is put into the request's buffer, as an application "
      "needs it; no: it is received and dropped (native)" },
    { .name = "wait", .type = OPTION_ENUM, .offset = offsetof(struct nfsbe_conf, native.wait), .names = wait_names,
      .def = "block", .value = "block|adaptive|spin",
      .help = "sleep for replies, look for 50 us before that, or never sleep while one is due (native)" },
    { .name = "ping", .type = OPTION_BOOL, .offset = offsetof(struct nfsbe_conf, ping), .def = "yes", .value = "yes|no",
      .help = "a NULL call once a second on a connection of its own, from which network and server time are estimated" },
    TCP_OPTION_ENTRIES(struct nfsbe_conf, tcp),
    { .name = NULL }
};

static int configure(const struct url *url, void *conf, struct err *err) {
    struct nfsbe_conf *c = conf;
    char path[NFS_PATH_MAX];

    if (!url->host || !*url->host)
        return err_set(err, STATUS_USAGE, "no host: nfs://HOST[:PORT]/EXPORT/PATH");
    if (url->user)
        return err_set(err, STATUS_USAGE, "NFSv3 knows no user name: uid= and gid= say who asks");
    if (strlen(url->host) >= sizeof(((struct nfsbe_server *)0)->host))
        return err_set(err, STATUS_USAGE, "the host name is too long");
    if (nfsbe_path_normal(url->path, path, err) != 0) return -1;
    c->host = strdup(url->host);
    c->path = strdup(path);
    if (!c->host || !c->path) return err_set(err, STATUS_TARGET, "no memory");
    c->nfsport = url->port;
    c->uid = geteuid();
    return 0;
}

static int check(const void *conf, struct err *err) {
    const struct nfsbe_conf *c = conf;
    struct nfsbe_servers servers;
    struct nfsbe_server who;
    char safe[300], *dir = c->export_path;
    const char *rest;

    if (c->engine == NFSBE_LIBNFS && nfsbe_needs_native(c))
        return err_set(err, STATUS_USAGE, "%s= needs engine=native: libnfs has nothing for it", nfsbe_needs_native(c));
    if (tcp_options_check(&c->tcp, err) != 0) return -1;
    if (nfsbe_gids_fill(&who, c->gid, err) != 0) return -1;
    if (nfsbe_servers_fill(&servers, c->servers, err) != 0) return -1;
    if (c->native.nconnect && c->native.nconnect < servers.n)
        return err_set(err, STATUS_USAGE, "nconnect=%llu leaves some of the %u servers= without a connection",
                       (unsigned long long)c->native.nconnect, servers.n);
    if (!dir) return 0;
    struct nfsbe_exports one = { .dir = &dir, .n = 1 };
    text_safe(safe, sizeof safe, dir, strlen(dir));
    if (dir[0] != '/') return err_set(err, STATUS_USAGE, "export=%s: an export begins with `/`", safe);
    if (nfsbe_export_match(&one, c->path, &rest) < 0) {
        char path[300];
        return err_set(err, STATUS_USAGE,
                       "export=%s is not the beginning of the path %s: the URL holds the whole path, "
                       "nfs://HOST%s/PATH",
                       safe, text_safe(path, sizeof path, c->path, strlen(c->path)), safe);
    }
    return 0;
}

static void conf_free(void *conf) {
    struct nfsbe_conf *c = conf;
    free(c->host);
    free(c->path);
    c->host = c->path = NULL;
}

/* The first one is the URL's own address, where the file was opened. */
static unsigned roads(const struct handle *h) {
    return h->servers.n ? h->servers.n + 1 : 1;
}

static int attach(struct handle *h, const struct attach_how *how, struct context **out, struct err *err) {
    *out = NULL;
    if (!h->exists) return err_set(err, STATUS_TARGET, "%s does not exist", h->where);
    if (how->write && !h->writable) return err_set(err, STATUS_TARGET, "%s was opened for reading only", h->where);
    if (how->max_io > nfsbe_piece(h, how->write)) return nfsbe_split_attach(h, how, out, err);
    return h->engine->attach(h, how, out, err);
}

static inline const struct nfsbe_engine *engine_of(const struct context *c) {
    return ((const struct nfsbe_context *)c)->engine;
}

static void detach(struct context *c) {
    if (c) engine_of(c)->detach(c);
}

static int submit(struct context *c, struct request *const *requests, unsigned n) {
    return engine_of(c)->submit(c, requests, n);
}

static int reap(struct context *c, struct completion *out, unsigned max, unsigned min, int64_t timeout_ns) {
    return engine_of(c)->reap(c, out, max, min, timeout_ns);
}

static void counters(struct context *c, struct kv *out) {
    engine_of(c)->counters(c, out);
}

/* ---- what is watched ---- */

static void watch(struct context *c, struct tcpinfo_watch *w) {
    engine_of(c)->watch(c, w);
}

static const struct track *tracks(const struct handle *h) {
    static const struct track list[] = { TCPINFO_TRACK_ENTRIES, { "outstanding", TRACK_SUM, false }, { .name = NULL } };
    (void)h;
    return list;
}

static void sample(struct context *c, double *values) {
    struct tcpinfo_watch w = { .n = 0 };
    watch(c, &w);
    tcpinfo_sample(w.fd, w.n, values);
    values[TCPINFO_TRACKS] = (double)w.outstanding;
}

/* ---- open ---- */

static int choose_window(struct handle *h, struct facts *facts, struct err *err) {
    const struct tcpwindow_rig rig = { .handle = h, .attach = attach, .detach = detach, .submit = submit, .reap = reap,
                                       .watch = watch, .settings = &h->tcp };
    return tcpwindow_choose(&rig, facts, err);
}

static int open_file(const struct open_how *how, struct handle **out, struct facts *facts, struct err *err) {
    struct err why = { .status = STATUS_OK };
    if (nfsbe_open(how, out, facts, err) != 0) return -1;
    struct handle *h = *out;
    if (!h->tcp.window || !h->exists || choose_window(h, facts, err) == 0) return 0;
    if (h->created && nfsbe_remove(h, &why) != 0)
        err_prefix(err, "the new file could not be removed again (%.400s)", why.msg);
    nfsbe_close(h);
    *out = NULL;
    return -1;
}

const struct backend backend_nfs = {
    .name = "nfs",
    .summary = "NFSv3 over TCP, without the kernel's client: nfs://HOST[:PORT]/EXPORT/PATH",
    .options = options,
    .conf_size = sizeof(struct nfsbe_conf),
    .library = nfsbe_library,
    .configure = configure,
    .check = check,
    .conf_free = conf_free,
    .open = open_file,
    .close = nfsbe_close,
    .remove = nfsbe_remove,
    .holes = nfsbe_holes,
    .roads = roads,
    .attach = attach,
    .detach = detach,
    .submit = submit,
    .reap = reap,
    .counters = counters,
    .tracks = tracks,
    .sample = sample,
    .pings = nfsbe_pings,
    .ping_open = nfsbe_ping_open,
    .ping = nfsbe_ping,
    .ping_floor = nfsbe_ping_floor,
    .ping_abort = nfsbe_ping_abort,
    .ping_close = nfsbe_ping_close,
};
