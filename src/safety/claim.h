/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The owner's record of one target: where it stands, and how it is read and written. Private to this folder. */
#ifndef SAFETY_CLAIM_H
#define SAFETY_CLAIM_H

#include "safety/owner.h"
#include "safety/safety.h"

struct claim {
    struct target *target;
    uint64_t at;       /* of its block, in the target */
    uint32_t unit;     /* bytes of the block; 0: the target is not to be taken */
    uint64_t before;   /* what was in the block, as a sum, before the record was written */
    bool taken;        /* the record was written, and not given back */
    int64_t took;      /* ns, from reading the block for the last time to the record's being there */
    struct data_note note;
    unsigned char bytes[OWNER_SIZE];
};

/* Where the record of a target stands of which [from, to) is written; one that keeps nothing, or has no whole block in
 * it, gets none. */
void claim_place(struct claim *c, struct target *t, uint64_t from, uint64_t to);
struct claim_block {
    bool has_record;
    struct owner owner; /* if it has */
    bool whole;         /* all of the block is ours or zeros */
    uint64_t sum;       /* of its bytes */
};
int claim_read(const struct claim *c, struct claim_block *out, struct err *err);
/* Makes `o` the record, and writes it, if by the same session the block is what `as` has read before: else it is
 * somebody else's, or the session has led to another object (STATUS_TARGET). */
int claim_write(struct claim *c, const struct owner *o, const struct claim_block *as, struct err *err);

#endif
