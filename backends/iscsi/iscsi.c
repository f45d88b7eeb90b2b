/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The iscsi backend: its keys, and the struct backend that ties control plane and data path together. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "backends/iscsi/iscsi.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

#define PORT_DEFAULT 3260
#define INITIATOR_PREFIX "iqn.2026-01.org.samedisk:"

extern const struct backend backend_iscsi;

static const char *const digests[] = { "none", "crc32c", NULL };

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
    { .name = "timeout", .type = OPTION_TIME, .offset = offsetof(struct iscsibe_conf, timeout), .min = NS_PER_SEC,
      .max = 3600ULL * NS_PER_SEC, .def = "30s", .value = "TIME",
      .help = "a command without an answer for so long means that the target is lost" },
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

static int check(const void *conf, struct err *err) {
    const struct iscsibe_conf *c = conf;
    struct iscsibe_login login;
    char safe[ISCSI_NAME_SIZE];

    text_safe(safe, sizeof safe, c->initiator, strlen(c->initiator));
    if (strncmp(c->initiator, "iqn.", 4) != 0 && strncmp(c->initiator, "eui.", 4) != 0 &&
        strncmp(c->initiator, "naa.", 4) != 0)
        return err_set(err, STATUS_USAGE, "initiator=%s: an initiator's name begins with iqn., eui. or naa.", safe);
    if (iscsibe_login_fill(&login, c, err) != 0) return -1;
    iscsibe_login_wipe(&login);
    return 0;
}

static void conf_free(void *conf) {
    struct iscsibe_conf *c = conf;
    if (c->password) explicit_bzero(c->password, strlen(c->password));
    free(c->password);
    free(c->host);
    c->password = c->host = NULL;
}

static int attach(struct handle *h, const struct attach_how *how, struct context **out, struct err *err) {
    *out = NULL;
    if (how->write && !h->writable) return err_set(err, STATUS_TARGET, "%s was opened for reading only", h->where);
    return iscsibe_engine_libiscsi.attach(h, how, out, err);
}

static void detach(struct context *c) {
    if (c) iscsibe_engine_libiscsi.detach(c);
}

static int submit(struct context *c, struct request *const *requests, unsigned n) {
    return iscsibe_engine_libiscsi.submit(c, requests, n);
}

static int reap(struct context *c, struct completion *out, unsigned max, unsigned min, int64_t timeout_ns) {
    return iscsibe_engine_libiscsi.reap(c, out, max, min, timeout_ns);
}

static void counters(struct context *c, struct kv *out) {
    iscsibe_engine_libiscsi.counters(c, out);
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
    .open = iscsibe_open,
    .close = iscsibe_close,
    .holes = iscsibe_holes,
    .attach = attach,
    .detach = detach,
    .submit = submit,
    .reap = reap,
    .counters = counters,
};
