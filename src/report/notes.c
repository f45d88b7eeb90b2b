/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/notes.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "report/grid.h"

#define FIGURES_MAX  16 /* of a text; further ones are plain text */
#define RANGES_MAX   3  /* more ranges in one sentence are not understood */
#define FIGURE_BYTES 24
#define NOTE_MAX     1600

struct figure_in { /* a figure in a text, as it is spelled there */
    double value;
    char text[FIGURE_BYTES];
};

struct note {
    char *frame; /* the text with a '\1' in the place of each figure; owned */
    unsigned n;
    struct figure_in low[FIGURES_MAX], high[FIGURES_MAX];
};

struct notes {
    struct note *note; /* owned */
    unsigned n;
};

struct notes *notes_new(void) {
    return calloc(1, sizeof(struct notes));
}

void notes_free(struct notes *n) {
    if (!n) return;
    for (unsigned i = 0; i < n->n; i++) free(n->note[i].frame);
    free(n->note);
    free(n);
}

/* The length of the figure that begins at `at`; 0: none. Digits in names, addresses, versions are no figures. */
static size_t figure_at(const char *text, const char *at) {
    if (!isdigit((unsigned char)*at)) return 0;
    if (at > text && (isalnum((unsigned char)at[-1]) || strchr("_.:/-[#", at[-1]))) return 0;
    size_t n = strspn(at, "0123456789");
    if (at[n] == '.' && isdigit((unsigned char)at[n + 1])) n += 1 + strspn(at + n + 1, "0123456789");
    if (n >= FIGURE_BYTES || isalnum((unsigned char)at[n]) || (at[n] && strchr("_/-", at[n]))) return 0;
    if ((at[n] == '.' || at[n] == ':') && isdigit((unsigned char)at[n + 1])) return 0;
    return n;
}

static int take_apart(const char *text, struct note *note) {
    memset(note, 0, sizeof *note);
    char *to = note->frame = malloc(strlen(text) + 1);
    if (!to) return -1;
    for (const char *at = text; *at;) {
        size_t n = note->n < FIGURES_MAX ? figure_at(text, at) : 0;
        if (!n) {
            *to++ = *at++;
            continue;
        }
        struct figure_in *f = &note->low[note->n];
        memcpy(f->text, at, n);
        f->value = strtod(f->text, NULL);
        note->high[note->n++] = *f;
        *to++ = '\1';
        at += n;
    }
    *to = '\0';
    return 0;
}

/* Makes one of both; false: they do not say the same. */
static bool merge(struct note *into, const struct note *one) {
    struct note both = *into;
    unsigned ranges = 0;
    if (strcmp(into->frame, one->frame) != 0) return false;
    for (unsigned i = 0; i < both.n; i++) {
        if (one->low[i].value < both.low[i].value) both.low[i] = one->low[i];
        if (one->high[i].value > both.high[i].value) both.high[i] = one->high[i];
        ranges += strcmp(both.low[i].text, both.high[i].text) != 0;
    }
    if (ranges > RANGES_MAX) return false;
    *into = both;
    return true;
}

unsigned notes_add(struct notes *n, const char *text) {
    struct note one;
    if (take_apart(text, &one)) return 0;
    for (unsigned i = 0; i < n->n; i++) {
        if (!merge(&n->note[i], &one)) continue;
        free(one.frame);
        return i + 1;
    }
    struct note *note = realloc(n->note, (n->n + 1) * sizeof *note);
    if (!note) {
        free(one.frame);
        return 0;
    }
    n->note = note;
    note[n->n] = one;
    return ++n->n;
}

static void put_together(const struct note *note, char *buf, size_t len) {
    size_t at = 0;
    unsigned figure = 0;
    buf[0] = '\0';
    for (const char *from = note->frame; *from && at + 2 * FIGURE_BYTES + 5 < len; from++) {
        if (*from != '\1') {
            buf[at++] = *from;
            continue;
        }
        const char *low = note->low[figure].text, *high = note->high[figure].text;
        bool range = strcmp(low, high) != 0;
        at += (size_t)snprintf(buf + at, len - at, "%s%s%s", low, range ? " to " : "", range ? high : "");
        figure++;
    }
    buf[at] = '\0';
}

bool notes_any(const struct notes *n) {
    return n->n > 0;
}

bool notes_has(const struct notes *n, const char *text) {
    char own[NOTE_MAX];
    for (unsigned i = 0; i < n->n; i++) {
        put_together(&n->note[i], own, sizeof own);
        if (!strcmp(own, text)) return true;
    }
    return false;
}

void notes_print(const struct notes *n, unsigned width, FILE *out) {
    char number[16], text[NOTE_MAX];
    for (unsigned i = 0; i < n->n; i++) {
        snprintf(number, sizeof number, "[%u] ", i + 1);
        put_together(&n->note[i], text, sizeof text);
        grid_wrap(number, (unsigned)strlen(number), text, width, out);
    }
}
