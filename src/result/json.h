/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From the program's structs to JSON values. Whatever comes in, the document stays valid JSON: no NaN, no infinity, no
 * invalid UTF-8. All functions return a new reference, or NULL without memory. */
#ifndef RESULT_JSON_H
#define RESULT_JSON_H

#include <jansson.h>

#include "base/hist.h"
#include "base/kinds.h"
#include "base/kv.h"
#include "result/record.h"

json_t *json_of_double(double value);       /* null unless finite */
json_t *json_of_uint(uint64_t value);       /* null above INT64_MAX, which is how "unknown" is spelled */
json_t *json_of_text(const char *text);     /* null for NULL; bytes that are not UTF-8 become \xNN */
json_t *json_of_kv(const struct kv *kv);    /* an object */
json_t *json_of_hist(const struct hist *h); /* the L object */
json_t *json_of_record(const struct record *r); /* an element of "runs" */

/* object[key] = value, where key may hold bytes that are not UTF-8; takes over the reference; -1 without memory. */
int json_of_put(json_t *object, const char *key, json_t *value);

#endif
