/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Is an open block device still the disk that it was? A LUN can be exchanged behind a session that goes on, and a name in
 * /dev can come to mean another disk: neither shows in an open descriptor. */
#ifndef BACKENDS_LOCAL_DEVGUARD_H
#define BACKENDS_LOCAL_DEVGUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "backends/backend.h"
#include "base/kinds.h"

struct devguard; /* several threads may ask it at once */

/* Sequence number that the kernel gives to a disk when it comes, or gets another medium; 0: unknown (Linux below 5.15). */
uint64_t devguard_sequence(int fd);
/* Takes down size, sequence number, and for every disk that the device ends at the name that it answers with now. `fd`
 * stays the caller's, and open. `stale` tells where that is another name than the kernel has on record ("" otherwise).
 * NULL: no memory. */
struct devguard *devguard_new(const char *sys, dev_t dev, int fd, char *stale, size_t stale_len);
void devguard_free(struct devguard *g);
/* From now on these bytes, which were written to the device, must be found there, too; the first ones stay. A device that
 * names itself like another one is known by nothing else. */
void devguard_seal(struct devguard *g, const struct seal *seal);
/* Asks all of it again: false if it is another disk now or nobody can tell, with words why. Blocks for milliseconds, of
 * a disk that does not answer for seconds. */
bool devguard_same(struct devguard *g, char *why, size_t len);
/* Without a reason, beside the I/O: if it is another disk now, that is a doubt, and the data paths ask. Where it cannot be
 * told, there is none: the I/O itself will meet that. Blocks in the same way. */
void devguard_check(struct devguard *g);
/* How many reads of the device the questions have taken. */
uint64_t devguard_reads(const struct devguard *g);

/* For the data paths. An I/O failed: before anything more goes out, by whatever context, it is asked. `g` may be NULL. */
void devguard_doubt(struct devguard *g);
int devguard_ask(struct devguard *g, unsigned *seen, struct kinds *kinds); /* of the next one; `g` is there */
/* Before requests go out: 0, or -ENODEV, and why in `kinds`. *seen is the context's own, 0 at first. Costs a look at a
 * counter as long as nothing has failed. `g` may be NULL. */
static inline int devguard_admit(struct devguard *g, unsigned *seen, struct kinds *kinds) {
    return g ? devguard_ask(g, seen, kinds) : 0;
}

#endif
