/* SPDX-License-Identifier: GPL-2.0-or-later */
/* window=N: which SO_RCVBUF makes the kernel advertise at most N bytes of receive window?
 *
 * The window is the part of the buffer that holds data, not bookkeeping. The kernel guesses that part anew (1/2 at
 * first) whenever a segment arrives that is larger than those before it, from how densely that segment's memory is
 * filled: 0.5 to 0.98, depending on the network card, on segmentation offload and on the sizes of replies. It cannot be
 * computed. So throw-away connections to the same server, with large and small reads, show the largest part that occurs
 * (the kernel tells the bound that it has derived from it), and the buffer is chosen for that one: the window then stays
 * below N, by a few percent where replies are of other sizes.
 * A later connection may still come to another guess. TCP_WINDOW_CLAMP alone would not help, as every new guess
 * overwrites it; but with it, tcp_settings_tend() brings a bound down again that has risen above N. */
#ifndef BACKENDS_NET_TCPWINDOW_H
#define BACKENDS_NET_TCPWINDOW_H

#include "backends/backend.h"
#include "backends/net/tcp_options.h"
#include "backends/net/tcpinfo.h"

/* A backend's engine, and the object to read from. */
struct tcpwindow_rig {
    struct handle *handle;
    int (*attach)(struct handle *h, const struct attach_how *how, struct context **out, struct err *err);
    void (*detach)(struct context *c);
    int (*submit)(struct context *c, struct request *const *requests, unsigned n);
    int (*reap)(struct context *c, struct completion *out, unsigned max, unsigned min, int64_t timeout_ns);
    void (*watch)(struct context *c, struct tcpinfo_watch *w);
    struct tcp_settings *settings; /* the handle's: its connections are made with them, its rcvbuf is the result */
};

/* Puts settings->rcvbuf for settings->window; `facts` has size, block and max_io. Blocks for about a second. What was
 * found goes to the facts. Errors: attaching or reading failed; STATUS_TARGET. */
int tcpwindow_choose(const struct tcpwindow_rig *rig, struct facts *facts, struct err *err);

#endif
