/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/local/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"

#define WAIT_MS  5000
#define PAUSE_MS 20

struct lock {
    dev_t dev;
    ino_t ino;
    int fd; /* of its own: a lock belongs to what one open() made */
    bool exclusive;
    unsigned users;
    struct lock *next;
};

static struct lock *locks; /* of this process */
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;

/* ---- who holds it ---- */

/* The first that /proc/locks lists on this file; 0: unknown (another container, a file system with numbers of its own). */
static pid_t holder_of(const struct stat *st) {
    FILE *f = fopen("/proc/locks", "re");
    char line[256], kind[16];
    pid_t found = 0;

    while (f && !found && fgets(line, sizeof(line), f)) {
        int pid;
        unsigned major_no, minor_no;
        unsigned long long ino;
        /* "1: FLOCK  ADVISORY  WRITE 1234 08:01:131 0 EOF"; a line with "->" is one that waits */
        if (sscanf(line, "%*[0-9]: %15s %*s %*s %d %x:%x:%llu", kind, &pid, &major_no, &minor_no, &ino) != 5) continue;
        if (pid > 0 && pid != getpid() && major_no == major(st->st_dev) && minor_no == minor(st->st_dev) &&
            ino == (unsigned long long)st->st_ino)
            found = (pid_t)pid;
    }
    if (f) fclose(f);
    return found;
}

static void name_of(pid_t pid, char *name, size_t len) {
    char path[64], text[64] = "";

    snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0) close(fd);
    text[n > 0 ? n : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    text_safe(name, len, text[0] ? text : "another program", sizeof(text));
}

/* ---- locking ---- */

static bool try_lock(int fd, bool write) {
    int rc;

    do rc = flock(fd, (write ? LOCK_EX : LOCK_SH) | LOCK_NB);
    while (rc != 0 && errno == EINTR);
    return rc == 0;
}

static bool try_long(int fd, bool write, const struct stat *st, char *who, size_t len, pid_t *pid) {
    const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000L};

    for (unsigned waited = 0;; waited += PAUSE_MS) {
        if (try_lock(fd, write)) return true;
        if (errno != EWOULDBLOCK) return false;
        *pid = holder_of(st);
        if (*pid) name_of(*pid, who, len);
        if ((*pid && strcmp(who, "samedisk") == 0) || waited >= WAIT_MS) break;
        nanosleep(&pause, NULL);
    }
    errno = EWOULDBLOCK;
    return false;
}

static void say_holder(pid_t pid, const char *who, struct facts *facts) {
    if (pid)
        snprintf(facts->in_use, sizeof(facts->in_use), "%s, process %d, holds a lock on it", who, (int)pid);
    else
        snprintf(facts->in_use, sizeof(facts->in_use), "another program holds a lock on it");
}

static struct lock *find(const struct stat *st) {
    for (struct lock *l = locks; l; l = l->next)
        if (l->dev == st->st_dev && l->ino == st->st_ino) return l;
    return NULL;
}

/* Opened again, as the file that `fd` is, whatever its name means by now. Network file systems lock exclusively only what
 * is open for writing; a device that was open for writing would be looked at by udev when it is closed. */
static struct lock *make(int fd, bool write, const struct stat *st) {
    char path[64];
    struct lock *l = calloc(1, sizeof(*l));

    if (!l) return NULL;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    l->fd = open(path, (write && S_ISREG(st->st_mode) ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (l->fd < 0) {
        free(l);
        return NULL;
    }
    l->dev = st->st_dev;
    l->ino = st->st_ino;
    return l;
}

static void drop(struct lock *l) {
    for (struct lock **at = &locks; *at; at = &(*at)->next)
        if (*at == l) {
            *at = l->next;
            break;
        }
    close(l->fd);
    free(l);
}

static void note_none(struct facts *facts, int error) {
    kv_text(&facts->negotiated, "lock", "none: %s", strerrordesc_np(error));
}

/* Puts `fresh`, which is locked, into the table: as it is, or in place of the shared one that this process had. */
static struct lock *keep(struct lock *fresh, struct lock *had, bool write) {
    if (had) {
        close(had->fd);
        had->fd = fresh->fd;
        had->exclusive = write;
        free(fresh);
        return had;
    }
    fresh->exclusive = write;
    fresh->next = locks;
    locks = fresh;
    return fresh;
}

static struct lock *lock_anew(int fd, bool write, const struct stat *st, struct lock *had, struct facts *facts) {
    struct lock *fresh = make(fd, write, st);
    char who[80] = "";
    pid_t pid = 0;

    if (!fresh) {
        note_none(facts, errno);
        return NULL;
    }
    /* A shared lock of this process would stand in the way of its own exclusive one. */
    if (had) flock(had->fd, LOCK_UN);
    if (try_long(fresh->fd, write, st, who, sizeof(who), &pid)) return keep(fresh, had, write);
    int error = errno;
    if (had) (void)try_lock(had->fd, false);
    close(fresh->fd);
    free(fresh);
    if (error == EWOULDBLOCK)
        say_holder(pid, who, facts);
    else
        note_none(facts, error);
    return NULL;
}

void lock_take(int fd, bool write, struct lock **out, struct facts *facts) {
    struct stat st;

    *out = NULL;
    if (fstat(fd, &st) != 0) return;
    pthread_mutex_lock(&guard);
    struct lock *l = find(&st);
    if (!l || (write && !l->exclusive)) l = lock_anew(fd, write, &st, l, facts);
    if (l) l->users++;
    *out = l;
    pthread_mutex_unlock(&guard);
}

void lock_give(struct lock *lock) {
    if (!lock) return;
    pthread_mutex_lock(&guard);
    if (--lock->users == 0) drop(lock);
    pthread_mutex_unlock(&guard);
}
