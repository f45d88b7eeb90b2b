/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How much room there is. */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include <stdio.h>

/* Columns that a line may take on this terminal: one less than it has, because a full last column makes some of them wrap.
 * 0: it is none, and lines may have any length. */
unsigned terminal_width(FILE *f);

#endif
