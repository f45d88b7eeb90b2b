/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Log-linear latency histogram.
 *
 * Values below 2^HIST_SUB_BITS ns have a bucket each (exact). Above, each power of two is cut into 2^HIST_SUB_BITS
 * equal buckets, so a bucket [lower, lower + width) has width <= lower / 2^HIST_SUB_BITS, and its midpoint is off by at
 * most 1/2^(HIST_SUB_BITS+1) = 1/256 of the value. Range: up to 2^HIST_MAX_BITS ns (73 minutes); what is larger is
 * counted in `above` and still is in n, sum and max: never a silent clip. Negative values (a clock that ran backwards)
 * are counted in `below` and are in n as 0.
 * Memory: (HIST_MAX_BITS - HIST_SUB_BITS + 1) * 2^HIST_SUB_BITS * 8 bytes = 36 KiB. */
#ifndef BASE_HIST_H
#define BASE_HIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HIST_SUB_BITS 7
#define HIST_MAX_BITS 42
#define HIST_BUCKETS ((HIST_MAX_BITS - HIST_SUB_BITS + 1) << HIST_SUB_BITS)

struct hist {
    uint64_t n;
    uint64_t below, above;
    int64_t min, max;   /* true extremes; valid when n > 0 */
    uint64_t sum;       /* of all recorded ns: 584 years */
    /* Sum of the squares, for the standard deviation. Exact, so that merging is exact and nothing cancels, and cheaper
     * than a running mean (one multiplication, two additions). It is at most sum^2: `sum` would overflow first. */
    unsigned __int128 sum_sq;
    uint64_t bucket[HIST_BUCKETS];
};

/* Bucket of v < 2^HIST_MAX_BITS. Setting the bit 2^HIST_SUB_BITS in a copy keeps the shift at 0 for the small values,
 * which so need no branch: their index is the value. */
static inline unsigned hist_index(uint64_t v) {
    unsigned shift = 63u - HIST_SUB_BITS - (unsigned)__builtin_clzll(v | (1u << HIST_SUB_BITS));
    return (shift << HIST_SUB_BITS) + (unsigned)(v >> shift);
}

void hist_init(struct hist *h);
/* hist_record_many's: what has no bucket of its own. */
void hist_record_outside(struct hist *h, int64_t ns, uint64_t n);

/* `n` samples of the same value: those of a batch that was sent and came back under one stamp each. Data path: about 30
 * instructions, whatever n is; one branch that is always predicted. */
static inline void hist_record_many(struct hist *h, int64_t ns, uint64_t n) {
    uint64_t v = (uint64_t)ns;

    if (__builtin_expect(v >> HIST_MAX_BITS != 0, 0)) { /* also the negative ones */
        hist_record_outside(h, ns, n);
        return;
    }
    h->n += n;
    h->sum += v * n;
    h->sum_sq += (unsigned __int128)v * v * n;
    if (ns < h->min) h->min = ns;
    if (ns > h->max) h->max = ns;
    h->bucket[hist_index(v)] += n;
}

static inline void hist_record(struct hist *h, int64_t ns) {
    hist_record_many(h, ns, 1);
}

void hist_merge(struct hist *into, const struct hist *from);
uint64_t hist_lower(unsigned index);               /* lower bound of a bucket, ns */
uint64_t hist_width(unsigned index);
double hist_mean(const struct hist *h);            /* exact; 0 when empty */
double hist_stddev(const struct hist *h);          /* population; 0 when n < 2 */
/* The value at percentile `p` (0 < p < 100): midpoint of the bucket of sample ceil(p/100 n), kept within [min, max];
 * the maximum where that sample is one of `above`. False, and nothing stored, where there are too few samples:
 * n < 10 / (1 - p/100). p is taken to a millionth of a percent, so that these bounds are exact (99.9: n >= 10000). */
bool hist_percentile(const struct hist *h, double p, int64_t *ns);

#endif
