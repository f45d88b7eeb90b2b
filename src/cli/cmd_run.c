/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/command.h"
#include "cli/describe.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/own_cost.h"
#include "cli/plan_text.h"
#include "cli/progress.h"
#include "cli/run_plan.h"
#include "cli/terminal.h"
#include "engine/session.h"
#include "report/remarks.h"
#include "report/table.h"
#include "result/document.h"
#include "safety/guard.h"

struct run {
    struct run_plan *plan;
    struct document *document;
    struct safety_guard *guard;
    const struct data_note **note; /* per target; owned */
    uint32_t *fill_tag;            /* per target; owned */
    struct progress progress;
    const char *json;
    bool save_failed; /* the last time */
};

/* ---- the document ---- */

static int save(struct run *run, struct err *err) {
    size_t len;
    char *text = document_text(run->document, &len);
    if (!text) return err_set(err, STATUS_USAGE, "no memory for the result");
    int rc = run->json ? output_result(run->json, run->plan->args->options.force_output, text, len, err) : 0;
    free(text);
    return rc;
}

static void note_in(struct document *d, const char *text) {
    char key[256];
    size_t n = strcspn(text, "=");
    snprintf(key, sizeof key, "%.*s", (int)n, text);
    document_note(d, key, text + n + 1);
}

static struct document *begin_document(const struct run_plan *r) {
    const struct options *o = &r->args->options;
    const struct plan *plan = &r->plan;
    struct document *d = document_new(PACKAGE_VERSION);
    if (!d) return NULL;
    document_plan(d, plan->seed, plan->rounds, r->reference, plan->warm_instead_of_asis);
    for (size_t i = 0; i < plan->patterns.n; i++) {
        const struct pattern *p = &plan->patterns.pattern[i];
        document_pattern(d, p->name, pattern_options, p);
        if (p->kept) document_pattern_kept(d, p->kept);
        if (p->section) document_pattern_changed(d, p->section, p->changed);
    }
    for (size_t i = 0; i < o->note.n; i++) note_in(d, o->note.item[i]);
    document_environment(d, describe_environment());
    for (unsigned i = 0; i < r->targets.n; i++) document_target(d, describe_target(r->targets.target[i]));
    return d;
}

/* What is known of the targets being one object is not known at once. */
static void tell_sameness(struct run *run) {
    struct run_plan *r = run->plan;
    struct plan *plan = &r->plan;
    if (sameness_any(&r->report.same)) plan->warm_instead_of_asis = true;
    document_plan(run->document, plan->seed, plan->rounds, r->reference, plan->warm_instead_of_asis);
    document_sameness(run->document, describe_sameness(plan->targets, plan->n_targets, &r->report.same));
}

/* ---- the session's hooks ---- */

static void tell_phase(const struct run *run, const struct session_progress *p) {
    char what[300], label[80], pattern[120] = "";
    text_safe(label, sizeof label, p->target ? p->target : "", SIZE_MAX);
    if (p->pattern) text_safe(pattern, sizeof pattern, p->pattern, SIZE_MAX);
    snprintf(what, sizeof what, "%s%s%s%s%s", label, label[0] ? ": " : "", pattern, pattern[0] ? ", " : "",
             session_phase_name(p->phase));
    phase_lasts(run->plan->phase, what, p->phase_ns);
}

static void on_progress(void *arg, const struct session_progress *p) {
    struct run *run = arg;
    progress_show(&run->progress, p);
    if (!run->progress.terminal) tell_phase(run, p);
}

static void on_say(void *arg, const char *line) {
    struct run *run = arg;
    progress_say(&run->progress, line);
}

static int on_before_write(void *arg, unsigned target, bool first, struct err *err) {
    struct run *run = arg;
    struct run_plan *r = run->plan;
    bool warm = r->plan.warm_instead_of_asis;
    char shared[700];
    int rc = safety_guard_before_write(run->guard, target, first, run->fill_tag, err);
    if (!first) return rc;
    tell_sameness(run);
    if (!warm && r->plan.warm_instead_of_asis) {
        size_t n = strlen(plan_text_shared(&r->plan, r->plan.same, shared, sizeof shared));
        snprintf(shared + n, sizeof shared - n, ": its cache is warmed before every run (cache=asis becomes warm)");
        progress_say(&run->progress, shared);
    }
    return rc;
}

/* At once: a file system that was filled up stops whoever else is on it. */
static void on_not_filled(void *arg, unsigned target) {
    struct run *run = arg;
    safety_remove_unfilled(run->plan->plan.targets[target], run->plan->args->options.keep_partial, on_say, run);
}

/* Said once when it begins and once when it is over: each run tries again, and the last good file stays until then. */
static void try_to_save(struct run *run) {
    struct err err;
    char line[1400];
    if (run->json && output_is_stream(run->json)) return; /* once, at the end */
    bool failed = save(run, &err) != 0;
    if (failed && !run->save_failed) {
        snprintf(line, sizeof line, "the result cannot be saved: %s; the plan goes on, and it is tried again after every run; "
                 "what was saved before is kept", err.msg);
        progress_alarm(&run->progress, line);
    } else if (!failed && run->save_failed) {
        snprintf(line, sizeof line, "%s: the result could be saved again, with all runs so far", run->json);
        progress_alarm(&run->progress, line);
    }
    run->save_failed = failed;
}

