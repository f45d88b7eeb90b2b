/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Can this target do what this pattern asks? Facts against keys, before anything runs. */
#ifndef ENGINE_PLAN_CHECK_H
#define ENGINE_PLAN_CHECK_H

#include "engine/plan.h"

/* Errors (USAGE) name pattern, target and key, both numbers, and what would do. */
int plan_check_target(const struct plan *plan, const struct pattern *p, const struct target *t, struct err *err);

/* Bytes that a range of this pattern has at least: one I/O, or one step for each worker where all I/O is sequential. */
uint64_t plan_least_size(const struct pattern *p);

/* Has every worker's stream its room in the working set? After the size is known. */
int plan_check_stream(const struct pattern *p, struct err *err);

#endif
