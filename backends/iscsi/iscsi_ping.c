/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/iscsi/iscsi_ping.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "backends/iscsi/iscsi_crc32c.h"
#include "backends/iscsi/iscsi_wire.h"
#include "backends/net/sock.h"
#include "backends/net/tcpinfo.h"

#define LOGIN_NS (3 * NS_PER_SEC)
#define IN_SIZE 4096u

enum { PING_NOP_OUT, PING_TEST_UNIT_READY };

const char *const iscsibe_pings[] = { "nop_out", "test_unit_ready", NULL };

struct pinger {
    struct iscsibe_link *link;      /* its numbers go on being used */
    uint64_t lun;                   /* as on the wire */
    uint32_t itt;                   /* of the ping that is out */
    unsigned answer;                /* opcode that answers it */
    bool quiet;                     /* nothing is out, and nothing went wrong */
    struct iscsiw_in in;
    uint8_t bhs[ISCSI_BHS];         /* of the PDU that is coming */
    uint8_t buf[ISCSI_HEADER_MAX + IN_SIZE];
    size_t have;                    /* the beginning of a header */
};

struct pinger *iscsibe_ping_over(struct iscsibe_link *link, uint64_t lun) {
    struct pinger *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    p->link = link;
    p->lun = lun;
    p->quiet = true;
    p->in = (struct iscsiw_in){ .header_digest = link->terms.value[KEY_HEADER_DIGEST] != 0,
                                .data_digest = link->terms.value[KEY_DATA_DIGEST] != 0,
                                .max_data = 0xffffff };
    return p;
}

int iscsibe_ping_open(struct handle *h, struct pinger **out, struct err *err) {
    struct iscsibe_login login;
    struct iscsibe_link *link;
    uint8_t isid[6];
    unsigned status;

    *out = NULL;
    if (!h->ping) return 0;
    login = h->login;
    if (login.timeout > LOGIN_NS) login.timeout = LOGIN_NS;
    snprintf(login.portal, sizeof login.portal, "%s", iscsibe_road_address(&h->roads, 0)); /* where the data goes first */
    iscsibe_next_isid(h, isid);
    int rc = iscsibe_link_open(&login, isid, &link, &status, err);
    if (rc == 0 && (rc = iscsibe_ping_same_lun(h, &login, link, err)) != 0) iscsibe_link_close(link, true);
    iscsibe_login_wipe(&login);
    if (rc != 0) return -1;
    *out = iscsibe_ping_over(link, h->login.wire);
    if (*out) return 0;
    iscsibe_link_close(link, true);
    return err_set(err, STATUS_TARGET, "no memory");
}

/* ---- one PDU each way ---- */

/* So short that a socket which does not take it whole has not sent anything for a very long time. */
static int send_pdu(struct pinger *p, const uint8_t bhs[ISCSI_BHS]) {
    uint8_t pdu[ISCSI_BHS + 4];
    size_t len = ISCSI_BHS;

    memcpy(pdu, bhs, ISCSI_BHS);
    iscsiw_put32(pdu + AT_CMD_SN, p->link->cmd_sn);
    iscsiw_put32(pdu + AT_EXP_STAT_SN, p->link->exp_stat_sn);
    if (p->in.header_digest) {
        iscsiw_put_digest(pdu + ISCSI_BHS, iscsibe_crc32c(0, pdu, ISCSI_BHS));
        len += 4;
    }
    ssize_t n = send(p->link->fd, pdu, len, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n == (ssize_t)len) return 0;
    return n < 0 && errno != EINTR ? -errno : -ENOBUFS;
}

static int send_ping(struct pinger *p, unsigned kind) {
    uint8_t nop[ISCSI_BHS] = { ISCSI_NOP_OUT | ISCSI_IMMEDIATE, ISCSI_FINAL };
    uint8_t command[ISCSI_BHS] = { ISCSI_COMMAND, ISCSI_FINAL | ISCSI_SIMPLE }; /* the CDB is all zeros */
    uint8_t *bhs = kind == PING_NOP_OUT ? nop : command;

    p->itt = ++p->link->itt;
    if (p->itt == ISCSI_NO_TAG) p->itt = ++p->link->itt;
    p->answer = kind == PING_NOP_OUT ? ISCSI_NOP_IN : ISCSI_RESPONSE;
    p->quiet = false;
    iscsiw_put32(bhs + AT_ITT, p->itt);
    if (kind == PING_NOP_OUT) iscsiw_put32(bhs + AT_TTT, ISCSI_NO_TAG);
    else iscsiw_put64(bhs + AT_LUN, p->lun);
    int rc = send_pdu(p, bhs);
    if (rc == 0 && kind != PING_NOP_OUT) p->link->cmd_sn++; /* an immediate PDU does not count */
    return rc;
}

