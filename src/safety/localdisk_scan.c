/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "safety/localdisk_table.h"

long localdisk_read(const char *path, void *buf, size_t size) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    size_t have = 0;
    ssize_t n;

    if (fd < 0) return -1;
    while (have < size - 1 && (n = read(fd, (char *)buf + have, size - 1 - have)) != 0) {
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) {
            close(fd);
            return -1;
        }
        have += (size_t)n;
    }
    close(fd);
    ((char *)buf)[have] = '\0';
    return (long)have;
}

static bool read_line(const char *path, char *buf, size_t size) {
    if (localdisk_read(path, buf, size) < 0) return false;
    buf[strcspn(buf, "\n")] = '\0';
    return true;
}

/* ---- identities ---- */

void localdisk_add_identity(struct localdisk_disk *d, const char *fmt, ...) {
    char text[IDENTITY_SIZE];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    for (unsigned i = 0; i < d->n_identities; i++)
        if (identity_equal(d->identity[i], text)) return;
    if (d->n_identities < LOCALDISK_IDENTITIES) memcpy(d->identity[d->n_identities++], text, sizeof(text));
}

static void add_hex(struct localdisk_disk *d, const char *kind, const unsigned char *bytes, size_t n) {
    char hex[64] = "";

    for (size_t i = 0; i < n && i < 31; i++) snprintf(hex + 2 * i, sizeof(hex) - 2 * i, "%02x", bytes[i]);
    localdisk_add_identity(d, "%s%s", kind, hex);
}

void localdisk_vpd83(struct localdisk_disk *d, const unsigned char *page, size_t len) {
    if (len < 4 || page[1] != 0x83) return;
    size_t end = 4 + ((size_t)page[2] << 8 | page[3]);
    if (end > len) end = len;
    for (size_t at = 4; at + 4 <= end;) {
        const unsigned char *designator = page + at + 4;
        unsigned association = page[at + 1] >> 4 & 3, type = page[at + 1] & 15;
        size_t n = page[at + 3];

        at += 4 + n;
        if (at > end) break;
        if (association != 0) continue; /* names a port or the whole array, not this LUN */
        int text = (int)strnlen((const char *)designator, n);
        if (type == 1)
            localdisk_add_identity(d, "t10.%.*s", text, (const char *)designator);
        else if (type == 2)
            add_hex(d, "eui.", designator, n);
        else if (type == 3)
            add_hex(d, "naa.", designator, n);
        else if (type == 8)
            localdisk_add_identity(d, "%.*s", text, (const char *)designator);
    }
}

void localdisk_vpd80(struct localdisk_disk *d, const unsigned char *page, size_t len, const char *vendor,
                     const char *model) {
    if (len < 4 || page[1] != 0x80) return;
    size_t n = (size_t)page[2] << 8 | page[3];
    if (n > len - 4) n = len - 4;
    const char *serial = (const char *)page + 4;
    n = strnlen(serial, n);
    while (n > 0 && *serial == ' ') serial++, n--;
    if (n == 0) return; /* blanks name nothing */
    localdisk_add_identity(d, "serial.%.*s", (int)n, serial);
    if (*vendor || *model) localdisk_add_identity(d, "serial.%s.%s.%.*s", vendor, model, (int)n, serial);
}

/* The name that scsi_id gives, which dm-multipath puts behind "mpath-": a digit for the kind, then the name. */
static void multipath_identity(struct localdisk_disk *d, const char *uuid) {
    switch (*uuid) {
    case '1': localdisk_add_identity(d, "t10.%s", uuid + 1); break;
    case '2': localdisk_add_identity(d, "eui.%s", uuid + 1); break;
    case '3': localdisk_add_identity(d, "naa.%s", uuid + 1); break;
    default: localdisk_add_identity(d, "%s", uuid); break;
    }
}

static void disk_identities(struct localdisk_disk *d, const char *folder) {
    char path[PATH_MAX + 700], text[512], vendor[64], model[64];
    unsigned char page[4096];
    static const char *const names[] = {"wwid", "device/wwid"};

    for (unsigned i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        if (read_line(path, text, sizeof(text)) && *text) localdisk_add_identity(d, "%s", text);
    }
    snprintf(path, sizeof(path), "%s/device/vpd_pg83", folder);
    long n = localdisk_read(path, page, sizeof(page));
    if (n > 0) localdisk_vpd83(d, page, (size_t)n);
    snprintf(path, sizeof(path), "%s/device/vendor", folder);
    if (!read_line(path, vendor, sizeof(vendor))) *vendor = '\0';
    snprintf(path, sizeof(path), "%s/device/model", folder);
    if (!read_line(path, model, sizeof(model))) *model = '\0';
    snprintf(path, sizeof(path), "%s/device/vpd_pg80", folder);
    n = localdisk_read(path, page, sizeof(page));
    if (n > 0) localdisk_vpd80(d, page, (size_t)n, vendor, model);
    snprintf(path, sizeof(path), "%s/dm/uuid", folder);
    if (!read_line(path, text, sizeof(text))) return;
    snprintf(d->dm_uuid, sizeof(d->dm_uuid), "%.159s", text);
    if (strncmp(text, "mpath-", 6) == 0) {
        d->multipath = true;
        multipath_identity(d, text + 6);
    }
}

