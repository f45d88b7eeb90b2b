/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The names of NFSv3 and MOUNTv3 status codes (RFC 1813), the errno they are nearest to, and what usually helps. Pure.
 */
#ifndef BACKENDS_NFS_NFS_NAMES_H
#define BACKENDS_NFS_NFS_NAMES_H

#include "base/kv.h"
#include <stddef.h>

#define NFS_STATUS_ROFS 30
#define NFS_STATUS_STALE 70
#define NFS_STATUS_BADHANDLE 10001
#define NFS_STATUS_JUKEBOX 10008

/* "NFS3ERR_NOSPC"; an unknown code is written into buf: "NFS3ERR 4711". */
const char *nfsbe_status_name(unsigned status, char *buf, size_t len);
/* Positive errno. JUKEBOX is EBUSY: EAGAIN would read as "not tried". */
int nfsbe_status_errno(unsigned status);
/* What a person can do about it, "" where there is nothing general to say. */
const char *nfsbe_status_hint(unsigned status);
/* "MNT3ERR_ACCES"; MOUNT's codes are a subset with its own prefix. */
const char *nfsbe_mount_name(unsigned status, char *buf, size_t len);

/* What both engines count, under the same names in every result. Arrays by stable_how: UNSTABLE, DATA_SYNC, FILE_SYNC. */
struct nfsbe_counts {
    uint64_t rpcs;                         /* that requests ended well by, their parts too; not what had to be sent again */
    uint64_t commits, verifier_changes, held;
    uint64_t jukebox, retries, retry_wait; /* net/again.h; jukebox: answers, also those after which a request failed */
    uint64_t short_reads, short_writes;    /* of which the rest was asked for */
    const uint64_t *asked, *answered;
};
void nfsbe_counts_put(const struct nfsbe_counts *n, struct kv *out);

#endif
