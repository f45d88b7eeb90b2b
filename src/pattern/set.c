/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pattern/set.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/savefile.h"
#include "base/text.h"
#include "pattern/ini.h"
#include "pattern/keys.h"
#include "pattern/override.h"

#define SET_FILE_MAX (1u << 20) /* bytes of a pattern file */
#define SET_NOTE     600

/* What one set_read keeps between the lines. */
struct set_reader {
    struct pattern_set *set;
    struct ini ini;
    struct overrides over;
    const char *only;
    struct pattern global;  /* what [global] says so far */
    struct pattern section; /* the open section; section.name NULL: none is open */
    bool in_global;
    unsigned section_line;
    uint64_t own;           /* keys that the open section set itself, bits as in pattern.given */
    char **names;           /* of all sections, owned */
    size_t n_names, n_kept; /* sections seen, patterns added */
};

/* ---- notes and positions ---- */

static bool set_has_note(const struct pattern_set *set, const char *line) {
    size_t n = strlen(line);
    for (const char *at = set->notes; at; at = strchr(at, '\n')) {
        at += *at == '\n';
        if (strncmp(at, line, n) == 0 && (at[n] == '\0' || at[n] == '\n')) return true;
    }
    return false;
}

int set_note(struct pattern_set *set, const char *fmt, ...) {
    char line[SET_NOTE + 400], safe[SET_NOTE + 400], *all;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    text_safe(safe, sizeof(safe), line, strlen(line));
    if (set_has_note(set, safe)) return 0;
    if (asprintf(&all, "%s%s%s", set->notes ? set->notes : "", set->notes ? "\n" : "", safe) < 0) return -1;
    free(set->notes);
    set->notes = all;
    return 0;
}

static int set_at(const struct set_reader *r, unsigned line, struct err *err) {
    return err_prefix(err, "%s:%u", r->ini.name, line);
}

static void set_note_at(struct set_reader *r, unsigned line, const char *note) {
    if (*note) set_note(r->set, "%s:%u: %s", r->ini.name, line, note);
}

/* ---- a section's end ---- */

static int set_check_unique(const struct set_reader *r, const struct pattern *p, struct err *err) {
    char safe[80];
    for (size_t i = 0; i < r->set->n; i++) {
        const struct pattern *other = &r->set->pattern[i];
        if (strcmp(other->name, p->name) != 0) continue;
        if (keys_given(&(struct pattern){.given = r->over.given}, "name"))
            return err_set(err, STATUS_USAGE, "--name names one pattern, and there are more: leave one with --only GLOB, or "
                           "drop --name");
        return err_set(err, STATUS_USAGE, "%s: there is already a pattern '%s' (%s); names must differ", p->origin,
                       text_safe(safe, sizeof(safe), p->name, strlen(p->name)), other->origin ? other->origin : "command line");
    }
    return 0;
}

int set_add(struct pattern_set *set, struct pattern *p, struct err *err) {
    struct pattern *more = realloc(set->pattern, (set->n + 1) * sizeof(*more));
    if (!more) return err_set(err, STATUS_USAGE, "out of memory");
    set->pattern = more;
    set->pattern[set->n++] = *p;
    memset(p, 0, sizeof(*p)); /* its strings have a new owner */
    return 0;
}

/* The section is complete: command line, cross-checks, into the set. */
static int set_close_section(struct set_reader *r, struct err *err) {
    struct pattern *p = &r->section;
    char note[SET_NOTE];
    if (!p->name) return 0;
    if (r->only && !text_glob(r->only, p->name)) {
        pattern_free(p);
        return 0;
    }
    if (override_apply(&r->over, r->set, p, err) != 0) return -1;
    if (set_check_unique(r, p, err) != 0) return -1;
    pattern_remarks(p, r->own & ~r->over.given, note, sizeof(note));
    set_note_at(r, r->section_line, note);
    r->n_kept++;
    return set_add(r->set, p, err);
}

/* ---- lines ---- */

