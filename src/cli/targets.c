/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/targets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/text.h"
#include "base/url.h"
#include "cli/files.h"
#include "cli/show.h"
#include "pattern/pattern.h"

static int no_memory(struct err *err) {
    return err_set(err, STATUS_USAGE, "out of memory");
}

/* ---- labels ---- */

static const char *name_of(const char *text, struct err *err) {
    struct url url;
    const struct backend *backend = NULL;
    char shown[200];
    if (url_parse(text, &url, err))
        err_prefix(err, "%s", show_word(shown, sizeof shown, text));
    else
        backend = backend_for_url(&url, err);
    url_free(&url);
    return backend ? backend->name : NULL;
}

struct target *targets_find(const struct targets *targets, const char *label) {
    for (unsigned i = 0; i < targets->n; i++)
        if (!strcmp(targets->target[i]->label, label)) return targets->target[i];
    return NULL;
}

const char *targets_labels(const struct targets *targets, char *buf, size_t len) {
    size_t at = 0;
    if (len) buf[0] = '\0';
    for (unsigned i = 0; i < targets->n && at < len; i++)
        at += (size_t)snprintf(buf + at, len - at, "%s%s", i ? ", " : "", targets->target[i]->label);
    return buf;
}

/* ---- keys ---- */

/* A key that the backend does not know: does it belong to the pattern, or to another kind of target? */
static int wrong_key(const struct backend *backend, const char *key, struct err *err) {
    const struct backend *const *all = backend_all();
    char shown[100];
    text_safe(shown, sizeof shown, key, strlen(key));
    const struct option_entry *load = option_find(pattern_options, key);
    if (load)
        return err_set(err, STATUS_USAGE,
                       "%s belongs to the pattern, not to a target: write --%s %s, or put it into the pattern "
                       "file",
                       load->name, load->name, load->value ? load->value : "VALUE");
    char kinds[100];
    size_t at = 0;
    for (size_t i = 0; all[i] && at < sizeof kinds; i++)
        if (option_find(all[i]->options, key))
            at += (size_t)snprintf(kinds + at, sizeof kinds - at, "%s%s", at ? ", " : "", all[i]->name);
    if (at)
        return err_set(err, STATUS_USAGE, "%s is a key of %s targets; this is a %s target", shown, kinds,
                       backend->name);
    const char *near = option_nearest(backend->options, key);
    return err_set(err, STATUS_USAGE, "unknown key %s%s%s%s", shown, near ? ": did you mean " : "", near ? near : "",
                   near ? "?" : " (samedisk run --help lists them)");
}

static int set_key(const struct member *m, const char *key, const char *value, struct err *err) {
    const struct option_entry *e = option_find(m->backend->options, key);
    if (!e) return wrong_key(m->backend, key, err);
    if (value && !*value)
        return err_set(err, STATUS_USAGE, "%s= has an empty value: was a shell variable empty?", e->name);
    return option_set(m->backend->options, m->conf, key, value, err);
}

static int set_target(struct target *t, const char *key, const char *value, struct err *err) {
    for (unsigned m = 0; m < t->n_members; m++)
        if (set_key(&t->member[m], key, value, err)) return err_prefix(err, "%s", t->label);
    return 0;
}

/* [LABEL.]KEY=VALUE: keys have no dot, labels may have some. A key for all has to fit all: else it would be a silent
 * difference between the targets. */
