/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The words of a command line, taken apart: options of the program, pattern keys, and the rest. */
#ifndef CLI_ARGS_H
#define CLI_ARGS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "cli/options.h"
#include "pattern/set.h"

struct command;

struct args {
    struct options options;
    struct pattern_override *keys; /* the array is owned, its strings are argv's */
    size_t n_keys;
    char **words;                  /* likewise */
    size_t n_words;
    char **notes;                  /* what the user should know of his words; owned */
    size_t n_notes;
};

/* Takes apart argv[0 .. argc-1] behind the command. Errors (USAGE) say which option, and what was probably meant. */
int args_parse(const struct command *command, int argc, char **argv, struct args *args, struct err *err);
void args_free(struct args *args);

#endif
