/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers for people: as many digits as they are worth, and "-" for what is not known. */
#ifndef REPORT_FIGURE_H
#define REPORT_FIGURE_H

#include <stddef.h>

/* `digits` significant digits, never an exponent: 17.28, 3472, 1203456, 0.0123. */
const char *figure(char *buf, size_t len, double value, int digits);
/* Nanoseconds as milliseconds, microseconds without their unit; bytes per second as MiB/s. */
const char *figure_ms(char *buf, size_t len, double ns, int digits);
const char *figure_us(char *buf, size_t len, double ns, int digits);
const char *figure_mib(char *buf, size_t len, double bytes, int digits);
/* With a unit that fits: "812 ms", "14.2 us", "2.5 s". */
const char *figure_time(char *buf, size_t len, double ns);

#endif
