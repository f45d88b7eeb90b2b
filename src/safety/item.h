/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One member under examination; private to this folder. */
#ifndef SAFETY_ITEM_H
#define SAFETY_ITEM_H

#include "safety/content.h"
#include "safety/localdisk.h"
#include "safety/safety.h"
#include "target/sameness.h"

struct item {
    const struct safety_wish *wish;
    struct target *target;
    struct member *member;
    struct safety_decision *decision;
    uint64_t from, to, needed; /* of this member */
    struct content *content;   /* NULL until it was read */
    char note[160];            /* local devices that are the same object */
    char complaint[700];       /* about the user's words */
};

/* Marks the item refused; the first reason stays. `advice` is the second line, "" if there is nothing to type or do. */
void item_refuse(struct item *it, const char *advice, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
bool item_is_refused(const struct item *it);
/* "/dev/sdb (naa.6006...)", fit to print. */
const char *item_where(const struct item *it, char *buf, size_t len);

/* What needs no look at the content: it exists and is large enough, or may be created; nobody uses it; where it lies.
 * `disks` may be NULL where nothing asks for it; `disks_error` says why it could not be made, "" if it was. */
void item_check(struct item *it, const struct localdisk *disks, const char *disks_error);
/* The same object twice in one target; a file and a block view of one object; one device twice. Refuses the later one.
 */
void item_check_pair(struct item *later, const struct item *earlier, const struct sameness_pair *pair);

#endif
