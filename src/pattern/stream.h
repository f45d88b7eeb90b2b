/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The generator: the stream of offsets, sizes and directions is a pure function of (pattern, working set, seed, round,
 * worker). No clock, no globals, no malloc. It runs on from the ramp into the window.
 *
 * Every I/O is drawn as Iometer does it: a row by its share, then read or write, then random or sequential. A random
 * I/O goes to any multiple of the row's alignment where it fits; a sequential one where the last I/O ended (of the same
 * direction with position=separate), rounded up to the row's alignment, and back to the start when it does not fit. */
#ifndef PATTERN_STREAM_H
#define PATTERN_STREAM_H

#include <stdint.h>

#include "base/io.h"
#include "base/rng.h"
#include "pattern/pattern.h"

struct stream_io {
    enum io_op op;       /* IO_READ or IO_WRITE; flushes are the engine's */
    uint32_t len;
    uint64_t offset;     /* within the target: pattern offset included */
};

#define STREAM_MARKS 48  /* 2^0 .. 2^47 I/Os */

struct stream_row {
    uint64_t slots;      /* random positions: floor((size - len) / align) + 1 */
    uint32_t len, align;
    uint8_t read;        /* percent */
    uint8_t random;      /* percent */
    uint8_t other;       /* the row that fills up this one's bin of the draw (alias method; Vose 1991) */
    uint16_t own;        /* draws of PATTERN_SHARES in this bin that are this row's */
};

struct stream {
    uint64_t state;              /* of the random draws */
    uint64_t base;               /* of the working set */
    uint64_t position[2];        /* next sequential offset for reads, writes; shared: only [0] is used */
    uint64_t count;              /* I/Os generated */
    uint64_t chain;              /* hash over all I/Os so far: direction, length, offset, order */
    uint64_t next_mark;          /* count at which the next mark is kept */
    uint32_t n_rows;
    uint32_t separate;           /* 1: a position for each direction */
    uint64_t from[2], to[2];     /* where sequential I/Os of each position stay: this worker's slice, or all */
    bool plain;                  /* one row, one direction, all random: no position is ever used */
    struct stream_io plain_io;   /* all of it but the offset */
    uint64_t plain_what;
    bool round;                  /* positions may need rounding up to the row's alignment */
    uint32_t n_marks;
    struct stream_row row[PATTERN_ALL_ROWS];
    uint64_t mark[STREAM_MARKS]; /* chain after 2^k I/Os */
};

/* The stream of `worker` of `workers` in `round` (1...). `base`/`size`: the working set in bytes; size must hold the
 * largest I/O, in every slice where all I/O is sequential (checked: error USAGE that names the pattern). The pattern's
 * randseed, if it has one, stands for `seed`. Streams of patterns with different names differ, unless they share a
 * randseed. */
int stream_init(struct stream *s, const struct pattern *p, uint64_t base, uint64_t size, uint64_t seed, unsigned round,
                unsigned worker, unsigned workers, struct err *err);
/* The next I/O. */
void stream_next(struct stream *s, struct stream_io *io);

/* ---- many at once, as a part of the caller's loop ---- */

/* The multiplication mixes all of its factors into both halves of the product. */
static inline uint64_t stream_fold(uint64_t a, uint64_t b) {
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* The draw of `state`, which then goes on by STREAM_STEP: wyrand (Wang Yi 2019), one word of state, one multiplication,
 * a third of the work of a larger generator, and as good in the tests of its kind (BigCrush, PractRand). */
#define STREAM_STEP 0xa0761d6478bd642fULL
static inline uint64_t stream_draw(uint64_t state) {
    return stream_fold(state, state ^ 0xe7037ed1a0b428dbULL);
}

/* Lemire's bounded draw as in rng_below: what to do with a product that may be one too many of its kind. Rare, so it goes
 * by value: what has an address does not stay in a register. */
struct stream_drawn { uint64_t state, value; };
struct stream_drawn stream_redraw(uint64_t state, uint64_t bound, uint64_t low, uint64_t high);
void stream_keep_mark(struct stream *s); /* at count == next_mark */

/* What stream_next does for one row, one direction, all random, up to the next mark: about 25 instructions each, for the
 * state stays in registers. */
static inline __attribute__((always_inline)) unsigned stream_each_plain(struct stream *s, unsigned n,
                                                                        void (*put)(void *arg,
                                                                                    const struct stream_io *io),
                                                                        void *arg) {
    const uint64_t slots = s->row[0].slots, align = s->row[0].align, base = s->base, what = s->plain_what;
    uint64_t state = s->state, chain = s->chain;
    struct stream_io io = s->plain_io;
    if (n > s->next_mark - s->count) n = (unsigned)(s->next_mark - s->count);
    for (unsigned i = 0; i < n; i++) {
        unsigned __int128 product = (unsigned __int128)stream_draw(state) * slots;
        uint64_t low = (uint64_t)product, slot = (uint64_t)(product >> 64);
        state += STREAM_STEP;
        if (__builtin_expect(low < slots, 0)) {
            struct stream_drawn again = stream_redraw(state, slots, low, slot);
            state = again.state;
            slot = again.value;
        }
        io.offset = base + slot * align;
        chain = stream_fold(chain ^ io.offset, what);
        put(arg, &io);
    }
    s->state = state;
    s->chain = chain;
    s->count += n;
    if (s->count == s->next_mark) stream_keep_mark(s);
    return n;
}

/* The next n I/Os, each given to put() in order: the same as n times stream_next, and cheaper where put() is inlined. */
static inline __attribute__((always_inline)) void stream_each(struct stream *s, unsigned n,
                                                              void (*put)(void *arg, const struct stream_io *io),
                                                              void *arg) {
    struct stream_io io;
    if (s->plain)
        while (n) n -= stream_each_plain(s, n, put, arg);
    for (; n; n--) {
        stream_next(s, &io);
        put(arg, &io);
    }
}

#endif
