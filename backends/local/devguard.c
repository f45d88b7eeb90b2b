/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/local/devguard.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "backends/local/blockid.h"
#include "backends/local/roads.h"
#include "backends/local/sgio.h"

#ifndef BLKGETDISKSEQ
#define BLKGETDISKSEQ _IOR(0x12, 128, uint64_t)
#endif

struct disk {
    int fd;
    char name[64];
    uint64_t sequence;
    char unit[128];           /* "": it names itself by nothing, or is no SCSI disk */
};

struct devguard {
    atomic_uint doubts;       /* I/Os that failed */
    atomic_uint_least64_t reads; /* of the seal, that went to the device */
    atomic_int sealed;        /* 0: not yet; 1: somebody is about to; 2: `seal` holds */
    uint64_t seal_at;
    size_t seal_len;
    char seal[SEAL_MAX];
    int fd;                   /* the caller's */
    int direct;               /* the same device past the page cache, which would go on to give what was written; -1: no */
    uint64_t size, sequence;
    unsigned n, named;        /* disks; of them, with a unit */
    struct disk disk[];
};

uint64_t devguard_sequence(int fd) {
    uint64_t sequence;
    return ioctl(fd, BLKGETDISKSEQ, &sequence) == 0 ? sequence : 0;
}

/* What the kernel read when the disk came may be of one that has been there since. */
static void compare_record(const struct road *road, const struct disk *d, char *stale, size_t len) {
    char recorded[128];
    if (!d->unit[0] || !blockid_unit(road->folder, recorded, sizeof recorded)) return;
    if (strcmp(recorded, d->unit))
        snprintf(stale, len, "/dev/%s was %.60s when it came, and answers that it is %.60s now: remove and add it, or "
                 "rescan it", road->name, recorded, d->unit);
}

static void add_disk(struct devguard *g, const struct road *road, char *stale, size_t len) {
    struct disk *d = &g->disk[g->n];
    d->fd = roads_open(road);
    if (d->fd < 0) return;
    g->n++;
    snprintf(d->name, sizeof d->name, "%s", road->name);
    d->sequence = devguard_sequence(d->fd);
    if (!sgio_may_ask(road->folder) || sgio_unit(d->fd, d->unit, sizeof d->unit) < 0) d->unit[0] = 0;
    if (d->unit[0]) g->named++;
    compare_record(road, d, stale, len);
}

static int open_direct(int fd) {
    char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
}

struct devguard *devguard_new(const char *sys, dev_t dev, int fd, char *stale, size_t stale_len) {
    struct roads *roads = roads_find(sys, dev);
    struct devguard *g = roads ? calloc(1, sizeof *g + roads->n * sizeof *g->disk) : NULL;
    *stale = 0;
    if (g) {
        g->fd = fd;
        g->direct = open_direct(fd);
        if (ioctl(fd, BLKGETSIZE64, &g->size) < 0) g->size = 0;
        g->sequence = devguard_sequence(fd);
        for (unsigned i = 0; i < roads->n; i++) add_disk(g, &roads->road[i], stale, stale_len);
    }
    free(roads);
    return g;
}

void devguard_free(struct devguard *g) {
    for (unsigned i = 0; g && i < g->n; i++) close(g->disk[i].fd);
    if (g && g->direct >= 0) close(g->direct);
    free(g);
}

#define SEAL_READ 65536u /* alignment and length of a read that every descriptor allows; a logical block is not larger */

void devguard_seal(struct devguard *g, const struct seal *seal) {
    int none = 0;
    if (!g || !seal->len || seal->len > SEAL_MAX || !atomic_compare_exchange_strong(&g->sealed, &none, 1)) return;
    g->seal_at = seal->offset;
    g->seal_len = seal->len;
    memcpy(g->seal, seal->bytes, seal->len);
    atomic_store(&g->sealed, 2);
}

