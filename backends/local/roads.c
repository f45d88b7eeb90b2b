/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/local/roads.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "backends/local/sysfs.h"
#include "linux/loopdev.h"

#define DEPTH_MAX 8

static void follow(const char *sys, dev_t dev, struct roads *out, unsigned depth);

static bool read_dev(const char *folder, dev_t *dev) {
    char text[32];
    unsigned maj, min;
    if (!sysfs_text(text, sizeof text, "%s/dev", folder) || sscanf(text, "%u:%u", &maj, &min) != 2) return false;
    *dev = makedev(maj, min);
    return true;
}

static bool follow_slaves(const char *sys, const char *folder, struct roads *out, unsigned depth) {
    char path[PATH_MAX + 300];
    bool any = false;
    dev_t dev;
    snprintf(path, sizeof path, "%s/slaves", folder);
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        snprintf(path, sizeof path, "%s/slaves/%s", folder, e->d_name);
        if (e->d_name[0] == '.' || !read_dev(path, &dev)) continue;
        follow(sys, dev, out, depth + 1);
        any = true;
    }
    if (dir) closedir(dir);
    return any;
}

static void add(struct roads *out, const char *folder, dev_t dev) {
    for (unsigned i = 0; i < out->n; i++)
        if (out->road[i].dev == dev) return;
    if (out->n == ROADS_MAX) return;
    struct road *r = &out->road[out->n++];
    snprintf(r->folder, sizeof r->folder, "%s", folder);
    snprintf(r->name, sizeof r->name, "%.63s", strrchr(folder, '/') + 1);
    r->dev = dev;
}

static void follow(const char *sys, dev_t dev, struct roads *out, unsigned depth) {
    char path[PATH_MAX], number[16];
    struct loopdev loop;
    snprintf(path, sizeof path, "%s/dev/block/%u:%u", sys, major(dev), minor(dev));
    char *folder = realpath(path, NULL);
    if (!folder || depth > DEPTH_MAX) goto out;
    if (sysfs_text(number, sizeof number, "%s/partition", folder)) {
        *strrchr(folder, '/') = 0;
        if (!read_dev(folder, &dev)) goto out;
    }
    if (loopdev_ask(folder, strrchr(folder, '/') + 1, dev, &loop) && loop.rdev)
        follow(sys, loop.rdev, out, depth + 1);
    else if (!follow_slaves(sys, folder, out, depth))
        add(out, folder, dev);
out:
    free(folder);
}

struct roads *roads_find(const char *sys, dev_t dev) {
    struct roads *r = calloc(1, sizeof *r);
    if (r) follow(sys, dev, r, 0);
    return r;
}

int roads_open(const struct road *r) {
    char node[80];
    struct stat st;
    snprintf(node, sizeof node, "/dev/%s", r->name);
    for (char *p = node; (p = strchr(p, '!'));) *p = '/'; /* "cciss!c0d0" */
    int fd = open(node, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return -errno;
    if (fstat(fd, &st) == 0 && S_ISBLK(st.st_mode) && st.st_rdev == r->dev) return fd;
    close(fd);
    return -ENOENT;
}
