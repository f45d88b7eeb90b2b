/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/clock.h"

#include <stdlib.h>

#define COST_BATCHES 101
#define COST_CALLS 64

static int64_t virtual_now(struct clock *clock) {
    return ((struct clock_virtual *)clock)->t;
}

static void virtual_wait_until(struct clock *clock, int64_t t) {
    struct clock_virtual *virtual = (struct clock_virtual *)clock;

    if (t > virtual->t) virtual->t = t;
}

void clock_real_init(struct clock *clock) {
    clock->now = NULL;
    clock->wait_until = NULL;
}

void clock_virtual_init(struct clock_virtual *clock, int64_t start) {
    clock->clock.now = virtual_now;
    clock->clock.wait_until = virtual_wait_until;
    clock->t = start;
}

void clock_wait_until(struct clock *clock, int64_t t) {
    if (clock->wait_until) {
        clock->wait_until(clock, t);
        return;
    }
    if (t <= 0) return; /* long past, and not a time that the kernel would take */
    struct timespec ts = { .tv_sec = (time_t)(t / NS_PER_SEC), .tv_nsec = (long)(t % NS_PER_SEC) };
    /* EINTR is left to the caller: a signal usually means that there is no point in waiting on. */
    (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

static int compare_int64(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* Single differences would only show the clock's resolution; the median of batches is free of both that and of the
 * batches that an interrupt hit. */
double clock_cost_ns(void) {
    struct clock real;
    int64_t batch[COST_BATCHES];

    clock_real_init(&real);
    for (int i = 0; i < COST_BATCHES; i++) {
        int64_t start = clock_now(&real), end = start;
        for (int k = 0; k < COST_CALLS; k++) end = clock_now(&real);
        batch[i] = end - start;
    }
    qsort(batch, COST_BATCHES, sizeof(batch[0]), compare_int64);
    return (double)batch[COST_BATCHES / 2] / COST_CALLS;
}
