/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table that storage people post, from a result document, finished or saved: one row per pattern and target, the
 * conditions above, what is to be said in words below. Every number in it is in the document. */
#ifndef REPORT_TABLE_H
#define REPORT_TABLE_H

#include <jansson.h>
#include <stdio.h>

void table_print(const json_t *document, FILE *out);

#endif
