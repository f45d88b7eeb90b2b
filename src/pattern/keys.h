/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Inside the pattern layer only: the parsers behind pattern_options that are longer than a line. The signatures are
 * those of struct option_entry; `conf` is a struct pattern, the value is never NULL. A parser that fails has changed
 * nothing. */
#ifndef PATTERN_KEYS_H
#define PATTERN_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define KEYS_BLOCK_MAX (64u << 20) /* bytes of the largest I/O */

/* shape.c: which I/Os there are. bs, bssplit and row fill the same tables, the last one wins. */
int shape_parse_rw(const char *value, void *field, void *conf, struct err *err);
int shape_parse_bs(const char *value, void *field, void *conf, struct err *err);
int shape_parse_bssplit(const char *value, void *field, void *conf, struct err *err);
int shape_parse_row(const char *value, void *field, void *conf, struct err *err);
int shape_parse_percent(const char *value, void *field, void *conf, struct err *err);
int shape_parse_rwmixwrite(const char *value, void *field, void *conf, struct err *err);
int shape_parse_blockalign(const char *value, void *field, void *conf, struct err *err);
int shape_show_rw(const void *field, const void *conf, char *buf, size_t len);
int shape_show_bs(const void *field, const void *conf, char *buf, size_t len);
int shape_show_bssplit(const void *field, const void *conf, char *buf, size_t len);
int shape_show_row(const void *field, const void *conf, char *buf, size_t len);
int shape_show_rwmixread(const void *field, const void *conf, char *buf, size_t len);
int shape_show_percentage_random(const void *field, const void *conf, char *buf, size_t len);
int shape_show_blockalign(const void *field, const void *conf, char *buf, size_t len);

/* cpus.c */
int cpus_parse(const char *value, void *field, void *conf, struct err *err);
int cpus_show(const void *field, const void *conf, char *buf, size_t len);

/* keys.c */
struct pattern;
struct option_entry;
bool keys_given(const struct pattern *p, const char *key);
/* fio's switches: a bare key is 1. (They are no OPTION_BOOL because their value is not shown: it is no choice here.) */
bool keys_is_switch(const struct option_entry *e);

/* foreign.c: a key that is not in pattern_options. Success: fio's, and harmless here; `note` says so. */
int foreign_set(const char *key, const char *value, char *note, size_t len, struct err *err);
/* The access keys of targets, NULL-terminated: known here only so that the error can say where they belong. */
extern const char *const foreign_access_keys[];

#endif
