/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The iscsi backend: its keys, and the struct backend that ties control plane and data path together. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "backends/iscsi/iscsi.h"

#include <ctype.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/iscsi/iscsi_ping.h"
#include "backends/net/tcpwindow.h"
#include "base/text.h"

#define PORT_DEFAULT 3260
#define INITIATOR_PREFIX "iqn.2026-01.org.samedisk:"

extern const struct backend backend_iscsi;

static const char *const digests[] = { "none", "crc32c", NULL };
static const char *const engines[] = { "auto", "native", "libiscsi", NULL };
static const char *const waits[] = { "block", "adaptive", "spin", NULL };

static const struct option_entry options[] = {
    { .name = "initiator", .type = OPTION_TEXT, .offset = offsetof(struct iscsibe_conf, initiator), .value = "IQN",
      .help = "initiator name; default " INITIATOR_PREFIX "HOSTNAME, never that of the host's own initiator" },
    { .name = "user", .type = OPTION_TEXT, .offset = offsetof(struct iscsibe_conf, user), .value = "NAME",
      .help = "CHAP user, also USER@ in the URL or SAMEDISK_CHAP_USER in the environment" },
    { .name = "password_file", .type = OPTION_TEXT, .offset = offsetof(struct iscsibe_conf, password_file),
      .value = "FILE", .help = "file whose first line is the CHAP password; also SAMEDISK_CHAP_PASSWORD in the "
                               "environment" },
    { .name = "target_user", .type = OPTION_TEXT, .offset = offsetof(struct iscsibe_conf, target_user), .value = "NAME",
      .help = "mutual CHAP: the user by which the target has to answer" },
    { .name = "target_password_file", .type = OPTION_TEXT,
      .offset = offsetof(struct iscsibe_conf, target_password_file), .value = "FILE",
      .help = "mutual CHAP: its password; also SAMEDISK_CHAP_TARGET_PASSWORD in the environment" },
    { .name = "header_digest", .type = OPTION_ENUM, .offset = offsetof(struct iscsibe_conf, header_digest),
      .def = "none", .names = digests, .value = "none|crc32c", .help = "checksum of iSCSI headers" },
    { .name = "data_digest", .type = OPTION_ENUM, .offset = offsetof(struct iscsibe_conf, data_digest), .def = "none",
      .names = digests, .value = "none|crc32c", .help = "checksum of iSCSI data; native engine" },
    { .name = "engine", .type = OPTION_ENUM, .offset = offsetof(struct iscsibe_conf, engine), .def = "auto",
      .names = engines, .value = "auto|native|libiscsi",
      .help = "who logs in and moves the data: our own code (auto), or the library" },
    { .name = "deliver", .type = OPTION_BOOL, .offset = offsetof(struct iscsibe_conf, deliver), .def = "yes",
      .value = "yes|no", .help = "copy what is read into the request's buffer, as an application would have it; "
                                 "no: drop it after reception; native engine" },
    { .name = "wait", .type = OPTION_ENUM, .offset = offsetof(struct iscsibe_conf, wait), .def = "block",
      .names = waits, .value = "block|adaptive|spin",
      .help = "wait for replies asleep, asleep after 50us, or never asleep (needs a core to itself); native engine" },
    { .name = "immediate_data", .type = OPTION_BOOL, .offset = offsetof(struct iscsibe_conf, immediate_data),
      .def = "yes", .value = "yes|no", .help = "offer ImmediateData: a write's first data goes with its command" },
    { .name = "initial_r2t", .type = OPTION_BOOL, .offset = offsetof(struct iscsibe_conf, initial_r2t), .def = "no",
      .value = "yes|no", .help = "offer InitialR2T: a write's data waits to be asked for" },
    { .name = "first_burst", .type = OPTION_SIZE, .offset = offsetof(struct iscsibe_conf, first_burst), .min = 512,
      .max = 16777215, .value = "SIZE", .help = "FirstBurstLength to offer; default 256k; native engine" },
    { .name = "max_burst", .type = OPTION_SIZE, .offset = offsetof(struct iscsibe_conf, max_burst), .min = 512,
      .max = 16777215, .value = "SIZE", .help = "MaxBurstLength to offer; default 1m; native engine" },
    { .name = "max_recv", .type = OPTION_SIZE, .offset = offsetof(struct iscsibe_conf, max_recv), .min = 512,
      .max = 16777215, .value = "SIZE", .help = "MaxRecvDataSegmentLength that we declare; default 1m; native engine" },
    { .name = "max_outstanding_r2t", .type = OPTION_UINT, .offset = offsetof(struct iscsibe_conf, max_outstanding_r2t),
      .min = 1, .max = 64, .def = "1", .value = "N", .help = "MaxOutstandingR2T to offer; native engine" },
    { .name = "nonoptimized", .type = OPTION_BOOL, .offset = offsetof(struct iscsibe_conf, nonoptimized), .def = "no",
      .value = "yes|no", .help = "use a path that ALUA calls active/non-optimized, which goes by the other controller" },
    { .name = "sessions", .type = OPTION_UINT, .offset = offsetof(struct iscsibe_conf, sessions), .min = 1,
      .max = ISCSIBE_SESSIONS_MAX, .value = "N",
      .help = "sessions of each worker, the portals in turn; default one for each portal; native engine" },
    { .name = "portals", .type = OPTION_TEXT, .offset = offsetof(struct iscsibe_conf, portals),
      .value = "HOST[:PORT],...", .help = "portals that the data goes by, all roads to the same LUN; "
                                          "default the URL's; native engine" },
    { .name = "rr", .type = OPTION_UINT, .offset = offsetof(struct iscsibe_conf, rr), .min = 1, .max = 1000000000,
      .value = "K", .help = "with several sessions: go on to the next one every K I/Os; default 1000" },
    { .name = "timeout", .type = OPTION_TIME, .offset = offsetof(struct iscsibe_conf, timeout), .min = NS_PER_SEC,
      .max = 3600ULL * NS_PER_SEC, .def = "30s", .value = "TIME",
      .help = "a command without an answer for so long means that the target is lost" },
    { .name = "ping", .type = OPTION_BOOL, .offset = offsetof(struct iscsibe_conf, ping), .def = "yes",
      .value = "yes|no", .help = "a NOP-Out and a TEST UNIT READY in turn, once a second on a session of their own, "
                                 "from which network and server time are estimated" },
    TCP_OPTION_ENTRIES(struct iscsibe_conf, tcp),
    { .name = NULL }
};

