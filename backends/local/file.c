/* SPDX-License-Identifier: GPL-2.0-or-later */
/* file: a file on any mount. libaio with O_DIRECT where the file system takes it, else helper threads. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/local/blockdev.h"
#include "backends/local/file.h"
#include "backends/local/helpers.h"
#ifdef HAVE_LIBAIO
#include "backends/local/aio_ring.h"
#endif
#ifdef HAVE_LIBURING
#include "backends/local/uring.h"
#endif

struct context {
    struct helpers *helpers;   /* one of the three */
#ifdef HAVE_LIBAIO
    struct aio_ring *ring;
#endif
#ifdef HAVE_LIBURING
    struct uring *uring;
#endif
};

static const char *const engine_names[] = {"auto", "libaio", "threads", "io_uring", NULL};
static const char *const direct_names[] = {"auto", "yes", "no", NULL};

static const struct option_entry file_options[] = {
    {.name = "engine", .type = OPTION_ENUM, .offset = offsetof(struct file_conf, engine), .names = engine_names,
     .def = "auto", .value = "auto|libaio|threads|io_uring",
     .help = "what keeps several I/Os in flight; auto: libaio where O_DIRECT works, else helper threads"},
    {.name = "direct", .type = OPTION_ENUM, .offset = offsetof(struct file_conf, direct), .names = direct_names,
     .def = "auto", .value = "auto|yes|no", .help = "O_DIRECT, past the page cache of this host; auto: where it works"},
    KERNEL_OPTIONS(struct file_conf, kernel),
    {.name = "delay", .type = OPTION_TIME, .offset = offsetof(struct file_conf, delay), .max = 60 * NS_PER_SEC,
     .def = "0", .value = "TIME", .help = "artificial latency, added to each I/O"},
    {.name = "nrfiles", .type = OPTION_UINT, .offset = offsetof(struct file_conf, nrfiles), .min = 1, .max = 64, .def = "1",
     .value = "N", .help = "files PATH.0 to PATH.N-1, driven together, in place of PATH"},
    {.name = NULL}
};

static const char *file_library(void) {
#ifdef HAVE_LIBAIO
    return "libaio";
#else
    return NULL;
#endif
}

static int file_configure(const struct url *url, void *v, struct err *err) {
    struct file_conf *conf = v;
    if (url->path[0] != '/')
        return err_set(err, STATUS_USAGE, "the path of a file must be absolute, as in file:/mnt/data/test.dat");
    conf->path = strdup(url->path);
    return conf->path ? 0 : err_set(err, STATUS_USAGE, "out of memory");
}

static int file_check(const void *v, struct err *err) {
    const struct file_conf *conf = v;
#ifndef HAVE_LIBAIO
    if (conf->engine == FILE_ENGINE_LIBAIO)
        return err_set(err, STATUS_USAGE,
                       "engine=libaio: this samedisk was built without libaio; engine=threads works");
#endif
#ifndef HAVE_LIBURING
    if (conf->engine == FILE_ENGINE_IO_URING)
        return err_set(err, STATUS_USAGE,
                       "engine=io_uring: this samedisk was built without liburing; engine=threads works");
#endif
    if ((conf->engine == FILE_ENGINE_LIBAIO || conf->engine == FILE_ENGINE_IO_URING) && conf->direct == FILE_DIRECT_NO)
        return err_set(err, STATUS_USAGE, "engine=%s needs O_DIRECT, so it cannot stand beside direct=no: buffered "
                       "asynchronous I/O is not asynchronous; engine=threads keeps the depth", engine_names[conf->engine]);
    if (conf->kernel.readahead_given && conf->direct == FILE_DIRECT_YES)
        return err_set(err, STATUS_USAGE, "kernel_readahead has no effect with direct=yes: the kernel reads ahead for "
                       "the page cache only; use direct=no, or the pattern's readahead=");
    return 0;
}

static void file_conf_free(void *v) {
    struct file_conf *conf = v;
    free(conf->path);
    conf->path = NULL;
}

/* SEEK_HOLE on a file system that has none says that all is data; then a file with less storage than size is not
 * known. */
static int file_holes(struct handle *h, uint64_t offset, uint64_t len, int64_t until, double *share) {
    struct clock clock;
    uint64_t at = offset, end = offset + len, holes = 0;
    if (!len || offset >= h->size) return -1;
    if (end > h->size) end = h->size;
    clock_real_init(&clock);
    while (at < end) {
        if (clock_now(&clock) >= until || backend_stopped()) return -1;
        off_t data = lseek(h->fd, (off_t)at, SEEK_DATA);
        uint64_t to = end;
        if (data >= 0 && (uint64_t)data < end) to = (uint64_t)data;
        else if (data < 0 && errno != ENXIO) return -1;
        holes += to - at;
        if (to == end) break;
        off_t hole = lseek(h->fd, (off_t)to, SEEK_HOLE);
        if (hole < 0 || (uint64_t)hole <= to) return -1;
        at = (uint64_t)hole;
    }
    if (!holes && (h->allocated == UINT64_MAX || h->allocated < h->size)) return -1;
    *share = (double)holes / (double)(end - offset);
    return 0;
}

