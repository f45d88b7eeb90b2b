/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/iscsi/iscsi_session.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "backends/iscsi/iscsi_again.h"
#include "backends/iscsi/iscsi_link.h"
#include "backends/net/sock.h"
#include "base/text.h"

#define TICK_NS (100 * NS_PER_MS)
#define LOGOUT_NS NS_PER_SEC
#define REDIRECTS_MAX 4

/* ---- waiting ---- */

static void keep_words(struct iscsibe_session *s, struct iscsi_context *iscsi) {
    const char *words = iscsi_get_error(iscsi);
    size_t n = words ? strlen(words) : 0;
    while (n > 0 && words[n - 1] == '\n') n--;
    text_safe(s->words, sizeof s->words, words ? words : "", n);
}

static void arrived(struct iscsi_context *iscsi, int status, void *data, void *private_data) {
    struct iscsibe_session *s = private_data;
    (void)data;
    if (!s->waiting) return; /* given up */
    s->waiting = false;
    s->status = status;
    if (status == SCSI_STATUS_ERROR) keep_words(s, iscsi); /* what comes after it may overwrite them */
}

static void begin(struct iscsibe_session *s) {
    s->waiting = true;
    s->status = SCSI_STATUS_ERROR;
    s->words[0] = '\0';
}

/* True when the callback came. */
static bool finish(struct iscsibe_session *s, int64_t timeout, const char **why) {
    int64_t end = sock_now() + timeout;
    *why = NULL;
    while (s->waiting) {
        int64_t left = end - sock_now();
        if (left <= 0) {
            s->dead = true;
            s->waiting = false;
            *why = "no answer in time (timeout=)";
            return false;
        }
        int events = iscsi_which_events(s->iscsi);
        int got = sock_wait(iscsi_get_fd(s->iscsi), (short)events, left < TICK_NS ? left : TICK_NS);
        int pass = got > 0 ? got & (POLLIN | POLLOUT) : 0;
        if (got > 0 && (got & (POLLERR | POLLHUP | POLLNVAL))) pass |= events & (POLLIN | POLLOUT);
        if (iscsi_service(s->iscsi, pass) < 0) s->dead = true;
        if (s->dead && s->waiting) {
            s->waiting = false;
            return false;
        }
    }
    /* without reconnection a lost connection cancels what was out */
    if (s->status == (int)SCSI_STATUS_CANCELLED) s->dead = true;
    return !s->dead;
}

static const char *words_of(struct iscsibe_session *s, char *buf, size_t len) {
    if (!*s->words) keep_words(s, s->iscsi);
    /* "Can not reconnect" is what the library says of a lost connection that it was told not to bring back. */
    return *s->words && !strstr(s->words, "reconnect") ? s->words : sock_why(iscsi_get_fd(s->iscsi), buf, len);
}

const char *iscsibe_session_why(const struct iscsibe_session *s, char *buf, size_t len) {
    char peer[100], words[120];
    const char *error = iscsi_get_error(s->iscsi);
    if (!error || iscsibe_status_words(error)) error = "";
    text_safe(words, sizeof words, error, strlen(error));
    snprintf(buf, len, "%s%s%s", sock_why(iscsi_get_fd(s->iscsi), peer, sizeof peer), *words ? "; libiscsi: " : "",
             words);
    return buf;
}

/* ---- login ---- */

/* The library keeps copies of the secrets for reconnecting, which never happens here; writing longer ones over them is
 * the only way to wipe those. */
static void wipe_library(struct iscsi_context *iscsi) {
    char filler[ISCSI_NAME_SIZE];
    memset(filler, 'x', sizeof filler - 1);
    filler[sizeof filler - 1] = '\0';
    iscsi_set_target_username_pwd(iscsi, filler, filler);
    iscsi_set_target_username_pwd(iscsi, "", "");
    iscsi_set_initiator_username_pwd(iscsi, filler, filler);
    iscsi_set_initiator_username_pwd(iscsi, "", "");
}

static struct iscsi_context *context_new(const struct iscsibe_login *login, enum iscsi_session_type type) {
    struct iscsi_context *iscsi = iscsi_create_context(login->initiator);
    struct { uint32_t rnd; uint16_t qualifier; } isid;

