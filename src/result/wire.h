/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What was outstanding below a client-side readahead: application I/Os and those on the wire are not the same there, and
 * neither is their depth. From the tracks that the readahead tells (backends/readahead.h). */
#ifndef RESULT_WIRE_H
#define RESULT_WIRE_H

#include <jansson.h>

#include "result/record.h"

json_t *wire_json(const struct record *r); /* null where nothing was read ahead */

#endif
