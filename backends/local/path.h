/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where a path leads by its words alone: "//", "." and ".." are resolved, symbolic links are not. */
#ifndef BACKENDS_LOCAL_PATH_H
#define BACKENDS_LOCAL_PATH_H

#include <stdbool.h>

/* Is the absolute `path` the top-level folder `top` ("dev", no slash) or something below it? */
bool path_top_is(const char *path, const char *top);
/* One of /dev, /proc, /sys, where no file of ours has any business. */
bool path_is_system(const char *path);

#endif
