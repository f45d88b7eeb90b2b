/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the user typed behind --destroy, held against what was found. */
#ifndef SAFETY_CONSENT_H
#define SAFETY_CONSENT_H

#include <stdbool.h>
#include <stddef.h>

#include "safety/content.h"
#include "safety/safety.h"

/* One member, with all that words can be about. */
struct consent_party {
    const char *label;
    const struct facts *facts;
    const struct content *content; /* NULL: nothing is there, or it was not looked at */
    bool looked;                   /* false: refused for another reason before its content was read */
    char *complaint;               /* consent_check_words writes here what is wrong with the words for this label */
    size_t complaint_len;
};

/* The words that cannot be meant: a label that no target has (-1, `err` says so), a name that nothing found bears, an
 * identity of another object (complaint of the label's first party). Returns the number of complaints. */
int consent_check_words(const struct safety_destroy *destroy, size_t n, struct consent_party *parties, size_t n_parties,
                        struct err *err);
/* Do the words for party `i`, or for another label of the same object, cover what lies there? `by`: "--destroy
 * fc=ext4". If not, `missing` is what they lack, "" if there was no word at all. */
bool consent_covers(const struct safety_destroy *destroy, size_t n, const struct consent_party *parties,
                    size_t n_parties, size_t i, char *by, size_t by_len, char *missing, size_t missing_len);
/* What to type, with the object's identity if it has a lasting one: "--destroy fc=naa.6006 --destroy fc=ext4"; quoted
 * for a shell where need be. */
void consent_offer(const struct consent_party *p, bool with_identity, char *buf, size_t len);

#endif
