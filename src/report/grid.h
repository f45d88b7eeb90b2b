/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Text in aligned columns, by the width it has on a terminal. Cells are safe text already (base/text.h). */
#ifndef REPORT_GRID_H
#define REPORT_GRID_H

#include <stdio.h>

struct grid;

/* `align` has one letter per column, 'l' or 'r'. NULL: no memory. */
struct grid *grid_new(const char *align);
void grid_free(struct grid *g);
/* A row of as many cells as there are columns; NULL is an empty one. Text is copied. */
void grid_row(struct grid *g, const char *const *cells);
/* A line of its own that takes no part in the alignment. */
void grid_line(struct grid *g, const char *text);
/* No line ends in a blank. */
void grid_print(const struct grid *g, FILE *out);

/* Columns that valid UTF-8 takes on a terminal. What the locale does not know counts as one. */
unsigned grid_width(const char *text);
/* Cuts in place to at most `width` columns, at a character's boundary. */
void grid_cut(char *text, unsigned width);

#endif
