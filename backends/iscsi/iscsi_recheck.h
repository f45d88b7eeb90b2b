/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Is this still the unit that was opened? What a session asks while it lives, one command at a time, of which the engines
 * do the sending: INQUIRY, VPD 83 and 80, READ CAPACITY, and a READ of what was written to it (the seal), because
 * another unit may bear the same names. Pure, no clock, no allocation.
 *
 * A target may put another object behind a LUN while sessions are logged in, and need not say so: LIO answers a few
 * commands with LOGICAL UNIT NOT SUPPORTED, and the next WRITE goes into the new object. So a session that has reason to
 * doubt (iscsibe_doubtful) sends nothing more before the unit has given the names and the size that consent was given
 * for. What happens between two commands gives no reason to doubt: a session that may write therefore asks for the name
 * also once a second, which bounds the harm and tells of it, but cannot prevent it. */
#ifndef BACKENDS_ISCSI_ISCSI_RECHECK_H
#define BACKENDS_ISCSI_ISCSI_RECHECK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/backend.h"
#include "backends/iscsi/iscsi_facts.h"
#include "base/clock.h"

#define RECHECK_EVERY_NS NS_PER_SEC /* of sessions that may write, without any reason */

/* What consent was given for. Shared by all sessions to the unit. */
struct iscsibe_unit {
    char identity[FACTS_IDENTITIES][128];
    uint64_t size;
    uint32_t block;
    bool vpd83, vpd80;              /* the pages that it listed */
    bool weak;                      /* its names are made up by software: another unit may bear them */
    atomic_uint doubts;             /* how often any session had reason to doubt: the others then have it, too */
};

enum recheck_verdict {
    RECHECK_MORE,                   /* go on asking */
    RECHECK_SAME,
    RECHECK_DOUBT,                  /* a question without reason has brought one: `why` */
    RECHECK_LOST                    /* kind and text say why */
};

struct iscsibe_recheck {
    struct iscsibe_unit *unit;
    unsigned doubts;                /* of unit->doubts, those that this session has heeded */
    bool asking, out, stale;        /* out: its command is; stale: the answer to that one no longer matters */
    bool routine;                   /* without a reason */
    bool writes;                    /* the session may write: then a unit without a name is given up after a doubt */
    uint64_t seal_at;               /* bytes that were written to the unit, and are read again; a byte offset */
    size_t seal_len;                /* 0: there are none */
    char seal[SEAL_MAX];
    unsigned step, answers;         /* answers: "not now", in a row */
    int64_t due, deadline;          /* when the next command may go; when there must be a verdict */
    int64_t timeout;
    struct iscsibe_inquiry inquiry;
    uint8_t vpd83[4096], vpd80[260];
    size_t n83, n80;
    char why[60];                   /* the reason */
    char last[80];                  /* the last answer that was no answer */
    const char *kind;
    char text[340];
};

/* Before it is asked for the first time. What does not fit into one question's answer is no seal. */
void iscsibe_recheck_seal(struct iscsibe_recheck *r, const struct seal *seal);
/* True if the two lists of names are the same; else who it was and is into buf. */
bool iscsibe_same_names(const char was[][128], const char is[][128], char *buf, size_t len);

/* Begins to ask, or begins anew; `why` NULL: without a reason. The deadline of an earlier reason stays. */
void iscsibe_recheck_ask(struct iscsibe_recheck *r, int64_t now, int64_t timeout, const char *why);
/* Can a session ask without a reason, for a name? */
bool iscsibe_recheck_can_ask(const struct iscsibe_recheck *r);
/* Is a command to be sent now? */
bool iscsibe_recheck_due(const struct iscsibe_recheck *r, int64_t now);
/* The command, which goes now: into cdb; its allocation length, at most RECHECK_ALLOC. */
#define RECHECK_ALLOC 4096u
unsigned iscsibe_recheck_cdb(struct iscsibe_recheck *r, uint8_t cdb[16]);
/* Its answer. `len` bytes of data came; status 0xff: the target could not do it at all. */
enum recheck_verdict iscsibe_recheck_answer(struct iscsibe_recheck *r, int64_t now, unsigned status, unsigned key,
                                            unsigned ascq, const uint8_t *data, size_t len);
/* Time has passed. */
enum recheck_verdict iscsibe_recheck_late(struct iscsibe_recheck *r, int64_t now);

#endif
