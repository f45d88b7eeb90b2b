/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which kind of "same disk" this is, as far as it was seen. */
#ifndef REPORT_SAMENESS_LINES_H
#define REPORT_SAMENESS_LINES_H

#include <jansson.h>
#include <stdio.h>

/* A line for any two targets of a document, or one for all of which the same is known. None for documents that do not
 * say, nor for targets that keep nothing. Broken at blanks to fit into `width` columns (0: never). */
void sameness_lines(const json_t *document, unsigned width, FILE *out);

#endif