/* ---- the table ---- */

struct localdisk_disk *localdisk_by_name(const struct localdisk *l, const char *name) {
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->disk[i].name, name) == 0) return &l->disk[i];
    return NULL;
}

struct localdisk_disk *localdisk_by_dev(const struct localdisk *l, dev_t dev) {
    for (size_t i = 0; i < l->n; i++)
        if (l->disk[i].dev == dev) return &l->disk[i];
    return NULL;
}

static struct localdisk_disk *add_disk(struct localdisk *l, struct err *err) {
    if (l->n == l->cap) {
        size_t cap = l->cap ? 2 * l->cap : 32;
        struct localdisk_disk *disk = realloc(l->disk, cap * sizeof(*disk));
        if (!disk) {
            err_set(err, STATUS_TARGET, "no memory");
            return NULL;
        }
        l->disk = disk;
        l->cap = cap;
    }
    memset(&l->disk[l->n], 0, sizeof(l->disk[0]));
    return &l->disk[l->n++];
}

static void disk_holders(struct localdisk_disk *d, const char *folder) {
    char path[PATH_MAX + 700];
    struct dirent *e;

    snprintf(path, sizeof(path), "%s/holders", folder);
    DIR *dir = opendir(path);
    while (dir && (e = readdir(dir)))
        if (*e->d_name != '.' && d->n_holders < LOCALDISK_HOLDERS)
            snprintf(d->holder[d->n_holders++], sizeof(d->holder[0]), "%.63s", e->d_name);
    if (dir) closedir(dir);
}

/* False (nothing added) where there is no device number: hidden paths of NVMe multipath. */
static bool scan_disk(struct localdisk *l, const char *folder, const char *name, int parent, bool *failed,
                      struct err *err) {
    char path[PATH_MAX + 700], text[64];
    unsigned major, minor;

    snprintf(path, sizeof(path), "%s/dev", folder);
    if (!read_line(path, text, sizeof(text)) || sscanf(text, "%u:%u", &major, &minor) != 2) return false;
    struct localdisk_disk *d = add_disk(l, err);
    if (!d) {
        *failed = true;
        return false;
    }
    snprintf(d->name, sizeof(d->name), "%.63s", name);
    d->dev = makedev(major, minor);
    d->parent = parent;
    snprintf(path, sizeof(path), "%s/partition", folder);
    if (parent >= 0 && read_line(path, text, sizeof(text))) d->partition = (unsigned)strtoul(text, NULL, 10);
    disk_holders(d, folder);
    if (parent < 0) disk_identities(d, folder);
    return true;
}

static int scan_whole(struct localdisk *l, const char *block, const char *name, struct err *err) {
    char folder[PATH_MAX + 300], part[PATH_MAX + 600];
    struct dirent *e;
    bool failed = false;
    int whole = (int)l->n;

    snprintf(folder, sizeof(folder), "%s/%s", block, name);
    if (!scan_disk(l, folder, name, -1, &failed, err)) return failed ? -1 : 0;
    DIR *dir = opendir(folder);
    while (dir && !failed && (e = readdir(dir))) {
        snprintf(part, sizeof(part), "%s/%s/partition", folder, e->d_name);
        if (*e->d_name == '.' || access(part, F_OK) != 0) continue;
        snprintf(part, sizeof(part), "%s/%s", folder, e->d_name);
        scan_disk(l, part, e->d_name, whole, &failed, err);
    }
    if (dir) closedir(dir);
    return failed ? -1 : 0;
}

int localdisk_scan(const char *sysfs, const char *proc, struct localdisk **out, struct err *err) {
    char block[PATH_MAX];
    struct dirent **list;
    struct localdisk *l = calloc(1, sizeof(*l));
    int rc = 0;

    *out = NULL;
    if (!l) return err_set(err, STATUS_TARGET, "no memory");
    snprintf(block, sizeof(block), "%s/block", sysfs);
    int n = scandir(block, &list, NULL, alphasort); /* in order: what is found first is what is named */
    if (n < 0) {
        rc = err_set(err, STATUS_USAGE,
                     "%s: %s; without it nobody can say which block devices are in use, and nothing is "
                     "written to LUNs or devices",
                     block, strerror(errno));
        goto out;
    }
    for (int i = 0; i < n; i++) {
        if (rc == 0 && *list[i]->d_name != '.') rc = scan_whole(l, block, list[i]->d_name, err);
        free(list[i]);
    }
    free(list);
    if (rc == 0) localdisk_stack(l, sysfs);
    if (rc == 0) rc = localdisk_uses(l, sysfs, proc, err);
out:
    if (rc != 0)
        localdisk_free(l);
    else
        *out = l;
    return rc;
}

void localdisk_free(struct localdisk *l) {
    if (!l) return;
    free(l->disk);
    free(l->file);
    free(l);
}
