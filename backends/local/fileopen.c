/* SPDX-License-Identifier: GPL-2.0-or-later */
/* file: the control path. The folder is resolved once and held open; the file is only ever reached through it by its
 * last name, never through a symbolic link. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "backends/local/blockdev.h"
#include "backends/local/file.h"
#include "backends/local/fs.h"
#include "backends/local/helpers.h"
#include "backends/local/lock.h"
#include "linux/mountinfo.h"
#include "linux/overlay.h"
#include "backends/local/nfsmount.h"
#include "backends/local/path.h"
#include "backends/local/sysfs.h"
#include "base/text.h"
#include "base/units.h"

#define SYS "/sys"
#define FILE_MAX_IO (64u << 20)
#define PROBE_MAX 65536u /* largest alignment that is tried */
#define OPEN_FLAGS (O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)

/* What one open works with. */
struct opening {
    const struct open_how *how;
    const struct file_conf *conf;
    char safe[400];            /* the path, fit to print */
    char folder[PATH_MAX];     /* canonical */
    struct mount *mount;       /* NULL: unknown */
    enum fs_class class;
};

/* ---- the folder ---- */

static int find_folder(struct opening *o, struct handle *h, struct err *err) {
    const char *path = o->conf->path, *slash = strrchr(path, '/'), *name = slash + 1;
    if (!*name || !strcmp(name, ".") || !strcmp(name, ".."))
        return err_set(err, STATUS_TARGET, "%s: this is a folder; a file target needs the name of a file in it",
                       o->safe);
    char *parent = slash == path ? strdup("/") : strndup(path, (size_t)(slash - path)), *real = NULL;
    h->name = strdup(name);
    if (parent && h->name) real = realpath(parent, NULL);
    int error = errno;
    free(parent);
    if (!h->name) return err_set(err, STATUS_TARGET, "%s: out of memory", o->safe);
    if (!real)
        return err_set(err, STATUS_TARGET, "%s: its folder cannot be reached: %s", o->safe, strerrordesc_np(error));
    snprintf(o->folder, sizeof o->folder, "%s", real);
    free(real);
    if (path_is_system(o->folder))
        return err_set(err, STATUS_TARGET,
                       "%s: its folder is %s; files under /dev, /proc and /sys are never targets (a block "
                       "device is named by its path in /dev)",
                       o->safe, o->folder);
    h->dir = open(o->folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (h->dir < 0)
        return err_set(err, STATUS_TARGET, "%s: its folder %s: %s", o->safe, o->folder, strerrordesc_np(errno));
    return 0;
}

static int find_filesystem(struct opening *o, struct handle *h, struct facts *f, struct err *err) {
    struct stat folder, root;
    struct statfs fs;
    struct statvfs space;
    if (fstat(h->dir, &folder) < 0 || fstatfs(h->dir, &fs) < 0)
        return err_set(err, STATUS_TARGET, "%s: asking its file system: %s", o->safe, strerrordesc_np(errno));
    h->dev = folder.st_dev;
    char *text = mountinfo_read();
    o->mount = malloc(sizeof *o->mount);
    if (!text || !o->mount || !mountinfo_find(text, o->folder, folder.st_dev, o->mount)) {
        free(o->mount);
        o->mount = NULL;
    }
    free(text);
    o->class = fs_classify((uint64_t)fs.f_type, o->mount ? o->mount->type : "");
    if (o->class == FS_PSEUDO)
        return err_set(err, STATUS_TARGET, "%s: lies on a %s, which is no place for data", o->safe,
                       o->mount ? o->mount->type : "file system of the kernel");
    if (fstatvfs(h->dir, &space) == 0) {
        f->fs_free = (uint64_t)space.f_bavail * space.f_frsize;
        f->fs_total = (uint64_t)space.f_blocks * space.f_frsize;
    }
    f->root_fs = stat("/", &root) == 0 && root.st_dev == folder.st_dev;
    return 0;
}

/* ESXi keeps a lock file beside each file that a host has open on an NFS datastore. */
static void find_locks(const struct handle *h, struct facts *f) {
    char safe[200];
    int fd = openat(h->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        if (fd >= 0) close(fd);
        return;
    }
    for (struct dirent *e; (e = readdir(dir));) {
        if (strncmp(e->d_name, ".lck-", 5)) continue;
        snprintf(f->in_use, sizeof f->in_use, "%.120s lies beside it: a hypervisor (ESXi) uses this folder",
                 text_safe(safe, sizeof safe, e->d_name, strlen(e->d_name)));
        break;
    }
    closedir(dir);
}

/* ---- the file ---- */

static int check_kind(const struct opening *o, mode_t mode, struct err *err) {
    if (S_ISREG(mode)) return 0;
    if (S_ISLNK(mode))
        return err_set(err, STATUS_TARGET, "%s: is a symbolic link; give the path of the file itself", o->safe);
    const char *kind = S_ISDIR(mode) ? "a folder" : S_ISBLK(mode) ? "a block device outside of /dev"
                     : S_ISCHR(mode) ? "a character device" : S_ISFIFO(mode) ? "a pipe" : "a socket";
    return err_set(err, STATUS_TARGET, "%s: is %s, not a file", o->safe, kind);
}

static int cannot_open(const struct opening *o, int error, struct err *err) {
    const char *what = o->how->mode == OPEN_CREATE  ? "created"
                       : o->how->mode == OPEN_WRITE ? "opened for writing"
                                                    : "opened";
    const char *help = error == EACCES || error == EPERM ? " (are the rights of this user enough?)" :
                       error == ETXTBSY ? " (it is a swap file or a program that runs)" :
                       error == EROFS ? " (mounted read-only)" : "";
    return err_set(err, STATUS_TARGET, "%s: cannot be %s: %s%s", o->safe, what, strerrordesc_np(error), help);
}

static bool same_file(const struct handle *h, const struct stat *st) {
    return st->st_dev == h->dev && st->st_ino == h->ino;
}

static int create(struct opening *o, struct handle *h, struct err *err) {
    struct stat st;
    h->fd = openat(h->dir, h->name, O_RDWR | O_CREAT | O_EXCL | OPEN_FLAGS, 0600);
    if (h->fd < 0 && errno == EEXIST)
        return err_set(err, STATUS_TARGET, "%s: exists already; only a file that does not exist is created", o->safe);
    if (h->fd < 0) return cannot_open(o, errno, err);
    if (fstat(h->fd, &st) < 0) return cannot_open(o, errno, err);
    h->dev = st.st_dev;
    h->ino = st.st_ino;
    h->created = true;
    if (ftruncate(h->fd, (off_t)o->how->create_size) < 0) {
        char size[32];
        return err_set(err, STATUS_TARGET, "%s: giving it %s: %s", o->safe,
                       units_size_human(size, sizeof size, o->how->create_size), strerrordesc_np(errno));
    }
    return 0;
}

static int open_existing(struct opening *o, struct handle *h, struct err *err) {
    struct stat st;
    h->fd = openat(h->dir, h->name, (o->how->mode == OPEN_WRITE ? O_RDWR : O_RDONLY) | OPEN_FLAGS);
    if (h->fd < 0) return cannot_open(o, errno, err);
    if (fstat(h->fd, &st) < 0) return cannot_open(o, errno, err);
    if (check_kind(o, st.st_mode, err) < 0) return -1;
    h->dev = st.st_dev;
    h->ino = st.st_ino;
    return 0;
}

/* ---- O_DIRECT ---- */

/* What the file system says about alignment, else the disk's block size, else a first guess. False: no direct I/O
 * here. */
static bool ask_alignment(const struct opening *o, const struct handle *h, int fd, uint32_t *block, uint32_t *mem) {
#ifdef STATX_DIOALIGN
    struct statx stx;
    if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &stx) == 0 && (stx.stx_mask & STATX_DIOALIGN)) {
        *block = stx.stx_dio_offset_align;
        *mem = stx.stx_dio_mem_align;
        return *block > 0;
    }
