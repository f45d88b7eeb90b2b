/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cpus_allowed: a list of CPUs as in cpuset(7), "0-3,8". */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "pattern/keys.h"
#include "pattern/pattern.h"

/* A number at *at, which moves on behind it. */
static int cpus_number(const char **at, unsigned *cpu) {
    char *end;
    if (!isdigit((unsigned char)**at)) return -1;
    unsigned long n = strtoul(*at, &end, 10);
    if (n >= PATTERN_CPU_END) return -1;
    *at = end;
    *cpu = (unsigned)n;
    return 0;
}

static int cpus_add(struct pattern_cpus *list, unsigned first, unsigned last) {
    for (unsigned cpu = first; cpu <= last; cpu++) {
        for (unsigned i = 0; i < list->n; i++)
            if (list->cpu[i] == cpu) return -1;
        if (list->n == PATTERN_CPUS) return -1;
        list->cpu[list->n++] = (uint16_t)cpu;
    }
    return 0;
}

static int cpus_range(const char **at, struct pattern_cpus *list) {
    unsigned first, last;
    if (cpus_number(at, &first) != 0) return -1;
    last = first;
    if (**at == '-') {
        ++*at;
        if (cpus_number(at, &last) != 0 || last < first) return -1;
    }
    return cpus_add(list, first, last);
}

int cpus_parse(const char *value, void *field, void *conf, struct err *err) {
    struct pattern_cpus list = {.n = 0};
    const char *at = value;
    char safe[80];
    (void)conf;
    while (cpus_range(&at, &list) == 0) {
        if (!*at) {
            *(struct pattern_cpus *)field = list;
            return 0;
        }
        if (*at++ != ',') break;
    }
    return err_set(err, STATUS_USAGE, "'%s' is not a list of CPUs: numbers and ranges below %d, each CPU once, at most "
                   "%d of them, as in 0-3,8", text_safe(safe, sizeof(safe), value, strlen(value)), PATTERN_CPU_END,
                   PATTERN_CPUS);
}

int cpus_show(const void *field, const void *conf, char *buf, size_t len) {
    const struct pattern_cpus *list = field;
    size_t at = 0;
    (void)conf;
    for (unsigned i = 0, k; i < list->n && at < len; i = k) {
        for (k = i + 1; k < list->n && list->cpu[k] == list->cpu[k - 1] + 1; k++) {}
        at += (size_t)snprintf(buf + at, len - at, "%s%u", i ? "," : "", list->cpu[i]);
        if (k > i + 1 && at < len) at += (size_t)snprintf(buf + at, len - at, "-%u", list->cpu[k - 1]);
    }
    return at < len ? (int)at : 0;
}