static int apply_set(struct targets *targets, const char *text, struct err *err) {
    size_t n = strcspn(text, "=");
    char name[160], labels[400];
    if (!text[n] || !n || n >= sizeof name)
        return err_set(err, STATUS_USAGE, "--set %s: write --set [LABEL.]KEY=VALUE",
                       show_word(name, sizeof name, text));
    snprintf(name, sizeof name, "%.*s", (int)n, text);
    char *dot = strrchr(name, '.');
    const char *value = text + n + 1;
    if (dot) {
        *dot = '\0';
        struct target *t = targets_find(targets, name);
        if (!t)
            return err_set(err, STATUS_USAGE, "--set: no target has the label %s; there are: %s",
                           text_safe((char[100]){0}, 100, name, strlen(name)),
                           targets_labels(targets, labels, sizeof labels));
        return set_target(t, dot + 1, value, err) ? err_prefix(err, "--set") : 0;
    }
    for (unsigned i = 0; i < targets->n; i++) {
        if (set_target(targets->target[i], name, value, err) == 0) continue;
        if (targets->n == 1 || option_find(pattern_options, name)) return err_prefix(err, "--set");
        return err_set(err, STATUS_USAGE,
                       "--set: %s\nA key for one target is written with its label: --set LABEL.%s=VALUE", err->msg,
                       text_safe((char[100]){0}, 100, name, strlen(name)));
    }
    return 0;
}

/* ---- making ---- */

static int configure(struct member *m, const struct url *url, struct err *err) {
    m->url = strdup(url->text);
    m->conf = calloc(1, m->backend->conf_size ? m->backend->conf_size : 1);
    if (!m->url || !m->conf) return no_memory(err);
    if (option_defaults(m->backend->options, m->conf, err) || m->backend->configure(url, m->conf, err)) return -1;
    for (size_t i = 0; i < url->n_keys; i++)
        if (set_key(m, url->keys[i].name, url->keys[i].value, err)) return -1;
    return 0;
}

static bool has_secret(const struct backend *backend, const struct url *url) {
    for (size_t i = 0; i < url->n_keys; i++) {
        const struct option_entry *e = option_find(backend->options, url->keys[i].name);
        if (e && e->type == OPTION_SECRET) return true;
    }
    return url->password != NULL;
}

/* A new file whose name ends in "?KEY=VALUE" is not what anybody means. */
static int check_bare_path(const struct url *url, const struct backend *backend, const char *shown, struct err *err) {
    const char *query = strchr(url->path, '?');
    char key[64];
    if (strcmp(url->scheme, "/") != 0 || !query || access(url->path, F_OK) == 0) return 0;
    size_t n = strcspn(query + 1, "=");
    if (!query[1 + n] || n == 0 || n >= sizeof key) return 0;
    snprintf(key, sizeof key, "%.*s", (int)n, query + 1);
    if (!option_find(backend->options, key)) return 0;
    return err_set(err, STATUS_USAGE, "%s: a bare path has no keys behind it: write file:%s, or --set LABEL.KEY=VALUE", shown,
                   shown);
}

/* `file`: the number of it, where the URL stands for several; else -1. */
static int add_member(struct targets *out, struct target *t, const char *text, int file, struct err *err) {
    struct url url;
    char shown[200];
    int rc = -1;
    show_word(shown, sizeof shown, text);
    if (url_parse(text, &url, err)) {
        err_prefix(err, "%s", shown);
        goto done;
    }
    const struct backend *backend = backend_for_url(&url, err);
    if (!backend || (!strcmp(backend->name, "file") && check_bare_path(&url, backend, shown, err))) goto done;
    if (t->n_members == TARGET_MEMBERS) {
        err_set(err, STATUS_USAGE, "%s: more than %d members", t->label, TARGET_MEMBERS);
        goto done;
    }
    if (t->n_members && t->member[0].backend != backend) {
        err_set(err, STATUS_USAGE, "%s: its members are of one kind, but one is %s and one is %s", t->label,
                t->member[0].backend->name, backend->name);
        goto done;
    }
    struct member *m = &t->member[t->n_members++];
    m->backend = backend;
    if (has_secret(backend, &url)) out->password_in_url = true;
    if (file >= 0 && files_rename(&url, (unsigned)file, err) != 0) goto done;
    rc = configure(m, &url, err) ? err_prefix(err, "%s", shown) : 0;
done:
    url_free(&url);
    return rc;
}

