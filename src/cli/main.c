/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/text.h"
#include "base/url.h"
#include "cli/command.h"
#include "cli/descriptors.h"
#include "cli/leftovers.h"
#include "cli/secrets.h"
#include "cli/show.h"

/* Announced, and not there yet: whoever has read of them is not to seek the mistake with himself. */
static bool is_planned(const char *word) {
    static const char *const names[] = {"import", "compare", "report", "audit", "accept", "diagnose"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(word, names[i])) return true;
    return false;
}

static enum status unknown_command(const char *word) {
    char shown[200], list[200] = "";
    const char *names[16];
    struct err err;
    size_t n = 0;
    for (const struct command *c = command_table; c->name; c++) names[n++] = c->name;
    names[n] = NULL;
    for (size_t i = 0; i < n; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i ? ", " : "", names[i]);
    const char *near = text_nearest(word, names);
    show_word(shown, sizeof shown, word);
    if (is_planned(word))
        err_set(&err, STATUS_USAGE, "%s: this version has no such command yet (there are: %s; run --json FILE keeps the whole "
                "result)", shown, list);
    else if (near)
        err_set(&err, STATUS_USAGE, "%s: no such command; did you mean %s?", shown, near);
    else
        err_set(&err, STATUS_USAGE, "%s: no such command; there are: %s (to measure: samedisk run %s; samedisk --help)", shown,
                list, shown);
    return complain(&err);
}

static enum status help(int argc, char **argv) {
    if (argc == 0 || !strcmp(argv[0], "--help") || !strcmp(argv[0], "help")) {
        help_overview(stdout);
        return STATUS_OK;
    }
    const struct command *command = command_find(argv[0]);
    if (!command) return unknown_command(argv[0]);
    help_command(command, stdout);
    return STATUS_OK;
}

/* Where nobody would see the result, nothing is measured; a result file is enough. */
static int check_output(const struct args *args, struct err *err) {
    if (!descriptors_no_output()) return 0;
    if (!args->options.json || args->options.dry_run)
        return err_set(err, STATUS_USAGE, "standard output is closed: nothing that is printed would be seen%s",
                       args->options.json ? "" : " (run --json FILE keeps the result without it)");
    fprintf(stderr, "samedisk: standard output is closed: the result is in %s only\n", args->options.json);
    return 0;
}

static enum status run_command(const struct command *command, int argc, char **argv) {
    struct args args;
    struct err err;
    enum status status = STATUS_OK;
    if (args_parse(command, argc, argv, &args, &err))
        status = complain(&err);
    else if (args.options.help)
        help_command(command, stdout);
    else if (args.options.version)
        help_version(stdout);
    else if (check_output(&args, &err))
        status = complain(&err);
    else {
        leftovers_restore();
        status = command->run(&args);
    }
    args_free(&args);
    return status;
}

static enum status run_line(int argc, char **argv) {
    if (argc < 2) {
        help_overview(stderr);
        return STATUS_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
        help_overview(stdout);
    else if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V"))
        help_version(stdout);
    else if (!strcmp(argv[1], "help"))
        return help(argc - 2, argv + 2);
    else if (command_find(argv[1]))
        return run_command(command_find(argv[1]), argc - 2, argv + 2);
    else
        return unknown_command(argv[1]);
    return STATUS_OK;
}

int main(int argc, char **argv) {
    struct err err;
    if (descriptors_fill(&err)) return complain(&err); /* before anything is opened */
    char **words = secrets_take(argc, argv);
    if (!words) return STATUS_USAGE;
    setlocale(LC_CTYPE, "");  /* for widths on the terminal; numbers keep their '.' */
    limits_prepare();
    signal(SIGXFSZ, SIG_IGN); /* a limit on file sizes is an error of a write too */
    signal(SIGPIPE, SIG_IGN); /* a server that hangs up is an error of an I/O, not our end */
    enum status status = run_line(argc, words);
    errno = 0;
    /* A reader that has seen enough (| head) is no error. */
    if ((fflush(stdout) || ferror(stdout)) && errno != EPIPE) {
        err_set(&err, STATUS_USAGE, "standard output: %s", errno ? strerror(errno) : "write error");
        status = status_worse(status, complain(&err));
    }
    secrets_free(argc, words);
    return status;
}