#endif
    *block = blockdev_logical(SYS, h->dev);
    if (!*block) *block = o->class == FS_LOCAL ? 4096 : 512;
    *mem = *block;
    return true;
}

/* A descriptor with O_DIRECT that has really read, -1 if there is none (errno tells). The flag alone proves nothing:
 * some file systems take it at open and fail the I/O. */
static int probe_direct(const struct opening *o, const struct handle *h, uint32_t *block, uint32_t *mem) {
    struct stat st;
    void *buf = NULL;
    int flags = (o->how->mode == OPEN_READ ? O_RDONLY : O_RDWR) | O_DIRECT | OPEN_FLAGS, error = EINVAL;
    int fd = openat(h->dir, h->name, flags);
    if (fd < 0) return -1;
    if (fstat(fd, &st) < 0 || !same_file(h, &st) || !ask_alignment(o, h, fd, block, mem)) goto no;
    if (posix_memalign(&buf, PROBE_MAX, PROBE_MAX)) goto no;
    while (*block <= PROBE_MAX && pread(fd, buf, *block, 0) < 0) {
        error = errno;
        if (error != EINVAL) goto no;
        *block *= 2;
        if (*mem < *block) *mem = *block;
    }
    if (*block > PROBE_MAX) goto no;
    free(buf);
    return fd;
no:
    free(buf);
    close(fd);
    errno = error;
    return -1;
}

