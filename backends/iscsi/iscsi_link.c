/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/iscsi/iscsi_link.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backends/iscsi/iscsi_crc32c.h"
#include "backends/iscsi/iscsi_login.h"
#include "backends/iscsi/iscsi_other.h"
#include "backends/net/addresses.h"
#include "backends/net/sock.h"
#include "backends/net/tcp.h"
#include "base/text.h"

#define REDIRECTS_MAX 4
#define TARGET_ERROR 3u /* class of a login status: this portal cannot do it, another may */
#define LOGOUT_NS NS_PER_SEC
#define SILENT_NS (2 * NS_PER_SEC) /* after so long without an answer it may be something else */

/* ---- bytes ---- */

/* The deadline is looked at before every piece, not only where nothing comes: a target that sends single bytes, or PDUs
 * that nobody asked for, would go on for ever otherwise. */
static int in_time(int64_t end, struct err *err) {
    return sock_now() < sock_end(end) ? 0 : err_set(err, STATUS_TARGET, "no answer in time (timeout=)");
}

static int wait_for(int fd, short events, int64_t end, struct err *err) {
    while (in_time(end, err) == 0)
        if (sock_wait(fd, events, sock_slice(end)) > 0) return 0;
    return -1;
}

static int broken(int fd, struct err *err) {
    char why[120];
    return err_set(err, STATUS_TARGET, "%s", sock_why(fd, why, sizeof why));
}

static int send_all(int fd, const uint8_t *p, size_t len, int64_t end, struct err *err) {
    if (in_time(end, err) != 0) return -1;
    int rc = sock_send_all(fd, p, len, end);
    if (rc == -ETIMEDOUT) return in_time(end, err);
    return rc == 0 ? 0 : broken(fd, err);
}

static int recv_all(int fd, uint8_t *p, size_t len, int64_t end, struct err *err) {
    while (len > 0) {
        if (in_time(end, err) != 0) return -1;
        ssize_t n = recv(fd, p, len, MSG_DONTWAIT);
        if (n < 0 && errno == EAGAIN) {
            if (wait_for(fd, POLLIN, end, err) != 0) return -1;
        } else if (n == 0 || (n < 0 && errno != EINTR)) {
            return broken(fd, err);
        } else if (n > 0) {
            p += n;
            len -= (size_t)n;
        }
    }
    return 0;
}

/* ---- PDUs ---- */

static bool of_login(unsigned opcode) {
    return opcode == ISCSI_LOGIN_RESPONSE || opcode == ISCSI_REJECT || opcode == ISCSI_ASYNC;
}

int iscsibe_link_recv(struct iscsibe_link *l, uint8_t bhs[ISCSI_BHS], uint8_t *data, uint32_t max, uint32_t *len,
                      int64_t end, struct err *err) {
    struct iscsiw_in in = { .max_data = max, .header_digest = l->full_feature && l->terms.value[KEY_HEADER_DIGEST],
                            .data_digest = l->full_feature && l->terms.value[KEY_DATA_DIGEST] };
    uint8_t header[ISCSI_HEADER_MAX], tail[8];
    size_t used;

    if (recv_all(l->fd, header, ISCSI_BHS, end, err) != 0) return -1;
    if (!l->full_feature && !of_login(header[0] & ISCSI_OPCODE)) /* its lengths mean nothing: what they announce never comes */
        return err_set(err, STATUS_TARGET, "the answer is no login response (opcode %02Xh): is this an iSCSI portal?",
                       header[0] & ISCSI_OPCODE);
    size_t rest = (size_t)header[AT_AHS] * 4 + (in.header_digest ? 4 : 0);
    if (rest && recv_all(l->fd, header + ISCSI_BHS, rest, end, err) != 0) return -1;
    enum iscsiw_event event = iscsiw_in_step(&in, header, ISCSI_BHS + rest, &used);
    if (event == WIRE_TOO_LONG) return err_set(err, STATUS_TARGET, "malformed reply: its data segment is too long");
    if (event != WIRE_HEADER) return err_set(err, STATUS_TARGET, "digest error: in the header of a reply");
    memcpy(bhs, header, ISCSI_BHS);
    *len = in.data_left;
    if (*len) {
        if (recv_all(l->fd, data, *len, end, err) != 0) return -1;
        iscsiw_in_data(&in, data, *len);
    }
    if (in.tail_left && recv_all(l->fd, tail, in.tail_left, end, err) != 0) return -1;
    if (iscsiw_in_step(&in, tail, in.tail_left, &used) == WIRE_DATA_DIGEST)
        return err_set(err, STATUS_TARGET, "digest error: in the data of a reply");
    return 0;
}

