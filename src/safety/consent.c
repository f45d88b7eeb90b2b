/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "safety/consent.h"

#include <blkid/blkid.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "base/url.h"
#include "target/identity.h"
#include "target/target.h"

#define UNKNOWN_DATA "unknown-data"
#define WORD_SIZE    256

/* ---- words ---- */

/* The next piece of a comma list; false at its end. */
static bool next_word(const char **at, char *word, size_t size) {
    if (!*at) return false;
    const char *comma = strchr(*at, ',');
    size_t n = comma ? (size_t)(comma - *at) : strlen(*at);

    snprintf(word, size, "%.*s", (int)(n < size ? n : size - 1), *at);
    *at = comma ? comma + 1 : NULL;
    return true;
}

/* Typed as it is, or as it was shown. */
static bool is_identity(const struct facts *facts, const char *word) {
    char safe[4 * IDENTITY_SIZE];

    for (unsigned i = 0; i < FACTS_IDENTITIES; i++) {
        const char *identity = facts->identity[i];
        if (identity_equal(identity, word)) return true;
        if (*identity && strcmp(text_safe(safe, sizeof(safe), identity, IDENTITY_SIZE), word) == 0) return true;
    }
    return false;
}

static bool names_signature(const struct content *c, const char *word) {
    for (unsigned i = 0; c && i < c->n; i++)
        if (content_is_named(&c->signature[i], word)) return true;
    return false;
}

static bool is_plain(const char *what) {
    return !what; /* an empty word is none: it says that a shell variable was empty */
}

/* The same object under two labels is consented to once. */
static bool same_object(const struct consent_party *parties, size_t a, size_t b) {
    return a == b || sameness_is_one(parties[a].same, (unsigned)a, (unsigned)b);
}

bool consent_has_word(const struct safety_destroy *destroy, size_t n, const char *label, const char *word) {
    char typed[WORD_SIZE];

    for (size_t d = 0; d < n; d++) {
        const char *at = destroy[d].what;
        if (strcmp(destroy[d].label, label) != 0) continue;
        while (next_word(&at, typed, sizeof(typed)))
            if (strcasecmp(typed, word) == 0) return true;
    }
    return false;
}

/* ---- words that cannot be meant ---- */

static const char *show(char *buf, size_t len, const char *text) {
    return text_safe(buf, len, text, strlen(text));
}

/* An identity that holds a comma stands alone. */
static bool is_whole_identity(const struct consent_party *parties, size_t n, const char *label, const char *what) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(parties[i].label, label) == 0 && is_identity(parties[i].facts, what)) return true;
    return false;
}

/* Is there anything under this label that the word is about? */
static bool word_fits(const struct consent_party *parties, size_t n, const char *label, const char *word) {
    for (size_t i = 0; i < n; i++) {
        if (strcmp(parties[i].label, label) != 0) continue;
        if (strcasecmp(word, CONSENT_STALE_OWNER) == 0) return true;
        if (strcasecmp(word, UNKNOWN_DATA) == 0 || is_identity(parties[i].facts, word)) return true;
        if (!parties[i].looked && parties[i].facts->exists) return true; /* nobody knows; it is refused in any case */
        if (names_signature(parties[i].content, word)) return true;
    }
    return false;
}

/* Every kind of identity has a '.' or ':' in it, no name of a signature has. */
static bool looks_like_identity(const char *word) {
    return strpbrk(word, ".:/") != NULL || strncasecmp(word, "serial", 6) == 0;
}

/* "/dev/sdc", "file:/mnt/x", "nfs://...": no identity. (One of a file is file:MAJOR:MINOR:INODE.) */
static bool names_a_place(const char *word) {
    return url_is_target(word) && strncmp(word, "null:", 5) != 0 &&
           (strncmp(word, "file:", 5) != 0 || strchr(word + 5, '/') != NULL);
}

/* The best name that the object has. A device number is none: after the next boot it may mean another disk. */
static const char *best_identity(const struct facts *f) {
    for (unsigned i = 0; i < FACTS_IDENTITIES; i++)
        if (f->identity[i][0] && strncmp(f->identity[i], "dev:", 4) != 0) return f->identity[i];
    return NULL;
}

/* The object's name of the same kind as the word, which can be compared with it; else its best one. */
static const char *identity_like(const struct facts *f, const char *word) {
    size_t n = strcspn(word, ".:");
    const char *best = best_identity(f);
    for (unsigned i = 0; i < FACTS_IDENTITIES; i++)
        if (word[n] && strncasecmp(f->identity[i], word, n + 1) == 0) return f->identity[i];
    return best ? best : f->identity[0][0] ? f->identity[0] : "an object without an identity";
}

