/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where the time of a row went, as far as protocol pings can tell. */
#ifndef REPORT_PING_REMARK_H
#define REPORT_PING_REMARK_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* In words, safe to print; of several rounds the slowest. False: there is nothing to say. *finding: where pings were not
 * answered; an estimate is none. */
bool ping_remark(const json_t *document, const char *pattern, const char *target, char *buf, size_t len, bool *finding);

#endif
