/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who logs in: names, and secrets from the URL, a file or the environment. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "backends/iscsi/iscsi.h"
#include "base/savefile.h"
#include "base/text.h"

#define ENV_USER "SAMEDISK_CHAP_USER"
#define ENV_PASSWORD "SAMEDISK_CHAP_PASSWORD"
#define ENV_TARGET_PASSWORD "SAMEDISK_CHAP_TARGET_PASSWORD"

static int put(char to[ISCSI_NAME_SIZE], const char *from, const char *what, struct err *err) {
    if (strlen(from) >= ISCSI_NAME_SIZE)
        return err_set(err, STATUS_USAGE, "%s has more than %d bytes", what, ISCSI_NAME_SIZE - 1);
    memcpy(to, from, strlen(from) + 1);
    return 0;
}

/* The first line of a file. */
static int from_file(char to[ISCSI_NAME_SIZE], const char *path, const char *what, struct err *err) {
    char *data = NULL;
    size_t len;
    if (savefile_read(path, 4096, &data, &len, err) != 0) return -1;
    data[strcspn(data, "\r\n")] = '\0';
    int rc = *data ? put(to, data, what, err)
                   : err_set(err, STATUS_USAGE, "the first line of the file for the %s is empty", what);
    explicit_bzero(data, len);
    free(data);
    return rc;
}

static int own_secret(struct iscsibe_login *l, const struct iscsibe_conf *c, struct err *err) {
    const char *user = c->user ? c->user : getenv(ENV_USER), *password = c->password;

    if (user && put(l->user, user, "the CHAP user", err) != 0) return -1;
    if (!*l->user) {
        if (c->password_file || password)
            return err_set(err, STATUS_USAGE,
                           "a CHAP password needs a user: iscsi://USER@HOST/..., user= or " ENV_USER);
        return 0;
    }
    if (c->password_file && !password) return from_file(l->password, c->password_file, "CHAP password", err);
    if (!password) password = getenv(ENV_PASSWORD);
    if (!password || !*password)
        return err_set(err, STATUS_USAGE, "the CHAP user %s has no password: password_file=, or " ENV_PASSWORD
                       " in the environment", c->user ? "of the URL" : "of " ENV_USER);
    return put(l->password, password, "the CHAP password", err);
}

/* With one secret for both directions, who does not know it could have us answer our own challenge (RFC 7143, 9.2.1). */
static int check_two(const struct iscsibe_login *l, struct err *err) {
    if (strcmp(l->password, l->target_password) != 0) return 0;
    return err_set(err, STATUS_USAGE, "mutual CHAP: the target's password is the same as our own: they must differ");
}

static int target_secret(struct iscsibe_login *l, const struct iscsibe_conf *c, struct err *err) {
    if (!c->target_user) {
        if (c->target_password_file) return err_set(err, STATUS_USAGE, "target_password_file= needs target_user=");
        return 0;
    }
    if (!*l->user) return err_set(err, STATUS_USAGE, "target_user=: mutual CHAP needs a CHAP user of ours, too");
    if (put(l->target_user, c->target_user, "target_user=", err) != 0) return -1;
    if (c->target_password_file) {
        int rc = from_file(l->target_password, c->target_password_file, "target's CHAP password", err);
        return rc == 0 ? check_two(l, err) : rc;
    }
    const char *password = getenv(ENV_TARGET_PASSWORD);
    if (!password || !*password)
        return err_set(err, STATUS_USAGE, "target_user= has no password: target_password_file=, or " ENV_TARGET_PASSWORD
                       " in the environment");
    int rc = put(l->target_password, password, "the target's CHAP password", err);
    return rc == 0 ? check_two(l, err) : rc;
}

/* What a login offers. The native engine's bursts: the first is that of most initiators, the largest spares R2Ts. */
static void fill_offer(struct iscsibe_offer *o, const struct iscsibe_conf *c) {
    o->header_digest = c->header_digest != 0;
    o->data_digest = c->data_digest != 0;
    o->immediate_data = c->immediate_data;
    o->initial_r2t = c->initial_r2t;
    o->max_burst = c->max_burst ? (uint32_t)c->max_burst : 1u << 20;
    o->first_burst = c->first_burst ? (uint32_t)c->first_burst : 256u << 10;
    if (!c->first_burst && o->first_burst > o->max_burst) o->first_burst = o->max_burst;
    o->max_recv = c->max_recv ? (uint32_t)c->max_recv : 1u << 20;
    o->max_r2t = c->max_outstanding_r2t ? (uint32_t)c->max_outstanding_r2t : 1;
}

int iscsibe_login_fill(struct iscsibe_login *l, const struct iscsibe_conf *c, struct err *err) {
    bool v6 = strchr(c->host, ':') != NULL;

    memset(l, 0, sizeof *l);
    if (strlen(c->host) >= ISCSI_NAME_SIZE) return err_set(err, STATUS_USAGE, "the host name is too long");
    snprintf(l->portal, sizeof l->portal, "%s%.255s%s:%u", v6 ? "[" : "", c->host, v6 ? "]" : "", (unsigned)c->port);
    memcpy(l->target, c->target, sizeof l->target);
    l->lun = c->lun;
    l->wire = iscsibe_lun_wire(c->lun);
    l->timeout = (int64_t)c->timeout;
    l->library = c->engine == ISCSIBE_ENGINE_LIBISCSI;
    fill_offer(&l->offer, c);
    if (put(l->initiator, c->initiator, "initiator=", err) != 0 || own_secret(l, c, err) != 0 ||
        target_secret(l, c, err) != 0) {
        iscsibe_login_wipe(l);
        return -1;
    }
    return 0;
}

void iscsibe_login_wipe(struct iscsibe_login *l) {
    explicit_bzero(l->password, sizeof l->password);
    explicit_bzero(l->target_password, sizeof l->target_password);
}
