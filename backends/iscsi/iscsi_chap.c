/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/iscsi/iscsi_chap.h"

#include <stdio.h>
#include <string.h>

#include "backends/iscsi/iscsi_hash.h"

static const struct algorithm {
    unsigned number;
    const char *name;
    size_t size;
    void (*hash)(const void *data, size_t len, uint8_t *out);
} algorithms[] = { { CHAP_MD5, "MD5", ISCSIBE_MD5_SIZE, iscsibe_md5 },
                   { CHAP_SHA1, "SHA-1", ISCSIBE_SHA1_SIZE, iscsibe_sha1 },
                   { CHAP_SHA256, "SHA-256", ISCSIBE_SHA256_SIZE, iscsibe_sha256 },
                   { CHAP_SHA3_256, "SHA3-256", ISCSIBE_SHA256_SIZE, iscsibe_sha3_256 } };

static const struct algorithm *find(unsigned number) {
    for (size_t i = 0; i < sizeof algorithms / sizeof algorithms[0]; i++)
        if (algorithms[i].number == number) return &algorithms[i];
    return NULL;
}

size_t iscsibe_chap_size(unsigned algorithm) {
    const struct algorithm *a = find(algorithm);
    return a ? a->size : 0;
}

const char *iscsibe_chap_name(unsigned algorithm) {
    const struct algorithm *a = find(algorithm);
    return a ? a->name : NULL;
}

void iscsibe_chap_response(unsigned algorithm, uint8_t id, const char *secret, const uint8_t *challenge, size_t len,
                           uint8_t out[CHAP_RESPONSE_MAX]) {
    uint8_t message[1 + 255 + CHAP_CHALLENGE_MAX];
    size_t n = strnlen(secret, 255);

    message[0] = id;
    memcpy(message + 1, secret, n);
    memcpy(message + 1 + n, challenge, len);
    const struct algorithm *a = find(algorithm);
    if (a) a->hash(message, 1 + n + len, out);
    explicit_bzero(message, sizeof message);
}

static int hex_digit(char ch) {
    if (ch >= '0' && ch <= '9') return ch - '0';
    ch = (char)(ch | 0x20);
    return ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 : -1;
}

static int base64_digit(char ch) {
    if (ch >= 'A' && ch <= 'Z') return ch - 'A';
    if (ch >= 'a' && ch <= 'z') return ch - 'a' + 26;
    if (ch >= '0' && ch <= '9') return ch - '0' + 52;
    return ch == '+' ? 62 : ch == '/' ? 63 : -1;
}

bool iscsibe_chap_decode(const char *text, uint8_t *out, size_t max, size_t *len) {
    char kind = text[0] == '0' ? (char)(text[1] | 0x20) : '\0';
    bool base64 = kind == 'b';
    unsigned bits = 0, have = 0, step = base64 ? 6 : 4;

    *len = 0;
    if (!base64 && kind != 'x') return false;
    text += 2;
    size_t digits = base64 ? strcspn(text, "=") : strlen(text);
    if (base64 && strspn(text + digits, "=") != strlen(text + digits)) return false;
    if (!base64 && digits % 2) have = 4; /* 0xabc is 0x0abc */
    for (size_t i = 0; i < digits; i++) {
        int digit = base64 ? base64_digit(text[i]) : hex_digit(text[i]);
        if (digit < 0) return false;
        bits = bits << step | (unsigned)digit;
        have += step;
        if (have < 8) continue;
        have -= 8;
        if (*len == max) return false;
        out[(*len)++] = (uint8_t)(bits >> have);
        bits &= (1u << have) - 1;
    }
    return *len > 0;
}

void iscsibe_chap_encode(const uint8_t *data, size_t len, char *out) {
    memcpy(out, "0x", 3);
    for (size_t i = 0; i < len; i++) snprintf(out + 2 + 2 * i, 3, "%02x", data[i]);
}
