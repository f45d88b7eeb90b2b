/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "result/summary.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/io.h"
#include "result/fields.h"
#include "result/record.h"
#include "result/view.h"

#define HOLES_MATTER 0.001 /* of the range */
#define ZEROS_APART 0.05 /* of the sampled blocks: so much more of one target than of the other holds zeros */

/* What the rows of one pattern are made from. */
struct row {
    const char *pattern, *target;
    const json_t **run; /* the runs that count, in order of rounds; owned */
    size_t n;
    enum run_status status; /* the worst of all */
    const char *durability; /* the weakest; NULL: no writes */
    const char *entropy, *filled; /* of what was written by it, and before it; NULL: nothing, or nobody knows */
    double holes, zeros, median_iops, reads; /* zeros: share of the blocks that were looked at; NAN: none was */
    uint64_t errors;
    json_t *json; /* borrowed */
};

static enum run_status status_of(const json_t *run) {
    for (int s = RUN_OK; s <= RUN_INTERRUPTED; s++)
        if (view_text_is(run, "status", run_status_name(s))) return s;
    return RUN_LOST;
}

static bool belongs(const json_t *run, const struct row *row) {
    return view_text_is(run, "pattern", row->pattern) && view_text_is(run, "target", row->target);
}

static void take_runs(struct row *row, const json_t *runs, bool cut_short) {
    json_t *run;
    size_t i;
    json_array_foreach(runs, i, run) {
        if (!belongs(run, row)) continue;
        enum run_status s = status_of(run);
        if (s > row->status) row->status = s;
        bool whole = s == RUN_OK || s == RUN_ERRORS;
        if (whole != cut_short && !isnan(view_number(run, "total/iops"))) row->run[row->n++] = run;
    }
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Median, least and greatest of one figure over the rounds; null unless every round has it. */
static json_t *spread(const struct row *row, const char *path, double *median) {
    json_t *j = NULL;
    double *v = calloc(row->n + 1, sizeof *v);
    *median = NAN;
    if (!v) return NULL;
    for (size_t i = 0; i < row->n; i++) {
        v[i] = view_number(row->run[i], path);
        if (isnan(v[i])) goto none;
    }
    if (!row->n) goto none;
    qsort(v, row->n, sizeof *v, compare_doubles);
    *median = row->n % 2 ? v[row->n / 2] : (v[row->n / 2 - 1] + v[row->n / 2]) / 2;
    j = json_pack("{s:f, s:f, s:f}", "median", *median, "min", v[0], "max", v[row->n - 1]);
    free(v);
    return j;
none:
    free(v);
    return json_null();
}

/* The longest response anybody waited for: a stall that the window's end cut off is in the tail, one that ended in a
 * failure among the failed. */
static json_t *longest(const struct row *row) {
    double max = NAN;
    for (size_t i = 0; i < row->n; i++) {
        max = fmax(max, view_number(row->run[i], "total/lat_ns/max"));
        if (view_uint(row->run[i], "failed_longest_ns") >= (uint64_t)NS_PER_SEC)
            max = fmax(max, view_number(row->run[i], "failed_longest_ns"));
        if (view_number(row->run[i], "tail/ios") > 0 || view_number(row->run[i], "tail/abandoned") > 0)
             max = fmax(max, view_number(row->run[i], "tail/longest_ns"));
    }
    return isnan(max) ? json_null() : json_integer((json_int_t)max);
}

static const char *weaker(const char *a, const char *b) {
    for (int d = DURABILITY_VOLATILE; d <= DURABILITY_FLUSHED; d++) {
        const char *name = io_durability_name(d);
        if ((a && !strcmp(a, name)) || (b && !strcmp(b, name))) return name;
    }
    return NULL;
}

/* What was filled was not sampled, and holds what `filled` says. */
static double zeros_in(const json_t *run) {
    const char *filled = view_text(run, "filled");
    uint64_t sampled = view_uint(run, "blocks_sampled");
    if (sampled) return (double)view_uint(run, "zeros_sampled") / (double)sampled;
    return filled && strcmp(filled, "zeros") != 0 ? 0 : NAN;
}

static void look_at_runs(struct row *row) {
    row->holes = row->zeros = NAN;
    for (size_t i = 0; i < row->n; i++) {
        const json_t *run = row->run[i];
        const char *kind;
        json_t *count;
        row->durability = weaker(row->durability, view_text(run, "durability"));
        if (view_text(run, "entropy")) row->entropy = view_text(run, "entropy");
        if (view_text(run, "filled")) row->filled = view_text(run, "filled");
        row->holes = fmax(row->holes, view_number(run, "holes"));
        row->zeros = fmax(row->zeros, zeros_in(run));
        row->reads += view_number(run, "read/ios");
        json_object_foreach(json_object_get(run, "errors"), kind, count) row->errors +=
            (uint64_t)json_integer_value(count);
    }
}

static json_t *row_json(struct row *row) {
    static const struct {
        const char *name, *path;
    } figures[] = {
        {"iops", "total/iops"},
        {"bytes_per_second", "total/bytes_per_second"},
        {"lat_mean_ns", "total/lat_ns/mean"},
        {"p99_ns", "total/lat_ns/percentiles/99"},
        {"cpu_ns_per_io", "cpu/ns_per_io"},
        {"own_ns_per_io", "cpu/own_ns_per_io"},
        {"depth_achieved", "depth_achieved"},
    };
    struct fields j = fields_new();
    fields_text(&j, "pattern", row->pattern);
    fields_text(&j, "target", row->target);
    fields_count(&j, "rounds", row->n);
    fields_text(&j, "status", run_status_name(row->status));
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        double median;
        fields_put(&j, figures[i].name, spread(row, figures[i].path, &median));
        if (!i) row->median_iops = median;
    }
    fields_put(&j, "max_ns", longest(row));
    fields_text(&j, "durability", row->durability);
    fields_real(&j, "holes", row->holes);
    fields_count(&j, "errors", row->errors);
    return fields_end(&j);
}

