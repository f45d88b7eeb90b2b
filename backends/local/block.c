/* SPDX-License-Identifier: GPL-2.0-or-later */
/* block: any block device by libaio and O_DIRECT: FC, SAS, NVMe, kernel iSCSI, dm-multipath, loop. With direct=no,
 * through the page cache, by helper threads.
 *
 * io_submit can block when the device's queue (nr_requests) is full; the core counts the time spent in submit. A
 * plain write is stable only where the kernel says that the device has no volatile cache; RWF_DSYNC and RWF_SYNC are
 * FUA, or a flush by the kernel where the device has no FUA. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "backends/backend.h"
#include "backends/local/aio_ring.h"
#include "backends/local/blockdev.h"
#include "backends/local/devguard.h"
#include "backends/local/devwatch.h"
#include "backends/local/dm.h"
#include "backends/local/helpers.h"
#include "backends/local/kernel.h"
#include "backends/local/lock.h"
#include "linux/mountinfo.h"
#include "backends/local/reservations.h"
#ifdef HAVE_LIBURING
#include "backends/local/uring.h"
#endif
#include "base/savefile.h"
#include "base/text.h"

#define SYS "/sys"
/* Larger I/Os than max_sectors_kb are split by the block layer, not refused: wire_ios shows it. */
#define BLOCK_MAX_IO (64u << 20)

struct block_conf {
    char *path;
    int engine;
    bool direct;
    uint64_t delay;
    struct kernel_conf kernel;
};

struct handle {
    int fd;
    dev_t rdev;
    struct devguard *guard;
    struct devwatch *watch;    /* NULL: nothing to watch, or nothing is written */
    bool plain_stable, direct, uring;
    struct kernel_conf asked;
    struct kernel kernel;
    struct lock *lock;
};

struct context {            /* one of the three */
    struct aio_ring *ring;
    struct helpers *helpers;
#ifdef HAVE_LIBURING
    struct uring *uring;
#endif
};

enum { ENGINE_LIBAIO, ENGINE_IO_URING };
static const char *const engine_names[] = {"libaio", "io_uring", NULL};

static const struct option_entry block_options[] = {
    {.name = "engine", .type = OPTION_ENUM, .offset = offsetof(struct block_conf, engine), .names = engine_names,
     .def = "libaio", .value = "libaio|io_uring", .help = "what keeps several I/Os in flight"},
    {.name = "direct", .type = OPTION_BOOL, .offset = offsetof(struct block_conf, direct), .def = "yes",
     .value = "yes|no", .help = "O_DIRECT, past the page cache of this host"},
    KERNEL_OPTIONS(struct block_conf, kernel),
    {.name = "delay", .type = OPTION_TIME, .offset = offsetof(struct block_conf, delay), .max = 60 * NS_PER_SEC,
     .def = "0", .value = "TIME", .help = "artificial latency, added to each I/O"},
    {.name = NULL}
};

static const char *block_library(void) {
    return "libaio";
}

static int block_configure(const struct url *url, void *v, struct err *err) {
    struct block_conf *conf = v;
    if (url->path[0] != '/') return err_set(err, STATUS_USAGE, "the path of a device must begin with /dev/");
    conf->path = strdup(url->path);
    return conf->path ? 0 : err_set(err, STATUS_USAGE, "out of memory");
}

static int block_check(const void *v, struct err *err) {
    const struct block_conf *conf = v;
#ifndef HAVE_LIBURING
    if (conf->engine == ENGINE_IO_URING)
        return err_set(err, STATUS_USAGE, "engine=io_uring: this samedisk was built without liburing; engine=libaio works");
#endif
    if (conf->engine == ENGINE_IO_URING && !conf->direct)
        return err_set(err, STATUS_USAGE, "engine=io_uring is for O_DIRECT and cannot stand beside direct=no, where helper "
                       "threads do the I/O");
    if (conf->kernel.readahead_given && conf->direct)
        return err_set(err, STATUS_USAGE, "kernel_readahead has no effect with O_DIRECT: the kernel reads ahead for "
                       "the page cache only; add direct=no, or use the pattern's readahead=");
    return 0;
}

static void block_conf_free(void *v) {
    struct block_conf *conf = v;
    free(conf->path);
    conf->path = NULL;
}

/* ---- open ---- */

/* sdc and sdb, vda1 and vda2: one letter or digit apart, and yet never meant for each other. */
static bool is_neighbour(const char *a, const char *b) {
    unsigned other = 0;
    if (strlen(a) != strlen(b)) return false;
    for (; *a; a++, b++) {
        if (*a == *b) continue;
        if (!isalnum((unsigned char)*a) || !isdigit((unsigned char)*a) != !isdigit((unsigned char)*b)) return false;
        other++;
    }
    return other == 1;
}

