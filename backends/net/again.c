/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/net/again.h"

#include <time.h>

#include "backends/net/sock.h"

bool again_sleep(unsigned *answers, int64_t end) {
    int64_t left = end - sock_now(), pause = again_pause(++*answers);
    if (left < 2 * AGAIN_ANSWER_NS) return false;
    if (pause > left / 2) pause = left / 2;
    struct timespec ts = { .tv_sec = (time_t)(pause / NS_PER_SEC), .tv_nsec = (long)(pause % NS_PER_SEC) };
    nanosleep(&ts, NULL);
    return true;
}
