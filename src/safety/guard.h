/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What stands between a consented plan and its writes, from safety_apply to the plan's end: who else writes to a target,
 * whether what lies on it is still what was consented to, and which targets turn out to be one object. */
#ifndef SAFETY_GUARD_H
#define SAFETY_GUARD_H

#include "pattern/data.h"
#include "safety/safety.h"

struct safety_guard;

/* Takes every target that will be written: reads its owner's record, writes our own, waits, and reads it back. Settles
 * which targets that looked like one are one (report->same). Both outlive the guard. -1: refused (STATUS_USAGE; what was
 * taken is given back), or a target failed (STATUS_TARGET). Blocks for about 0.3 s. */
int safety_guard_begin(const struct safety_wish *wish, struct safety_report *report, struct safety_guard **out,
                       struct err *err);
/* What all writes over the record's block must carry from now on; NULL: nothing. Lives as long as the guard. */
const struct data_note *safety_guard_note(const struct safety_guard *g, unsigned target);
/* Right before target `t` is written: is our record still there? The first time also: is there nothing but what was
 * consented to, and are blocks of the targets that were filled before (`fill_tag` of each in its marks) found in it? -1:
 * it must not be written (STATUS_TARGET). 1: interrupted while looking. */
int safety_guard_before_write(struct safety_guard *g, unsigned t, bool first, const uint32_t *fill_tag,
                              struct err *err);
/* Gives back what was taken. NULL is allowed. */
void safety_guard_end(struct safety_guard *g);

#endif