static void complain(struct consent_party *p, const char *word) {
    char found[400] = "nothing", safe[160], identity[2 * IDENTITY_SIZE];

    if (p->complaint[0]) return;
    show(safe, sizeof(safe), word);
    if (*word == '\0') {
        snprintf(p->complaint, p->complaint_len, "--destroy %s=... holds an empty word: was a shell variable empty?",
                 p->label);
    } else if (names_a_place(word)) {
        show(identity, sizeof(identity), identity_like(p->facts, word));
        snprintf(p->complaint, p->complaint_len, "--destroy %s=%s says where a target is, and that is agreed to by its label: "
                 "behind the '=' stands what is on it, or the identity of the object, as in --destroy %s=%s", p->label, safe,
                 p->label, identity);
    } else if (looks_like_identity(word)) {
        show(identity, sizeof(identity), identity_like(p->facts, word));
        snprintf(p->complaint, p->complaint_len, "--destroy %s=%s means another object: %s is %s", p->label, safe,
                 p->label, identity);
    } else {
        if (p->content) content_describe(p->content, found, sizeof(found));
        snprintf(p->complaint, p->complaint_len, "--destroy %s=%s names what is not there%s: found was %s", p->label,
                 safe,
                 blkid_known_fstype(word) || blkid_known_pttype(word) ? "" : " (and no file system, table or identity)",
                 found);
    }
}

static int unknown_label(const struct safety_destroy *d, const struct consent_party *parties, size_t n,
                         struct err *err) {
    char labels[400] = "", safe[80];

    for (size_t i = 0; i < n; i++) {
        size_t have = strlen(labels);
        if (i > 0 && strcmp(parties[i].label, parties[i - 1].label) == 0) continue;
        if (have + strlen(parties[i].label) + 3 > sizeof(labels)) break;
        snprintf(labels + have, sizeof(labels) - have, "%s%s", have ? ", " : "", parties[i].label);
    }
    return err_set(err, STATUS_USAGE, "--destroy %s: no target has this label; there are: %s",
                   show(safe, sizeof(safe), d->label), labels);
}

int consent_check_words(const struct safety_destroy *destroy, size_t n, struct consent_party *parties, size_t n_parties,
                        struct err *err) {
    int complaints = 0;

    for (size_t d = 0; d < n; d++) {
        struct consent_party *first = NULL;
        char word[WORD_SIZE];
        for (size_t i = n_parties; i-- > 0;)
            if (strcmp(parties[i].label, destroy[d].label) == 0) first = &parties[i];
        if (!first) return unknown_label(&destroy[d], parties, n_parties, err);
        const char *at = is_plain(destroy[d].what) ? NULL : destroy[d].what;
        if (at && is_whole_identity(parties, n_parties, first->label, at)) continue;
        while (next_word(&at, word, sizeof(word))) {
            if (*word && word_fits(parties, n_parties, first->label, word)) continue;
            complain(first, word);
            complaints++;
        }
    }
    return complaints;
}

/* ---- what is covered ---- */

/* All that was typed for one object. */
struct given {
    bool any;            /* the label was named in some way */
    bool plain;          /* ... without an identity, so for every member */
    bool identity;       /* an identity of this very object */
    bool other_identity; /* one of another object, so of another member */
    bool unknown_data;
    bool signature[CONTENT_SIGNATURES];
};

static void take_word(struct given *g, const struct consent_party *p, const char *word) {
    if (is_identity(p->facts, word)) {
        g->identity = true;
        return;
    }
    if (strcasecmp(word, UNKNOWN_DATA) == 0) {
        g->unknown_data = true;
        return;
    }
    bool named = false;
    for (unsigned i = 0; p->content && i < p->content->n; i++)
        if (content_is_named(&p->content->signature[i], word)) g->signature[i] = named = true;
    if (!named && looks_like_identity(word)) g->other_identity = true;
}

