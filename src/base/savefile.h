/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Results are never half-written: they go to a temporary file beside the goal, fsync, rename, fsync of the folder. */
#ifndef BASE_SAVEFILE_H
#define BASE_SAVEFILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define SAVEFILE_HEAD 4096 /* bytes of an existing file that `ours` may look at */

/* What a name given for an output may stand for. It is created, or replaces an earlier output of the same kind: a
 * mistyped name must not cost anybody a file. An empty file may be replaced too. Block devices, and character devices
 * that keep what is written (tapes), are never written, with force or without; neither are named pipes and sockets, from
 * which nobody may read, and symbolic links to what does not exist. */
struct savefile_rules {
    bool (*ours)(const char *head, size_t n); /* does a file that begins like this hold an earlier output? NULL: none does */
    const char *kind;                         /* "samedisk result" */
    bool force;                               /* replaces any regular file (--force-output) */
};

/* Replaces `path` by `data` as a whole. Errors name the path and the system's words, or what stands in the way by
 * `rules` (status USAGE). What this process has open already (/dev/stdout, /dev/fd/N) and /dev/null are written directly. */
int savefile_write(const char *path, const struct savefile_rules *rules, const void *data, size_t len,
                   struct err *err);
/* Does what is written there twice stand there twice, as in /dev/stdout, /dev/fd/N and a terminal? */
bool savefile_is_stream(const char *path);
/* Can and may `path` be written? Called before a long run: the folder must be writable. Creates nothing that stays. */
int savefile_check(const char *path, const struct savefile_rules *rules, struct err *err);
/* Whole file into a malloc'd, NUL-terminated buffer. `max` bytes at most. A folder, a device is refused. */
int savefile_read(const char *path, size_t max, char **data, size_t *len, struct err *err);

#endif
