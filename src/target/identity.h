/* SPDX-License-Identifier: GPL-2.0-or-later */
/* When two names of an object mean the same one. */
#ifndef TARGET_IDENTITY_H
#define TARGET_IDENTITY_H

#include <stdbool.h>

#include "backends/backend.h"

#define IDENTITY_SIZE sizeof(((struct facts *)0)->identity[0])

/* Equal but for case and blanks: the kernel, the page itself and people pad T10 names and serial numbers differently.
 */
bool identity_equal(const char *a, const char *b);
/* Any in common? A serial number (VPD 80) only counts where it is all there is to go by, as some arrays answer the same
 * one for all their LUNs: where both sides have a SCSI name of one kind (naa, eui, t10), that decides. Empty strings
 * match nothing. */
bool identity_common(const char a[][IDENTITY_SIZE], unsigned n_a, const char b[][IDENTITY_SIZE], unsigned n_b);

#endif
