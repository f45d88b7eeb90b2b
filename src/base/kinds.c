/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/kinds.h"

#include <stdio.h>
#include <string.h>

#define NAME_MAX_LEN (sizeof(((struct kinds *)0)->kind[0].name) - 1)

unsigned kinds_note(struct kinds *kinds, const char *name, const char *text) {
    for (unsigned i = 0; i < kinds->n; i++)
        if (strncmp(kinds->kind[i].name, name, NAME_MAX_LEN) == 0) return i;
    if (kinds->n == KINDS_MAX) return KINDS_MAX - 1;

    unsigned i = kinds->n++;
    if (!text) text = "";
    kinds->kind[i].count = 0;
    if (i < KINDS_MAX - 1) {
        snprintf(kinds->kind[i].name, sizeof(kinds->kind[i].name), "%s", name);
        snprintf(kinds->kind[i].text, sizeof(kinds->kind[i].text), "%s", text);
    } else { /* the last place is for all that finds none: it keeps the words of the first of them */
        snprintf(kinds->kind[i].name, sizeof(kinds->kind[i].name), "other");
        snprintf(kinds->kind[i].text, sizeof(kinds->kind[i].text), "%s%s%s", name, *text ? ": " : "", text);
    }
    return i;
}

unsigned kinds_lost(struct kinds *kinds, const char *name, const char *text) {
    unsigned i = kinds_note(kinds, name, text);
    if (!kinds->lost) kinds->lost = i + 1;
    return i;
}

void kinds_merge(struct kinds *into, const struct kinds *from) {
    for (unsigned i = 0; i < from->n; i++) {
        unsigned k = kinds_note(into, from->kind[i].name, from->kind[i].text);

        into->kind[k].count += from->kind[i].count;
    }
}
