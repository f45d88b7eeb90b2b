/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Some blocks of an object, read by two ways to see whether both lead to one. Private to this folder. */
#ifndef SAFETY_PLACES_H
#define SAFETY_PLACES_H

#include <stdint.h>

#include "target/target.h"

#define PLACES_SAMPLES 32 /* random blocks of the range that will be written, and as many of the whole */
#define PLACES_MAX     (2 * PLACES_SAMPLES + 4)

struct places {
    uint32_t unit; /* bytes of a block; set before places_choose */
    uint64_t at[PLACES_MAX];
    unsigned n;
};

/* First, last and random blocks of an object of `size` bytes, and of its range [from, to). */
void places_choose(struct places *p, uint64_t size, uint64_t from, uint64_t to);
/* All of them into buf (n x unit bytes), many at a time. `road`: see attach_how. STATUS_TARGET. */
int places_read(const struct member *m, struct clock *clock, unsigned road, const struct places *p, unsigned char *buf,
                struct err *err);
/* The first place where the two readings differ; n if there is none. */
unsigned places_difference(const struct places *p, const unsigned char *x, const unsigned char *y);

#endif
