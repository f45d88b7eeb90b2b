/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What stands on what: holders and slaves, which the kernel keeps in sysfs, and loop devices, which leave no trace on
 * what they stand on. */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "linux/loopdev.h"
#include "linux/mountinfo.h"
#include "linux/overlay.h"
#include "safety/localdisk_table.h"

static void add_under(struct localdisk_disk *d, const struct localdisk *l, const struct localdisk_disk *lower) {
    int index = lower ? (int)(lower - l->disk) : -1;

    if (index < 0 || lower == d) return;
    for (unsigned i = 0; i < d->n_under; i++)
        if (d->under[i] == index) return;
    if (d->n_under < LOCALDISK_UNDER)
        d->under[d->n_under++] = index;
    else
        d->unknown_under = true;
}

static void read_slaves(struct localdisk *l, struct localdisk_disk *d, const char *sysfs) {
    char path[PATH_MAX + 128];
    struct dirent *e;

    snprintf(path, sizeof(path), "%s/block/%s/slaves", sysfs, d->name);
    DIR *dir = opendir(path);
    while (dir && (e = readdir(dir)))
        if (*e->d_name != '.') add_under(d, l, localdisk_by_name(l, e->d_name));
    if (dir) closedir(dir);
}

static void add_file(struct localdisk_disk *d, dev_t dev, ino_t ino) {
    localdisk_add_identity(d, "file:%u:%u:%ju", major(dev), minor(dev), (uintmax_t)ino);
}

/* Of a file in an overlay also those of the layers: by their own names they are the same blocks. */
static void add_loop_file(struct localdisk_disk *d, const struct loopdev *loop) {
    struct overlay_file layer[OVERLAY_LAYERS_MAX];
    struct stat st;

    add_file(d, loop->dev, loop->ino);
    if (stat(loop->path, &st) != 0 || st.st_dev != loop->dev || st.st_ino != loop->ino) return;
    char *mountinfo = mountinfo_read();
    unsigned n = overlay_files(mountinfo, loop->path, st.st_dev, layer);
    for (unsigned i = 0; i < n; i++) add_file(d, layer[i].dev, layer[i].ino);
    free(mountinfo);
}

static void read_loop(struct localdisk *l, struct localdisk_disk *d, const char *sysfs) {
    char folder[PATH_MAX + 128];
    struct loopdev loop;

    snprintf(folder, sizeof(folder), "%s/block/%s", sysfs, d->name);
    if (!loopdev_ask(folder, d->name, d->dev, &loop)) return;
    d->loop = true;
    /* By its name too, since the path may belong to another mount namespace. */
    const struct localdisk_disk *named =
        strncmp(loop.path, "/dev/", 5) == 0 ? localdisk_by_name(l, strrchr(loop.path, '/') + 1) : NULL;
    if (loop.known && loop.rdev)
        add_under(d, l, localdisk_by_dev(l, loop.rdev));
    else if (loop.known)
        add_loop_file(d, &loop);
    add_under(d, l, named);
    if ((!loop.known || loop.rdev) && d->n_under == 0) d->unknown_under = true;
}

void localdisk_stack(struct localdisk *l, const char *sysfs) {
    for (size_t i = 0; i < l->n; i++) {
        struct localdisk_disk *d = &l->disk[i];
        for (unsigned h = 0; h < d->n_holders; h++) {
            struct localdisk_disk *holder = localdisk_by_name(l, d->holder[h]);
            if (holder) add_under(holder, l, d);
        }
        if (d->parent >= 0) continue;
        read_slaves(l, d, sysfs);
        read_loop(l, d, sysfs);
    }
}
