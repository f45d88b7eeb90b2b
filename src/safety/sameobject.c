/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "safety/sameobject.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pattern/mark.h"
#include "safety/places.h"
#include "safety/space.h"
#include "target/blockio.h"

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

static uint32_t unit_of(const struct item *a, const struct item *b) {
    uint32_t x = a->member->facts.block, y = b->member->facts.block, unit = x > y ? x : y;

    return unit > MARK_STEP ? unit : MARK_STEP;
}

enum likeness { LIKENESS_EQUAL, LIKENESS_DIFFERENT, LIKENESS_ZEROS, LIKENESS_UNREAD };

/* By the road that the examination goes by. */
static int read_one(const struct item *it, const struct places *p, unsigned char *buf, struct err *err) {
    const struct member *m = it->member;
    return places_read(m, it->target->clock, blockio_first_road(m->backend, m->handle), p, buf, err);
}

static enum likeness hold_together(const unsigned char *x, const unsigned char *y, const struct places *p, char *how,
                                   size_t len) {
    unsigned at = places_difference(p, x, y);
    bool data = !mark_is_zero(x, (size_t)p->n * p->unit);

    if (at < p->n) {
        snprintf(how, len, "they differ at offset %" PRIu64, p->at[at]);
        return LIKENESS_DIFFERENT;
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
    places_choose(&p, a->member->facts.size, a->from < b->from ? a->from : b->from, a->to > b->to ? a->to : b->to);
    unsigned char *x = malloc((size_t)p.n * p.unit + 1), *y = malloc((size_t)p.n * p.unit + 1);
    if (!x || !y || p.n == 0) {
        snprintf(how, len, "nothing could be read");
    } else if (read_one(a, &p, x, &err) != 0 || read_one(b, &p, y, &err) != 0) {
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
