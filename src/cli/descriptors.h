/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The three descriptors that every program has, even if its caller closed them: else the first object that is opened
 * gets the number of standard output, and the report is written into it. */
#ifndef CLI_DESCRIPTORS_H
#define CLI_DESCRIPTORS_H

#include <stdbool.h>

#include "base/err.h"

/* First thing in main, before anything is opened: descriptors 0 to 2 that are closed are opened on /dev/null. Error
 * (STATUS_USAGE): that cannot be done, or standard output or standard error is a block device; err->msg is "" where
 * standard error is no place for words. */
int descriptors_fill(struct err *err);
/* Was standard output closed, or open for reading only? What is printed there is lost then. */
bool descriptors_no_output(void);

#endif
