/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/output.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/savefile.h"
#include "base/text.h"
#include "base/url.h"
#include "cli/show.h"
#include "result/document.h"
#include "safety/localdisk.h"
#include "safety/space.h"

static struct savefile_rules rules_of(bool force) {
    return (struct savefile_rules){.ours = document_begins, .kind = "samedisk result", .force = force};
}

/* Two names that do not exist yet mean one file if they are one name in one folder. */
static bool same_new_name(const char *a, const char *b) {
    const char *name_a = strrchr(a, '/'), *name_b = strrchr(b, '/');
    char *folder_a = name_a ? strndup(a, (size_t)(name_a - a) + 1) : strdup("."),
         *folder_b = name_b ? strndup(b, (size_t)(name_b - b) + 1) : strdup(".");
    struct stat x, y;
    bool same = folder_a && folder_b && stat(folder_a, &x) == 0 && stat(folder_b, &y) == 0 && x.st_dev == y.st_dev &&
                x.st_ino == y.st_ino && strcmp(name_a ? name_a + 1 : a, name_b ? name_b + 1 : b) == 0;

    free(folder_a);
    free(folder_b);
    return same;
}

static bool same_file(const char *a, const char *b) {
    struct stat x, y;
    bool has_a = stat(a, &x) == 0, has_b = stat(b, &y) == 0;

    if (has_a != has_b) return false;
    return has_a ? x.st_dev == y.st_dev && x.st_ino == y.st_ino : same_new_name(a, b);
}

static const struct target *is_target(const char *path, const struct targets *targets) {
    for (unsigned t = 0; t < targets->n; t++)
        for (unsigned m = 0; m < targets->target[t]->n_members; m++) {
            char *file = space_local_path(targets->target[t]->member[m].url);
            bool same = file && same_file(path, file);
            free(file);
            if (same) return targets->target[t];
        }
    return NULL;
}

/* The name was forgotten, and the option has swallowed the target behind it. A plain /PATH can be either. */
static bool looks_like_target(const char *path) {
    const char *equals = strchr(path, '=');

    return (path[0] != '/' && url_is_target(path)) || (equals && !memchr(path, '/', (size_t)(equals - path)) && url_is_target(equals + 1));
}

int output_check(const char *option, const char *path, bool force, const struct targets *targets, struct err *err) {
    struct savefile_rules rules = rules_of(force);
    const struct target *t;
    char shown[200], why[300];

    show_word(shown, sizeof shown, path);
    if (looks_like_target(path))
        return err_set(err, STATUS_USAGE, "%s %s: this is a target; the name of a file is missing before it: %s FILE %s",
                       option, shown, option, shown);
    if ((t = is_target(path, targets)))
        return err_set(err, STATUS_USAGE, "%s %s: this is the target '%s', and no result is written into it", option, shown, t->label);
    if (localdisk_file_used(path, why, sizeof why))
        return err_set(err, STATUS_USAGE, "%s %s: no result is written into a file that is in use: %s", option, shown, why);
    return savefile_check(path, &rules, err) ? err_prefix(err, "%s", option) : 0;
}

bool output_is_stream(const char *path) {
    return savefile_is_stream(path);
}

int output_result(const char *path, bool force, const char *text, size_t len, struct err *err) {
    struct savefile_rules rules = rules_of(force);
    return savefile_write(path, &rules, text, len, err);
}
