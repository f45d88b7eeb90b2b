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
/* The next I/O; about 40 instructions. */
void stream_next(struct stream *s, struct stream_io *io);

#endif
