/* SPDX-License-Identifier: GPL-2.0-or-later */
/* CHAP as iSCSI has it (RFC 7143, 12.1.3): the answer to a challenge, and the encoding of binary values. Pure. */
#ifndef BACKENDS_ISCSI_ISCSI_CHAP_H
#define BACKENDS_ISCSI_ISCSI_CHAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Offered, in order of preference (IANA's numbers: 5 MD5, 6 SHA-1, 7 SHA-256, 8 SHA3-256). MD5 first, because there are
 * targets (tgt among them) for which 7 was SHA-1 before it became SHA-256: they would choose it, and then refuse the right
 * answer. */
#define CHAP_ALGORITHMS    "5,7,8,6"
#define CHAP_MD5           5u
#define CHAP_SHA1          6u
#define CHAP_SHA256        7u
#define CHAP_SHA3_256      8u
#define CHAP_RESPONSE_MAX  32u
#define CHAP_CHALLENGE_MAX 1024u

size_t iscsibe_chap_size(unsigned algorithm); /* of a response; 0: unknown algorithm */
const char *iscsibe_chap_name(unsigned algorithm); /* "SHA-256"; NULL: unknown */
/* The response to a challenge of at most CHAP_CHALLENGE_MAX bytes. The secret has at most 255. */
void iscsibe_chap_response(unsigned algorithm, uint8_t id, const char *secret, const uint8_t *challenge, size_t len,
                           uint8_t out[CHAP_RESPONSE_MAX]);
/* "0x..." or "0b..." (base64). False if it is neither, or longer than `max`. */
bool iscsibe_chap_decode(const char *text, uint8_t *out, size_t max, size_t *len);
void iscsibe_chap_encode(const uint8_t *data, size_t len, char *out); /* "0x...": 2 * len + 3 bytes */

#endif
