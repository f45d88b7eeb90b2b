/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Passwords that came with the command line are taken out of the sight of others. */
#ifndef CLI_SECRETS_H
#define CLI_SECRETS_H

#include <stdbool.h>

/* A copy of argv for the program's own use; then every password in argv itself is overwritten, and if there was one,
 * the process leaves no core file. The first thing that main does. NULL: no memory. */
char **secrets_take(int argc, char **argv);
/* Wipes and frees the copy. */
void secrets_free(int argc, char **copy);

#endif
