/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Strings from outside (servers, files, the command line) made fit to print, and small string helpers. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Copies `in` (up to `n` bytes or its NUL) into buf: control bytes, DEL, C1 and bidirectional controls, and invalid
 * UTF-8 become \xNN; cut with "..." to fit. Returns buf. A name that came from a server, a file or a spec is printed
 * only through this. */
const char *text_safe(char *buf, size_t len, const char *in, size_t n);
/* The member of the NULL-terminated list with the least edit distance, if it is close enough for a typo; else NULL. */
const char *text_nearest(const char *word, const char *const *list);
/* Glob match as fnmatch(3) without flags: `*`, `?`, `[...]`. */
bool text_glob(const char *pattern, const char *text);
/* [A-Za-z0-9_.-]+, at most 63 bytes. */
bool text_is_label(const char *text);

#endif
