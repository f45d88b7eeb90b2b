/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/sameness_lines.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/text.h"
#include "report/grid.h"
#include "result/view.h"

/* Nothing is asserted that was not seen. */
static void print_pair(const json_t *document, const json_t *pair, unsigned width, FILE *out) {
    char a[80], b[80], how[300], line[700] = "";
    const json_t *labels = view_at(pair, "targets");
    const char *x = json_string_value(json_array_get(labels, 0)), *y = json_string_value(json_array_get(labels, 1));
    const char *seen = view_text(pair, "how");
    const char *warm = view_true(document, "plan/warm_instead_of_asis") ? "; its cache is warmed before every run" : "";
    text_safe(a, sizeof a, x ? x : "", SIZE_MAX);
    text_safe(b, sizeof b, y ? y : "", SIZE_MAX);
    text_safe(how, sizeof how, seen ? seen : "", SIZE_MAX);
    if (view_text_is(pair, "verdict", "one object"))
        snprintf(line, sizeof line, "%s and %s are the same object (%s)%s", a, b, how, warm);
    else if (view_text_is(pair, "verdict", "shared blocks"))
        snprintf(line, sizeof line, "%s and %s share what they store (%s)%s", a, b, how, warm);
    else if (view_text_is(pair, "verdict", "equal data"))
        snprintf(line, sizeof line, "%s and %s may be the same object, or a copy (%s)%s", a, b, how, warm);
    else if (view_text_is(pair, "verdict", "different objects"))
        snprintf(line, sizeof line, "%s and %s bear one identity, but are two objects (%s)", a, b, how);
    else if (view_text_is(pair, "verdict", "not confirmed"))
        snprintf(line, sizeof line, "%s and %s bear one identity; whether they are one object is not known (%s)", a, b, how);
    else if (view_text_is(pair, "verdict", "no sign"))
        snprintf(line, sizeof line, "No sign that %s and %s share blocks (%" PRIu64 " looked at)", a, b, view_uint(pair, "blocks"));
    else if (view_text_is(pair, "verdict", "not looked into"))
        snprintf(line, sizeof line, "Whether %s and %s share blocks was not looked into", a, b);
    if (line[0]) grid_wrap("", 2, line, width, out);
}

/* How many pairs have this verdict, and the blocks that were looked at for them. */
static size_t count(const json_t *pairs, const char *verdict, uint64_t *blocks) {
    size_t n = 0;
    *blocks = 0;
    for (size_t i = 0; i < json_array_size(pairs); i++) {
        if (!view_text_is(json_array_get(pairs, i), "verdict", verdict)) continue;
        *blocks += view_uint(json_array_get(pairs, i), "blocks");
        n++;
    }
    return n;
}

/* A target that keeps nothing shares nothing: its pairs have the verdict "no storage", and no line. */
void sameness_lines(const json_t *document, unsigned width, FILE *out) {
    const json_t *pairs = view_at(document, "sameness");
    uint64_t blocks, none;
    char line[120];
    size_t no_sign = count(pairs, "no sign", &blocks), not_looked = count(pairs, "not looked into", &none);
    size_t special = json_array_size(pairs) - no_sign - not_looked - count(pairs, "no storage", &none);
    for (size_t i = 0; i < json_array_size(pairs); i++) {
        const json_t *pair = json_array_get(pairs, i);
        bool with_others = (no_sign > 1 && view_text_is(pair, "verdict", "no sign")) ||
                           (not_looked > 1 && view_text_is(pair, "verdict", "not looked into"));
        if (!with_others) print_pair(document, pair, width, out);
    }
    if (no_sign > 1)
        snprintf(line, sizeof line, "No sign that any %sof the targets share blocks (%" PRIu64 " looked at)",
                 special || not_looked ? "others " : "", blocks);
    if (no_sign > 1) grid_wrap("", 2, line, width, out);
    if (not_looked > 1)
        snprintf(line, sizeof line, "Whether %sthe targets share blocks was not looked into", special || no_sign ? "others of " : "");
    if (not_looked > 1) grid_wrap("", 2, line, width, out);
}
