/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The line above the rows: under which conditions the figures were taken. */
#ifndef REPORT_CONDITIONS_H
#define REPORT_CONDITIONS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define CONDITIONS_MAX 1024

/* What the plan asked of plan/patterns[index]; patterns with the same text share a line. */
void conditions_asked(const json_t *document, size_t index, char *buf, size_t len);
/* What came of it, for patterns first .. last: the depth that was achieved, and the durability class of the writes,
 * which stands once if all targets have the same, else per target. "" if no class is known. */
void conditions_depth(const json_t *document, size_t first, size_t last, char *buf, size_t len);
/* What samedisk's own loop takes of a CPU per I/O, measured without I/O at the start. "" if it is not known, or, unless
 * `always`, too little of any row's CPU time per I/O to matter. */
void conditions_own_cost(const json_t *document, size_t first, size_t last, bool always, char *buf, size_t len);
void conditions_durability(const json_t *document, size_t first, size_t last, char *buf, size_t len);
/* May pattern `index` stand under the line of `first`? Not if a target's writes were of another class. */
int conditions_agree(const json_t *document, size_t first, size_t index);

#endif
