/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/iscsi/iscsi_session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "backends/iscsi/iscsi_again.h"
#include "backends/net/again.h"
#include "backends/net/sock.h"

/* ---- one of the two ---- */

/* Same initiator name and same ISID as another session to the target would throw that one out: random. */
static int own_session(const struct iscsibe_login *login, struct iscsibe_link **out, unsigned *login_status,
                       struct err *err) {
    uint8_t isid[6];
    if (getrandom(isid, sizeof isid, 0) != (ssize_t)sizeof isid)
        return err_set(err, STATUS_TARGET, "no random numbers: %s", strerror(errno));
    isid[0] = 0x80;
    int rc = iscsibe_link_open(login, isid, out, login_status, err);
    return rc == 0 ? 0 : err_prefix(err, "portal %s", login->portal);
}

int iscsibe_session_open(const struct iscsibe_login *login, struct iscsibe_session **out, unsigned *login_status,
                         struct err *err) {
    struct iscsibe_session *s = calloc(1, sizeof *s);

    *out = NULL;
    *login_status = 0;
    if (!s) return err_set(err, STATUS_TARGET, "no memory");
    s->login = login;
    int rc = login->library ? iscsibe_library_open(login, &s->library, login_status, err)
                            : own_session(login, &s->link, login_status, err);
    if (s->library) s->iscsi = s->library->iscsi;
    if (rc == 0) *out = s;
    else free(s);
    return rc;
}

void iscsibe_session_close(struct iscsibe_session *s) {
    if (!s) return;
    iscsibe_link_close(s->link, !s->dead);
    iscsibe_library_close(s->library, !s->dead);
    free(s);
}

int iscsibe_session_fd(const struct iscsibe_session *s) {
    return s->link ? s->link->fd : iscsi_get_fd(s->iscsi);
}

/* ---- commands ---- */

static int over_link(struct iscsibe_session *s, uint64_t lun, const uint8_t *cdb, unsigned cdb_size, uint32_t alloc,
                     int64_t end, struct iscsibe_reply *reply, struct err *err) {
    struct iscsibe_link_reply r;

    if (iscsibe_link_command(s->link, lun, cdb, cdb_size, s->data, alloc, end, &r, err) != 0)
        return err_prefix(err, "SCSI command %02X", cdb[0]);
    *reply = (struct iscsibe_reply){ .status = r.response ? SCSI_STATUS_ERROR : (int)r.status,
                                     .key = r.key,
                                     .ascq = r.ascq,
                                     .data = s->data,
                                     .len = r.status || r.response ? 0 : r.len };
    return 0;
}

static int command_once(struct iscsibe_session *s, uint64_t lun, const uint8_t *cdb, unsigned cdb_size, uint32_t alloc,
                        int64_t end, struct iscsibe_reply *reply, struct err *err) {
    if (s->dead) {
        *err = s->cause;
        return -1;
    }
    memset(s->data, 0, alloc);
    int rc = s->link ? over_link(s, lun, cdb, cdb_size, alloc, end, reply, err)
                     : iscsibe_library_command(s->library, lun, cdb, cdb_size, s->data, alloc, end, reply, err);
    s->dead = rc != 0;
    if (s->dead) s->cause = *err;
    return rc;
}

static int64_t end_of(const struct iscsibe_session *s) {
    int64_t end = sock_now() + s->login->timeout;
    return s->deadline && s->deadline < end ? s->deadline : end;
}

/* The time is over before this question was asked. */
static int too_late(struct iscsibe_session *s, struct err *err) {
    if (*s->put_off)
        err_set(&s->cause, STATUS_TARGET, "the LUN's answers have used up timeout= (%.1f s); it said %s %llu times",
                (double)s->login->timeout / NS_PER_SEC, s->put_off, (unsigned long long)s->put_offs);
    else
        err_set(&s->cause, STATUS_TARGET, "the LUN's answers have used up timeout= (%.1f s)",
                (double)s->login->timeout / NS_PER_SEC);
    s->dead = true;
    *err = s->cause;
    return -1;
}

