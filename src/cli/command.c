/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/command.h"

#include <string.h>

static const char *const probe_options[] = {"set", "format", "help", "version", NULL};
static const char *const patterns_options[] = {"help", "version", NULL};

const struct command command_table[] = {
    {.name = "run", .synopsis = "[PATTERN ...] TARGET [TARGET ...]", .pattern_keys = true, .run = cmd_run,
     .summary = "measure the patterns on all targets (default pattern: quick)"},
    {.name = "probe", .synopsis = "TARGET [TARGET ...]", .options = probe_options, .run = cmd_probe,
     .summary = "what a target is, and all that was negotiated; no load"},
    {.name = "patterns", .synopsis = "[NAME]", .options = patterns_options, .run = cmd_patterns,
     .summary = "list the pattern files that ship, or show one"},
    {.name = NULL}
};

const struct command *command_find(const char *name) {
    for (const struct command *c = command_table; c->name; c++)
        if (!strcmp(c->name, name)) return c;
    return NULL;
}

enum status complain(const struct err *err) {
    const char *line = err->msg;
    while (*line) {
        size_t n = strcspn(line, "\n");
        fprintf(stderr, "samedisk: %.*s\n", (int)n, line);
        line += n + (line[n] == '\n');
    }
    return err->status;
}
