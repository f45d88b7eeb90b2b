/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Errors that the kernel mends without a word (a unit attention, a session that was lost and came back) show only in the
 * disk's error counter; behind each may stand another disk. */
#ifndef BACKENDS_LOCAL_DEVWATCH_H
#define BACKENDS_LOCAL_DEVWATCH_H

#include <sys/types.h>

#include "backends/local/devguard.h"
#include "base/err.h"

struct devwatch; /* a thread that looks ten times a second, and asks the device itself once */

/* Watches every SCSI disk that `dev` ends at, and tells `guard`, which outlives it, of each new error. *out is NULL where
 * there is nothing to watch. Error: STATUS_TARGET. */
int devwatch_start(const char *sys, dev_t dev, struct devguard *guard, struct devwatch **out, struct err *err);
void devwatch_stop(struct devwatch *w);

#endif
