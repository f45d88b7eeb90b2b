/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where the pattern files lie that ship. */
#ifndef CLI_DIRS_H
#define CLI_DIRS_H

#define DIRS_MAX 4

/* NULL-terminated: $SAMEDISK_PATTERNS if it is set, where they are installed, and for a program that is not, the
 * source. */
void dirs_of_patterns(const char *dirs[DIRS_MAX]);

#endif
