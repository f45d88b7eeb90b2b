/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/table.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/conditions.h"
#include "report/figure.h"
#include "report/grid.h"
#include "report/notes.h"
#include "report/remarks.h"
#include "report/sameness_lines.h"
#include "result/view.h"

#define NAME_MAX_COLUMNS 60
#define LINE_MAX_BYTES   (3 * CONDITIONS_MAX)
#define REFS             16 /* of one row */
#define REFS_TEXT        (6 * REFS + 1)

enum {
    C_PATTERN, C_TARGET, C_RESPONSE, C_IOPS, C_SPREAD, C_RATE, C_P99, C_MAX, C_CPU, C_RATIO, C_NOTES, COLUMNS
};

/* What a narrow terminal does without first. */
static const int first_out[] = {C_CPU, C_MAX, C_SPREAD, C_P99, C_RATE, C_RESPONSE, C_RATIO, -1};

struct refs { /* the notes of a row, ascending */
    unsigned n, number[REFS];
};

struct table {
    const json_t *document;
    struct table_style style;
    FILE *out;
    struct grid *grid;
    struct notes *notes;
    struct refs *of_target, *of_row; /* per target, per row of the summary; owned */
    bool several_rounds, several_targets, unranked;
    bool names_apart; /* the pattern's name stands on a line of its own */
};

static const char *safe(char *buf, size_t len, const char *text) {
    return text_safe(buf, len, text ? text : "", SIZE_MAX);
}

/* ---- notes ---- */

static void refer(struct table *t, struct refs *refs, const char *text) {
    unsigned number = notes_add(t->notes, text), at = refs->n;
    for (unsigned i = 0; i < refs->n; i++)
        if (refs->number[i] == number) return;
    if (!number || refs->n == REFS) return;
    for (; at > 0 && refs->number[at - 1] > number; at--) refs->number[at] = refs->number[at - 1];
    refs->number[at] = number;
    refs->n++;
}

/* "[1][4]" */
static const char *refs_text(const struct refs *refs, char buf[REFS_TEXT]) {
    size_t at = 0;
    buf[0] = '\0';
    for (unsigned i = 0; i < refs->n; i++)
        at += (size_t)snprintf(buf + at, REFS_TEXT - at, "[%u]", refs->number[i] % 10000);
    return buf;
}

struct remark_to {
    struct table *table;
    struct refs *refs;
};

static void note_finding(void *arg, const struct remark *r) {
    struct remark_to *to = arg;
    if (r->finding) refer(to->table, to->refs, r->text);
}

/* What was there when it was opened is no news of what is read: a fill has stored it since, or its share of holes is known
 * and in the remarks of the rows that read. */
static bool reads_maybe_holes(const json_t *document, const char *target) {
    const json_t *runs = view_at(document, "runs");
    for (size_t i = 0; target && i < json_array_size(runs); i++) {
        const json_t *run = json_array_get(runs, i);
        if (view_text_is(run, "target", target) && view_uint(run, "read/ios") && !view_text(run, "filled") &&
            isnan(view_number(run, "holes")))
            return true;
    }
    return false;
}

static bool is_news(const json_t *document, const json_t *target, const json_t *warning) {
    return !view_text_is(warning, "code", "sparse") || reads_maybe_holes(document, view_text(target, "label"));
}

/* First of all: rows are printed with the numbers of their notes. */
static void collect_notes(struct table *t) {
    const json_t *targets = view_at(t->document, "targets"), *summary = view_at(t->document, "summary");
    for (size_t i = 0; i < json_array_size(targets); i++) {
        const json_t *target = json_array_get(targets, i), *warnings = view_at(target, "warnings");
        char text[600];
        for (size_t w = 0; !view_text(target, "lost") && w < json_array_size(warnings); w++)
            if (is_news(t->document, target, json_array_get(warnings, w)))
                refer(t, &t->of_target[i], safe(text, sizeof text, view_text(json_array_get(warnings, w), "text")));
    }
    for (size_t i = 0; i < json_array_size(summary); i++) {
        const json_t *row = json_array_get(summary, i);
        const char *pattern = view_text(row, "pattern"), *target = view_text(row, "target");
        struct remark_to to = {t, &t->of_row[i]};
        if (pattern && target) remarks_of_row(t->document, pattern, target, note_finding, &to);
        if (!isnan(view_number(row, "ratio_unranked")) || view_text(row, "not_comparable")) t->unranked = true;
    }
}

