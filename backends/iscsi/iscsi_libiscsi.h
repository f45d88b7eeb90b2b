/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The engine over libiscsi: what its parts share. iscsi_libiscsi.c sends and receives, iscsi_libiscsi_done.c
 * ends requests, iscsi_libiscsi_hold.c asks who the unit is (iscsi_recheck.h). */
#ifndef BACKENDS_ISCSI_ISCSI_LIBISCSI_H
#define BACKENDS_ISCSI_ISCSI_LIBISCSI_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/iscsi/iscsi_again.h"
#include "backends/iscsi/iscsi_libiscsi_guard.h"
#include "backends/iscsi/iscsi_recheck.h"
#include "backends/iscsi/iscsi_session.h"

struct slot {
    struct context *context;
    struct request *request;        /* NULL: free */
    struct scsi_task task;
    struct scsi_iovec iov;
    int64_t t_taken, t_sent;        /* t_sent: of the command that is out */
    uint8_t sync_op;                /* of its last SYNCHRONIZE CACHE */
    unsigned answers;               /* so many in a row said "not now" */
    int64_t t_retry;                /* when to send again; 0: it is out */
    int64_t moved;                  /* result of the WRITE while its SYNCHRONIZE CACHE is out */
    bool syncing;
};

struct counts {
    uint64_t commands, fua, caches_synced, attentions, resets, window, full;
    uint64_t done;                  /* requests that ended well: without cache syncs behind a write, retries, failures */
    uint64_t checks, holds, hold_ns, no_sync;
    struct iscsibe_again_counts again;
};

struct context {
    struct iscsibe_context head;
    struct iscsibe_session *s;      /* NULL once lost */
    struct iscsi_context *iscsi;
    int fd;
    unsigned lun;                   /* as on the wire */
    uint32_t block;
    struct clock *clock;
    struct kinds *kinds;
    int64_t timeout;
    unsigned depth, lent, retrying;
    struct slot *slots;             /* by request->slot */
    struct completion *done;        /* ring of `depth` */
    unsigned done_first, done_n;
    struct counts counts;
    int64_t t_scan;                 /* when timeouts were last looked at */
    bool fua, sync_behind;          /* a durable write has FUA, or SYNCHRONIZE CACHE behind it; neither: it needs none */
    bool stable;                    /* what is written is not in a volatile cache */
    uint8_t sync_op;                /* SYNCHRONIZE CACHE(16) or (10); 0: the unit has neither */
    bool hold;                      /* is it still the same unit? No command goes before that is known */
    bool unsent;                    /* the last command queued may wait inside the library */
    const char *give_up;            /* kind of error: lose the session when the library is not running */
    struct iscsibe_recheck check;
    struct scsi_task check_task;
    struct scsi_iovec check_iov;
    uint8_t check_data[RECHECK_ALLOC];
    unsigned check_alloc;
    int64_t asked, held_since;      /* of sock_now() */
    struct libguard *guard;         /* NULL once lost */
    _Atomic unsigned calls;         /* of the library, twice: odd inside one */
    bool may_write, lost;
    int lost_error;                 /* errno of why */
    bool broken;                    /* callbacks have said that the session is gone */
    bool closing;                   /* callbacks have nothing to say any more */
};

/* Gives the slot's request back. */
void iscsibe_lib_push(struct context *c, struct slot *s, int64_t t, int64_t result, unsigned kind, bool stable);
void iscsibe_lib_fail(struct context *c, struct slot *s, int64_t t, int error, const char *name, const char *text);
/* The library's callback for every command of a slot. */
void iscsibe_lib_done(struct iscsi_context *iscsi, int status, void *data, void *slot);
/* The second half of a durable write. Also inside callbacks. */
void iscsibe_lib_sync(struct context *c, struct slot *s);

/* There is a reason to doubt that the unit is the same: all commands wait until it is known. Also inside callbacks. */
void iscsibe_lib_doubt(struct context *c, const char *why);
/* The same, if another session had one. */
void iscsibe_lib_follow(struct context *c);
/* While there is a question: its next command, if it is time for one and nothing else is out. Not inside callbacks. */
void iscsibe_lib_ask(struct context *c, int64_t now);
void iscsibe_lib_count_attention(struct context *c, unsigned status, unsigned key, unsigned ascq);

#endif
