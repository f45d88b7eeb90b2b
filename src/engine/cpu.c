/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "engine/cpu.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"

int cpu_pin(unsigned cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (cpu >= CPU_SETSIZE) return -EINVAL;
    CPU_SET(cpu, &set);
    return sched_setaffinity(0, sizeof set, &set) == 0 ? 0 : -errno;
}

bool cpu_usable(unsigned cpu) {
    cpu_set_t set;
    return cpu < CPU_SETSIZE && sched_getaffinity(0, sizeof set, &set) == 0 && CPU_ISSET(cpu, &set);
}

const char *cpu_list_usable(char *buf, size_t len) {
    cpu_set_t set;
    size_t at = 0;
    buf[0] = '\0';
    if (sched_getaffinity(0, sizeof set, &set) != 0) return buf;
    for (unsigned first = 0, last; first < CPU_SETSIZE && at < len; first = last + 1) {
        last = first;
        if (!CPU_ISSET(first, &set)) continue;
        while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &set)) last++;
        at += (size_t)snprintf(buf + at, len - at, "%s%u", at ? "," : "", first);
        if (last > first && at < len) at += (size_t)snprintf(buf + at, len - at, "-%u", last);
    }
    return buf;
}

static int64_t timeval_ns(const struct timeval *t) {
    return (int64_t)t->tv_sec * NS_PER_SEC + (int64_t)t->tv_usec * NS_PER_US;
}

int cpu_parse_stat(const char *line, long ticks_per_second, int64_t *busy_ns, int64_t *total_ns) {
    unsigned long long t[8] = {0}; /* user nice system idle iowait irq softirq steal */
    int n = sscanf(line, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &t[0], &t[1], &t[2], &t[3], &t[4], &t[5], &t[6],
                   &t[7]);
    if (n < 7 || ticks_per_second <= 0) return -1;
    unsigned long long total = 0;
    for (int i = 0; i < 8; i++) total += t[i];
    int64_t tick = NS_PER_SEC / ticks_per_second;
    *total_ns = (int64_t)total * tick;
    *busy_ns = (int64_t)(total - t[3] - t[4]) * tick;
    return 0;
}

void cpu_sample(struct cpu_sample *s) {
    struct rusage use;
    char line[256];
    *s = (struct cpu_sample){0};
    if (getrusage(RUSAGE_SELF, &use) == 0) {
        s->user_ns = timeval_ns(&use.ru_utime);
        s->system_ns = timeval_ns(&use.ru_stime);
    }
    FILE *f = fopen("/proc/stat", "re");
    if (!f) return;
    if (fgets(line, sizeof line, f)) cpu_parse_stat(line, sysconf(_SC_CLK_TCK), &s->busy_ns, &s->total_ns);
    fclose(f);
}

void cpu_between(const struct cpu_sample *from, const struct cpu_sample *to, struct record_cpu *cpu) {
    cpu->user_ns = to->user_ns - from->user_ns;
    cpu->system_ns = to->system_ns - from->system_ns;
    cpu->host_ns = from->total_ns && to->total_ns ? to->total_ns - from->total_ns : 0;
    cpu->host_busy_ns = cpu->host_ns ? to->busy_ns - from->busy_ns : 0;
}
