/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/figure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *figure(char *buf, size_t len, double value, int digits) {
    if (!isfinite(value)) {
        snprintf(buf, len, "-");
        return buf;
    }
    /* The exponent after rounding: 9.9996 has four digits as 10.00. */
    char scientific[40];
    snprintf(scientific, sizeof scientific, "%.*e", digits - 1, value);
    int decimals = value == 0 ? 0 : digits - 1 - atoi(strchr(scientific, 'e') + 1);
    if (decimals < 0) decimals = 0;
    if (decimals > 6) decimals = 6;
    snprintf(buf, len, "%.*f", decimals, value);
    return buf;
}

const char *figure_ms(char *buf, size_t len, double ns, int digits) {
    return figure(buf, len, ns / 1e6, digits);
}

const char *figure_us(char *buf, size_t len, double ns, int digits) {
    return figure(buf, len, ns / 1e3, digits);
}

const char *figure_mib(char *buf, size_t len, double bytes, int digits) {
    return figure(buf, len, bytes / 1048576, digits);
}

const char *figure_time(char *buf, size_t len, double ns) {
    static const struct {
        double ns;
        const char *unit;
    } units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}};
    size_t i = 0;
    char number[40];
    while (i < 3 && ns < units[i].ns) i++;
    snprintf(buf, len, "%s %s", figure(number, sizeof number, ns / units[i].ns, 3), units[i].unit);
    return buf;
}