/* ---- head ---- */

static void print_target(const struct table *t, size_t index, size_t width) {
    const json_t *target = json_array_get(view_at(t->document, "targets"), index), *members = view_at(target, "members");
    char label[80], prefix[100], words[300], refs[REFS_TEXT], line[300 + REFS_TEXT + 20];
    const char *lost = view_text(target, "lost");
    refs_text(&t->of_target[index], refs);
    safe(label, sizeof label, view_text(target, "label"));
    snprintf(prefix, sizeof prefix, "%-*s  ", (int)width, label);
    if (lost) {
        snprintf(line, sizeof line, "left out: %s", safe(words, sizeof words, lost));
        grid_wrap(prefix, (unsigned)width + 2, line, t->style.width, t->out);
    }
    for (size_t m = 0; !lost && m < json_array_size(members); m++) {
        const json_t *member = json_array_get(members, m);
        const char *what = view_text(member, "summary");
        safe(words, sizeof words, what && what[0] ? what : view_text(member, "url"));
        snprintf(line, sizeof line, "%s%s%s", words, m || !refs[0] ? "" : " ", m ? "" : refs);
        grid_wrap(prefix, (unsigned)width + 2, line, t->style.width, t->out);
        snprintf(prefix, sizeof prefix, "%*s", (int)width + 2, "");
    }
}

/* Those that took part. */
static size_t count_targets(const json_t *document) {
    const json_t *targets = view_at(document, "targets");
    size_t n = 0;
    for (size_t t = 0; t < json_array_size(targets); t++)
        if (!view_text(json_array_get(targets, t), "lost")) n++;
    return n;
}

static void print_site_notes(const struct table *t) {
    json_t *notes = view_at(t->document, "notes"), *value;
    const char *key;
    json_object_foreach(notes, key, value) {
        char a[80], b[400], line[500];
        snprintf(line, sizeof line, "%s = %s", safe(a, sizeof a, key), safe(b, sizeof b, json_string_value(value)));
        grid_wrap("note: ", 6, line, t->style.width, t->out);
    }
}

