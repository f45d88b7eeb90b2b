/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A JSON object that is filled field by field. Names are ours; values may come from outside. One failure (no memory) is
 * remembered, and fields_end gives NULL. */
#ifndef RESULT_FIELDS_H
#define RESULT_FIELDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct fields {
    json_t *object;
    bool failed;
};

struct fields fields_new(void);
void fields_put(struct fields *f, const char *name, json_t *value); /* takes over the reference; NULL is a failure */
void fields_count(struct fields *f, const char *name, uint64_t value); /* null above INT64_MAX */
void fields_ns(struct fields *f, const char *name, int64_t value);
void fields_real(struct fields *f, const char *name, double value);    /* null unless finite */
void fields_bool(struct fields *f, const char *name, bool value);
void fields_text(struct fields *f, const char *name, const char *value); /* null for NULL */
void fields_word(struct fields *f, const char *name, const char *value); /* null for "" too */
json_t *fields_end(struct fields *f); /* a new reference, NULL after a failure */

#endif
