/* SPDX-License-Identifier: GPL-2.0-or-later */
/* CRC32C (Castagnoli), the digest of iSCSI (RFC 7143, 13.1). A digest goes onto the wire little-endian. */
#ifndef BACKENDS_ISCSI_ISCSI_CRC32C_H
#define BACKENDS_ISCSI_ISCSI_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Goes on from `crc`, which is 0 at the start: the checksum of a then b is crc32c(crc32c(0, a), b). */
uint32_t iscsibe_crc32c(uint32_t crc, const void *data, size_t len); /* by the CPU's instruction where it has one */
uint32_t iscsibe_crc32c_table(uint32_t crc, const void *data, size_t len); /* on any CPU */

#endif
