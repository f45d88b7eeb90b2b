/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A target: what is measured, under a label, with one or more members. */
#ifndef TARGET_TARGET_H
#define TARGET_TARGET_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/backend.h"

#define TARGET_MEMBERS 64

struct member {
    char *url; /* without secrets, fit to print */
    const struct backend *backend;
    void *conf;
    struct handle *handle; /* NULL while closed */
    struct handle *delayed; /* of the delay over it (filter.h); NULL: none */
    struct facts facts;
    bool created;   /* by this invocation: --cleanup may remove it */
    bool consented; /* written only if true (or created) */
    bool borrowed;  /* the consent was given for another label of what seems to be one object: written after that one */
};

struct target {
    char label[64];
    struct member member[TARGET_MEMBERS];
    unsigned n_members;
    /* What the engine drives: member[0]'s own with one member, else a stripe over all of them. */
    const struct backend *backend;
    struct handle *handle;
    struct facts facts; /* size: what the working set may use; block: the largest; max_io, max_depth: the smallest */
    struct clock *clock;
    bool unfilled; /* is to be filled, and was not (yet, or not to the end) */
    bool filled;   /* the session has filled it */
    int64_t read_ns;   /* of a read of 4 KiB at depth 1, when it was opened; 0: unknown */
    int64_t open_ns;   /* of opening it for reading; 0: unknown */
    int64_t attach_ns; /* of attaching and detaching a context then */
    bool silent;       /* I/Os to it were given up without an answer */
    uint64_t put_offs, put_off_ns; /* answers "not now" while it was filled and the record of who writes was made, and
                                      the pauses before those requests were sent again; not yet in a result */
    bool lost;     /* nothing more is tried on it */
    char lost_reason[512];
};

/* Opens every member (those that exist) in OPEN_READ; error STATUS_TARGET prefixed by label. Safe to call again after
 * close. */
int target_open_read(struct target *t, struct err *err);
/* Reopens member `m` for writing, or creates it. The caller (safety) has decided that it may. */
int target_member_reopen(struct target *t, unsigned m, enum open_mode mode, uint64_t create_size, struct err *err);
/* What each member must have so that the target has `needed` bytes; with one member the same number. */
uint64_t target_member_size(const struct target *t, uint64_t needed);
/* The part of member `m` that holds [from, to) of the target. */
void target_member_range(const struct target *t, unsigned m, uint64_t from, uint64_t to, uint64_t *member_from,
                         uint64_t *member_to);
/* Puts the settings of this host in force that the members' access keys ask for, until target_close. Error STATUS_TARGET
 * prefixed by label. */
int target_adjust(struct target *t, struct err *err);
/* After members were opened: makes handle, backend, facts of the whole. */
int target_assemble(struct target *t, struct err *err);
void target_close(struct target *t);
/* Also what the members own (URL, configuration); the struct itself is the caller's. */
void target_free(struct target *t);

/* What two members have to do with each other by what they say of themselves. A name is a claim: servers make names up,
 * and two of them make up the same. Names that a backend warns of as "weak-identity" only count between LUNs of one
 * number and one target ("target_name" and "lun" among the negotiated facts). */
enum kinship {
    KINSHIP_NONE,
    KINSHIP_NAME,    /* a name in common: one object only if their contents say so too */
    KINSHIP_STORAGE, /* one local file is behind both, not necessarily from the same byte on */
    KINSHIP_ONE      /* this kernel's own number: one object */
};
enum kinship facts_kinship(const struct facts *a, const struct facts *b);

#endif
