/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pattern files: finding them (a path, or the name of one that ships), reading them into patterns. */
#ifndef PATTERN_SET_H
#define PATTERN_SET_H

#include <stddef.h>

#include "pattern/pattern.h"

struct pattern_set {
    struct pattern *pattern;  /* owned, in file order */
    size_t n;
    char *notes;              /* lines that the user should see: a key replaced its family,
        KiB differs from fio; or NULL */
};

/* One key=value of the command line, applied after the section's own keys. */
struct pattern_override { const char *key, *value; };

/* Reads `text` (NUL bytes, lines over 8 KiB, no section: errors) as the file called `name` and adds its patterns to
 * `set`. Overrides are applied to each, then pattern_finish. `only`: a glob on names, or NULL; a file in which it
 * matches none is an error. Errors are "name:line: ...", or "--key: ..." where an override is to blame; nothing is
 * added then. Fuzzed. */
int set_read(struct pattern_set *set, const char *name, const char *text, size_t len,
             const struct pattern_override *over, size_t n_over, const char *only, struct err *err);
/* Loads a pattern file: a path if it holds a '/' or ends in .ini .icf .fio .job, else the name of one that ships,
 * sought in `dirs` (NULL-terminated). Unknown name: the nearest that ships is named. .icf, .fio and .job are refused
 * with a reason: they are other formats, also where a job file happens to have known keys only (fio runs sections in
 * parallel). */
int set_load(struct pattern_set *set, const char *word, const char *const *dirs, const struct pattern_override *over,
             size_t n_over, const char *only, struct err *err);
/* Names (without .ini) and descriptions ("" if none) of what ships, in alphabetical order, printed by the caller
 * through `emit` (a description is not yet fit to print). */
int set_list(const char *const *dirs,
             void (*emit)(void *arg, const char *name, const char *path, const char *description),
             void *arg, struct err *err);
/* Do these keys say which I/Os there are (rw, bs, iodepth, ...), and not only how large, how long and how often? Then,
 * without a pattern beside them, they are one of their own. */
bool set_keys_are_a_pattern(const struct pattern_override *over, size_t n_over);
/* Adds that pattern, named by what it is ("randread 4k d1") or by name=. */
int set_from_keys(struct pattern_set *set, const struct pattern_override *over, size_t n_over, struct err *err);
void set_free(struct pattern_set *set);

#endif
