/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/run_plan.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "backends/stripe.h"
#include "base/text.h"
#include "base/units.h"
#include "base/url.h"
#include "cli/command.h"
#include "cli/dirs.h"
#include "cli/output.h"
#include "cli/plan_text.h"
#include "cli/show.h"
#include "engine/settle.h"

void run_note(const struct run_plan *r, const char *fmt, ...) {
    char text[1400];
    va_list ap;
    if (r->args->options.quiet) return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    fprintf(stderr, "samedisk: %s\n", text);
}

/* ---- patterns ---- */

static int load_file(struct run_plan *r, const char *file, const char *const *dirs, bool is_file, struct err *err) {
    const struct args *a = r->args;
    char *path = NULL;
    int rc = -1;
    /* -p names a file, so a plain name is one in this folder. */
    if (asprintf(&path, "%s%s", is_file && !strchr(file, '/') ? "./" : "", file) < 0)
        return err_set(err, STATUS_USAGE, "out of memory");
    rc = set_load(&r->plan.patterns, path, dirs, a->keys, a->n_keys, a->options.only, err);
    free(path);
    return rc;
}

/* What is no pattern file may be a target that is not written as one. */
static int load_word(struct run_plan *r, const char *word, const char *const *dirs, struct err *err) {
    struct err why;
    if (load_file(r, word, dirs, false, err) == 0) return 0;
    if (words_explain_pattern(word, &why)) *err = why;
    return -1;
}

/* --read-only leaves the reading patterns. */
static int drop_writers(struct run_plan *r, struct err *err) {
    struct pattern_set *set = &r->plan.patterns;
    size_t kept = 0, all = set->n;
    char name[100];
    for (size_t i = 0; i < all; i++) {
        if (pattern_writes(&set->pattern[i])) {
            run_note(r, "--read-only leaves out %s", text_safe(name, sizeof name, set->pattern[i].name, SIZE_MAX));
            pattern_free(&set->pattern[i]);
        } else {
            if (kept != i) set->pattern[kept] = set->pattern[i];
            kept++;
        }
    }
    set->n = kept;
    r->plan.read_only = true;
    return kept ? 0 : err_set(err, STATUS_USAGE, "--read-only leaves no pattern to run: all of them write");
}

/* Without a pattern file. --only chooses among the patterns of a file, and so means the one that is always there. */
static int load_default(struct run_plan *r, const char *const *dirs, struct err *err) {
    const struct args *a = r->args;
    if (a->options.only || !set_keys_are_a_pattern(a->keys, a->n_keys)) return load_file(r, "quick", dirs, false, err);
    if (set_from_keys(&r->plan.patterns, a->keys, a->n_keys, err)) return -1;
    r->keys_alone = true;
    return 0;
}

static int load_patterns(struct run_plan *r, struct err *err) {
    const char *dirs[DIRS_MAX];
    const struct options *o = &r->args->options;
    dirs_of_patterns(dirs);
    for (size_t i = 0; i < r->words.n_patterns; i++)
        if (load_word(r, r->words.pattern[i], dirs, err)) return -1;
    for (size_t i = 0; i < o->pattern_files.n; i++)
        if (load_file(r, o->pattern_files.item[i], dirs, true, err)) return -1;
    if (!r->words.n_patterns && !o->pattern_files.n && load_default(r, dirs, err)) return -1;
    for (size_t i = 0; i < r->args->n_notes; i++) run_note(r, "%s", r->args->notes[i]);
    if (r->plan.patterns.notes) {
        char *save, *line = strtok_r(r->plan.patterns.notes, "\n", &save);
        for (; line; line = strtok_r(NULL, "\n", &save)) run_note(r, "%s", line);
    }
    return o->read_only ? drop_writers(r, err) : 0;
}

/* ---- targets ---- */

static int check_labels(struct run_plan *r, struct err *err) {
    const struct options *o = &r->args->options;
    char labels[400], shown[100];
    if (!o->reference || targets_find(&r->targets, o->reference)) return 0;
    return err_set(err, STATUS_USAGE, "--reference %s: no target has this label; there are: %s",
                   text_safe(shown, sizeof shown, o->reference, SIZE_MAX),
                   targets_labels(&r->targets, labels, sizeof labels));
}

/* A label, and behind '=' a list: each of them says something. */
static bool has_empty_word(const char *text) {
    size_t n = strcspn(text, "=");
    if (n == 0) return true;
    const char *at = text[n] ? text + n : NULL; /* the '=' or ',' before a word */
    while (at && strspn(at + 1, " \t") != strcspn(at + 1, ",")) at = strchr(at + 1, ',');
    return at != NULL;
}

