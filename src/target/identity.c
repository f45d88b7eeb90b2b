/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "target/identity.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "target/target.h"

static const char *skip_blanks(const char *s) {
    while (*s == ' ' || *s == '_' || *s == '\t') s++;
    return s;
}

bool identity_equal(const char *a, const char *b) {
    if (*a == '\0' || *b == '\0') return false;
    for (;;) {
        a = skip_blanks(a);
        b = skip_blanks(b);
        if (tolower((unsigned char)*a) != tolower((unsigned char)*b)) return false;
        if (*a == '\0') return true;
        a++;
        b++;
    }
}

static bool begins(const char *identity, const char *kind) {
    return strncasecmp(identity, kind, strlen(kind)) == 0;
}

static bool any_of_kind(const char list[][IDENTITY_SIZE], unsigned n, const char *kind) {
    for (unsigned i = 0; i < n; i++)
        if (begins(list[i], kind)) return true;
    return false;
}

bool identity_common(const char a[][IDENTITY_SIZE], unsigned n_a, const char b[][IDENTITY_SIZE], unsigned n_b) {
    static const char *const scsi_names[] = {"naa.", "eui.", "t10."};
    bool named = false;

    for (unsigned i = 0; i < 3; i++)
        if (any_of_kind(a, n_a, scsi_names[i]) && any_of_kind(b, n_b, scsi_names[i])) named = true;
    for (unsigned i = 0; i < n_a; i++) {
        if (named && begins(a[i], "serial")) continue;
        for (unsigned k = 0; k < n_b; k++)
            if (identity_equal(a[i], b[k])) return true;
    }
    return false;
}

/* Software targets make names up, so two of them may have the same; the backend says so. Then target and LUN decide. */
static bool is_weak(const struct facts *f) {
    return kv_find(&f->warnings, "weak-identity") != NULL;
}

static bool same_fact(const struct facts *a, const struct facts *b, const char *key) {
    const struct kv_item *x = kv_find(&a->negotiated, key), *y = kv_find(&b->negotiated, key);

    if (!x || !y || x->type != y->type) return false;
    return x->type == KV_TEXT ? strcasecmp(x->text, y->text) == 0 : x->u == y->u;
}

/* This kernel's number for a file: two files with one number do not exist. */
static bool one_local_file(const struct facts *a, const struct facts *b) {
    for (unsigned i = 0; i < FACTS_IDENTITIES; i++)
        for (unsigned k = 0; begins(a->identity[i], "file:") && k < FACTS_IDENTITIES; k++)
            if (identity_equal(a->identity[i], b->identity[k])) return true;
    return false;
}

enum kinship facts_kinship(const struct facts *a, const struct facts *b) {
    if (a->rdev && a->rdev == b->rdev) return KINSHIP_ONE;
    if (!identity_common(a->identity, FACTS_IDENTITIES, b->identity, FACTS_IDENTITIES)) return KINSHIP_NONE;
    /* A loop device may begin anywhere in the file behind it. */
    if (one_local_file(a, b)) return a->kind == OBJECT_FILE && b->kind == OBJECT_FILE ? KINSHIP_ONE : KINSHIP_STORAGE;
    if ((is_weak(a) || is_weak(b)) && !(same_fact(a, b, "target_name") && same_fact(a, b, "lun"))) return KINSHIP_NONE;
    return KINSHIP_NAME;
}
