/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The picture that localdisk_scan.c takes and localdisk.c reads. Nobody else includes this. */
#ifndef SAFETY_LOCALDISK_TABLE_H
#define SAFETY_LOCALDISK_TABLE_H

#include "safety/localdisk.h"
#include "target/identity.h"

#define LOCALDISK_IDENTITIES 12
#define LOCALDISK_HOLDERS    8
#define LOCALDISK_UNDER      16

struct localdisk_disk {
    char name[64]; /* as in sysfs */
    dev_t dev;
    int parent;         /* index of the whole disk; -1: this is one */
    unsigned partition; /* its number; 0: a whole disk */
    bool multipath;     /* a map of dm-multipath: another road to the same LUN, no user of it */
    char identity[LOCALDISK_IDENTITIES][IDENTITY_SIZE]; /* whole disks only */
    unsigned n_identities;
    char holder[LOCALDISK_HOLDERS][64];
    unsigned n_holders;
    char dm_uuid[160];  /* of a device mapper device; "" */
    int under[LOCALDISK_UNDER]; /* indices of what it stands on: slaves; of a loop device, the device behind it */
    unsigned n_under;
    bool loop, unknown_under;   /* a loop device that is attached; ... to what nobody can tell */
    char use[160];      /* "mounted on /srv"; "": by nobody, but see holders, and loop devices under which it is */
};

struct localdisk_file { /* a regular file that the kernel itself uses */
    char identity[IDENTITY_SIZE];
    char use[160];      /* "a swap file of this machine" */
};

struct localdisk {
    struct localdisk_disk *disk;
    size_t n, cap;
    struct localdisk_file *file;
    size_t n_files;
};

void localdisk_add_identity(struct localdisk_disk *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The designators of a VPD 83 page; the serial number of a VPD 80 page, alone and behind vendor and model, which is how
 * backends name it. */
void localdisk_vpd83(struct localdisk_disk *d, const unsigned char *page, size_t len);
void localdisk_vpd80(struct localdisk_disk *d, const unsigned char *page, size_t len, const char *vendor,
                     const char *model);
/* Mounts, swap, btrfs and what is served as a LUN, written into `use`; files of the last three into `file`. */
int localdisk_uses(struct localdisk *l, const char *sysfs, const char *proc, struct err *err);
/* What stands on what: `under`, and the identities of the files behind loop devices. */
void localdisk_stack(struct localdisk *l, const char *sysfs);
struct localdisk_disk *localdisk_by_name(const struct localdisk *l, const char *name);
struct localdisk_disk *localdisk_by_dev(const struct localdisk *l, dev_t dev);
/* A whole small file; its length, or -1. A NUL follows what was read. */
long localdisk_read(const char *path, void *buf, size_t size);

#endif
