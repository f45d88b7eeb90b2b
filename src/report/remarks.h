/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What has to be said in words beside a row of figures. */
#ifndef REPORT_REMARKS_H
#define REPORT_REMARKS_H

#include <jansson.h>

/* Everything that is to be said about the runs of `pattern` on `target`, one call of `emit` each, safe to print. With
 * several rounds the worst is quoted, and in how many it was so. */
void remarks_of_row(const json_t *document, const char *pattern, const char *target,
                    void (*emit)(void *arg, const char *text), void *arg);

#endif
