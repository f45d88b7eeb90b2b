/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pattern/override.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "pattern/keys.h"

#define NOTE 600
#define VALUE_IN_NAME 24 /* characters of a value that a name still holds */

/* Keys that say which I/Os there are: a name such as "4k random read" speaks of them. */
static const char *const shape_keys[] = {"rw",         "bs",         "bssplit",           "rwmixread",
                                         "rwmixwrite", "blockalign", "percentage_random", "row",
                                         "position",   NULL};
/* Keys that say how long, how large, how often: a pattern without a shape of its own is not made by them alone. */
static const char *const frame_keys[] = {"size",    "offset",       "runtime",   "ramp_time", "time_based", "io_size",
                                         "loops",   "cpus_allowed", "readahead", "sync",      "fsync",      "end_fsync",
                                         "randseed", "rounds",      "prepare",   "cache",     "server_cache", "evict",
                                         "norandommap", "stonewall", "description", NULL};

static bool is_in(const char *const *list, const char *name) {
    for (; *list; list++)
        if (strcmp(*list, name) == 0) return true;
    return false;
}

bool set_keys_are_a_pattern(const struct pattern_override *over, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const struct option_entry *e = option_find(pattern_options, over[i].key);
        if (e && !is_in(frame_keys, e->name)) return true;
    }
    return false;
}

/* ---- names ---- */

static void add(char *buf, size_t len, const char *text) {
    size_t n = strlen(buf);
    snprintf(buf + n, len - n, "%s%s", n ? " " : "", text);
}

/* The sizes that occur, the first four of them: "4k", "4k/8k/64k". */
static void add_sizes(const struct pattern *p, char *buf, size_t len) {
    char list[120] = "", size[32];
    unsigned n = 0;
    for (unsigned i = 0; i < p->n_rows; i++) {
        bool seen = false;
        for (unsigned k = 0; k < i; k++) seen |= p->row[k].size == p->row[i].size;
        if (seen || ++n > 4) continue;
        size_t at = strlen(list);
        snprintf(list + at, sizeof(list) - at, "%s%s", at ? "/" : "", units_size(size, sizeof(size), p->row[i].size));
    }
    if (n > 4) snprintf(list, sizeof(list), "%u sizes", n);
    add(buf, len, list);
}

const char *override_describe(const struct pattern *p, char *buf, size_t len) {
    uint64_t read = 0, random = 0;
    char part[64];
    for (unsigned i = 0; i < p->n_rows; i++) {
        read += (uint64_t)p->row[i].share * p->row[i].read;
        random += (uint64_t)p->row[i].share * p->row[i].random;
    }
    read /= PATTERN_SHARES;
    random /= PATTERN_SHARES;
    bool reads = pattern_reads(p), writes = pattern_writes(p);
    snprintf(buf, len, "%s%s", random ? "rand" : "", reads && writes ? "rw" : reads ? "read" : "write");
    add_sizes(p, buf, len);
    if (reads && writes) {
        snprintf(part, sizeof(part), "%u%% read", (unsigned)read);
        add(buf, len, part);
    }
    if (random && random < 100) {
        snprintf(part, sizeof(part), "%u%% random", (unsigned)random);
        add(buf, len, part);
    }
    if (p->rate_iops) {
        snprintf(part, sizeof(part), "%llu IOPS", (unsigned long long)p->rate_iops);
        add(buf, len, part);
    }
    snprintf(part, sizeof(part), "d%llu", (unsigned long long)p->iodepth);
    add(buf, len, part);
    if (p->numjobs > 1) {
        snprintf(part, sizeof(part), "x%llu", (unsigned long long)p->numjobs);
        add(buf, len, part);
    }
    return buf;
}

static bool same_load(const struct pattern *a, const struct pattern *b) {
    bool both = pattern_reads(b) && pattern_writes(b); /* only these have two positions to keep apart */
    return a->n_rows == b->n_rows && (!both || a->position == b->position) &&
           memcmp(a->row, b->row, a->n_rows * sizeof(a->row[0])) == 0;
}

/* "bs=1m rw=write": what was given and says something else than the file. */
static void list_changes(const struct overrides *o, const struct pattern *p, char *buf, size_t len) {
    char value[PATTERN_SHOWN], part[80];
    bool both = pattern_reads(p) && pattern_writes(p);
    buf[0] = '\0';
    for (const struct option_entry *e = pattern_options; e->name; e++) {
        uint64_t bit = 1ull << (e - pattern_options);
        if (!is_in(shape_keys, e->name) || !(o->given & p->given & bit)) continue;
        if (!both && (strcmp(e->name, "position") == 0 || strncmp(e->name, "rwmix", 5) == 0)) continue;
        if (strcmp(e->name, "rwmixwrite") == 0) {
            snprintf(part, sizeof(part), "rwmixread=%llu", (unsigned long long)p->rwmixread);
        } else {
            bool fits = option_show(e, p, value, sizeof(value)) && strlen(value) <= VALUE_IN_NAME;
            snprintf(part, sizeof(part), "%s%s%.*s", e->name, fits ? "=" : "", fits ? VALUE_IN_NAME : 0, value);
        }
        add(buf, len, part);
    }
}

