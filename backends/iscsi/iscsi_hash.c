/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/iscsi/iscsi_hash.h"

#include <endian.h>
#include <stdbool.h>
#include <string.h>

#define BLOCK 64u

/* Three of the hashes cut their input into blocks of 64 bytes and end it in the same way: 0x80, zeros, the length in bits. */
struct hash {
    uint32_t state[8];
    uint8_t block[BLOCK];
    uint32_t word[80];
};

/* ---- MD5 ---- */

static const uint32_t md5_sine[64] = {
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
    0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
    0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
    0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
    0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391,
};

static uint32_t rotate_left(uint32_t x, unsigned n) {
    return x << n | x >> (32 - n);
}

static void md5_block(struct hash *h) {
    static const uint8_t shift[4][4] = { { 7, 12, 17, 22 }, { 5, 9, 14, 20 }, { 4, 11, 16, 23 }, { 6, 10, 15, 21 } };
    uint32_t a = h->state[0], b = h->state[1], c = h->state[2], d = h->state[3];

    for (unsigned i = 0; i < 16; i++) {
        memcpy(&h->word[i], h->block + 4 * i, 4);
        h->word[i] = le32toh(h->word[i]);
    }
    for (unsigned i = 0; i < 64; i++) {
        uint32_t f;
        unsigned g;
        switch (i / 16) {
        case 0: f = (b & c) | (~b & d), g = i; break;
        case 1: f = (d & b) | (~d & c), g = 5 * i + 1; break;
        case 2: f = b ^ c ^ d, g = 3 * i + 5; break;
        default: f = c ^ (b | ~d), g = 7 * i; break;
        }
        uint32_t sum = a + f + md5_sine[i] + h->word[g % 16];
        a = d;
        d = c;
        c = b;
        b += rotate_left(sum, shift[i / 16][i % 4]);
    }
    h->state[0] += a;
    h->state[1] += b;
    h->state[2] += c;
    h->state[3] += d;
}

/* ---- SHA-256 ---- */