static int set_remember_name(struct set_reader *r, const char *name, struct err *err) {
    char safe[80];
    for (size_t i = 0; i < r->n_names; i++)
        if (strcmp(r->names[i], name) == 0)
            return err_set(err, STATUS_USAGE, "a second section [%s]",
                           text_safe(safe, sizeof(safe), name, strlen(name)));
    char **more = realloc(r->names, (r->n_names + 1) * sizeof(*more));
    if (!more) return err_set(err, STATUS_USAGE, "out of memory");
    r->names = more;
    r->names[r->n_names] = strdup(name);
    if (!r->names[r->n_names]) return err_set(err, STATUS_USAGE, "out of memory");
    r->n_names++;
    return 0;
}

static int set_open_section(struct set_reader *r, const struct ini_item *item, struct err *err) {
    char *name;
    if (set_close_section(r, err) != 0) return -1;
    r->in_global = strcmp(item->key, "global") == 0;
    r->own = 0;
    if (r->in_global) return 0;
    if (strncmp(item->key, "global", 6) == 0)
        set_note_at(r, item->line,
                    "this section is a pattern; fio takes every name that begins with 'global' for "
                    "[global]");
    if (set_remember_name(r, item->key, err) != 0) return set_at(r, item->line, err);
    if (pattern_copy(&r->section, &r->global, err) != 0) return -1;
    pattern_next_source(&r->section);
    r->section_line = item->line;
    name = strdup(item->key);
    if (asprintf(&r->section.origin, "%s:%u", r->ini.name, item->line) < 0) r->section.origin = NULL;
    if (!name || !r->section.origin) {
        free(name);
        return err_set(err, STATUS_USAGE, "out of memory");
    }
    free(r->section.name);
    r->section.name = name;
    return 0;
}

/* What fio's reader would do with a line and ours does not. */
static int set_refuse_dialect(const struct ini_item *item, struct err *err) {
    if (strncmp(item->key, "include", 7) == 0 && (item->key[7] == ' ' || item->key[7] == '\t' || !item->key[7]))
        return err_set(err, STATUS_USAGE,
                       "include is not taken: a pattern file is complete, so that it says what "
                       "was run; copy the included lines here");
    if (strstr(item->key, "${") || (item->value && strstr(item->value, "${")))
        return err_set(err, STATUS_USAGE,
                       "${...} is not expanded: the result would depend on an environment that "
                       "nobody sees later; write the value, or give it on the command line as --KEY VALUE");
    return 0;
}

/* `name=` in [global] names no section. */
static int set_key(struct set_reader *r, const struct ini_item *item, struct err *err) {
    char note[SET_NOTE];
    struct pattern *p = r->in_global ? &r->global : &r->section;
    const struct option_entry *e = option_find(pattern_options, item->key);
    uint64_t bit = e ? 1ull << (e - pattern_options) : 0;
    if (!p->name)
        return err_set(err, STATUS_USAGE, "'%s' stands before the first [section]%s",
                       text_safe(note, sizeof(note), item->key, strlen(item->key)),
                       item->value ? "" : "; is this a pattern file?");
    if (set_refuse_dialect(item, err) != 0) return -1;
    if (r->in_global && e && strcmp(e->name, "name") == 0) {
        set_note_at(r, item->line, "name in [global] names nothing: patterns are called as their sections");
        return 0;
    }
    if (pattern_set(p, item->key, item->value, note, sizeof(note), err) != 0) return -1;
    set_note_at(r, item->line, note);
    if ((r->own & bit) && strcmp(e->name, "row") != 0) {
        snprintf(note, sizeof(note), "%s stands twice in this section; the last one counts", e->name);
        set_note_at(r, item->line, note);
    }
    r->own |= bit;
    return 0;
}

static int set_read_lines(struct set_reader *r, struct err *err) {
    struct ini_item item;
    int rc;
    while ((rc = ini_next(&r->ini, &item, err)) > 0) {
        if (item.section) {
            if (set_open_section(r, &item, err) != 0) return -1;
        } else if (set_key(r, &item, err) != 0) {
            return set_at(r, item.line, err);
        }
    }
    return rc == 0 ? set_close_section(r, err) : -1;
}

