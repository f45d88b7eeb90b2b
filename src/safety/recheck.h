/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Consent is for what was found; what came afterwards is not covered. Private to this folder. */
#ifndef SAFETY_RECHECK_H
#define SAFETY_RECHECK_H

#include "safety/safety.h"

/* Looks at the member again, through the handle that will write. -1 (STATUS_TARGET): there is what the decision was not
 * made for, or it cannot be read. 1: interrupted. */
int recheck_member(const struct target *t, const struct safety_decision *d, volatile sig_atomic_t *interrupted,
                   struct err *err);
/* Has this machine begun to use it: mounted the LUN by a road of its own, put a loop device on the file and mounted that?
 * -1 (STATUS_TARGET) if so. A block device is open exclusively, and needs no second look. */
int recheck_use(const struct target *t, const char *sysfs, const char *proc, struct err *err);

#endif