static void take(struct given *g, const struct consent_party *p, const struct safety_destroy *d, char *by,
                 size_t by_len) {
    char word[WORD_SIZE], safe[200];
    size_t n = strlen(by);

    if (d->what && !*d->what) return; /* complained of */
    g->any = true;
    snprintf(by + n, by_len - n, "%s--destroy %s%s%s", n ? " " : "", d->label, is_plain(d->what) ? "" : "=",
             is_plain(d->what) ? "" : show(safe, sizeof(safe), d->what));
    if (is_plain(d->what)) {
        g->plain = true;
    } else if (is_identity(p->facts, d->what)) {
        g->identity = true;
    } else {
        const char *at = d->what;
        while (next_word(&at, word, sizeof(word))) take_word(g, p, word);
    }
}

/* Several partitions may hold the same kind of file system; one word means them all. */
static bool is_repeated(const struct content *c, unsigned i) {
    for (unsigned k = 0; k < i; k++)
        if (strcmp(c->signature[k].name, c->signature[i].name) == 0) return true;
    return false;
}

static bool covers_signatures(const struct given *g, const struct content *c, char *missing, size_t missing_len) {
    size_t n = 0;

    for (unsigned i = 0; i < c->n; i++) {
        if (g->signature[i] || is_repeated(c, i)) continue;
        n += (size_t)snprintf(missing + n, n < missing_len ? missing_len - n : 0, "%s%s", n ? ", " : "",
                              c->signature[i].name);
        if (n >= missing_len) break;
    }
    return n == 0;
}

static bool covers(const struct safety_destroy *destroy, size_t n, const struct consent_party *parties,
                   size_t n_parties, size_t i, bool own_words, char *by, size_t by_len, char *missing,
                   size_t missing_len) {
    const struct consent_party *p = &parties[i];
    struct given g = {.any = false};

    by[0] = missing[0] = '\0';
    for (size_t d = 0; d < n; d++) {
        if (own_words && strcmp(destroy[d].label, p->label) != 0) continue;
        for (size_t k = 0; k < n_parties; k++)
            if (strcmp(parties[k].label, destroy[d].label) == 0 && same_object(parties, k, i)) {
                take(&g, p, &destroy[d], by, by_len);
                break;
            }
    }
    if (!g.any || !p->content) return false;
    if (g.other_identity && !g.identity && !g.plain) {
        snprintf(missing, missing_len, "the identity of this object");
        return false;
    }
    switch (content_kind(p->content)) {
    case CONTENT_KNOWN: return covers_signatures(&g, p->content, missing, missing_len);
    case CONTENT_UNKNOWN:
        if (!g.unknown_data) snprintf(missing, missing_len, UNKNOWN_DATA);
        return g.unknown_data;
    case CONTENT_ZEROS:
    case CONTENT_OWN: break;
    }
    return true;
}

bool consent_covers(const struct safety_destroy *destroy, size_t n, const struct consent_party *parties,
                    size_t n_parties, size_t i, bool *borrowed, char *by, size_t by_len, char *missing,
                    size_t missing_len) {
    *borrowed = false;
    if (covers(destroy, n, parties, n_parties, i, true, by, by_len, missing, missing_len)) return true;
    *borrowed = covers(destroy, n, parties, n_parties, i, false, by, by_len, missing, missing_len);
    return *borrowed;
}

/* ---- what to type ---- */

static void add_option(char *buf, size_t len, const char *label, const char *what) {
    size_t n = strlen(buf);
    const char *quote =
        strspn(what, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:/=,+@%-") == strlen(what) ? ""
        : strchr(what, '\'')                                                                                     ? "\""
                                                                                                                 : "'";

    snprintf(buf + n, len - n, "%s--destroy %s%s%s%s%s", n ? " " : "", quote, label, *what ? "=" : "", what, quote);
}

void consent_offer(const struct consent_party *p, bool with_identity, char *buf, size_t len) {
    enum content_kind kind = p->content ? content_kind(p->content) : CONTENT_ZEROS;
    const char *best = with_identity ? best_identity(p->facts) : NULL;
    char words[400] = "", identity[2 * IDENTITY_SIZE];

    buf[0] = '\0';
    if (best) add_option(buf, len, p->label, text_safe(identity, sizeof(identity), best, IDENTITY_SIZE));
    for (unsigned i = 0; kind == CONTENT_KNOWN && i < p->content->n; i++) {
        const char *name = p->content->signature[i].name;
        size_t n = strlen(words);
        if (!is_repeated(p->content, i)) snprintf(words + n, sizeof(words) - n, "%s%s", n ? "," : "", name);
    }
    if (kind == CONTENT_UNKNOWN) snprintf(words, sizeof(words), UNKNOWN_DATA);
    if (words[0] || !buf[0]) add_option(buf, len, p->label, words);
}
