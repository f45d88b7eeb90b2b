/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Typed looks into a result document, by path ("total/lat_ns/mean"). What is absent, null or of another type is NAN,
 * NULL, 0 or false: a document that somebody saved, or edited, never crashes a report. */
#ifndef RESULT_VIEW_H
#define RESULT_VIEW_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

json_t *view_at(const json_t *j, const char *path); /* borrowed; NULL: absent */
double view_number(const json_t *j, const char *path);
uint64_t view_uint(const json_t *j, const char *path);
const char *view_text(const json_t *j, const char *path); /* borrowed; not fit to print as it is */
bool view_true(const json_t *j, const char *path);
bool view_text_is(const json_t *j, const char *path, const char *value);

#endif
