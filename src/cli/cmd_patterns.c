/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/savefile.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/dirs.h"
#include "cli/show.h"
#include "pattern/set.h"
#include "report/grid.h"

#define FILE_MAX (1u << 20)

static void add_to_list(void *arg, const char *name, const char *path, const char *description) {
    char shown[80], words[300];
    const char *cells[] = {text_safe(shown, sizeof shown, name, SIZE_MAX),
                           text_safe(words, sizeof words, description ? description : "", SIZE_MAX)};
    (void)path;
    grid_row(arg, cells);
}

static enum status list_all(const char *const *dirs) {
    struct err err;
    struct grid *g = grid_new("ll");
    enum status status = STATUS_OK;
    if (!g) return STATUS_USAGE;
    if (set_list(dirs, add_to_list, g, &err))
        status = complain(&err);
    else
        grid_print(g, 0, stdout);
    grid_free(g);
    return status;
}

struct wanted {
    const char *name;
    char *path;           /* owned */
    const char *list[65]; /* of names, for the nearest one; owned, NULL-terminated */
    size_t n;
};

static void look_for(void *arg, const char *name, const char *path, const char *description) {
    struct wanted *w = arg;
    (void)description;
    if (!w->path && !strcmp(name, w->name)) w->path = strdup(path);
    if (w->n + 1 < sizeof w->list / sizeof *w->list && (w->list[w->n] = strdup(name))) w->n++;
}

/* On a terminal a file is somebody's text; elsewhere it is copied as it is. */
static void print_file(const char *text, size_t len) {
    if (!isatty(STDOUT_FILENO)) {
        fwrite(text, 1, len, stdout);
        return;
    }
    while (len) {
        size_t n = strcspn(text, "\n\t");
        char *shown = malloc(4 * n + 1);
        if (shown) fputs(text_safe(shown, 4 * n + 1, text, n), stdout);
        free(shown);
        if (n < len) putchar(text[n++] ? text[n - 1] : ' ');
        text += n;
        len -= n;
    }
}

static enum status show_one(const char *const *dirs, const char *name) {
    struct wanted w = {.name = name};
    struct err err;
    char *text = NULL, shown[100];
    size_t len;
    int rc = set_list(dirs, look_for, &w, &err);
    if (!rc && !w.path) {
        const char *near = text_nearest(name, w.list);
        rc = err_set(&err, STATUS_USAGE, "no pattern file %s ships%s%s%s", show_word(shown, sizeof shown, name),
                     near ? ": did you mean " : "", near ? near : "", near ? "?" : " (samedisk patterns lists them)");
    }
    if (!rc) rc = savefile_read(w.path, FILE_MAX, &text, &len, &err);
    if (!rc) print_file(text, len);
    free(text);
    free(w.path);
    for (size_t i = 0; i < w.n; i++) free((char *)(uintptr_t)w.list[i]);
    return rc ? complain(&err) : STATUS_OK;
}

enum status cmd_patterns(struct args *args) {
    const char *dirs[DIRS_MAX];
    struct err err;
    dirs_of_patterns(dirs);
    if (!args->n_words) return list_all(dirs);
    if (args->n_words == 1) return show_one(dirs, args->words[0]);
    err_set(&err, STATUS_USAGE, "patterns shows one file at a time");
    return complain(&err);
}
