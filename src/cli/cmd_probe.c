/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/describe.h"
#include "cli/show.h"
#include "cli/targets.h"

static int make_targets(struct args *args, struct clock *clock, struct words *words, struct targets *targets,
                        struct err *err) {
    char shown[100];
    if (words_sort(args->words, args->n_words, words, err)) return -1;
    if (words->n_patterns)
        return err_set(err, STATUS_USAGE, "%s: probe takes targets only",
                       show_word(shown, sizeof shown, words->pattern[0]));
    if (!words->n_targets) return err_set(err, STATUS_USAGE, "no target to probe (samedisk probe --help)");
    return targets_make(words, &args->options.set, clock, targets, err);
}

static enum status print_json(const struct targets *targets) {
    json_t *list = json_array();
    for (unsigned i = 0; i < targets->n; i++) json_array_append_new(list, describe_probed(targets->target[i]));
    json_t *j = json_pack("{s:s, s:s, s:o, s:o}", "schema", "samedisk-probe/1", "version", PACKAGE_VERSION,
                          "environment", describe_environment(), "targets", list);
    if (!j || json_dumpf(j, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(15))) {
        struct err err;
        json_decref(j);
        err_set(&err, STATUS_USAGE, "no memory for the result");
        return complain(&err);
    }
    putchar('\n');
    json_decref(j);
    return STATUS_OK;
}

static void print_text(const struct targets *targets) {
    for (unsigned i = 0; i < targets->n; i++) {
        json_t *j = describe_probed(targets->target[i]);
        if (i) putchar('\n');
        describe_print(j, stdout);
        json_decref(j);
    }
}

enum status cmd_probe(struct args *args) {
    struct clock clock;
    struct words words = {0};
    struct targets targets = {0};
    struct err err;
    enum status status = STATUS_OK;
    clock_real_init(&clock);
    if (make_targets(args, &clock, &words, &targets, &err)) {
        status = complain(&err);
        goto out;
    }
    if (targets.password_in_url) fprintf(stderr, "samedisk: %s\n", TARGETS_PASSWORD_WARNING);
    if (targets_open(&targets)) status = STATUS_TARGET;
    if (args->options.format == FORMAT_JSON)
        status = status_worse(status, print_json(&targets));
    else
        print_text(&targets);
    bool seen = args->options.format != FORMAT_JSON && isatty(STDOUT_FILENO) && isatty(STDERR_FILENO);
    for (unsigned i = 0; i < targets.n; i++) {
        if (!targets.target[i]->lost || seen) continue; /* on one terminal the reason stands there already */
        err_set(&err, STATUS_TARGET, "%s: %s", targets.target[i]->label, targets.target[i]->lost_reason);
        complain(&err);
    }
out:
    targets_free(&targets);
    words_free(&words);
    return status;
}
