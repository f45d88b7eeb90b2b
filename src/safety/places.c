/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "safety/places.h"

#include <string.h>
#include <sys/random.h>

#include "base/rng.h"
#include "target/blockio.h"

void places_choose(struct places *p, uint64_t size, uint64_t from, uint64_t to) {
    struct rng rng;
    uint64_t seed = 0, whole = size / p->unit;

    if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed)) seed = size;
    rng_seed(&rng, seed);
    p->n = 0;
    if (whole == 0) return;
    uint64_t first = (from + p->unit - 1) / p->unit, end = to / p->unit < whole ? to / p->unit : whole;
    p->at[p->n++] = 0;
    p->at[p->n++] = (whole - 1) * p->unit;
    for (unsigned i = 0; i < PLACES_SAMPLES; i++) p->at[p->n++] = rng_below(&rng, whole) * p->unit;
    if (first >= end) return;
    p->at[p->n++] = first * p->unit;
    p->at[p->n++] = (end - 1) * p->unit;
    for (unsigned i = 0; i < PLACES_SAMPLES; i++) p->at[p->n++] = (first + rng_below(&rng, end - first)) * p->unit;
}

struct reading {
    const struct places *p;
    unsigned char *buf;
};

/* They come in any order, and a place may be there twice. */
static int put(void *arg, uint64_t offset, void *bytes, size_t len) {
    const struct reading *r = arg;

    for (unsigned i = 0; i < r->p->n; i++)
        if (r->p->at[i] == offset) memcpy(r->buf + (size_t)i * r->p->unit, bytes, len);
    return 0;
}

/* One way after the other: some targets allow one session only. */
int places_read(const struct member *m, struct clock *clock, unsigned road, const struct places *p, unsigned char *buf,
                struct err *err) {
    struct blockio *io;
    struct reading r = {p, buf};

    if (blockio_open_road(m->backend, m->handle, &m->facts, clock, BLOCKIO_LOOK_DEPTH, p->unit, false, road, &io, err) != 0) return -1;
    int rc = blockio_read_places(io, p->at, p->n, p->unit, put, &r, err);
    blockio_close(io);
    return rc;
}

unsigned places_difference(const struct places *p, const unsigned char *x, const unsigned char *y) {
    unsigned i = 0;
    while (i < p->n && memcmp(x + (size_t)i * p->unit, y + (size_t)i * p->unit, p->unit) == 0) i++;
    return i;
}
