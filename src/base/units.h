/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers with units, strict: the whole string must be the number; fractions, unknown units, signs, blanks inside and
 * overflow are errors that say what would be right. Messages have no object in front: the caller prefixes file, key. */
#ifndef BASE_UNITS_H
#define BASE_UNITS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* "4k" "1m" "10g" "512" "4KiB" "4kb" "1t" "1p"; any case; always powers of 1024. Bytes. Status of errors: USAGE. */
int units_parse_size(const char *text, uint64_t *bytes, struct err *err);
/* "30" (seconds) "10s" "5m" "1h" "1d" "250ms" "100us" "50ns" (also usec, msec). Nanoseconds,
 * at most INT64_MAX (292 years): times meet clock_now() in sums. */
int units_parse_time(const char *text, uint64_t *ns, struct err *err);
int units_parse_uint(const char *text, uint64_t *value, struct err *err); /* plain decimal */
int units_parse_bool(const char *text, int *value, struct err *err);      /* 0 1 yes no true false on off */

/* Exact where possible: 4096 -> "4k", 1536 -> "1536", 8000000*512 -> "4096000000"; parses back to the same number. */
const char *units_size(char *buf, size_t len, uint64_t bytes);
/* For people: three digits and a binary unit, "3.81 GiB". */
const char *units_size_human(char *buf, size_t len, uint64_t bytes);
/* Exact: "10s" "250ms" "1500us"; parses back. */
const char *units_time(char *buf, size_t len, uint64_t ns);
/* For people: "1 h 12 min", "4 min 30 s", "12 s". */
const char *units_duration_human(char *buf, size_t len, uint64_t ns);

#endif
