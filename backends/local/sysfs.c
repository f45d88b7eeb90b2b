/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/local/sysfs.h"

#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"

static ssize_t read_path(void *buf, size_t len, const char *fmt, va_list ap) __attribute__((format(printf, 3, 0)));
static ssize_t read_path(void *buf, size_t len, const char *fmt, va_list ap) {
    char path[PATH_MAX];
    int n = vsnprintf(path, sizeof path, fmt, ap);
    if (n < 0 || (size_t)n >= sizeof path) return -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    ssize_t got = read(fd, buf, len);
    close(fd);
    return got;
}

static bool read_line(char *buf, size_t len, const char *fmt, va_list ap) __attribute__((format(printf, 3, 0)));
static bool read_line(char *buf, size_t len, const char *fmt, va_list ap) {
    ssize_t n = read_path(buf, len - 1, fmt, ap);
    buf[n > 0 ? n : 0] = 0;
    size_t skip = strspn(buf, " \t"), end = skip + strcspn(buf + skip, "\n");
    while (end > skip && (buf[end - 1] == ' ' || buf[end - 1] == '\t')) end--;
    memmove(buf, buf + skip, end - skip);
    buf[end - skip] = 0;
    return n >= 0;
}

bool sysfs_text(char *buf, size_t len, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    bool ok = read_line(buf, len, fmt, ap);
    va_end(ap);
    return ok;
}

bool sysfs_uint(uint64_t *value, const char *fmt, ...) {
    char text[64];
    struct err err;
    va_list ap;
    va_start(ap, fmt);
    bool ok = read_line(text, sizeof text, fmt, ap) && units_parse_uint(text, value, &err) == 0;
    va_end(ap);
    return ok;
}

ssize_t sysfs_bytes(void *buf, size_t len, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    ssize_t n = read_path(buf, len, fmt, ap);
    va_end(ap);
    return n;
}
