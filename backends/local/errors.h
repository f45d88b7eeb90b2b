/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Errors of local I/O as kinds. */
#ifndef BACKENDS_LOCAL_ERRORS_H
#define BACKENDS_LOCAL_ERRORS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/kinds.h"

enum local_object { LOCAL_FILE_BUFFERED, LOCAL_FILE_DIRECT, LOCAL_DEVICE };

/* The kind of a positive errno: its symbolic name, and the system's words with what it means on such an object. */
uint16_t local_kind(struct kinds *kinds, int error, enum local_object object);
/* Is the object gone for good, so that nothing more need be tried on it? */
bool local_is_lost(int error);
/* Is it a device that was taken away? That shows as a size of 0: reads get no bytes, writes ENOSPC. */
bool local_gone(int fd, enum local_object object);

#endif
