/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "result/document.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/units.h"
#include "result/digest.h"
#include "result/json.h"
#include "result/summary.h"

#define SCHEMA "samedisk-result/1"

struct document {
    json_t *root;
    bool finished, no_memory;
};

static void put(struct document *d, json_t *object, const char *key, json_t *value) {
    if (json_of_put(object, key, value)) d->no_memory = true;
}

static void append(struct document *d, const char *key, json_t *value) {
    if (!value || json_array_append_new(json_object_get(d->root, key), value)) d->no_memory = true;
}

static json_t *now_rfc3339(void) {
    char text[32];
    time_t now = time(NULL);
    struct tm tm;
    gmtime_r(&now, &tm);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
    return json_string(text);
}

struct document *document_new(const char *version) {
    struct document *d = calloc(1, sizeof *d);
    if (!d) return NULL;
    d->root = json_pack("{s:s, s:s, s:s, s:o, s:n, s:{s:n, s:i, s:i, s:n, s:b, s:[]}, s:{}, s:{}, s:[], s:[], s:[]}",
                        "schema", SCHEMA, "version", version, "status", "interrupted", "started", now_rfc3339(),
                        "finished", "plan", "hash", "rounds", 0, "seed", 0, "reference", "warm_instead_of_asis", 0,
                        "patterns", "notes", "environment", "targets", "runs", "summary");
    if (d->root) return d;
    free(d);
    return NULL;
}

void document_free(struct document *d) {
    if (!d) return;
    json_decref(d->root);
    free(d);
}

void document_plan(struct document *d, uint64_t seed, unsigned rounds, const char *reference,
                   bool warm_instead_of_asis) {
    json_t *plan = json_object_get(d->root, "plan");
    put(d, plan, "rounds", json_of_uint(rounds));
    put(d, plan, "seed", json_of_uint(seed));
    put(d, plan, "reference", json_of_text(reference));
    put(d, plan, "warm_instead_of_asis", json_boolean(warm_instead_of_asis));
}

/* Does the placeholder of help ("SIZE", "SIZE[,SIZE]", "N|balanced") begin with this word? */
static bool asks_for(const struct option_entry *e, const char *word) {
    size_t n = strlen(word);
    return e->value && !strncmp(e->value, word, n) && strchr("|[,", e->value[n]);
}

/* A key with a parser of its own still has one kind of value, which its placeholder names. What is no plain number (a
 * list of sizes, "balanced") stays text. */
static json_t *key_value(const struct option_entry *e, const void *conf, const char *shown) {
    const void *field = (const char *)conf + e->offset;
    struct err ignored;
    uint64_t n;
    switch (e->type) {
    case OPTION_UINT:
    case OPTION_SIZE:
    case OPTION_TIME: return json_of_uint(*(const uint64_t *)field);
    case OPTION_BOOL: return json_boolean(*(const bool *)field);
    case OPTION_CUSTOM:
        if (asks_for(e, "SIZE") && !units_parse_size(shown, &n, &ignored)) return json_of_uint(n);
        if (asks_for(e, "TIME") && !units_parse_time(shown, &n, &ignored)) return json_of_uint(n);
        if ((asks_for(e, "N") || asks_for(e, "PERCENT")) && !units_parse_uint(shown, &n, &ignored))
            return json_of_uint(n);
        break;
    default: break;
    }
    return json_of_text(shown);
}

/* The load alone: names, descriptions and the number of rounds may change without changing what one run does, and the
 * seed is new for every invocation. What is left is dumped in one canonical form. */
static void hash_plan(struct document *d, json_t *plan) {
    static const char *const not_load[] = {"name", "description", "rounds", "section", "changed"};
    json_t *patterns = json_deep_copy(json_object_get(plan, "patterns")), *p;
    size_t i;
    json_array_foreach(patterns, i, p) {
        for (size_t k = 0; k < sizeof not_load / sizeof *not_load; k++) json_object_del(p, not_load[k]);
    }
    char *text = json_dumps(patterns, JSON_COMPACT | JSON_SORT_KEYS), hex[DIGEST_LEN] = "";
    if (text) digest_hex(text, strlen(text), hex);
    put(d, plan, "hash", text ? json_string(hex) : NULL);
    free(text);
    json_decref(patterns);
}

void document_pattern(struct document *d, const char *name, const struct option_entry *table, const void *conf) {
    enum { SHOWN_MAX = 16384 }; /* a full access specification of 64 rows */
    json_t *plan = json_object_get(d->root, "plan"), *keys = json_object();
    char *shown = malloc(SHOWN_MAX);
    if (!shown || !keys) d->no_memory = true;
    put(d, keys, "name", json_of_text(name));
    for (const struct option_entry *e = table; shown && e->name; e++)
        if (strcmp(e->name, "name") != 0 && option_show(e, conf, shown, SHOWN_MAX))
            put(d, keys, e->name, key_value(e, conf, shown));
    free(shown);
    if (!keys || json_array_append_new(json_object_get(plan, "patterns"), keys)) d->no_memory = true;
    hash_plan(d, plan);
}

