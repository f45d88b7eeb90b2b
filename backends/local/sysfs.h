/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading sysfs. `sys` is "/sys", or a folder that tests made to look like it. */
#ifndef BACKENDS_LOCAL_SYSFS_H
#define BACKENDS_LOCAL_SYSFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The first line of a file, without blanks around it; false (and "") where there is none. */
bool sysfs_text(char *buf, size_t len, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
bool sysfs_uint(uint64_t *value, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Bytes of a binary file, at most len; -1 where there is none. */
ssize_t sysfs_bytes(void *buf, size_t len, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
