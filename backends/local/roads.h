/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The disks that a block device ends at: its own, that of a partition, each path of a multipath map, what a volume, an
 * array or a loop device stands on. */
#ifndef BACKENDS_LOCAL_ROADS_H
#define BACKENDS_LOCAL_ROADS_H

#include <limits.h>
#include <sys/types.h>

#define ROADS_MAX 64 /* disks of one device; what is beyond is not looked at */

struct road {
    char folder[PATH_MAX]; /* of the whole disk, in sysfs */
    char name[64];         /* "sdb" */
    dev_t dev;
};

struct roads {
    unsigned n;
    struct road road[ROADS_MAX];
};

/* `sys`: "/sys", or made-up. Malloc'd; NULL: no memory. */
struct roads *roads_find(const char *sys, dev_t dev);
/* The disk's node in /dev, read-only; negative errno. */
int roads_open(const struct road *r);

#endif
