/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The keys that are in force, of patterns and targets. Secrets are never among them. */
#ifndef CLI_KEYS_H
#define CLI_KEYS_H

#include <jansson.h>
#include <stdbool.h>

#include "option/option.h"

/* What is called for each key; `value` parses back and is not yet fit to print. */
typedef void keys_fn(void *arg, const char *name, const char *value);

/* Calls `emit` for the keys of `conf` that are set, in the order of the table; those with the value of their default only
 * if `all`, or if they stand in `always` (NULL-terminated; may be NULL). `size`: bytes of the configuration. */
void keys_each(const struct option_entry *table, const void *conf, size_t size, bool all, const char *const *always,
               keys_fn *emit, void *arg);
/* All that are set, as an object of texts. A new reference; NULL: no memory. */
json_t *keys_json(const struct option_entry *table, const void *conf, size_t size);

#endif