static int choose_direct(struct opening *o, struct handle *h, struct facts *f, struct err *err) {
    f->block = f->mem_align = 1;
    if (o->conf->direct == FILE_DIRECT_NO) return 0;
    int fd = probe_direct(o, h, &f->block, &f->mem_align), error = errno;
    if (fd >= 0) {
        close(h->fd);
        h->fd = fd;
        h->direct = true;
        return 0;
    }
    f->block = f->mem_align = 1;
    kv_text(&f->negotiated, "o_direct_refused", "%s", strerrordesc_np(error));
    if (o->conf->direct == FILE_DIRECT_YES)
        return err_set(err, STATUS_TARGET,
                       "%s: %s does not take O_DIRECT (%s); without direct=yes it is read and written "
                       "through the page cache",
                       o->safe, o->mount ? o->mount->type : "its file system", strerrordesc_np(error));
    return 0;
}

/* Before there is a file that could be asked: where it does not take O_DIRECT, threads will serve it. */
static bool may_use_aio(const struct file_conf *conf) {
#ifdef HAVE_LIBAIO
    return conf->direct != FILE_DIRECT_NO &&
           (conf->engine == FILE_ENGINE_AUTO || conf->engine == FILE_ENGINE_LIBAIO);
#else
    (void)conf;
    return false;
#endif
}

static int choose_engine(struct opening *o, struct handle *h, struct facts *f, struct err *err) {
    h->uring = o->conf->engine == FILE_ENGINE_IO_URING;
#ifdef HAVE_LIBAIO
    h->threads = o->conf->engine == FILE_ENGINE_THREADS || (o->conf->engine == FILE_ENGINE_AUTO && !h->direct);
#else
    h->threads = !h->uring;
#endif
    if (!h->threads && !h->direct)
        return err_set(err, STATUS_TARGET,
                       "%s: engine=%s needs O_DIRECT, which %s does not take: without it the kernel "
                       "does the I/O in the submit, and the depth is 1; engine=threads keeps the depth",
                       o->safe, h->uring ? "io_uring" : "libaio", o->mount ? o->mount->type : "its file system");
    snprintf(f->engine, sizeof f->engine, "%s %s", h->threads ? "helper threads" : h->uring ? "io_uring" : "libaio",
             h->direct ? "O_DIRECT" : "page cache");
    kv_bool(&f->negotiated, "o_direct", h->direct);
    f->kernel_aio = !h->threads && !h->uring;
    if (!h->threads) return 0;
    f->max_depth = HELPERS_MAX;
    kv_text(&f->warnings, "helper-threads",
            "each I/O is handed to a thread and back: two wake-ups, some 10 to 100 us, are "
            "in its latency");
    return 0;
}

