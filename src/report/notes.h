/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbered notes under a table. What several rows have to say alike stands there once: texts that differ in a few figures
 * only become one, with the range of each figure. */
#ifndef REPORT_NOTES_H
#define REPORT_NOTES_H

#include <stdbool.h>
#include <stdio.h>

struct notes;

struct notes *notes_new(void); /* NULL: no memory */
void notes_free(struct notes *n);
/* `text` is copied, and safe to print. Returns its number, from 1; 0 without memory. */
unsigned notes_add(struct notes *n, const char *text);
bool notes_any(const struct notes *n);
/* Does a note say exactly this, and no range? */
bool notes_has(const struct notes *n, const char *text);
/* "[1] ..." each, within `width` columns (0: one line each). */
void notes_print(const struct notes *n, unsigned width, FILE *out);

#endif
