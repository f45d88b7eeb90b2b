/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a loop device stands on. */
#ifndef LINUX_LOOPDEV_H
#define LINUX_LOOPDEV_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

struct loopdev {
    char path[PATH_MAX]; /* as sysfs shows it; may end in " (deleted)", or belong to another mount namespace */
    dev_t rdev;          /* it is a block device: its number; else 0 */
    dev_t dev;           /* it is a file: the number of its file system, and its inode */
    ino_t ino;
    bool known;          /* rdev, or dev and ino, are */
};

/* `folder`: that of the device in sysfs, or one that tests made to look like it; `name`: "loop3", whose device number is
 * `own`. The driver is asked first: it knows the file, also where the path no longer leads to it. False: no loop device,
 * or none that is attached. */
bool loopdev_ask(const char *folder, const char *name, dev_t own, struct loopdev *out);

#endif
