/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/limits.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define STACK_USUAL (8ull << 20)

void limits_prepare(void) {
    struct rlimit r;
    if (getrlimit(RLIMIT_AS, &r) == 0 && r.rlim_cur != RLIM_INFINITY) mallopt(M_ARENA_MAX, 1);
    if (getrlimit(RLIMIT_NOFILE, &r) || r.rlim_cur == r.rlim_max) return;
    r.rlim_cur = r.rlim_max;
    setrlimit(RLIMIT_NOFILE, &r);
}

uint64_t limits_address_space_left(void) {
    struct rlimit r;
    unsigned long long pages = 0;
    if (getrlimit(RLIMIT_AS, &r) || r.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
    FILE *f = fopen("/proc/self/statm", "re");
    if (!f || fscanf(f, "%llu", &pages) != 1) pages = 0;
    if (f) fclose(f);
    uint64_t used = pages * (uint64_t)sysconf(_SC_PAGESIZE);
    return r.rlim_cur > used ? r.rlim_cur - used : 0;
}

uint64_t limits_thread_bytes(void) {
    struct rlimit r;
    return getrlimit(RLIMIT_STACK, &r) || r.rlim_cur == RLIM_INFINITY ? STACK_USUAL : r.rlim_cur;
}

static uint64_t proc_number(const char *path) {
    unsigned long long n;
    FILE *f = fopen(path, "re");
    if (!f || fscanf(f, "%llu", &n) != 1) n = UINT64_MAX;
    if (f) fclose(f);
    return n;
}

uint64_t limits_aio_left(void) {
    uint64_t most = proc_number("/proc/sys/fs/aio-max-nr"), used = proc_number("/proc/sys/fs/aio-nr");
    if (most == UINT64_MAX || used == UINT64_MAX) return UINT64_MAX;
    return most > used ? most - used : 0;
}

/* "LIBRARY: EAGAIN" and the like: the word, and one of the reasons behind it. */
static bool says(const char *msg, const char *word, int error) {
    const char *at = strstr(msg, word);
    return at && strstr(at, strerrordesc_np(error));
}

static void add_limit(struct err *err, const char *what, int resource, unsigned unit, const char *command) {
    struct rlimit r;
    char limit[60] = "not limited";
    size_t n = strlen(err->msg);
    if (!getrlimit((__rlimit_resource_t)resource, &r) && r.rlim_cur != RLIM_INFINITY)
        snprintf(limit, sizeof limit, "%llu", (unsigned long long)(r.rlim_cur / unit));
    snprintf(err->msg + n, sizeof err->msg - n, " (this client is short of %s, %s is %s; the target is not to blame)", what,
             command, limit);
    err->status = STATUS_USAGE;
}

bool limits_blame(struct err *err) {
    const char *msg = err->msg;
    if (strstr(msg, "(this client is short of")) return true;
    if (strstr(msg, strerrordesc_np(EMFILE)) || strstr(msg, strerrordesc_np(ENFILE)) ||
        strstr(msg, "Failed to open socket")) /* libnfs, which says no more */
        add_limit(err, "open files", RLIMIT_NOFILE, 1, "ulimit -n");
    else if (says(msg, "io_setup ", EAGAIN)) {
        size_t n = strlen(msg);
        snprintf(err->msg + n, sizeof err->msg - n,
                 " (this client is short of asynchronous requests, fs.aio-max-nr leaves %llu; the target is not to blame)",
                 (unsigned long long)limits_aio_left());
        err->status = STATUS_USAGE;
    } else if (says(msg, "io_uring ", ENOMEM) && strstr(msg, "locked memory"))
        add_limit(err, "locked memory", RLIMIT_MEMLOCK, 1024, "ulimit -l");
    else if (strstr(msg, "cannot start worker thread") || says(msg, "helper threads: ", EAGAIN))
        add_limit(err, "threads, or of memory for them", RLIMIT_NPROC, 1, "ulimit -u");
    else if (strstr(msg, "no memory") || strstr(msg, "out of memory") || strstr(msg, strerrordesc_np(ENOMEM)))
        add_limit(err, "memory", RLIMIT_AS, 1024, "ulimit -v");
    else
        return false;
    return true;
}
