/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The commands. */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include <stdio.h>

#include "base/err.h"
#include "cli/args.h"

struct command {
    const char *name, *synopsis, *summary;
    const char *const *options; /* names in options_table; NULL: every one */
    bool pattern_keys;          /* are --iodepth and its like options of it? */
    /* Prints its result on stdout, its errors through complain(). */
    enum status (*run)(struct args *args);
};

extern const struct command command_table[]; /* ends with a NULL name */
const struct command *command_find(const char *name); /* NULL: unknown */

enum status cmd_run(struct args *args);
enum status cmd_probe(struct args *args);
enum status cmd_patterns(struct args *args);

/* help.c */
void help_overview(FILE *out);
void help_command(const struct command *command, FILE *out);
void help_version(FILE *out);

/* "samedisk: " and the message on stderr, each of its lines; returns err->status. */
enum status complain(const struct err *err);

#endif
