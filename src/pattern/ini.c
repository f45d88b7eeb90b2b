/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pattern/ini.h"

#include <string.h>

#include "base/text.h"

int ini_open(struct ini *ini, const char *name, const char *text, size_t len, struct err *err) {
    text_safe(ini->name, sizeof(ini->name), name, strlen(name));
    ini->at = text;
    ini->end = text + len;
    ini->line = 0;
    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        return err_set(err, STATUS_USAGE, "%s:1: the file begins with a UTF-8 byte order mark; save it without one",
                       ini->name);
    if (len >= 2 && (memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0))
        return err_set(err, STATUS_USAGE, "%s:1: the file is UTF-16; save it as UTF-8 without a byte order mark",
                       ini->name);
    return 0;
}

static bool ini_is_blank(char c) {
    return c == ' ' || c == '\t';
}

/* The next line, NUL-terminated, in ini->buf; NULL after an error. The length keeps NUL bytes from hiding anything. */
static char *ini_line(struct ini *ini, struct err *err) {
    const char *newline = memchr(ini->at, '\n', (size_t)(ini->end - ini->at));
    const char *stop = newline ? newline : ini->end;
    size_t n = (size_t)(stop - ini->at);
    const char *start = ini->at;
    ini->at = newline ? newline + 1 : ini->end;
    ini->line++;
    if (n && start[n - 1] == '\r') n--;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)start[i];
        if (c >= 0x20 && c != 0x7f) continue;
        if (c == '\t') continue;
        err_set(err, STATUS_USAGE, "%s:%u: byte %zu of the line is \\x%02X, so this is not a text file%s", ini->name,
                ini->line, i + 1, c, c == '\r' ? " with Unix or Windows line ends" : "");
        return NULL;
    }
    if (n > INI_LINE) {
        err_set(err, STATUS_USAGE, "%s:%u: the line has %zu characters; the most is %d", ini->name, ini->line, n,
                INI_LINE);
        return NULL;
    }
    memcpy(ini->buf, start, n);
    ini->buf[n] = '\0';
    return ini->buf;
}

/* Cuts a comment and the blanks before it. `s` is not at a line's start any more: a comment follows a blank. */
static void ini_cut(char *s) {
    for (char *c = s; *c; c++) {
        if ((*c != '#' && *c != ';') || (c != s && !ini_is_blank(c[-1]))) continue;
        *c = '\0';
        break;
    }
    for (char *end = s + strlen(s); end > s && ini_is_blank(end[-1]);) *--end = '\0';
}

static int ini_section(const struct ini *ini, char *s, struct ini_item *item, struct err *err) {
    char safe[80], *close = strchr(s, ']');
    if (!close)
        return err_set(err, STATUS_USAGE, "%s:%u: the ']' of '%s' is missing", ini->name, ini->line,
                       text_safe(safe, sizeof(safe), s, strlen(s)));
    *close = '\0';
    char *rest = close + 1;
    while (ini_is_blank(*rest)) rest++;
    if (*rest && ((*rest != '#' && *rest != ';') || rest == close + 1))
        return err_set(err, STATUS_USAGE, "%s:%u: '%s' after the ']' of a section", ini->name, ini->line,
                       text_safe(safe, sizeof(safe), rest, strlen(rest)));
    for (s++; ini_is_blank(*s);) s++;
    while (close > s && ini_is_blank(close[-1])) *--close = '\0';
    if (!*s) return err_set(err, STATUS_USAGE, "%s:%u: a section without a name", ini->name, ini->line);
    *item = (struct ini_item){.section = true, .line = ini->line, .key = s};
    return 1;
}

static int ini_key(const struct ini *ini, char *s, struct ini_item *item, struct err *err) {
    char safe[80], *equals = strchr(s, '='), *value = NULL;
    if (equals == s)
        return err_set(err, STATUS_USAGE, "%s:%u: no key before the '=' of '%s'", ini->name, ini->line,
                       text_safe(safe, sizeof(safe), s, strlen(s)));
    if (equals) {
        *equals = '\0';
        for (value = equals + 1; ini_is_blank(*value);) value++;
        while (equals > s && ini_is_blank(equals[-1])) *--equals = '\0';
    }
    *item = (struct ini_item){.line = ini->line, .key = s, .value = value};
    return 1;
}

int ini_next(struct ini *ini, struct ini_item *item, struct err *err) {
    while (ini->at < ini->end) {
        char *s = ini_line(ini, err);
        if (!s) return -1;
        while (ini_is_blank(*s)) s++;
        if (*s == '[') return ini_section(ini, s, item, err);
        ini_cut(s);
        if (*s) return ini_key(ini, s, item, err);
    }
    return 0;
}
