/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The library reads in a loop of its own for as long as the target sends, and its caller can look at no clock meanwhile. A
 * thread beside each context does: one call that lasts longer than timeout= ends with the connection. */
#ifndef BACKENDS_ISCSI_ISCSI_LIBISCSI_GUARD_H
#define BACKENDS_ISCSI_ISCSI_LIBISCSI_GUARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct libguard;

/* `calls` is odd while its one writer is inside the library, and another number for each call; it costs no more than that.
 * NULL: no memory or no thread. */
struct libguard *libguard_start(int fd, int64_t timeout, const _Atomic unsigned *calls);
/* Before the descriptor is closed. Was the connection shut down by it? NULL is none. */
bool libguard_stop(struct libguard *g);

#endif
