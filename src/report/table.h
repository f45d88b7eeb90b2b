/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table that storage people post, from a result document, finished or saved: one row per pattern and target, the
 * conditions above, what changes the reading of a row in numbered notes below. Every number in it is in the document. */
#ifndef REPORT_TABLE_H
#define REPORT_TABLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

struct table_style {
    unsigned width; /* of a terminal: columns that do not fit are left out whole, text is broken at blanks; 0: no limit */
    bool verbose;   /* all that is to be said of each row, with its own figures */
};

void table_print(const json_t *document, const struct table_style *style, FILE *out);

#endif
