/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/options.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define HELP_COLUMN 30

static int parse_list(const char *value, void *field, void *conf, struct err *err) {
    struct options_list *list = field;
    (void)conf;
    char **item = realloc(list->item, (list->n + 1) * sizeof *item);
    if (item) list->item = item;
    char *copy = strdup(value);
    if (!item || !copy) {
        free(copy);
        return err_set(err, STATUS_USAGE, "out of memory");
    }
    list->item[list->n++] = copy;
    return 0;
}

#define FIELD(name) offsetof(struct options, name)

static const char *const format_names[] = {"table", "json", NULL};

/* The largest seed is the largest integer that every JSON reader keeps exactly. */
const struct option_entry options_table[] = {
    {.name = "pattern", .alias = "p", .type = OPTION_CUSTOM, .offset = FIELD(pattern_files), .value = "FILE",
     .help = "a pattern file, whatever its name looks like; may be repeated", .parse = parse_list},
    {.name = "only", .type = OPTION_TEXT, .offset = FIELD(only), .value = "GLOB",
     .help = "of the patterns, only those with a matching name"},
    {.name = "set", .type = OPTION_CUSTOM, .offset = FIELD(set), .value = "[LABEL.]KEY=VALUE",
     .help = "an access key of one target, or of all; may be repeated", .parse = parse_list},
    {.name = "seed", .type = OPTION_UINT, .offset = FIELD(seed), .max = (1ull << 53) - 1, .value = "N",
     .help = "repeats the load of the run with this seed (default random, and printed)"},
    {.name = "reference", .type = OPTION_TEXT, .offset = FIELD(reference), .value = "LABEL",
     .help = "the target that the others are set against (default the first)"},
    {.name = "json", .type = OPTION_TEXT, .offset = FIELD(json), .value = "FILE",
     .help = "write the whole result there, after every run anew"},
    {.name = "force_output", .type = OPTION_BOOL, .offset = FIELD(force_output),
     .help = "let --json replace a file that is no samedisk result"},
    {.name = "format", .type = OPTION_ENUM, .offset = FIELD(format), .def = "table", .names = format_names,
     .value = "table|json", .help = "of what is printed"},
    {.name = "destroy", .type = OPTION_CUSTOM, .offset = FIELD(destroy), .value = "LABEL[=WHAT]",
     .help = "agree that this target is overwritten; may be repeated", .parse = parse_list},
    {.name = "read_only", .type = OPTION_BOOL, .offset = FIELD(read_only), .help = "leave out the patterns that write"},
    {.name = "keep_going", .type = OPTION_BOOL, .offset = FIELD(keep_going),
     .help = "go on without the targets that cannot be opened"},
    {.name = "cleanup", .type = OPTION_BOOL, .offset = FIELD(cleanup),
     .help = "remove the files that this run created"},
    {.name = "keep_partial", .type = OPTION_BOOL, .offset = FIELD(keep_partial),
     .help = "leave a new file that could not be filled to the end where it is"},
    {.name = "dry_run", .type = OPTION_BOOL, .offset = FIELD(dry_run),
     .help = "open the targets and show the plan; write nothing"},
    {.name = "note", .type = OPTION_CUSTOM, .offset = FIELD(note), .value = "KEY=VALUE",
     .help = "a fact of the site (array, disks, switch) for the result; may be repeated", .parse = parse_list},
    {.name = "time", .type = OPTION_TIME, .offset = FIELD(time), .min = NS_PER_SEC, .value = "TIME",
     .help = "as many rounds as fit into this time; refused if not one does"},
    {.name = "allow_full", .type = OPTION_BOOL, .offset = FIELD(allow_full),
     .help = "create files even if less than 10 % or 10 GiB stays free"},
    {.name = "quiet", .alias = "q", .type = OPTION_BOOL, .offset = FIELD(quiet), .help = "no progress, no notes"},
    {.name = "verbose", .alias = "v", .type = OPTION_BOOL, .offset = FIELD(verbose),
     .help = "all that is to be said of each row; with --dry-run every key of the patterns"},
    {.name = "help", .alias = "h", .type = OPTION_BOOL, .offset = FIELD(help), .help = "this text"},
    {.name = "version", .alias = "V", .type = OPTION_BOOL, .offset = FIELD(version),
     .help = "the version, and those of the libraries"},
    {.name = NULL}
};

bool options_has(const char *const *names, const struct option_entry *e) {
    if (!names) return true;
    for (; *names; names++)
        if (!strcmp(*names, e->name)) return true;
    return false;
}

void options_help(const char *const *names, FILE *out) {
    for (const struct option_entry *e = options_table; e->name; e++) {
        char name[64];
        if (!options_has(names, e)) continue;
        snprintf(name, sizeof name, "%s", e->name);
        for (char *c = name; *c; c++)
            if (*c == '_') *c = '-';
        int n = e->alias ? fprintf(out, "  -%s, --%s", e->alias, name) : fprintf(out, "  --%s", name);
        if (e->value) n += fprintf(out, " %s", e->value);
        if (n >= HELP_COLUMN) {
            fputc('\n', out);
            n = 0;
        }
        fprintf(out, "%*s%s\n", HELP_COLUMN - n, "", e->help);
    }
}

int options_init(struct options *o, struct err *err) {
    memset(o, 0, sizeof *o);
    if (option_defaults(options_table, o, err)) return -1;
    o->seed = SEED_RANDOM;
    return 0;
}

static void list_free(struct options_list *list) {
    /* --set may carry a password. */
    for (size_t i = 0; i < list->n; i++) {
        explicit_bzero(list->item[i], strlen(list->item[i]));
        free(list->item[i]);
    }
    free(list->item);
}

void options_free(struct options *o) {
    option_free(options_table, o);
    list_free(&o->pattern_files);
    list_free(&o->set);
    list_free(&o->destroy);
    list_free(&o->note);
    memset(o, 0, sizeof *o);
}
