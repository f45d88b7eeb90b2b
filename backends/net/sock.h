/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the network backends ask of a TCP socket that a library opened. Leaf helpers: libc only. */
#ifndef BACKENDS_NET_SOCK_H
#define BACKENDS_NET_SOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* CLOCK_MONOTONIC in ns. Deadlines of real connections follow real time, whatever clock stamps the I/O. */
int64_t sock_now(void);

/* Waits for `events` (POLLIN, POLLOUT) or until timeout_ns has passed, never longer. Returns the events that came (with
 * POLLERR, POLLHUP as they are), 0 on timeout, -1 when a signal came. */
/* `end`, or at once when backend_stopped(): control path only. */
int64_t sock_end(int64_t end);
/* Until `end`, but no longer than it takes to look whether backend_stopped(). */
int64_t sock_slice(int64_t end);
int sock_wait(int fd, short events, int64_t timeout_ns);

int sock_nodelay(int fd); /* switches Nagle off; 0 or negative errno */

/* Sends all `len` bytes, waiting for room until `end` (of sock_now). 0, -ETIMEDOUT, or the socket's negative errno. */
int sock_send_all(int fd, const void *bytes, size_t len, int64_t end);

/* Bytes of send buffer (in the kernel's own accounting, overhead included) that are free now; 0 when unknown. What fits
 * in half of it is sure to be taken by send(). */
size_t sock_send_room(int fd);

/* Why did this connection break? "the other side closed the connection", "Connection reset by peer". */
const char *sock_why(int fd, char *buf, size_t len);

/* Numeric address and port of the other side. False if the socket is not connected. */
bool sock_peer(int fd, char *address, size_t len, unsigned *port);
unsigned sock_local_port(int fd); /* 0: unknown */

/* An address of IPv6 in brackets, as it is written before ":port" or ":/export"; anything else as it is. */
const char *sock_bracket(const char *host, char *buf, size_t len);

#endif
