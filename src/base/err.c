/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Both functions format into a buffer of their own first: the arguments may point into err->msg. */

/* Marks text that was cut; never leaves half of a UTF-8 sequence before the dots. */
static void err_mark_cut(char *msg, size_t size) {
    size_t at = size - 4;
    while (at > 0 && ((unsigned char)msg[at] & 0xc0) == 0x80) at--;
    memcpy(msg + at, "...", 4);
}

int err_set(struct err *err, enum status status, const char *fmt, ...) {
    char msg[sizeof(err->msg)];
    va_list ap;

    va_start(ap, fmt);
    int n = vsnprintf(msg, sizeof(msg), fmt, ap);
    va_end(ap);
    if (n < 0) msg[0] = '\0';
    if (n >= (int)sizeof(msg)) err_mark_cut(msg, sizeof(msg));
    err->status = status;
    memcpy(err->msg, msg, sizeof(msg));
    return -1;
}

int err_prefix(struct err *err, const char *fmt, ...) {
    char msg[sizeof(err->msg)];
    va_list ap;

    va_start(ap, fmt);
    int n = vsnprintf(msg, sizeof(msg), fmt, ap);
    va_end(ap);
    if (n < 0) return -1;
    if (n < (int)sizeof(msg)) n += snprintf(msg + n, sizeof(msg) - (size_t)n, ": %s", err->msg);
    if (n >= (int)sizeof(msg)) err_mark_cut(msg, sizeof(msg));
    memcpy(err->msg, msg, sizeof(msg));
    return -1;
}

static int status_rank(enum status status) {
    switch (status) {
    case STATUS_OK: return 0;
    case STATUS_USAGE: return 1;
    case STATUS_CRITERIA: return 2;
    case STATUS_IO: return 3;
    case STATUS_TARGET: return 4;
    case STATUS_INTERRUPTED: return 5;
    }
    return 0;
}

enum status status_worse(enum status a, enum status b) {
    return status_rank(b) > status_rank(a) ? b : a;
}
