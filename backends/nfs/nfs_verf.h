/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The write verifier (RFC 1813, 3.3.7): a server that restarted, or lost what it had not written yet, answers with
 * another one than before. What it had acknowledged as UNSTABLE under the old one and was not committed since is lost.
 * Pure. */
#ifndef BACKENDS_NFS_NFS_VERF_H
#define BACKENDS_NFS_NFS_VERF_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct nfsbe_verf {
    bool known;
    char verf[8];
    uint64_t written;    /* writes answered UNSTABLE */
    uint64_t committed;  /* of those, how many a COMMIT vouches for */
    uint64_t changes;
};

/* Looks at the verifier of a reply. True: acknowledged data was lost. */
static inline bool nfsbe_verf_see(struct nfsbe_verf *v, const char *verf) {
    if (v->known && memcmp(v->verf, verf, sizeof v->verf) == 0) return false;
    bool lost = v->known && v->written > v->committed;
    if (v->known) v->changes++;
    v->known = true;
    memcpy(v->verf, verf, sizeof v->verf);
    v->committed = v->written; /* reported once; nothing is at stake under the new verifier yet */
    return lost;
}

static inline void nfsbe_verf_written(struct nfsbe_verf *v) {
    v->written++;
}

/* A COMMIT that was sent when `written` writes had been answered has succeeded under an unchanged verifier. */
static inline void nfsbe_verf_committed(struct nfsbe_verf *v, uint64_t written) {
    if (written > v->committed) v->committed = written;
}

#endif