int iscsibe_link_send(struct iscsibe_link *l, uint8_t bhs[ISCSI_BHS], const void *data, uint32_t len, int64_t end,
                      struct err *err) {
    uint8_t pdu[ISCSI_BHS + 4 + LINK_SEND_MAX + 8];
    size_t n = ISCSI_BHS, padded = len + iscsiw_padding(len);

    if (len > LINK_SEND_MAX) return err_set(err, STATUS_TARGET, "more than %u bytes of text", LINK_SEND_MAX);
    iscsiw_put24(bhs + AT_LENGTH, len);
    iscsiw_put32(bhs + AT_CMD_SN, l->cmd_sn);
    iscsiw_put32(bhs + AT_EXP_STAT_SN, l->exp_stat_sn);
    memcpy(pdu, bhs, ISCSI_BHS);
    if (l->terms.value[KEY_HEADER_DIGEST]) {
        iscsiw_put_digest(pdu + ISCSI_BHS, iscsibe_crc32c(0, pdu, ISCSI_BHS));
        n += 4;
    }
    memset(pdu + n, 0, padded);
    if (len) memcpy(pdu + n, data, len);
    if (len && l->terms.value[KEY_DATA_DIGEST]) {
        iscsiw_put_digest(pdu + n + padded, iscsibe_crc32c(0, pdu + n, padded));
        padded += 4;
    }
    return send_all(l->fd, pdu, n + padded, end, err);
}

/* ---- login ---- */

/* "host[:port]", "[v6]:port", and of a redirection also ",TPGT" behind it. */
static int split_portal(const char *portal, char host[ISCSI_NAME_SIZE], unsigned *port, struct err *err) {
    char safe[120];
    bool bracket = *portal == '[';
    size_t n = bracket ? strcspn(++portal, "]") : strcspn(portal, ":,");

    *port = 3260;
    if (n == 0 || n >= ISCSI_NAME_SIZE || (bracket && portal[n] != ']'))
        return err_set(err, STATUS_TARGET, "`%s` is no portal", text_safe(safe, sizeof safe, portal, strlen(portal)));
    memcpy(host, portal, n);
    host[n] = '\0';
    portal += n + bracket;
    if (*portal == ':') *port = strspn(portal + 1, "0123456789") <= 5 ? (unsigned)strtoul(portal + 1, NULL, 10) : 0;
    if (*port == 0 || *port > 65535)
        return err_set(err, STATUS_TARGET, "a portal without a TCP port: `%s`",
                       text_safe(safe, sizeof safe, portal, strlen(portal)));
    return 0;
}

/* What it may mean that there is no answer to the first request. LIO does not answer an offer without CHAP where it
 * requires it, but closes the connection. */
static void name_silence(const struct iscsibe_talk *t, bool late, struct err *err) {
    char cause[200];
    snprintf(cause, sizeof cause, "%.199s", err->msg);
    if (late) {
        if (!t->rounds && t->step == TALK_AUTH)
            err_set(err, STATUS_TARGET, "%s: is this an iSCSI portal? (an NFS or web port answers like this)", cause);
        return;
    }
    if (t->step != TALK_AUTH || t->rounds || *t->who->user) return;
    err_set(err, STATUS_TARGET, "%s before it answered. Some targets do so where they require CHAP: user= and "
            "password_file=", cause);
}

/* The first answer takes no longer than `end` in any case; what answers an RPC meanwhile will never give one. */
static int first_answer(const struct iscsibe_link *l, const struct tcp_how *how, int64_t end, struct err *err) {
    int64_t silent = sock_now() + SILENT_NS;
    if (silent >= end || sock_wait(l->fd, POLLIN, silent - sock_now()) > 0 || !iscsibe_speaks_rpc(how)) return 0;
    return err_set(err, STATUS_TARGET, "this does not answer as iSCSI: an RPC service is there, such as NFS (nfs://HOST/EXPORT/PATH)");
}

