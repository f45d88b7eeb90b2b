/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which kind of "same disk" this is, as far as it was seen. */
#ifndef REPORT_SAMENESS_LINES_H
#define REPORT_SAMENESS_LINES_H

#include <jansson.h>
#include <stdio.h>

/* A line for any two targets of a document, or one for all of which the same is known. None for documents that do not
 * say. */
void sameness_lines(const json_t *document, FILE *out);

#endif
