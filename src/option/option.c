/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "option/option.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"

#define NEAREST_KEYS 200
#define HELP_COLUMN 30

/* ---- finding ---- */

static bool name_equal(const char *a, const char *b) {
    for (; *a && *b; a++, b++)
        if ((*a == '-' ? '_' : *a) != (*b == '-' ? '_' : *b)) return false;
    return *a == *b;
}

const struct option_entry *option_find(const struct option_entry *table, const char *key) {
    for (const struct option_entry *e = table; e->name; e++)
        if (name_equal(e->name, key) || (e->alias && name_equal(e->alias, key))) return e;
    return NULL;
}

/* "rwmix": what is left out at the end counts for no typing mistakes. */
const char *option_nearest_name(const char *key, const char *const *names) {
    const char *near = text_nearest(key, names);
    size_t len = strlen(key);
    for (size_t i = 0; !near && len >= 4 && names[i]; i++)
        if (strncmp(names[i], key, len) == 0) near = names[i];
    return near;
}

const char *option_nearest(const struct option_entry *table, const char *key) {
    const char *names[NEAREST_KEYS + 1];
    size_t n = 0;

    for (const struct option_entry *e = table; e->name; e++) {
        if (n < NEAREST_KEYS) names[n++] = e->name;
        if (n < NEAREST_KEYS && e->alias) names[n++] = e->alias;
    }
    names[n] = NULL;
    return option_nearest_name(key, names);
}

/* ---- numbers ---- */

static bool is_number(const struct option_entry *e) {
    return e->type == OPTION_UINT || e->type == OPTION_SIZE || e->type == OPTION_TIME;
}

static const char *show_number(const struct option_entry *e, uint64_t value, char *buf, size_t len) {
    switch (e->type) {
    case OPTION_SIZE: return units_size(buf, len, value);
    case OPTION_TIME: return units_time(buf, len, value);
    default: snprintf(buf, len, "%" PRIu64, value); return buf;
    }
}

/* "1 to 65536", "at least 512", "at most 16m"; "" without limits. A max of 0 or UINT64_MAX is none. */
static const char *show_range(const struct option_entry *e, char *buf, size_t len) {
    char low[40], high[40];
    bool above = e->max != 0 && e->max != UINT64_MAX;

    show_number(e, e->min, low, sizeof(low));
    show_number(e, e->max, high, sizeof(high));
    buf[0] = '\0';
    if (e->min > 0 && above)
        snprintf(buf, len, "%s to %s", low, high);
    else if (e->min > 0)
        snprintf(buf, len, "at least %s", low);
    else if (above)
        snprintf(buf, len, "at most %s", high);
    return buf;
}

static int set_number(const struct option_entry *e, uint64_t *field, const char *value, struct err *err) {
    uint64_t number = 0;
    char range[100], given[40];
    int rc;

    if (e->type == OPTION_SIZE)
        rc = units_parse_size(value, &number, err);
    else if (e->type == OPTION_TIME)
        rc = units_parse_time(value, &number, err);
    else
        rc = units_parse_uint(value, &number, err);
    if (rc != 0) {
        if (*show_range(e, range, sizeof(range))) err_set(err, err->status, "%s; allowed: %s", err->msg, range);
        return -1;
    }
    if (number < e->min || (e->max != 0 && number > e->max))
        return err_set(err, STATUS_USAGE, "%s is out of range (%s)", show_number(e, number, given, sizeof(given)),
                       show_range(e, range, sizeof(range)));
    *field = number;
    return 0;
}

/* ---- the other types ---- */

static int set_bool(bool *field, const char *value, struct err *err) {
    int truth;

    if (value && units_parse_bool(value, &truth, err) != 0) return -1;
    *field = value ? truth != 0 : true;
    return 0;
}

static int set_enum(const struct option_entry *e, int *field, const char *value, struct err *err) {
    const char *nearest;
    char list[400] = "", safe[64];
    size_t n = 0;

    for (int i = 0; e->names[i]; i++) {
        if (strcmp(e->names[i], value) == 0) {
            *field = i;
            return 0;
        }
        if (n < sizeof(list)) n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s", i ? ", " : "", e->names[i]);
    }
    nearest = text_nearest(value, e->names);
    return err_set(err, STATUS_USAGE, "'%s' is none of %s%s%s%s", text_safe(safe, sizeof(safe), value, strlen(value)),
                   list, nearest ? " (did you mean " : "", nearest ? nearest : "", nearest ? "?)" : "");
}

static void free_text(const struct option_entry *e, char **field) {
    if (*field && e->type == OPTION_SECRET) explicit_bzero(*field, strlen(*field));
    free(*field);
    *field = NULL;
}

