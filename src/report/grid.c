/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/grid.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#define GAP         2
#define LINE_INDENT 2 /* of what does not fit into the first one */

struct grid_item {
    char *line; /* not NULL: a line of its own */
    char **cells;
};

struct grid {
    char *align;
    size_t columns;
    struct grid_item *items;
    size_t n, cap;
    unsigned out;   /* columns that are left out, a bit each */
    bool no_memory; /* then nothing is printed but that */
};

/* One character of valid UTF-8: its length, and the columns it takes. */
static size_t character(const char *text, unsigned *columns) {
    const unsigned char *s = (const unsigned char *)text;
    size_t len = s[0] < 0x80 ? 1 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    wchar_t c = len == 1 ? s[0] : s[0] & (0x7f >> len);
    for (size_t i = 1; i < len; i++) {
        if ((s[i] & 0xc0) != 0x80) {
            *columns = 1;
            return 1;
        }
        c = c << 6 | (s[i] & 0x3f);
    }
    int w = wcwidth(c);
    *columns = w < 0 ? 1 : (unsigned)w;
    return len;
}

unsigned grid_width(const char *text) {
    unsigned width = 0, columns;
    while (*text) {
        text += character(text, &columns);
        width += columns;
    }
    return width;
}

struct grid *grid_new(const char *align) {
    struct grid *g = calloc(1, sizeof *g);
    if (!g) return NULL;
    g->align = strdup(align);
    g->columns = strlen(align);
    if (g->align) return g;
    free(g);
    return NULL;
}

void grid_free(struct grid *g) {
    if (!g) return;
    for (size_t i = 0; i < g->n; i++) {
        for (size_t c = 0; g->items[i].cells && c < g->columns; c++) free(g->items[i].cells[c]);
        free(g->items[i].cells);
        free(g->items[i].line);
    }
    free(g->items);
    free(g->align);
    free(g);
}

static struct grid_item *next_item(struct grid *g) {
    if (g->n == g->cap) {
        size_t cap = g->cap ? 2 * g->cap : 32;
        struct grid_item *items = realloc(g->items, cap * sizeof *items);
        if (!items) {
            g->no_memory = true;
            return NULL;
        }
        g->items = items;
        g->cap = cap;
    }
    struct grid_item *item = &g->items[g->n++];
    memset(item, 0, sizeof *item);
    return item;
}

void grid_row(struct grid *g, const char *const *cells) {
    struct grid_item *item = next_item(g);
    if (!item) return;
    item->cells = calloc(g->columns + 1, sizeof *item->cells);
    for (size_t c = 0; item->cells && c < g->columns; c++) {
        item->cells[c] = strdup(cells[c] ? cells[c] : "");
        if (!item->cells[c]) g->no_memory = true;
    }
    if (!item->cells) g->no_memory = true;
}

void grid_line(struct grid *g, const char *text) {
    struct grid_item *item = next_item(g);
    if (!item) return;
    item->line = strdup(text);
    if (!item->line) g->no_memory = true;
}

/* A column that is left out, or has no single entry, takes no room: 0. */
static unsigned *widths_of(const struct grid *g) {
    unsigned *widths = calloc(g->columns + 1, sizeof *widths);
    for (size_t i = 0; widths && i < g->n; i++) {
        for (size_t c = 0; g->items[i].cells && c < g->columns; c++) {
            unsigned w = g->out & 1u << c || !g->items[i].cells[c] ? 0 : grid_width(g->items[i].cells[c]);
            if (w > widths[c]) widths[c] = w;
        }
    }
    return widths;
}

/* Prints nothing where `out` is NULL. Returns the columns it takes. */
static unsigned put_row(const struct grid *g, char *const *cells, const unsigned *widths, FILE *out) {
    unsigned owed = 0, used = 0; /* owed: blanks that are printed only if something follows */
    for (size_t c = 0; c < g->columns; c++) {
        if (!widths[c]) continue;
        unsigned width = grid_width(cells[c]), pad = widths[c] - width;
        if (g->align[c] == 'r') owed += pad;
        if (cells[c][0]) {
            if (out) fprintf(out, "%*s%s", (int)owed, "", cells[c]);
            used += owed + width;
            owed = g->align[c] == 'r' ? 0 : pad;
        } else if (g->align[c] != 'r') {
            owed += pad;
        }
        owed += GAP;
    }
    if (out) fputc('\n', out);
    return used;
}

unsigned grid_row_width(const struct grid *g) {
    unsigned *widths = widths_of(g), most = 0;
    for (size_t i = 0; widths && !g->no_memory && i < g->n; i++) {
        unsigned w = g->items[i].cells ? put_row(g, g->items[i].cells, widths, NULL) : 0;
        if (w > most) most = w;
    }
    free(widths);
    return most;
}

unsigned grid_fit(struct grid *g, const int *first_out, unsigned width) {
    unsigned *widths = widths_of(g), gone = 0;
    for (; widths && *first_out >= 0 && grid_row_width(g) > width; first_out++) {
        if (!widths[*first_out]) continue;
        g->out |= 1u << *first_out;
        gone |= 1u << *first_out;
    }
    free(widths);
    return gone;
}

void grid_wrap(const char *prefix, unsigned indent, const char *text, unsigned width, FILE *out) {
    unsigned used = grid_width(prefix);
    bool bare = true; /* no word stands on this line yet */
    fputs(prefix, out);
    while (*text) {
        size_t len = strcspn(text, " ");
        char *word = strndup(text, len);
        unsigned w = word ? grid_width(word) : (unsigned)len;
        if (width && !bare && used + 1 + w > width) {
            fprintf(out, "\n%*s", (int)indent, "");
            used = indent;
            bare = true;
        }
        fprintf(out, "%s%.*s", bare ? "" : " ", (int)len, text);
        used += w + !bare;
        bare = false;
        free(word);
        text += len;
        if (*text) text++;
    }
    fputc('\n', out);
}

void grid_print(const struct grid *g, unsigned width, FILE *out) {
    unsigned *widths = widths_of(g);
    if (!widths || g->no_memory) {
        fputs("(no memory for the table)\n", out);
        free(widths);
        return;
    }
    for (size_t i = 0; i < g->n; i++) {
        if (g->items[i].cells)
            put_row(g, g->items[i].cells, widths, out);
        else
            grid_wrap("", LINE_INDENT, g->items[i].line, width, out);
    }
    free(widths);
}
