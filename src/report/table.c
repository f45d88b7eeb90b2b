/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/table.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/text.h"
#include "report/conditions.h"
#include "report/figure.h"
#include "report/grid.h"
#include "report/remarks.h"
#include "report/sameness_lines.h"
#include "result/view.h"

#define NAME_MAX_COLUMNS 60

enum { C_PATTERN, C_TARGET, C_RESPONSE, C_IOPS, C_SPREAD, C_RATE, C_P99, C_MAX, C_CPU, C_RATIO, COLUMNS };

struct table {
    const json_t *document;
    struct grid *grid;
    bool several_rounds, several_targets;
};

static const char *safe(char *buf, size_t len, const char *text) {
    return text_safe(buf, len, text ? text : "", SIZE_MAX);
}

/* ---- head ---- */

static void print_target(const json_t *target, size_t width, FILE *out) {
    char label[80], text[300];
    const char *lost = view_text(target, "lost");
    safe(label, sizeof label, view_text(target, "label"));
    if (lost) {
        fprintf(out, "%-*s  left out: %s\n", (int)width, label, safe(text, sizeof text, lost));
        return;
    }
    const json_t *members = view_at(target, "members");
    for (size_t m = 0; m < json_array_size(members); m++) {
        const json_t *member = json_array_get(members, m);
        const char *words = view_text(member, "summary");
        fprintf(out, "%-*s  %s\n", (int)width, m ? "" : label,
                safe(text, sizeof text, words && words[0] ? words : view_text(member, "url")));
    }
    const json_t *warnings = view_at(target, "warnings");
    for (size_t w = 0; w < json_array_size(warnings); w++)
        fprintf(out, "%-*s  warning: %s\n", (int)width, "",
                safe(text, sizeof text, view_text(json_array_get(warnings, w), "text")));
}

/* Those that took part. */
static size_t count_targets(const json_t *document) {
    const json_t *targets = view_at(document, "targets");
    size_t n = 0;
    for (size_t t = 0; t < json_array_size(targets); t++)
        if (!view_text(json_array_get(targets, t), "lost")) n++;
    return n;
}

static void print_notes(const json_t *document, FILE *out) {
    json_t *notes = view_at(document, "notes"), *value;
    const char *key;
    json_object_foreach(notes, key, value) {
        char a[80], b[400];
        fprintf(out, "note: %s = %s\n", safe(a, sizeof a, key), safe(b, sizeof b, json_string_value(value)));
    }
}

static void print_head(const json_t *document, FILE *out) {
    const json_t *targets = view_at(document, "targets");
    size_t width = 0;
    for (size_t t = 0; t < json_array_size(targets); t++) {
        const char *label = view_text(json_array_get(targets, t), "label");
        if (label && strlen(label) > width) width = strlen(label);
    }
    for (size_t t = 0; t < json_array_size(targets); t++) print_target(json_array_get(targets, t), width, out);
    sameness_lines(document, out);
    print_notes(document, out);
}

/* ---- rows ---- */

static void add_header(struct table *t) {
    char against[100];
    char label[80];
    snprintf(against, sizeof against, "against %s",
             safe(label, sizeof label, view_text(t->document, "plan/reference")));
    const char *cells[COLUMNS] = {
        [C_RESPONSE] = "avg resp ms",
        [C_IOPS] = "IOPS",
        [C_SPREAD] = t->several_rounds ? "min..max" : "",
        [C_RATE] = "MiB/s",
        [C_P99] = "p99 ms",
        [C_MAX] = "max ms",
        [C_CPU] = "CPU us/IO",
        [C_RATIO] = t->several_targets ? against : "",
    };
    grid_row(t->grid, cells);
}

static const char *against(const json_t *row, char *buf, size_t len) {
    double ratio = view_number(row, "ratio");
    char reason[100], digits[40];
    if (ratio >= 0.1)
        snprintf(buf, len, "%.2fx", ratio);
    else if (!isnan(ratio))
        snprintf(buf, len, "%sx", figure(digits, sizeof digits, ratio, 2));
    else if (view_text(row, "not_comparable"))
        snprintf(buf, len, "not comparable: %s", safe(reason, sizeof reason, view_text(row, "not_comparable")));
    else
        buf[0] = '\0';
    return buf;
}

static void add_row(struct table *t, const json_t *row, bool first) {
    char name[NAME_MAX_COLUMNS + 1], label[80], resp[40], iops[40], low[40], high[40], spread[84] = "", rate[40];
    char p99[40], max[40], cpu[40], ratio[140];
    figure(iops, sizeof iops, view_number(row, "iops/median"), 4);
    if (view_uint(row, "rounds") > 1)
        snprintf(spread, sizeof spread, "%s..%s", figure(low, sizeof low, view_number(row, "iops/min"), 4),
                 figure(high, sizeof high, view_number(row, "iops/max"), 4));
    const char *cells[COLUMNS] = {
        [C_PATTERN] = first ? safe(name, sizeof name, view_text(row, "pattern")) : "",
        [C_TARGET] = safe(label, sizeof label, view_text(row, "target")),
        [C_RESPONSE] = figure_ms(resp, sizeof resp, view_number(row, "lat_mean_ns/median"), 4),
        [C_IOPS] = iops,
        [C_SPREAD] = spread,
        [C_RATE] = figure_mib(rate, sizeof rate, view_number(row, "bytes_per_second/median"), 4),
        [C_P99] = figure_ms(p99, sizeof p99, view_number(row, "p99_ns/median"), 3),
        [C_MAX] = figure_ms(max, sizeof max, view_number(row, "max_ns"), 3),
        [C_CPU] = figure_us(cpu, sizeof cpu, view_number(row, "cpu_ns_per_io/median"), 3),
        [C_RATIO] = against(row, ratio, sizeof ratio),
    };
    grid_row(t->grid, cells);
}

