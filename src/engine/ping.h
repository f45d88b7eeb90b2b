/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Protocol pings: on the idle target, and once a second beside a run's load, in a thread and on a connection of their
 * own. A pinger that breaks is given up, with its reason in the record; it never fails a run. With several members it
 * is the first one's server that is asked. Real time only. */
#ifndef ENGINE_PING_H
#define ENGINE_PING_H

#include <signal.h>
#include <stdint.h>

#include "result/record.h"
#include "target/target.h"

/* What the target answered while nothing else was asked of it. */
struct ping_idle {
    unsigned kinds;             /* 0: nothing to ask, or not wanted */
    struct record_ping ping[RECORD_PINGS]; /* kind and idle_* */
    int64_t floor_ns;           /* the network's share by TCP; 0: unknown */
    char why[256];              /* "": all is well */
};

#define PING_IDLE_COUNT 20

/* `count` pings of each kind, one after another, within a fraction of a second. Blocks until the connection stands. */
void ping_idle(const struct target *t, unsigned count, struct ping_idle *out);

/* One run's pinger. */
struct pinging;

/* Starts the thread, which connects and pings every `interval_ns`. NULL: there is nothing to ask (virtual time, a
 * backend without pings), or no memory. */
struct pinging *pinging_start(const struct target *t, int64_t interval_ns);
/* When the window begins: pings are then spread over it evenly. */
void pinging_window(struct pinging *p, int64_t t_window);
/* The load is over. Asks a few times more, and ends the thread; `hurry`: ends it at once. */
void pinging_stop(struct pinging *p, bool hurry);
/* Into the record, whose points exist already: the pings of [t_window, t_window + window_ns), and `idle`. Both may be
 * NULL. */
void pinging_gather(const struct pinging *p, const struct ping_idle *idle, int64_t t_window, struct record *r);
void pinging_free(struct pinging *p);

#endif
