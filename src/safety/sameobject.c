/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "safety/sameobject.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/rng.h"
#include "pattern/mark.h"
#include "safety/space.h"
#include "target/blockio.h"

#define PLACES (2 * SAMEOBJECT_SAMPLES + 4)

/* Where one pair is looked at. */
struct places {
    uint64_t at[PLACES];
    unsigned n;
    uint32_t unit;
};

/* ---- roads ---- */

/* Keys that choose the server or the export, not how it is talked to. */
static bool leads_elsewhere(const struct member *a, const struct member *b) {
    static const char *const keys[] = {"export", "nfsport", "mountport", "servers", "portals"};
    char x[400], y[400];

    for (size_t i = 0; a->backend->options && i < sizeof(keys) / sizeof(keys[0]); i++) {
        const struct option_entry *e = option_find(a->backend->options, keys[i]);
        if (!e) continue;
        if (!option_show(e, a->conf, x, sizeof(x))) x[0] = '\0';
        if (!option_show(e, b->conf, y, sizeof(y))) y[0] = '\0';
        if (strcmp(x, y) != 0) return true;
    }
    return false;
}

bool sameobject_same_road(const struct member *a, const struct member *b) {
    return space_same_file(a->url, b->url) && a->backend == b->backend && !leads_elsewhere(a, b);
}

/* ---- reading ---- */

static void choose_places(struct places *p, uint64_t size, uint64_t from, uint64_t to) {
    struct rng rng;
    uint64_t seed = 0, whole = size / p->unit;

    if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed)) seed = size;
    rng_seed(&rng, seed);
    p->n = 0;
    if (whole == 0) return;
    uint64_t first = (from + p->unit - 1) / p->unit, end = to / p->unit < whole ? to / p->unit : whole;
    p->at[p->n++] = 0;
    p->at[p->n++] = (whole - 1) * p->unit;
    for (unsigned i = 0; i < SAMEOBJECT_SAMPLES; i++) p->at[p->n++] = rng_below(&rng, whole) * p->unit;
    if (first >= end) return;
    p->at[p->n++] = first * p->unit;
    p->at[p->n++] = (end - 1) * p->unit;
    for (unsigned i = 0; i < SAMEOBJECT_SAMPLES; i++) p->at[p->n++] = (first + rng_below(&rng, end - first)) * p->unit;
}

/* One after the other: some targets allow one session only. */
static int read_places(const struct item *it, const struct places *p, unsigned char *buf, struct err *err) {
    const struct member *m = it->member;
    struct blockio *io;
    int rc = 0;

    if (blockio_open(m->backend, m->handle, &m->facts, it->target->clock, 1, p->unit, false, &io, err) != 0) return -1;
    for (unsigned i = 0; i < p->n && rc == 0; i++)
        rc = blockio_read(io, p->at[i], buf + (size_t)i * p->unit, p->unit, err);
    blockio_close(io);
    return rc;
}

static uint32_t unit_of(const struct item *a, const struct item *b) {
    uint32_t x = a->member->facts.block, y = b->member->facts.block, unit = x > y ? x : y;

    return unit > MARK_STEP ? unit : MARK_STEP;
}

enum likeness { LIKENESS_EQUAL, LIKENESS_DIFFERENT, LIKENESS_ZEROS, LIKENESS_UNREAD };

static enum likeness hold_together(const unsigned char *x, const unsigned char *y, const struct places *p, char *how,
                                   size_t len) {
    bool data = false;

    for (unsigned i = 0; i < p->n; i++) {
        const unsigned char *a = x + (size_t)i * p->unit, *b = y + (size_t)i * p->unit;
        if (memcmp(a, b, p->unit) != 0) {
            snprintf(how, len, "they differ at offset %" PRIu64, p->at[i]);
            return LIKENESS_DIFFERENT;
        }
        if (!data && !mark_is_zero(a, p->unit)) data = true;
    }
    if (data)
        snprintf(how, len, "%u sampled blocks are equal", p->n);
    else
        snprintf(how, len, "all %u sampled blocks of both are zeros", p->n);
    return data ? LIKENESS_EQUAL : LIKENESS_ZEROS;
}

