/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What takes long is named on stderr while it goes on, from a thread of its own: opening, looking, asking and settling
 * block for as long as a server likes. Said after 5 s, then every 30 s. */
#ifndef CLI_PHASE_H
#define CLI_PHASE_H

#include <stdbool.h>
#include <stdio.h>

struct phase;

/* NULL where nobody wants to know, or it cannot be had; all functions take that. Signals go to other threads. */
struct phase *phase_begin(FILE *out, bool quiet);
/* From now on it is this (fit to print; copied). The same words again do not begin anew. NULL: nothing that is told. */
void phase_is(struct phase *p, const char *what);
void phase_end(struct phase *p);

#endif
