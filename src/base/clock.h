/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The one notion of time: nanoseconds of CLOCK_MONOTONIC, or of a virtual clock that tests move. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_SEC 1000000000LL
#define NS_PER_MS 1000000LL
#define NS_PER_US 1000LL

/* NULL functions mean the real clock, so that clock_now() costs one predictable branch and the vDSO call. */
struct clock {
    int64_t (*now)(struct clock *clock);
    /* Sleep (real) or jump (virtual) to `t`; returns at once when it is past. Real sleeps may end early on a signal. */
    void (*wait_until)(struct clock *clock, int64_t t);
};

/* A clock that stands still until someone waits on it. Not shared between threads. */
struct clock_virtual {
    struct clock clock;
    int64_t t;
};

/* Current time in ns. Any thread. */
static inline int64_t clock_now(struct clock *clock) {
    if (__builtin_expect(clock->now != 0, 0)) return clock->now(clock);
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * NS_PER_SEC + ts.tv_nsec;
}

void clock_real_init(struct clock *clock);
void clock_virtual_init(struct clock_virtual *clock, int64_t start);
void clock_wait_until(struct clock *clock, int64_t t);
static inline int clock_is_virtual(const struct clock *clock) { return clock->now != 0; }

/* Median cost in ns of one clock_now() on the real clock, from a few thousand calls. */
double clock_cost_ns(void);

#endif
