/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Limits of this process (ulimit). What fails by one of them is no fault of the target's, and is not called one. */
#ifndef BASE_LIMITS_H
#define BASE_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* First thing: as many descriptors as we may have, since each connection of each worker is one; and where address space is
 * limited, no thread of ours reserves more of it than it uses. */
void limits_prepare(void);
/* Bytes that `ulimit -v` still leaves; UINT64_MAX: it sets no limit. */
uint64_t limits_address_space_left(void);
/* Bytes of address space that one more thread takes. */
uint64_t limits_thread_bytes(void);
/* Requests of the kernel's asynchronous I/O that fs.aio-max-nr leaves for all programs of this client; UINT64_MAX: unknown. */
uint64_t limits_aio_left(void);
/* Is this message one of descriptors, memory, threads or requests that the client lacks? Then its limit is added, and the status is
 * USAGE. */
bool limits_blame(struct err *err);

#endif