/* ---- facts ---- */

/* A file of an overlay is the one in its upper layer. */
static void overlay_identity(const struct opening *o, const struct handle *h, struct facts *f) {
    struct overlay_file layer[OVERLAY_LAYERS_MAX];
    char path[2 * PATH_MAX];
    if (!o->mount || strcmp(o->mount->type, "overlay")) return;
    char *text = mountinfo_read();
    snprintf(path, sizeof path, "%s/%s", o->folder, h->name);
    if (overlay_files(text, path, h->dev, layer) && layer[0].upper)
        snprintf(f->identity[1], sizeof f->identity[1], "file:%u:%u:%llu", major(layer[0].dev), minor(layer[0].dev),
                 (unsigned long long)layer[0].ino);
    free(text);
}

static void file_facts(const struct opening *o, struct handle *h, struct facts *f) {
    struct stat st;
    uint64_t value;
    char size[32], other[32], name[64], path[PATH_MAX];
    if (fstat(h->fd, &st) < 0) return;
    f->size = h->size = (uint64_t)st.st_size;
    f->allocated = h->allocated = (uint64_t)st.st_blocks * 512;
    /* Some FUSE daemons and network file systems do not say. */
    if (!st.st_blocks && f->size && (o->class == FS_FUSE || o->class == FS_NETWORK))
        f->allocated = h->allocated = UINT64_MAX;
    f->read_only = faccessat(h->dir, h->name, W_OK, AT_EACCESS) < 0;
    snprintf(f->identity[0], sizeof f->identity[0], "file:%u:%u:%llu", major(h->dev), minor(h->dev),
             (unsigned long long)h->ino);
    overlay_identity(o, h, f);
    if (!h->created && f->allocated < f->size)
        kv_text(&f->warnings, "sparse", "only %s of %s have storage behind them: reads of holes never reach a disk",
                units_size_human(other, sizeof other, f->allocated), units_size_human(size, sizeof size, f->size));
    if (kernel_readahead_path(SYS, h->dev, path, sizeof path) && sysfs_uint(&value, "%s", path))
        kv_uint(&f->negotiated, "bdi_read_ahead_kb", value);
    h->local_device = o->class == FS_LOCAL && blockdev_ios(SYS, h->dev, &value) == 0;
    if (h->local_device) {
        blockdev_name(SYS, h->dev, name, sizeof name);
        kv_text(&f->negotiated, "device", "%s", name);
    }
}

static void common_facts(const struct opening *o, struct handle *h, struct facts *f) {
    char type[32], source[64], name[72], size[16];
    f->kind = OBJECT_FILE;
    f->delay_ns = o->conf->delay;
    h->asked = o->conf->kernel;
    f->max_io = FILE_MAX_IO;
    if (o->class == FS_NFS && o->mount) nfsmount_facts(o->mount, h->dev, h->fd, f);
    fs_facts(o->class, o->mount, h->direct || h->fd < 0, f);
    h->plain_stable = f->volatile_cache == ANSWER_NO;
    h->dsync_stable = f->dpofua == ANSWER_YES;
    const struct mount *m = o->mount;
    text_safe(type, sizeof type, m ? m->type : "file", strlen(m ? m->type : "file"));
    text_safe(source, sizeof source, m ? m->source : "", m ? strlen(m->source) : 0);
    text_safe(name, sizeof name, h->name, strlen(h->name));
    snprintf(f->summary, sizeof f->summary, "%s%s%s: %s, %s", type, *source ? " on " : "", source, name,
             h->fd < 0 ? "does not exist" : units_size_human(size, sizeof size, f->size));
}

