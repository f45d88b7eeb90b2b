/* SPDX-License-Identifier: GPL-2.0-or-later */
/* CPU time of this process and of the whole host. Protocols differ in who does the work: the process, or kernel
 * threads. */
#ifndef ENGINE_CPU_H
#define ENGINE_CPU_H

#include <stdbool.h>
#include <stddef.h>

#include "result/record.h"

struct cpu_sample {
    int64_t user_ns, system_ns; /* process, all threads */
    int64_t busy_ns, total_ns;  /* host, all CPUs; total 0: unknown */
};

/* Pins the calling thread to one CPU. 0, or -errno. */
int cpu_pin(unsigned cpu);
/* May this process run on it? */
bool cpu_usable(unsigned cpu);
/* "0-3,8": where this process may run. */
const char *cpu_list_usable(char *buf, size_t len);

void cpu_sample(struct cpu_sample *s); /* any thread */
void cpu_between(const struct cpu_sample *from, const struct cpu_sample *to, struct record_cpu *cpu);
/* The first line of /proc/stat (proc(5)): busy is all but idle and iowait; guest time is in user already. -1:
 * unreadable. */
int cpu_parse_stat(const char *line, long ticks_per_second, int64_t *busy_ns, int64_t *total_ns);

#endif
