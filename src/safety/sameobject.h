/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Two names, one object? An identity that both bear makes them a candidate, no more: what counts is what is read
 * through both. */
#ifndef SAFETY_SAMEOBJECT_H
#define SAFETY_SAMEOBJECT_H

#include "safety/item.h"
#include "target/sameness.h"

/* Compares any two members that exist; only reads. `out` is initialised for n items. -1: no memory. */
int sameobject_compare(const struct item *items, unsigned n, struct sameness *out, struct err *err);
/* The same words but for access keys, and none of these leads to another server. */
bool sameobject_same_road(const struct member *a, const struct member *b);

#endif
