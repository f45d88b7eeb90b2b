/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/plan_text.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/keys.h"

#define ROUNDS_SHOWN 6
#define LATENCY_WORTH_A_WORD (20 * NS_PER_MS)

/* Shown in any case: without them nobody knows what the load is. */
static const char *const load[] = {"rw", "bs", "size", "iodepth", "runtime", NULL};

static const char *safe(char *buf, size_t len, const char *text) {
    return text_safe(buf, len, text ? text : "", SIZE_MAX);
}

/* A long way makes all that is between the windows longer, and nobody knows how long it is before there is something to
 * read. */
static void add_latencies(const struct plan *plan, char *buf, size_t len) {
    char took[64];
    for (unsigned i = 0; i < plan->n_targets; i++) {
        const struct target *t = plan->targets[i];
        size_t at = strlen(buf);
        uint64_t read = plan_read_ns(t);
        bool unread = t->n_members && t->member[0].facts.kind != OBJECT_NULL && t->read_ns == 0;
        if (unread && read < (uint64_t)LATENCY_WORTH_A_WORD)
            snprintf(buf + at, len - at, "; %s: its latency is not known before there is something to read", t->label);
        else if (read >= (uint64_t)LATENCY_WORTH_A_WORD)
            snprintf(buf + at, len - at, "; %s: with the %s that %s takes", t->label,
                     units_duration_human(took, sizeof took, read),
                     t->member[0].facts.exists || !t->read_ns ? "a read" : "an answer");
    }
}

void plan_text_duration(const struct plan *plan, char *buf, size_t len) {
    char all[64], runs[64], fill[64], prepare[160] = "";
    uint64_t run_ns = plan_run_ns(plan), prepare_ns = plan_prepare_ns(plan);
    if (prepare_ns >= (uint64_t)NS_PER_SEC / 2 && !plan_writes(plan))
        snprintf(prepare, sizeof prepare, ", and %s of preparation", units_duration_human(fill, sizeof fill, prepare_ns));
    else if (prepare_ns && plan_writes(plan))
        snprintf(prepare, sizeof prepare, ", and %s of preparation if the targets are read and filled at 100 MiB/s",
                 units_duration_human(fill, sizeof fill, prepare_ns));
    else
        prepare_ns = 0;
    snprintf(buf, len, "expected duration %s: %s for %u run%s with ramps in %u round%s%s",
             units_duration_human(all, sizeof all, run_ns + prepare_ns),
             units_duration_human(runs, sizeof runs, run_ns), plan_runs(plan), plan_runs(plan) == 1 ? "" : "s",
             plan->rounds, plan->rounds == 1 ? "" : "s", prepare);
    add_latencies(plan, buf, len);
}

const char *plan_text_shared(const struct plan *plan, const struct sameness *same, char *buf, size_t len) {
    size_t at = 0;
    buf[0] = '\0';
    for (unsigned a = 0; same && same->pair && a < plan->n_targets; a++)
        for (unsigned b = 0; b < a && at < len; b++) {
            enum sameness_verdict v = sameness_of(same, a, b)->verdict;
            if (v < SAMENESS_EQUAL_DATA) continue;
            at += (size_t)snprintf(buf + at, len - at, "%s%s and %s %s", at ? "; " : "", plan->targets[b]->label,
                                   plan->targets[a]->label,
                                   v == SAMENESS_ONE      ? "are one object"
                                   : v == SAMENESS_SHARED ? "share what they store"
                                                          : "may be one object, or a copy of it");
        }
    return buf;
}

struct keys_to {
    FILE *out;
    const char *before; /* what stands before the next one */
    const char *between;
};

static void print_key(void *arg, const char *name, const char *value) {
    struct keys_to *to = arg;
    size_t len = 4 * strlen(value) + 1;
    char *shown = malloc(len);
    if (shown) fprintf(to->out, "%s%s=%s", to->before, name, safe(shown, len, value));
    to->before = to->between;
    free(shown);
}