/* ---- open, close, remove ---- */

static int find_file(struct opening *o, struct handle *h, struct err *err) {
    struct stat st;
    if (o->how->mode == OPEN_CREATE) return create(o, h, err);
    if (fstatat(h->dir, h->name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        if (errno == ENOENT && o->how->mode == OPEN_READ) return 0;
        return cannot_open(o, errno, err);
    }
    /* Before any open: opening a device or a pipe may act upon it. */
    return check_kind(o, st.st_mode, err) < 0 ? -1 : open_existing(o, h, err);
}

static int open_all(struct opening *o, struct handle *h, struct facts *f, struct err *err) {
    if (find_folder(o, h, err) < 0 || find_filesystem(o, h, f, err) < 0 || find_file(o, h, err) < 0) return -1;
    find_locks(h, f);
    f->exists = h->fd >= 0;
    if (!f->exists) {
        f->block = f->mem_align = 1;
        f->kernel_aio = may_use_aio(o->conf);
        f->read_only = faccessat(h->dir, ".", W_OK, AT_EACCESS) < 0;
        common_facts(o, h, f);
        return 0;
    }
    if (choose_direct(o, h, f, err) < 0 || choose_engine(o, h, f, err) < 0) return -1;
    if (h->direct && o->conf->kernel.readahead_given)
        return err_set(err, STATUS_TARGET,
                       "%s: kernel_readahead has no effect with O_DIRECT, which works here: use direct=no, or the "
                       "pattern's readahead=",
                       o->safe);
    file_facts(o, h, f);
    common_facts(o, h, f);
    return 0;
}

int file_open(const struct open_how *how, struct handle **out, struct facts *f, struct err *err) {
    struct opening o = {.how = how, .conf = how->conf};
    struct handle *h = calloc(1, sizeof *h);
    struct err ignored;
    text_safe(o.safe, sizeof o.safe, o.conf->path, strlen(o.conf->path));
    if (!h) return err_set(err, STATUS_TARGET, "%s: out of memory", o.safe);
    h->fd = h->dir = -1;
    int rc = open_all(&o, h, f, err);
    free(o.mount);
    if (rc == 0) {
        if (h->fd >= 0) lock_take(h->fd, how->mode != OPEN_READ, &h->lock, f);
        *out = h;
        return 0;
    }
    if (h->created) (void)file_remove(h, &ignored);
    file_close(h);
    return -1;
}

void file_close(struct handle *h) {
    if (!h) return;
    kernel_put_back(&h->kernel);
    lock_give(h->lock);
    if (h->fd >= 0) close(h->fd);
    if (h->dir >= 0) close(h->dir);
    free(h->name);
    free(h);
}

int file_remove(struct handle *h, struct err *err) {
    struct stat st;
    char safe[256];
    text_safe(safe, sizeof safe, h->name, strlen(h->name));
    if (!h->created) return err_set(err, STATUS_TARGET, "%s: not removed: this run did not create it", safe);
    if (fstatat(h->dir, h->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return err_set(err, STATUS_TARGET, "%s: not removed: %s", safe, strerrordesc_np(errno));
    if (!same_file(h, &st))
        return err_set(err, STATUS_TARGET, "%s: not removed: it is another file by now", safe);
    if (h->size && (uint64_t)st.st_size > h->size)
        return err_set(err, STATUS_TARGET, "%s: not removed: it has grown from %llu to %llu bytes, and what somebody has added to it "
                       "is not of this program", safe, (unsigned long long)h->size, (unsigned long long)st.st_size);
    if (unlinkat(h->dir, h->name, 0) < 0)
        return err_set(err, STATUS_TARGET, "%s: not removed: %s", safe, strerrordesc_np(errno));
    h->created = false;
    return 0;
}
