/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What sysfs knows of a block device. `sys` is "/sys", or a folder that tests made to look like it. */
#ifndef BACKENDS_LOCAL_BLOCKDEV_H
#define BACKENDS_LOCAL_BLOCKDEV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "backends/backend.h"

/* Identities, volatile_cache, negotiated, warnings, summary. f->size is already there. */
void blockdev_facts(const char *sys, dev_t dev, struct facts *f);
/* Reads and writes completed since boot; -1 where there are no statistics. */
int blockdev_ios(const char *sys, dev_t dev, uint64_t *ios);
/* Logical block size of the device, or of the disk that a partition is on; 0 where unknown. */
uint32_t blockdev_logical(const char *sys, dev_t dev);
/* Who uses the device or a part of it: "/dev/sda1 is mounted on /data; /dev/sda2 is held by dm-0; ..." ("" nobody).
 * `mountinfo` and `swaps` are the texts of the files in /proc, or NULL. */
void blockdev_users(const char *sys, const char *mountinfo, const char *swaps, dev_t dev, char *buf, size_t len);
/* The kernel's name, "sda1", from the link of /sys/dev/block; "" where unknown. */
void blockdev_name(const char *sys, dev_t dev, char *buf, size_t len);

#endif
