/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A session of our own: one TCP connection, logged in, and SCSI commands one at a time, with deadlines. What a context
 * looks at before it takes the connection over for its data path. */
#ifndef BACKENDS_ISCSI_ISCSI_LINK_H
#define BACKENDS_ISCSI_ISCSI_LINK_H

#include "backends/iscsi/iscsi.h"
#include "backends/iscsi/iscsi_keys.h"
#include "backends/iscsi/iscsi_wire.h"

#define LINK_DATA_MAX 65536u /* bytes of data that one command, or one PDU, may bring */
#define LINK_SEND_MAX 512u   /* of text that goes out */

struct iscsibe_link {
    int fd;                         /* in blocking mode; -1: taken over */
    struct iscsibe_terms terms;
    uint32_t cmd_sn, exp_stat_sn, max_cmd_sn, itt;
    bool full_feature;              /* digests are in force */
    char auth[24], alias[256], portal_group[16];
    char entry[ISCSIBE_PORTAL_SIZE]; /* numeric address and port of the first portal, before any redirection */
    char left[500];                  /* addresses that did not serve, and why; "": none */
    uint8_t segment[LINK_DATA_MAX]; /* data segment of the last PDU that came */
};

struct iscsibe_link_reply {
    unsigned response, status, key, ascq; /* response: not 0 if the target could not do the command at all */
    uint32_t len;                         /* of the data that came */
};

/* Within login->timeout, whatever the target does. *status: why the target refused (class << 8 | detail), 0 otherwise.
 * Follows redirections. An empty login->target: a discovery session. */
int iscsibe_link_open(const struct iscsibe_login *login, const uint8_t isid[6], struct iscsibe_link **out,
                      unsigned *status, struct err *err);
/* A command without data, or with up to `alloc` bytes (at most LINK_DATA_MAX) from the target, which come to `data`. `lun`
 * as iscsibe_lun_wire gives it, `end` by sock_now(): nothing that the target sends makes it last longer. */
int iscsibe_link_command(struct iscsibe_link *l, uint64_t lun, const uint8_t *cdb, unsigned cdb_size, uint8_t *data,
                         uint32_t alloc, int64_t end, struct iscsibe_link_reply *reply, struct err *err);
void iscsibe_link_close(struct iscsibe_link *l, bool logout);

/* One PDU each way. Sending sets length, CmdSN, ExpStatSN and digests; at most LINK_SEND_MAX bytes of data. Receiving reads
 * exactly one PDU, so that whoever takes the connection over finds it between two; more than `max` bytes of data are an
 * error. */
int iscsibe_link_send(struct iscsibe_link *l, uint8_t bhs[ISCSI_BHS], const void *data, uint32_t len, int64_t end,
                      struct err *err);
int iscsibe_link_recv(struct iscsibe_link *l, uint8_t bhs[ISCSI_BHS], uint8_t *data, uint32_t max, uint32_t *len,
                      int64_t end, struct err *err);

#endif
