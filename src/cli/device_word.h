/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef CLI_DEVICE_WORD_H
#define CLI_DEVICE_WORD_H

#include <stddef.h>

/* A disk's name without its folder ("sdc", "nvme0n1p2", "mpatha", what is there in /dev): its whole path, into buf.
 * NULL: the word is no such name. */
const char *device_word(const char *word, char *buf, size_t len);

#endif
