/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/args.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/backend.h"
#include "base/text.h"
#include "base/units.h"
#include "base/url.h"
#include "cli/command.h"
#include "cli/show.h"
#include "pattern/pattern.h"

#define KNOWN_MAX 256

/* An option as it is being read: "--name", "--name=value", "-n". */
struct option_word {
    char name[64];     /* without dashes; "" if it is too long to be one */
    const char *value; /* behind the '='; NULL: none */
    bool single;       /* one dash */
};

static void read_word(const char *word, struct option_word *o) {
    o->single = word[1] != '-';
    word += o->single ? 1 : 2;
    size_t n = strcspn(word, "=");
    o->value = word[n] ? word + n + 1 : NULL;
    if (n >= sizeof o->name) n = 0;
    memcpy(o->name, word, n);
    o->name[n] = '\0';
}

/* A flag may stand bare, so a value for it has to stand behind '='. */
static bool is_flag(const struct option_entry *e) {
    return e->type == OPTION_BOOL || (e->value && (!strcmp(e->value, "0|1") || !strcmp(e->value, "1")));
}

/* Short names are single letters behind one dash, long ones stand behind two. */
static const struct option_entry *find_option(const struct option_word *o) {
    const struct option_entry *e = option_find(options_table, o->name);
    if (!e) return NULL;
    return (strlen(o->name) == 1) == o->single ? e : NULL;
}

/* ---- what was meant ---- */

/* fio's second names are taken where they mean one thing: "timeout" is the window there, and a target's patience here.
 */
static int ambiguous(const struct option_entry *key, const struct option_word *o, struct err *err) {
    const struct backend *const *all = backend_all();
    if (!key->alias || strcmp(key->alias, o->name) != 0) return 0;
    for (size_t i = 0; all[i]; i++)
        if (option_find(all[i]->options, o->name))
            return err_set(err, STATUS_USAGE,
                           "--%s may mean two things: write --%s %s for the pattern's, --set LABEL.%s=%s for that "
                           "of a target",
                           o->name, key->name, key->value, o->name, key->value);
    return 0;
}

static int wrong_place(const struct option_word *o, struct err *err) {
    const struct backend *const *all = backend_all();
    char who[200] = "";
    const struct option_entry *key = NULL;
    for (size_t i = 0; all[i]; i++) {
        const struct option_entry *e = option_find(all[i]->options, o->name);
        if (!e) continue;
        key = e;
        snprintf(who + strlen(who), sizeof who - strlen(who), "%s%s", who[0] ? ", " : "", all[i]->name);
    }
    if (!key) return 0;
    return err_set(err, STATUS_USAGE, "--%s is an access key (of targets: %s), not an option: write --set LABEL.%s=%s",
                   o->name, who, key->name,
                   o->value && key->type != OPTION_SECRET ? o->value
                   : key->value                           ? key->value
                                                          : "VALUE");
}

static const char *nearest_of(const struct command *command, const char *name) {
    const char *known[KNOWN_MAX + 1];
    size_t n = 0;
    for (const struct option_entry *e = options_table; e->name && n < KNOWN_MAX; e++)
        if (options_has(command->options, e)) known[n++] = e->name;
    for (const struct option_entry *e = pattern_options; command->pattern_keys && e->name && n < KNOWN_MAX; e++)
        known[n++] = e->name;
    known[n] = NULL;
    return option_nearest_name(name, known);
}

static int unknown(const struct command *command, const struct option_word *o, const char *word, struct err *err) {
    char shown[100], dashed[64];
    if (option_find(options_table, o->name) && o->single)
        return err_set(err, STATUS_USAGE, "unknown option -%s: did you mean --%s?", o->name, o->name);
    if (wrong_place(o, err)) return -1;
    const char *near = nearest_of(command, o->name);
    if (!o->name[0])
        show_word(shown, sizeof shown, word);
    else
        snprintf(shown, sizeof shown, "%s", o->single ? "-" : "--");
    if (o->name[0]) text_safe(shown + strlen(shown), sizeof shown - strlen(shown), o->name, strlen(o->name));
    if (!near)
        return err_set(err, STATUS_USAGE, "unknown option %s (samedisk %s --help lists them)", shown, command->name);
    snprintf(dashed, sizeof dashed, "%s", near);
    for (char *c = dashed; *c; c++)
        if (*c == '_' && !option_find(pattern_options, near)) *c = '-';
    return err_set(err, STATUS_USAGE, "unknown option %s: did you mean --%s?", shown, dashed);
}

/* ---- taking ---- */

/* "1" behind a flag is its value: no target and no pattern file is called so. */
static bool is_switch(const char *word) {
    struct err ignored;
    int value;
    return units_parse_bool(word, &value, &ignored) == 0;
}

/* The value was forgotten, and a target stands where it belongs. A bare path may be the value of what takes a file. */
static bool is_swallowed(const struct option_entry *e, const char *word) {
    const char *equals = strchr(word, '=');
    bool file = e->value && !strcmp(e->value, "FILE"), pair = e->value && strchr(e->value, '=');
    if (!strcmp(e->name, "json")) return false; /* has an answer of its own */
    if (word[0] == '/') return !file && strcmp(e->name, "destroy") != 0; /* likewise */
    if (url_is_target(word)) return true;
    return !pair && equals && text_is_label(strndupa(word, (size_t)(equals - word))) && url_is_target(equals + 1) &&
           !(file && equals[1] == '/');
}

