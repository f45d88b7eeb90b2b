/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/words.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "base/url.h"
#include "cli/device_word.h"
#include "cli/options.h"
#include "cli/show.h"
#include "pattern/pattern.h"

static bool ends_in(const char *word, const char *ending) {
    size_t n = strlen(word), m = strlen(ending);
    return n > m && !strcasecmp(word + n - m, ending);
}

static bool is_pattern_file(const char *word) {
    return ends_in(word, ".ini") || ends_in(word, ".icf") || ends_in(word, ".fio") || ends_in(word, ".job");
}

/* LABEL= before a target: the URL behind it, else NULL. A label holds no '/' or ':', so what looks like one is one. */
static const char *behind_label(const char *word, char label[64]) {
    size_t n = strcspn(word, "=");
    if (!word[n] || n >= 64) return NULL;
    memcpy(label, word, n);
    label[n] = '\0';
    return text_is_label(label) ? word + n + 1 : NULL;
}

/* ---- words that are nothing ---- */

static bool has_scheme(const char *word, const char *scheme) {
    return !strncasecmp(word, scheme, strlen(scheme));
}

/* "fc:/dev/sdc", "fc:nfs://...": a label ends in '='. A host before ":/EXPORT" looks the same, but no export is in /dev. */
static int label_with_colon(const char *word, struct err *err) {
    char label[64], rest[200];
    size_t n = strcspn(word, ":");
    if (!word[n] || n == 0 || n >= sizeof label) return 0;
    memcpy(label, word, n);
    label[n] = '\0';
    const char *target = word + n + 1;
    if (!text_is_label(label) || !url_is_target(target) || (target[0] == '/' && strncmp(target, "/dev/", 5) != 0)) return 0;
    show_word(rest, sizeof rest, target);
    return err_set(err, STATUS_USAGE, "%s:%s: a label ends in '=': did you mean %s=%s?", label, rest, label, rest);
}

/* `before`: "LABEL=", or "". */
static int name_device(const char *before, const char *word, const char *shown, struct err *err) {
    char path[200];
    if (!device_word(word, path, sizeof path)) return 0;
    return err_set(err, STATUS_USAGE, "%s: a block device is written with its whole path: did you mean %s%s?", shown, before,
                   path);
}

/* "iodepth=32": an option without its dashes? */
static bool is_key(const char *word) {
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
    return option_find(options_table, name) || option_find(pattern_options, name);
}

/* `word` is what stands behind LABEL=, if that is there. */
static int explain(const char *word, bool labelled, const char *shown, struct err *err) {
    const char *colon = strstr(word, ":/");
    char name[128], path[200];
    struct stat st;
    if (!labelled && label_with_colon(word, err)) return -1;
    if (has_scheme(word, "nfs:") || has_scheme(word, "iscsi:"))
        return err_set(err, STATUS_USAGE, "%s: a target begins with %s (in small letters, with two slashes)", shown,
                       has_scheme(word, "nfs:") ? "nfs://HOST/EXPORT/PATH" : "iscsi://HOST/IQN/LUN");
    if (has_scheme(word, "null") || has_scheme(word, "file:"))
        return err_set(err, STATUS_USAGE, "%s: did you mean %s?", shown,
                       has_scheme(word, "null") ? "null:" : "file:/PATH");
    if (colon && colon[2] == '/')
        return err_set(err, STATUS_USAGE,
                       "%s: no such kind of target; there are nfs://HOST/EXPORT/PATH, iscsi://HOST/IQN/LUN, "
                       "/dev/NAME, /PATH, file:/PATH and null:",
                       shown);
    if (colon && colon > word)
        return err_set(err, STATUS_USAGE, "%s: an NFS file is written as nfs://%s%s (HOST/EXPORT/PATH, not HOST:/EXPORT)",
                       shown, text_safe(name, sizeof name, word, (size_t)(colon - word)),
                       text_safe(path, sizeof path, colon + 1, SIZE_MAX));
    if (has_scheme(word, "iqn.") || has_scheme(word, "eui."))
        return err_set(err, STATUS_USAGE, "%s: a LUN is written as iscsi://HOST/IQN/LUN", shown);
    if (has_scheme(word, "dev/"))
        return err_set(err, STATUS_USAGE, "%s: did you mean /%s?", shown, text_safe(name, sizeof name, word, SIZE_MAX));
    if (labelled && !*word)
        return err_set(err, STATUS_USAGE, "%s: nothing stands behind the label: was a shell variable empty?", shown);
    if (labelled && is_key(shown))
        return err_set(err, STATUS_USAGE, "%s: an option begins with --: did you mean --%s?", shown, shown);
    if (labelled && !strpbrk(word, "/:"))
        return err_set(err, STATUS_USAGE, "%s: no target stands behind the label: nfs://HOST/EXPORT/PATH, "
                       "iscsi://HOST/IQN/LUN, /dev/NAME, /PATH, file:/PATH or null: (options begin with --)", shown);
    if (labelled || strchr(word, '='))
        return err_set(err, STATUS_USAGE, "%s: LABEL= stands before a target, an option begins with --", shown);
    if (!stat(word, &st) && !S_ISDIR(st.st_mode))
        return err_set(err, STATUS_USAGE,
                       "%s: is it a target? write its whole path, beginning with '/'. Is it a pattern file? "
                       "write -p %s",
                       shown, shown);
    return err_set(err, STATUS_USAGE, "%s: neither a target nor the name of a pattern file", shown);
}

