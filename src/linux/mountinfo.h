/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which mount a file lies on, from the text of /proc/self/mountinfo. */
#ifndef LINUX_MOUNTINFO_H
#define LINUX_MOUNTINFO_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct mount {
    unsigned major, minor;      /* of the file system, as st_dev */
    char root[4096];            /* what of the file system is mounted there: "/", or a folder of it (bind mounts) */
    char point[4096];           /* octal escapes decoded here and below */
    char options[256];          /* of this mount: rw,noatime */
    char type[64];              /* "ext4", "fuse.sshfs" */
    char source[512];           /* "/dev/sda1", "server:/export" */
    char super[8192];           /* options of the file system: rw,vers=3,rsize=1048576 */
};

/* Next entry of `*text`, which is moved on; lines that cannot be read are skipped. False at the end. */
bool mountinfo_next(const char **text, struct mount *m);
/* The mount that holds the canonical absolute `path`, whose st_dev is `dev`: of the mounts above the path the deepest
 * one with that device number (another may be mounted over it), or, where none has it (btrfs subvolumes), simply the
 * deepest. Of two at one place the later one. False if there is none. */
bool mountinfo_find(const char *text, const char *path, dev_t dev, struct mount *m);
/* The value of `key` in a comma-separated option list: true if the key is there, *value "" for a bare word. */
bool mountinfo_option(const char *options, const char *key, char *value, size_t len);
/* Whole text of this process's mountinfo, malloc'd; NULL where it cannot be read. */
char *mountinfo_read(void);

#endif
