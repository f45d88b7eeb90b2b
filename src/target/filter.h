/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What may stand between a target's backends and the engine: delay (per member, for as long as it is open) and
 * readahead (over the whole target, for one run). */
#ifndef TARGET_FILTER_H
#define TARGET_FILTER_H

#include "target/target.h"

/* After a member was opened: says among its facts that a delay is in force. */
void filter_facts(struct facts *f);
/* Puts the delay that the member's facts ask for over its handle; nothing if they ask for none. */
int filter_delay(struct member *m, struct err *err);
void filter_undelay(struct member *m);
const struct backend *filter_backend(const struct member *m); /* what drives the member: its own, or the delay */
struct handle *filter_handle(const struct member *m);

struct filter {
    const struct backend *backend;
    struct handle *handle;
    bool own; /* a filter's, to be closed */
};

struct filter_load {
    uint64_t readahead; /* bytes; 0: none */
    uint64_t to;        /* the working set's end */
    unsigned workers;
    bool writes;
};

/* Is there room for the readahead's own requests beside `depth` of the load? `f`: of one member. USAGE. */
int filter_check(const struct facts *f, uint64_t readahead, unsigned depth, struct err *err);
/* Bytes of buffers that a readahead takes for each worker, at most. */
uint64_t filter_memory(uint64_t readahead);
/* What a run drives: the assembled target itself, or a readahead over it. */
int filter_open(const struct target *t, const struct filter_load *load, struct filter *out, struct err *err);
void filter_close(struct filter *f);

#endif