/* An IQN's own part may hold a-z, 0-9, '-', '.' and ':'. */
static char *default_initiator(void) {
    char host[256] = "", name[sizeof INITIATOR_PREFIX + sizeof host];
    size_t n = sizeof INITIATOR_PREFIX - 1;

    memcpy(name, INITIATOR_PREFIX, n);
    if (gethostname(host, sizeof host - 1) != 0 || !*host) snprintf(host, sizeof host, "unnamed");
    for (const char *p = host; *p && n < 223; p++) {
        unsigned char ch = (unsigned char)tolower((unsigned char)*p);
        name[n++] = isascii(ch) && (isalnum(ch) || ch == '-' || ch == '.') ? (char)ch : '-';
    }
    name[n] = '\0';
    return strdup(name);
}

static int configure(const struct url *url, void *conf, struct err *err) {
    struct iscsibe_conf *c = conf;

    if (!url->host || !*url->host)
        return err_set(err, STATUS_USAGE, "no host: iscsi://[USER%%PASSWORD@]HOST[:PORT]/IQN/LUN");
    if (iscsibe_parse_path(url->path, c->target, &c->lun, err) != 0) return -1;
    c->port = url->port ? url->port : PORT_DEFAULT;
    c->host = strdup(url->host);
    c->initiator = default_initiator();
    if (url->user) c->user = strdup(url->user);
    if (url->password) c->password = strdup(url->password);
    if (!c->host || !c->initiator || (url->user && !c->user) || (url->password && !c->password))
        return err_set(err, STATUS_TARGET, "no memory");
    return 0;
}

const char *iscsibe_needs_native(const struct iscsibe_conf *c) {
    if (c->data_digest) return "data_digest";
    if (c->sessions > 1) return "sessions";
    if (c->portals) return "portals";
    if (c->rr) return "rr";
    if (!c->deliver) return "deliver";
    if (c->wait) return "wait";
    if (c->first_burst) return "first_burst";
    if (c->max_burst) return "max_burst";
    if (c->max_recv) return "max_recv";
    return c->max_outstanding_r2t > 1 ? "max_outstanding_r2t" : tcp_options_given(&c->tcp);
}