/* False: other bytes are there. Where they cannot be read, the disks' names have to do. */
static bool seal_is_there(struct devguard *g, char *why, size_t len) {
    if (atomic_load(&g->sealed) != 2) return true;
    uint64_t from = g->seal_at / SEAL_READ * SEAL_READ, within = g->seal_at - from;
    char *buf = aligned_alloc(SEAL_READ, SEAL_READ);
    ssize_t n = buf && within + g->seal_len <= SEAL_READ ? pread(g->direct < 0 ? g->fd : g->direct, buf, SEAL_READ, (off_t)from) : -1;
    if (n > 0 && g->direct >= 0) atomic_fetch_add(&g->reads, 1);
    bool same = n < (ssize_t)(within + g->seal_len) || memcmp(buf + within, g->seal, g->seal_len) == 0;
    free(buf);
    if (!same)
        snprintf(why, len, "the device is another disk now, by the same name: the record of who writes to it is not in it, "
                 "or was overwritten; nothing more is written");
    return same;
}

static bool other(char *why, size_t len, const char *name, const char *was, const char *is) {
    snprintf(why, len, "%s%s is another disk now (it was %s, and is %s); nothing more is written", *name ? "/dev/" : "",
             *name ? name : "the device", was, is);
    return false;
}

static bool same_sequence(int fd, const char *name, uint64_t sequence, char *why, size_t len) {
    char was[32], is[32];
    uint64_t now = devguard_sequence(fd);
    if (now == sequence) return true;
    snprintf(was, sizeof was, "number %" PRIu64, sequence);
    snprintf(is, sizeof is, "number %" PRIu64, now);
    return other(why, len, name, was, is);
}

enum verdict { SAME, OTHER, UNKNOWN };

static enum verdict look(struct devguard *g, char *why, size_t len) {
    char unit[128];
    uint64_t size;
    unsigned answered = 0;
    *why = 0;
    if (ioctl(g->fd, BLKGETSIZE64, &size) < 0 || !size) {
        snprintf(why, len, "the device is gone");
        return UNKNOWN;
    }
    if (size < g->size) {
        snprintf(why, len, "the device had %" PRIu64 " bytes when it was opened, and has %" PRIu64 " now", g->size, size);
        return OTHER;
    }
    if (!same_sequence(g->fd, "", g->sequence, why, len)) return OTHER;
    for (unsigned i = 0; i < g->n; i++) {
        const struct disk *d = &g->disk[i];
        if (!same_sequence(d->fd, d->name, d->sequence, why, len)) return OTHER;
        if (!d->unit[0] || sgio_unit(d->fd, unit, sizeof unit) < 0) continue; /* a path that is down */
        if (strcmp(unit, d->unit)) {
            other(why, len, d->name, d->unit, *unit ? unit : "without a name");
            return OTHER;
        }
        answered++;
    }
    if (answered || !g->named) return seal_is_there(g, why, len) ? SAME : OTHER;
    snprintf(why, len, "the device does not answer what it is, after an error; nothing more is written");
    return UNKNOWN;
}

bool devguard_same(struct devguard *g, char *why, size_t len) {
    return look(g, why, len) == SAME;
}

void devguard_check(struct devguard *g) {
    char why[240];
    if (look(g, why, sizeof why) == OTHER) devguard_doubt(g);
}

uint64_t devguard_reads(const struct devguard *g) {
    return atomic_load(&g->reads);
}

void devguard_doubt(struct devguard *g) {
    if (g) atomic_fetch_add_explicit(&g->doubts, 1, memory_order_relaxed);
}

int devguard_ask(struct devguard *g, unsigned *seen, struct kinds *kinds) {
    char why[240];
    unsigned now = atomic_load_explicit(&g->doubts, memory_order_relaxed);
    if (__builtin_expect(now == *seen, 1)) return 0;
    *seen = now;
    if (devguard_same(g, why, sizeof why)) return 0;
    kinds_lost(kinds, "another disk", why);
    return -ENODEV;
}
