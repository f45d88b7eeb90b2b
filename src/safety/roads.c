/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "safety/roads.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/text.h"
#include "pattern/data.h"
#include "pattern/mark.h"
#include "safety/places.h"
#include "target/blockio.h"

#define ADVICE "the roads are the URL's own, then those of portals= or servers= in their order; leave out the one that leads " \
               "elsewhere, each object is a target of its own"

static uint32_t unit_of(const struct facts *f) {
    return f->block > MARK_STEP ? f->block : MARK_STEP;
}

static const char *show_url(const struct member *m, char *buf, size_t len) {
    return text_safe(buf, len, m->url, strlen(m->url));
}

/* ---- by reading ---- */

int roads_compare(struct item *it, struct err *err) {
    const struct member *m = it->member;
    unsigned roads = blockio_roads(m->backend, m->handle);
    struct places p = {.unit = unit_of(&m->facts)};
    char where[300];
    int rc = 0;

    if (roads < 2 || !m->facts.exists) return 0;
    places_choose(&p, m->facts.size, it->from, it->to);
    unsigned char *first = malloc((size_t)p.n * p.unit + 1), *other = malloc((size_t)p.n * p.unit + 1);
    if (!first || !other) rc = err_set(err, STATUS_TARGET, "no memory");
    if (rc == 0) rc = places_read(m, it->target->clock, 1, &p, first, err);
    for (unsigned road = 2; road <= roads && rc == 0 && !item_is_refused(it); road++) {
        rc = places_read(m, it->target->clock, road, &p, other, err);
        unsigned at = rc == 0 ? places_difference(&p, first, other) : p.n;
        if (at < p.n)
            item_refuse(it, ADVICE,
                        "%s: its roads lead to different objects that bear one name: by number %u, other data is read at "
                        "offset %" PRIu64 " than by the first",
                        item_where(it, where, sizeof(where)), road, p.at[at]);
    }
    free(first);
    free(other);
    return rc;
}

/* ---- by writing ---- */

struct proof {
    const struct target *target;
    const struct member *member;
    uint64_t at;
    uint32_t unit;
    unsigned char *wrote, *got;
};

static int by_road(const struct proof *p, unsigned road, bool write, struct err *err) {
    const struct member *m = p->member;
    struct blockio *io;

    if (blockio_open_road(m->backend, m->handle, &m->facts, p->target->clock, 1, p->unit, write, road, &io, err) != 0)
        return -1;
    int rc = write ? blockio_write(io, p->at, p->wrote, p->unit, err) : blockio_read(io, p->at, p->got, p->unit, err);
    if (rc == 0 && write && m->facts.can_flush) rc = blockio_flush(io, NULL, err);
    blockio_close(io);
    if (rc != 0) err->status = STATUS_TARGET;
    return rc;
}

static int refuse(const struct proof *p, unsigned road, struct err *err) {
    char url[300];

    show_url(p->member, url, sizeof(url));
    if (road == 1)
        return err_set(err, STATUS_USAGE,
                       "%s: refused: %s keeps nothing of what is written, and so nobody can tell whether all of its roads "
                       "lead to one object\nmeasure it by one road",
                       p->target->label, url);
    return err_set(err, STATUS_USAGE,
                   "%s: refused: the roads of %s lead to different objects that bear one name: what was written by the first "
                   "is not read by number %u, and nothing was written by that one\n" ADVICE,
                   p->target->label, url, road);
}

static int prove(struct proof *p, unsigned roads, struct err *err) {
    struct data data;
    uint64_t random[2] = {0};

    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return err_set(err, STATUS_TARGET, "no random numbers");
    data_init(&data, (uint32_t)random[0], random[1] >> 9, NULL);
    data_make(&data, p->wrote, p->at, p->unit);
    if (by_road(p, 1, true, err) != 0) return -1;
    for (unsigned road = 1; road <= roads; road++) {
        if (by_road(p, road, false, err) != 0) return -1;
        if (memcmp(p->wrote, p->got, p->unit) != 0) return refuse(p, road, err);
    }
    return 0;
}

static int prove_member(const struct target *t, unsigned i, uint64_t from, uint64_t to, struct err *err) {
    const struct member *m = &t->member[i];
    unsigned roads = blockio_roads(m->backend, m->handle);
    struct proof p = {.target = t, .member = m, .unit = unit_of(&m->facts)};
    char url[300];
    int rc = -1;

    if (roads < 2) return 0;
    target_member_range(t, i, from, to, &from, &to);
    if (from >= to) return 0;
    uint64_t end = to / p.unit * p.unit;
    if (end < from + p.unit)
        return err_set(err, STATUS_USAGE,
                       "%s: refused: the range of %s that is written is too small to prove that all of its roads lead to "
                       "one object\na larger size=, or one road",
                       t->label, show_url(m, url, sizeof(url)));
    p.at = end - p.unit;
    p.wrote = malloc(p.unit);
    p.got = malloc(p.unit);
    rc = p.wrote && p.got ? prove(&p, roads, err) : err_set(err, STATUS_TARGET, "no memory");
    free(p.wrote);
    free(p.got);
    return rc;
}

int roads_prove(struct target *t, uint64_t from, uint64_t to, struct err *err) {
    for (unsigned i = 0; i < t->n_members; i++)
        if (prove_member(t, i, from, to, err) != 0) {
            if (err->status == STATUS_TARGET) err_prefix(err, "%s: writing by one road and reading by the others", t->label);
            return -1;
        }
    return 0;
}
