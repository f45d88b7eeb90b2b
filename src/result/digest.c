/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "result/digest.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

void digest_hex(const void *data, size_t len, char hex[DIGEST_LEN]) {
    const unsigned char *byte = data;
    unsigned __int128 prime = ((unsigned __int128)1 << 88) + 0x13b;
    unsigned __int128 hash = ((unsigned __int128)0x6c62272e07bb0142ULL << 64) | 0x62b821756295c58dULL;
    for (size_t i = 0; i < len; i++) hash = (hash ^ byte[i]) * prime;
    snprintf(hex, DIGEST_LEN, "%016" PRIx64 "%016" PRIx64, (uint64_t)(hash >> 64), (uint64_t)hash);
}
