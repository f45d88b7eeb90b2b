/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/local/notes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/local/sysfs.h"
#include "base/rng.h"
#include "base/text.h"

#define HEAD "samedisk note 1\n"
#define SUFFIX ".note"

struct note {
    long pid;
    unsigned long long started; /* of the process, in the kernel's ticks: process numbers are used again */
    char path[PATH_MAX];
    char old[64];
};

/* ---- processes ---- */

/* False: there is no such process. */
static bool started_at(const char *proc, long pid, unsigned long long *ticks) {
    char text[1024];
    ssize_t n = sysfs_bytes(text, sizeof text - 1, "%s/%ld/stat", proc, pid);
    if (n <= 0) return false;
    text[n] = 0;
    const char *p = strrchr(text, ')'); /* the name before it may hold anything */
    for (int field = 2; p && field < 22; field++) p = strchr(p + 1, ' ');
    return p && sscanf(p, " %llu", ticks) == 1;
}

static bool lives(const char *proc, const struct note *n) {
    unsigned long long ticks;
    return started_at(proc, n->pid, &ticks) && ticks == n->started;
}

/* ---- the files ---- */

static int write_value(const char *path, const char *value) {
    int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) return -errno;
    ssize_t n = write(fd, value, strlen(value));
    int error = n < 0 ? errno : 0;
    close(fd);
    return -error;
}

static void sync_folder(const char *folder) {
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    fsync(fd);
    close(fd);
}

static int write_note(const char *folder, const char *file, const struct note *n) {
    char text[PATH_MAX + 300];
    int len = snprintf(text, sizeof text, HEAD "pid %ld\nstarted %llu\nold %s\npath %s\n", n->pid, n->started, n->old,
                       n->path);
    int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) return -errno;
    int error = 0;
    if (write(fd, text, (size_t)len) != len || fsync(fd) < 0) error = errno ? errno : EIO;
    close(fd);
    if (error) unlink(file);
    else sync_folder(folder);
    return -error;
}

/* Only what this user wrote is believed. */
static bool read_note(const char *file, struct note *n) {
    char text[PATH_MAX + 300];
    struct stat st;
    int fd = open(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), end = 0;
    if (fd < 0) return false;
    ssize_t len = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid()
                      ? read(fd, text, sizeof text - 1) : -1;
    close(fd);
    if (len <= 0) return false;
    text[len] = 0;
    if (sscanf(text, HEAD "pid %ld started %llu old %63s path %n", &n->pid, &n->started, n->old, &end) != 3 || !end)
        return false;
    size_t path = strcspn(text + end, "\n");
    if (path >= sizeof n->path || text[end + (int)path] != '\n') return false;
    snprintf(n->path, sizeof n->path, "%.*s", (int)path, text + end);
    return true;
}

/* A note that somebody made up must not make us write elsewhere. */
static bool below(const char *sys, const char *path) {
    char *root = realpath(sys, NULL), *real = realpath(path, NULL);
    size_t n = root ? strlen(root) : 0;
    bool yes = root && real && !strncmp(real, root, n) && real[n] == '/' && !strcmp(real, path);
    free(root);
    free(real);
    return yes;
}

/* ---- dead processes ---- */

static void say_restored(const struct note *n, int error, void (*say)(void *, const char *), void *arg) {
    char line[PATH_MAX + 400], path[400];
    text_safe(path, sizeof path, n->path, strlen(n->path));
    if (error)
        snprintf(line, sizeof line, "process %ld ended without putting back %s, and it cannot be set to %s now: %s",
                 n->pid, path, n->old, strerrordesc_np(-error));
    else
        snprintf(line, sizeof line, "process %ld ended without putting back %s: it is %s again, as before", n->pid,
                 path, n->old);
    if (say) say(arg, line);
}

static void recover_one(const struct notes_where *where, const char *file, void (*say)(void *, const char *),
                        void *arg) {
    struct note n;
    char now[64];
    if (!read_note(file, &n) || lives(where->proc, &n)) return;
    if (!below(where->sys, n.path)) { /* the device is gone, and its settings with it */
        unlink(file);
        return;
    }
    if (sysfs_text(now, sizeof now, "%s", n.path) && !strcmp(now, n.old)) {
        unlink(file);
        return;
    }
    int error = write_value(n.path, n.old);
    say_restored(&n, error, say, arg);
    if (!error) unlink(file);
}

