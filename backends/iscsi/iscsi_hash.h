/* SPDX-License-Identifier: GPL-2.0-or-later */
/* MD5 (RFC 1321), SHA-1 and SHA-256 (FIPS 180-4), SHA3-256 (FIPS 202), for CHAP. Our own, because a library for four
 * hashes of some forty bytes would be a dependency of the whole program, and because the ones that are at hand refuse MD5
 * on a machine in FIPS mode, where CHAP, which has to have MD5, is wanted all the same. Not meant for bulk data. */
#ifndef BACKENDS_ISCSI_ISCSI_HASH_H
#define BACKENDS_ISCSI_ISCSI_HASH_H

#include <stddef.h>
#include <stdint.h>

#define ISCSIBE_MD5_SIZE    16u
#define ISCSIBE_SHA1_SIZE   20u
#define ISCSIBE_SHA256_SIZE 32u /* and SHA3-256 */

/* Nothing of `data`, which may be secret, is left behind on the stack. */
void iscsibe_md5(const void *data, size_t len, uint8_t out[ISCSIBE_MD5_SIZE]);
void iscsibe_sha1(const void *data, size_t len, uint8_t out[ISCSIBE_SHA1_SIZE]);
void iscsibe_sha256(const void *data, size_t len, uint8_t out[ISCSIBE_SHA256_SIZE]);
void iscsibe_sha3_256(const void *data, size_t len, uint8_t out[ISCSIBE_SHA256_SIZE]);

#endif
