/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The mark: which run wrote a block, and by which of its writes.
 *
 * 16 bytes stand at every offset of the target that is a multiple of 4096 (MARK_STEP): whatever of ours was written
 * there last, of any size or alignment, a mark is there. That a block really is ours is what data.h tells: a mark
 * alone proves nothing. */
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

/* Does a mark stand at the start of these bytes (at least MARK_SIZE)? If so, what it says; run and counter may be NULL.
 */
bool mark_read(const void *buf, uint32_t *run, uint64_t *counter);
bool mark_is_zero(const void *buf, size_t len);

#endif
