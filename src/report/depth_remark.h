/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rows whose I/O depth was not reached: their response times are those of another depth. */
#ifndef REPORT_DEPTH_REMARK_H
#define REPORT_DEPTH_REMARK_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Of the round with the lowest depth, in words. False: it was reached, or the pattern is one that does not ask for it all
 * the time (a rate, pauses to think, a readahead). */
bool depth_remark(const json_t *document, const char *pattern, const char *target, char *buf, size_t len);

#endif
