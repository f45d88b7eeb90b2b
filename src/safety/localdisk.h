/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who on this machine uses a block device: a picture of sysfs and proc, taken once, and the question asked of it. It is
 * also asked about LUNs that come over the network, because the same LUN may be a local disk by another road. */
#ifndef SAFETY_LOCALDISK_H
#define SAFETY_LOCALDISK_H

#include <stdbool.h>
#include <stddef.h>

#include "backends/backend.h"

struct localdisk;

/* `sysfs`, `proc`: "/sys", "/proc", or made-up roots of tests. Error: what cannot be read (STATUS_USAGE: without it
 * nobody can say what is in use). */
int localdisk_scan(const char *sysfs, const char *proc, struct localdisk **out, struct err *err);
void localdisk_free(struct localdisk *l);
/* Is the object (or a part of it, or the whole it is part of) mounted, held, swap, served as a LUN, or behind a loop
 * device? `why` then says by what. If not, `note` names the local devices that are the same object ("" if there are
 * none). */
bool localdisk_in_use(const struct localdisk *l, const struct facts *facts, char *why, size_t why_len, char *note,
                      size_t note_len);
/* Does a loop device stand on the file `path`, or is it swap? `why` then says which. False also for what is no regular
 * file of this machine. */
bool localdisk_file_used(const char *path, char *why, size_t why_len);

#endif
