/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who writes to an object: a record in one of its blocks, that every samedisk reads before it writes. It stands where
 * no lock reaches, on LUNs and NFS files, and costs nothing elsewhere. */
#ifndef SAFETY_OWNER_H
#define SAFETY_OWNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "pattern/data.h"

enum owner_state { OWNER_RELEASED, OWNER_ACTIVE };

struct owner {
    enum owner_state state;
    unsigned target;     /* which of the plan's */
    pid_t pid;
    uint64_t start;      /* of the process, in clock ticks since boot: a number is given again */
    uint64_t pid_space;  /* a container's numbers are not ours */
    int64_t since;       /* seconds since 1970 */
    uint8_t token[16];   /* random, one for each invocation */
    uint8_t boot[16];    /* the host's boot id; all zeros: unknown */
    char host[64];
};

enum owner_verdict {
    OWNER_FREE,     /* no record, a released one, or that of a process of this host that is gone */
    OWNER_OURS,     /* this invocation's own, written through this target or another */
    OWNER_RUNNING,  /* a process of this host that lives */
    OWNER_ELSEWHERE /* another host, boot or container: nobody here can say */
};

/* This process, with a new token, active. `proc`: "/proc". */
void owner_self(struct owner *o, const char *proc);
/* As it stands in a block: exactly OWNER_SIZE bytes. */
#define OWNER_SIZE 160
#define OWNER_TOKEN_AT 48 /* where in it the token stands */
_Static_assert(OWNER_SIZE <= DATA_NOTE_MAX, "a record is a note");
void owner_encode(const struct owner *o, void *bytes);
/* The record of a block of at least 512 bytes; false: there is none. */
bool owner_of_block(const void *block, struct owner *o);
enum owner_verdict owner_judge(const struct owner *o, const struct owner *self, const char *proc);
/* "samedisk on host filer7, process 1234, writes to it since 2026-11-30 19:40:12 UTC", fit to print; returns buf. */
const char *owner_text(const struct owner *o, char *buf, size_t len);

#endif
