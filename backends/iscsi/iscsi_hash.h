/* SPDX-License-Identifier: GPL-2.0-or-later */
/* MD5 (RFC 1321) and SHA-256 (FIPS 180-4), for CHAP. Our own, because a library for two hashes of some forty bytes
 * would be a dependency of the whole program, and because the ones that are at hand refuse MD5 on a machine in FIPS
 * mode, where CHAP, which has to have MD5, is wanted all the same. Not meant for bulk data. */
#ifndef BACKENDS_ISCSI_ISCSI_HASH_H
#define BACKENDS_ISCSI_ISCSI_HASH_H

#include <stddef.h>
#include <stdint.h>

#define ISCSIBE_MD5_SIZE    16u
#define ISCSIBE_SHA256_SIZE 32u

/* Nothing of `data`, which may be secret, is left behind on the stack. */
void iscsibe_md5(const void *data, size_t len, uint8_t out[ISCSIBE_MD5_SIZE]);
void iscsibe_sha256(const void *data, size_t len, uint8_t out[ISCSIBE_SHA256_SIZE]);

#endif
