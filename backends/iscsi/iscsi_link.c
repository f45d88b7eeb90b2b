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
#include "backends/net/sock.h"
#include "backends/net/tcp.h"
#include "base/text.h"

#define REDIRECTS_MAX 4
#define LOGOUT_NS NS_PER_SEC
#define REPLY_MAX 4096u /* of data in what is no Data-In */

/* ---- bytes ---- */

static int wait_for(int fd, short events, int64_t end, struct err *err) {
    for (;;) {
        int64_t left = end - sock_now();
        if (left <= 0) return err_set(err, STATUS_TARGET, "no answer in time (timeout=)");
        if (sock_wait(fd, events, left) > 0) return 0;
    }
}

static int broken(int fd, struct err *err) {
    char why[120];
    return err_set(err, STATUS_TARGET, "%s", sock_why(fd, why, sizeof why));
}

static int send_all(int fd, const uint8_t *p, size_t len, int64_t end, struct err *err) {
    while (len > 0) {
        ssize_t n = send(fd, p, len, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN) {
            if (wait_for(fd, POLLOUT, end, err) != 0) return -1;
        } else if (n < 0 && errno != EINTR) {
            return broken(fd, err);
        } else if (n > 0) {
            p += n;
            len -= (size_t)n;
        }
    }
    return 0;
}

