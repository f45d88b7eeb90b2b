/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The result document, schema samedisk-result/1: the one canonical result, from which every report is made. It grows
 * with every finished run, and can be saved at any moment: until document_finish it calls itself interrupted, which is
 * what it will be if nothing more follows. Out of memory is remembered and shows in document_text. */
#ifndef RESULT_DOCUMENT_H
#define RESULT_DOCUMENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "option/option.h"
#include "result/record.h"

struct document;

struct document *document_new(const char *version); /* stamps "started"; NULL: no memory */
void document_free(struct document *d);

void document_plan(struct document *d, uint64_t seed, unsigned rounds, const char *reference,
                   bool warm_instead_of_asis);
/* One pattern with its effective keys. Sizes are bytes, times nanoseconds, numbers numbers; the rest is text. */
void document_pattern(struct document *d, const char *name, const struct option_entry *table, const void *conf);
/* ... which the command line has made another load of than the file's section of this name, by these keys. */
void document_pattern_changed(struct document *d, const char *section, const char *keys);
/* ... whose I/O leaves so many bytes at the start of its range alone. A part of the load, and of its hash. */
void document_pattern_kept(struct document *d, uint64_t bytes);
void document_note(struct document *d, const char *key, const char *value);
void document_environment(struct document *d, json_t *environment); /* takes over the reference, as the next one does */
void document_target(struct document *d, json_t *target);           /* with "label", and "lost" null or the reason */
/* What is known of any two targets being one object, an array; replaces what was there. */
void document_sameness(struct document *d, json_t *pairs);
void document_run(struct document *d, const struct record *r);
/* What is to be said of the rows in words, an array; when the document is finished. */
void document_remarks(struct document *d, json_t *remarks);

/* The end: "finished", the status (the worst of the runs and targets, interrupted if so), the summary. */
void document_finish(struct document *d, bool interrupted);
/* "ok" "errors" "lost" "interrupted" as the program's exit status. */
enum status document_status(const struct document *d);
const json_t *document_json(const struct document *d); /* borrowed */
/* The document as text, one run, target or row per line, with a newline at the end. malloc'd; NULL: no memory. */
char *document_text(struct document *d, size_t *len);
/* Does a file that begins with these bytes hold a result? */
bool document_begins(const char *head, size_t n);

#endif