static void print_head(const struct table *t) {
    const json_t *targets = view_at(t->document, "targets");
    size_t width = 0;
    for (size_t i = 0; i < json_array_size(targets); i++) {
        const char *label = view_text(json_array_get(targets, i), "label");
        if (label && strlen(label) > width) width = strlen(label);
    }
    for (size_t i = 0; i < json_array_size(targets); i++) print_target(t, i, width);
    sameness_lines(t->document, t->style.width, t->out);
    print_site_notes(t);
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

/* The mark says: not to be ranked. */
static const char *against(const json_t *row, char *buf, size_t len) {
    double ratio = view_number(row, "ratio"), unranked = view_number(row, "ratio_unranked");
    double shown = isnan(ratio) ? unranked : ratio;
    const char *mark = isnan(ratio) ? " *" : "";
    char digits[40];
    if (shown >= 0.1)
        snprintf(buf, len, "%.2fx%s", shown, mark);
    else if (!isnan(shown))
        snprintf(buf, len, "%sx%s", figure(digits, sizeof digits, shown, 2), mark);
    else
        snprintf(buf, len, "%s", view_text(row, "not_comparable") ? "- *" : "");
    return buf;
}

static void add_row(struct table *t, size_t index, bool first) {
    const json_t *row = json_array_get(view_at(t->document, "summary"), index);
    char name[NAME_MAX_COLUMNS + 1], label[80], target[90], resp[40], iops[40], low[40], high[40], spread[84] = "";
    char rate[40], p99[40], max[40], cpu[40], ratio[60], refs[REFS_TEXT];
    figure(iops, sizeof iops, view_number(row, "iops/median"), 4);
    if (view_uint(row, "rounds") > 1)
        snprintf(spread, sizeof spread, "%s..%s", figure(low, sizeof low, view_number(row, "iops/min"), 4),
                 figure(high, sizeof high, view_number(row, "iops/max"), 4));
    safe(name, sizeof name, view_text(row, "pattern"));
    snprintf(target, sizeof target, "%s%s", t->names_apart ? "  " : "",
             safe(label, sizeof label, view_text(row, "target")));
    if (t->names_apart && first) grid_line(t->grid, name);
    const char *cells[COLUMNS] = {
        [C_PATTERN] = first && !t->names_apart ? name : "",
        [C_TARGET] = target,
        [C_RESPONSE] = figure_ms(resp, sizeof resp, view_number(row, "lat_mean_ns/median"), 4),
        [C_IOPS] = iops,
        [C_SPREAD] = spread,
        [C_RATE] = figure_mib(rate, sizeof rate, view_number(row, "bytes_per_second/median"), 4),
        [C_P99] = figure_ms(p99, sizeof p99, view_number(row, "p99_ns/median"), 3),
        [C_MAX] = figure_ms(max, sizeof max, view_number(row, "max_ns"), 3),
        [C_CPU] = figure_us(cpu, sizeof cpu, view_number(row, "cpu_ns_per_io/median"), 3),
        [C_RATIO] = against(row, ratio, sizeof ratio),
        [C_NOTES] = refs_text(&t->of_row[index], refs),
    };
    grid_row(t->grid, cells);
}

static void add_pattern(struct table *t, const char *pattern) {
    const json_t *summary = view_at(t->document, "summary");
    bool first = true;
    for (size_t i = 0; i < json_array_size(summary); i++) {
        if (!view_text_is(json_array_get(summary, i), "pattern", pattern)) continue;
        add_row(t, i, first);
        first = false;
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
    char asked[CONDITIONS_MAX], depth[100], class[CONDITIONS_MAX], own[100], line[LINE_MAX_BYTES];
    conditions_asked(t->document, first, asked, sizeof asked);
    conditions_depth(t->document, first, last, depth, sizeof depth);
    conditions_durability(t->document, first, last, class, sizeof class);
    conditions_own_cost(t->document, first, last, t->style.verbose, own, sizeof own);
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

static bool lay_out(struct table *t, bool names_apart) {
    grid_free(t->grid);
    t->names_apart = names_apart;
    t->grid = grid_new("llrrlrrrrll");
    if (t->grid) add_groups(t);
    return t->grid != NULL;
}

/* In little room names go on lines of their own, where several rows share one; then columns go. Returns which. */
static unsigned fit(struct table *t) {
    unsigned width = t->style.width;
    if (!width || grid_row_width(t->grid) <= width) return 0;
    if (t->several_targets && !lay_out(t, true)) return 0;
    unsigned gone = grid_fit(t->grid, first_out, width);
    if (t->several_targets || grid_row_width(t->grid) <= width) return gone;
    return lay_out(t, true) ? grid_fit(t->grid, first_out, width) : 0;
}

/* ---- foot ---- */

static void print_left_out(const struct table *t, unsigned gone) {
    static const char *const names[COLUMNS] = {
        [C_RESPONSE] = "avg resp ms", [C_SPREAD] = "min..max", [C_RATE] = "MiB/s", [C_P99] = "p99 ms",
        [C_MAX] = "max ms",           [C_CPU] = "CPU us/IO",   [C_RATIO] = "against"};
    char line[200] = "Left out, for want of room:";
    if (!gone) return;
    for (unsigned c = 0; c < COLUMNS; c++)
        if (gone & 1u << c)
            snprintf(line + strlen(line), sizeof line - strlen(line), "%s %s",
                     gone & ((1u << c) - 1) ? "," : "", names[c] ? names[c] : "");
    grid_wrap("", 2, line, t->style.width, t->out);
}

static const char *in_words(const char *reason, char *buf, size_t len) {
    if (!strcmp(reason, "durability")) return "writes of different durability";
    if (!strcmp(reason, "data")) return "data that compresses or repeats otherwise";
    if (!strcmp(reason, "holes")) return "reads of what has no storage behind it";
    if (!strcmp(reason, "reference: holes")) return "the reference's reads of what has no storage behind it";
    if (!strcmp(reason, "zeros")) return "reads of blocks of which one holds zeros, and the other does not";
    return safe(buf, len, reason);
}

/* The mark in the ratio column, once. */
static void print_unranked(const struct table *t) {
    const json_t *summary = view_at(t->document, "summary");
    char reasons[400] = "", line[500], buf[100];
    if (!t->unranked) return;
    for (size_t i = 0; i < json_array_size(summary); i++) {
        const char *reason = view_text(json_array_get(summary, i), "not_comparable");
        const char *words = reason ? in_words(reason, buf, sizeof buf) : "";
        if (!words[0] || strstr(reasons, words)) continue;
        snprintf(reasons + strlen(reasons), sizeof reasons - strlen(reasons), "%s%s", reasons[0] ? "; " : "", words);
    }
    snprintf(line, sizeof line, "not the same work, so neither is ranked above the other: %s", reasons);
    grid_wrap("* ", 2, line, t->style.width, t->out);
}

struct details_of {
    const struct table *table;
    const char *pattern, *target;
    bool begun;
};

static void print_detail(void *arg, const struct remark *r) {
    struct details_of *of = arg;
    const struct table *t = of->table;
    char name[200], label[80];
    if (r->finding && notes_has(t->notes, r->text)) return;
    if (!of->begun)
        fprintf(t->out, "\n%s on %s\n", safe(name, sizeof name, of->pattern), safe(label, sizeof label, of->target));
    of->begun = true;
    grid_wrap("  ", 4, r->text, t->style.width, t->out);
}

/* What the notes do not say, or say of several rows at once. */
static void print_details(const struct table *t) {
    const json_t *summary = view_at(t->document, "summary");
    for (size_t i = 0; i < json_array_size(summary); i++) {
        const json_t *row = json_array_get(summary, i);
        struct details_of of = {t, view_text(row, "pattern"), view_text(row, "target"), false};
        if (of.pattern && of.target) remarks_of_row(t->document, of.pattern, of.target, print_detail, &of);
    }
}

static void print_foot(const struct table *t) {
    const json_t *d = t->document;
    char status[40], hash[40], version[80], started[80], line[300];
    if (!json_array_size(view_at(d, "summary"))) fputs("\nNo run was finished.\n", t->out);
    safe(status, sizeof status, view_text(d, "status"));
    fputc('\n', t->out);
    if (t->several_rounds)
        grid_wrap("", 2, "Figures are medians over the rounds; max ms is over all of them.", t->style.width, t->out);
    if (strcmp(status, "ok") != 0) fprintf(t->out, "Status: %s\n", status);
    snprintf(line, sizeof line, "samedisk %s, %s, plan %s, seed %" PRIu64,
             safe(version, sizeof version, view_text(d, "version")), safe(started, sizeof started, view_text(d, "started")),
             safe(hash, sizeof hash, view_text(d, "plan/hash")), view_uint(d, "plan/seed"));
    grid_wrap("", 2, line, t->style.width, t->out);
}

static void print_all(struct table *t) {
    collect_notes(t);
    print_head(t);
    if (lay_out(t, false)) {
        unsigned gone = fit(t);
        if (t->grid) grid_print(t->grid, t->style.width, t->out);
        print_left_out(t, gone);
    }
    if (t->unranked || notes_any(t->notes)) fputc('\n', t->out);
    print_unranked(t);
    notes_print(t->notes, t->style.width, t->out);
    if (t->style.verbose) print_details(t);
    print_foot(t);
}

void table_print(const json_t *document, const struct table_style *style, FILE *out) {
    const json_t *summary = view_at(document, "summary");
    struct table t = {.document = document, .style = *style, .out = out, .notes = notes_new()};
    t.of_target = calloc(json_array_size(view_at(document, "targets")) + 1, sizeof *t.of_target);
    t.of_row = calloc(json_array_size(summary) + 1, sizeof *t.of_row);
    for (size_t i = 0; i < json_array_size(summary); i++)
        if (view_uint(json_array_get(summary, i), "rounds") > 1) t.several_rounds = true;
    t.several_targets = count_targets(document) > 1;
    if (t.notes && t.of_target && t.of_row)
        print_all(&t);
    else
        fputs("(no memory for the table)\n", out);
    grid_free(t.grid);
    notes_free(t.notes);
    free(t.of_target);
    free(t.of_row);
}
