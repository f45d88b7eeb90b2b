/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Are blocks that were just written through one target found through another? Private to this folder. */
#ifndef SAFETY_LOOKTHROUGH_H
#define SAFETY_LOOKTHROUGH_H

#include <signal.h>

#include "safety/safety.h"

#define LOOKTHROUGH_SAME   64  /* blocks at the places that were written */
#define LOOKTHROUGH_RANDOM 256 /* blocks of the whole of each member */

struct lookthrough {
    uint64_t blocks;          /* that were read */
    unsigned places;          /* of them, those where the other was written */
    unsigned same, elsewhere; /* those with the tag: at these places, and among the rest */
};

/* Reads through `t`, for blocks of each of `n` runs, which wrote [from, to); out[i] is for tag[i]. -1: reading failed.
 * 1: interrupted. */
int lookthrough(const struct target *t, const uint32_t *tag, unsigned n, uint64_t from, uint64_t to,
                struct lookthrough *out, struct err *err);

#endif
