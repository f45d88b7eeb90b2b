/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/text.h"
#include "safety/localdisk_table.h"

/* The first use that was found is as good as any. */
static void claim(struct localdisk_disk *d, const char *what, const char *where) {
    char safe[120];

    if (!d || d->use[0]) return;
    snprintf(d->use, sizeof(d->use), "%s%s", what, text_safe(safe, sizeof(safe), where, strlen(where)));
}

/* Undoes the \040 of mountinfo and swaps, in place. */
static void unescape(char *s) {
    char *to = s;

    for (; *s; s++) {
        if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[2] <= '7' && s[3] >= '0' && s[3] <= '7') {
            *to++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
            s += 3;
        } else {
            *to++ = *s;
        }
    }
    *to = '\0';
}

/* The device of a path under /dev: by what it is, and by its name, since the path may belong to another mount
 * namespace. */
static void claim_path(struct localdisk *l, const char *path, const char *what, const char *where) {
    struct stat st;

    if (strncmp(path, "/dev/", 5) != 0) return;
    claim(localdisk_by_name(l, strrchr(path, '/') + 1), what, where);
    if (stat(path, &st) == 0 && S_ISBLK(st.st_mode)) claim(localdisk_by_dev(l, st.st_rdev), what, where);
}

/* "36 35 98:0 /root /mount/point options optional... - type source superoptions" */
static void mount_line(struct localdisk *l, char *line) {
    unsigned major, minor;
    char *save, *field[5], *at = line;

    for (unsigned i = 0; i < 5; i++, at = NULL)
        if (!(field[i] = strtok_r(at, " \n", &save))) return;
    if (sscanf(field[2], "%u:%u", &major, &minor) != 2) return;
    unescape(field[4]);
    claim(localdisk_by_dev(l, makedev(major, minor)), "mounted on ", field[4]);
    char *word;
    while ((word = strtok_r(NULL, " \n", &save)) && strcmp(word, "-") != 0) continue;
    if (!word || !strtok_r(NULL, " \n", &save) || !(word = strtok_r(NULL, " \n", &save))) return;
    unescape(word); /* btrfs and others mount under a number of their own: only the source names the device */
    claim_path(l, word, "mounted on ", field[4]);
}

static int read_mounts(struct localdisk *l, const char *path, bool needed, struct err *err) {
    char *line = NULL;
    size_t size = 0;
    FILE *f = fopen(path, "re");

    if (!f && !needed) return 0;
    if (!f)
        return err_set(err, STATUS_USAGE,
                       "%s: %s; without it nobody can say what is mounted, and nothing is written to LUNs "
                       "or devices",
                       path, strerror(errno));
    while (getline(&line, &size, f) >= 0) mount_line(l, line);
    free(line);
    fclose(f);
    return 0;
}

/* Not a regular file: nothing is added. */
static int claim_file(struct localdisk *l, const char *path, const char *use, struct err *err) {
    struct stat st;

    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode)) return 0;
    struct localdisk_file *more = realloc(l->file, (l->n_files + 1) * sizeof(*more));
    if (!more) return err_set(err, STATUS_TARGET, "no memory");
    l->file = more;
    snprintf(more[l->n_files].identity, sizeof(more->identity), "file:%u:%u:%ju", major(st.st_dev), minor(st.st_dev),
             (uintmax_t)st.st_ino);
    snprintf(more[l->n_files++].use, sizeof(more->use), "%s", use);
    return 0;
}

static int swap_line(struct localdisk *l, char *line, struct err *err) {
    char *save, *path = strtok_r(line, " \t\n", &save);

    if (!path || *path != '/') return 0; /* the heading */
    unescape(path);
    claim_path(l, path, "swap", "");
    return claim_file(l, path, "a swap file of this machine", err);
}

static int read_swaps(struct localdisk *l, const char *proc, struct err *err) {
    char path[PATH_MAX], *line = NULL;
    size_t size = 0;
    int rc = 0;

    snprintf(path, sizeof(path), "%s/swaps", proc);
    FILE *f = fopen(path, "re");
    if (!f && errno == ENOENT) return 0; /* a kernel without swap */
    if (!f) return err_set(err, STATUS_USAGE, "%s: %s; without it nobody can say what is swap", path, strerror(errno));
    while (rc == 0 && getline(&line, &size, f) >= 0) rc = swap_line(l, line, err);
    free(line);
    fclose(f);
    return rc;
}

