/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/rng.h"

#include <string.h>

/* Four successive outputs of splitmix64. Its output function is a bijection, so at most one of the four words is zero:
 * the all-zero state, from which xoshiro never leaves, cannot come. */
void rng_seed(struct rng *rng, uint64_t seed) {
    for (unsigned i = 0; i < 4; i++) rng->s[i] = rng_mix(seed + i * 0x9e3779b97f4a7c15ULL);
}

void rng_fill(struct rng *rng, void *buf, size_t len) {
    unsigned char *p = buf;

    for (; len >= sizeof(uint64_t); p += sizeof(uint64_t), len -= sizeof(uint64_t)) {
        uint64_t r = rng_next(rng);
        memcpy(p, &r, sizeof(r));
    }
    if (len > 0) {
        uint64_t r = rng_next(rng);
        memcpy(p, &r, len);
    }
}
