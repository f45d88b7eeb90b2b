/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What earlier processes changed in the kernel and could not put back. */
#ifndef CLI_LEFTOVERS_H
#define CLI_LEFTOVERS_H

/* Restores it, and says so on standard error. */
void leftovers_restore(void);

#endif
