/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/conditions.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "report/figure.h"
#include "result/view.h"

#define OWN_SHARE 0.05 /* of the CPU time per I/O, from where on samedisk itself matters */

__attribute__((format(printf, 3, 4))) static void add(char *buf, size_t len, const char *fmt, ...) {
    size_t at = strlen(buf);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(buf + at, len - at, fmt, ap);
    va_end(ap);
}

static json_t *pattern_at(const json_t *document, size_t index) {
    return json_array_get(view_at(document, "plan/patterns"), index);
}

/* The next row or run of one pattern, from *at on; NULL at the end. */
static json_t *next_of(const json_t *list, const char *pattern, size_t *at) {
    while (pattern && *at < json_array_size(list)) {
        json_t *item = json_array_get(list, (*at)++);
        if (view_text_is(item, "pattern", pattern)) return item;
    }
    return NULL;
}

/* Less what its I/O leaves alone, where that is seen in the figure. */
static uint64_t working_set(const json_t *pattern) {
    uint64_t size = view_uint(pattern, "size"), kept = view_uint(pattern, "kept");
    return kept > size / 100 ? size - kept : size;
}

static void add_amount(const json_t *pattern, char *buf, size_t len) {
    uint64_t runtime = view_uint(pattern, "runtime"), io_size = view_uint(pattern, "io_size");
    char text[40];
    if (runtime)
        add(buf, len, "%s", units_duration_human(text, sizeof text, runtime));
    else if (io_size)
        add(buf, len, "%s", units_size_human(text, sizeof text, io_size));
    else
        add(buf, len, "%" PRIu64 " pass%s over the working set", view_uint(pattern, "loops"), view_uint(pattern, "loops") == 1 ? "" : "es");
    if (view_uint(pattern, "ramp_time"))
        add(buf, len, " after %s of ramp", units_duration_human(text, sizeof text, view_uint(pattern, "ramp_time")));
}

static void add_rounds(const json_t *document, const char *name, char *buf, size_t len) {
    size_t at = 0;
    uint64_t rounds = 0;
    const json_t *run;
    while ((run = next_of(view_at(document, "runs"), name, &at)))
        if (view_uint(run, "round") > rounds) rounds = view_uint(run, "round");
    add(buf, len, "%" PRIu64 " round%s of ", rounds, rounds == 1 ? "" : "s");
}

/* The cache policy and the data as they were in effect: what a run says counts, not the key. */
static void add_in_effect(const json_t *document, const char *name, const json_t *pattern, char *buf, size_t len) {
    size_t at = 0;
    const char *cache = NULL, *entropy = NULL, *filled = NULL;
    char data[100];
    const json_t *run;
    while ((run = next_of(view_at(document, "runs"), name, &at))) {
        if (!cache) cache = view_text(run, "cache");
        if (!entropy) entropy = view_text(run, "entropy");
        if (!filled) filled = view_text(run, "filled");
    }
    if (entropy) add(buf, len, "data %s; ", text_safe(data, sizeof data, entropy, SIZE_MAX));
    /* What is read: random, unless it was asked for and no write says the same. */
    if (filled && strcmp(filled, entropy ? entropy : "random") != 0)
        add(buf, len, "filled with data %s; ", text_safe(data, sizeof data, filled, SIZE_MAX));
    add(buf, len, "cache %s; ",
        !cache || !strcmp(cache, "asis") ? "as it is"
        : !strcmp(cache, "warm")         ? "warm"
                                         : "cold");
    if (entropy && view_text(pattern, "sync")) {
        char sync[40];
        add(buf, len, "sync=%s; ", text_safe(sync, sizeof sync, view_text(pattern, "sync"), SIZE_MAX));
    }
}

void conditions_asked(const json_t *document, size_t index, char *buf, size_t len) {
    const json_t *pattern = pattern_at(document, index);
    const char *name = view_text(pattern, "name");
    uint64_t depth = view_uint(pattern, "iodepth"), jobs = view_uint(pattern, "numjobs");
    char text[40];
    snprintf(buf, len, "depth %" PRIu64, depth * jobs);
    if (jobs > 1) add(buf, len, " (iodepth %" PRIu64 " x numjobs %" PRIu64 ")", depth, jobs);
    add(buf, len, "; ");
    if (view_uint(pattern, "rate_iops")) add(buf, len, "rate %" PRIu64 " IOPS; ", view_uint(pattern, "rate_iops"));
    if (view_uint(pattern, "readahead"))
        add(buf, len, "readahead %s; ", units_size_human(text, sizeof text, view_uint(pattern, "readahead")));
    if (view_uint(pattern, "thinktime"))
        add(buf, len, "thinktime %s; ", units_time(text, sizeof text, view_uint(pattern, "thinktime")));
    add(buf, len, "working set %s; ", units_size_human(text, sizeof text, working_set(pattern)));
    add_in_effect(document, name, pattern, buf, len);
    add_rounds(document, name, buf, len);
    add_amount(pattern, buf, len);
}

