/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What an answer means for the command beyond its failing: is it to be sent again (the policy of backends/net/again.h),
 * and may the unit be another one from now on? Pure. */
#ifndef BACKENDS_ISCSI_ISCSI_AGAIN_H
#define BACKENDS_ISCSI_ISCSI_AGAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/kv.h"

enum iscsibe_again { AGAIN_NOT, AGAIN_BUSY, AGAIN_TASK_SET_FULL, AGAIN_ATTENTION, AGAIN_TRANSITION, AGAIN_KINDS };

/* AGAIN_NOT: it is final. `status` is SCSI's; key and ascq are looked at with CHECK CONDITION only. */
enum iscsibe_again iscsibe_again_kind(unsigned status, unsigned key, unsigned ascq);
/* "BUSY", "TASK SET FULL", "UNIT ATTENTION 29/00", "NOT READY 04/0A" */
const char *iscsibe_again_name(unsigned status, unsigned key, unsigned ascq, char *buf, size_t len);
/* After such an answer nothing is written before the unit has said again who it is: it may have been exchanged. */
bool iscsibe_doubtful(unsigned status, unsigned key, unsigned ascq);

/* The error of a flush that the unit has no command for. */
#define FLUSH_IMPOSSIBLE      "flush not possible"
#define FLUSH_IMPOSSIBLE_TEXT "the LUN has neither SYNCHRONIZE CACHE(16) nor (10)"

struct iscsibe_again_counts { uint64_t kind[AGAIN_KINDS], wait_ns; };
/* Notes an answer of this kind, the `answers`th (1: the first) to a request that is `age` ns old. The pause until it is
 * sent again; -1: it is as old as `timeout` allows, and fails. */
int64_t iscsibe_again_after(struct iscsibe_again_counts *counts, enum iscsibe_again kind, unsigned answers, int64_t age,
                            int64_t timeout);
void iscsibe_again_counters(const struct iscsibe_again_counts *counts, struct kv *out);

#endif
