/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Persistent reservations of a block device, asked of every disk that it ends at: those of a multipath map's paths are
 * one, those below a volume are its disks'. */
#ifndef BACKENDS_LOCAL_RESERVATIONS_H
#define BACKENDS_LOCAL_RESERVATIONS_H

#include "backends/backend.h"

/* "registered_keys", "reserved" or why it is not known to `negotiated`; any key is a reason in f->in_use. `fd`: the open
 * device. */
void reservations_facts(const char *sys, dev_t dev, int fd, struct facts *f);

#endif