static const uint32_t sha256_root[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate_right(uint32_t x, unsigned n) {
    return x >> n | x << (32 - n);
}

static void sha256_block(struct hash *h) {
    uint32_t s[8], *w = h->word;

    for (unsigned i = 0; i < 16; i++) {
        memcpy(&w[i], h->block + 4 * i, 4);
        w[i] = be32toh(w[i]);
    }
    for (unsigned i = 16; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + (rotate_right(a, 7) ^ rotate_right(a, 18) ^ a >> 3) + w[i - 7] +
               (rotate_right(b, 17) ^ rotate_right(b, 19) ^ b >> 10);
    }
    memcpy(s, h->state, sizeof s);
    for (unsigned i = 0; i < 64; i++) {
        uint32_t t1 = s[7] + (rotate_right(s[4], 6) ^ rotate_right(s[4], 11) ^ rotate_right(s[4], 25)) +
                      ((s[4] & s[5]) ^ (~s[4] & s[6])) + sha256_root[i] + w[i];
        uint32_t t2 = (rotate_right(s[0], 2) ^ rotate_right(s[0], 13) ^ rotate_right(s[0], 22)) +
                      ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += t1;
        s[0] = t1 + t2;
    }
    for (unsigned i = 0; i < 8; i++) h->state[i] += s[i];
    explicit_bzero(s, sizeof s);
}

/* ---- SHA-1 ---- */

static void sha1_block(struct hash *h) {
    static const uint32_t add[4] = { 0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6 };
    uint32_t a = h->state[0], b = h->state[1], c = h->state[2], d = h->state[3], e = h->state[4], *w = h->word;

    for (unsigned i = 0; i < 16; i++) {
        memcpy(&w[i], h->block + 4 * i, 4);
        w[i] = be32toh(w[i]);
    }
    for (unsigned i = 16; i < 80; i++) w[i] = rotate_left(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    for (unsigned i = 0; i < 80; i++) {
        uint32_t f = i < 20 ? (b & c) | (~b & d) : i >= 40 && i < 60 ? (b & c) | (b & d) | (c & d) : b ^ c ^ d;
        uint32_t sum = rotate_left(a, 5) + f + e + w[i] + add[i / 20];
        e = d;
        d = c;
        c = rotate_left(b, 30);
        b = a;
        a = sum;
    }
    h->state[0] += a;
    h->state[1] += b;
    h->state[2] += c;
    h->state[3] += d;
    h->state[4] += e;
}

/* ---- SHA3-256 ---- */

#define SHA3_RATE 136u /* bytes of input that one permutation takes up */

static uint64_t rotate64(uint64_t x, unsigned n) {
    return n ? x << n | x >> (64 - n) : x;
}

/* The permutation Keccak-f[1600]. Its round constants come from a shift register, its rotations from triangular numbers. */
static void keccak(uint64_t s[25]) {
    uint8_t lfsr = 1;

    for (unsigned round = 0; round < 24; round++) {
        uint64_t column[5];
        for (unsigned x = 0; x < 5; x++) column[x] = s[x] ^ s[x + 5] ^ s[x + 10] ^ s[x + 15] ^ s[x + 20];
        for (unsigned i = 0; i < 25; i++) s[i] ^= column[(i + 4) % 5] ^ rotate64(column[(i + 1) % 5], 1);
        uint64_t carried = s[1];
        for (unsigned t = 0, x = 1, y = 0; t < 24; t++) {
            unsigned next = (2 * x + 3 * y) % 5;
            x = y;
            y = next;
            uint64_t here = s[x + 5 * y];
            s[x + 5 * y] = rotate64(carried, (t + 1) * (t + 2) / 2 % 64);
            carried = here;
        }
        for (unsigned y = 0; y < 25; y += 5) {
            memcpy(column, s + y, sizeof column);
            for (unsigned x = 0; x < 5; x++) s[y + x] = column[x] ^ (~column[(x + 1) % 5] & column[(x + 2) % 5]);
        }
        for (unsigned j = 0; j < 7; j++) {
            if (lfsr & 1) s[0] ^= (uint64_t)1 << ((1u << j) - 1);
            lfsr = (uint8_t)(lfsr << 1 ^ (lfsr & 0x80 ? 0x71 : 0));
        }
    }
}

void iscsibe_sha3_256(const void *data, size_t len, uint8_t out[ISCSIBE_SHA256_SIZE]) {
    uint64_t state[25] = { 0 };
    const uint8_t *p = data;
    size_t at = 0;

    for (size_t i = 0; i < len; i++) {
        state[at / 8] ^= (uint64_t)p[i] << 8 * (at % 8);
        if (++at == SHA3_RATE) {
            keccak(state);
            at = 0;
        }
    }
    state[at / 8] ^= (uint64_t)0x06 << 8 * (at % 8);
    state[(SHA3_RATE - 1) / 8] ^= (uint64_t)0x80 << 56;
    keccak(state);
    for (unsigned i = 0; i < ISCSIBE_SHA256_SIZE; i++) out[i] = (uint8_t)(state[i / 8] >> 8 * (i % 8));
    explicit_bzero(state, sizeof state);
}

/* ---- the three ---- */

static void run(struct hash *h, const uint8_t *p, size_t len, bool big_endian, void (*block)(struct hash *)) {
    uint64_t bits = (uint64_t)len * 8;

    for (; len >= BLOCK; len -= BLOCK, p += BLOCK) {
        memcpy(h->block, p, BLOCK);
        block(h);
    }
    memset(h->block, 0, BLOCK);
    if (len) memcpy(h->block, p, len);
    h->block[len] = 0x80;
    if (len >= BLOCK - 8) {
        block(h);
        memset(h->block, 0, BLOCK);
    }
    bits = big_endian ? htobe64(bits) : htole64(bits);
    memcpy(h->block + BLOCK - 8, &bits, 8);
    block(h);
}

void iscsibe_md5(const void *data, size_t len, uint8_t out[ISCSIBE_MD5_SIZE]) {
    struct hash h = { .state = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476 } };
    run(&h, data, len, false, md5_block);
    for (unsigned i = 0; i < ISCSIBE_MD5_SIZE; i++) out[i] = (uint8_t)(h.state[i / 4] >> 8 * (i % 4));
    explicit_bzero(&h, sizeof h);
}

void iscsibe_sha256(const void *data, size_t len, uint8_t out[ISCSIBE_SHA256_SIZE]) {
    struct hash h = { .state = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 } };
    run(&h, data, len, true, sha256_block);
    for (unsigned i = 0; i < ISCSIBE_SHA256_SIZE; i++) out[i] = (uint8_t)(h.state[i / 4] >> 8 * (3 - i % 4));
    explicit_bzero(&h, sizeof h);
}

void iscsibe_sha1(const void *data, size_t len, uint8_t out[ISCSIBE_SHA1_SIZE]) {
    struct hash h = { .state = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 } };
    run(&h, data, len, true, sha1_block);
    for (unsigned i = 0; i < ISCSIBE_SHA1_SIZE; i++) out[i] = (uint8_t)(h.state[i / 4] >> 8 * (3 - i % 4));
    explicit_bzero(&h, sizeof h);
}
