/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The library's sessions, for engine=libiscsi: login and one command at a time with a deadline.
 *
 * The library reads in a loop of its own for as long as the target sends: one that sends without an end, or byte by byte,
 * keeps the call inside. So there is a guard, a thread that shuts the connection down when the time is over; the library
 * then finds it closed. And it crashes on some PDUs that have no place in a login, so each is looked at before it sees it. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>

#include "backends/iscsi/iscsi_login.h"
#include "backends/iscsi/iscsi_session.h"
#include "backends/net/sock.h"
#include "backends/net/stuck.h"
#include "base/text.h"

#define TICK_NS (100 * NS_PER_MS)
#define LOGOUT_NS NS_PER_SEC
#define REDIRECTS_MAX 4
#define INITIATOR_ERROR 0x0200u

/* ---- waiting ---- */

static void keep_words(struct iscsibe_library *l, struct iscsi_context *iscsi) {
    const char *words = iscsi_get_error(iscsi);
    size_t n = words ? strlen(words) : 0;
    while (n > 0 && words[n - 1] == '\n') n--;
    text_safe(l->words, sizeof l->words, words ? words : "", n);
}

static void arrived(struct iscsi_context *iscsi, int status, void *data, void *private_data) {
    struct iscsibe_library *l = private_data;
    (void)data;
    if (!l->waiting) return; /* given up */
    l->waiting = false;
    l->status = status;
    if (status == SCSI_STATUS_ERROR) keep_words(l, iscsi); /* what comes after it may overwrite them */
}

static void begin(struct iscsibe_library *l) {
    l->waiting = true;
    l->status = SCSI_STATUS_ERROR;
    l->words[0] = '\0';
}

struct guard {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t change;
    int64_t end;
    int fd;
    bool over, running;
};

static bool over_until(struct guard *g, int64_t end) {
    const struct timespec at = { .tv_sec = (time_t)(end / NS_PER_SEC), .tv_nsec = (long)(end % NS_PER_SEC) };
    int rc = 0;

    while (!g->over && rc == 0) rc = pthread_cond_timedwait(&g->change, &g->lock, &at);
    return g->over;
}

static void *watch_clock(void *arg) {
    struct guard *g = arg;

    pthread_mutex_lock(&g->lock);
    if (!over_until(g, g->end)) {
        shutdown(g->fd, SHUT_RDWR);
        if (!over_until(g, g->end + STUCK_NS)) stuck_in("libiscsi");
    }
    pthread_mutex_unlock(&g->lock);
    return NULL;
}

static void guard_begin(struct guard *g, int fd, int64_t end) {
    pthread_condattr_t how;

    *g = (struct guard){ .fd = fd, .end = end };
    pthread_mutex_init(&g->lock, NULL);
    pthread_condattr_init(&how);
    pthread_condattr_setclock(&how, CLOCK_MONOTONIC);
    pthread_cond_init(&g->change, &how);
    pthread_condattr_destroy(&how);
    g->running = pthread_create(&g->thread, NULL, watch_clock, g) == 0;
}

static void guard_end(struct guard *g) {
    pthread_mutex_lock(&g->lock);
    g->over = true;
    pthread_cond_signal(&g->change);
    pthread_mutex_unlock(&g->lock);
    if (g->running) pthread_join(g->thread, NULL);
    pthread_cond_destroy(&g->change);
    pthread_mutex_destroy(&g->lock);
}

/* In a login: 1 if what came next is a whole Login Response of sensible size, which one iscsi_service() takes up exactly, or
 * the end of the connection; 0 if more has to come; -1 if it is something else. */