bool words_explain_pattern(const char *word, struct err *err) {
    char shown[200], folder[PATH_MAX], path[PATH_MAX + 200];
    struct stat st;
    show_word(shown, sizeof shown, word);
    if (is_pattern_file(word)) return false;
    if (strchr(word, '\\')) {
        err_set(err, STATUS_USAGE, "%s: neither a target nor a pattern file: Windows shares (SMB) are not measured; a file on NFS "
                "is nfs://HOST/EXPORT/PATH", shown);
        return true;
    }
    if (strchr(word, '/') || stat(word, &st) || S_ISDIR(st.st_mode) || !getcwd(folder, sizeof folder)) return false;
    snprintf(path, sizeof path, "%s/%s", strcmp(folder, "/") ? folder : "", word);
    err_set(err, STATUS_USAGE, "%s: no pattern file that ships, but a file in this folder. Is it a target? write its whole path, "
            "%s. Is it a pattern file? write -p %s", shown, text_safe(folder, sizeof folder, path, SIZE_MAX), shown);
    return true;
}

/* A name of a pattern file that ships is a plain word. */
static bool is_pattern_name(const char *word) {
    return !strpbrk(word, "/:=@?&") && strcmp(word, "null") != 0;
}

static int sort_word(const char *word, struct words *out, struct err *err) {
    struct word_target *t = &out->target[out->n_targets];
    char label[64], shown[200];
    const char *url = behind_label(word, label);
    show_word(shown, sizeof shown, word);
    size_t n = strlen(shown);
    if (n && shown[n - 1] == ':' && n + 2 < sizeof shown) { /* another colon follows */
        memmove(shown + 1, shown, n);
        memcpy(shown + n + 1, "'", 2);
        shown[0] = '\'';
    }
    if (url && url_is_target(url)) {
        memcpy(t->label, label, sizeof t->label);
        t->label_is_own = true;
        t->url = url;
        out->n_targets++;
    } else if (is_pattern_file(word) && (word[0] == '/' || !url_is_target(word))) {
        out->pattern[out->n_patterns++] = word;
    } else if (url_is_target(word)) {
        t->url = word;
        out->n_targets++;
    } else if (url) {
        char before[80];
        snprintf(before, sizeof before, "%s=", label);
        if (name_device(before, url, shown, err)) return -1;
        return explain(url, true, shown, err);
    } else if (strchr(word, '=') && url_is_target(strchr(word, '=') + 1)) {
        return err_set(err, STATUS_USAGE, "%s: a label has letters, digits, '_', '.' and '-' only, at most 63", shown);
    } else if (name_device("", word, shown, err)) {
        return -1;
    } else if (is_pattern_name(word)) {
        out->pattern[out->n_patterns++] = word;
    } else {
        return explain(word, false, shown, err);
    }
    return 0;
}

int words_sort(char *const *words, size_t n, struct words *out, struct err *err) {
    memset(out, 0, sizeof *out);
    out->target = calloc(n + 1, sizeof *out->target);
    out->pattern = calloc(n + 1, sizeof *out->pattern);
    if (!out->target || !out->pattern) return err_set(err, STATUS_USAGE, "out of memory");
    for (size_t i = 0; i < n; i++)
        if (sort_word(words[i], out, err)) return -1;
    return 0;
}

static bool in_use(const struct words *w, const char *label) {
    for (size_t i = 0; i < w->n_targets; i++)
        if (!strcmp(w->target[i].label, label)) return true;
    return false;
}

int words_label(struct words *w, const char *(*name_of)(const char *url, struct err *err), struct err *err) {
    for (size_t i = 0; i < w->n_targets; i++) {
        struct word_target *t = &w->target[i];
        if (t->label_is_own) continue;
        const char *name = name_of(t->url, err);
        char label[64];
        if (!name) return -1;
        snprintf(label, sizeof label, "%s", name);
        for (unsigned k = 2; in_use(w, label); k++) snprintf(label, sizeof label, "%.50s-%u", name, k);
        memcpy(t->label, label, sizeof t->label);
    }
    return 0;
}

void words_free(struct words *w) {
    free(w->target);
    free(w->pattern);
    memset(w, 0, sizeof *w);
}