/* *said: it failed by what the target answered, and not because it cannot serve here and now. */
static int talk(struct iscsibe_link *l, struct iscsibe_talk *t, const struct tcp_how *how, int64_t end, bool *said,
                struct err *err) {
    enum iscsibe_talk_next next = TALK_SEND;
    uint8_t bhs[ISCSI_BHS];
    uint32_t len;

    while (next == TALK_SEND) {
        bool first = !t->rounds && t->step == TALK_AUTH;
        bool sent = send_all(l->fd, t->out, t->out_len, end, err) == 0;
        if (sent && first && first_answer(l, how, end, err) != 0) {
            err_prefix(err, "login");
            return TALK_FAILED;
        }
        if (!sent ||
            iscsibe_link_recv(l, bhs, l->segment, LOGIN_DATA_MAX, &len, end, err) != 0) {
            err_prefix(err, "login");
            name_silence(t, sock_now() >= end, err);
            next = TALK_FAILED;
        } else {
            next = iscsibe_talk_answer(t, bhs, l->segment, len, err);
            *said = next == TALK_FAILED && t->status >> 8 != TARGET_ERROR;
        }
    }
    return next;
}

static void name_entry(struct iscsibe_link *l) {
    char address[64], shown[68];
    unsigned port;

    if (!sock_peer(l->fd, address, sizeof address, &port)) return;
    snprintf(l->entry, sizeof l->entry, "%s:%u", sock_bracket(address, shown, sizeof shown), port);
}

/* What every login says anew. Each its own challenge: an answer to an old one may have been overheard, or asked of
 * another. */
static int begin_talk(struct iscsibe_talk *t, const struct iscsibe_login *login, const uint8_t isid[6], struct err *err) {
    const struct iscsibe_credentials who = { login->initiator, login->target, login->user, login->password,
                                             login->target_user, login->target_password };
    uint8_t random[CHALLENGE_SIZE + 1];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return err_set(err, STATUS_TARGET, "no random numbers: %s", strerror(errno));
    iscsibe_talk_begin(t, &who, &login->offer, isid, random, random[CHALLENGE_SIZE]);
    return 0;
}

/* One address that is connected: TALK_DONE, TALK_REDIRECTED or TALK_FAILED. */
static int enter_at(struct iscsibe_link *l, struct iscsibe_talk *t, const struct tcp_how *how, int64_t end, bool *said,
                    struct err *err) {
    bool first = !l->entry[0];
    if (first) name_entry(l);
    int rc = talk(l, t, how, end, said, err);
    if (rc == TALK_DONE) return rc;
    if (first && rc == TALK_FAILED) l->entry[0] = '\0';
    close(l->fd);
    l->fd = -1;
    return rc;
}

/* One portal, which may have several addresses: one that takes the connection and does not answer the login is left for
 * the next. As above. */
static int enter(struct iscsibe_link *l, struct iscsibe_talk *t, const char *portal, const struct iscsibe_login *login,
                 const uint8_t isid[6], int64_t end, struct err *err) {
    char host[ISCSI_NAME_SIZE], address[64];
    struct tcp_how how = { .host = host, .settings = login->tcp };
    struct addresses a;
    bool said = false;
    int rc = TALK_FAILED;

    if (split_portal(portal, host, &how.port, err) != 0 || in_time(end, err) != 0) return TALK_FAILED;
    if (addresses_fill(&a, host, how.port, login->tcp, err) != 0) return TALK_FAILED;
    for (;;) {
        struct tcp_how at = how;
        unsigned which = 0;
        how.timeout = end - sock_now();
        l->fd = addresses_connect(&a, &how, &which, err);
        if (l->fd < 0) {
            addresses_none(&a, err);
            break;
        }
        if (begin_talk(t, login, isid, err) != 0) {
            close(l->fd);
            l->fd = -1;
            break;
        }
        if (a.several) at.host = addresses_words(&a, which, address, sizeof address);
        int64_t share = addresses_share(&a, end), until = sock_now() + share;
        rc = enter_at(l, t, &at, until, &said, err);
        if (rc == TALK_FAILED && a.several && sock_now() >= until)
            err_set(err, STATUS_TARGET, "login: no answer within %g s (its share of timeout=%gs): is this an iSCSI portal?",
                    tcp_seconds(share), tcp_seconds(login->timeout));
        if (rc != TALK_FAILED || said || !addresses_failed(&a, which, end, err)) break;
    }
    if (rc != TALK_FAILED && *a.why) snprintf(l->left, sizeof l->left, "%.499s", a.why);
    addresses_free(&a);
    return rc;
}

