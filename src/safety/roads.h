/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Portals and servers that bear one name are one object only if what is written by one of them is read by all. What lies
 * on an object is examined by the first of its roads; these functions see to it that the others lead there too. Private
 * to this folder. */
#ifndef SAFETY_ROADS_H
#define SAFETY_ROADS_H

#include "safety/item.h"

/* Reads some blocks by each road of the member, and refuses the item where they differ. No proof: zeros, and a copy, are
 * equal too. -1: they cannot be read (STATUS_TARGET). */
int roads_compare(struct item *it, struct err *err);
/* The proof: a block that is written by the first road of each member must be read by its others. Only what is agreed is
 * written: the last whole block of each member's part of [from, to). Before any other write. -1: refused (STATUS_USAGE),
 * or a failure of the target (STATUS_TARGET). */
int roads_prove(struct target *t, uint64_t from, uint64_t to, struct err *err);

#endif
