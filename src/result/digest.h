/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A 128-bit FNV-1a hash as 32 hex digits: two plans never share one by accident; it is no protection against malice. */
#ifndef RESULT_DIGEST_H
#define RESULT_DIGEST_H

#include <stddef.h>

#define DIGEST_LEN 33 /* with the NUL */

void digest_hex(const void *data, size_t len, char hex[DIGEST_LEN]);

#endif
