/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pattern/mark.h"

#define MARK_MAGIC_BITS 0xffffffffffULL

void mark_stamp_rest(void *buf, size_t at, size_t len, uint32_t run, uint64_t *counter) {
    uint64_t c = *counter;
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
