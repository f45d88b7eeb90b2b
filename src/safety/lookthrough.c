/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "safety/lookthrough.h"

#include <string.h>
#include <sys/random.h>

#include "base/rng.h"
#include "pattern/data.h"
#include "pattern/mark.h"
#include "target/blockio.h"

struct search {
    const uint32_t *tag;
    unsigned n;
    struct lookthrough *out;
    struct rng rng;
    uint32_t unit;
    bool at_its_place; /* the blocks that are read now */
};

static int see(void *arg, uint64_t offset, void *buf, size_t len) {
    struct search *s = arg;
    bool at_its_place = s->at_its_place;
    uint32_t run = 0;

    (void)offset;
    bool ours = false;
    /* A file system may put a file's blocks at any sector. */
    for (uint32_t sector = 0; sector < len && !ours; sector += DATA_SECTOR)
        ours = data_run_of((unsigned char *)buf + sector, DATA_SECTOR, &run, NULL);
    for (unsigned i = 0; i < s->n; i++) {
        bool found = ours && s->tag[i] == run;
        s->out[i].blocks++;
        s->out[i].places += at_its_place;
        s->out[i].same += found && at_its_place;
        s->out[i].elsewhere += found && !at_its_place;
    }
    return 0;
}

static int look_over(struct search *s, const struct backend *backend, struct handle *h, const struct facts *f,
                     struct clock *clock, uint64_t from, uint64_t to, unsigned samples, bool at_their_places,
                     struct err *err) {
    uint64_t first = (from + s->unit - 1) / s->unit, end = to / s->unit, place[LOOKTHROUGH_RANDOM];
    struct blockio *io;

    if (first >= end) return 0;
    if (blockio_open(backend, h, f, clock, BLOCKIO_LOOK_DEPTH, s->unit, false, &io, err) != 0) return -1;
    s->at_its_place = at_their_places;
    uint64_t blocks = end - first;
    if (samples > blocks) samples = (unsigned)blocks;
    /* One in each of so many equal parts, so that no part is left out. */
    for (unsigned i = 0; i < samples; i++) {
        uint64_t low = (uint64_t)((unsigned __int128)blocks * i / samples);
        uint64_t high = (uint64_t)((unsigned __int128)blocks * (i + 1) / samples);
        place[i] = (first + low + rng_below(&s->rng, high - low)) * s->unit;
    }
    int rc = blockio_read_places(io, place, samples, s->unit, see, s, err);
    blockio_close(io);
    return rc;
}

int lookthrough(const struct target *t, const uint32_t *tag, unsigned n, uint64_t from, uint64_t to,
                struct lookthrough *out, struct err *err) {
    struct search s = {.tag = tag, .n = n, .out = out};
    uint64_t seed = from ^ to;

    memset(out, 0, n * sizeof(*out));
    if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed)) seed ^= (uint64_t)(uintptr_t)out;
    rng_seed(&s.rng, seed);
    s.unit = t->facts.block > MARK_STEP ? t->facts.block : MARK_STEP;
    int rc = look_over(&s, t->backend, t->handle, &t->facts, t->clock, from, to, LOOKTHROUGH_SAME, true, err);
    for (unsigned m = 0; m < t->n_members && rc == 0; m++) {
        const struct member *x = &t->member[m];
        rc = look_over(&s, x->backend, x->handle, &x->facts, t->clock, 0, x->facts.size, LOOKTHROUGH_RANDOM, false,
                       err);
    }
    if (rc >= 0) return rc;
    err->status = STATUS_TARGET;
    return err_prefix(err, "%s: looking for blocks of other targets", t->label);
}
