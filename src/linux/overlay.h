/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A file of an overlay is a file of one of its layers, by another device number and perhaps another inode number. */
#ifndef LINUX_OVERLAY_H
#define LINUX_OVERLAY_H

#include <stdbool.h>
#include <sys/types.h>

#define OVERLAY_LAYERS_MAX 4 /* files of one name that are kept; those above hide those below */

struct overlay_file {
    dev_t dev;
    ino_t ino;
    bool upper; /* the one that writes go to; else a lower one, which a write copies first */
};

/* The files of the layers that `path` (canonical, absolute) on the file system `dev` can be, topmost first; 0 where it
 * lies on no overlay, or the layers cannot be seen from here. `mountinfo`: the text of /proc/self/mountinfo. */
unsigned overlay_files(const char *mountinfo, const char *path, dev_t dev, struct overlay_file out[OVERLAY_LAYERS_MAX]);

#endif
