/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/text.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define NEAREST_MAX 64 /* longer words are no typos of a key */
#define LABEL_MAX 63

/* Length of the well-formed UTF-8 sequence at `s` (not overlong, no surrogate, up to U+10FFFF); 0 if there is none. */
static size_t text_utf8(const unsigned char *s, size_t n, uint32_t *code) {
    size_t len;
    uint32_t c, least;

    if (s[0] < 0x80) {
        *code = s[0];
        return 1;
    } else if (s[0] >= 0xc2 && s[0] <= 0xdf) {
        len = 2, c = s[0] & 0x1f, least = 0x80;
    } else if ((s[0] & 0xf0) == 0xe0) {
        len = 3, c = s[0] & 0x0f, least = 0x800;
    } else if (s[0] >= 0xf0 && s[0] <= 0xf4) {
        len = 4, c = s[0] & 0x07, least = 0x10000;
    } else {
        return 0;
    }
    if (len > n) return 0;
    for (size_t i = 1; i < len; i++) {
        if ((s[i] & 0xc0) != 0x80) return 0;
        c = c << 6 | (s[i] & 0x3f);
    }
    if (c < least || (c >= 0xd800 && c <= 0xdfff) || c > 0x10ffff) return 0;
    *code = c;
    return len;
}

/* What a terminal may act upon, or what makes text read otherwise than it is: C0, DEL, C1, line and paragraph
 * separators, the marks, embeddings, overrides and isolates of bidirectional text, the byte order mark. */
static bool text_is_unsafe(uint32_t c) {
    return c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == 0x061c || c == 0x200e || c == 0x200f ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0xfeff;
}

const char *text_safe(char *buf, size_t len, const char *in, size_t n) {
    const unsigned char *s = (const unsigned char *)in;
    size_t at = 0, cut = 0; /* `cut`: last boundary of characters behind which "..." fits */
    char unit[17];

    if (len == 0) return "";
    n = strnlen(in, n);
    while (n > 0) {
        uint32_t code;
        size_t used = text_utf8(s, n, &code), size;

        if (used > 0 && !text_is_unsafe(code)) {
            memcpy(unit, s, used);
            size = used;
        } else {
            if (used == 0) used = 1;
            size = 0;
            for (size_t i = 0; i < used; i++)
                size += (size_t)snprintf(unit + size, sizeof(unit) - size, "\\x%02X", s[i]);
        }
        if (at + 3 < len) cut = at;
        if (at + size >= len) {
            size_t dots = len - 1 - cut < 3 ? len - 1 - cut : 3;
            memset(buf + cut, '.', dots);
            at = cut + dots;
            break;
        }
        memcpy(buf + at, unit, size);
        at += size;
        s += used;
        n -= used;
    }
    buf[at] = '\0';
    return buf;
}

static char text_fold(char c) {
    return c == '-' ? '_' : (char)tolower((unsigned char)c);
}

static unsigned min3(unsigned a, unsigned b, unsigned c) {
    unsigned m = a < b ? a : b;

    return m < c ? m : c;
}

/* Insertions, deletions, replacements and swaps of neighbours that make `b` of `a`; case, '-' and '_' cost nothing. */
static unsigned text_distance(const char *a, size_t na, const char *b, size_t nb) {
    unsigned row[3][NEAREST_MAX + 1];
    unsigned *before = row[0], *last = row[1], *now = row[2];

    for (size_t j = 0; j <= nb; j++) last[j] = (unsigned)j;
    for (size_t i = 1; i <= na; i++) {
        now[0] = (unsigned)i;
        for (size_t j = 1; j <= nb; j++) {
            char x = text_fold(a[i - 1]), y = text_fold(b[j - 1]);

            now[j] = min3(last[j] + 1, now[j - 1] + 1, last[j - 1] + (x != y));
            if (i > 1 && j > 1 && x == text_fold(b[j - 2]) && y == text_fold(a[i - 2]) && before[j - 2] + 1 < now[j])
                now[j] = before[j - 2] + 1;
        }
        unsigned *spare = before;
        before = last;
        last = now;
        now = spare;
    }
    return last[nb];
}

const char *text_nearest(const char *word, const char *const *list) {
    size_t n = strlen(word);
    const char *nearest = NULL;
    /* One slip in every three characters begun, three at most; but never all of the word. */
    unsigned limit = n > 6 ? 3 : (unsigned)(n + 2) / 3;

    if (n == 0 || n > NEAREST_MAX) return NULL;
    for (; *list; list++) {
        size_t len = strlen(*list);

        if (len > NEAREST_MAX) continue;
        unsigned d = text_distance(word, n, *list, len);
        if (d > limit || d >= n || d >= len) continue;
        if (nearest && d == limit) continue; /* the first of equals stays */
        nearest = *list;
        limit = d;
    }
    return nearest;
}

bool text_glob(const char *pattern, const char *text) {
    return fnmatch(pattern, text, 0) == 0;
}

bool text_is_label(const char *text) {
    size_t n = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-");

    return n > 0 && n <= LABEL_MAX && text[n] == '\0';
}