    if (!iscsi) return NULL;
    iscsi_set_log_level(iscsi, 0); /* LIBISCSI_DEBUG would print */
    iscsi_set_log_fn(iscsi, NULL);
    /* Same initiator name and same ISID as another session to the target would throw that one out. */
    if (getrandom(&isid, sizeof isid, 0) != (ssize_t)sizeof isid ||
        iscsi_set_isid_random(iscsi, isid.rnd & 0xffffff, isid.qualifier) != 0 ||
        iscsi_set_session_type(iscsi, type) != 0 ||
        (type == ISCSI_SESSION_NORMAL && iscsi_set_targetname(iscsi, login->target) != 0) ||
        iscsi_set_header_digest(iscsi, login->crc32c ? ISCSI_HEADER_DIGEST_CRC32C : ISCSI_HEADER_DIGEST_NONE) != 0 ||
        iscsi_set_immediate_data(iscsi, login->offer.immediate_data ? ISCSI_IMMEDIATE_DATA_YES
                                                                    : ISCSI_IMMEDIATE_DATA_NO) != 0 ||
        iscsi_set_initial_r2t(iscsi, login->offer.initial_r2t ? ISCSI_INITIAL_R2T_YES : ISCSI_INITIAL_R2T_NO) != 0 ||
        (*login->user && iscsi_set_initiator_username_pwd(iscsi, login->user, login->password) != 0) ||
        (*login->target_user &&
         iscsi_set_target_username_pwd(iscsi, login->target_user, login->target_password) != 0)) {
        iscsi_destroy_context(iscsi);
        return NULL;
    }
    iscsi_set_noautoreconnect(iscsi, 1); /* a reconnection sends again what may have been done, and hides the outage */
    iscsi_set_reconnect_max_retries(iscsi, 0);
    return iscsi;
}

static int connect_portal(struct iscsibe_session *s, const char *portal, struct err *err) {
    const char *why = NULL;
    char words[300], safe[300];

    begin(s);
    text_safe(safe, sizeof safe, portal, strlen(portal));
    if (iscsi_connect_async(s->iscsi, portal, arrived, s) == 0 && finish(s, s->login->timeout, &why) &&
        s->status == SCSI_STATUS_GOOD) return 0;
    s->waiting = false;
    return err_set(err, STATUS_TARGET, "connecting to portal %s: %s", safe,
                   why ? why : words_of(s, words, sizeof words));
}

static int login_here(struct iscsibe_session *s, unsigned *login_status, struct err *err) {
    const char *why = NULL;
    char words[300];

    begin(s);
    if (iscsi_login_async(s->iscsi, arrived, s) == 0 && finish(s, s->login->timeout, &why)) {
        if (s->status == SCSI_STATUS_GOOD) return 0;
        if (s->status == SCSI_STATUS_REDIRECT) return 1;
    }
    s->waiting = false;
    if (!why) {
        why = words_of(s, words, sizeof words);
        *login_status = iscsibe_login_status(why);
    }
    return err_set(err, STATUS_TARGET, "login: %s", why);
}

static int log_in(struct iscsibe_session *s, unsigned *login_status, struct err *err) {
    char portal[ISCSI_NAME_SIZE + 16], safe[300];

    snprintf(portal, sizeof portal, "%s", s->login->portal);
    for (int i = 0; i <= REDIRECTS_MAX; i++) {
        if (connect_portal(s, portal, err) != 0) return -1;
        int rc = login_here(s, login_status, err);
        if (rc < 0) return err_prefix(err, "portal %s", text_safe(safe, sizeof safe, portal, strlen(portal)));
        if (rc == 0) return 0;
        const char *to = iscsi_get_target_address(s->iscsi);
        if (!to || !*to) return err_set(err, STATUS_TARGET, "login: redirected, but not told where to");
        snprintf(portal, sizeof portal, "%s", to);
        iscsi_disconnect(s->iscsi);
    }
    return err_set(err, STATUS_TARGET, "login: redirected more than %d times", REDIRECTS_MAX);
}

static int session_start(const struct iscsibe_login *login, enum iscsi_session_type type, struct iscsibe_session **out,
                         unsigned *login_status, struct err *err) {
    struct iscsibe_session *s = calloc(1, sizeof *s);

    *out = NULL;
    *login_status = 0;
    if (!s) return err_set(err, STATUS_TARGET, "no memory");
    s->login = login;
    s->iscsi = context_new(login, type);
    if (!s->iscsi) {
        free(s);
        return err_set(err, STATUS_TARGET, "no memory for a libiscsi context");
    }
    int rc = log_in(s, login_status, err);
    wipe_library(s->iscsi);
    if (rc != 0) {
        iscsibe_session_close(s);
        return -1;
    }
    s->logged_in = true;
    *out = s;
    return 0;
}

