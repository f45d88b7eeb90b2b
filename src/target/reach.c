/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "target/reach.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "target/blockio.h"

#define SMALL    512u      /* fits in a packet, with all headers, on every network */
#define LARGE    (64u << 10)
#define PATIENCE (3 * NS_PER_SEC)

static double track(const struct blockio *b, const struct member *m, const char *name) {
    double value = NAN;
    blockio_track(b, m->handle, name, &value);
    return value;
}

static void explain(struct reach *r) {
    snprintf(r->warning, sizeof r->warning,
             "a READ of %" PRIu32 " bytes had no answer within %d s, one of a block had one within %.3f ms: packets of full "
             "size do not arrive (an MTU black hole). TCP agreed on segments of %.0f bytes (MSS) for an MTU of %.0f: "
             "compare the MTU of both ends and of all switches between; mss=%.0f would be a way round",
             r->bytes, (int)(PATIENCE / NS_PER_SEC), (double)r->small_ns / 1e6, r->mss, r->mtu, floor(r->mss * 0.85));
}

static void try_both(const struct target *t, const struct member *m, uint32_t small, struct reach *r) {
    struct blockio *b;
    struct err err;

    if (blockio_open(m->backend, m->handle, &m->facts, t->clock, 1, LARGE, false, &b, &err) != 0) return;
    blockio_patience(b, PATIENCE);
    if (blockio_ping(b, 0, small, &r->small_ns, &err) == 0) {
        r->bytes = m->facts.size < LARGE ? (uint32_t)m->facts.size / small * small : LARGE;
        if (m->facts.max_io && r->bytes > m->facts.max_io) r->bytes = m->facts.max_io / small * small;
        if (blockio_ping(b, 0, r->bytes, &r->ns, &err) != 0) r->ns = -1;
        r->mss = track(b, m, "tcp_mss_bytes");
        r->mtu = track(b, m, "tcp_path_mtu_bytes");
        if (r->ns < 0 && r->mss > small && r->bytes > r->mss) explain(r);
    }
    blockio_close(b);
}

void reach_try(const struct target *t, struct reach *out) {
    const struct member *m = &t->member[0];
    uint32_t small = m->facts.block > SMALL ? m->facts.block : SMALL;

    *out = (struct reach){.small_ns = -1, .ns = -1, .mss = NAN, .mtu = NAN};
    if (!m->backend->pings || !m->handle || !m->facts.exists || clock_is_virtual(t->clock)) return;
    if (m->facts.size < small) return;
    try_both(t, m, small, out);
}
