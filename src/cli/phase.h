/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What takes long is named on stderr while it goes on, from a thread of its own: opening, looking, asking and settling
 * block for as long as a server likes. Said after 5 s, or so long after the time that it was to last; then every 30 s. */
#ifndef CLI_PHASE_H
#define CLI_PHASE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct phase;

/* NULL where nobody wants to know, or it cannot be had; all functions take that. Signals go to other threads. */
struct phase *phase_begin(FILE *out, bool quiet);
/* From now on it is this (fit to print; copied). The same words again do not begin anew. NULL: nothing that is told. */
void phase_is(struct phase *p, const char *what);
/* The same of what is known to last `ns`: a window, a ramp. 0: not known. */
void phase_lasts(struct phase *p, const char *what, int64_t ns);
void phase_end(struct phase *p);

#endif
