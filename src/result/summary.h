/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One row per pattern and target over all rounds: medians, spread, and what a row is worth against the reference. */
#ifndef RESULT_SUMMARY_H
#define RESULT_SUMMARY_H

#include <jansson.h>

/* The "summary" array for a document's plan, targets and runs. A new reference. Each row:
 * { "pattern", "target", "rounds": runs that count, "status": the worst of all its runs,
 *   "iops" "bytes_per_second" "lat_mean_ns" "p99_ns" "cpu_ns_per_io" "own_ns_per_io" "depth_achieved":
 *   { "median", "min", "max" } or null,
 *   "max_ns": over all rounds, tails included, "durability", "holes", "errors": number,
 *   "ratio": median IOPS against the reference's, or null, "not_comparable": why there is none, or null,
 *   "ratio_unranked": where the two have done other work (durability, holes, load): the same, not to be ranked, or null }
 * A percentile counts only where every round had the samples for it. Runs that were lost or cut short do not count,
 * unless there are no others. */
json_t *summary_make(const json_t *document);

#endif
