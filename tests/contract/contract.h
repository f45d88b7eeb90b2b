/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One body of tests over every backend: what backends/backend.h promises. */
#ifndef TESTS_CONTRACT_H
#define TESTS_CONTRACT_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/backend.h"

/* What is tested. */
struct contract_subject {
    const char *name;
    const char *url;
    const char *key, *value;        /* an access key, for what is no URL (devices); NULL: none */
    const struct backend *backend;  /* NULL: the registry's, by the URL */
    uint64_t create_size; /* not 0: the URL names a file that does not exist; it is created, and removed again */
    bool loses_data;                /* reads do not bring back what was written */
    bool virtual_clock;             /* time stands still but for waits */
    unsigned ios;                   /* of the mixed load at each depth; 0: 1000 */
    /* For objects that are no URL: in place of backend->open and close. */
    int (*open)(const struct contract_subject *s, enum open_mode mode, struct handle **out, struct facts *f,
                struct err *err);
    void (*close)(const struct contract_subject *s, struct handle *h);
};

/* Runs all cases; returns the number of failures, as cmocka does. */
int contract_run(const struct contract_subject *s);

/* ---- for the cases ---- */

/* An opened object. */
struct object {
    const struct contract_subject *s;
    const struct backend *backend;
    void *conf;
    struct handle *handle;
    struct facts facts;
    bool created;
};

/* Both print why and fail the test, unless `err` is given: then they return -1. */
int object_open(struct object *o, const struct contract_subject *s, enum open_mode mode, struct err *err);
/* For reading and writing: created if the subject says so. */
void object_open_write(struct object *o, const struct contract_subject *s);
void object_close(struct object *o); /* removes what it created */

/* An attached context with its requests: the engine's part, in small. */
struct rig {
    struct object *o;
    struct context *context;
    unsigned depth;
    size_t stride;
    unsigned char *buffers;
    struct request *request;        /* one per slot */
    bool *lent;
    struct request **list;
    struct completion *done;
    unsigned n_lent;
    uint64_t base, size;            /* where the mixed load goes */
    struct clock_virtual virtual;
    struct clock real, *clock;
    struct kinds kinds;
    int64_t last_stamp, longest_submit;
    uint64_t generation, rng;
    char why[300];                  /* "" until something is wrong; may be read after the thread has ended */
};

bool rig_attach(struct rig *r, struct object *o, unsigned depth, uint32_t max_io, bool write);
void rig_detach(struct rig *r);
/* Prepares the request of a slot. */
struct request *rig_prepare(struct rig *r, unsigned slot, enum io_op op, enum io_sync sync, uint64_t offset,
                            uint32_t len);
/* Submits slots 0 .. n-1 until all are taken; false (and `why`) if that cannot be. */
bool rig_submit_all(struct rig *r, unsigned n);
/* One reap; checks pointers, generations and stamps. Number of completions, or -1 with `why`; the error of a lost
 * context is a failure here. */
int rig_reap(struct rig *r, unsigned max, unsigned min, int64_t timeout_ns);
/* Everything back; results stand in done[0 .. n-1] in order of slot. */
bool rig_drain(struct rig *r);
/* One request to its end: its completion is done[0]. */
bool rig_one(struct rig *r, enum io_op op, enum io_sync sync, uint64_t offset, uint32_t len);
/* `ios` reads, writes and flushes at the rig's depth. */
bool rig_mixed(struct rig *r, unsigned ios, bool write);
uint32_t rig_unit(const struct rig *r); /* 4096 or the block size, whichever is larger */

/* Calls of malloc, calloc, realloc from code of this program (not from shared libraries) since the start. */
uint64_t contract_allocations(void);

#endif
