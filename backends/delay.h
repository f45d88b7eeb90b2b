/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A filter: latency that a backend does not have.
 *
 * A fixed time is added to each I/O and flush: its completion is handed over, and stamped, no earlier than `delay_ns`
 * after the stamp that the backend below gave it, so that its latency is the real one and the delay. I/Os overlap: the
 * delay limits no rate and keeps the order in which they came back. What waits counts as outstanding; a failed I/O is
 * delayed like others. How late the wake-up of this host is comes on top. */
#ifndef BACKENDS_DELAY_H
#define BACKENDS_DELAY_H

#include "backends/backend.h"

struct delay_how {
    const struct backend *backend;
    struct handle *handle;      /* opened; stays the caller's, and outlives the filter */
    uint64_t delay_ns;
};

/* In place of backend->open; the facts are those of the backend below. */
int delay_open(const struct delay_how *how, struct handle **out, struct err *err);

/* Its configure and open are NULL; close frees the filter, not what is below. remove and pings are asked there. */
extern const struct backend backend_delay;

#endif