/* Every finished run is on disk before the next begins. */
static int on_run_done(void *arg, struct record *record) {
    struct run *run = arg;
    document_run(run->document, record);
    record_free(record);
    const json_t *runs = json_object_get(document_json(run->document), "runs");
    try_to_save(run); /* before it is said: what was said is kept */
    progress_run_done(&run->progress, json_array_get(runs, json_array_size(runs) - 1));
    return 0;
}

/* ---- the end ---- */

static enum status print_result(struct run *run, int format) {
    struct err err;
    if (format == FORMAT_JSON) {
        size_t len;
        char *text = document_text(run->document, &len);
        if (!text) {
            err_set(&err, STATUS_USAGE, "no memory for the result");
            return complain(&err);
        }
        fwrite(text, 1, len, stdout);
        free(text);
    } else {
        struct table_style style = {terminal_width(stdout), run->plan->args->options.verbose};
        table_print(document_json(run->document), &style, stdout);
    }
    return STATUS_OK;
}

static void say_line(void *arg, const char *text) {
    struct run *run = arg;
    run_note(run->plan, "%s", text);
}

static enum status clean_up(struct run *run) {
    struct err err;
    struct run_plan *r = run->plan;
    safety_guard_end(run->guard);
    for (unsigned i = 0; i < r->plan.n_targets; i++)
        safety_remove_unfilled(r->plan.targets[i], r->args->options.keep_partial, say_line, run);
    if (!r->args->options.cleanup) return STATUS_OK;
    if (safety_cleanup(r->plan.targets, r->plan.n_targets, say_line, run, &err) == 0) return STATUS_OK;
    return r->args->options.quiet ? complain(&err) : err.status; /* it was said, where notes are */
}

static enum status measure(struct run *run, volatile sig_atomic_t *interrupted) {
    struct run_plan *r = run->plan;
    const struct options *o = &r->args->options;
    struct session_hooks hooks = {run, on_progress, on_run_done, on_say, on_before_write, on_not_filled};
    struct err err = {.status = STATUS_OK};
    progress_init(&run->progress, stderr, isatty(STDERR_FILENO), o->quiet, plan_runs(&r->plan));
    phase_is(r->phase, NULL); /* on a terminal the progress line says what goes on from here */
    own_cost_open(&r->plan, &r->clock, &r->nothing);
    enum status status = session_run(&r->plan, &r->clock, &hooks, interrupted, &err);
    phase_is(r->phase, NULL);
    progress_end(&run->progress);
    if (status != STATUS_OK && err.msg[0]) {
        err.status = status;
        complain(&err);
    }
    document_finish(run->document, status == STATUS_INTERRUPTED);
    document_remarks(run->document, remarks_json(document_json(run->document)));
    status = status_worse(status, document_status(run->document));
    bool said = run->save_failed;
    if (save(run, &err)) status = status_worse(status, said ? err.status : complain(&err));
    return status_worse(status, print_result(run, o->format));
}

/* Before the document is begun: it tells what is in force. */
static int adjust_all(struct run_plan *r, struct err *err) {
    for (unsigned i = 0; i < r->targets.n; i++)
        if (!r->targets.target[i]->lost && target_adjust(r->targets.target[i], err)) return -1;
    return 0;
}

static int begin_guard(struct run *run, struct err *err) {
    struct run_plan *r = run->plan;
    unsigned n = r->plan.n_targets;
    run->note = calloc(n + 1, sizeof *run->note);
    run->fill_tag = calloc(n + 1, sizeof *run->fill_tag);
    if (!run->note || !run->fill_tag) return err_set(err, STATUS_USAGE, "out of memory");
    if (safety_guard_begin(&r->wish, &r->report, &run->guard, err)) return -1;
    for (unsigned i = 0; i < n; i++) {
        run->note[i] = safety_guard_note(run->guard, i);
        run->fill_tag[i] = plan_fill_tag(&r->plan, i);
    }
    r->plan.note = run->note;
    return 0;
}

static enum status execute(struct run_plan *r) {
    struct run run = {.plan = r, .json = r->args->options.json};
    struct err err;
    /* Files are created from here on: a signal no longer ends the process where it stands. */
    volatile sig_atomic_t *interrupted = interrupt_catch();
    r->wish.interrupted = interrupted;
    phase_is(r->phase, "preparing to write");
    backend_heed(interrupted);
    enum status status;
    if (safety_apply(&r->wish, &r->report, &err) || adjust_all(r, &err) || begin_guard(&run, &err)) {
        status = complain(&err);
    } else if (!(run.document = begin_document(r))) {
        err_set(&err, STATUS_USAGE, "no memory for the result");
        status = complain(&err);
    } else {
        tell_sameness(&run);
        status = measure(&run, interrupted);
    }
    backend_heed(NULL);
    phase_is(r->phase, "giving back what was taken");
    status = status_worse(status, clean_up(&run));
    phase_is(r->phase, NULL);
    interrupt_release();
    document_free(run.document);
    free(run.note);
    free(run.fill_tag);
    return status;
}

enum status cmd_run(struct args *args) {
    struct run_plan plan;
    enum status status = run_plan_make(&plan, args);
    bool refused = plan.report.refused > 0;
    if (args->options.dry_run && (status == STATUS_OK || refused)) {
        plan_text_print(&plan.plan, &plan.report, args->options.json, args->options.verbose, stdout);
        fflush(stdout); /* the plan stands above what it lacks */
    }
    if (refused)
        run_plan_say_refused(&plan);
    else if (status == STATUS_OK && !args->options.dry_run)
        status = execute(&plan);
    if (status == STATUS_OK && plan.lost) status = STATUS_TARGET;
    run_plan_free(&plan);
    return status;
}