static int answer_nop(struct pinger *p) {
    uint8_t bhs[ISCSI_BHS] = { ISCSI_NOP_OUT | ISCSI_IMMEDIATE, ISCSI_FINAL };
    if (iscsiw_get32(p->bhs + AT_TTT) == ISCSI_NO_TAG) return 0;
    memcpy(bhs + AT_LUN, p->bhs + AT_LUN, 8);
    memcpy(bhs + AT_TTT, p->bhs + AT_TTT, 4);
    iscsiw_put32(bhs + AT_ITT, ISCSI_NO_TAG);
    return send_pdu(p, bhs);
}

/* A whole PDU. 1: the answer; what answers an earlier ping, that was given up, is only counted off. */
static int take(struct pinger *p) {
    unsigned opcode = p->bhs[0] & ISCSI_OPCODE;
    uint32_t itt = iscsiw_get32(p->bhs + AT_ITT), max = iscsiw_get32(p->bhs + AT_MAX_CMD_SN);

    if (opcode != ISCSI_NOP_IN && opcode != ISCSI_RESPONSE && opcode != ISCSI_ASYNC) return -EPROTO;
    if (iscsiw_before(p->link->max_cmd_sn, max)) p->link->max_cmd_sn = max;
    if (opcode != ISCSI_NOP_IN || itt != ISCSI_NO_TAG)
        p->link->exp_stat_sn = iscsiw_get32(p->bhs + AT_STAT_SN) + 1;
    if (opcode == ISCSI_ASYNC) return p->bhs[AT_EVENT] == 0 || p->bhs[AT_EVENT] == 255 ? 0 : -ESHUTDOWN;
    if (opcode == p->answer && itt == p->itt) return 1;
    return opcode == ISCSI_NOP_IN ? answer_nop(p) : 0;
}

/* Everything that has come so far. 1: the answer is among it. */
static int parse(struct pinger *p, size_t n) {
    const uint8_t *at = p->buf;
    size_t left = p->have + n, used;
    int result = 0;

    for (;;) {
        enum iscsiw_event e = iscsiw_in_step(&p->in, at, left, &used);
        if (e == WIRE_MORE) break;
        if (e == WIRE_HEADER) memcpy(p->bhs, at, ISCSI_BHS);
        at += used;
        left -= used;
        if (e == WIRE_HEADER || e == WIRE_DATA) continue;
        int rc = e == WIRE_END ? take(p) : -EPROTO;
        if (rc < 0) return rc;
        result |= rc;
    }
    memmove(p->buf, at, left);
    p->have = left;
    return result;
}

/* ---- the contract ---- */

/* Until `until` (a value of parse), the time `end`, or an error. *now: the last receive. */
static int receive(struct pinger *p, int64_t end, int64_t *now) {
    for (;;) {
        if (*now >= end) return -ETIMEDOUT;
        bool ready = sock_wait(p->link->fd, POLLIN, end - *now) > 0;
        ssize_t n = ready ? recv(p->link->fd, p->buf + p->have, IN_SIZE, MSG_DONTWAIT) : -1;
        int error = ready && n < 0 ? errno : EAGAIN;
        *now = sock_now();
        if (n == 0) return -ECONNRESET;
        if (n > 0) return parse(p, (size_t)n);
        if (error != EAGAIN && error != EINTR) return -error;
    }
}

int64_t iscsibe_ping(struct pinger *p, unsigned kind, int64_t timeout_ns) {
    int64_t begin = sock_now(), end = begin + timeout_ns, now = begin;
    int rc = 0;

    /* Commands that were given up count until they are answered after all. */
    while (rc == 0 && kind != PING_NOP_OUT && iscsiw_before(p->link->max_cmd_sn, p->link->cmd_sn))
        if ((rc = receive(p, end, &now)) > 0) rc = 0; /* a late answer */
    if (rc == 0) {
        begin = sock_now();
        rc = send_ping(p, kind);
    }
    while (rc == 0) rc = receive(p, end, &now);
    p->quiet = rc == 1;
    return rc < 0 ? rc : now - begin;
}

int64_t iscsibe_ping_floor(struct pinger *p) {
    return tcpinfo_min_rtt(p->link->fd);
}

void iscsibe_ping_abort(struct pinger *p) {
    shutdown(p->link->fd, SHUT_RDWR);
}

/* Who does not answer pings would not answer a logout either. */
void iscsibe_ping_close(struct pinger *p) {
    if (!p) return;
    iscsibe_link_close(p->link, p->quiet && p->have == 0);
    free(p);
}