static void print_access_keys(const struct member *m, bool all, FILE *out) {
    struct keys_to to = {out, "               keys: ", " "};
    const char *begin = to.before;
    keys_each(m->backend->options, m->conf, m->backend->conf_size, all, NULL, print_key, &to);
    if (to.before != begin) fputc('\n', out);
}

static void print_targets(const struct plan *plan, bool verbose, FILE *out) {
    fputs("\nTargets\n", out);
    for (unsigned i = 0; i < plan->n_targets; i++) {
        const struct target *t = plan->targets[i];
        for (unsigned m = 0; m < t->n_members; m++) {
            char what[300], url[300];
            const struct member *member = &t->member[m];
            fprintf(out, "  %-12s %s\n", m ? "" : t->label, safe(url, sizeof url, member->url));
            if (member->facts.summary[0])
                fprintf(out, "  %-12s %s\n", "", safe(what, sizeof what, member->facts.summary));
            print_access_keys(member, verbose, out);
        }
    }
    char shared[600];
    if (plan->warm_instead_of_asis)
        fprintf(out, "  %s: its cache is warmed before every run (cache=asis becomes warm)\n",
                plan_text_shared(plan, plan->same, shared, sizeof shared));
}

static void print_writing(const struct plan *plan, const struct safety_report *report, const char *json, FILE *out) {
    fputs("\nWhat would be written\n", out);
    bool any = false;
    for (size_t i = 0; i < report->n; i++) {
        const struct safety_decision *d = &report->decision[i];
        if (d->verdict == SAFETY_READ) continue;
        any = true;
        if (d->verdict == SAFETY_REFUSED) /* that is an error, and is said as one */
            fprintf(out, "  %s: nothing, as it stands: refused (why, and what would do, is said behind the plan)\n",
                    plan->targets[d->target]->label);
        else
            fprintf(out, "  %s\n", d->text);
    }
    if (!any) fputs("  nothing on the targets: they are only read\n", out);
    char name[300];
    if (json) fprintf(out, "  the result to %s\n", safe(name, sizeof name, json));
}

static void print_pattern(const struct pattern *p, bool verbose, FILE *out) {
    char name[200];
    struct keys_to to = {out, "    ", "\n    "};
    fprintf(out, "  [%s]\n", safe(name, sizeof name, p->name));
    if (p->section) {
        size_t changed_len = 4 * strlen(p->changed) + 1;
        char *changed = malloc(changed_len);
        fprintf(out, "    [%s] of the file, made another load by %s\n", safe(name, sizeof name, p->section),
                changed ? safe(changed, changed_len, p->changed) : "");
        free(changed);
    }
    keys_each(pattern_options, p, sizeof *p, verbose, load, print_key, &to);
    fputc('\n', out);
}

static void print_order(const struct plan *plan, FILE *out) {
    unsigned shown = plan->rounds < ROUNDS_SHOWN ? plan->rounds : ROUNDS_SHOWN;
    unsigned *order = calloc(plan->n_targets + 1, sizeof *order);
    fputs("\nOrder of the targets, in each pattern of a round\n", out);
    for (unsigned round = 1; order && round <= shown; round++) {
        plan_order(round, plan->n_targets, order);
        fprintf(out, "  round %u:", round);
        for (unsigned i = 0; i < plan->n_targets; i++) fprintf(out, " %s", plan->targets[order[i]]->label);
        fputc('\n', out);
    }
    if (shown < plan->rounds) fprintf(out, "  and so on, %u rounds\n", plan->rounds);
    free(order);
}

void plan_text_print(const struct plan *plan, const struct safety_report *report, const char *json, bool verbose,
                     FILE *out) {
    char duration[400];
    plan_text_duration(plan, duration, sizeof duration);
    fprintf(out, "%s\n", duration);
    print_targets(plan, verbose, out);
    print_writing(plan, report, json, out);
    fprintf(out, "\nPatterns%s\n", verbose ? "" : ": the load, and the keys that are not default (--verbose shows all)");
    for (size_t i = 0; i < plan->patterns.n; i++) print_pattern(&plan->patterns.pattern[i], verbose, out);
    print_order(plan, out);
    fprintf(out, "\nSeed %" PRIu64 "\n", plan->seed);
}