/* A target where its label belongs: the label that it has, or how it gets one. */
static int destroy_target(const struct run_plan *r, const char *word, struct err *err) {
    char shown[200];
    show_word(shown, sizeof shown, word);
    for (unsigned t = 0; t < r->targets.n; t++)
        for (unsigned m = 0; m < r->targets.target[t]->n_members; m++)
            if (r->targets.label_is_own[t] && !strcmp(r->targets.target[t]->member[m].url, word))
                return err_set(err, STATUS_USAGE, "--destroy %s: this is a target, and --destroy takes its label: --destroy %s",
                               shown, r->targets.target[t]->label);
    return err_set(err, STATUS_USAGE, "--destroy %s: this is a target, and --destroy takes a label that you gave it: "
                   "LABEL=%s among the targets, and --destroy LABEL", shown, shown);
}

/* Only a label that the user wrote can be consented with: an automatic one moves to another disk when the order of the
 * words changes. */
static int read_destroy(struct run_plan *r, struct err *err) {
    const struct options_list *list = &r->args->options.destroy;
    char labels[400], shown[100], url[200];
    r->destroy = calloc(list->n + 1, sizeof *r->destroy);
    if (!r->destroy) return err_set(err, STATUS_USAGE, "out of memory");
    for (size_t i = 0; i < list->n; i++) {
        char *what = strchr(list->item[i], '=');
        unsigned t = 0;
        text_safe(shown, sizeof shown, list->item[i], SIZE_MAX);
        if (has_empty_word(list->item[i]))
            return err_set(err, STATUS_USAGE, "--destroy %s names nothing%s: was a shell variable empty?", shown,
                           !what ? "" : what == list->item[i] ? " before the '='" : what[1] ? " in a part of it" : "");
        if (url_is_target(list->item[i])) return destroy_target(r, list->item[i], err);
        if (what) *what++ = '\0';
        r->destroy[i] = (struct safety_destroy){list->item[i], what};
        text_safe(shown, sizeof shown, list->item[i], SIZE_MAX);
        while (t < r->targets.n && strcmp(r->targets.target[t]->label, list->item[i]) != 0) t++;
        if (t == r->targets.n)
            return err_set(err, STATUS_USAGE, "--destroy %s: no target has this label; there are: %s", shown,
                           targets_labels(&r->targets, labels, sizeof labels));
        if (!r->targets.label_is_own[t])
            return err_set(err, STATUS_USAGE,
                           "--destroy %s: this label was given automatically, and may be another disk's next time; "
                           "write one of your own before the target: LABEL=%s, and --destroy LABEL",
                           shown, show_word(url, sizeof url, r->targets.target[t]->member[0].url));
    }
    return 0;
}

/* Opens all; what cannot be opened stops the plan, or with --keep-going is left out. */
static enum status open_targets(struct run_plan *r) {
    const struct options *o = &r->args->options;
    r->lost = targets_open(&r->targets);
    for (unsigned i = 0; i < r->targets.n; i++) {
        const struct target *t = r->targets.target[i];
        if (!t->lost) continue;
        struct err err;
        err_set(&err, STATUS_TARGET, "%s%s: %s", o->keep_going ? "left out: " : "", t->label, t->lost_reason);
        complain(&err);
    }
    if (r->lost && (!o->keep_going || r->lost == r->targets.n)) return STATUS_TARGET;
    r->plan.targets = calloc(r->targets.n + 1, sizeof(struct target *));
    if (!r->plan.targets) return STATUS_USAGE;
    for (unsigned i = 0; i < r->targets.n; i++)
        if (!r->targets.target[i]->lost) r->plan.targets[r->plan.n_targets++] = r->targets.target[i];
    r->reference = o->reference ? o->reference : r->plan.targets[0]->label;
    return STATUS_OK;
}

/* ---- the plan ---- */

static uint64_t random_seed(void) {
    uint32_t seed = 0; /* short enough to be typed again */
    if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed) seed = (uint32_t)clock_now(&(struct clock){0});
    return seed;
}

/* --time is a number of rounds, too. */
static int check_time(const struct run_plan *r, struct err *err) {
    for (size_t i = 0; r->args->options.time && i < r->args->n_keys; i++)
        if (!strcmp(r->args->keys[i].key, "rounds"))
            return err_set(err, STATUS_USAGE, "--time runs as many rounds as fit into it, --rounds %s says how many: give one of "
                           "the two", r->args->keys[i].value);
    return 0;
}

