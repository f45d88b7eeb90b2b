/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Answers that mean "not now": NFS3ERR_JUKEBOX, BUSY, TASK SET FULL, unit attentions, an ALUA group in transition. NFS and
 * iSCSI treat them alike, at open and under load: the request is sent again after a pause that grows, until it is as old
 * as timeout= allows; then it fails alone, with the answer as its reason. The pauses are part of its latency.
 *
 * Counters that both protocols keep: "retries" (requests sent again for any of these answers), "retry_wait_ns" (the sum of
 * the pauses), and one for each kind: "retries_jukebox", "retries_busy", "retries_task_set_full",
 * "retries_unit_attention", "retries_transition". */
#ifndef BACKENDS_NET_AGAIN_H
#define BACKENDS_NET_AGAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define AGAIN_FIRST_NS NS_PER_MS  /* the pause after the first such answer */
#define AGAIN_MOST_NS  NS_PER_SEC /* no pause is longer */
#define AGAIN_ANSWER_NS (100 * NS_PER_MS) /* before `end` a call that is sent again still has so long for its answer */

/* ns to wait after `answers` (1: the first) such answers to one request: doubles from AGAIN_FIRST_NS up to AGAIN_MOST_NS. */
static inline int64_t again_pause(unsigned answers) {
    unsigned doublings = answers > 1 ? answers - 1 : 0;
    int64_t ns = doublings < 10 ? AGAIN_FIRST_NS << doublings : AGAIN_MOST_NS;
    return ns < AGAIN_MOST_NS ? ns : AGAIN_MOST_NS;
}

/* For one call at a time, before the load: blocks for the pause after one more such answer (*answers counts them), no
 * longer than half of what is left until `end` (of sock_now()): the last tries come shortly before it. False: it is `end`:
 * the answer is the reason of a failure. */
bool again_sleep(unsigned *answers, int64_t end);

#endif