/* A row that is called after what it no longer is would lie. A name that the user gave is his own word. */
static int name_changes(const struct overrides *o, const struct pattern *file, struct pattern *p, struct err *err) {
    char changes[300], *name = NULL;
    if (same_load(file, p)) return 0;
    list_changes(o, p, changes, sizeof(changes));
    p->changed = strdup(changes);
    p->section = strdup(file->name);
    if (!p->changed || !p->section) return err_set(err, STATUS_USAGE, "out of memory");
    if (strcmp(file->name, p->name) != 0) return 0;
    if (asprintf(&name, "%s [%s]", file->name, changes) < 0) return err_set(err, STATUS_USAGE, "out of memory");
    free(p->name);
    p->name = name;
    return 0;
}

/* ---- applying ---- */

static int apply_keys(struct overrides *o, struct pattern_set *set, struct pattern *p, struct err *err) {
    char note[NOTE];
    pattern_next_source(p);
    for (size_t i = 0; i < o->n; i++) {
        const struct option_entry *e = option_find(pattern_options, o->key[i].key);
        uint64_t bit = e ? 1ull << (e - pattern_options) : 0;
        if (pattern_set(p, o->key[i].key, o->key[i].value, note, sizeof(note), err) != 0)
            return err_set(err, err->status, "--%s", err->msg); /* which begins with the key */
        if (*note) set_note(set, "--%s: %s", o->key[i].key, note);
        o->given |= bit;
    }
    return 0;
}

/* Alone, the pattern is well: then the keys of the command line are to blame. */
static int finish(struct pattern *p, bool well_alone, struct err *err) {
    if (pattern_finish(p, err) == 0) return 0;
    if (!p->origin) return -1; /* it has no other source */
    return err_prefix(err, "%s", well_alone ? "the command line" : p->origin);
}

int override_apply(struct overrides *o, struct pattern_set *set, struct pattern *p, struct err *err) {
    struct pattern *file = calloc(1, sizeof(*file));
    struct err ignored;
    char note[NOTE];
    int rc = -1;
    if (!file || pattern_copy(file, p, err) != 0) {
        free(file);
        return err_set(err, STATUS_USAGE, "out of memory");
    }
    bool well_alone = pattern_finish(file, &ignored) == 0;
    if (apply_keys(o, set, p, err) == 0 && finish(p, well_alone && o->n > 0, err) == 0)
        rc = p->origin ? name_changes(o, file, p, err) : 0;
    for (unsigned i = 0; rc == 0 && pattern_options[i].name; i++) {
        if (!(o->given >> i & 1)) continue;
        pattern_remarks(p, 1ull << i, note, sizeof(note));
        if (!note[0]) o->effective |= 1ull << i;
    }
    pattern_free(file);
    free(file);
    return rc;
}

void override_remarks(const struct overrides *o, struct pattern_set *set, const struct pattern *p) {
    char note[NOTE];
    for (unsigned i = 0; pattern_options[i].name; i++) {
        if (!((o->given & ~o->effective) >> i & 1)) continue;
        pattern_remarks(p, 1ull << i, note, sizeof(note));
        if (note[0]) set_note(set, "--%s", note); /* which begins with the key */
    }
}

/* ---- keys alone ---- */

int set_from_keys(struct pattern_set *set, const struct pattern_override *over, size_t n_over, struct err *err) {
    struct overrides o = {.key = over, .n = n_over};
    struct pattern *p = calloc(1, sizeof(*p));
    char name[200];
    int rc = p ? pattern_init(p, "command line", err) : err_set(err, STATUS_USAGE, "out of memory");
    if (rc == 0) rc = override_apply(&o, set, p, err);
    if (rc == 0 && !keys_given(p, "name")) {
        free(p->name);
        p->name = strdup(override_describe(p, name, sizeof(name)));
    }
    if (rc == 0) override_remarks(&o, set, p);
    if (rc == 0) rc = p->name ? set_add(set, p, err) : err_set(err, STATUS_USAGE, "out of memory");
    if (p) pattern_free(p);
    free(p);
    return rc;
}
