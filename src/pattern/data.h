/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The data that samedisk writes, and how it is known again.
 *
 * Every write carries bytes of its own, whatever the depth, the sizes and the mix: random ones, made in the request's
 * buffer when it is submitted, so that nothing compresses, nothing can be deduplicated, and nothing that was read is
 * written back. They are words of a fixed random base, each xor the write's random key. Who asks for it (struct
 * data_choice) gets sectors whose later part is zeros, writes that repeat an earlier one, or zeros.
 *
 * Each sector of 512 bytes proves itself: its last 8 bytes are a tag over the other 504, and so what is left of a block
 * after smaller or unaligned writes is still known, and one foreign sector among ours is too. At every multiple of 4096
 * of the target stands a mark (mark.h) with the run and the number of the write. Where the caller asks for it, one
 * block carries a note behind its mark.
 *
 * Words are in the host's byte order (only the mark is always little-endian): what a machine of the other order wrote
 * is foreign. No function here blocks or fails; those that take a struct data belong to one thread. */
#ifndef PATTERN_DATA_H
#define PATTERN_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DATA_SECTOR   512u
#define DATA_NOTE_MAX 256u
#define DATA_NOTE_AT  24u /* where a note's bytes stand in its block */

/* Bytes that every write over the block at `offset` of the target (a multiple of 4096) carries behind its mark. */
struct data_note {
    uint64_t offset;
    const void *bytes; /* not owned; must not change while somebody writes */
    size_t len;        /* at most DATA_NOTE_MAX */
    size_t known_at, known_len; /* of them, those by which the object is known again: equal in all notes of one invocation */
};

/* Other data than random. In percent, of fio's keys of these names.
 *
 * Compressible sectors end in zeros, but for their tags, and prove themselves like all others. A repeated write carries
 * the mark, and so the number, of the one that it repeats. Zeros prove nothing: only the block with the note is ours
 * then, and by it and zeros alone the object is known again. */
struct data_choice {
    uint64_t compress; /* of each sector, zeros; at least 16 bytes of it are none */
    uint64_t dedupe;   /* of the writes, those that repeat the last one that did not */
    bool zeros;        /* nothing but zeros; the other two are not looked at */
};

typedef uint64_t data_fill(void *buf, size_t sectors, uint64_t key);

#define DATA_BASE 39u /* sectors of the base */

struct data { /* what one writer needs; nothing in it is allocated */
    data_fill *fill; /* the way of this CPU */
    const struct data_note *note;
    uint64_t note_at; /* UINT64_MAX: no note */
    uint64_t seed, counter;
    uint32_t run;
    bool chosen; /* data_choose: the rest holds */
    struct data_choice choice;
    unsigned words;                    /* random ones at the start of each sector */
    uint64_t keys, sum[DATA_BASE];     /* as those of the base, of so many words */
    uint64_t writes, fresh, fresh_end; /* writes so far; the numbers of the last one that repeated nothing */
};

/* `run` tells runs apart. `counter`: where this writer's numbers begin, less than 2^56; it takes one for each piece of
 * up to 4096 bytes, and no other writer of the run may come to the same ones. `note` may be NULL. */
void data_init(struct data *d, uint32_t run, uint64_t counter, const struct data_note *note);
/* After data_init: what is made from now on. */
void data_choose(struct data *d, const struct data_choice *choice);
/* Makes the `len` bytes that go to `offset` (both multiples of 512; what of `len` is less than a sector is random, and
 * proves nothing). The same calls make the same bytes. Data path: about 60 ns for 4 KiB. */
void data_make(struct data *d, void *buf, uint64_t offset, size_t len);

/* ---- a note ---- */

/* Puts a note (at most DATA_NOTE_MAX bytes) behind the mark of a block that data_make made, and mends its tag. */
void data_put_note(void *block, const void *note, size_t len);
/* The note of a block of at least 512 bytes, and its length; NULL: there is none, or its sector is not ours. */
const void *data_note(const void *block, size_t *len);

/* ---- what lies on a target ---- */

enum data_kind { DATA_ZEROS, DATA_OURS, DATA_FOREIGN };

/* What are the `len` bytes at `offset` of the target (a multiple of 512), which reach over no multiple of 4096? Ours:
 * each sector is ours or all zeros, one at least is ours, and where a mark must stand, there is one. Less than a sector
 * at the end has no tag: zeros, or foreign. */
enum data_kind data_look(const void *buf, uint64_t offset, size_t len);
/* The same for a block that begins at a multiple of 4096 and is not longer. */
bool data_is_ours(const void *block, size_t len);
/* Is this sector ours, by its tag? */
bool data_sector_is_ours(const void *sector);
/* What the mark of a block says, if its first sector is ours. `len`: of the block, at least 512; run and counter may be
 * NULL. */
bool data_run_of(const void *block, size_t len, uint32_t *run, uint64_t *counter);
/* The tag that makes these 512 bytes ours; it belongs into their last 8. */
uint64_t data_tag(const void *sector);

#endif