static int screen(struct iscsibe_library *l) {
    static const struct timespec pause = { .tv_nsec = NS_PER_MS };
    uint8_t h[ISCSI_BHS];
    int fd = iscsi_get_fd(l->iscsi), have = 0;
    ssize_t n = recv(fd, h, sizeof h, MSG_PEEK | MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
    if (n <= 0) return 1;
    uint32_t len = n == sizeof h ? iscsiw_get24(h + AT_LENGTH) : 0;
    if ((h[0] & ISCSI_OPCODE) != ISCSI_LOGIN_RESPONSE || len > LOGIN_DATA_MAX) {
        snprintf(l->words, sizeof l->words, "the answer is no login response (opcode %02Xh, %u bytes of data): is this an "
                 "iSCSI portal?", h[0] & ISCSI_OPCODE, len);
        return -1;
    }
    size_t whole = sizeof h + (n == sizeof h ? (size_t)h[AT_AHS] * 4 + len + iscsiw_padding(len) : 0);
    if (n == sizeof h && ioctl(fd, FIONREAD, &have) == 0 && have >= 0 && (size_t)have >= whole) return 1;
    nanosleep(&pause, NULL); /* poll() would not wait for the rest */
    return 0;
}

static void wait_for_it(struct iscsibe_library *l, int64_t end) {
    while (l->waiting && !l->dead) {
        int64_t left = end - sock_now();
        if (left <= 0 || backend_stopped()) return;
        int events = iscsi_which_events(l->iscsi);
        int got = sock_wait(iscsi_get_fd(l->iscsi), (short)events, left < TICK_NS ? left : TICK_NS);
        int pass = got > 0 ? got & (POLLIN | POLLOUT) : 0;
        if (got > 0 && (got & (POLLERR | POLLHUP | POLLNVAL))) pass |= events & (POLLIN | POLLOUT);
        if (l->logging_in && pass & POLLIN) {
            int seen = screen(l);
            if (seen < 0) l->dead = true;
            if (seen < 1) pass &= ~POLLIN;
        }
        if (!l->dead && iscsi_service(l->iscsi, pass) < 0) l->dead = true;
    }
}

/* True when the callback came. */
static bool finish(struct iscsibe_library *l, int64_t end, const char **why) {
    struct guard guard;

    *why = NULL;
    guard_begin(&guard, iscsi_get_fd(l->iscsi), end);
    wait_for_it(l, end);
    guard_end(&guard);
    /* without reconnection a lost connection cancels what was out */
    if (l->waiting || l->status == (int)SCSI_STATUS_CANCELLED) l->dead = true;
    l->waiting = false;
    if (l->dead && sock_now() >= end) *why = "no answer in time (timeout=)";
    return !l->dead;
}

static const char *words_of(struct iscsibe_library *l, char *buf, size_t len) {
    if (!*l->words) keep_words(l, l->iscsi);
    /* "Can not reconnect" is what the library says of a lost connection that it was told not to bring back. */
    return *l->words && !strstr(l->words, "reconnect") ? l->words : sock_why(iscsi_get_fd(l->iscsi), buf, len);
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

static struct iscsi_context *context_new(const struct iscsibe_login *login) {
    struct iscsi_context *iscsi = iscsi_create_context(login->initiator);
    struct { uint32_t rnd; uint16_t qualifier; } isid;

    if (!iscsi) return NULL;
    iscsi_set_log_level(iscsi, 0); /* LIBISCSI_DEBUG would print */
    iscsi_set_log_fn(iscsi, NULL);
    /* Same initiator name and same ISID as another session to the target would throw that one out. */
    if (getrandom(&isid, sizeof isid, 0) != (ssize_t)sizeof isid ||
        iscsi_set_isid_random(iscsi, isid.rnd & 0xffffff, isid.qualifier) != 0 ||
        iscsi_set_session_type(iscsi, ISCSI_SESSION_NORMAL) != 0 ||
        iscsi_set_targetname(iscsi, login->target) != 0 ||
        iscsi_set_header_digest(iscsi, login->offer.header_digest ? ISCSI_HEADER_DIGEST_CRC32C : ISCSI_HEADER_DIGEST_NONE) != 0 ||
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

static int connect_portal(struct iscsibe_library *l, const char *portal, int64_t end, struct err *err) {
    const char *why = NULL;
    char words[300], safe[300];

    begin(l);
    text_safe(safe, sizeof safe, portal, strlen(portal));
    if (iscsi_connect_async(l->iscsi, portal, arrived, l) == 0 && finish(l, end, &why) &&
        l->status == SCSI_STATUS_GOOD) return 0;
    l->waiting = false;
    if (!why) why = words_of(l, words, sizeof words);
    const char *port = strrchr(safe, ':');
    if (port && strstr(why, "not resolv")) /* in the library's words */
        return err_set(err, STATUS_TARGET, "host %.*s not found", (int)(port - safe), safe);
    return err_set(err, STATUS_TARGET, "connecting to portal %s: %s", safe, why);
}

/* The target does not say what it misses, or the library does not tell: what most often is it. */
static const char *digest_hint(const struct iscsibe_login *login, unsigned status) {
    if (status != INITIATOR_ERROR) return "";
    return login->offer.header_digest ? "; it may require data digests: data_digest=crc32c, which needs engine=native"
                                      : "; it may require digests: header_digest=crc32c, or data_digest=crc32c, which "
                                        "needs engine=native";
}

static int login_here(struct iscsibe_library *l, const struct iscsibe_login *login, int64_t end, unsigned *login_status,
                      struct err *err) {
    const char *why = NULL;
    char words[300];

    begin(l);
    l->logging_in = true;
    bool over = iscsi_login_async(l->iscsi, arrived, l) == 0 && finish(l, end, &why);
    l->logging_in = false;
    if (over) {
        if (l->status == SCSI_STATUS_GOOD) return 0;
        if (l->status == SCSI_STATUS_REDIRECT) return 1;
    }
    l->waiting = false;
    if (!why) {
        why = words_of(l, words, sizeof words);
        *login_status = iscsibe_login_status(why);
    }
    return err_set(err, STATUS_TARGET, "login: %s%s", why, digest_hint(login, *login_status));
}

static int log_in(struct iscsibe_library *l, const struct iscsibe_login *login, unsigned *login_status, struct err *err) {
    char portal[ISCSI_NAME_SIZE + 16], safe[300];
    int64_t end = sock_now() + l->timeout; /* of all portals together */

    snprintf(portal, sizeof portal, "%s", login->portal);
    for (int i = 0; i <= REDIRECTS_MAX; i++) {
        if (connect_portal(l, portal, end, err) != 0) return -1;
        int rc = login_here(l, login, end, login_status, err);
        if (rc < 0) return err_prefix(err, "portal %s", text_safe(safe, sizeof safe, portal, strlen(portal)));
        if (rc == 0) return 0;
        const char *to = iscsi_get_target_address(l->iscsi);
        if (!to || !*to) return err_set(err, STATUS_TARGET, "login: redirected, but not told where to");
        snprintf(portal, sizeof portal, "%s", to);
        iscsi_disconnect(l->iscsi);
    }
    return err_set(err, STATUS_TARGET, "login: redirected more than %d times", REDIRECTS_MAX);
}

int iscsibe_library_open(const struct iscsibe_login *login, struct iscsibe_library **out, unsigned *login_status,
                         struct err *err) {
    struct iscsibe_library *l = calloc(1, sizeof *l);

    *out = NULL;
    if (!l) return err_set(err, STATUS_TARGET, "no memory");
    l->timeout = login->timeout;
    l->iscsi = context_new(login);
    if (!l->iscsi) {
        free(l);
        return err_set(err, STATUS_TARGET, "no memory for a libiscsi context");
    }
    int rc = log_in(l, login, login_status, err);
    wipe_library(l->iscsi);
    l->logged_in = rc == 0;
    if (rc == 0) *out = l;
    else iscsibe_library_close(l, false);
    return rc;
}

void iscsibe_library_close(struct iscsibe_library *l, bool logout) {
    const char *why;
    if (!l) return;
    l->waiting = false;
    if (l->logged_in && !l->dead && logout) {
        begin(l);
        if (iscsi_logout_async(l->iscsi, arrived, l) == 0) finish(l, sock_now() + LOGOUT_NS, &why);
        l->waiting = false;
    }
    iscsi_destroy_context(l->iscsi);
    free(l);
}

/* ---- commands ---- */

int iscsibe_library_command(struct iscsibe_library *l, uint64_t lun, const uint8_t *cdb, unsigned cdb_size, uint8_t *data,
                            uint32_t alloc, int64_t end, struct iscsibe_reply *reply, struct err *err) {
    struct scsi_task *t = &l->task;
    const char *why = NULL;
    char words[300];

    if (lun << 16) /* the library has two bytes for it */
        return err_set(err, STATUS_TARGET, "libiscsi cannot address this LUN: it takes more than two bytes: engine=native");
    memset(t, 0, sizeof *t);
    memcpy(t->cdb, cdb, cdb_size);
    t->cdb_size = (int)cdb_size;
    t->xfer_dir = alloc ? SCSI_XFER_READ : SCSI_XFER_NONE;
    t->expxferlen = (int)alloc;
    l->iov = (struct scsi_iovec){ .iov_base = data, .iov_len = alloc };
    if (alloc) scsi_task_set_iov_in(t, &l->iov, 1);
    /* The library does not say how much came, only what the target says is missing. What did not come must not be read as
     * zeros: no reservation, no bytes behind a header. */
    if (alloc) memset(data, 0xff, alloc);
    begin(l);
    bool ok = iscsi_scsi_command_async(l->iscsi, (int)(lun >> 48), t, arrived, NULL, l) == 0 && finish(l, end, &why);
    l->waiting = false;
    free(t->datain.data); /* sense data, which the library allocates */
    t->datain.data = NULL;
    if (!ok)
        return err_set(err, STATUS_TARGET, "SCSI command %02X: %s", cdb[0],
                       why ? why : words_of(l, words, sizeof words));
    size_t missing = t->residual_status == SCSI_RESIDUAL_UNDERFLOW ? t->residual : 0;
    *reply = (struct iscsibe_reply){ .status = l->status, .data = data, .len = missing < alloc ? alloc - missing : 0 };
    if (l->status == SCSI_STATUS_CHECK_CONDITION) {
        reply->key = (unsigned)t->sense.key;
        reply->ascq = (unsigned)t->sense.ascq;
    }
    if (l->status != SCSI_STATUS_GOOD) reply->len = 0;
    return 0;
}
