/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which word of the command line is what: a target with its label, or a pattern file. */
#ifndef CLI_WORDS_H
#define CLI_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct word_target {
    char label[64];      /* "" until words_label has given an automatic one */
    bool label_is_own;   /* the user wrote it */
    const char *url;     /* within the word */
};

struct words {
    struct word_target *target; /* owned */
    size_t n_targets;
    const char **pattern;       /* owned array */
    size_t n_patterns;
};

/* Errors (USAGE) for words that are neither, with what was probably meant. */
int words_sort(char *const *words, size_t n, struct words *out, struct err *err);
/* A word that was taken for the name of a pattern file, and is none: true with what was probably meant in `err`; false: nothing
 * is to be added. */
bool words_explain_pattern(const char *word, struct err *err);
/* Automatic labels: the backend's name, then with -2, -3 ...; never one that is in use. `name_of` tells the backend. */
int words_label(struct words *w, const char *(*name_of)(const char *url, struct err *err), struct err *err);
void words_free(struct words *w);

#endif