static int set_check_any(const struct set_reader *r, struct err *err) {
    char list[400] = "", safe[80];
    size_t at = 0;
    if (r->n_kept) return 0;
    if (r->n_names == 0)
        return err_set(err, STATUS_USAGE, "%s: no pattern in it: every [section] but [global] is one", r->ini.name);
    for (size_t i = 0; i < r->n_names && at < sizeof(list); i++)
        at += (size_t)snprintf(list + at, sizeof(list) - at, "%s'%s'", i ? ", " : "",
                               text_safe(safe, sizeof(safe), r->names[i], strlen(r->names[i])));
    return err_set(err, STATUS_USAGE, "%s: no pattern's name matches '%s'; there are %s", r->ini.name, r->only, list);
}

static void set_cut(struct pattern_set *set, size_t n) {
    while (set->n > n) pattern_free(&set->pattern[--set->n]);
}

int set_read(struct pattern_set *set, const char *name, const char *text, size_t len,
             const struct pattern_override *over, size_t n_over, const char *only, struct err *err) {
    struct set_reader *r = calloc(1, sizeof(*r)); /* some tens of KiB */
    size_t before = set->n;
    int rc = -1;
    if (!r) return err_set(err, STATUS_USAGE, "out of memory");
    r->set = set;
    r->over = (struct overrides){.key = over, .n = n_over};
    r->only = only;
    if (ini_open(&r->ini, name, text, len, err) == 0 && pattern_init(&r->global, "global", err) == 0 &&
        set_read_lines(r, err) == 0 && set_check_any(r, err) == 0)
        rc = 0;
    if (rc == 0) override_remarks(&r->over, set, &set->pattern[set->n - 1]);
    if (rc != 0) set_cut(set, before);
    pattern_free(&r->global);
    pattern_free(&r->section);
    for (size_t i = 0; i < r->n_names; i++) free(r->names[i]);
    free(r->names);
    free(r);
    return rc;
}

/* ---- finding files ---- */

static bool set_ends(const char *word, const char *ending) {
    size_t n = strlen(word), m = strlen(ending);
    return n > m && strcasecmp(word + n - m, ending) == 0;
}

struct set_names {
    char **name; /* owned; NULL-terminated once any is there; without ".ini" */
    size_t n;
};

static void set_names_free(struct set_names *names) {
    for (size_t i = 0; i < names->n; i++) free(names->name[i]);
    free(names->name);
}

static int set_names_add(struct set_names *names, const char *file) {
    char **more = realloc(names->name, (names->n + 2) * sizeof(*more));
    if (!more) return -1;
    names->name = more;
    names->name[names->n] = strndup(file, strlen(file) - strlen(".ini"));
    if (!names->name[names->n]) return -1;
    names->name[++names->n] = NULL;
    return 0;
}

static int set_by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* All names in all folders, in order, each once. A folder that is not there is no error: there may be another. */
static int set_find_names(const char *const *dirs, struct set_names *names) {
    size_t kept = 0;
    for (; *dirs; dirs++) {
        DIR *dir = opendir(*dirs);
        const struct dirent *entry;
        int rc = 0;
        while (dir && rc == 0 && (entry = readdir(dir)) != NULL)
            if (entry->d_name[0] != '.' && set_ends(entry->d_name, ".ini")) rc = set_names_add(names, entry->d_name);
        if (dir) closedir(dir);
        if (rc != 0) return -1;
    }
    if (names->n == 0) return 0;
    qsort(names->name, names->n, sizeof(names->name[0]), set_by_name);
    for (size_t i = 0; i < names->n; i++) {
        if (kept && strcmp(names->name[kept - 1], names->name[i]) == 0)
            free(names->name[i]);
        else
            names->name[kept++] = names->name[i];
    }
    names->n = kept;
    names->name[kept] = NULL;
    return 0;
}

/* The file of this name in the first folder that has it; owned, NULL: none. */
static char *set_find(const char *const *dirs, const char *name) {
    for (char *path; *dirs; dirs++) {
        if (asprintf(&path, "%s/%s.ini", *dirs, name) < 0) return NULL;
        if (access(path, F_OK) == 0) return path;
        free(path);
    }
    return NULL;
}

