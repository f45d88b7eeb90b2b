/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "engine/settle.h"

#include <stdlib.h>

#include "base/rng.h"
#include "target/blockio.h"

#define READ_SIZE    4096u
#define SETTLE_LIMIT (30 * NS_PER_SEC)
#define SETTLE_PAUSE (20 * NS_PER_MS)
#define IDLE_READS   15
#define SETTLE_READS 5
/* Where a read takes long, fewer of them must do. */
#define READS_TIME   (2 * NS_PER_SEC)
#define IDLE_LEAST   3
#define SETTLE_LEAST 2
#define PING_TIME    (5 * NS_PER_SEC)

static int compare_ns(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* A read that fails is left out, as long as another one works: the target may be slow with one place, and well. */
static int median_read(struct blockio *io, const struct target *t, uint64_t from, uint64_t to, struct rng *rng,
                       unsigned n, unsigned least, int64_t *ns, struct err *err) {
    uint32_t unit = t->facts.block > READ_SIZE ? t->facts.block : READ_SIZE;
    uint64_t places = (to - from) / unit;
    int64_t lat[IDLE_READS], now = clock_now(t->clock), enough = now + READS_TIME, end = now + SETTLE_LIMIT;
    unsigned worked = 0;
    if (places == 0) { /* a working set below one block: nothing to read, nothing to wait for */
        *ns = 0;
        return 0;
    }
    for (unsigned i = 0; i < n; i++) {
        now = clock_now(t->clock);
        if (i > 0 && (now >= end || (worked >= least && now >= enough))) break;
        if (blockio_ping(io, from + rng_below(rng, places) * unit, unit, &lat[worked], err) == 0) worked++;
        else if (err->status != STATUS_IO) return -1; /* the target is lost, or the user wants the end */
    }
    if (!worked) return -1;
    qsort(lat, worked, sizeof lat[0], compare_ns);
    *ns = lat[worked / 2];
    return 0;
}

static int open_reader(const struct target *t, struct blockio **io, struct err *err) {
    uint32_t unit = t->facts.block > READ_SIZE ? t->facts.block : READ_SIZE;
    return blockio_open(t->backend, t->handle, &t->facts, t->clock, 1, unit, false, io, err);
}

int settle_idle(const struct target *t, uint64_t from, uint64_t to, uint64_t seed, int64_t *ns, struct err *err) {
    struct blockio *io;
    struct rng rng;
    rng_seed(&rng, rng_mix(seed ^ 0x1d1e));
    *ns = SETTLE_UNKNOWN;
    if (open_reader(t, &io, err) != 0) return err_prefix(err, "%s", t->label);
    int result = median_read(io, t, from, to, &rng, IDLE_READS, IDLE_LEAST, ns, err);
    blockio_close(io);
    return result ? err_prefix(err, "%s: idle latency", t->label) : 0;
}

/* Where nothing can be read yet, an answer of the protocol takes as long; a context is connected as this is, and asks for
 * one thing. */
static void look_by_ping(struct target *t) {
    const struct member *m = &t->member[0];
    struct pinger *pinger = NULL;
    struct err err;
    int64_t from = clock_now(t->clock);
    if (!m->backend->pings || m->backend->ping_open(m->handle, &pinger, &err) != 0 || !pinger) return;
    int64_t opened = clock_now(t->clock) - from, ns = m->backend->ping(pinger, 0, PING_TIME);
    m->backend->ping_close(pinger);
    if (ns <= 0) return;
    t->read_ns = ns;
    t->attach_ns = opened + ns;
}

void settle_first_look(struct target *t, uint64_t seed) {
    const struct member *m = &t->member[0];
    uint32_t unit = m->facts.block > READ_SIZE ? m->facts.block : READ_SIZE;
    struct blockio *io;
    struct rng rng;
    struct err err;
    int64_t ns, from = clock_now(t->clock);
    /* The first may wait for a connection's beginnings or a disk's sleep: of two the faster one. */
    unsigned reads = m->facts.kind == OBJECT_NULL ? 1 : 2;
    if (t->lost || !m->handle) return;
    if (!m->facts.exists || m->facts.size < unit) {
        look_by_ping(t);
        return;
    }
    if (blockio_open_road(m->backend, m->handle, &m->facts, t->clock, 1, unit, false,
                          blockio_first_road(m->backend, m->handle), &io, &err) != 0)
        return;
    t->attach_ns = clock_now(t->clock) - from;
    rng_seed(&rng, seed);
    for (unsigned i = 0; i < reads; i++)
        if (blockio_ping(io, rng_below(&rng, m->facts.size / unit) * unit, unit, &ns, &err) == 0 &&
            (t->read_ns == 0 || ns < t->read_ns))
            t->read_ns = ns;
    from = clock_now(t->clock);
    blockio_close(io);
    t->attach_ns += clock_now(t->clock) - from;
}

int settle_wait(const struct target *t, uint64_t from, uint64_t to, uint64_t seed, int64_t idle_ns,
                volatile sig_atomic_t *interrupted, struct settle *out, struct err *err) {
    struct blockio *io;
    struct rng rng;
    int result = 0;
    *out = (struct settle){0};
    if (idle_ns == SETTLE_UNKNOWN) return 0; /* nothing to hold the reads against */
    rng_seed(&rng, rng_mix(seed ^ 0x5e77));
    if (open_reader(t, &io, err) != 0) return err_prefix(err, "%s", t->label);
    int64_t start = clock_now(t->clock), now = start;
    for (;;) {
        result = median_read(io, t, from, to, &rng, SETTLE_READS, SETTLE_LEAST, &out->read_ns, err);
        now = clock_now(t->clock);
        out->settled = result == 0 && out->read_ns <= 2 * idle_ns;
        if (result || out->settled || now - start >= SETTLE_LIMIT || *interrupted) break;
        clock_wait_until(t->clock, now + SETTLE_PAUSE);
    }
    out->waited_ns = now - start;
    blockio_close(io);
    return result ? err_prefix(err, "%s: settling", t->label) : 0;
}

int settle_flush(const struct target *t, int64_t *ns, struct err *err) {
    struct blockio *io;
    *ns = 0;
    if (!t->facts.can_flush) return 0;
    if (blockio_open(t->backend, t->handle, &t->facts, t->clock, 1, t->facts.block > 512 ? t->facts.block : 512, true,
                     &io, err) != 0)
        return err_prefix(err, "%s", t->label);
    int result = blockio_flush(io, ns, err);
    blockio_close(io);
    return result ? err_prefix(err, "%s: flush between runs", t->label) : 0;
}
