/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the user sees while it runs, on stderr: one line per finished run, now and then something that is worth knowing,
 * and on a terminal one line that is drawn again and again. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "engine/session.h"

struct progress {
    FILE *out;
    bool terminal, quiet;
    bool drawn;          /* a line stands there that has no end yet */
    unsigned width;      /* columns; 0: asked of the terminal at each draw */
    unsigned runs, done; /* all runs of the plan, and those that are over */
};

void progress_init(struct progress *p, FILE *out, bool terminal, bool quiet, unsigned runs);
void progress_show(struct progress *p, const struct session_progress *now);
void progress_run_done(struct progress *p, const json_t *run); /* an element of "runs" */
void progress_say(struct progress *p, const char *line);       /* safe to print */
void progress_alarm(struct progress *p, const char *line);     /* likewise, also where it is quiet */
void progress_end(struct progress *p);                         /* leaves no half line behind */

/* The line with as many whole fields as `width` columns hold; needs no terminal. */
void progress_line(const struct session_progress *now, unsigned width, char *buf, size_t len);

#endif
