/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads text line by line as sections and keys, and knows nothing of what they mean.
 *
 * `[name]` begins a section; the name goes to the first ']' and may hold '#', ';' and '%'. `key=value` or a bare key;
 * blanks around both are dropped. '#' and ';' begin a comment at the start of a line or after a blank. Lines end with
 * LF or CRLF. */
#ifndef PATTERN_INI_H
#define PATTERN_INI_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define INI_LINE 8192 /* bytes of the longest line */

struct ini {
    char name[256];      /* of the file, fit to print */
    const char *at, *end;
    unsigned line;       /* of the last item */
    char buf[INI_LINE + 1];
};

struct ini_item {
    bool section;
    unsigned line;
    const char *key;     /* or the section's name; never "". Valid until the next call; not fit to print */
    const char *value;   /* NULL: a bare key, or a section */
};

/* `text` stays the caller's and must outlive the reader. Errors (USAGE): a byte order mark, UTF-16. */
int ini_open(struct ini *ini, const char *name, const char *text, size_t len, struct err *err);
/* 1: an item, 0: the end, -1: an error (USAGE), "name:line: ...". */
int ini_next(struct ini *ini, struct ini_item *item, struct err *err);

#endif
