/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Random numbers: xoshiro256** (Blackman, Vigna 2018), seeded by splitmix64; bounded without bias (Lemire 2019). */
#ifndef BASE_RNG_H
#define BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

struct rng { uint64_t s[4]; };

/* One step of splitmix64: also used to mix small integers into seeds and hashes. */
static inline uint64_t rng_mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

void rng_seed(struct rng *rng, uint64_t seed);

static inline uint64_t rng_next(struct rng *rng) {
    uint64_t *s = rng->s, x = s[1] * 5, r = ((x << 7) | (x >> 57)) * 9, t = s[1] << 17;
    s[2] ^= s[0]; s[3] ^= s[1]; s[1] ^= s[2]; s[0] ^= s[3];
    s[2] ^= t; s[3] = (s[3] << 45) | (s[3] >> 19);
    return r;
}

/* Uniform in [0, bound), bound > 0, no bias. */
static inline uint64_t rng_below(struct rng *rng, uint64_t bound) {
    unsigned __int128 m = (unsigned __int128)rng_next(rng) * bound;
    if (__builtin_expect((uint64_t)m < bound, 0)) {
        uint64_t floor = -bound % bound;
        while ((uint64_t)m < floor) m = (unsigned __int128)rng_next(rng) * bound;
    }
    return (uint64_t)(m >> 64);
}

void rng_fill(struct rng *rng, void *buf, size_t len); /* incompressible bytes */

#endif
