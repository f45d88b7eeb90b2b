/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/local/blockdev.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "backends/local/blockid.h"
#include "linux/mountinfo.h"
#include "backends/local/roads.h"
#include "backends/local/sysfs.h"
#include "base/text.h"
#include "base/units.h"
#include "linux/loopdev.h"

/* The folder of the device itself, and that of the disk it is a part of (the same for a whole disk). */
struct place {
    char own[PATH_MAX], disk[PATH_MAX + 4];
    bool partition;
};

static void find_place(const char *sys, dev_t dev, struct place *p) {
    char number[32];
    snprintf(p->own, sizeof p->own, "%s/dev/block/%u:%u", sys, major(dev), minor(dev));
    p->partition = sysfs_text(number, sizeof number, "%s/partition", p->own);
    snprintf(p->disk, sizeof p->disk, "%s%s", p->own, p->partition ? "/.." : "");
}

void blockdev_name(const char *sys, dev_t dev, char *buf, size_t len) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/dev/block/%u:%u", sys, major(dev), minor(dev));
    char *real = realpath(path, NULL);
    snprintf(buf, len, "%s", real ? strrchr(real, '/') + 1 : "");
    free(real);
}

int blockdev_ios(const char *sys, dev_t dev, uint64_t *ios) {
    struct place p;
    char text[512], iostats[16];
    unsigned long long reads, writes;
    find_place(sys, dev, &p);
    if (sysfs_text(iostats, sizeof iostats, "%s/queue/iostats", p.disk) && !strcmp(iostats, "0")) return -1;
    if (!sysfs_text(text, sizeof text, "%s/stat", p.own) ||
        sscanf(text, "%llu %*u %*u %*u %llu", &reads, &writes) != 2)
        return -1;
    *ios = reads + writes;
    return 0;
}

uint32_t blockdev_logical(const char *sys, dev_t dev) {
    struct place p;
    uint64_t value;
    find_place(sys, dev, &p);
    return sysfs_uint(&value, "%s/queue/logical_block_size", p.disk) && value && value <= 65536 ? (uint32_t)value : 0;
}

/* ---- facts ---- */

static void queue_facts(const char *disk, struct facts *f) {
    static const char *const numbers[] = {
        "logical_block_size", "physical_block_size", "minimum_io_size", "optimal_io_size", "max_sectors_kb",
        "max_hw_sectors_kb", "nr_requests", "nomerges", "read_ahead_kb", "rotational", "fua", "discard_max_bytes",
        "iostats"
    };
    uint64_t value;
    char text[128];
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (sysfs_uint(&value, "%s/queue/%s", disk, numbers[i])) kv_uint(&f->negotiated, numbers[i], value);
    if (sysfs_uint(&value, "%s/device/queue_depth", disk)) kv_uint(&f->negotiated, "queue_depth", value);
    if (sysfs_text(text, sizeof text, "%s/queue/scheduler", disk)) {
        char *from = strchr(text, '['), *to = from ? strchr(from, ']') : NULL; /* "mq-deadline [none]" */
        if (to) *to = 0;
        kv_text(&f->negotiated, "scheduler", "%s", to ? from + 1 : text);
    }
    if (sysfs_text(text, sizeof text, "%s/queue/write_cache", disk)) {
        kv_text(&f->negotiated, "write_cache", "%s", text);
        f->volatile_cache = !strcmp(text, "write back") ? ANSWER_YES : !strcmp(text, "write through") ? ANSWER_NO
                                                                                                     : ANSWER_UNKNOWN;
    }
    if (sysfs_text(text, sizeof text, "%s/queue/zoned", disk) && strcmp(text, "none") && *text) {
        kv_text(&f->negotiated, "zoned", "%s", text);
        kv_text(&f->warnings, "zoned", "a %s zoned device: writes that are not sequential fail or are slow", text);
    }
}

