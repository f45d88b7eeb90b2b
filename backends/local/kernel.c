/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/local/kernel.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "backends/local/sysfs.h"
#include "base/units.h"

#define READAHEAD_MOST (1u << 30)

const char *const kernel_nomerges_names[] = {"asis", "0", "1", "2", NULL};

int kernel_parse_readahead(const char *value, void *field, void *conf, struct err *err) {
    struct kernel_conf *k = field;
    uint64_t bytes;
    (void)conf;
    if (units_parse_size(value, &bytes, err) != 0) return -1;
    if (bytes % 4096 || bytes > READAHEAD_MOST)
        return err_set(err, STATUS_USAGE, "%s is not a multiple of 4k (a page), or more than 1g; 0 switches it off",
                       value);
    k->readahead = bytes;
    k->readahead_given = true;
    return 0;
}

int kernel_show_readahead(const void *field, const void *conf, char *buf, size_t len) {
    const struct kernel_conf *k = field;
    (void)conf;
    return k->readahead_given ? (int)strlen(units_size(buf, len, k->readahead)) : 0;
}

/* "queue/NAME" of the disk that `dev` is, or is a part of. */
static bool queue_path(const char *sys, dev_t dev, const char *name, char *path, size_t len) {
    char own[PATH_MAX / 2], number[32];
    snprintf(own, sizeof own, "%s/dev/block/%u:%u", sys, major(dev), minor(dev));
    bool partition = sysfs_text(number, sizeof number, "%s/partition", own);
    snprintf(path, len, "%s%s/queue/%s", own, partition ? "/.." : "", name);
    return access(path, F_OK) == 0;
}

bool kernel_readahead_path(const char *sys, dev_t dev, char *path, size_t len) {
    if (queue_path(sys, dev, "read_ahead_kb", path, len)) return true;
    snprintf(path, len, "%s/class/bdi/%u:%u/read_ahead_kb", sys, major(dev), minor(dev));
    return access(path, F_OK) == 0;
}

static int set_readahead(struct kernel *k, const struct kernel_conf *conf, const struct notes_where *where, dev_t dev,
                         struct kv *facts, struct err *err) {
    char path[PATH_MAX], value[32];
    uint64_t kb;
    if (!conf->readahead_given) return 0;
    if (!kernel_readahead_path(where->sys, dev, path, sizeof path))
        return err_set(err, STATUS_TARGET, "kernel_readahead: the kernel has no such setting for device %u:%u",
                       major(dev), minor(dev));
    snprintf(value, sizeof value, "%" PRIu64, conf->readahead / 1024);
    if (notes_change(where, path, value, &k->readahead, err) < 0) return err_prefix(err, "kernel_readahead");
    kv_text(facts, "kernel_readahead_before_kb", "%s", k->readahead.old);
    if (sysfs_uint(&kb, "%s", path)) kv_uint(facts, "kernel_readahead_kb", kb);
    return 0;
}

static int set_nomerges(struct kernel *k, const struct kernel_conf *conf, const struct notes_where *where, dev_t dev,
                        struct kv *facts, struct err *err) {
    char path[PATH_MAX];
    uint64_t value;
    if (conf->nomerges == KERNEL_NOMERGES_ASIS) return 0;
    if (!queue_path(where->sys, dev, "nomerges", path, sizeof path))
        return err_set(err, STATUS_TARGET, "nomerges: device %u:%u has no request queue in this kernel", major(dev),
                       minor(dev));
    if (notes_change(where, path, kernel_nomerges_names[conf->nomerges], &k->nomerges, err) < 0)
        return err_prefix(err, "nomerges");
    kv_text(facts, "nomerges_before", "%s", k->nomerges.old);
    if (sysfs_uint(&value, "%s", path)) kv_uint(facts, "nomerges", value);
    return 0;
}

int kernel_adjust(struct kernel *k, const struct kernel_conf *conf, const struct notes_where *where, dev_t dev,
                  struct kv *facts, struct err *err) {
    if (set_readahead(k, conf, where, dev, facts, err) == 0 && set_nomerges(k, conf, where, dev, facts, err) == 0)
        return 0;
    kernel_put_back(k);
    return -1;
}

void kernel_put_back(struct kernel *k) {
    notes_put_back(&k->readahead);
    notes_put_back(&k->nomerges);
}
