/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The iSCSI backend's pings, on a session of their own: NOP-Out, which the target's iSCSI layer answers, and TEST UNIT
 * READY, which takes the way through the logical unit's queue, but to no data. */
#ifndef BACKENDS_ISCSI_ISCSI_PING_H
#define BACKENDS_ISCSI_ISCSI_PING_H

#include "backends/iscsi/iscsi.h"
#include "backends/iscsi/iscsi_link.h"

extern const char *const iscsibe_pings[]; /* struct backend's `pings`, and the calls beside it */
int iscsibe_ping_open(struct handle *h, struct pinger **out, struct err *err);
int64_t iscsibe_ping(struct pinger *p, unsigned kind, int64_t timeout_ns);
int64_t iscsibe_ping_floor(struct pinger *p);
void iscsibe_ping_abort(struct pinger *p);
void iscsibe_ping_close(struct pinger *p);

/* iscsi_attach.c: does this session, which is logged in, lead to the unit that was opened? */
int iscsibe_ping_same_lun(struct handle *h, const struct iscsibe_login *login, struct iscsibe_link *link,
                          struct err *err);
/* Over a session that is logged in, which is the pinger's own from now on; `lun` as on the wire. NULL: no memory. */
struct pinger *iscsibe_ping_over(struct iscsibe_link *link, uint64_t lun);

#endif
