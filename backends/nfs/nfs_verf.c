/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/nfs/nfs_verf.h"

/* Whoever follows to a verifier that another connection has already is at the same server, and no further change. */
static bool is_new(const struct nfsbe_verfs *all, const char *verf) {
    for (unsigned i = 0; i < all->n; i++)
        if (all->at[i].known && memcmp(all->at[i].verf, verf, sizeof all->at[i].verf) == 0) return false;
    return true;
}

bool nfsbe_verf_changed(struct nfsbe_verfs *all, struct nfsbe_verf *v, const char *verf) {
    const struct nfsbe_verf before = *v;
    bool lost = false;

    if (v->known && is_new(all, verf)) all->changes++;
    for (unsigned i = 0; i < all->n; i++) {
        struct nfsbe_verf *one = &all->at[i];
        if (!nfsbe_verf_same(one, &before)) continue;
        lost |= nfsbe_verf_at_stake(one);
        one->safe = one->last;
    }
    v->known = true;
    memcpy(v->verf, verf, sizeof v->verf);
    return lost;
}

void nfsbe_verf_committed(struct nfsbe_verfs *all, const struct nfsbe_verf *v, uint64_t written) {
    for (unsigned i = 0; i < all->n; i++) {
        struct nfsbe_verf *one = &all->at[i];
        if (nfsbe_verf_same(one, v) && written > one->safe) one->safe = written;
    }
}

static bool asked_for(const struct nfsbe_verfs *all, const uint16_t *to, unsigned n, unsigned i) {
    for (unsigned k = 0; k < n; k++)
        if (nfsbe_verf_same(&all->at[to[k]], &all->at[i])) return true;
    return false;
}

unsigned nfsbe_verf_to_commit(const struct nfsbe_verfs *all, unsigned prefer, uint16_t *to) {
    unsigned n = 0;
    for (unsigned k = 0; k < all->n; k++) { /* `prefer` speaks for its server if any data there is at stake */
        if (!nfsbe_verf_at_stake(&all->at[k])) continue;
        unsigned i = nfsbe_verf_same(&all->at[prefer], &all->at[k]) ? prefer : k;
        if (!asked_for(all, to, n, i)) to[n++] = (uint16_t)i;
    }
    if (n == 0) to[n++] = (uint16_t)prefer;
    return n;
}
