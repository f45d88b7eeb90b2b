/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pattern/mark.h"

#define MAGIC_BITS 40

bool mark_read(const void *buf, uint32_t *run, uint64_t *counter) {
    uint64_t words[2];
    memcpy(words, buf, sizeof(words));
    words[0] = le64toh(words[0]);
    words[1] = le64toh(words[1]);
    if ((words[0] ^ MARK_MAGIC) << (64 - MAGIC_BITS) != 0) return false;
    if (run) *run = (uint32_t)(words[1] >> 32);
    if (counter) *counter = words[0] >> MAGIC_BITS << 32 | (uint32_t)words[1];
    return true;
}

/* Equal to itself one byte further on, from a zero: then all are zero, and memcmp may use whatever the CPU has. */
bool mark_is_zero(const void *buf, size_t len) {
    const char *bytes = buf;
    return len == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, len - 1) == 0);
}