/* Is the one a whole disk that the other is a partition of? Never offered for each other: who asks for a partition that
 * is not there would be sent to everything that lies on the disk. */
static bool is_other_extent(const char *a, const char *b) {
    size_t n = strlen(a), m = strlen(b);
    if (n > m) return is_other_extent(b, a);
    if (strncmp(a, b, n) != 0 || n == m) return false;
    b += n;
    if (*b == 'p' || *b == '-') b++; /* nvme0n1p1, and "-part1" of links */
    b += strncmp(b, "part", 4) == 0 ? 4 : 0;
    return *b && b[strspn(b, "0123456789")] == '\0';
}

/* "; did you mean sdb?" from the names beside it, or "". */
static void nearest_name(const char *path, char *buf, size_t len) {
    char folder[PATH_MAX], safe[256];
    const char *slash = strrchr(path, '/');
    const char *names[513] = {NULL};
    size_t n = 0;
    *buf = 0;
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir && n < 512 && (e = readdir(dir));)
        if (e->d_type != DT_CHR && e->d_type != DT_DIR && !is_other_extent(slash + 1, e->d_name) &&
            !is_neighbour(slash + 1, e->d_name) && (names[n] = strdup(e->d_name))) n++;
    const char *near = text_nearest(slash + 1, names);
    if (near) snprintf(buf, len, "; did you mean %.*s/%s?", (int)(slash - path), path,
                       text_safe(safe, sizeof safe, near, strlen(near)));
    if (dir) closedir(dir);
    for (size_t i = 0; i < n; i++) free((char *)names[i]);
}

static int check_kind(const char *safe, const struct stat *st, struct err *err) {
    const char *kind = S_ISDIR(st->st_mode) ? "a folder" : S_ISCHR(st->st_mode) ? "a character device"
                     : S_ISREG(st->st_mode) ? "a regular file in /dev (memory, no storage)" : "no block device";
    if (S_ISBLK(st->st_mode)) return 0;
    return err_set(err, STATUS_TARGET, "%s is %s; a target under /dev must be a block device (lsblk lists them)", safe,
                   kind);
}

static void users(dev_t rdev, char *buf, size_t len) {
    struct err ignored;
    char *mountinfo = mountinfo_read(), *swaps = NULL;
    size_t n;
    if (savefile_read("/proc/swaps", 1u << 20, &swaps, &n, &ignored) < 0) swaps = NULL;
    blockdev_users(SYS, mountinfo, swaps, rdev, buf, len);
    free(mountinfo);
    free(swaps);
}

static int open_failed(const char *safe, dev_t rdev, const struct open_how *how, int error, struct err *err) {
    char who[256];
    users(rdev, who, sizeof who);
    const char *help = "";
    if (error == EACCES || error == EPERM)
        help = geteuid() == 0 ? "; a container or another policy forbids it, even to root"
                              : "; root, or the group that owns the device, may";
    else if (error == EROFS) help = "; the device is read-only";
    else if (error == EINVAL) help = "; it does not take O_DIRECT";
    else if (error == ENXIO || error == ENODEV || error == ENOMEDIUM) help = "; there is no medium or device behind it";
    const char *mode = how->mode == OPEN_WRITE ? "writing, exclusively" : "reading";
    if (error == EBUSY)
        return err_set(err, STATUS_TARGET, "%s: cannot be opened for %s: in use%s%s", safe, mode, *who ? ": " : "",
                       who);
    return err_set(err, STATUS_TARGET, "%s: cannot be opened for %s: %s%s", safe, mode, strerrordesc_np(error), help);
}

static int ask_device(int fd, const char *safe, struct facts *f, struct err *err) {
    int logical = 0, read_only = 0;
    unsigned physical = 0;
    if (ioctl(fd, BLKGETSIZE64, &f->size) < 0 || ioctl(fd, BLKSSZGET, &logical) < 0 ||
        ioctl(fd, BLKPBSZGET, &physical) < 0)
        return err_set(err, STATUS_TARGET, "%s: asking for its size: %s", safe, strerrordesc_np(errno));
    if (!f->size)
        return err_set(err, STATUS_TARGET, "%s: its size is 0: no medium, or nothing is attached to it", safe);
    if (ioctl(fd, BLKROGET, &read_only) == 0 && read_only) f->read_only = true;
    f->block = f->mem_align = (uint32_t)logical;
    kv_uint(&f->negotiated, "logical_block_size", (uint64_t)logical);
    kv_uint(&f->negotiated, "physical_block_size", physical);
    return 0;
}

