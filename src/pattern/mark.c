/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pattern/mark.h"

#include <endian.h>
#include <string.h>

/* 16 bytes, little-endian: five of magic, three of the counter's bits 32..55, four of its bits 0..31, four of the
 * run's. The magic has no meaning as text or as a number, so that other data does not begin with it by habit. */
#define MARK_MAGIC 0xd1b3e5c953ULL
#define MARK_MAGIC_BITS 0xffffffffffULL

static void mark_put(void *at, uint32_t run, uint64_t counter) {
    uint64_t words[2] = {htole64(MARK_MAGIC | (counter >> 32) << 40), htole64((uint64_t)run << 32 | (uint32_t)counter)};
    memcpy(at, words, sizeof(words));
}

void mark_stamp(void *buf, uint64_t offset, size_t len, uint32_t run, uint64_t *counter) {
    size_t at = -offset & (MARK_STEP - 1);
    uint64_t c = *counter;
    if (at >= len) at = 0;
    for (; at < len; at += MARK_STEP) mark_put((char *)buf + at, run, c++);
    *counter = c;
}

bool mark_is_ours(const void *buf) {
    uint64_t word;
    memcpy(&word, buf, sizeof(word));
    return (le64toh(word) & MARK_MAGIC_BITS) == MARK_MAGIC;
}

/* Equal to itself one byte further on, from a zero: then all are zero, and memcmp may use whatever the CPU has. */
bool mark_is_zero(const void *buf, size_t len) {
    const char *bytes = buf;
    return len == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, len - 1) == 0);
}