/* An error behind a redirection names where it led to. */
static int name_way(const char *portal, int redirections, struct err *err) {
    char safe[120];
    if (redirections)
        err_prefix(err, "redirected to portal %s", text_safe(safe, sizeof safe, portal, strcspn(portal, ",")));
    return -1;
}

static int log_in(struct iscsibe_link *l, struct iscsibe_talk *t, const struct iscsibe_login *login,
                  const uint8_t isid[6], struct err *err) {
    int64_t end = sock_now() + login->timeout; /* of all portals together */
    char portal[ISCSI_NAME_SIZE + 16];

    snprintf(portal, sizeof portal, "%s", login->portal);
    for (int i = 0; i <= REDIRECTS_MAX; i++) {
        int rc = enter(l, t, portal, login, isid, end, err);
        if (rc == TALK_FAILED) return name_way(portal, i, err);
        if (rc == TALK_DONE) return 0;
        snprintf(portal, sizeof portal, "%s", t->address);
    }
    return err_set(err, STATUS_TARGET, "login: redirected more than %d times", REDIRECTS_MAX);
}

int iscsibe_link_open(const struct iscsibe_login *login, const uint8_t isid[6], struct iscsibe_link **out,
                      unsigned *status, struct err *err) {
    struct iscsibe_link *l = calloc(1, sizeof *l);
    struct iscsibe_talk *t = calloc(1, sizeof *t);
    int rc = -1;

    *out = NULL;
    *status = 0;
    if (!l || !t) {
        err_set(err, STATUS_TARGET, "no memory");
        goto out;
    }
    l->fd = -1;
    rc = log_in(l, t, login, isid, err);
    *status = t->status;
    if (rc != 0) goto out;
    l->terms = t->terms;
    l->cmd_sn = t->cmd_sn;
    l->exp_stat_sn = t->exp_stat_sn;
    l->max_cmd_sn = t->max_cmd_sn;
    l->itt = t->itt;
    l->full_feature = true;
    memcpy(l->auth, t->auth, sizeof l->auth);
    memcpy(l->alias, t->alias, sizeof l->alias);
    memcpy(l->portal_group, t->portal_group, sizeof l->portal_group);
    *out = l;
    l = NULL;
out:
    if (l && l->fd >= 0) close(l->fd);
    free(l);
    free(t);
    return rc;
}

/* ---- commands ---- */

static int answer_nop(struct iscsibe_link *l, const uint8_t *in, int64_t end, struct err *err) {
    uint8_t bhs[ISCSI_BHS] = { ISCSI_NOP_OUT | ISCSI_IMMEDIATE, ISCSI_FINAL };
    if (iscsiw_get32(in + AT_TTT) == ISCSI_NO_TAG) return in_time(end, err);
    memcpy(bhs + AT_LUN, in + AT_LUN, 8);
    memcpy(bhs + AT_TTT, in + AT_TTT, 4);
    iscsiw_put32(bhs + AT_ITT, ISCSI_NO_TAG);
    return iscsibe_link_send(l, bhs, NULL, 0, end, err);
}

