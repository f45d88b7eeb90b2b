/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Two samedisk on one file or device of this host notice each other: an advisory lock (flock) on the object, shared to
 * read, exclusive to write, from open to close. */
#ifndef BACKENDS_LOCAL_LOCK_H
#define BACKENDS_LOCAL_LOCK_H

#include <stdbool.h>

#include "backends/backend.h"

struct lock; /* one for each object in this process, however often it is open */

/* Locks what `fd` has open; `write`: for the handle that will write. Somebody else's lock is no error: who holds it stands
 * in facts->in_use then. Others than samedisk (udev holds one for a moment after each change) are waited for, up to 5 s.
 * NULL in *out: there is no lock. Any thread. */
void lock_take(int fd, bool write, struct lock **out, struct facts *facts);
void lock_give(struct lock *lock); /* NULL is allowed */

#endif
