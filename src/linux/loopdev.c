/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/loopdev.h"

#include <fcntl.h>
#include <linux/loop.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

static bool read_path(const char *folder, char *path, size_t len) {
    char file[2 * PATH_MAX];
    snprintf(file, sizeof file, "%s/loop/backing_file", folder);
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    ssize_t n = read(fd, path, len - 1);
    close(fd);
    path[n > 0 ? n : 0] = 0;
    path[strcspn(path, "\n")] = 0;
    return *path != 0;
}

static bool ask_driver(const char *name, dev_t own, struct loopdev *out) {
    char node[80];
    struct stat st;
    struct loop_info64 info = { .lo_number = 0 };
    snprintf(node, sizeof node, "/dev/%.60s", name);
    int fd = open(node, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return false;
    bool ok = fstat(fd, &st) == 0 && S_ISBLK(st.st_mode) && st.st_rdev == own &&
              ioctl(fd, LOOP_GET_STATUS64, &info) == 0;
    close(fd);
    if (!ok) return false;
    out->rdev = (dev_t)info.lo_rdevice; /* the kernel's encoding is the C library's */
    out->dev = (dev_t)info.lo_device;
    out->ino = (ino_t)info.lo_inode;
    return true;
}

static bool ask_path(struct loopdev *out) {
    struct stat st;
    if (stat(out->path, &st) < 0) return false;
    out->rdev = S_ISBLK(st.st_mode) ? st.st_rdev : 0;
    out->dev = st.st_dev;
    out->ino = st.st_ino;
    return S_ISBLK(st.st_mode) || S_ISREG(st.st_mode);
}

bool loopdev_ask(const char *folder, const char *name, dev_t own, struct loopdev *out) {
    memset(out, 0, sizeof *out);
    if (strncmp(name, "loop", 4) || !read_path(folder, out->path, sizeof out->path)) return false;
    bool made_up = strncmp(folder, "/sys/", 5); /* the driver knows of the machine's own only */
    out->known = (!made_up && ask_driver(name, own, out)) || ask_path(out);
    return true;
}