static int resolve(struct run_plan *r, struct err *err) {
    const struct options *o = &r->args->options;
    r->plan.nonce = (uint32_t)random_seed();
    r->plan.seed = o->seed == SEED_RANDOM ? random_seed() : o->seed;
    if (plan_resolve(&r->plan, err)) return -1;
    return o->time ? plan_fit_time(&r->plan, o->time, err) : 0;
}

static void hint_labels(const struct run_plan *r) {
    char url[200];
    for (size_t i = 0; i < r->report.n; i++) {
        const struct safety_decision *d = &r->report.decision[i];
        if (d->verdict != SAFETY_REFUSED || !strstr(d->text, "--destroy")) continue;
        for (unsigned t = 0; t < r->targets.n; t++)
            if (r->targets.target[t] == r->plan.targets[d->target] && !r->targets.label_is_own[t])
                fprintf(
                    stderr,
                    "samedisk: the label %s was given automatically; --destroy needs one that you wrote: LABEL=%s\n",
                    r->targets.target[t]->label,
                    show_word(url, sizeof url, r->targets.target[t]->member[d->member].url));
    }
}

/* With several members an I/O is not split at the end of a stripe but runs on: how far beyond the plan's range. */
static uint32_t overrun(const struct plan *plan) {
    uint32_t most = 0;
    for (size_t i = 0; i < plan->patterns.n; i++) {
        const struct pattern *p = &plan->patterns.pattern[i];
        uint32_t size = pattern_max_io(p);
        /* One size that cuts both stripes and offsets evenly never crosses an end. */
        bool inside =
            p->n_rows == 1 && STRIPE_BYTES % size == 0 && p->row[0].align % size == 0 && p->offset % size == 0;
        if (pattern_writes(p) && !inside && size > most) most = size;
    }
    return most;
}

/* One identity, and yet two objects: whoever gave consent by it must know. */
static void say_sameness(const struct run_plan *r) {
    for (unsigned a = 0; a < r->report.same.n; a++)
        for (unsigned b = 0; b < a; b++) {
            const struct sameness_pair *p = sameness_of(&r->report.same, a, b);
            const char *x = r->plan.targets[b]->label, *y = r->plan.targets[a]->label;
            if (p->verdict == SAMENESS_DIFFERENT)
                run_note(r, "%s and %s bear one identity, but are two objects (%s): each needs its own consent and is "
                         "filled by itself", x, y, p->how);
            else if (p->verdict == SAMENESS_UNCONFIRMED)
                run_note(r, "%s and %s bear one identity, and nothing confirms that they are one object (%s): each needs "
                         "its own consent", x, y, p->how);
        }
}

/* A large range takes a while, before there is any other sign of life. */
static void say_looking(void *arg, const char *label, uint64_t done, uint64_t total) {
    struct run_plan *r = arg;
    int64_t now = clock_now(&r->clock);
    char size[32];
    if (now - r->said_looking < 5 * NS_PER_SEC) return;
    r->said_looking = now;
    run_note(r, "%s: looking at what lies on it, %.0f %% of %s", label, total ? 100.0 * (double)done / (double)total : 0,
             units_size_human(size, sizeof size, total));
}

static enum status examine(struct run_plan *r) {
    struct err err;
    r->wish = (struct safety_wish){.targets = r->plan.targets,
                                   .n_targets = r->plan.n_targets,
                                   .writes = plan_writes(&r->plan),
                                   .needed_size = plan_needed_size(&r->plan),
                                   .overrun = overrun(&r->plan),
                                   .destroy = r->destroy,
                                   .n_destroy = r->args->options.destroy.n,
                                   .allow_full = r->args->options.allow_full,
                                   .looking = say_looking,
                                   .arg = r,
                                   .sysfs = "/sys",
                                   .proc = "/proc"};
    plan_written_range(&r->plan, &r->wish.write_from, &r->wish.write_to);
    bool refused = safety_examine(&r->wish, &r->report, &err) != 0;
    r->plan.same = &r->report.same;
    r->plan.warm_instead_of_asis = sameness_any(&r->report.same);
    if (r->wish.writes) say_sameness(r);
    if (!refused) return STATUS_OK;
    return r->report.refused ? err.status : complain(&err);
}

