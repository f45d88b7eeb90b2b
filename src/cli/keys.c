/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/keys.h"

#include <stdlib.h>
#include <string.h>

#include "result/json.h"

#define VALUE_MAX 16384

static bool stands_in(const char *const *list, const char *name) {
    for (; list && *list; list++)
        if (!strcmp(*list, name)) return true;
    return false;
}

/* A number without a default of its own is 0 until it is given: then another's choice is in force. */
static bool left_open(const struct option_entry *e, const char *value) {
    bool number = e->type == OPTION_UINT || e->type == OPTION_SIZE || e->type == OPTION_TIME;
    return number && !e->def && !strcmp(value, "0");
}

void keys_each(const struct option_entry *table, const void *conf, size_t size, bool all, const char *const *always,
               keys_fn *emit, void *arg) {
    void *defaults = calloc(1, size ? size : 1);
    char *value = malloc(VALUE_MAX), *usual = malloc(VALUE_MAX);
    struct err err;
    bool ready = defaults && value && usual && option_defaults(table, defaults, &err) == 0;
    for (const struct option_entry *e = table; ready && e->name; e++) {
        if (!strcmp(e->name, "name") || !option_show(e, conf, value, VALUE_MAX)) continue;
        bool is_default = left_open(e, value) || (option_show(e, defaults, usual, VALUE_MAX) && !strcmp(value, usual));
        /* As the help has it. */
        if (e->type == OPTION_BOOL && e->value && !strcmp(e->value, "yes|no"))
            snprintf(value, VALUE_MAX, "%s", strcmp(value, "0") ? "yes" : "no");
        if (!is_default || (all && !left_open(e, value)) || stands_in(always, e->name)) emit(arg, e->name, value);
    }
    if (defaults) option_free(table, defaults);
    free(defaults);
    free(value);
    free(usual);
}

static void put(void *arg, const char *name, const char *value) {
    json_of_put(arg, name, json_of_text(value));
}

json_t *keys_json(const struct option_entry *table, const void *conf, size_t size) {
    json_t *j = json_object();
    if (j) keys_each(table, conf, size, true, NULL, put, j);
    return j;
}
