/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Questions to a SCSI disk or an NVMe namespace, past the block layer. Control path; each waits a few seconds at most. */
#ifndef BACKENDS_LOCAL_SGIO_H
#define BACKENDS_LOCAL_SGIO_H

#include <stdbool.h>
#include <stdint.h>

/* Is the disk (its folder in sysfs) a SCSI one that the kernel has asked for its names? What the kernel leaves in peace may
 * not survive a question: USB bridges. */
bool sgio_may_ask(const char *folder);
/* A command that only brings data. Bytes that came; negative errno: -EOPNOTSUPP where the disk does not know it, -EBADE
 * for RESERVATION CONFLICT, -EBUSY where it says "not now" for too long, -EIO where it failed otherwise, -ENOTTY where
 * there is no SCSI disk, -EPERM, ... Unit attentions are taken, and what
 * says "not now" is tried again for some seconds. */
int sgio_ask(int fd, const uint8_t *cdb, unsigned cdb_len, void *buf, unsigned len);
/* Is a command that ended like this to be sent again, and *pause: not at once? `status`: SCSI; `host`: the kernel's. */
bool sgio_again(unsigned status, unsigned host, const uint8_t *sense, unsigned len, bool *pause);
/* Such an errno of a command that failed. */
int sgio_failure(unsigned status, unsigned host, const uint8_t *sense, unsigned len);
/* Name of the logical unit as the disk answers now, "naa.6006...", "" if it has none. Negative errno as above. */
int sgio_unit(int fd, char *buf, unsigned len);
/* Reservation Report of an NVMe namespace: bytes, *extended as reserve_parse_nvme() wants it; -EOPNOTSUPP where the
 * controller has no reservations. */
int sgio_nvme_report(int fd, void *buf, unsigned len, bool *extended);

#endif