void run_plan_say_refused(const struct run_plan *r) {
    for (size_t i = 0; i < r->report.n; i++) {
        struct err refusal = {.status = STATUS_USAGE};
        if (r->report.decision[i].verdict != SAFETY_REFUSED) continue;
        snprintf(refusal.msg, sizeof refusal.msg, "%s", r->report.decision[i].text);
        complain(&refusal);
    }
    hint_labels(r);
}

static void announce(const struct run_plan *r) {
    char duration[400], shared[600], name[200];
    if (r->args->options.dry_run) return;
    if (r->keys_alone)
        run_note(r, "one pattern, as the keys say: '%s' (the patterns of quick with these keys are samedisk run quick ...)",
                 text_safe(name, sizeof name, r->plan.patterns.pattern[0].name, SIZE_MAX));
    plan_text_duration(&r->plan, duration, sizeof duration);
    run_note(r, "%s", duration);
    for (size_t i = 0; i < r->report.n; i++)
        if (r->report.decision[i].verdict != SAFETY_READ) run_note(r, "%s", r->report.decision[i].text);
    if (r->plan.warm_instead_of_asis)
        run_note(r, "%s: its cache is warmed before every run (cache=asis becomes warm)",
                 plan_text_shared(&r->plan, r->plan.same, shared, sizeof shared));
}

static void first_looks(struct run_plan *r) {
    char what[100];
    for (unsigned i = 0; i < r->plan.n_targets; i++) {
        snprintf(what, sizeof what, "%s: how long a read takes", r->plan.targets[i]->label);
        phase_is(r->phase, what);
        settle_first_look(r->plan.targets[i], r->plan.seed + i);
    }
}

/* Is one of the words meant to be one? */
static int no_target(struct run_plan *r, struct err *err) {
    const char *dirs[DIRS_MAX];
    dirs_of_patterns(dirs);
    for (size_t i = 0; i < r->words.n_patterns; i++)
        if (load_word(r, r->words.pattern[i], dirs, err)) return -1;
    const char *json = r->args->options.json;
    char shown[200];
    if (json && (strchr(json, ':') || strchr(json, '/')))
        return err_set(err, STATUS_USAGE, "no target: --json took %s as the name of its file; --json FILE TARGET is needed",
                       text_safe(shown, sizeof shown, json, strlen(json)));
    return err_set(err, STATUS_USAGE,
                   "no target: add nfs://HOST/EXPORT/PATH, iscsi://HOST/IQN/LUN, /dev/NAME or /PATH "
                   "(samedisk --help)");
}

static int read_line(struct run_plan *r, struct err *err) {
    const struct options *o = &r->args->options;
    if (words_sort(r->args->words, r->args->n_words, &r->words, err)) return -1;
    if (check_time(r, err)) return -1;
    if (!r->words.n_targets) return no_target(r, err);
    if (o->json && !strcmp(o->json, "-"))
        return err_set(err, STATUS_USAGE, "--json -: use --format json for the result on standard output");
    for (size_t i = 0; i < o->note.n; i++)
        if (strcspn(o->note.item[i], "=") == 0 || !strchr(o->note.item[i], '='))
            return err_set(err, STATUS_USAGE, "--note %s: write --note KEY=VALUE",
                           text_safe((char[100]){0}, 100, o->note.item[i], SIZE_MAX));
    if (load_patterns(r, err) || targets_make(&r->words, &o->set, &r->clock, &r->targets, err)) return -1;
    if (o->json && output_check("--json", o->json, o->force_output, &r->targets, err)) return -1;
    return check_labels(r, err) || read_destroy(r, err) ? -1 : 0;
}

enum status run_plan_make(struct run_plan *r, struct args *args) {
    struct err err;
    memset(r, 0, sizeof *r);
    r->args = args;
    clock_real_init(&r->clock);
    if (read_line(r, &err)) return complain(&err);
    if (r->targets.password_in_url) run_note(r, TARGETS_PASSWORD_WARNING);
    r->phase = phase_begin(stderr, args->options.quiet);
    phase_is(r->phase, "opening the targets");
    enum status status = open_targets(r);
    if (status != STATUS_OK) return status;
    first_looks(r);
    if (resolve(r, &err)) return complain(&err);
    phase_is(r->phase, "looking at what lies on the targets");
    status = examine(r);
    phase_is(r->phase, NULL);
    if (status == STATUS_OK) announce(r);
    return status;
}

void run_plan_free(struct run_plan *r) {
    phase_end(r->phase);
    safety_report_free(&r->report);
    plan_free(&r->plan);
    targets_free(&r->targets);
    targets_free(&r->nothing);
    words_free(&r->words);
    free(r->destroy);
}