static int set_text(const struct option_entry *e, char **field, const char *value, struct err *err) {
    char *copy = strdup(value); /* before the old one goes: it may be the value */

    if (!copy) return err_set(err, STATUS_USAGE, "out of memory");
    free_text(e, field);
    *field = copy;
    return 0;
}

/* ---- setting ---- */

static int set_field(const struct option_entry *e, void *conf, const char *value, struct err *err) {
    void *field = (char *)conf + e->offset;

    switch (e->type) {
    case OPTION_UINT:
    case OPTION_SIZE:
    case OPTION_TIME: return set_number(e, field, value, err);
    case OPTION_BOOL: return set_bool(field, value, err);
    case OPTION_ENUM: return set_enum(e, field, value, err);
    case OPTION_TEXT:
    case OPTION_SECRET: return set_text(e, field, value, err);
    case OPTION_CUSTOM: return e->parse(value, field, conf, err);
    }
    return err_set(err, STATUS_USAGE, "this key has a type that is not known");
}

static int set_entry(const struct option_entry *e, void *conf, const char *value, struct err *err) {
    if (!value && e->type != OPTION_BOOL)
        return err_set(err, STATUS_USAGE, "%s needs a value (write %s=%s)", e->name, e->name,
                       e->value ? e->value : "VALUE");
    if (set_field(e, conf, value, err) != 0) return err_prefix(err, "%s", e->name);
    return 0;
}

int option_set(const struct option_entry *table, void *conf, const char *key, const char *value, struct err *err) {
    const struct option_entry *e = option_find(table, key);
    char safe[64];

    if (e) return set_entry(e, conf, value, err);
    const char *nearest = option_nearest(table, key);
    return err_set(err, STATUS_USAGE, "unknown key '%s'%s%s%s", text_safe(safe, sizeof(safe), key, strlen(key)),
                   nearest ? " (nearest: " : "", nearest ? nearest : "", nearest ? ")" : "");
}

int option_defaults(const struct option_entry *table, void *conf, struct err *err) {
    for (const struct option_entry *e = table; e->name; e++)
        if (e->def && set_entry(e, conf, e->def, err) != 0) return err_prefix(err, "built-in default");
    return 0;
}

void option_free(const struct option_entry *table, void *conf) {
    for (const struct option_entry *e = table; e->name; e++)
        if (e->type == OPTION_TEXT || e->type == OPTION_SECRET) free_text(e, (char **)((char *)conf + e->offset));
}

/* ---- showing ---- */

static const char *enum_name(const struct option_entry *e, int index) {
    for (int i = 0; e->names[i]; i++)
        if (i == index) return e->names[i];
    return NULL;
}

bool option_show(const struct option_entry *e, const void *conf, char *buf, size_t len) {
    const void *field = (const char *)conf + e->offset;
    const char *text = NULL;
    char number[40];

    switch (e->type) {
    case OPTION_UINT:
    case OPTION_SIZE:
    case OPTION_TIME: text = show_number(e, *(const uint64_t *)field, number, sizeof(number)); break;
    case OPTION_BOOL: text = *(const bool *)field ? "1" : "0"; break;
    case OPTION_ENUM: text = enum_name(e, *(const int *)field); break;
    case OPTION_TEXT: text = *(char *const *)field; break;
    case OPTION_SECRET: break;
    case OPTION_CUSTOM: return e->show && e->show(field, conf, buf, len) != 0;
    }
    if (!text) return false;
    /* A text that was cut would parse back as another one. */
    return snprintf(buf, len, "%s", text) < (int)len;
}

static void help_notes(const struct option_entry *e, FILE *out) {
    char range[100];
    const char *open = " (";

    if (e->alias) fprintf(out, "%salso %s", open, e->alias), open = ", ";
    if (e->def) fprintf(out, "%sdefault %s", open, e->def), open = ", ";
    if (is_number(e) && *show_range(e, range, sizeof(range))) fprintf(out, "%s%s", open, range), open = ", ";
    if (*open == ',') fputc(')', out);
}

void option_help(const struct option_entry *table, const char *prefix, FILE *out) {
    const char *between = *prefix == '-' ? " " : "="; /* --iodepth N, but nconnect=N */

    for (const struct option_entry *e = table; e->name; e++) {
        int n = fprintf(out, "  %s%s%s%s", prefix, e->name, e->value ? between : "", e->value ? e->value : "");

        if (n >= HELP_COLUMN) {
            fputc('\n', out);
            n = 0;
        }
        fprintf(out, "%*s%s", HELP_COLUMN - n, "", e->help);
        help_notes(e, out);
        fputc('\n', out);
    }
}
