/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What samedisk itself costs per I/O: the real loop, generator and statistics, on a target that does no I/O. It stands
 * beside the client's CPU per I/O, which also holds the backend, its library and the kernel. */
#ifndef ENGINE_SELFCOST_H
#define ENGINE_SELFCOST_H

#include "pattern/pattern.h"
#include "target/target.h"

/* CPU ns per I/O of one worker's loop with the I/Os of `p` at its depth (less where buffers would be large), measured
 * for a few ms in a thread of its own. `nothing` is an opened target that does no I/O, and that the pattern fits into.
 * NAN: could not be measured. Blocks. */
double selfcost_measure(const struct target *nothing, const struct pattern *p);

#endif
