/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The first half of `samedisk run`: from the command line to a plan that is resolved, examined and consented to.
 * Nothing has been written when it is done. */
#ifndef CLI_RUN_PLAN_H
#define CLI_RUN_PLAN_H

#include "base/clock.h"
#include "cli/args.h"
#include "cli/phase.h"
#include "cli/targets.h"
#include "engine/plan.h"
#include "safety/safety.h"

struct run_plan {
    struct args *args;
    struct clock clock;
    struct words words;
    struct targets targets;        /* all, also those that --keep-going left out */
    struct targets nothing;        /* see own_cost.h */
    struct plan plan;              /* those that were opened */
    const char *reference;
    struct safety_destroy *destroy;/* owned array; strings in args, cut in place */
    struct safety_wish wish;
    struct safety_report report;
    bool keys_alone;               /* no pattern was named: the keys are one */
    unsigned lost;                 /* targets left out */
    struct phase *phase;           /* tells what takes long */
    int64_t said_looking;          /* when it was said that a range is being looked at */
};

/* Errors are printed (complain), notes too unless --quiet; the exit status is returned. run_plan_free in any case.
 * One thing is not printed: that the plan, which is whole then, was refused (report.refused). */
enum status run_plan_make(struct run_plan *r, struct args *args);
/* Each refusal, with what to type. */
void run_plan_say_refused(const struct run_plan *r);
void run_plan_free(struct run_plan *r);

/* A note for the user on stderr, unless --quiet. */
__attribute__((format(printf, 2, 3))) void run_note(const struct run_plan *r, const char *fmt, ...);

#endif