struct remark_to {
    struct grid *grid;
    const char *target;
};

static void add_remark(void *arg, const char *text) {
    struct remark_to *to = arg;
    char line[900], label[80];
    snprintf(line, sizeof line, "  %s: %s", safe(label, sizeof label, to->target), text);
    grid_line(to->grid, line);
}

static void add_pattern(struct table *t, const char *pattern) {
    const json_t *summary = view_at(t->document, "summary");
    bool first = true;
    for (size_t i = 0; i < json_array_size(summary); i++) {
        const json_t *row = json_array_get(summary, i);
        if (!view_text_is(row, "pattern", pattern)) continue;
        add_row(t, row, first);
        first = false;
    }
    for (size_t i = 0; i < json_array_size(summary); i++) {
        const json_t *row = json_array_get(summary, i);
        struct remark_to to = {t->grid, view_text(row, "target")};
        if (view_text_is(row, "pattern", pattern) && to.target)
            remarks_of_row(t->document, pattern, to.target, add_remark, &to);
    }
}

static bool was_run(const json_t *document, size_t index) {
    const json_t *summary = view_at(document, "summary");
    const char *name = view_text(json_array_get(view_at(document, "plan/patterns"), index), "name");
    for (size_t i = 0; name && i < json_array_size(summary); i++)
        if (view_text_is(json_array_get(summary, i), "pattern", name)) return true;
    return false;
}

/* The last pattern that can stand under the conditions of `first`. */
static size_t group_end(const json_t *document, size_t first) {
    size_t n = json_array_size(view_at(document, "plan/patterns")), last = first;
    char own[CONDITIONS_MAX], next[CONDITIONS_MAX];
    conditions_asked(document, first, own, sizeof own);
    while (last + 1 < n) {
        conditions_asked(document, last + 1, next, sizeof next);
        /* A pattern that an interruption left undone neither opens nor closes a group. */
        if (was_run(document, last + 1) && (strcmp(own, next) != 0 || !conditions_agree(document, first, last + 1)))
            break;
        last++;
    }
    return last;
}

static void add_conditions(struct table *t, size_t first, size_t last) {
    char asked[CONDITIONS_MAX], depth[100], class[CONDITIONS_MAX], own[100], line[3 * CONDITIONS_MAX];
    conditions_asked(t->document, first, asked, sizeof asked);
    conditions_depth(t->document, first, last, depth, sizeof depth);
    conditions_durability(t->document, first, last, class, sizeof class);
    conditions_own_cost(t->document, first, last, own, sizeof own);
    char *rest = strchr(asked, ';'); /* behind the depth that was asked for */
    snprintf(line, sizeof line, "%.*s%s%s%s%s%s%s%s", (int)(rest - asked), asked, depth[0] ? ", " : "", depth, rest,
             class[0] ? "; " : "", class, own[0] ? "; " : "", own);
    grid_line(t->grid, "");
    grid_line(t->grid, line);
}

static void add_groups(struct table *t) {
    const json_t *patterns = view_at(t->document, "plan/patterns");
    for (size_t first = 0, last; first < json_array_size(patterns); first = last + 1) {
        last = first;
        if (!was_run(t->document, first)) continue;
        last = group_end(t->document, first);
        add_conditions(t, first, last);
        add_header(t);
        for (size_t i = first; i <= last; i++) {
            const char *name = view_text(json_array_get(patterns, i), "name");
            if (name) add_pattern(t, name);
        }
    }
}

/* ---- foot ---- */

static void print_foot(const struct table *t, FILE *out) {
    const json_t *d = t->document;
    char status[40], hash[40], version[80], started[80];
    if (!json_array_size(view_at(d, "summary"))) fputs("\nNo run was finished.\n", out);
    safe(status, sizeof status, view_text(d, "status"));
    fputc('\n', out);
    if (t->several_rounds) fputs("Figures are medians over the rounds; max ms is over all of them.\n", out);
    if (strcmp(status, "ok") != 0) fprintf(out, "Status: %s\n", status);
    fprintf(out, "samedisk %s, %s, plan %s, seed %" PRIu64 "\n", safe(version, sizeof version, view_text(d, "version")),
            safe(started, sizeof started, view_text(d, "started")), safe(hash, sizeof hash, view_text(d, "plan/hash")),
            view_uint(d, "plan/seed"));
}

void table_print(const json_t *document, FILE *out) {
    struct table t = {.document = document, .grid = grid_new("llrrlrrrrl")};
    const json_t *summary = view_at(document, "summary");
    if (!t.grid) return;
    for (size_t i = 0; i < json_array_size(summary); i++)
        if (view_uint(json_array_get(summary, i), "rounds") > 1) t.several_rounds = true;
    t.several_targets = count_targets(document) > 1;
    print_head(document, out);
    add_groups(&t);
    grid_print(t.grid, out);
    print_foot(&t, out);
    grid_free(t.grid);
}