/* `got`: bytes of Data-In so far. 1: the command is over. */
static int take(struct iscsibe_link *l, const uint8_t *bhs, const uint8_t *segment, uint32_t len, uint32_t *got,
                struct iscsibe_link_reply *reply, int64_t end, struct err *err) {
    unsigned opcode = bhs[0] & ISCSI_OPCODE;
    bool ours = iscsiw_get32(bhs + AT_ITT) == l->itt;
    bool status = opcode == ISCSI_RESPONSE || (opcode == ISCSI_DATA_IN && bhs[AT_FLAGS] & ISCSI_STATUS);

    l->max_cmd_sn = iscsiw_get32(bhs + AT_MAX_CMD_SN);
    if (status || opcode == ISCSI_ASYNC || opcode == ISCSI_REJECT) l->exp_stat_sn = iscsiw_get32(bhs + AT_STAT_SN) + 1;
    if (opcode == ISCSI_NOP_IN) return answer_nop(l, bhs, end, err);
    if (opcode == ISCSI_ASYNC && (bhs[AT_EVENT] == 0 || bhs[AT_EVENT] == 255)) return 0;
    if (opcode == ISCSI_ASYNC) return err_set(err, STATUS_TARGET, "the target wants the session to end");
    if (opcode == ISCSI_REJECT)
        return err_set(err, STATUS_TARGET, "the target rejects it (reason %02Xh)", bhs[AT_RESPONSE]);
    if (opcode != ISCSI_RESPONSE && opcode != ISCSI_DATA_IN)
        return err_set(err, STATUS_TARGET, "malformed reply: nothing asks for it (opcode %02Xh)", opcode);
    if (!ours) return err_set(err, STATUS_TARGET, "malformed reply: to a command that is not out (opcode %02Xh)", opcode);
    if (opcode == ISCSI_DATA_IN) *got += len;
    if (!status) return 0;
    reply->response = opcode == ISCSI_RESPONSE ? bhs[AT_RESPONSE] : 0;
    reply->status = bhs[AT_STATUS];
    reply->len = *got;
    if (opcode == ISCSI_RESPONSE) iscsiw_sense(segment, len, &reply->key, &reply->ascq);
    return 1;
}

int iscsibe_link_command(struct iscsibe_link *l, uint64_t lun, const uint8_t *cdb, unsigned cdb_size, uint8_t *data,
                         uint32_t alloc, int64_t end, struct iscsibe_link_reply *reply, struct err *err) {
    uint8_t bhs[ISCSI_BHS] = { ISCSI_COMMAND, (uint8_t)(ISCSI_FINAL | ISCSI_SIMPLE | (alloc ? ISCSI_READ : 0)) };
    uint32_t len, got = 0;
    int rc = 0;

    memset(reply, 0, sizeof *reply);
    iscsiw_put64(bhs + AT_LUN, lun);
    l->itt = l->itt + 1 == ISCSI_NO_TAG ? 0 : l->itt + 1;
    iscsiw_put32(bhs + AT_ITT, l->itt);
    iscsiw_put32(bhs + AT_EXPECTED_LENGTH, alloc);
    memcpy(bhs + AT_CDB, cdb, cdb_size);
    if (iscsibe_link_send(l, bhs, NULL, 0, end, err) != 0) return -1;
    l->cmd_sn++;
    while (rc == 0) {
        if (iscsibe_link_recv(l, bhs, l->segment, LINK_DATA_MAX, &len, end, err) != 0) return -1;
        if ((bhs[0] & ISCSI_OPCODE) == ISCSI_DATA_IN && iscsiw_get32(bhs + AT_ITT) == l->itt) {
            if (iscsiw_get32(bhs + AT_OFFSET) != got || len > alloc - got)
                return err_set(err, STATUS_TARGET, "malformed reply: data beyond what was asked for, or out of order");
            if (len) memcpy(data + got, l->segment, len);
        }
        rc = take(l, bhs, l->segment, len, &got, reply, end, err);
    }
    return rc == 1 ? 0 : -1;
}

void iscsibe_link_close(struct iscsibe_link *l, bool logout) {
    uint8_t bhs[ISCSI_BHS] = { ISCSI_LOGOUT | ISCSI_IMMEDIATE, ISCSI_FINAL };
    int64_t end = sock_now() + LOGOUT_NS;
    struct err ignored;
    uint32_t len;

    if (!l) return;
    if (l->fd >= 0 && logout) {
        iscsiw_put32(bhs + AT_ITT, ++l->itt);
        if (iscsibe_link_send(l, bhs, NULL, 0, end, &ignored) == 0)
            while (iscsibe_link_recv(l, bhs, l->segment, LINK_DATA_MAX, &len, end, &ignored) == 0 &&
                   (bhs[0] & ISCSI_OPCODE) != ISCSI_LOGOUT_RESPONSE) continue;
    }
    if (l->fd >= 0) close(l->fd);
    free(l);
}
