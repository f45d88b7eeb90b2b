/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "result/view.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

json_t *view_at(const json_t *j, const char *path) {
    char key[64];
    json_t *at;
    for (;;) {
        size_t n = strcspn(path, "/");
        snprintf(key, sizeof key, "%.*s", (int)n, path);
        at = json_object_get(j, key);
        if (!at || !path[n]) return at;
        j = at;
        path += n + 1;
    }
}

double view_number(const json_t *j, const char *path) {
    const json_t *v = view_at(j, path);
    return json_is_number(v) ? json_number_value(v) : NAN;
}

uint64_t view_uint(const json_t *j, const char *path) {
    json_int_t v = json_integer_value(view_at(j, path));
    return v > 0 ? (uint64_t)v : 0;
}

const char *view_text(const json_t *j, const char *path) {
    return json_string_value(view_at(j, path));
}

bool view_true(const json_t *j, const char *path) {
    return json_is_true(view_at(j, path));
}

bool view_text_is(const json_t *j, const char *path, const char *value) {
    const char *text = view_text(j, path);
    return text && !strcmp(text, value);
}