/* In use is what nobody may write: asked by an exclusive open, which is given back at once. */
static void ask_in_use(const char *path, dev_t rdev, struct facts *f) {
    int fd = open(path, O_RDONLY | O_EXCL | O_CLOEXEC);
    if (fd >= 0) {
        close(fd);
        return;
    }
    if (errno != EBUSY) return;
    users(rdev, f->in_use, sizeof f->in_use);
    if (!f->in_use[0]) snprintf(f->in_use, sizeof f->in_use, "another program has it open exclusively");
}

/* The page cache is volatile, and takes any buffer. */
static void buffered_facts(struct facts *f) {
    f->mem_align = 1;
    f->max_depth = HELPERS_MAX;
    f->volatile_cache = ANSWER_YES;
    snprintf(f->engine, sizeof f->engine, "helper threads page cache");
    kv_text(&f->warnings, "page-cache", "the page cache of this host is in the path: reads of what it holds never "
            "reach the device, and writes are done when they are in memory");
    kv_text(&f->warnings, "helper-threads", "each I/O is handed to a thread and back: two wake-ups, some 10 to 100 us, "
            "are in its latency");
}

static int block_open(const struct open_how *how, struct handle **out, struct facts *f, struct err *err) {
    const struct block_conf *conf = how->conf;
    const char *path = conf->path;
    char safe[400], near[400], stale[256];
    struct stat st;
    text_safe(safe, sizeof safe, path, strlen(path));
    if (how->mode == OPEN_CREATE) return err_set(err, STATUS_TARGET, "%s: a block device cannot be created", safe);
    if (stat(path, &st) < 0) {
        int error = errno;
        if (strchr(path, '?'))
            snprintf(near, sizeof near, " (a bare path has no keys behind it: write file:%.300s, or --set LABEL.KEY=VALUE)",
                     safe);
        else
            nearest_name(path, near, sizeof near);
        return err_set(err, STATUS_TARGET, "%s: %s%s", safe,
                       error == ENOENT ? "no such device" : strerrordesc_np(error), error == ENOENT ? near : "");
    }
    if (check_kind(safe, &st, err) < 0) return -1;
    int flags = how->mode == OPEN_WRITE ? O_RDWR | O_EXCL : O_RDONLY;
    int fd = open(path, flags | (conf->direct ? O_DIRECT : 0) | O_CLOEXEC);
    if (fd < 0) return open_failed(safe, st.st_rdev, how, errno, err);
    struct handle *h = NULL;
    if (fstat(fd, &st) < 0) {
        err_set(err, STATUS_TARGET, "%s: %s", safe, strerrordesc_np(errno));
        goto fail;
    }
    if (check_kind(safe, &st, err) < 0 || ask_device(fd, safe, f, err) < 0) goto fail;
    if (!(h = calloc(1, sizeof *h)) || !(h->guard = devguard_new(SYS, st.st_rdev, fd, stale, sizeof stale))) {
        err_set(err, STATUS_TARGET, "%s: out of memory", safe);
        goto fail;
    }
    if (how->mode == OPEN_WRITE && devwatch_start(SYS, st.st_rdev, h->guard, &h->watch, err) < 0) {
        err_prefix(err, "%s", safe);
        goto fail;
    }
    f->exists = true;
    f->kind = OBJECT_DEVICE;
    f->allocated = UINT64_MAX;
    f->max_io = BLOCK_MAX_IO;
    f->dpofua = ANSWER_YES;
    f->can_flush = true;
    f->rdev = st.st_rdev;
    f->delay_ns = conf->delay;
    snprintf(f->engine, sizeof f->engine, "%s O_DIRECT", engine_names[conf->engine]);
    f->kernel_aio = conf->engine != ENGINE_IO_URING;
    blockdev_facts(SYS, st.st_rdev, f);
    dm_facts(SYS, "/dev/mapper/control", st.st_rdev, f);
    if (!conf->direct) buffered_facts(f);
    if (how->mode == OPEN_READ) ask_in_use(path, st.st_rdev, f);
    if (*stale && !f->in_use[0]) snprintf(f->in_use, sizeof f->in_use, "%s", stale);
    reservations_facts(SYS, st.st_rdev, fd, f);
    f->incarnation = devguard_sequence(fd);
    h->fd = fd;
    h->rdev = st.st_rdev;
    h->plain_stable = f->volatile_cache == ANSWER_NO;
    h->direct = conf->direct;
    h->uring = conf->engine == ENGINE_IO_URING;
    h->asked = conf->kernel;
    lock_take(fd, how->mode == OPEN_WRITE, &h->lock, f);
    *out = h;
    return 0;
fail:
    if (h) devguard_free(h->guard);
    free(h);
    close(fd);
    return -1;
}

