/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/iscsi/iscsi_again.h"

#include <stdio.h>

#include "backends/iscsi/iscsi_facts.h"
#include "backends/net/again.h"

enum { CHECK_CONDITION = 0x02, BUSY = 0x08, TASK_SET_FULL = 0x28, TASK_ABORTED = 0x40 };
enum { NOT_READY = 2, ILLEGAL_REQUEST = 5, UNIT_ATTENTION = 6 };

enum iscsibe_again iscsibe_again_kind(unsigned status, unsigned key, unsigned ascq) {
    if (status == BUSY) return AGAIN_BUSY;
    if (status == TASK_SET_FULL) return AGAIN_TASK_SET_FULL;
    if (status != CHECK_CONDITION) return AGAIN_NOT;
    if (key == UNIT_ATTENTION) return AGAIN_ATTENTION;
    /* becoming ready; asymmetric access state transition. Standby and unavailable do not pass by waiting. */
    return key == NOT_READY && (ascq == 0x0401 || ascq == 0x040a) ? AGAIN_TRANSITION : AGAIN_NOT;
}

const char *iscsibe_again_name(unsigned status, unsigned key, unsigned ascq, char *buf, size_t len) {
    if (status == CHECK_CONDITION) return iscsibe_sense_kind(key, ascq, buf, len);
    snprintf(buf, len, "%s", status == BUSY ? "BUSY" : "TASK SET FULL");
    return buf;
}

bool iscsibe_doubtful(unsigned status, unsigned key, unsigned ascq) {
    if (status == TASK_ABORTED) return true; /* by another initiator's reset, or the target's own doing */
    if (status != CHECK_CONDITION) return false;
    if (key == UNIT_ATTENTION) return true;
    if (key == NOT_READY) return ascq >> 8 == 0x3a; /* medium not present: it can be exchanged */
    /* logical unit not supported; an LBA that was there is out of range; READ or WRITE is unknown */
    return key == ILLEGAL_REQUEST && (ascq == 0x2500 || ascq == 0x2100 || ascq == 0x2000);
}

int64_t iscsibe_again_after(struct iscsibe_again_counts *counts, enum iscsibe_again kind, unsigned answers, int64_t age,
                            int64_t timeout) {
    int64_t pause = again_pause(answers), left = timeout - age;

    if (left <= 0) return -1;
    if (pause > left) pause = left;
    counts->kind[kind]++;
    counts->wait_ns += (uint64_t)pause;
    return pause;
}

void iscsibe_again_counters(const struct iscsibe_again_counts *counts, struct kv *out) {
    static const char *const names[AGAIN_KINDS] = {
        [AGAIN_BUSY] = "retries_busy", [AGAIN_TASK_SET_FULL] = "retries_task_set_full",
        [AGAIN_ATTENTION] = "retries_unit_attention", [AGAIN_TRANSITION] = "retries_transition" };
    uint64_t all = 0;

    for (unsigned i = AGAIN_BUSY; i < AGAIN_KINDS; i++) all += counts->kind[i];
    kv_uint(out, "retries", all);
    kv_uint(out, "retry_wait_ns", counts->wait_ns);
    for (unsigned i = AGAIN_BUSY; i < AGAIN_KINDS; i++) kv_uint(out, names[i], counts->kind[i]);
}
