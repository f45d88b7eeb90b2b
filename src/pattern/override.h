/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Inside the pattern layer only: keys of the command line, which win over a pattern file. What they are to blame for is
 * never put down to a line of the file. */
#ifndef PATTERN_OVERRIDE_H
#define PATTERN_OVERRIDE_H

#include "pattern/set.h"

/* The keys of one command line and what has become of them so far. */
struct overrides {
    const struct pattern_override *key;
    size_t n;
    uint64_t given;     /* which keys these are, bits as in pattern.given */
    uint64_t effective; /* those that do something in at least one pattern */
};

/* Applies all to a pattern that the file alone has set, and finishes it. Where they change what a named pattern is, its
 * name says so. Errors begin with "--KEY: " or "the command line: ". */
int override_apply(struct overrides *o, struct pattern_set *set, struct pattern *p, struct err *err);
/* After the last pattern: which keys did nothing in any of them. `p`: one of the patterns. */
void override_remarks(const struct overrides *o, struct pattern_set *set, const struct pattern *p);

/* "randread 4k d1": what a finished pattern is, in fio's words. Returns buf. */
const char *override_describe(const struct pattern *p, char *buf, size_t len);

/* Takes over what `p` owns. */
int set_add(struct pattern_set *set, struct pattern *p, struct err *err);
/* A line for the user, once. */
__attribute__((format(printf, 2, 3))) int set_note(struct pattern_set *set, const char *fmt, ...);

#endif