/* A btrfs of several devices is mounted by one of them; sysfs lists them all as long as it is mounted. */
static void read_btrfs(struct localdisk *l, const char *sysfs) {
    char path[PATH_MAX], devices[PATH_MAX + 300];
    struct dirent *e, *d;

    snprintf(path, sizeof(path), "%s/fs/btrfs", sysfs);
    DIR *dir = opendir(path);
    while (dir && (e = readdir(dir))) {
        if (*e->d_name == '.') continue;
        snprintf(devices, sizeof(devices), "%s/%s/devices", path, e->d_name);
        DIR *sub = opendir(devices);
        while (sub && (d = readdir(sub)))
            if (*d->d_name != '.') claim(localdisk_by_name(l, d->d_name), "part of mounted btrfs ", e->d_name);
        if (sub) closedir(sub);
    }
    if (dir) closedir(dir);
}

/* ---- what this machine serves to others ---- */

/* The path that stands in what was read, in place: all of it, or as LIO says, "File: /srv/a  Size: 4096  Mode: ...". */
static char *served_path(char *text) {
    char *file = strstr(text, "File: "), *end = file ? strstr(file, "  Size: ") : NULL;

    if (end) *end = '\0';
    else text[strcspn(text, "\n")] = '\0';
    return end ? file + 6 : text;
}

/* PLACE/OUTER/INNER/LEAF says the path of a file or device that the kernel serves. */
static int served(struct localdisk *l, const char *place, const char *leaf, const char *by, struct err *err) {
    char outer[PATH_MAX], path[PATH_MAX + 600], what[PATH_MAX], use[160], safe[110];
    struct dirent *o, *i;
    int rc = 0;

    DIR *dir = opendir(place);
    while (dir && rc == 0 && (o = readdir(dir))) {
        if (*o->d_name == '.') continue;
        snprintf(outer, sizeof(outer), "%.2000s/%s", place, o->d_name);
        DIR *sub = opendir(outer);
        while (sub && rc == 0 && (i = readdir(sub))) {
            snprintf(path, sizeof(path), "%s/%s/%s", outer, i->d_name, leaf);
            long n = *i->d_name == '.' ? -1 : localdisk_read(path, what, sizeof(what) - 1);
            if (n <= 0) continue;
            char *file = served_path(what);
            snprintf(path, sizeof(path), "%s/%s", o->d_name, i->d_name);
            snprintf(use, sizeof(use), "served as a LUN by this machine (%s %s)", by, text_safe(safe, sizeof(safe), path, strlen(path)));
            claim_path(l, file, use, "");
            rc = claim_file(l, file, use, err);
        }
        if (sub) closedir(sub);
    }
    if (dir) closedir(dir);
    return rc;
}

/* LIO opens a file as anybody does, and a device exclusively; NVMe targets likewise. */
static int read_served(struct localdisk *l, const char *sysfs, struct err *err) {
    char path[PATH_MAX], *name;
    struct dirent *e;
    int rc;

    snprintf(path, sizeof(path), "%s/kernel/config/target/core", sysfs);
    rc = served(l, path, "info", "LIO", err);
    snprintf(path, sizeof(path), "%s/kernel/config/nvmet/subsystems/", sysfs);
    name = path + strlen(path);
    DIR *dir = rc == 0 ? opendir(path) : NULL;
    while (dir && rc == 0 && (e = readdir(dir))) {
        if (*e->d_name == '.') continue;
        snprintf(name, sizeof(path) - (size_t)(name - path), "%.255s", e->d_name);
        rc = served(l, path, "device_path", "NVMe", err);
    }
    if (dir) closedir(dir);
    return rc;
}

int localdisk_uses(struct localdisk *l, const char *sysfs, const char *proc, struct err *err) {
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/self/mountinfo", proc);
    if (read_mounts(l, path, true, err) != 0) return -1;
    /* Mounts of other namespaces, as far as they can be seen: in a container, those of the host or of its first
     * process. */
    snprintf(path, sizeof(path), "%s/1/mountinfo", proc);
    if (read_mounts(l, path, false, err) != 0) return -1;
    if (read_swaps(l, proc, err) != 0) return -1;
    read_btrfs(l, sysfs);
    return read_served(l, sysfs, err);
}
