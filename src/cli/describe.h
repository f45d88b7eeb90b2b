/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a target is: as an element of a document's "targets", and in lines for people. */
#ifndef CLI_DESCRIBE_H
#define CLI_DESCRIBE_H

#include <jansson.h>
#include <stdio.h>

#include "base/kv.h"
#include "target/sameness.h"
#include "target/target.h"

/* An element of "targets"; a new reference, NULL without memory. A lost target has "lost": its reason. */
json_t *describe_target(const struct target *t);
/* The same with "ping": what the idle target answers now. Takes a fraction of a second. */
json_t *describe_probed(const struct target *t);
/* An element of "sameness" for any two of them. */
json_t *describe_sameness(struct target *const *targets, unsigned n, const struct sameness *same);
/* The lines that `samedisk probe` prints, from that element. */
void describe_print(const json_t *target, FILE *out);
/* The environment of a document: the libraries behind all backends are asked here. */
json_t *describe_environment(void);

#endif
