/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files that the user names for results. Every command's outputs go by this, so that a mistyped or forgotten name costs
 * nobody a file or a disk. */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include "cli/targets.h"

/* Before anything runs. `option`: "--json". Refuses what is a target of the plan, a device, or a file that is no earlier
 * result of ours (but for `force`); USAGE. */
int output_check(const char *option, const char *path, bool force, const struct targets *targets, struct err *err);
/* To be written once, when all is over: what is written there is not replaced, but followed by what comes next. */
bool output_is_stream(const char *path);
/* Replaces `path` by the text of a result, as a whole. */
int output_result(const char *path, bool force, const char *text, size_t len, struct err *err);

#endif
