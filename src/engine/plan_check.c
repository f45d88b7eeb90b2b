/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "engine/plan_check.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/text.h"
#include "base/units.h"
#include "engine/cpu.h"
#include "pattern/stream.h"
#include "target/filter.h"

/* "4g"; "6 bytes" where no unit fits. */
static const char *amount(char *buf, size_t len, uint64_t bytes) {
    units_size(buf, len, bytes);
    size_t n = strlen(buf);
    if (n && buf[n - 1] >= '0' && buf[n - 1] <= '9') snprintf(buf + n, len - n, " bytes");
    return buf;
}

uint64_t plan_least_size(const struct pattern *p) {
    return pattern_sequential(p) ? pattern_step(p) * p->numjobs : pattern_max_io(p);
}

/* --size is for all patterns: one that `size` bytes are too few for, and that needs the most; NULL: none. */
static const struct pattern *needs_more(const struct plan *plan, uint64_t size) {
    const struct pattern *most = NULL;
    for (size_t i = 0; i < plan->patterns.n; i++) {
        const struct pattern *p = &plan->patterns.pattern[i];
        if (plan_least_size(p) > size && (!most || plan_least_size(p) > plan_least_size(most))) most = p;
    }
    return most;
}

/* What would do. */
static const char *smaller_size(const struct plan *plan, const struct pattern *p, uint64_t size, char *buf, size_t len) {
    char most[40], block[40], name[80];
    uint64_t evict = p->cache == CACHE_COLD ? p->evict : 0, least = plan_least_size(p);
    if (size < least) {
        snprintf(buf, len, "no smaller --size helps, as it takes at least %s: use smaller blocks (--bs) or a larger target",
                 amount(block, sizeof block, least));
        return buf;
    }
    if (size < p->offset + evict + least) {
        snprintf(buf, len, "no smaller --size helps: give a smaller --%s", p->offset + least > size ? "offset" : "evict");
        return buf;
    }
    uint64_t rest = size - p->offset - evict;
    rest -= rest % (rest - rest % 4096 < least ? 512 : 4096);
    const struct pattern *other = needs_more(plan, rest);
    if (other)
        snprintf(buf, len, "no smaller --size helps, as '%s' takes at least %s: leave it out (--only GLOB), use smaller blocks "
                 "(--bs) or a larger target", text_safe(name, sizeof name, other->name, SIZE_MAX),
                 amount(block, sizeof block, plan_least_size(other)));
    else
        snprintf(buf, len, "give a smaller --size, at most %s", units_size(most, sizeof most, rest));
    return buf;
}

static int check_room(const struct plan *plan, const struct pattern *p, const struct target *t, const struct facts *f,
                      struct err *err) {
    char want[40], have[40], offset[32], help[400];
    uint64_t end = p->offset + p->size + (p->cache == CACHE_COLD ? p->evict : 0);
    uint64_t size = t->handle ? t->facts.size : f->size * t->n_members;
    if (!f->exists || end <= size) return 0;
    amount(want, sizeof want, end);
    amount(have, sizeof have, size);
    amount(offset, sizeof offset, p->offset);
    return err_set(err, STATUS_USAGE,
                   "pattern '%s' needs %s (offset %s + size%s), but target '%s' has only %s: %s; "
                   "samedisk never grows what exists",
                   p->name, want, offset, p->cache == CACHE_COLD ? " + evict" : "", t->label, have,
                   smaller_size(plan, p, size, help, sizeof help));
}

static int check_blocks(const struct pattern *p, const struct target *t, const struct facts *f, struct err *err) {
    uint32_t align = pattern_min_align(p);
    if (f->block <= 1) return 0;
    if (align % f->block)
        return err_set(err, STATUS_USAGE,
                       "pattern '%s' has offsets or lengths that are multiples of %u only, but target '%s' takes "
                       "multiples of %u: use "
                       "--blockalign %u (and such sizes), or the pattern's 4 KiB variant",
                       p->name, align, t->label, f->block, f->block);
    if (p->offset % f->block)
        return err_set(err, STATUS_USAGE, "pattern '%s': offset=%llu is not a multiple of %u, the block of target '%s'",
                       p->name, (unsigned long long)p->offset, f->block, t->label);
    return 0;
}

static int check_limits(const struct pattern *p, const struct target *t, const struct facts *f, struct err *err) {
    char want[40], have[40];
    if (f->max_io && pattern_max_io(p) > f->max_io) {
        units_size(want, sizeof want, pattern_max_io(p));
        units_size(have, sizeof have, f->max_io);
        return err_set(err, STATUS_USAGE,
                       "pattern '%s' has I/Os of %s, but target '%s' takes at most %s in one request: larger ones "
                       "would be split, and "
                       "count as something else; use --bs %s",
                       p->name, want, t->label, have, have);
    }
    if (f->max_depth && p->iodepth > f->max_depth)
        return err_set(err, STATUS_USAGE,
                       "pattern '%s': iodepth=%llu, but target '%s' takes at most %u per worker: use --iodepth %u, or "
                       "more numjobs",
                       p->name, (unsigned long long)p->iodepth, t->label, f->max_depth, f->max_depth);
    if (f->exists && filter_check(f, p->readahead, (unsigned)p->iodepth, err) != 0)
        return err_prefix(err, "pattern '%s', target '%s'", p->name, t->label);
    return 0;
}

