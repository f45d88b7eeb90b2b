/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A session of our own: one TCP connection, logged in, and SCSI commands one at a time, with deadlines. What a context
 * looks at before it takes the connection over for its data path. */
#ifndef BACKENDS_ISCSI_ISCSI_LINK_H
#define BACKENDS_ISCSI_ISCSI_LINK_H

#include "backends/iscsi/iscsi.h"
#include "backends/iscsi/iscsi_keys.h"

struct iscsibe_link {
    int fd;                         /* in blocking mode; -1: taken over */
    int64_t timeout;                /* ns, of each step */
    struct iscsibe_terms terms;
    uint32_t cmd_sn, exp_stat_sn, max_cmd_sn, itt;
    bool full_feature;              /* digests are in force */
    char auth[16], alias[256], portal_group[16];
};

struct iscsibe_link_reply {
    unsigned response, status, key, ascq; /* response: not 0 if the target could not do the command at all */
    uint32_t len;                         /* of the data that came */
};

/* *status: why the target refused (class << 8 | detail), 0 otherwise. Follows redirections. */
int iscsibe_link_open(const struct iscsibe_login *login, const uint8_t isid[6], struct iscsibe_link **out,
                      unsigned *status, struct err *err);
/* A command without data, or with up to `alloc` bytes from the target, which come to `data`. */
int iscsibe_link_command(struct iscsibe_link *l, unsigned lun, const uint8_t *cdb, unsigned cdb_size, uint8_t *data,
                         uint32_t alloc, struct iscsibe_link_reply *reply, struct err *err);
void iscsibe_link_close(struct iscsibe_link *l, bool logout);

#endif