static int recv_all(int fd, uint8_t *p, size_t len, int64_t end, struct err *err) {
    while (len > 0) {
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

/* Reads exactly one PDU, so that whoever takes the connection over finds it between two. */
static int recv_pdu(struct iscsibe_link *l, uint8_t bhs[ISCSI_BHS], uint8_t *data, uint32_t max, uint32_t *len,
                    int64_t end, struct err *err) {
    struct iscsiw_in in = { .max_data = max, .header_digest = l->full_feature && l->terms.value[KEY_HEADER_DIGEST],
                            .data_digest = l->full_feature && l->terms.value[KEY_DATA_DIGEST] };
    uint8_t header[ISCSI_HEADER_MAX], tail[8];
    size_t used;

    if (recv_all(l->fd, header, ISCSI_BHS, end, err) != 0) return -1;
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

/* A PDU without data. */
static int send_bhs(struct iscsibe_link *l, uint8_t bhs[ISCSI_BHS], int64_t end, struct err *err) {
    uint8_t pdu[ISCSI_BHS + 4];
    size_t len = ISCSI_BHS;

    iscsiw_put32(bhs + AT_CMD_SN, l->cmd_sn);
    iscsiw_put32(bhs + AT_EXP_STAT_SN, l->exp_stat_sn);
    memcpy(pdu, bhs, ISCSI_BHS);
    if (l->terms.value[KEY_HEADER_DIGEST]) {
        iscsiw_put_digest(pdu + ISCSI_BHS, iscsibe_crc32c(0, pdu, ISCSI_BHS));
        len += 4;
    }
    return send_all(l->fd, pdu, len, end, err);
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
    if (*portal == ':') *port = (unsigned)strtoul(portal + 1, NULL, 10);
    if (*port == 0 || *port > 65535) return err_set(err, STATUS_TARGET, "a portal on TCP port %u", *port);
    return 0;
}

static int talk(struct iscsibe_link *l, struct iscsibe_talk *t, struct err *err) {
    uint8_t bhs[ISCSI_BHS], *data = malloc(LOGIN_DATA_MAX + 4);
    enum iscsibe_talk_next next = TALK_SEND;
    int64_t end = sock_now() + l->timeout;
    uint32_t len;

    if (!data) {
        err_set(err, STATUS_TARGET, "no memory");
        next = TALK_FAILED;
    }
    while (next == TALK_SEND) {
        if (send_all(l->fd, t->out, t->out_len, end, err) != 0 ||
            recv_pdu(l, bhs, data, LOGIN_DATA_MAX, &len, end, err) != 0) {
            err_prefix(err, "login");
            next = TALK_FAILED;
        } else {
            next = iscsibe_talk_answer(t, bhs, data, len, err);
        }
    }
    free(data);
    return next;
}

/* One portal: TALK_DONE, TALK_REDIRECTED or TALK_FAILED. */
static int enter(struct iscsibe_link *l, struct iscsibe_talk *t, const char *portal, const struct tcp_settings *tcp,
                 struct err *err) {
    char host[ISCSI_NAME_SIZE];
    struct tcp_how how = { .host = host, .timeout = l->timeout, .settings = tcp };

    if (split_portal(portal, host, &how.port, err) != 0) return TALK_FAILED;
    l->fd = tcp_connect(&how, err);
    if (l->fd < 0) return TALK_FAILED;
    int rc = talk(l, t, err);
    if (rc == TALK_DONE) return rc;
    close(l->fd);
    l->fd = -1;
    return rc;
}

static int log_in(struct iscsibe_link *l, struct iscsibe_talk *t, const struct iscsibe_login *login,
                  const uint8_t isid[6], struct err *err) {
    const struct iscsibe_credentials who = { login->initiator, login->target, login->user, login->password,
                                             login->target_user, login->target_password };
    char portal[ISCSI_NAME_SIZE + 16];
    uint8_t random[CHALLENGE_SIZE + 1];

    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return err_set(err, STATUS_TARGET, "no random numbers: %s", strerror(errno));
    snprintf(portal, sizeof portal, "%s", login->portal);
    for (int i = 0; i <= REDIRECTS_MAX; i++) {
        iscsibe_talk_begin(t, &who, &login->offer, isid, random, random[CHALLENGE_SIZE]);
        int rc = enter(l, t, portal, login->tcp, err);
        if (rc == TALK_FAILED) return -1;
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
    l->timeout = login->timeout;
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
    if (iscsiw_get32(in + AT_TTT) == ISCSI_NO_TAG) return 0;
    memcpy(bhs + AT_LUN, in + AT_LUN, 8);
    memcpy(bhs + AT_TTT, in + AT_TTT, 4);
    iscsiw_put32(bhs + AT_ITT, ISCSI_NO_TAG);
    return send_bhs(l, bhs, end, err);
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
    if (!ours || (opcode != ISCSI_RESPONSE && opcode != ISCSI_DATA_IN))
        return err_set(err, STATUS_TARGET, "malformed reply (opcode %02Xh)", opcode);
    if (opcode == ISCSI_DATA_IN) *got += len;
    if (!status) return 0;
    reply->response = opcode == ISCSI_RESPONSE ? bhs[AT_RESPONSE] : 0;
    reply->status = bhs[AT_STATUS];
    reply->len = *got;
    if (opcode == ISCSI_RESPONSE) iscsiw_sense(segment, len, &reply->key, &reply->ascq);
    return 1;
}

int iscsibe_link_command(struct iscsibe_link *l, unsigned lun, const uint8_t *cdb, unsigned cdb_size, uint8_t *data,
                         uint32_t alloc, struct iscsibe_link_reply *reply, struct err *err) {
    uint8_t bhs[ISCSI_BHS] = { ISCSI_COMMAND, (uint8_t)(ISCSI_FINAL | ISCSI_SIMPLE | (alloc ? ISCSI_READ : 0)) };
    uint8_t into[REPLY_MAX + 4];
    int64_t end = sock_now() + l->timeout;
    uint32_t len, got = 0;
    int rc = 0;

    memset(reply, 0, sizeof *reply);
    if (alloc > REPLY_MAX) return err_set(err, STATUS_TARGET, "more than %u bytes are asked for at once", REPLY_MAX);
    iscsiw_put_lun(bhs + AT_LUN, iscsibe_lun_wire(lun));
    iscsiw_put32(bhs + AT_ITT, ++l->itt);
    iscsiw_put32(bhs + AT_EXPECTED_LENGTH, alloc);
    memcpy(bhs + AT_CDB, cdb, cdb_size);
    if (send_bhs(l, bhs, end, err) != 0) return -1;
    l->cmd_sn++;
    while (rc == 0) {
        if (recv_pdu(l, bhs, into, REPLY_MAX, &len, end, err) != 0) return -1;
        if ((bhs[0] & ISCSI_OPCODE) == ISCSI_DATA_IN) {
            if (iscsiw_get32(bhs + AT_OFFSET) != got || len > alloc - got)
                return err_set(err, STATUS_TARGET, "malformed reply: data beyond what was asked for, or out of order");
            memcpy(data + got, into, len);
        }
        rc = take(l, bhs, into, len, &got, reply, end, err);
    }
    return rc == 1 ? 0 : -1;
}

void iscsibe_link_close(struct iscsibe_link *l, bool logout) {
    uint8_t bhs[ISCSI_BHS] = { ISCSI_LOGOUT | ISCSI_IMMEDIATE, ISCSI_FINAL }, side[REPLY_MAX + 4];
    int64_t end = sock_now() + LOGOUT_NS;
    struct err ignored;
    uint32_t len;

    if (!l) return;
    if (l->fd >= 0 && logout) {
        iscsiw_put32(bhs + AT_ITT, ++l->itt);
        if (send_bhs(l, bhs, end, &ignored) == 0)
            while (recv_pdu(l, bhs, side, REPLY_MAX, &len, end, &ignored) == 0 &&
                   (bhs[0] & ISCSI_OPCODE) != ISCSI_LOGOUT_RESPONSE) continue;
    }
    if (l->fd >= 0) close(l->fd);
    free(l);
}
