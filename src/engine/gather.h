/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the workers of a run counted, added up to its record. */
#ifndef ENGINE_GATHER_H
#define ENGINE_GATHER_H

#include "engine/cpu.h"
#include "engine/run.h"
#include "engine/worker.h"

/* Taken at the window's edges, from outside of the workers. */
struct sample {
    struct cpu_sample cpu;
    uint64_t wire_ios;
    bool has_wire;
};

struct samples {
    struct sample from, to;
    int64_t late_from, late_to; /* the longest time by which the coordinator woke up too late */
};

void samples_take(struct sample *s, const struct target *t);
void gather(struct record *r, const struct run *run, struct worker *workers, unsigned n, const struct samples *samples);

#endif