void notes_recover(const struct notes_where *where, void (*say)(void *arg, const char *line), void *arg) {
    DIR *dir = opendir(where->folder);
    char file[PATH_MAX];
    for (struct dirent *e; dir && (e = readdir(dir));) {
        size_t n = strlen(e->d_name), suffix = strlen(SUFFIX);
        if (n <= suffix || strcmp(e->d_name + n - suffix, SUFFIX)) continue;
        if ((size_t)snprintf(file, sizeof file, "%s/%s", where->folder, e->d_name) >= sizeof file) continue;
        recover_one(where, file, say, arg);
    }
    if (dir) closedir(dir);
}

/* ---- changing ---- */

static uint64_t hash(const char *text) {
    uint64_t h = 0;
    for (; *text; text++) h = rng_mix(h ^ (unsigned char)*text);
    return h;
}

/* The note is there, and nobody else's. */
static int take_note(const struct notes_where *where, struct setting *s, struct err *err) {
    struct note mine = {.pid = getpid()}, other;
    char safe[400];
    text_safe(safe, sizeof safe, s->path, strlen(s->path));
    if (mkdir(where->folder, 0700) < 0 && errno != EEXIST)
        return err_set(err, STATUS_TARGET, "%s: a note with the old value of %s must be kept there: %s", where->folder,
                       safe, strerrordesc_np(errno));
    if (!started_at(where->proc, mine.pid, &mine.started)) return err_set(err, STATUS_TARGET, "/proc is not there");
    snprintf(mine.path, sizeof mine.path, "%s", s->path);
    snprintf(mine.old, sizeof mine.old, "%s", s->old);
    int rc = write_note(where->folder, s->note, &mine);
    if (rc == -EEXIST && read_note(s->note, &other) && lives(where->proc, &other))
        return err_set(err, STATUS_TARGET, "%s: %s has been changed already, by %s", safe, strrchr(safe, '/') + 1,
                       other.pid == mine.pid ? "another target of this plan: both lie on one device"
                                             : "another samedisk that is running");
    if (rc < 0)
        return err_set(err, STATUS_TARGET, "%s: a note with the old value of %s cannot be kept: %s", s->note, safe,
                       strerrordesc_np(-rc));
    return 0;
}

int notes_change(const struct notes_where *where, const char *path, const char *value, struct setting *s,
                 struct err *err) {
    char safe[400], *real = realpath(path, NULL);
    memset(s, 0, sizeof *s);
    text_safe(safe, sizeof safe, path, strlen(path));
    if (!real) return err_set(err, STATUS_TARGET, "%s: %s", safe, strerrordesc_np(errno));
    snprintf(s->path, sizeof s->path, "%s", real);
    free(real);
    snprintf(s->note, sizeof s->note, "%s/%016llx" SUFFIX, where->folder, (unsigned long long)hash(s->path));
    recover_one(where, s->note, NULL, NULL); /* else its value would be taken for the old one */
    if (!sysfs_text(s->old, sizeof s->old, "%s", s->path) || !s->old[0] || strpbrk(s->old, " \t\n"))
        return err_set(err, STATUS_TARGET, "%s cannot be read", safe);
    if (!strcmp(s->old, value)) return 0;
    if (access(s->path, W_OK) < 0)
        return err_set(err, STATUS_TARGET, "%s cannot be set to %s: %s%s", safe, value, strerrordesc_np(errno),
                       errno == EACCES ? "; root may" : "");
    if (take_note(where, s, err) < 0) return -1;
    s->changed = true;
    int rc = write_value(s->path, value);
    if (rc == 0) return 0;
    notes_put_back(s);
    return err_set(err, STATUS_TARGET, "%s cannot be set to %s: %s", safe, value, strerrordesc_np(-rc));
}

void notes_put_back(struct setting *s) {
    if (!s->changed) return;
    /* A device that has gone takes its settings along; else the note stays for the next one who starts. */
    if (write_value(s->path, s->old) == 0 || access(s->path, F_OK) < 0) unlink(s->note);
    s->changed = false;
}