static const json_t *run_of_round(const struct row *row, double round) {
    for (size_t i = 0; i < row->n; i++)
        if (view_number(row->run[i], "round") == round) return row->run[i];
    return NULL;
}

/* The same load: the hashes agree at the largest k that both reached. */
static bool same_load(const struct row *a, const struct row *b) {
    for (size_t i = 0; i < a->n; i++) {
        const json_t *other = run_of_round(b, view_number(a->run[i], "round"));
        const json_t *x = json_object_get(a->run[i], "fingerprint"), *y = json_object_get(other, "fingerprint");
        size_t n = json_array_size(x) < json_array_size(y) ? json_array_size(x) : json_array_size(y);
        if (n && !json_equal(json_array_get(x, n - 1), json_array_get(y, n - 1))) return false;
    }
    return true;
}

static const char *fault(const struct row *row) {
    if (row->status == RUN_ERRORS) return "I/O errors";
    if (row->status == RUN_LOST) return "target lost";
    if (row->status == RUN_INTERRUPTED) return "interrupted";
    if (!(row->median_iops > 0)) return "no result";
    return NULL;
}

static bool both_and_other(const char *a, const char *b) {
    return a && b && strcmp(a, b) != 0;
}

static bool has_holes(const struct row *row) {
    return row->reads > 0 && row->holes > HOLES_MATTER;
}

/* Zeros are compressed, deduplicated and not even read by much storage. */
static bool other_zeros(const struct row *row, const struct row *ref) {
    return (row->reads > 0 || ref->reads > 0) && fabs(row->zeros - ref->zeros) > ZEROS_APART;
}

/* Why the two may not be ranked; "" if they may. True: both have a figure, but for other work, so that their ratio says
 * what it is, and not who is faster. */
