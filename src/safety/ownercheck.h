/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Does another samedisk write to this member? Asked of every plan: to read beside a load measures nonsense. */
#ifndef SAFETY_OWNERCHECK_H
#define SAFETY_OWNERCHECK_H

#include "safety/item.h"
#include "safety/owner.h"

/* Refuses the item if so. A record that cannot be read is no refusal: the content is read next, and says why. -1: the
 * target was lost over it, which is not waited for twice. */
int ownercheck_item(struct item *it, const struct owner *self, struct err *err);
/* The same of a record that was found in the range while its content was read. */
void ownercheck_found(struct item *it, const struct owner *self, const struct owner *found);

#endif
