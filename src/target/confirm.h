/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Is an object still the one that this plan's record stands in? A backend asks once a second while it writes, which says
 * nothing of the time since it asked last. So it is asked again after the last write, and before the next one where this
 * client stood still (stopped, a machine that was suspended or starved): what it is about to write was meant for what was
 * there before. */
#ifndef TARGET_CONFIRM_H
#define TARGET_CONFIRM_H

#include "backends/backend.h"

/* So long between two steps of a loop that never waits that long is a standstill. */
#define CONFIRM_STANDSTILL (1500 * NS_PER_MS)

/* By a new context, whose attach looks at names, size and the seal. Blocks. -1 (STATUS_TARGET): it is another object, or
 * nobody can tell. */
int confirm_object(const struct backend *backend, struct handle *h, const struct facts *facts, struct clock *clock,
                   const struct seal *seal, struct err *err);

#endif
