/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The target without I/O on which a session measures what samedisk itself costs (engine/selfcost.h). */
#ifndef CLI_OWN_COST_H
#define CLI_OWN_COST_H

#include "cli/targets.h"
#include "engine/plan.h"

/* Makes and opens a null target as large as the plan's working sets, and gives it to the plan. Not being able to is no
 * error: the figure is left out then. targets_free(out) after the session, in any case. */
void own_cost_open(struct plan *plan, struct clock *clock, struct targets *out);

#endif
