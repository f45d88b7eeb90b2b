/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The mark by which samedisk recognises its own data.
 *
 * 16 bytes stand at every offset of the target that is a multiple of 4096 (MARK_STEP): whatever of ours was written
 * there last, of any size or alignment, a mark is there. An I/O that covers no such offset gets one at its own start.
 * The rest of the data is random: it does not compress, and because of the marks no two 4 KiB blocks are the same. */
#ifndef PATTERN_MARK_H
#define PATTERN_MARK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MARK_STEP 4096u
#define MARK_SIZE 16u

/* Writes the marks into the `len` bytes that go to `offset` (both multiples of 512). `run` tells runs apart, `counter`
 * is advanced by the number of marks. Data path: no branch per byte, one 16-byte store per 4 KiB. */
void mark_stamp(void *buf, uint64_t offset, size_t len, uint32_t run, uint64_t *counter);
/* Does a mark stand at the start of these bytes (at least MARK_SIZE)? */
bool mark_is_ours(const void *buf);
bool mark_is_zero(const void *buf, size_t len);

#endif
