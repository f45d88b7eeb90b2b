/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the user typed behind --destroy, held against what was found. */
#ifndef SAFETY_CONSENT_H
#define SAFETY_CONSENT_H

#include <stdbool.h>
#include <stddef.h>

#include "safety/content.h"
#include "safety/safety.h"
#include "target/sameness.h"

/* One member, with all that words can be about. */
struct consent_party {
    const char *label;
    const struct facts *facts;
    const struct content *content; /* NULL: nothing is there, or it was not looked at */
    bool looked;                   /* false: refused for another reason before its content was read */
    const struct sameness *same;   /* of the parties, by their places in the array; NULL: all are different objects */
    char *complaint;               /* consent_check_words writes here what is wrong with the words for this label */
    size_t complaint_len;
};

/* "I know that the run which says it writes here is over": of a record that nobody on this host can check. */
#define CONSENT_STALE_OWNER "stale-owner"
#define CONSENT_STALE_ADVICE "\nif that run is known to be over, type: --destroy %s=" CONSENT_STALE_OWNER /* the label */
bool consent_has_word(const struct safety_destroy *destroy, size_t n, const char *label, const char *word);

/* The words that cannot be meant: a label that no target has (-1, `err` says so), a name that nothing found bears, an
 * identity of another object (complaint of the label's first party). Returns the number of complaints. */
int consent_check_words(const struct safety_destroy *destroy, size_t n, struct consent_party *parties, size_t n_parties,
                        struct err *err);
/* Do the words for party `i`, or for another label of the same object, cover what lies there? `by`: "--destroy
 * fc=ext4". If not, `missing` is what they lack, "" if there was no word at all. `borrowed`: the words for its own
 * label would not have done. */
bool consent_covers(const struct safety_destroy *destroy, size_t n, const struct consent_party *parties,
                    size_t n_parties, size_t i, bool *borrowed, char *by, size_t by_len, char *missing,
                    size_t missing_len);
/* What to type, with the object's identity if it has a lasting one: "--destroy fc=naa.6006 --destroy fc=ext4"; quoted
 * for a shell where need be. */
void consent_offer(const struct consent_party *p, bool with_identity, char *buf, size_t len);

#endif
