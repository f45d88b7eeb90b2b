/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A filter: several opened members of one target as one object.
 *
 * Stripes of 1 MiB go round the M members. An I/O that starts in stripe s goes whole to member s % M, at offset
 * (s / M) MiB + start % 1 MiB: it is not split, so that one I/O of the pattern stays one I/O of a member. One that is
 * longer than the rest of its stripe therefore runs on inside the same member, over bytes that are also the beginning
 * of stripe s + M. Whoever wants to touch every byte (filling, checking) uses pieces that do not cross a multiple of
 * STRIPE_BYTES.
 *
 * A flush goes to every member and is done when all have answered.
 *
 * Reap polls every member; to wait, it lends one member after the other a slice of time. A completion that comes to a
 * member whose turn it is not is stamped at most STRIPE_SLICE_NS (and a wake-up) late. */
#ifndef BACKENDS_STRIPE_H
#define BACKENDS_STRIPE_H

#include "backends/backend.h"

#define STRIPE_BYTES (1u << 20)
#define STRIPE_MEMBERS 64
#define STRIPE_SLICE_NS (50 * NS_PER_US)

struct stripe_member {
    const struct backend *backend;
    struct handle *handle;      /* opened; stays the caller's, and outlives the stripe */
    const struct facts *facts;  /* copied from */
};

/* In place of backend->open; `facts` is zeroed by the caller. The size is that of the smallest member times their
 * number, less what I/Os that run over the end of their stripe need. Error: STATUS_USAGE where members do not fit
 * together. */
int stripe_open(const struct stripe_member *member, unsigned n, struct handle **out, struct facts *facts,
                struct err *err);

/* Its configure and open are NULL; close frees the stripe, not the members. remove and holes are NULL: they are asked
 * of the members. */
extern const struct backend backend_stripe;

#endif
