/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Several sessions to one unit as one context: round robin, as an initiator with several paths does it.
 *
 * Order. I/O number i, counted as they are taken, goes to path (i / every) mod n, whatever the paths are doing: when
 * the path whose turn it is has no room (command window or socket full), the rest of the batch is not taken, and no other
 * path jumps in. That costs no progress: what closes a window or fills a socket is that path's own outstanding I/O, and
 * reap serves all paths until it is done. Each path has slots for the whole depth.
 *
 * System calls. A batch is sent by one call for each run of neighbours with the same path. While only one path has
 * anything to do, it is waited for as if it were the only one; otherwise one ppoll waits for all of them. Paths with
 * nothing to do are looked at ten times a second, for questions of the target and for the end of the connection.
 *
 * Loss. The first path that is lost ends the context: the requests of all others come back as "other path lost". There
 * is no failover: a benchmark that went on with half of its paths would report what nobody asked for. */
#ifndef BACKENDS_ISCSI_ISCSI_PATHS_H
#define BACKENDS_ISCSI_ISCSI_PATHS_H

#include "backends/iscsi/iscsi_native.h"

extern const struct iscsibe_engine iscsibe_engine_paths; /* its attach is the native engine's */

/* `n` sessions that iscsibe_native_start made with the same attach_how; they belong to the new context, also after a
 * failure. Each has the name of its portal. */
int iscsibe_paths_start(struct context *const *session, unsigned n, unsigned every, struct context **out,
                        struct err *err);
void iscsibe_paths_detach(struct context *c);
int iscsibe_paths_submit(struct context *c, struct request *const *requests, unsigned n);
int iscsibe_paths_reap(struct context *c, struct completion *out, unsigned max, unsigned min, int64_t timeout_ns);
/* The sums over all paths, and of each path1_portal, path1_ios (without flushes), path1_bytes,
 * path1_command_window_closed_ns ... */
void iscsibe_paths_counters(struct context *c, struct kv *out);
/* One of them, from 0. */
struct context *iscsibe_paths_session(struct context *c, unsigned i);

#endif