static int check_writes(const struct plan *plan, const struct pattern *p, const struct target *t, const struct facts *f,
                        struct err *err) {
    bool writes = pattern_writes(p) || p->prepare == PREPARE_FILL;
    if (writes && plan->read_only)
        return err_set(err, STATUS_USAGE, "pattern '%s' writes, but --read-only was given", p->name);
    if (writes && f->exists && f->read_only)
        return err_set(err, STATUS_USAGE,
                       "pattern '%s' writes, but target '%s' is read-only: use --read-only to run the reading patterns",
                       p->name, t->label);
    if ((p->fsync || p->end_fsync) && pattern_writes(p) && f->exists && !f->can_flush)
        return err_set(err, STATUS_USAGE, "pattern '%s': %s, but target '%s' has no flush", p->name,
                       p->fsync ? "fsync" : "end_fsync", t->label);
    if (p->sync >= SYNC_DSYNC && pattern_writes(p) && f->exists && f->dpofua == ANSWER_NO && !f->can_flush)
        return err_set(err, STATUS_USAGE, "pattern '%s': sync=%s, but target '%s' can neither write durably nor flush",
                       p->name, io_sync_name(p->sync), t->label);
    return 0;
}

/* Buffers are touched before the clock starts; a plan that would swap measures the swap device. */
static int check_memory(const struct pattern *p, struct err *err) {
    char want[40], have[40];
    uint64_t need = p->iodepth * p->numjobs * (((uint64_t)pattern_max_io(p) + 4095) & ~4095ull);
    need += p->numjobs * filter_memory(p->readahead);
    uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t left = limits_address_space_left(), space = need + p->numjobs * limits_thread_bytes();
    if (space > left) {
        units_size_human(want, sizeof want, space);
        units_size_human(have, sizeof have, left);
        return err_set(err, STATUS_USAGE, "pattern '%s': its buffers (iodepth x numjobs x block size) and workers take %s, and "
                       "this client's limit on address space (ulimit -v) leaves %s", p->name, want, have);
    }
    if (need <= memory / 2) return 0;
    units_size_human(want, sizeof want, need);
    units_size_human(have, sizeof have, memory);
    return err_set(
        err, STATUS_USAGE,
        "pattern '%s': iodepth x numjobs x block size (and the readahead) is %s of buffers, more than half of this machine's memory (%s)",
        p->name, want, have);
}

/* Beyond it no context can be had, and the next program finds none either. */
static int check_requests(const struct pattern *p, const struct target *t, struct err *err) {
    uint64_t need = 0, left = limits_aio_left();
    for (unsigned m = 0; m < t->n_members; m++)
        if (t->member[m].facts.kernel_aio) need += p->numjobs * p->iodepth;
    if (need <= left) return 0;
    return err_set(err, STATUS_USAGE,
                   "pattern '%s': numjobs x iodepth%s is %llu asynchronous requests on target '%s', and this client has %llu "
                   "left (fs.aio-max-nr less fs.aio-nr): use a smaller --iodepth or --numjobs, or raise it (sysctl -w "
                   "fs.aio-max-nr=%llu)", p->name, t->n_members > 1 ? " x members" : "", (unsigned long long)need, t->label,
                   (unsigned long long)left, (unsigned long long)(need + (64u << 10)));
}

static int check_cpus(const struct pattern *p, struct err *err) {
    char usable[200];
    for (unsigned i = 0; i < p->cpus.n; i++)
        if (!cpu_usable(p->cpus.cpu[i]))
            return err_set(err, STATUS_USAGE, "pattern '%s': cpus_allowed has CPU %u, but samedisk may run on %s only",
                           p->name, p->cpus.cpu[i], cpu_list_usable(usable, sizeof usable));
    return 0;
}

/* Where streams begin depends on the round, where they stay does not. */
int plan_check_stream(const struct pattern *p, struct err *err) {
    struct stream *s = malloc(sizeof *s);
    int rc = s ? 0 : err_set(err, STATUS_USAGE, "out of memory");
    for (unsigned w = 0; rc == 0 && w < p->numjobs; w++)
        rc = stream_init(s, p, p->offset + p->kept, p->size - p->kept, 1, 1, w, (unsigned)p->numjobs, err);
    free(s);
    return rc;
}

int plan_check_target(const struct plan *plan, const struct pattern *p, const struct target *t, struct err *err) {
    if (check_memory(p, err) != 0 || check_requests(p, t, err) != 0 || check_cpus(p, err) != 0) return -1;
    for (unsigned m = 0; m < t->n_members; m++) {
        const struct facts *f = &t->member[m].facts;
        if (check_room(plan, p, t, f, err) != 0 || check_blocks(p, t, f, err) != 0 ||
            check_limits(p, t, f, err) != 0 || check_writes(plan, p, t, f, err) != 0)
            return -1;
    }
    return 0;
}
