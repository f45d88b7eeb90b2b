/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Results are never half-written: they go to a temporary file beside the goal, fsync, rename, fsync of the folder. */
#ifndef BASE_SAVEFILE_H
#define BASE_SAVEFILE_H

#include <stddef.h>

#include "base/err.h"

/* Replaces `path` by `data` as a whole. Errors name the path and the system's words (status USAGE). If `path` exists
 * and is not a regular file (/dev/stdout, a pipe) the data is written to it directly. */
int savefile_write(const char *path, const void *data, size_t len, struct err *err);
/* Can `path` be written? Called before a long run: the folder must be writable. Creates nothing that stays. */
int savefile_check(const char *path, struct err *err);
/* Whole file into a malloc'd, NUL-terminated buffer. `max` bytes at most. A folder, a device is refused. */
int savefile_read(const char *path, size_t max, char **data, size_t *len, struct err *err);

#endif
