/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The targets of the command line: configured from their URLs and --set, opened, closed. */
#ifndef CLI_TARGETS_H
#define CLI_TARGETS_H

#include <stdbool.h>

#include "cli/options.h"
#include "cli/words.h"
#include "target/target.h"

#define TARGETS_PASSWORD_WARNING                                                                                      \
    "warning: a password on the command line is seen by others for a moment, and stays in the shell's history; the "   \
    "key password_file or SAMEDISK_CHAP_PASSWORD keep it to yourself"

struct targets {
    struct target **target;  /* owned, in the order of the line */
    bool *label_is_own;
    unsigned n;
    bool password_in_url;    /* then the user is warned */
};

/* Configures all: URL, its keys, then --set; then each backend's own check. No connection is made. */
int targets_make(struct words *words, const struct options_list *set, struct clock *clock, struct targets *out,
                 struct err *err);
/* Opens all for reading. Those that cannot be opened are marked lost, with the reason; their number is returned. */
unsigned targets_open(struct targets *targets);
void targets_free(struct targets *targets);
struct target *targets_find(const struct targets *targets, const char *label); /* NULL: none */
/* "nfs, iscsi, fc": for messages. Returns buf. */
const char *targets_labels(const struct targets *targets, char *buf, size_t len);

#endif
