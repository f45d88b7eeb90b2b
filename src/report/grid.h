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
/* Columns that the widest row takes. */
unsigned grid_row_width(const struct grid *g);
/* Leaves out whole columns until no row takes more than `width` columns, in the order of `first_out`: numbers of columns,
 * -1 at the end; what does not stand there stays. Returns those left out that had entries, a bit each. */
unsigned grid_fit(struct grid *g, const int *first_out, unsigned width);
/* No line ends in a blank. Rows are never cut; lines are broken at blanks to fit into `width` columns (0: never). */
void grid_print(const struct grid *g, unsigned width, FILE *out);

/* Prints `prefix` and `text`, broken at blanks into lines of at most `width` columns (0: one line), all but the first
 * indented by `indent` blanks. A word that is longer stays whole. */
void grid_wrap(const char *prefix, unsigned indent, const char *text, unsigned width, FILE *out);

/* Columns that valid UTF-8 takes on a terminal. What the locale does not know counts as one. */
unsigned grid_width(const char *text);

#endif
