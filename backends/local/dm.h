/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What sysfs does not tell of a device mapper device: of what kind its targets are, and what a dm-multipath map does with
 * its paths. */
#ifndef BACKENDS_LOCAL_DM_H
#define BACKENDS_LOCAL_DM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "backends/backend.h"

/* The parameters of a table line of target type "multipath": its path selectors, handler, features and groups go to
 * `out`. False, and nothing there, if they do not have the form. */
bool dm_multipath_table(const char *params, struct kv *out);
/* Its status line: state of each group and path, which group is active, how many paths have failed. Paths are named as
 * in sysfs. False as above. */
bool dm_multipath_status(const char *sys, const char *params, struct kv *out);
/* If f->negotiated says that `dev` is one of the device mapper's ("dm_name"): the kinds of its targets ("dm_targets"),
 * also in f->summary; of a multipath map what its table and status say, and a warning of paths that have failed.
 * `control`: "/dev/mapper/control". */
void dm_facts(const char *sys, const char *control, dev_t dev, struct facts *f);

#endif
