/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Do large replies come as well as small ones? On a way with an MTU that is too small somewhere, and where nobody says so,
 * all goes well until the first packet of full size. */
#ifndef TARGET_REACH_H
#define TARGET_REACH_H

#include <stdint.h>

#include "target/target.h"

struct reach {
    uint32_t bytes;           /* of the large READ; 0: none was tried */
    int64_t small_ns, ns;     /* how long the small READ took, and the large one; -1: no answer */
    double mss, mtu;          /* of the large one's connection; NAN: unknown */
    char warning[400];        /* ""; else what it means that it had no answer */
};

/* One READ of a block and one of some packets, of the first member, where that is reached by a network. Blocks for a few
 * seconds at most. */
void reach_try(const struct target *t, struct reach *out);

#endif
