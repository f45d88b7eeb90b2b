/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How a block device is attached, and the identity that it has on every host: from sysfs, under the folder of a whole
 * disk. */
#ifndef BACKENDS_LOCAL_BLOCKID_H
#define BACKENDS_LOCAL_BLOCKID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/kv.h"

/* "naa.6006..." "eui..." "t10..." "serial..." from wwid, else VPD page 83h, else 80h, or the name of a multipath map.
 * `disk` is the disk's folder. False if it has none. */
bool blockid_wwid(const char *disk, char *buf, size_t len);
/* The best designator of the logical unit in a VPD page 83h, as above. */
bool blockid_vpd83(const unsigned char *page, size_t n, char *buf, size_t len);
/* That of the page 83h that sysfs keeps of a disk; false also if it keeps none. */
bool blockid_unit(const char *disk, char *buf, size_t len);
/* "FC" "iSCSI" "SAS" "SATA" "NVMe/TCP" "virtio" "loop" ...; what else is known (WWPN, speed, portal) goes to `out`, with
 * names that begin with `prefix`. Returns a static string, "" where unknown. */
const char *blockid_transport(const char *sys, const char *disk, const char *prefix, struct kv *out);

#endif
