/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a dm-multipath map does with its paths: from its table, which sysfs does not have. */
#ifndef BACKENDS_LOCAL_MULTIPATH_H
#define BACKENDS_LOCAL_MULTIPATH_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/kv.h"

/* The parameters of a table line of target type "multipath": its path selectors, handler, features and groups go to
 * `out`. False, and nothing there, if they do not have the form. */
bool multipath_table(const char *params, struct kv *out);
/* If the facts in `out` say that `dev` is a multipath map ("dm_uuid"): adds what its table says, or why it could not be
 * read. `control`: "/dev/mapper/control". */
void multipath_facts(const char *control, dev_t dev, struct kv *out);

#endif