int iscsibe_session_open(const struct iscsibe_login *login, struct iscsibe_session **out, unsigned *login_status,
                         struct err *err) {
    return session_start(login, ISCSI_SESSION_NORMAL, out, login_status, err);
}

void iscsibe_session_close(struct iscsibe_session *s) {
    const char *why;
    if (!s) return;
    s->waiting = false;
    if (s->logged_in && !s->dead) {
        begin(s);
        if (iscsi_logout_async(s->iscsi, arrived, s) == 0) finish(s, LOGOUT_NS, &why);
        s->waiting = false;
    }
    iscsi_destroy_context(s->iscsi);
    free(s);
}

/* ---- discovery ---- */

static void discovered(struct iscsi_context *iscsi, int status, void *data, void *private_data) {
    struct iscsibe_session *s = private_data;
    size_t used = 0;
    char safe[ISCSI_NAME_SIZE];

    if (s->waiting && status == SCSI_STATUS_GOOD)
        for (const struct iscsi_discovery_address *a = data; a; a = a->next) {
            text_safe(safe, sizeof safe, a->target_name, strlen(a->target_name));
            if (used + strlen(safe) + 8 > sizeof s->list) {
                snprintf(s->list + used, sizeof s->list - used, " ...");
                break;
            }
            used += (size_t)snprintf(s->list + used, sizeof s->list - used, "%s%s", used ? ", " : "", safe);
        }
    arrived(iscsi, status, data, private_data);
}

int iscsibe_discover(const struct iscsibe_login *login, char *buf, size_t len, struct err *err) {
    struct iscsibe_session *s;
    unsigned login_status;
    const char *why = NULL;
    char words[300];

    if (session_start(login, ISCSI_SESSION_DISCOVERY, &s, &login_status, err) != 0) return -1;
    begin(s);
    int rc = 0;
    if (iscsi_discovery_async(s->iscsi, discovered, s) != 0 || !finish(s, login->timeout, &why) ||
        s->status != SCSI_STATUS_GOOD)
        rc = err_set(err, STATUS_TARGET, "discovery: %s", why ? why : words_of(s, words, sizeof words));
    else
        snprintf(buf, len, "%s", *s->list ? s->list : "none");
    iscsibe_session_close(s);
    return rc;
}

/* ---- commands ---- */

static int over_link(struct iscsibe_session *s, unsigned lun, const uint8_t *cdb, unsigned cdb_size, uint32_t alloc,
                     struct iscsibe_reply *reply, struct err *err) {
    struct iscsibe_link_reply r;

    memset(s->data, 0, alloc);
    if (iscsibe_link_command(s->link, lun, cdb, cdb_size, s->data, alloc, &r, err) != 0) {
        s->dead = true;
        return err_prefix(err, "SCSI command %02X", cdb[0]);
    }
    *reply = (struct iscsibe_reply){ .status = r.response ? SCSI_STATUS_ERROR : (int)r.status,
                                     .key = r.key,
                                     .ascq = r.ascq,
                                     .data = s->data,
                                     .len = r.status || r.response ? 0 : r.len };
    return 0;
}