static void slave_facts(const char *sys, const char *disk, struct facts *f) {
    char text[256], path[PATH_MAX + 300], paths[1024] = "";
    if (sysfs_text(text, sizeof text, "%s/dm/name", disk)) kv_text(&f->negotiated, "dm_name", "%s", text);
    if (sysfs_text(text, sizeof text, "%s/dm/uuid", disk)) kv_text(&f->negotiated, "dm_uuid", "%s", text);
    snprintf(path, sizeof path, "%s/slaves", disk);
    DIR *dir = opendir(path);
    uint64_t queue_depth;
    unsigned n = 0;
    for (struct dirent *e; dir && (e = readdir(dir));) {
        if (e->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/slaves/%s", disk, e->d_name);
        char state[64], prefix[24];
        snprintf(prefix, sizeof prefix, "%.20s_", e->d_name);
        const char *transport = blockid_transport(sys, path, prefix, &f->negotiated);
        if (!sysfs_text(state, sizeof state, "%s/device/state", path)) state[0] = 0;
        if (sysfs_uint(&queue_depth, "%s/device/queue_depth", path)) {
            char key[40];
            snprintf(key, sizeof key, "%squeue_depth", prefix);
            kv_uint(&f->negotiated, key, queue_depth);
        }
        size_t at = strlen(paths);
        snprintf(paths + at, sizeof paths - at, "%s%s%s%s%s%s", n++ ? ", " : "", e->d_name, *transport ? " " : "",
                 transport, *state ? " " : "", state);
    }
    if (dir) closedir(dir);
    if (*paths) kv_text(&f->negotiated, "paths", "%s", paths);
    if (n) kv_uint(&f->negotiated, "path_count", n);
}

static void add_identity(struct facts *f, const char *identity) {
    for (unsigned i = 0; i < FACTS_IDENTITIES; i++) {
        if (f->identity[i][0]) continue;
        snprintf(f->identity[i], sizeof f->identity[i], "%s", identity);
        return;
    }
}

static void loop_facts(const char *own, const char *name, dev_t dev, struct facts *f) {
    char safe[600], identity[96];
    uint64_t dio;
    struct loopdev loop;
    if (!loopdev_ask(own, name, dev, &loop)) return;
    kv_text(&f->negotiated, "backing_file", "%s", text_safe(safe, sizeof safe, loop.path, strlen(loop.path)));
    if (sysfs_uint(&dio, "%s/loop/dio", own)) {
        kv_bool(&f->negotiated, "loop_direct_io", dio != 0);
        if (!dio)
            kv_text(&f->warnings, "page-cache", "this loop device goes through the page cache of the host "
                    "(losetup --direct-io=on avoids it): numbers may be those of memory");
    }
    if (!loop.known || loop.rdev) return;
    snprintf(identity, sizeof identity, "file:%u:%u:%llu", major(loop.dev), minor(loop.dev),
             (unsigned long long)loop.ino);
    add_identity(f, identity);
}

static void identities(const struct place *p, dev_t dev, struct facts *f) {
    char text[128], safe[128];
    if (blockid_wwid(p->disk, text, sizeof text)) {
        text_safe(safe, sizeof safe, text, strlen(text));
        if (p->partition) kv_text(&f->negotiated, "partition_of", "%s", safe);
        else add_identity(f, safe); /* a partition is another object than its disk */
    }
    snprintf(text, sizeof text, "dev:%u:%u", major(dev), minor(dev));
    add_identity(f, text);
}

static void summarise(const struct place *p, const char *transport, const char *name, struct facts *f) {
    char vendor[64], model[64], size[32], words[400], dm[64];
    if (!sysfs_text(vendor, sizeof vendor, "%s/device/vendor", p->disk) || !strncmp(vendor, "0x", 2)) vendor[0] = 0;
    if (!sysfs_text(model, sizeof model, "%s/device/model", p->disk)) model[0] = 0;
    if (!sysfs_text(dm, sizeof dm, "%s/dm/name", p->disk)) dm[0] = 0;
    if (*vendor) kv_text(&f->negotiated, "vendor", "%s", vendor);
    if (*model) kv_text(&f->negotiated, "model", "%s", model);
    snprintf(words, sizeof words, "%s%s%s%s%s%s%s%s%s", *transport ? transport : "block",
             p->partition ? " partition " : " device ", name, *dm ? " " : "", dm, *vendor ? " " : "", vendor,
             *model ? " " : "", model);
    char safe[200];
    text_safe(safe, sizeof safe, words, strlen(words));
    snprintf(f->summary, sizeof f->summary, "%.160s, %s", safe, units_size_human(size, sizeof size, f->size));
}

/* "FC", "FC, iSCSI": of the disks that a map, an array or a volume ends at. */
static const char *below(const char *sys, dev_t dev, char *buf, size_t len) {
    struct roads *roads = roads_find(sys, dev);
    struct kv ignored = {.n = 0};
    *buf = 0;
    for (unsigned i = 0; roads && i < roads->n; i++) {
        const char *one = roads->road[i].dev == dev ? "" : blockid_transport(sys, roads->road[i].folder, "", &ignored);
        size_t at = strlen(buf);
        if (*one && !strstr(buf, one)) snprintf(buf + at, len - at, "%s%s", at ? ", " : "", one);
    }
    kv_free(&ignored);
    free(roads);
    return buf;
}

/* Of the kernel's own NVMe multipathing; a dm-multipath map tells by its status. */
static void path_warning(struct facts *f) {
    const struct kv_item *paths = kv_find(&f->negotiated, "paths");
    uint64_t failed = kv_get_uint(&f->negotiated, "paths_failed", 0);
    if (failed && paths)
        kv_text(&f->warnings, "paths-failed", "%llu of the paths failed (%s): what is measured is what is left of it",
                (unsigned long long)failed, paths->text);
}

/* How far behind the edge of a physical block the device begins: where the partition starts, and where the disk itself
 * has its first edge. */
static void physical_offset(const struct place *p, struct facts *f) {
    uint64_t block = 0, start = 0, first = 0;
    sysfs_uint(&block, "%s/queue/physical_block_size", p->disk);
    sysfs_uint(&first, "%s/alignment_offset", p->disk);
    if (p->partition) sysfs_uint(&start, "%s/start", p->own);
    if (!block) return;
    uint64_t off = (start * 512 + block - first % block) % block;
    if (off) kv_uint(&f->negotiated, "physical_offset", off);
}

void blockdev_facts(const char *sys, dev_t dev, struct facts *f) {
    struct place p;
    char name[64], roads[128];
    uint64_t value;
    find_place(sys, dev, &p);
    blockdev_name(sys, dev, name, sizeof name);
    identities(&p, dev, f);
    queue_facts(p.disk, f);
    if (sysfs_uint(&value, "%s/ro", p.own) && value) f->read_only = true;
    physical_offset(&p, f);
    if (p.partition && sysfs_uint(&value, "%s/alignment_offset", p.own) && value)
        kv_text(&f->warnings, "alignment", "the partition is off the disk's alignment by %llu bytes",
                (unsigned long long)value);
    const char *transport = blockid_transport(sys, p.disk, "", &f->negotiated);
    if (!*transport) transport = below(sys, dev, roads, sizeof roads);
    if (*transport) kv_text(&f->negotiated, "transport", "%s", transport);
    if (!strcmp(transport, "memory")) {
        f->volatile_cache = ANSWER_YES;
        kv_text(&f->warnings, "memory", "%s is memory of this host, no storage", name);
    }
    path_warning(f);
    slave_facts(sys, p.disk, f);
    loop_facts(p.own, name, dev, f);
    summarise(&p, transport, name, f);
}

/* ---- who uses it ---- */

static void add_user(char *buf, size_t len, const char *name, const char *what, const char *whom) {
    char safe[128];
    size_t at = strlen(buf);
    text_safe(safe, sizeof safe, whom, strlen(whom));
    snprintf(buf + at, len - at, "%s/dev/%s is %s%s", at ? "; " : "", name, what, safe);
}

static void mount_users(const char *mountinfo, dev_t dev, const char *name, char *buf, size_t len) {
    struct mount *m = mountinfo ? malloc(sizeof *m) : NULL;
    while (m && mountinfo_next(&mountinfo, m)) {
        if (m->major != major(dev) || m->minor != minor(dev)) continue;
        add_user(buf, len, name, "mounted on ", m->point);
        break;
    }
    free(m);
}

/* Lines of /proc/swaps begin with the device. */
static bool is_swap(const char *swaps, const char *name) {
    char want[80];
    snprintf(want, sizeof want, "/dev/%s", name);
    size_t n = strlen(want);
    for (const char *line = swaps; line && *line; line += strcspn(line, "\n"), line += *line == '\n')
        if (!strncmp(line, want, n) && (line[n] == ' ' || line[n] == '\t')) return true;
    return false;
}

static void users_of(const char *own, dev_t dev, const char *name, const char *mountinfo, const char *swaps, char *buf,
                     size_t len) {
    char path[PATH_MAX];
    mount_users(mountinfo, dev, name, buf, len);
    if (is_swap(swaps, name)) add_user(buf, len, name, "swap", "");
    snprintf(path, sizeof path, "%s/holders", own);
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && (e = readdir(dir));)
        if (e->d_name[0] != '.') add_user(buf, len, name, "held by ", e->d_name);
    if (dir) closedir(dir);
}

void blockdev_users(const char *sys, const char *mountinfo, const char *swaps, dev_t dev, char *buf, size_t len) {
    struct place p;
    char name[64], path[PATH_MAX + 300], text[32];
    unsigned maj, min;
    *buf = 0;
    find_place(sys, dev, &p);
    blockdev_name(sys, dev, name, sizeof name);
    users_of(p.own, dev, name, mountinfo, swaps, buf, len);
    DIR *dir = p.partition ? NULL : opendir(p.own);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        if (!sysfs_text(text, sizeof text, "%s/%s/partition", p.own, e->d_name) ||
            !sysfs_text(text, sizeof text, "%s/%s/dev", p.own, e->d_name) || sscanf(text, "%u:%u", &maj, &min) != 2)
            continue;
        snprintf(path, sizeof path, "%s/%s", p.own, e->d_name);
        users_of(path, makedev(maj, min), e->d_name, mountinfo, swaps, buf, len);
    }
    if (dir) closedir(dir);
}