static struct target *add_target(struct targets *out, const struct word_target *word, struct clock *clock) {
    struct target *t = calloc(1, sizeof *t);
    if (!t) return NULL;
    memcpy(t->label, word->label, sizeof t->label);
    t->clock = clock;
    out->label_is_own[out->n] = word->label_is_own;
    out->target[out->n++] = t;
    return t;
}

static int check_all(const struct targets *targets, struct err *err) {
    for (unsigned i = 0; i < targets->n; i++) {
        const struct target *t = targets->target[i];
        for (unsigned m = 0; m < t->n_members; m++)
            if (t->member[m].backend->check && t->member[m].backend->check(t->member[m].conf, err))
                return err_prefix(err, "%s", t->label);
    }
    return 0;
}

/* files[i]: how many members word i stands for. */
static int build(const struct words *words, const unsigned *files, const struct options_list *set, struct clock *clock,
                 struct targets *out, struct err *err) {
    memset(out, 0, sizeof *out);
    out->target = calloc(words->n_targets + 1, sizeof *out->target);
    out->label_is_own = calloc(words->n_targets + 1, sizeof *out->label_is_own);
    if (!out->target || !out->label_is_own) return no_memory(err);
    for (size_t i = 0; i < words->n_targets; i++) {
        const char *url = words->target[i].url;
        struct target *t = targets_find(out, words->target[i].label);
        if (!t) t = add_target(out, &words->target[i], clock);
        if (!t) return no_memory(err);
        for (unsigned k = 0; k < files[i]; k++)
            if (add_member(out, t, url, files[i] > 1 ? (int)k : -1, err)) return -1;
    }
    for (size_t i = 0; i < set->n; i++)
        if (apply_set(out, set->item[i], err)) return -1;
    return 0;
}

/* With one member for each word: what the keys of each say. True: some stand for several. */
static bool count_files(const struct words *words, const struct targets *targets, unsigned *files) {
    bool several = false;
    for (size_t i = 0; i < words->n_targets; i++) {
        const char *label = words->target[i].label;
        unsigned before = 0;
        for (size_t k = 0; k < i; k++) before += !strcmp(words->target[k].label, label);
        files[i] = files_wanted(&targets_find(targets, label)->member[before]);
        several |= files[i] > 1;
    }
    return several;
}

int targets_make(struct words *words, const struct options_list *set, struct clock *clock, struct targets *out,
                 struct err *err) {
    memset(out, 0, sizeof *out);
    if (words_label(words, name_of, err)) return -1;
    unsigned *files = calloc(words->n_targets + 1, sizeof *files);
    if (!files) return no_memory(err);
    for (size_t i = 0; i < words->n_targets; i++) files[i] = 1;
    int rc = build(words, files, set, clock, out, err);
    if (rc == 0 && count_files(words, out, files)) {
        targets_free(out);
        rc = build(words, files, set, clock, out, err);
    }
    free(files);
    return rc ? rc : check_all(out, err);
}

unsigned targets_open(struct targets *targets) {
    unsigned lost = 0;
    for (unsigned i = 0; i < targets->n; i++) {
        struct target *t = targets->target[i];
        struct err err;
        if (target_open_read(t, &err) == 0) continue;
        (void)limits_blame(&err);
        t->lost = true;
        /* The reason stands beside the label, in tables and lists. */
        size_t n = strlen(t->label);
        if (!strncmp(err.msg, t->label, n) && !strncmp(err.msg + n, ": ", 2))
            memmove(err.msg, err.msg + n + 2, strlen(err.msg + n + 2) + 1);
        for (char *c = err.msg; *c; c++)
            if (*c == '\n') *c = ' ';
        text_safe(t->lost_reason, sizeof t->lost_reason, err.msg, strlen(err.msg));
        lost++;
    }
    return lost;
}

void targets_free(struct targets *targets) {
    for (unsigned i = 0; i < targets->n; i++) {
        target_close(targets->target[i]);
        target_free(targets->target[i]);
        free(targets->target[i]);
    }
    free(targets->target);
    free(targets->label_is_own);
    memset(targets, 0, sizeof *targets);
}
