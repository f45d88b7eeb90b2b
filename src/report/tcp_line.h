/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What TCP_INFO says about a row, in one line. */
#ifndef REPORT_TCP_LINE_H
#define REPORT_TCP_LINE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "report/remarks.h"

/* Of all rounds of `pattern` on `target` together: the smallest round trip, retransmissions, windows, and what limited.
 * False: the target has no TCP, or nothing is known. Only what is known is said, and of windows only those by which the
 * row's data comes or goes. */
bool tcp_line(const json_t *document, const char *pattern, const char *target, char *buf, size_t len);
/* Those parts of it that change how the row is to be read, each by itself: a window or buffer that limited for 5 % of the
 * time or more, a window= that was not kept to. */
void tcp_findings(const json_t *document, const char *pattern, const char *target, remark_fn *emit, void *arg);

#endif