static enum likeness compare(const struct item *a, const struct item *b, unsigned *blocks, char *how, size_t len) {
    struct places p = {.unit = unit_of(a, b)};
    struct err err;
    enum likeness result = LIKENESS_UNREAD;

    *blocks = 0;
    choose_places(&p, a->member->facts.size, a->from < b->from ? a->from : b->from, a->to > b->to ? a->to : b->to);
    unsigned char *x = malloc((size_t)p.n * p.unit + 1), *y = malloc((size_t)p.n * p.unit + 1);
    if (!x || !y || p.n == 0) {
        snprintf(how, len, "nothing could be read");
    } else if (read_places(a, &p, x, &err) != 0 || read_places(b, &p, y, &err) != 0) {
        snprintf(how, len, "reading failed: %.100s", err.msg);
    } else {
        result = hold_together(x, y, &p, how, len);
        *blocks = p.n;
    }
    free(x);
    free(y);
    return result;
}

/* ---- pairs ---- */

static void judge_name(const struct item *a, const struct item *b, struct sameness_pair *p) {
    unsigned blocks = 0;

    if (a->member->facts.size != b->member->facts.size) {
        p->verdict = SAMENESS_DIFFERENT;
        snprintf(p->how, sizeof(p->how), "their sizes differ");
        return;
    }
    switch (compare(a, b, &blocks, p->how, sizeof(p->how))) {
    case LIKENESS_EQUAL: p->verdict = SAMENESS_ONE; break;
    case LIKENESS_DIFFERENT: p->verdict = SAMENESS_DIFFERENT; break;
    case LIKENESS_ZEROS:
    case LIKENESS_UNREAD: p->verdict = SAMENESS_UNCONFIRMED; break;
    }
    p->by_content = p->verdict == SAMENESS_ONE;
    p->blocks = blocks;
}

/* Nothing says that they are one: data that is equal all the same is worth a word. */
static void judge_strangers(const struct item *a, const struct item *b, struct sameness_pair *p) {
    unsigned blocks = 0;

    if (a->member->facts.size != b->member->facts.size || a->target->n_members > 1 || b->target->n_members > 1) return;
    enum likeness like = compare(a, b, &blocks, p->how, sizeof(p->how));
    p->blocks = blocks;
    p->verdict = like == LIKENESS_EQUAL       ? SAMENESS_EQUAL_DATA
                 : like == LIKENESS_DIFFERENT ? SAMENESS_NO_SIGN
                                              : SAMENESS_NOT_LOOKED;
}

static void judge(const struct item *a, const struct item *b, struct sameness_pair *p) {
    const struct facts *x = &a->member->facts, *y = &b->member->facts;
    enum kinship kin = facts_kinship(x, y);

    if (x->kind == OBJECT_NULL || y->kind == OBJECT_NULL || !x->exists || !y->exists) return;
    if (kin == KINSHIP_ONE) {
        p->verdict = SAMENESS_ONE;
        snprintf(p->how, sizeof(p->how), "one file or device number of this machine");
    } else if (kin == KINSHIP_STORAGE) {
        p->verdict = SAMENESS_SHARED;
        snprintf(p->how, sizeof(p->how), "one file of this machine is behind both");
    } else if (kin == KINSHIP_NAME && sameobject_same_road(a->member, b->member)) {
        p->verdict = SAMENESS_ONE;
        snprintf(p->how, sizeof(p->how), "one URL and one identity");
    } else if (kin == KINSHIP_NAME) {
        judge_name(a, b, p);
    } else {
        judge_strangers(a, b, p);
    }
}

int sameobject_compare(const struct item *items, unsigned n, struct sameness *out, struct err *err) {
    if (sameness_init(out, n) != 0) return err_set(err, STATUS_TARGET, "no memory");
    for (unsigned a = 0; a < n; a++)
        for (unsigned b = 0; b < a; b++) judge(&items[a], &items[b], sameness_of(out, a, b));
    return 0;
}