static int set_unknown(const char *const *dirs, const char *word, struct err *err) {
    struct set_names names = {0};
    char safe[80], list[400] = "";
    size_t at = 0;
    set_find_names(dirs, &names);
    const char *near = names.n ? text_nearest(word, (const char *const *)names.name) : NULL;
    for (size_t i = 0; i < names.n && at < sizeof(list); i++) {
        char name[80];
        at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%s", i ? ", " : "",
                               text_safe(name, sizeof(name), names.name[i], strlen(names.name[i])));
    }
    err_set(err, STATUS_USAGE,
            "'%s' is no pattern file%s%s%shose that ship are: %s (a file of your own needs a "
            "'/' or an ending .ini)",
            text_safe(safe, sizeof(safe), word, strlen(word)), near ? "; did you mean " : "", near ? near : "",
            near ? "? T" : "; t", names.n ? list : "none found");
    set_names_free(&names);
    return -1;
}

static int set_refuse_format(const char *word, struct err *err) {
    char safe[200];
    text_safe(safe, sizeof(safe), word, strlen(word));
    if (set_ends(word, ".icf"))
        return err_set(err, STATUS_USAGE,
                       "%s: an Iometer configuration is not a pattern file; each line of an access "
                       "specification becomes a row= (samedisk-patterns(5))",
                       safe);
    if (set_ends(word, ".fio") || set_ends(word, ".job"))
        return err_set(err, STATUS_USAGE,
                       "%s: a fio job file is not a pattern file: fio runs its sections at the "
                       "same time, and names what is measured; copy the keys of the load into a file that ends in .ini "
                       "(samedisk-patterns(5))",
                       safe);
    return 0;
}

int set_load(struct pattern_set *set, const char *word, const char *const *dirs, const struct pattern_override *over,
             size_t n_over, const char *only, struct err *err) {
    bool is_path = strchr(word, '/') || set_ends(word, ".ini") || set_ends(word, ".icf") || set_ends(word, ".fio") ||
                   set_ends(word, ".job");
    char *path = NULL, *text = NULL;
    size_t len;
    int rc = -1;
    if (set_refuse_format(word, err) != 0) return -1;
    path = is_path ? strdup(word) : set_find(dirs, word);
    if (!path) return is_path ? err_set(err, STATUS_USAGE, "out of memory") : set_unknown(dirs, word, err);
    const char *name = is_path ? word : strrchr(path, '/') + 1;
    if (savefile_read(path, SET_FILE_MAX, &text, &len, err) == 0)
        rc = set_read(set, name, text, len, over, n_over, only, err);
    free(text);
    free(path);
    return rc;
}

/* The first description= of a file; owned; NULL: none, or the file cannot be read. */
static char *set_description(const char *path) {
    char *text = NULL, *found = NULL;
    size_t len;
    struct err err;
    struct ini *ini = malloc(sizeof(*ini));
    struct ini_item item;
    if (ini && savefile_read(path, SET_FILE_MAX, &text, &len, &err) == 0 && ini_open(ini, path, text, len, &err) == 0)
        while (!found && ini_next(ini, &item, &err) > 0)
            if (!item.section && item.value && strcmp(item.key, "description") == 0) found = strdup(item.value);
    free(ini);
    free(text);
    return found;
}

int set_list(const char *const *dirs,
             void (*emit)(void *arg, const char *name, const char *path, const char *description), void *arg,
             struct err *err) {
    struct set_names names = {0};
    int rc = set_find_names(dirs, &names);
    if (rc != 0)
        err_set(err, STATUS_USAGE, "out of memory");
    else if (names.n == 0)
        rc = err_set(err, STATUS_USAGE, "no pattern files in %s", dirs[0] ? dirs[0] : "any folder");
    for (size_t i = 0; rc == 0 && i < names.n; i++) {
        char *path = set_find(dirs, names.name[i]), *description = path ? set_description(path) : NULL;
        if (path) emit(arg, names.name[i], path, description ? description : "");
        free(description);
        free(path);
    }
    set_names_free(&names);
    return rc;
}

void set_free(struct pattern_set *set) {
    set_cut(set, 0);
    free(set->pattern);
    free(set->notes);
    memset(set, 0, sizeof(*set));
}
