/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
    struct err save_error;
    bool save_failed;
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
    for (size_t i = 0; i < plan->patterns.n; i++)
        document_pattern(d, plan->patterns.pattern[i].name, pattern_options, &plan->patterns.pattern[i]);
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

static void on_progress(void *arg, const struct session_progress *p) {
    struct run *run = arg;
    progress_show(&run->progress, p);
}

static void on_say(void *arg, const char *line) {
    struct run *run = arg;
    progress_say(&run->progress, line);
}

static int on_before_write(void *arg, unsigned target, bool first, struct err *err) {
    struct run *run = arg;
    struct run_plan *r = run->plan;
    bool warm = r->plan.warm_instead_of_asis;
    int rc = safety_guard_before_write(run->guard, target, first, run->fill_tag, err);
    if (!first) return rc;
    tell_sameness(run);
    if (!warm && r->plan.warm_instead_of_asis)
        progress_say(&run->progress, "two targets share what they store: its cache is warmed before every run (cache=asis "
                                     "becomes warm)");
    return rc;
}

/* At once: a file system that was filled up stops whoever else is on it. */
static void on_not_filled(void *arg, unsigned target) {
    struct run *run = arg;
    safety_remove_unfilled(run->plan->plan.targets[target], run->plan->args->options.keep_partial, on_say, run);
}

/* Every finished run is on disk before the next begins. */
static int on_run_done(void *arg, struct record *record) {
    struct run *run = arg;
    document_run(run->document, record);
    record_free(record);
    const json_t *runs = json_object_get(document_json(run->document), "runs");
    run->save_failed = save(run, &run->save_error) != 0; /* before it is said: what was said is kept */
    progress_run_done(&run->progress, json_array_get(runs, json_array_size(runs) - 1));
    return run->save_failed;
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
    return safety_cleanup(r->plan.targets, r->plan.n_targets, say_line, run, &err) ? complain(&err) : STATUS_OK;
}

static enum status measure(struct run *run, volatile sig_atomic_t *interrupted) {
    struct run_plan *r = run->plan;
    const struct options *o = &r->args->options;
    struct session_hooks hooks = {run, on_progress, on_run_done, on_say, on_before_write, on_not_filled};
    struct err err = {.status = STATUS_OK};
    progress_init(&run->progress, stderr, isatty(STDERR_FILENO), o->quiet, plan_runs(&r->plan));
    own_cost_open(&r->plan, &r->clock, &r->nothing);
    enum status status = session_run(&r->plan, &r->clock, &hooks, interrupted, &err);
    progress_end(&run->progress);
    if (status != STATUS_OK && err.msg[0]) {
        err.status = status;
        complain(&err);
    }
    /* A plan that was given up because its result could not be saved is as incomplete as an interrupted one. */
    document_finish(run->document, status == STATUS_INTERRUPTED || run->save_failed);
    document_remarks(run->document, remarks_json(document_json(run->document)));
    if (run->save_failed)
        status = status_worse(status, complain(&run->save_error));
    else
        status = status_worse(status, document_status(run->document));
    if (save(run, &err)) status = status_worse(status, complain(&err));
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
    status = status_worse(status, clean_up(&run));
    interrupt_release();
    document_free(run.document);
    free(run.note);
    free(run.fill_tag);
    return status;
}

enum status cmd_run(struct args *args) {
    struct run_plan plan;
    enum status status = run_plan_make(&plan, args);
    if (status == STATUS_OK && args->options.dry_run)
        plan_text_print(&plan.plan, &plan.report, args->options.json, args->options.verbose, stdout);
    else if (status == STATUS_OK)
        status = execute(&plan);
    if (status == STATUS_OK && plan.lost) status = STATUS_TARGET;
    run_plan_free(&plan);
    return status;
}
