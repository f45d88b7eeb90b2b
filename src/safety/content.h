/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What lies on an object: known signatures (libblkid's, and VMFS), and what kind of blocks the range to be written
 * holds. */
#ifndef SAFETY_CONTENT_H
#define SAFETY_CONTENT_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/backend.h"
#include "safety/owner.h"

#define CONTENT_SIGNATURES 64
#define CONTENT_HEAD       (4u << 20) /* read at the start of the object and of every partition */
#define CONTENT_TAIL       (2u << 20) /* read at their ends: md 1.0, ZFS, the second GPT lie there */
#define CONTENT_SAMPLES    256        /* at least, where the range is not read whole */
#define CONTENT_OWNERS     16
#define CONTENT_TIME       (60 * NS_PER_SEC)
#define CONTENT_DENSE      (1u << 30) /* a range up to this is read whole, unless samples of it were foreign */

struct content_signature {
    char name[32];      /* the word that names it back: "ext4", "gpt", "LVM2_member", "VMFS" */
    char text[160];     /* for people, fit to print: ext4 file system "data" */
    uint64_t start;     /* where the object or partition that holds it begins */
    unsigned partition; /* its number; 0: the object itself */
};

struct content {
    struct content_signature signature[CONTENT_SIGNATURES];
    unsigned n;
    bool more; /* there were more than fit, or more partitions than were looked into */
    uint64_t range, looked; /* bytes: of the range, and of it that were read for these counts */
    /* blocks of 4 KiB of the range: */
    unsigned ours, zeros, foreign;
    uint64_t first_sum; /* content_sum() of the first whole one, where a record would stand; if first_known */
    bool first_known;
    uint64_t first_foreign; /* offset; where foreign > 0 */
    struct owner owner[CONTENT_OWNERS]; /* records of runs that have not given the object back, as far as that was read: */
    unsigned n_owners;                  /* some may be of runs that are gone */
    bool cut; /* there was no time to read all that has to be: nobody knows what is there */
};

enum content_kind { CONTENT_ZEROS, CONTENT_OWN, CONTENT_UNKNOWN, CONTENT_KNOWN };

struct content_wish {
    const struct backend *backend;
    struct handle *handle;
    const struct facts *facts;
    struct clock *clock;
    uint64_t from, to; /* the range that will be written */
    int64_t time;      /* ns: what takes longer to look at is unknown data; 0: however long it takes */
    uint64_t seed;     /* of the samples' places; 0: nobody can foresee them */
    volatile sig_atomic_t *interrupted; /* may be NULL */
    /* About once a second while the range is read; bytes. NULL: nobody wants to know. */
    void (*progress)(void *arg, uint64_t done, uint64_t total);
    void *arg;
};

enum { CONTENT_INTERRUPTED = 1, CONTENT_NO_TIME = 2 }; /* the second one is content.c's own */

/* Reads the object through its backend, many places at a time, and fills `out`. A range of up to CONTENT_DENSE is read
 * whole: all of it where there are zeros, for some seconds where it looks like ours. Of a larger one the first block, the
 * last one, and samples at random places are read. 0, or CONTENT_INTERRUPTED, or -1 (STATUS_TARGET). */
int content_look(const struct content_wish *wish, struct content *out, struct err *err);
/* The same with random places, and without an end before it is done. */
int content_examine(const struct backend *backend, struct handle *h, const struct facts *facts, struct clock *clock,
                    uint64_t from, uint64_t to, struct content *out, struct err *err);
/* By which a block is known again; `len` a multiple of 8. */
uint64_t content_sum(const void *block, size_t len);
/* A signature anywhere outweighs everything; then foreign blocks, and that there was no time to look; then ours. */
enum content_kind content_kind(const struct content *c);
/* "all zeros (all of it was read)", "samedisk data (only 0.02 % of it was read)",
 * "GPT partition table with 2 partitions; partition 1 at 1 MiB: ..."; returns buf. */
const char *content_describe(const struct content *c, char *buf, size_t len);
/* Does the user's word mean this signature? Any case; "mbr" is dos, "vmfs_volume_member" is VMFS. */
bool content_is_named(const struct content_signature *s, const char *word);
/* "1 GiB", "4 KiB", "512 bytes", "3.81 GiB": exact where a unit divides it. */
const char *content_size(char *buf, size_t len, uint64_t bytes);

#endif
