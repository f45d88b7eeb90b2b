/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scsi/reserve.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const uint8_t reserve_cdb_keys[RESERVE_CDB] = {0x5e, 0x00, [7] = RESERVE_KEYS_LEN >> 8, [8] = RESERVE_KEYS_LEN & 255};
const uint8_t reserve_cdb_held[RESERVE_CDB] = {0x5e, 0x01, [8] = RESERVE_HELD_LEN};

static uint32_t be32(const uint8_t *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static uint64_t be64(const uint8_t *p) {
    return (uint64_t)be32(p) << 32 | be32(p + 4);
}

static uint64_t le64(const uint8_t *p) {
    uint64_t v = 0;
    for (int i = 7; i >= 0; i--) v = v << 8 | p[i];
    return v;
}

bool reserve_parse_keys(const uint8_t *p, size_t len, unsigned *n, uint64_t *first) {
    if (len < 8) return false;
    *n = be32(p + 4) / 8; /* what there are, even if they did not all fit */
    *first = *n && len >= 16 ? be64(p + 8) : 0;
    return true;
}

bool reserve_parse_held(const uint8_t *p, size_t len, bool *reserved, uint64_t *key, unsigned *type) {
    if (len < 8) return false;
    *reserved = be32(p + 4) >= 16;
    *key = *reserved && len >= 16 ? be64(p + 8) : 0;
    *type = *reserved && len >= 22 ? p[21] & 0x0fu : 0;
    return true;
}

/* Generation (4 bytes), type (1), number of registered controllers (2); the controllers from byte 24 or 64 on. */
bool reserve_parse_nvme(const uint8_t *p, size_t len, bool extended, struct reserve *out) {
    size_t at = extended ? 64 : 24, entry = extended ? 64 : 24, key = extended ? 8 : 16;
    if (len < 24) return false;
    *out = (struct reserve){.known = true, .keys = p[5] | (unsigned)p[6] << 8, .type = p[4], .reserved = p[4] != 0};
    for (unsigned i = 0; i < out->keys && at + entry <= len; i++, at += entry) {
        uint64_t k = le64(p + at + key);
        if (i == 0) out->first = k;
        if ((p[at + 2] & 1) && !out->key) out->key = k; /* this controller's host holds it */
    }
    return true;
}

const char *reserve_words(const struct reserve *r, char *buf, size_t len) {
    *buf = 0;
    if (r->reserved)
        snprintf(buf, len, "it has a persistent reservation (key %016" PRIx64 ", type %u) and %u registered keys: a "
                 "cluster uses it", r->key, r->type, r->keys);
    else if (r->keys)
        snprintf(buf, len, "%u persistent reservation keys are registered (the first: %016" PRIx64 "): a cluster uses "
                 "it", r->keys, r->first);
    return buf;
}