static int check_engine(const struct iscsibe_conf *c, struct err *err) {
    const char *key = iscsibe_needs_native(c);
    if (c->engine == ISCSIBE_ENGINE_LIBISCSI && key)
        return err_set(err, STATUS_USAGE, "%s= needs engine=native: libiscsi has nothing for it", key);
    /* Between the PDUs of one read, tgt would overwrite data with padding: seen on the wire. */
    if (c->max_recv % 4)
        return err_set(err, STATUS_USAGE,
                       "max_recv= must be a multiple of 4: targets are known to spoil data otherwise");
    if (c->first_burst && c->max_burst && c->first_burst > c->max_burst)
        return err_set(err, STATUS_USAGE, "first_burst= must not be larger than max_burst=");
    return 0;
}

static int check(const void *conf, struct err *err) {
    const struct iscsibe_conf *c = conf;
    struct iscsibe_login login;
    struct iscsibe_roads roads;
    char safe[ISCSI_NAME_SIZE];

    text_safe(safe, sizeof safe, c->initiator, strlen(c->initiator));
    if (strncmp(c->initiator, "iqn.", 4) != 0 && strncmp(c->initiator, "eui.", 4) != 0 &&
        strncmp(c->initiator, "naa.", 4) != 0)
        return err_set(err, STATUS_USAGE, "initiator=%s: an initiator's name begins with iqn., eui. or naa.", safe);
    if (check_engine(c, err) != 0 || tcp_options_check(&c->tcp, err) != 0 || iscsibe_login_fill(&login, c, err) != 0) return -1;
    iscsibe_login_wipe(&login);
    return iscsibe_roads_fill(&roads, c, login.portal, err);
}

static void conf_free(void *conf) {
    struct iscsibe_conf *c = conf;
    if (c->password) explicit_bzero(c->password, strlen(c->password));
    free(c->password);
    free(c->host);
    c->password = c->host = NULL;
}

static unsigned roads(const struct handle *h) {
    return h->roads.n_roads;
}

static int attach(struct handle *h, const struct attach_how *how, struct context **out, struct err *err) {
    *out = NULL;
    if (how->write && !h->writable) return err_set(err, STATUS_TARGET, "%s was opened for reading only", h->where);
    return h->engine->attach(h, how, out, err);
}

static inline const struct iscsibe_engine *engine_of(struct context *c) {
    return ((struct iscsibe_context *)c)->engine;
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
    static const struct track list[] = { TCPINFO_TRACK_ENTRIES,
                                         { "outstanding", TRACK_SUM, false },
                                         { "command_window_limited_ns", TRACK_SUM, true },
                                         { "r2t_waits", TRACK_SUM, true },
                                         { .name = NULL } };
    (void)h;
    return list;
}

static void sample(struct context *c, double *values) {
    struct tcpinfo_watch w = { .n = 0 };
    watch(c, &w);
    tcpinfo_sample(w.fd, w.n, values);
    values[TCPINFO_TRACKS] = (double)w.outstanding;
    values[TCPINFO_TRACKS + 1] = w.window_closed_ns < 0 ? NAN : (double)w.window_closed_ns;
    values[TCPINFO_TRACKS + 2] = w.r2t_waits < 0 ? NAN : (double)w.r2t_waits;
}

/* ---- open ---- */

static int open_lun(const struct open_how *how, struct handle **out, struct facts *facts, struct err *err) {
    if (iscsibe_open(how, out, facts, err) != 0) return -1;
    struct handle *h = *out;
    const struct tcpwindow_rig rig = { .handle = h, .attach = attach, .detach = detach, .submit = submit, .reap = reap,
                                       .watch = watch, .settings = &h->tcp };
    if (!h->tcp.window || tcpwindow_choose(&rig, facts, err) == 0) return 0;
    iscsibe_close(h);
    *out = NULL;
    return -1;
}

const struct backend backend_iscsi = {
    .name = "iscsi",
    .summary = "iSCSI, without the kernel's initiator: iscsi://[USER%PASSWORD@]HOST[:PORT]/IQN/LUN",
    .options = options,
    .conf_size = sizeof(struct iscsibe_conf),
    .library = iscsibe_library,
    .configure = configure,
    .check = check,
    .conf_free = conf_free,
    .open = open_lun,
    .close = iscsibe_close,
    .holes = iscsibe_holes,
    .roads = roads,
    .asks_after_standstill = true,
    .attach = attach,
    .detach = detach,
    .submit = submit,
    .reap = reap,
    .counters = counters,
    .tracks = tracks,
    .sample = sample,
    .pings = iscsibe_pings,
    .ping_open = iscsibe_ping_open,
    .ping = iscsibe_ping,
    .ping_floor = iscsibe_ping_floor,
    .ping_abort = iscsibe_ping_abort,
    .ping_close = iscsibe_ping_close,
};
