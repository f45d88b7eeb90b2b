/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One iSCSI session: TCP connection, login, and SCSI commands one at a time with a deadline. Of our own (iscsi_link.c), or
 * the library's with engine=libiscsi, whose data path then drives the same libiscsi context with commands of its own. */
#ifndef BACKENDS_ISCSI_ISCSI_SESSION_H
#define BACKENDS_ISCSI_ISCSI_SESSION_H

#include <iscsi/iscsi.h>
#include <iscsi/scsi-lowlevel.h>

#include "backends/iscsi/iscsi.h"
#include "backends/iscsi/iscsi_link.h"

#define ISCSIBE_DATA_MAX LINK_DATA_MAX

/* What the target says of the path that a session is. */
struct iscsibe_alua {
    bool used, known;                 /* there are target port groups; this path's is among them */
    unsigned group, state;
};

struct iscsibe_session {
    struct iscsibe_link *link;        /* a session of our own */
    struct iscsibe_library *library;  /* or the library's, */
    struct iscsi_context *iscsi;      /* and its context */
    const struct iscsibe_login *login;
    uint64_t unit_attentions;
    int64_t deadline;                 /* of all commands together, by sock_now(); 0: each has login->timeout */
    uint64_t put_offs, put_off_ns;    /* answers "not now" but for the first unit attention in a row; waited for them */
    char put_off[48];                 /* the last of them */
    struct iscsibe_alua alua;         /* of this path; set by iscsibe_ask_alua */
    uint64_t grown;                   /* bytes that the unit has now and had not when it was opened */
    bool dead;                        /* timeout or connection lost; nothing more is sent */
    struct err cause;                 /* why it died: of every later command */
    uint8_t data[ISCSIBE_DATA_MAX];   /* of the last command */
};

struct iscsibe_reply {
    int status;                       /* SCSI_STATUS_GOOD, CHECK_CONDITION, ... */
    unsigned key, ascq;               /* of a CHECK CONDITION */
    const uint8_t *data;
    size_t len;
};

/* Connects and logs in to login->target, in login->timeout. *login_status (class << 8 | detail) says why the target
 * refused, 0: otherwise. */
int iscsibe_session_open(const struct iscsibe_login *login, struct iscsibe_session **out, unsigned *login_status,
                         struct err *err);
void iscsibe_session_close(struct iscsibe_session *s); /* with a logout, if it is still alive */
int iscsibe_session_fd(const struct iscsibe_session *s);
/* iscsi_discover.c: the targets that the portal offers, as words; in a session of its own. */
int iscsibe_discover(const struct iscsibe_login *login, char *buf, size_t len, struct err *err);

/* One command without data or with data from the target, which stays valid until the next one. Answers that mean "not now"
 * (net/again.h) are counted and the command repeated, all within login->timeout. `lun` as on the wire. 0: the target has
 * answered, whatever it said. -1: it did not; err. */
int iscsibe_command(struct iscsibe_session *s, uint64_t lun, const uint8_t *cdb, unsigned cdb_size, uint32_t alloc,
                    struct iscsibe_reply *reply, struct err *err);
/* Does this answer mean that the target has no such command, page or service action? Every other answer that is not GOOD
 * leaves open what it would have said. */
bool iscsibe_not_there(const struct iscsibe_reply *reply);
/* The same, for commands that only inform: true if it ended GOOD. False also when the session died (s->dead). Answers that
 * mean "not now" are waited out for half of the time that is left: what comes after them needs some. */
bool iscsibe_ask(struct iscsibe_session *s, const uint8_t *cdb, unsigned cdb_size, uint32_t alloc,
                 struct iscsibe_reply *reply);
bool iscsibe_ask_lun(struct iscsibe_session *s, uint64_t lun, const uint8_t *cdb, unsigned cdb_size, uint32_t alloc,
                     struct iscsibe_reply *reply); /* of another LUN than the session's */
bool iscsibe_vpd(struct iscsibe_session *s, uint8_t page, struct iscsibe_reply *reply);
/* A page without which nothing goes on: 1 it is in *reply, 0 the target has no such page, -1 neither is known; err. */
int iscsibe_vpd_must(struct iscsibe_session *s, uint8_t page, struct iscsibe_reply *reply, struct err *err);
/* "MEDIUM ERROR 11/00 (Unrecovered read error)", "RESERVATION CONFLICT" */
const char *iscsibe_reply_words(const struct iscsibe_reply *reply, char *buf, size_t len);

/* REPORT LUNS, of LUN 0 or the well known one: what iscsibe_luns_find and iscsibe_luns_words read. */
bool iscsibe_report_luns(struct iscsibe_session *s, struct iscsibe_reply *reply);
int iscsibe_no_such_lun(struct iscsibe_session *s, const char *why, struct err *err); /* an error with those that there are */
/* TEST UNIT READY until the unit is ready; RESERVATION CONFLICT counts as ready and sets *reserved. */
int iscsibe_ready(struct iscsibe_session *s, bool *reserved, struct err *err);
/* Is all of what was opened still there? A LUN that has grown is used as large as it was: *grown by so many bytes. */
int iscsibe_check_size(const struct iscsibe_capacity *now, const struct handle *h, uint64_t *grown, struct err *err);
int iscsibe_capacity(struct iscsibe_session *s, struct iscsibe_capacity *out, struct err *err);
/* VPD 83 and 80, as far as the target has them. The number of names, -1: it does not say now; err. *vpd83 stays in `keep`
 * (its length returned by *n83). */
int iscsibe_identify(struct iscsibe_session *s, bool has83, bool has80, const struct iscsibe_inquiry *inquiry,
                     char out[FACTS_IDENTITIES][128], bool *weak, uint8_t *keep, size_t *n83, struct err *err);
/* Asks for the path's ALUA state, from what INQUIRY and VPD 83 said. Fails if such a path is not to be used. */
int iscsibe_ask_alua(struct iscsibe_session *s, unsigned tpgs, const uint8_t *vpd83, size_t n83, bool nonoptimized,
                     struct err *err);
/* iscsi_flush.c: what a flush is to be, from what the facts say of the cache: into h->sync_op and facts. */
void iscsibe_ask_flush(struct iscsibe_session *s, struct handle *h, struct facts *f);
/* Ready, the same LUN, as large as when it was opened, by a path that may be used: looked at by every attach before
 * anything is read or written. */
int iscsibe_same_lun(struct iscsibe_session *s, const struct handle *h, const struct seal *seal, struct err *err);

/* ---- iscsi_library.c: the library's half ---- */

struct iscsibe_library {
    struct iscsi_context *iscsi;
    int64_t timeout;
    /* The one thing that is waited for. It lives here, not on the caller's stack: what was given up is still known to
     * the library, which calls back when the context is destroyed. */
    bool waiting, logging_in, logged_in, dead;
    int status;                       /* SCSI_STATUS_... */
    char words[300];                  /* the library's, when it failed */
    struct scsi_task task;
    struct scsi_iovec iov;
};
int iscsibe_library_open(const struct iscsibe_login *login, struct iscsibe_library **out, unsigned *login_status,
                         struct err *err);
void iscsibe_library_close(struct iscsibe_library *l, bool logout);
int iscsibe_library_command(struct iscsibe_library *l, uint64_t lun, const uint8_t *cdb, unsigned cdb_size, uint8_t *data,
                            uint32_t alloc, int64_t end, struct iscsibe_reply *reply, struct err *err);
/* Why the library's session broke: the socket's words, and its own unless they are left over from a command's status. */
const char *iscsibe_session_why(const struct iscsibe_session *s, char *buf, size_t len);

#endif
