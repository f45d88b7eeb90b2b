/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/hist.h"

#include <math.h>
#include <string.h>

/* Millionths of a percent in 100 %. */
#define P_WHOLE 100000000u

void hist_init(struct hist *h) {
    memset(h, 0, sizeof(*h));
    h->min = INT64_MAX; /* max starts as 0: nothing that is recorded is less */
}

void hist_record_outside(struct hist *h, int64_t ns, uint64_t n) {
    uint64_t v = ns < 0 ? 0 : (uint64_t)ns;

    if (ns < 0) {
        h->below += n;
        h->bucket[0] += n;
        ns = 0;
    } else {
        h->above += n;
    }
    h->n += n;
    h->sum += v * n;
    h->sum_sq += (unsigned __int128)v * v * n;
    if (ns < h->min) h->min = ns;
    if (ns > h->max) h->max = ns;
}

void hist_merge(struct hist *into, const struct hist *from) {
    if (from->n == 0) return;
    into->n += from->n;
    into->below += from->below;
    into->above += from->above;
    into->sum += from->sum;
    into->sum_sq += from->sum_sq;
    if (from->min < into->min) into->min = from->min;
    if (from->max > into->max) into->max = from->max;
    for (unsigned i = 0; i < HIST_BUCKETS; i++) into->bucket[i] += from->bucket[i];
}

static unsigned hist_shift(unsigned index) {
    unsigned octave = index >> HIST_SUB_BITS;

    return octave > 0 ? octave - 1 : 0;
}

uint64_t hist_lower(unsigned index) {
    unsigned shift = hist_shift(index);

    return (uint64_t)(index - (shift << HIST_SUB_BITS)) << shift;
}

uint64_t hist_width(unsigned index) {
    return 1ull << hist_shift(index);
}

double hist_mean(const struct hist *h) {
    return h->n > 0 ? (double)h->sum / (double)h->n : 0;
}

/* n * variance = sum_sq - sum^2 / n, in integers up to the last fraction. Never negative: sum^2 / n <= sum_sq. */
double hist_stddev(const struct hist *h) {
    if (h->n < 2) return 0;
    unsigned __int128 square = (unsigned __int128)h->sum * h->sum;
    unsigned __int128 whole = h->sum_sq - square / h->n;
    double n = (double)h->n;
    double variance = ((double)whole - (double)(uint64_t)(square % h->n) / n) / n;
    return variance > 0 ? sqrt(variance) : 0;
}

bool hist_percentile(const struct hist *h, double p, int64_t *ns) {
    if (!(p > 0 && p < 100)) return false;
    uint64_t parts = (uint64_t)llround(p * (P_WHOLE / 100));
    if (parts >= P_WHOLE || (unsigned __int128)h->n * (P_WHOLE - parts) < (unsigned __int128)10 * P_WHOLE) return false;

    uint64_t rank = (uint64_t)(((unsigned __int128)h->n * parts + P_WHOLE - 1) / P_WHOLE), seen = 0;
    int64_t value = h->max;
    for (unsigned i = 0; i < HIST_BUCKETS; i++) {
        seen += h->bucket[i];
        if (seen >= rank) {
            value = (int64_t)(hist_lower(i) + hist_width(i) / 2);
            break;
        }
    }
    if (value < h->min) value = h->min;
    if (value > h->max) value = h->max;
    *ns = value;
    return true;
}