/* The value: behind '=', or the next word, which is then used up. */
static int take_value(const struct option_entry *e, const struct option_word *o, int argc, char **argv, int *i,
                      const char **value, struct err *err) {
    char shown[200];
    *value = o->value;
    if (!*value && is_flag(e)) {
        if (*i + 1 < argc && is_switch(argv[*i + 1])) *value = argv[++*i];
        return 0;
    }
    if (!*value && *i + 1 < argc && strncmp(argv[*i + 1], "--", 2) != 0) {
        if (is_swallowed(e, argv[*i + 1]))
            return err_set(err, STATUS_USAGE, "%s%s has no value (%s): what follows it, %s, is a target", o->single ? "-" : "--",
                           o->name, e->value ? e->value : "VALUE", show_word(shown, sizeof shown, argv[*i + 1]));
        *value = argv[++*i];
    }
    if (*value && !**value)
        return err_set(err, STATUS_USAGE, "%s%s has an empty value: was a shell variable empty?", o->single ? "-" : "--",
                       o->name);
    if (*value) return 0;
    return err_set(err, STATUS_USAGE, "%s%s needs a value: %s", o->single ? "-" : "--", o->name,
                   e->value ? e->value : "VALUE");
}

static int add_key(struct args *args, const char *key, const char *value, struct err *err) {
    for (size_t i = 0; !strcmp(key, "name") && i < args->n_keys; i++)
        if (!strcmp(args->keys[i].key, key))
            return err_set(err, STATUS_USAGE, "--name stands twice: the command line makes one pattern; several are the "
                           "sections of a pattern file (samedisk-patterns(5))");
    struct pattern_override *keys = realloc(args->keys, (args->n_keys + 1) * sizeof *keys);
    if (!keys) return err_set(err, STATUS_USAGE, "out of memory");
    args->keys = keys;
    keys[args->n_keys++] = (struct pattern_override){key, value};
    return 0;
}

/* A target or a pattern file where a word of fio's has its value: nobody knows which of the two is meant. */
static bool is_in_the_way(const char *word) {
    static const struct option_entry any = {.name = ""};
    return is_swallowed(&any, word) || text_glob("*.ini", word);
}

/* fio's words get the answer that a pattern file gives them: a note, or the reason why not. */
static int take_fios(const struct option_word *o, int argc, char **argv, int *i, struct args *args, struct err *err) {
    const char *value = o->value, *next = *i + 1 < argc && argv[*i + 1][0] != '-' ? argv[*i + 1] : NULL;
    bool flag = pattern_is_fios_switch(o->name), in_the_way = !value && next && !flag && is_in_the_way(next);
    char note[600], shown[200], **all = realloc(args->notes, (args->n_notes + 1) * sizeof *all);
    if (!all) return err_set(err, STATUS_USAGE, "out of memory");
    args->notes = all;
    if (!value && next && (flag ? is_switch(next) : !in_the_way)) value = argv[++*i];
    if (pattern_set(NULL, o->name, value, note, sizeof note, err))
        return err_set(err, err->status, "--%s", err->msg); /* which begins with the name */
    if (in_the_way)
        return err_set(err, STATUS_USAGE, "--%s is fio's and has no value (what follows it, %s, is none): leave it out",
                       o->name, show_word(shown, sizeof shown, next));
    if (note[0] && asprintf(&all[args->n_notes], "--%s", note) >= 0) args->n_notes++;
    return 0;
}

static int take_option(const struct command *command, int argc, char **argv, int *i, struct args *args,
                       struct err *err) {
    struct option_word o;
    const char *word = argv[*i], *value;
    read_word(word, &o);
    const struct option_entry *e = find_option(&o);
    if (e && options_has(command->options, e)) {
        if (take_value(e, &o, argc, argv, i, &value, err)) return -1;
        if (option_set(options_table, &args->options, e->name, value, err) == 0) return 0;
        return err_set(err, err->status, "--%s", err->msg); /* which begins with the name */
    }
    const struct option_entry *key = o.single ? NULL : option_find(pattern_options, o.name);
    if (key && command->pattern_keys) {
        if (ambiguous(key, &o, err) || take_value(key, &o, argc, argv, i, &value, err)) return -1;
        return add_key(args, key->name, value ? value : "1", err);
    }
    if (command->pattern_keys && !o.single && pattern_is_fios(o.name)) return take_fios(&o, argc, argv, i, args, err);
    if (e || key)
        return err_set(err, STATUS_USAGE, "samedisk %s has no option --%s", command->name, (e ? e : key)->name);
    return unknown(command, &o, word, err);
}

int args_parse(const struct command *command, int argc, char **argv, struct args *args, struct err *err) {
    bool options_end = false;
    memset(args, 0, sizeof *args);
    if (options_init(&args->options, err)) return -1;
    args->words = calloc((size_t)argc + 1, sizeof *args->words);
    if (!args->words) return err_set(err, STATUS_USAGE, "out of memory");
    for (int i = 0; i < argc; i++) {
        if (!options_end && !strcmp(argv[i], "--"))
            options_end = true;
        else if (!options_end && argv[i][0] == '-' && argv[i][1]) {
            if (take_option(command, argc, argv, &i, args, err)) return -1;
        } else if (!argv[i][0])
            return err_set(err, STATUS_USAGE, "an empty word (a shell variable without a value?)");
        else
            args->words[args->n_words++] = argv[i];
    }
    return 0;
}

void args_free(struct args *args) {
    options_free(&args->options);
    free(args->keys);
    free(args->words);
    for (size_t i = 0; i < args->n_notes; i++) free(args->notes[i]);
    free(args->notes);
    memset(args, 0, sizeof *args);
}
