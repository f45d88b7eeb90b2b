/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The options of the command line: one table, which parsing, --help and the manual's check all read. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "option/option.h"

struct options_list { char **item; size_t n; }; /* of an option that may stand several times; owned */

enum options_format { FORMAT_TABLE, FORMAT_JSON };

#define SEED_RANDOM UINT64_MAX

struct options {
    struct options_list pattern_files, set, destroy, note;
    char *only, *reference, *json; /* NULL: not given */
    uint64_t seed;                 /* or SEED_RANDOM */
    uint64_t time;                 /* ns; 0: not given */
    int format;
    bool read_only, keep_going, cleanup, keep_partial, dry_run, allow_full, force_output, quiet, verbose, help, version;
};

/* A name of one letter, or an alias of one, is an option with a single dash. */
extern const struct option_entry options_table[];

/* The subset of one command, NULL-terminated names, is `names`; NULL: every option. */
bool options_has(const char *const *names, const struct option_entry *e);
/* Aligned lines for --help; names are shown with '-'. */
void options_help(const char *const *names, FILE *out);
int options_init(struct options *o, struct err *err);
void options_free(struct options *o);

#endif