static int file_wire_ios(struct handle *h, uint64_t *ios) {
    return h->local_device ? blockdev_ios("/sys", h->dev, ios) : -1;
}

static int file_adjust(struct handle *h, struct facts *facts, struct err *err) {
    const struct notes_where where = {NOTES_FOLDER, "/sys", "/proc"};
    if (h->fd < 0) return 0;
    if (kernel_adjust(&h->kernel, &h->asked, &where, h->dev, &facts->negotiated, err) < 0)
        return err_prefix(err, "%s", h->name);
    /* An open file keeps the readahead that it was opened with, until it is told to begin anew. */
    if (h->asked.readahead_given) (void)posix_fadvise(h->fd, 0, 0, POSIX_FADV_NORMAL);
    return 0;
}

/* ---- data path ---- */

static int attach_engine(struct handle *h, const struct attach_how *how, struct context *c, struct err *err) {
    enum local_object object = h->direct ? LOCAL_FILE_DIRECT : LOCAL_FILE_BUFFERED;
#ifdef HAVE_LIBURING
    if (h->uring) {
        struct uring_how uring = {.fd = h->fd, .object = object, .plain_stable = h->plain_stable,
                                  .dsync_stable = h->dsync_stable};
        return uring_attach(&uring, how, &c->uring, err);
    }
#endif
#ifdef HAVE_LIBAIO
    if (!h->threads) {
        struct aio_ring_how ring = {.fd = h->fd, .object = object, .plain_stable = h->plain_stable,
                                    .dsync_stable = h->dsync_stable};
        return aio_ring_attach(&ring, how, &c->ring, err);
    }
#endif
    struct helpers_how helpers = {.fd = h->fd, .object = object, .plain_stable = h->plain_stable,
                                  .dsync_stable = h->dsync_stable};
    return helpers_attach(&helpers, how, &c->helpers, err);
}

static int file_attach(struct handle *h, const struct attach_how *how, struct context **out, struct err *err) {
    if (h->fd < 0) return err_set(err, STATUS_TARGET, "%s: the file does not exist", h->name);
    struct context *c = calloc(1, sizeof *c);
    if (!c) return err_set(err, STATUS_TARGET, "out of memory");
    if (attach_engine(h, how, c, err) < 0) {
        free(c);
        return -1;
    }
    *out = c;
    return 0;
}

static void file_detach(struct context *c) {
    if (!c) return;
    helpers_detach(c->helpers);
#ifdef HAVE_LIBAIO
    aio_ring_detach(c->ring);
#endif
#ifdef HAVE_LIBURING
    uring_detach(c->uring);
#endif
    free(c);
}

static int file_submit(struct context *c, struct request *const *requests, unsigned n) {
#ifdef HAVE_LIBAIO
    if (c->ring) return aio_ring_submit(c->ring, requests, n);
#endif
#ifdef HAVE_LIBURING
    if (c->uring) return uring_submit(c->uring, requests, n);
#endif
    return helpers_submit(c->helpers, requests, n);
}

static int file_reap(struct context *c, struct completion *out, unsigned max, unsigned min, int64_t timeout_ns) {
#ifdef HAVE_LIBAIO
    if (c->ring) return aio_ring_reap(c->ring, out, max, min, timeout_ns);
#endif
#ifdef HAVE_LIBURING
    if (c->uring) return uring_reap(c->uring, out, max, min, timeout_ns);
#endif
    return helpers_reap(c->helpers, out, max, min, timeout_ns);
}

static void file_counters(struct context *c, struct kv *out) {
#ifdef HAVE_LIBAIO
    if (c->ring) aio_ring_counters(c->ring, out);
#endif
#ifdef HAVE_LIBURING
    if (c->uring) uring_counters(c->uring, out);
#endif
    if (c->helpers) helpers_counters(c->helpers, out);
}

extern const struct backend backend_file;
const struct backend backend_file = {
    .name = "file",
    .summary = "files on any mount: local, kernel NFS, FUSE",
    .options = file_options,
    .conf_size = sizeof(struct file_conf),
    .library = file_library,
    .configure = file_configure,
    .check = file_check,
    .conf_free = file_conf_free,
    .open = file_open,
    .close = file_close,
    .adjust = file_adjust,
    .remove = file_remove,
    .holes = file_holes,
    .wire_ios = file_wire_ios,
    .attach = file_attach,
    .detach = file_detach,
    .submit = file_submit,
    .reap = file_reap,
    .counters = file_counters,
};
