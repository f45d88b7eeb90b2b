/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY "nrfiles"

unsigned files_wanted(const struct member *m) {
    const struct option_entry *e = option_find(m->backend->options, KEY);
    char value[32];
    return e && option_show(e, m->conf, value, sizeof value) ? (unsigned)strtoul(value, NULL, 10) : 1;
}

/* The pairs of `query` that are not the key, with '?' and '&' as they are needed. */
static void copy_query(char *to, const char *query) {
    char mark = '?';
    while (*query) {
        size_t n = strcspn(query + 1, "&") + 1;
        if (strncmp(query + 1, KEY "=", strlen(KEY) + 1) != 0) {
            *to++ = mark;
            memcpy(to, query + 1, n - 1);
            to += n - 1;
            mark = '&';
        }
        query += n;
    }
    *to = '\0';
}

int files_rename(struct url *url, unsigned number, struct err *err) {
    char suffix[16];
    /* A bare path is all path. */
    size_t n = url->text[0] == '/' ? strlen(url->text) : strcspn(url->text, "?"), len = strlen(url->text);
    int added = snprintf(suffix, sizeof suffix, ".%u", number);
    char *path = malloc(strlen(url->path) + (size_t)added + 1), *text = malloc(len + (size_t)added + 1);

    if (!path || !text) {
        free(path);
        free(text);
        return err_set(err, STATUS_USAGE, "out of memory");
    }
    sprintf(path, "%s%s", url->path, suffix);
    sprintf(text, "%.*s%s", (int)n, url->text, suffix);
    copy_query(text + n + added, url->text + n);
    free(url->path);
    free(url->text);
    url->path = path;
    url->text = text;
    return 0;
}