static void block_close(struct handle *h) {
    if (!h) return;
    kernel_put_back(&h->kernel);
    devwatch_stop(h->watch);
    devguard_free(h->guard);
    lock_give(h->lock);
    close(h->fd);
    free(h);
}

static int block_adjust(struct handle *h, struct facts *facts, struct err *err) {
    const struct notes_where where = {NOTES_FOLDER, SYS, "/proc"};
    if (kernel_adjust(&h->kernel, &h->asked, &where, h->rdev, &facts->negotiated, err) < 0) return -1;
    /* An open file keeps the readahead that it was opened with, until it is told to begin anew. */
    if (h->asked.readahead_given) (void)posix_fadvise(h->fd, 0, 0, POSIX_FADV_NORMAL);
    return 0;
}

static int block_wire_ios(struct handle *h, uint64_t *ios) {
    int rc = blockdev_ios(SYS, h->rdev, ios);
    uint64_t ours = devguard_reads(h->guard); /* beside the load */
    if (rc == 0) *ios -= ours < *ios ? ours : *ios;
    return rc;
}

/* ---- data path ---- */

static int attach_engine(struct handle *h, const struct attach_how *how, struct context *c, struct err *err) {
    struct aio_ring_how ring = {
        .fd = h->fd, .object = LOCAL_DEVICE, .plain_stable = h->plain_stable, .dsync_stable = true,
        .guard = h->guard
    };
    struct helpers_how helpers = {
        .fd = h->fd, .object = LOCAL_DEVICE, .plain_stable = h->plain_stable, .dsync_stable = true,
        .guard = h->guard
    };
    if (!h->direct) return helpers_attach(&helpers, how, &c->helpers, err);
#ifdef HAVE_LIBURING
    struct uring_how uring = {
        .fd = h->fd, .object = LOCAL_DEVICE, .plain_stable = h->plain_stable, .dsync_stable = true,
        .guard = h->guard
    };
    if (h->uring) return uring_attach(&uring, how, &c->uring, err);
#endif
    return aio_ring_attach(&ring, how, &c->ring, err);
}

static int block_attach(struct handle *h, const struct attach_how *how, struct context **out, struct err *err) {
    char why[240];
    if (how->write) devguard_seal(h->guard, &how->seal);
    if (!devguard_same(h->guard, why, sizeof why)) return err_set(err, STATUS_TARGET, "%s", why);
    struct context *c = calloc(1, sizeof *c);
    if (!c) return err_set(err, STATUS_TARGET, "out of memory");
    if (attach_engine(h, how, c, err) < 0) {
        free(c);
        return -1;
    }
    *out = c;
    return 0;
}

static void block_detach(struct context *c) {
    if (!c) return;
    helpers_detach(c->helpers);
    aio_ring_detach(c->ring);
#ifdef HAVE_LIBURING
    uring_detach(c->uring);
#endif
    free(c);
}

static int block_submit(struct context *c, struct request *const *requests, unsigned n) {
    if (c->helpers) return helpers_submit(c->helpers, requests, n);
#ifdef HAVE_LIBURING
    if (c->uring) return uring_submit(c->uring, requests, n);
#endif
    return aio_ring_submit(c->ring, requests, n);
}

static int block_reap(struct context *c, struct completion *out, unsigned max, unsigned min, int64_t timeout_ns) {
    if (c->helpers) return helpers_reap(c->helpers, out, max, min, timeout_ns);
#ifdef HAVE_LIBURING
    if (c->uring) return uring_reap(c->uring, out, max, min, timeout_ns);
#endif
    return aio_ring_reap(c->ring, out, max, min, timeout_ns);
}

static void block_counters(struct context *c, struct kv *out) {
#ifdef HAVE_LIBURING
    if (c->uring) uring_counters(c->uring, out);
#endif
    if (c->helpers) helpers_counters(c->helpers, out);
    if (c->ring) aio_ring_counters(c->ring, out);
}

extern const struct backend backend_block;
const struct backend backend_block = {
    .name = "block",
    .summary = "block devices by libaio and O_DIRECT: FC, SAS, NVMe, kernel iSCSI, dm-multipath",
    .options = block_options,
    .conf_size = sizeof(struct block_conf),
    .library = block_library,
    .configure = block_configure,
    .check = block_check,
    .conf_free = block_conf_free,
    .open = block_open,
    .close = block_close,
    .adjust = block_adjust,
    .wire_ios = block_wire_ios,
    .attach = block_attach,
    .detach = block_detach,
    .submit = block_submit,
    .reap = block_reap,
    .counters = block_counters,
};