/* "WORD 63.8" or "WORD 62.1 to 64.0": a spread of the summary over all rows of the patterns, in units of `unit`. */
static void range_of(const json_t *document, size_t first, size_t last, const char *spread, double unit,
                     const char *word, char *buf, size_t len) {
    double low = NAN, high = NAN;
    char path[80], a[40], b[40];
    for (size_t i = first; i <= last; i++) {
        size_t at = 0;
        const json_t *row;
        while ((row = next_of(view_at(document, "summary"), view_text(pattern_at(document, i), "name"), &at))) {
            snprintf(path, sizeof path, "%s/min", spread);
            low = fmin(low, view_number(row, path) / unit);
            snprintf(path, sizeof path, "%s/max", spread);
            high = fmax(high, view_number(row, path) / unit);
        }
    }
    figure(a, sizeof a, low, 3);
    figure(b, sizeof b, high, 3);
    if (isnan(low))
        buf[0] = '\0';
    else if (!strcmp(a, b))
        snprintf(buf, len, "%s %s", word, a);
    else
        snprintf(buf, len, "%s %s to %s", word, a, b);
}

void conditions_depth(const json_t *document, size_t first, size_t last, char *buf, size_t len) {
    range_of(document, first, last, "depth_achieved", 1, "achieved", buf, len);
}

/* The largest share of samedisk itself in a row's CPU time per I/O. */
static double own_share(const json_t *document, size_t first, size_t last) {
    double most = 0;
    for (size_t i = first; i <= last; i++) {
        size_t at = 0;
        const json_t *row;
        while ((row = next_of(view_at(document, "summary"), view_text(pattern_at(document, i), "name"), &at)))
            most = fmax(most, view_number(row, "own_ns_per_io/median") / view_number(row, "cpu_ns_per_io/median"));
    }
    return most;
}

void conditions_own_cost(const json_t *document, size_t first, size_t last, bool always, char *buf, size_t len) {
    buf[0] = '\0';
    if (!always && !(own_share(document, first, last) >= OWN_SHARE)) return;
    range_of(document, first, last, "own_ns_per_io", 1e3, "samedisk itself", buf, len);
    if (buf[0]) add(buf, len, " us/IO");
}

/* The class of the writes of one target in one pattern; NULL: it wrote nothing. */
static const char *class_of(const json_t *document, size_t index, const char *target) {
    size_t at = 0;
    const json_t *row;
    while ((row = next_of(view_at(document, "summary"), view_text(pattern_at(document, index), "name"), &at)))
        if (view_text_is(row, "target", target)) return view_text(row, "durability");
    return NULL;
}

static const char *class_in(const json_t *document, size_t first, size_t last, const char *target) {
    const char *class = NULL;
    for (size_t i = first; i <= last && !class; i++) class = class_of(document, i, target);
    return class;
}

static const char *label_at(const json_t *document, size_t t) {
    return view_text(json_array_get(view_at(document, "targets"), t), "label");
}

/* The labels of one class: "writes volatile on iscsi and fc". */
static void add_labels(const json_t *document, size_t first, size_t last, const char *class, char *buf, size_t len) {
    size_t n = json_array_size(view_at(document, "targets")), of = 0, at = 0;
    for (size_t t = 0; t < n; t++) {
        const char *own = label_at(document, t) ? class_in(document, first, last, label_at(document, t)) : NULL;
        of += own && !strcmp(own, class);
    }
    add(buf, len, "%s%s on ", buf[0] ? ", " : "writes ", class);
    for (size_t t = 0; t < n; t++) {
        const char *own = label_at(document, t) ? class_in(document, first, last, label_at(document, t)) : NULL;
        if (!own || strcmp(own, class) != 0) continue;
        at++;
        add(buf, len, "%s%s", at == 1 ? "" : at == of ? " and " : ", ", label_at(document, t));
    }
}

void conditions_durability(const json_t *document, size_t first, size_t last, char *buf, size_t len) {
    size_t n = json_array_size(view_at(document, "targets"));
    const char *seen[8];
    size_t classes = 0;
    for (size_t t = 0; t < n; t++) {
        const char *class = label_at(document, t) ? class_in(document, first, last, label_at(document, t)) : NULL;
        size_t i = 0;
        while (class && i < classes && strcmp(seen[i], class) != 0) i++;
        if (class && i == classes && classes < sizeof seen / sizeof *seen) seen[classes++] = class;
    }
    buf[0] = '\0';
    if (classes == 1) snprintf(buf, len, "writes %s", seen[0]);
    for (size_t i = 0; classes > 1 && i < classes; i++) add_labels(document, first, last, seen[i], buf, len);
}

int conditions_agree(const json_t *document, size_t first, size_t index) {
    for (size_t t = 0; t < json_array_size(view_at(document, "targets")); t++) {
        const char *label = label_at(document, t);
        if (!label) continue;
        const char *here = class_of(document, index, label), *there = class_in(document, first, index - 1, label);
        if (here && there && strcmp(here, there) != 0) return 0;
    }
    return 1;
}
