/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Persistent reservations of a block device, asked of every disk that it ends at: those of a multipath map's paths are
 * one, those below a volume are its disks'. */
#ifndef BACKENDS_LOCAL_RESERVATIONS_H
#define BACKENDS_LOCAL_RESERVATIONS_H

#include "backends/backend.h"
#include "backends/local/roads.h"
#include "scsi/reserve.h"

/* "registered_keys", "reserved" or why it is not known to `negotiated`; any key, and that it could not be found out, is a
 * reason in f->in_use. `fd`: the open device. */
void reservations_facts(const char *sys, dev_t dev, int fd, struct facts *f);

/* The half of it that asks nothing. */
struct reservations_answer {
    const struct road *road;
    char unit[128];   /* the name of the unit, "": none; paths to one unit have the same */
    int rc;           /* 0, or a negative errno as of sgio.h; -EBADMSG: an answer that is too short */
    struct reserve r;
};
void reservations_judge(const struct reservations_answer *all, unsigned n, dev_t dev, struct facts *f);

#endif