static int command_once(struct iscsibe_session *s, unsigned lun, const uint8_t *cdb, unsigned cdb_size, uint32_t alloc,
                        struct iscsibe_reply *reply, struct err *err) {
    struct scsi_task *t = &s->task;
    const char *why = NULL;
    char words[300];

    if (s->dead) return err_set(err, STATUS_TARGET, "SCSI command %02X: the session is lost", cdb[0]);
    if (s->link) return over_link(s, lun, cdb, cdb_size, alloc, reply, err);
    memset(t, 0, sizeof *t);
    memset(s->data, 0, alloc);
    memcpy(t->cdb, cdb, cdb_size);
    t->cdb_size = (int)cdb_size;
    t->xfer_dir = alloc ? SCSI_XFER_READ : SCSI_XFER_NONE;
    t->expxferlen = (int)alloc;
    s->iov = (struct scsi_iovec){ .iov_base = s->data, .iov_len = alloc };
    if (alloc) scsi_task_set_iov_in(t, &s->iov, 1);
    begin(s);
    bool ok = iscsi_scsi_command_async(s->iscsi, (int)iscsibe_lun_wire(lun), t, arrived, NULL, s) == 0 &&
              finish(s, s->login->timeout, &why);
    s->waiting = false;
    free(t->datain.data); /* sense data, which the library allocates */
    t->datain.data = NULL;
    if (!ok)
        return err_set(err, STATUS_TARGET, "SCSI command %02X: %s", cdb[0],
                       why ? why : words_of(s, words, sizeof words));
    size_t missing = t->residual_status == SCSI_RESIDUAL_UNDERFLOW ? t->residual : 0;
    *reply =
        (struct iscsibe_reply){ .status = s->status, .data = s->data, .len = missing < alloc ? alloc - missing : 0 };
    if (s->status == SCSI_STATUS_CHECK_CONDITION) {
        reply->key = (unsigned)t->sense.key;
        reply->ascq = (unsigned)t->sense.ascq;
    }
    if (s->status != SCSI_STATUS_GOOD) reply->len = 0;
    return 0;
}

int iscsibe_command(struct iscsibe_session *s, unsigned lun, const uint8_t *cdb, unsigned cdb_size, uint32_t alloc,
                    struct iscsibe_reply *reply, struct err *err) {
    struct iscsibe_again_counts ignored = { .wait_ns = 0 };
    int64_t begin = sock_now();

    for (unsigned answers = 1;; answers++) {
        if (command_once(s, lun, cdb, cdb_size, alloc, reply, err) != 0) return -1;
        enum iscsibe_again kind = iscsibe_again_kind((unsigned)reply->status, reply->key, reply->ascq);
        if (kind == AGAIN_NOT) return 0;
        if (kind == AGAIN_ATTENTION) s->unit_attentions++;
        int64_t pause = iscsibe_again_after(&ignored, kind, answers, sock_now() - begin, s->login->timeout);
        if (pause < 0) return 0;
        const struct timespec ts = { .tv_sec = pause / NS_PER_SEC, .tv_nsec = pause % NS_PER_SEC };
        nanosleep(&ts, NULL);
    }
}

bool iscsibe_ask(struct iscsibe_session *s, const uint8_t *cdb, unsigned cdb_size, uint32_t alloc,
                 struct iscsibe_reply *reply) {
    struct err err;
    return iscsibe_command(s, s->login->lun, cdb, cdb_size, alloc, reply, &err) == 0 &&
           reply->status == SCSI_STATUS_GOOD;
}

bool iscsibe_vpd(struct iscsibe_session *s, uint8_t page, struct iscsibe_reply *reply) {
    const uint16_t alloc = 4096;
    const uint8_t cdb[6] = { 0x12, 0x01, page, alloc >> 8, alloc & 0xff, 0 };
    return iscsibe_ask(s, cdb, sizeof cdb, alloc, reply);
}

const char *iscsibe_reply_words(const struct iscsibe_reply *reply, char *buf, size_t len) {
    char kind[48];
    const char *words;
    switch (reply->status) {
    case SCSI_STATUS_GOOD: snprintf(buf, len, "GOOD"); break;
    case SCSI_STATUS_CHECK_CONDITION:
        words = iscsibe_sense_text(reply->key, reply->ascq);
        snprintf(buf, len, "%s (%s)", iscsibe_sense_kind(reply->key, reply->ascq, kind, sizeof kind),
                 *words ? words : scsi_sense_ascq_str((int)reply->ascq));
        break;
    case SCSI_STATUS_BUSY: snprintf(buf, len, "BUSY"); break;
    case SCSI_STATUS_TASK_SET_FULL: snprintf(buf, len, "TASK SET FULL"); break;
    case SCSI_STATUS_RESERVATION_CONFLICT: snprintf(buf, len, "RESERVATION CONFLICT"); break;
    case SCSI_STATUS_TASK_ABORTED: snprintf(buf, len, "TASK ABORTED"); break;
    case SCSI_STATUS_ACA_ACTIVE: snprintf(buf, len, "ACA ACTIVE"); break;
    default: snprintf(buf, len, "SCSI status %#x", (unsigned)reply->status);
    }
    return buf;
}
