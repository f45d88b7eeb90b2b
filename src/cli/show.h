/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef CLI_SHOW_H
#define CLI_SHOW_H

#include <stddef.h>

/* A word of the command line, fit for a message: no password, no control bytes. Returns buf. */
const char *show_word(char *buf, size_t len, const char *word);

#endif
