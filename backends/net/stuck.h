/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The last resort against a library that does not come back from a call. */
#ifndef BACKENDS_NET_STUCK_H
#define BACKENDS_NET_STUCK_H

#include "base/clock.h"

/* So long after its connection was shut down a library should have come back. */
#define STUCK_NS (2 * NS_PER_SEC)

/* Says so, and ends the process with STATUS_TARGET, as nothing can take a thread out of a library. Results of finished runs
 * are in the file that --json names by then. Any thread. */
void stuck_in(const char *library) __attribute__((noreturn));

#endif
