/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What has to be said in words beside a row of figures. */
#ifndef REPORT_REMARKS_H
#define REPORT_REMARKS_H

#include <jansson.h>
#include <stdbool.h>

struct remark {
    const char *text; /* safe to print */
    bool finding;     /* changes how the row is to be read: it stands under every table; the others by --verbose */
};

typedef void remark_fn(void *arg, const struct remark *remark);

/* Everything that is to be said about the runs of `pattern` on `target`, one call of `emit` each. With several rounds
 * the worst is quoted, and in how many it was so. */
void remarks_of_row(const json_t *document, const char *pattern, const char *target, remark_fn *emit, void *arg);

/* Those of all rows, for the result: { "pattern", "target", "finding", "text" } each. A new reference; NULL: no memory. */
json_t *remarks_json(const json_t *document);

#endif
