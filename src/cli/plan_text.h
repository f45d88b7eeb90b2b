/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The plan in words: before a run, and for --dry-run. */
#ifndef CLI_PLAN_TEXT_H
#define CLI_PLAN_TEXT_H

#include <stdbool.h>
#include <stdio.h>

#include "engine/plan.h"
#include "safety/safety.h"

/* "expected duration 12 min: 24 runs, ..." */
void plan_text_duration(const struct plan *plan, char *buf, size_t len);
/* "nfs and iscsi are one object; fc and fc-2 may be one object", of those whose cache is warmed for it. Returns buf. */
const char *plan_text_shared(const struct plan *plan, const struct sameness *same, char *buf, size_t len);
/* Everything: targets, what is written where, patterns, the order of the runs, the duration. Of the keys what the load is
 * first of all, and what is not default; all of them if `verbose`. */
void plan_text_print(const struct plan *plan, const struct safety_report *report, const char *json, bool verbose,
                     FILE *out);

#endif
