/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One iSCSI session: TCP connection, login, and SCSI commands one at a time with a deadline. The data path then drives
 * the same libiscsi context with commands of its own. */
#ifndef BACKENDS_ISCSI_ISCSI_SESSION_H
#define BACKENDS_ISCSI_ISCSI_SESSION_H

#include <iscsi/iscsi.h>
#include <iscsi/scsi-lowlevel.h>

#include "backends/iscsi/iscsi.h"

#define ISCSIBE_DATA_MAX 65536u

/* What the target says of the path that a session is. */
struct iscsibe_alua {
    bool used, known;                 /* there are target port groups; this path's is among them */
    unsigned group, state;
};

struct iscsibe_session {
    struct iscsi_context *iscsi;
    struct iscsibe_link *link;        /* not NULL: a session of our own in place of the library's */
    const struct iscsibe_login *login;
    /* The one thing that is waited for. It lives here, not on the caller's stack: what was given up is still known to
     * the library, which calls back when the context is destroyed. */
    bool waiting;
    int status;                       /* SCSI_STATUS_... */
    char words[300];                  /* the library's, when it failed */
    struct scsi_task task;
    struct scsi_iovec iov;
    char list[900];                   /* discovery: the targets' names */
    uint64_t unit_attentions;
    struct iscsibe_alua alua;         /* of this path; set by iscsibe_ask_alua */
    bool logged_in, dead;             /* dead: timeout or connection lost; nothing more is sent */
    uint8_t data[ISCSIBE_DATA_MAX];   /* of the last command */
};

struct iscsibe_reply {
    int status;                       /* SCSI_STATUS_GOOD, CHECK_CONDITION, ... */
    unsigned key, ascq;               /* of a CHECK CONDITION */
    const uint8_t *data;
    size_t len;
};

/* Connects and logs in to login->target. *login_status (iscsibe_login_status) says why the target refused, 0:
 * otherwise. */
int iscsibe_session_open(const struct iscsibe_login *login, struct iscsibe_session **out, unsigned *login_status,
                         struct err *err);
void iscsibe_session_close(struct iscsibe_session *s); /* with a logout, if it is still alive */
/* The targets that the portal offers, as words; in a session of its own. */
int iscsibe_discover(const struct iscsibe_login *login, char *buf, size_t len, struct err *err);

/* One command without data or with data from the target, which stays valid until the next one. Unit attentions are
 * counted and the command repeated; BUSY too. 0: the target has answered, whatever it said. -1: it did not; err. */
int iscsibe_command(struct iscsibe_session *s, unsigned lun, const uint8_t *cdb, unsigned cdb_size, uint32_t alloc,
                    struct iscsibe_reply *reply, struct err *err);
/* The same, for commands that only inform: true if it ended GOOD. False also when the session died (s->dead). */
bool iscsibe_ask(struct iscsibe_session *s, const uint8_t *cdb, unsigned cdb_size, uint32_t alloc,
                 struct iscsibe_reply *reply);
bool iscsibe_vpd(struct iscsibe_session *s, uint8_t page, struct iscsibe_reply *reply);
/* "MEDIUM ERROR 11/00 (Unrecovered read error)", "RESERVATION CONFLICT" */
const char *iscsibe_reply_words(const struct iscsibe_reply *reply, char *buf, size_t len);

/* Why the session broke: the socket's words, and the library's unless they are left over from a command's status. */
const char *iscsibe_session_why(const struct iscsibe_session *s, char *buf, size_t len);

/* TEST UNIT READY until the unit is ready; RESERVATION CONFLICT counts as ready and sets *reserved. */
int iscsibe_ready(struct iscsibe_session *s, bool *reserved, struct err *err);
int iscsibe_capacity(struct iscsibe_session *s, struct iscsibe_capacity *out, struct err *err);
/* VPD 83 and 80, as far as the target has them. The number of names; *vpd83 stays in `keep` (its length returned by
 * *n83). */
unsigned iscsibe_identify(struct iscsibe_session *s, bool has83, bool has80, const struct iscsibe_inquiry *inquiry,
                          char out[FACTS_IDENTITIES][128], bool *weak, uint8_t *keep, size_t *n83);
/* Asks for the path's ALUA state, from what INQUIRY and VPD 83 said. Fails if such a path is not to be used. */
int iscsibe_ask_alua(struct iscsibe_session *s, unsigned tpgs, const uint8_t *vpd83, size_t n83, bool nonoptimized,
                     struct err *err);
/* iscsi_flush.c: what a flush is to be, from what the facts say of the cache: into h->sync_op and facts. */
void iscsibe_ask_flush(struct iscsibe_session *s, struct handle *h, struct facts *f);
/* Ready, the same LUN, as large as when it was opened, by a path that may be used: looked at by every attach before
 * anything is read or written. */
int iscsibe_same_lun(struct iscsibe_session *s, const struct handle *h, struct err *err);

#endif