static bool why_not(const struct row *row, const struct row *ref, char *buf, size_t len) {
    const char *own = fault(row), *refs = ref ? fault(ref) : NULL;
    bool figures = !own && ref && !refs;
    if (own)
        snprintf(buf, len, "%s", own);
    else if (!ref)
        snprintf(buf, len, "the reference was not run");
    else if (refs)
        snprintf(buf, len, "reference: %s", refs);
    else if (has_holes(row))
        snprintf(buf, len, "holes");
    else if (has_holes(ref))
        snprintf(buf, len, "reference: holes");
    else if (other_zeros(row, ref))
        snprintf(buf, len, "zeros");
    else if ((row->durability || ref->durability) &&
             strcmp(row->durability ? row->durability : "", ref->durability ? ref->durability : "") != 0)
        snprintf(buf, len, "durability");
    else if (both_and_other(row->entropy, ref->entropy) || both_and_other(row->filled, ref->filled))
        snprintf(buf, len, "data");
    else if (!same_load(row, ref))
        snprintf(buf, len, "not the same load");
    else
        buf[0] = '\0';
    return figures && buf[0];
}

static void compare_rows(struct row *rows, size_t n, const char *reference) {
    const struct row *ref = NULL;
    for (size_t t = 0; t < n; t++)
        if (reference && !strcmp(rows[t].target, reference)) ref = &rows[t];
    for (size_t t = 0; t < n; t++) {
        char reason[64] = "";
        bool alone = &rows[t] == ref || !reference;
        bool unranked = !alone && why_not(&rows[t], ref, reason, sizeof reason);
        bool ranked = !alone && !reason[0];
        double ratio = ranked || unranked ? rows[t].median_iops / ref->median_iops : NAN;
        json_object_set_new(rows[t].json, "ratio", ranked ? json_real(ratio) : json_null());
        json_object_set_new(rows[t].json, "ratio_unranked", unranked ? json_real(ratio) : json_null());
        json_object_set_new(rows[t].json, "not_comparable", reason[0] ? json_string(reason) : json_null());
    }
}

static bool was_run(const json_t *runs, const char *pattern, const char *target) {
    json_t *run;
    size_t i;
    json_array_foreach(runs, i, run) {
        if (view_text_is(run, "pattern", pattern) && (!target || view_text_is(run, "target", target))) return true;
    }
    return false;
}

static int pattern_rows(json_t *summary, const char *pattern, const json_t *document) {
    const json_t *targets = json_object_get(document, "targets"), *runs = json_object_get(document, "runs");
    size_t n = 0;
    struct row *rows = calloc(json_array_size(targets) + 1, sizeof *rows);
    int rc = -1;
    if (!rows) return -1;
    for (size_t t = 0; t < json_array_size(targets); t++) {
        const char *target = view_text(json_array_get(targets, t), "label");
        if (!target || !was_run(runs, pattern, target)) continue;
        struct row *row = &rows[n++];
        row->pattern = pattern;
        row->target = target;
        row->run = calloc(json_array_size(runs) + 1, sizeof *row->run);
        if (!row->run) goto out;
        take_runs(row, runs, false);
        if (!row->n) take_runs(row, runs, true);
        look_at_runs(row);
        row->json = row_json(row);
        if (!row->json || json_array_append_new(summary, row->json)) goto out;
    }
    compare_rows(rows, n, json_array_size(targets) > 1 ? view_text(document, "plan/reference") : NULL);
    rc = 0;
out:
    for (size_t t = 0; t < n; t++) free(rows[t].run);
    free(rows);
    return rc;
}

json_t *summary_make(const json_t *document) {
    json_t *summary = json_array(), *pattern;
    size_t i;
    json_array_foreach(view_at(document, "plan/patterns"), i, pattern) {
        const char *name = view_text(pattern, "name");
        /* Patterns that an interruption left undone have no row. */
        if (!summary || !name || !was_run(json_object_get(document, "runs"), name, NULL)) continue;
        if (pattern_rows(summary, name, document)) {
            json_decref(summary);
            return NULL;
        }
    }
    return summary;
}
