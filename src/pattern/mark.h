/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The mark by which samedisk recognises its own data.
 *
 * 16 bytes stand at every offset of the target that is a multiple of 4096 (MARK_STEP): whatever of ours was written
 * there last, of any size or alignment, a mark is there. An I/O that covers no such offset gets one at its own start.
 * The rest of the data is random: it does not compress, and because of the marks no two 4 KiB blocks are the same. */
#ifndef PATTERN_MARK_H
#define PATTERN_MARK_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define MARK_STEP 4096u
#define MARK_SIZE 16u

/* 16 bytes, little-endian: five of magic, three of the counter's bits 32..55, four of its bits 0..31, four of the
 * run's. The magic has no meaning as text or as a number, so that other data does not begin with it by habit. */
#define MARK_MAGIC 0xd1b3e5c953ULL

static inline void mark_put(void *at, uint32_t run, uint64_t counter) {
    uint64_t words[2] = {htole64(MARK_MAGIC | (counter >> 32) << 40), htole64((uint64_t)run << 32 | (uint32_t)counter)};
    memcpy(at, words, sizeof(words));
}

/* mark_stamp's: all marks from byte `at` of the buffer on. */
void mark_stamp_rest(void *buf, size_t at, size_t len, uint32_t run, uint64_t *counter);

/* Writes the marks into the `len` bytes that go to `offset` (both multiples of 512). `run` tells runs apart, `counter`
 * is advanced by the number of marks. Data path: one 16-byte store per 4 KiB; the usual 4 KiB take about 20
 * instructions. */
static inline void mark_stamp(void *buf, uint64_t offset, size_t len, uint32_t run, uint64_t *counter) {
    size_t at = -offset & (MARK_STEP - 1);
    if (at >= len) at = 0;
    mark_put((char *)buf + at, run, (*counter)++);
    if (__builtin_expect(at + MARK_STEP < len, 0)) mark_stamp_rest(buf, at + MARK_STEP, len, run, counter);
}

/* Does a mark stand at the start of these bytes (at least MARK_SIZE)? */
bool mark_is_ours(const void *buf);
bool mark_is_zero(const void *buf, size_t len);

#endif
