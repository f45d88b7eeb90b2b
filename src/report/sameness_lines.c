/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/sameness_lines.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/text.h"
#include "result/view.h"

/* Nothing is asserted that was not seen. */
static void print_pair(const json_t *document, const json_t *pair, FILE *out) {
    char a[80], b[80], how[300];
    const json_t *labels = view_at(pair, "targets");
    const char *x = json_string_value(json_array_get(labels, 0)), *y = json_string_value(json_array_get(labels, 1));
    const char *seen = view_text(pair, "how");
    const char *warm = view_true(document, "plan/warm_instead_of_asis") ? "; its cache is warmed before every run" : "";
    text_safe(a, sizeof a, x ? x : "", SIZE_MAX);
    text_safe(b, sizeof b, y ? y : "", SIZE_MAX);
    text_safe(how, sizeof how, seen ? seen : "", SIZE_MAX);
    if (view_text_is(pair, "verdict", "one object"))
        fprintf(out, "%s and %s are the same object (%s)%s\n", a, b, how, warm);
    else if (view_text_is(pair, "verdict", "shared blocks"))
        fprintf(out, "%s and %s share what they store (%s)%s\n", a, b, how, warm);
    else if (view_text_is(pair, "verdict", "equal data"))
        fprintf(out, "%s and %s may be the same object, or a copy (%s)%s\n", a, b, how, warm);
    else if (view_text_is(pair, "verdict", "different objects"))
        fprintf(out, "%s and %s bear one identity, but are two objects (%s)\n", a, b, how);
    else if (view_text_is(pair, "verdict", "not confirmed"))
        fprintf(out, "%s and %s bear one identity; whether they are one object is not known (%s)\n", a, b, how);
    else if (view_text_is(pair, "verdict", "no sign"))
        fprintf(out, "No sign that %s and %s share blocks (%" PRIu64 " looked at)\n", a, b, view_uint(pair, "blocks"));
    else if (view_text_is(pair, "verdict", "not looked into"))
        fprintf(out, "Whether %s and %s share blocks was not looked into\n", a, b);
}

static bool all_are(const json_t *pairs, const char *verdict, uint64_t *blocks) {
    *blocks = 0;
    for (size_t i = 0; i < json_array_size(pairs); i++) {
        if (!view_text_is(json_array_get(pairs, i), "verdict", verdict)) return false;
        *blocks += view_uint(json_array_get(pairs, i), "blocks");
    }
    return true;
}

void sameness_lines(const json_t *document, FILE *out) {
    const json_t *pairs = view_at(document, "sameness");
    uint64_t blocks;
    if (json_array_size(pairs) > 1 && all_are(pairs, "no sign", &blocks)) {
        fprintf(out, "No sign that any of the targets share blocks (%" PRIu64 " looked at)\n", blocks);
    } else if (json_array_size(pairs) > 1 && all_are(pairs, "not looked into", &blocks)) {
        fputs("Whether the targets share blocks was not looked into\n", out);
    } else {
        for (size_t i = 0; i < json_array_size(pairs); i++) print_pair(document, json_array_get(pairs, i), out);
    }
}