void document_pattern_changed(struct document *d, const char *section, const char *keys) {
    json_t *patterns = json_object_get(json_object_get(d->root, "plan"), "patterns");
    json_t *last = json_array_get(patterns, json_array_size(patterns) - 1);
    put(d, last, "section", json_of_text(section));
    put(d, last, "changed", json_of_text(keys));
}

void document_pattern_kept(struct document *d, uint64_t bytes) {
    json_t *plan = json_object_get(d->root, "plan"), *patterns = json_object_get(plan, "patterns");
    put(d, json_array_get(patterns, json_array_size(patterns) - 1), "kept", json_of_uint(bytes));
    hash_plan(d, plan);
}

void document_note(struct document *d, const char *key, const char *value) {
    put(d, json_object_get(d->root, "notes"), key, json_of_text(value));
}

void document_environment(struct document *d, json_t *environment) {
    put(d, d->root, "environment", environment);
}

void document_target(struct document *d, json_t *target) {
    append(d, "targets", target);
}

void document_sameness(struct document *d, json_t *pairs) {
    put(d, d->root, "sameness", pairs);
}

void document_remarks(struct document *d, json_t *remarks) {
    put(d, d->root, "remarks", remarks);
}

void document_run(struct document *d, const struct record *r) {
    append(d, "runs", json_of_record(r));
}

static enum status status_of(const char *name) {
    if (!strcmp(name, "interrupted")) return STATUS_INTERRUPTED;
    if (!strcmp(name, "lost")) return STATUS_TARGET;
    if (!strcmp(name, "errors")) return STATUS_IO;
    return STATUS_OK;
}

static const char *status_name(enum status s) {
    switch (s) {
    case STATUS_INTERRUPTED: return "interrupted";
    case STATUS_TARGET: return "lost";
    case STATUS_OK: return "ok";
    default: return "errors";
    }
}

static enum status worst(const struct document *d) {
    enum status status = STATUS_OK;
    json_t *item;
    size_t i;
    json_array_foreach(json_object_get(d->root, "runs"), i, item) {
        const char *name = json_string_value(json_object_get(item, "status"));
        if (name) status = status_worse(status, status_of(name));
    }
    json_array_foreach(json_object_get(d->root, "targets"), i, item) {
        if (json_is_string(json_object_get(item, "lost"))) status = status_worse(status, STATUS_TARGET);
    }
    return status;
}

void document_finish(struct document *d, bool interrupted) {
    enum status status = interrupted ? STATUS_INTERRUPTED : worst(d);
    put(d, d->root, "status", json_string(status_name(status)));
    put(d, d->root, "finished", now_rfc3339());
    put(d, d->root, "summary", summary_make(d->root));
    d->finished = true;
}

enum status document_status(const struct document *d) {
    return status_of(json_string_value(json_object_get(d->root, "status")));
}

const json_t *document_json(const struct document *d) {
    return d->root;
}

static int write_value(FILE *out, json_t *value) {
    /* 15 digits: the most that every decimal keeps through a double, and 0.1 stays 0.1. */
    return json_dumpf(value, out, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
}

static int write_lines(FILE *out, json_t *array) {
    int rc = 0;
    json_t *item;
    size_t i;
    fputc('[', out);
    json_array_foreach(array, i, item) {
        fputs(i ? ",\n" : "\n", out);
        rc |= write_value(out, item);
    }
    fputc(']', out);
    return rc;
}

static int write_document(FILE *out, json_t *root) {
    int rc = 0;
    const char *key, *separator = "{";
    json_t *value;
    json_object_foreach(root, key, value) {
        fprintf(out, "%s\"%s\":", separator, key); /* the top-level names are ours: nothing to escape */
        rc |= json_is_array(value) ? write_lines(out, value) : write_value(out, value);
        separator = ",\n";
    }
    fputs("}\n", out);
    return rc;
}

char *document_text(struct document *d, size_t *len) {
    char *text = NULL;
    if (d->no_memory) return NULL;
    if (!d->finished) put(d, d->root, "summary", summary_make(d->root));
    FILE *out = open_memstream(&text, len);
    if (!out) return NULL;
    int rc = write_document(out, d->root);
    if (fclose(out) || rc || d->no_memory) {
        free(text);
        return NULL;
    }
    return text;
}

/* However it is spaced: a result that went through a formatter is still one. */
bool document_begins(const char *head, size_t n) {
    static const char kind[] = "\"samedisk-result/";
    size_t i = 0;
    while (i < n && strchr(" \t\r\n", head[i])) i++;
    return i < n && head[i] == '{' && memmem(head, n, kind, sizeof kind - 1) != NULL;
}
