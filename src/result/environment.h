/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The machine the load came from: what has to be known to believe, or repeat, a figure. */
#ifndef RESULT_ENVIRONMENT_H
#define RESULT_ENVIRONMENT_H

#include <jansson.h>

#include "base/kv.h"

/* The "environment" object, a new reference. `proc`, `sys`: "/proc", "/sys"; tests give made-up ones. What cannot be
 * read is null. `libraries`: names and versions. NICs: those that are up, with loopback, which carries local tests. */
json_t *environment_json(const char *proc, const char *sys, const struct kv *libraries, double clock_cost_ns);

#endif