/* Blocks until the command is to be sent again; false: it is `until`. */
static bool wait_again(struct iscsibe_session *s, const struct iscsibe_reply *reply, enum iscsibe_again kind,
                       unsigned *answers, int64_t until) {
    int64_t from = sock_now();

    if (kind == AGAIN_ATTENTION) s->unit_attentions++;
    if (kind != AGAIN_ATTENTION || *answers) {
        s->put_offs++;
        iscsibe_again_name((unsigned)reply->status, reply->key, reply->ascq, s->put_off, sizeof s->put_off);
    }
    bool again = again_sleep(answers, until);
    s->put_off_ns += (uint64_t)(sock_now() - from);
    return again;
}

static int command_until(struct iscsibe_session *s, uint64_t lun, const uint8_t *cdb, unsigned cdb_size, uint32_t alloc,
                         int64_t until, int64_t end, struct iscsibe_reply *reply, struct err *err) {
    unsigned answers = 0;

    if (!s->dead && sock_now() >= end) return too_late(s, err);
    for (;;) {
        if (command_once(s, lun, cdb, cdb_size, alloc, end, reply, err) != 0) return -1;
        enum iscsibe_again kind = iscsibe_again_kind((unsigned)reply->status, reply->key, reply->ascq);
        if (kind == AGAIN_NOT || !wait_again(s, reply, kind, &answers, until)) return 0;
    }
}

int iscsibe_command(struct iscsibe_session *s, uint64_t lun, const uint8_t *cdb, unsigned cdb_size, uint32_t alloc,
                    struct iscsibe_reply *reply, struct err *err) {
    int64_t end = end_of(s);
    return command_until(s, lun, cdb, cdb_size, alloc, end, end, reply, err);
}

bool iscsibe_not_there(const struct iscsibe_reply *reply) {
    return reply->status == SCSI_STATUS_CHECK_CONDITION && reply->key == SCSI_SENSE_ILLEGAL_REQUEST &&
           (reply->ascq == 0x2000 || reply->ascq == 0x2400); /* invalid operation code; invalid field in the CDB */
}

bool iscsibe_ask_lun(struct iscsibe_session *s, uint64_t lun, const uint8_t *cdb, unsigned cdb_size, uint32_t alloc,
                     struct iscsibe_reply *reply) {
    int64_t now = sock_now(), end = end_of(s);
    struct err err;

    *reply = (struct iscsibe_reply){ .status = SCSI_STATUS_ERROR };
    return command_until(s, lun, cdb, cdb_size, alloc, now + (end - now) / 2, end, reply, &err) == 0 &&
           reply->status == SCSI_STATUS_GOOD;
}

bool iscsibe_ask(struct iscsibe_session *s, const uint8_t *cdb, unsigned cdb_size, uint32_t alloc,
                 struct iscsibe_reply *reply) {
    return iscsibe_ask_lun(s, s->login->wire, cdb, cdb_size, alloc, reply);
}

bool iscsibe_vpd(struct iscsibe_session *s, uint8_t page, struct iscsibe_reply *reply) {
    const uint16_t alloc = 4096;
    const uint8_t cdb[6] = { 0x12, 0x01, page, alloc >> 8, alloc & 0xff, 0 };
    return iscsibe_ask(s, cdb, sizeof cdb, alloc, reply);
}

int iscsibe_vpd_must(struct iscsibe_session *s, uint8_t page, struct iscsibe_reply *reply, struct err *err) {
    const uint16_t alloc = 4096;
    const uint8_t cdb[6] = { 0x12, 0x01, page, alloc >> 8, alloc & 0xff, 0 };
    char words[160];

    if (iscsibe_command(s, s->login->wire, cdb, sizeof cdb, alloc, reply, err) != 0) return -1;
    if (iscsibe_not_there(reply)) return 0;
    if (reply->status == SCSI_STATUS_GOOD && reply->len >= 4 && reply->data[1] == page) return 1;
    if (reply->status == SCSI_STATUS_GOOD) snprintf(words, sizeof words, "an answer of %zu bytes, without sense", reply->len);
    else iscsibe_reply_words(reply, words, sizeof words);
    return err_set(err, STATUS_TARGET, "the LUN does not say who it is now: VPD page %02Xh: %s", page, words);
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
    case SCSI_STATUS_ERROR: snprintf(buf, len, "the target could not do the command"); break;
    default: snprintf(buf, len, "SCSI status %#x", (unsigned)reply->status);
    }
    return buf;
}
