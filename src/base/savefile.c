/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/savefile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/text.h"

#define TEMP_TRIES 100

/* Where the data is to go: what `path` means once symbolic links are followed, and its folder. */
struct place {
    char *goal;   /* owned */
    char *folder; /* owned; never "": at least "." or "/" */
    mode_t mode;  /* of the file that will be replaced; 0: there is none */
    bool direct;  /* no regular file, or one that is open already under another name (/dev/stdout): written in place */
};

static int savefile_fail(const char *path, const char *what, int errnum, struct err *err) {
    char safe[400];

    return err_set(err, STATUS_USAGE, "%s: %s: %s", text_safe(safe, sizeof(safe), path, strlen(path)), what,
                   strerror(errnum));
}

static void place_free(struct place *place) {
    free(place->goal);
    free(place->folder);
}

/* A fresh name beside the goal, created. The name is short and does not hold the goal's: that may be NAME_MAX long. */
static int place_temp(const struct place *place, char **name) {
    for (unsigned i = 0; i < TEMP_TRIES; i++) {
        if (asprintf(name, "%s/.samedisk-%ld-%u.tmp", place->folder, (long)getpid(), i) < 0) {
            *name = NULL;
            errno = ENOMEM;
            return -1;
        }
        int fd = open(*name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (fd >= 0) return fd;
        int saved = errno;
        free(*name);
        *name = NULL;
        errno = saved;
        if (errno != EEXIST) return -1;
    }
    return -1;
}

static bool is_open_file(const char *path) {
    static const char *const prefixes[] = {"/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/"};

    for (unsigned i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
        if (strncmp(path, prefixes[i], strlen(prefixes[i])) == 0) return true;
    return false;
}

/* ---- what may be written ---- */

static bool may_be_written(const struct stat *st, const char *path) {
    if (S_ISFIFO(st->st_mode)) return true;
    if (!S_ISCHR(st->st_mode)) return false;
    return st->st_rdev == makedev(1, 3) /* null */ || st->st_rdev == makedev(1, 7) /* full */ ||
           st->st_rdev == makedev(5, 0) /* tty */ || is_open_file(path);
}

/* `st` is of what would be written. */
static int refuse_special(const char *path, const struct stat *st, struct err *err) {
    char safe[400];

    text_safe(safe, sizeof(safe), path, strlen(path));
    if (S_ISBLK(st->st_mode))
        return err_set(err, STATUS_USAGE, "%s: this is a block device, and no output is ever written to one", safe);
    if (!S_ISREG(st->st_mode) && !may_be_written(st, path))
        return err_set(err, STATUS_USAGE, "%s: this is no file: outputs go to files, pipes, /dev/stdout and /dev/null",
                       safe);
    return 0;
}

static int refuse_foreign(const char *path, const struct savefile_rules *rules, struct err *err) {
    char head[SAVEFILE_HEAD], safe[400];
    int fd = open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : pread(fd, head, sizeof(head), 0);

    if (fd >= 0) close(fd);
    if (n == 0 || (n > 0 && rules->ours && rules->ours(head, (size_t)n))) return 0;
    return err_set(err, STATUS_USAGE, "%s: a file that is no %s is there, and would be replaced; another name, or --force-output",
                   text_safe(safe, sizeof(safe), path, strlen(path)), rules->kind);
}

static int place_find(const char *path, const struct savefile_rules *rules, struct place *place, struct err *err) {
    struct stat st;

    memset(place, 0, sizeof(*place));
    if (*path == '\0') return err_set(err, STATUS_USAGE, "the name of the file to write is empty");
    if (stat(path, &st) == 0) {
        if (S_ISDIR(st.st_mode)) return savefile_fail(path, "cannot write", EISDIR, err);
        if (refuse_special(path, &st, err) != 0) return -1;
        if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) != 0) return savefile_fail(path, "cannot write", errno, err);
        place->direct = !S_ISREG(st.st_mode) || is_open_file(path);
        if (!place->direct && !rules->force && refuse_foreign(path, rules, err) != 0) return -1;
        place->mode = st.st_mode & 07777;
        place->goal = place->direct ? strdup(path) : realpath(path, NULL);
    } else if (errno == ENOENT) {
        if (path[strlen(path) - 1] == '/') return savefile_fail(path, "cannot write", EISDIR, err);
        place->goal = strdup(path);
    } else {
        return savefile_fail(path, "cannot write", errno, err);
    }
    if (!place->goal) return savefile_fail(path, "cannot write", errno, err);

    const char *slash = strrchr(place->goal, '/');
    if (!slash)
        place->folder = strdup(".");
    else
        place->folder = strndup(place->goal, slash == place->goal ? 1 : (size_t)(slash - place->goal));
    if (!place->folder) {
        place_free(place);
        return savefile_fail(path, "cannot write", ENOMEM, err);
    }
    return 0;
}

static int write_all(int fd, const void *data, size_t len) {
    const char *p = data;

    while (len > 0) {
        ssize_t n = write(fd, p, len);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return -1;
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

/* O_APPEND for a regular file behind /dev/stdout: what was printed to it before must stay. */
static int write_direct(const char *path, const void *data, size_t len, struct err *err) {
    int fd = open(path, O_WRONLY | O_APPEND | O_NOCTTY | O_CLOEXEC);
    struct stat st;

    if (fd < 0) return savefile_fail(path, "cannot open for writing", errno, err);
    if (fstat(fd, &st) != 0 || refuse_special(path, &st, err) != 0) { /* the name may have come to mean something else */
        close(fd);
        return -1;
    }
    int failed = write_all(fd, data, len) != 0 ? errno : 0;
    if (close(fd) != 0 && !failed) failed = errno;
    return failed ? savefile_fail(path, "cannot write", failed, err) : 0;
}

/* Makes the new name itself durable. File systems that cannot sync a folder say EINVAL: there is nothing to be done. */
static int sync_folder(const char *folder) {
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0) return errno == EACCES ? 0 : -1; /* a folder may be writable but not readable */
    int failed = fsync(fd) != 0 && errno != EINVAL && errno != EROFS ? errno : 0;
    close(fd);
    errno = failed;
    return failed ? -1 : 0;
}

static int write_replace(const struct place *place, const char *path, const void *data, size_t len, struct err *err) {
    char *temp = NULL;
    const char *what = "cannot create a file in its folder";
    int failed, fd = place_temp(place, &temp);

    if (fd < 0) return savefile_fail(path, what, errno, err);
    what = "cannot write";
    if ((place->mode && fchmod(fd, place->mode) != 0) || write_all(fd, data, len) != 0 || fsync(fd) != 0) goto fail;
    if (close(fd) != 0) {
        fd = -1;
        goto fail;
    }
    fd = -1;
    what = "cannot put the new file in its place";
    if (rename(temp, place->goal) != 0) goto fail;
    free(temp);
    if (sync_folder(place->folder) != 0) return savefile_fail(path, "cannot sync its folder", errno, err);
    return 0;

fail:
    failed = errno;
    if (fd >= 0) close(fd);
    unlink(temp);
    free(temp);
    return savefile_fail(path, what, failed, err);
}

int savefile_write(const char *path, const struct savefile_rules *rules, const void *data, size_t len,
                   struct err *err) {
    struct place place;

    if (place_find(path, rules, &place, err) != 0) return -1;
    int rc = place.direct ? write_direct(path, data, len, err) : write_replace(&place, path, data, len, err);
    place_free(&place);
    return rc;
}

/* The trial is a real file: access(2) knows nothing of full quotas, and says yes to root. */
int savefile_check(const char *path, const struct savefile_rules *rules, struct err *err) {
    struct place place;
    char *temp = NULL;
    int rc = 0;

    if (place_find(path, rules, &place, err) != 0) return -1;
    if (!place.direct) {
        int fd = place_temp(&place, &temp);
        if (fd < 0) {
            rc = savefile_fail(path, "cannot create a file in its folder", errno, err);
        } else {
            close(fd);
            unlink(temp);
        }
    }
    free(temp);
    place_free(&place);
    return rc;
}

static int refuse_kind(const char *path, const struct stat *st, struct err *err) {
    const char *kind = S_ISDIR(st->st_mode)    ? "a folder"
                       : S_ISBLK(st->st_mode)  ? "a block device"
                       : S_ISCHR(st->st_mode)  ? "a character device"
                       : S_ISSOCK(st->st_mode) ? "a socket"
                                               : NULL;
    char safe[400];

    if (!kind) return 0;
    return err_set(err, STATUS_USAGE, "%s: this is %s, not a file that can be read",
                   text_safe(safe, sizeof(safe), path, strlen(path)), kind);
}

/* Reads to the end, into a buffer that grows (pipes tell no size); one byte more than `max` shows what is too long. */
static int read_all(const char *path, int fd, size_t max, char **data, size_t *len, struct err *err) {
    size_t cap = 0, n = 0;
    char *buf = NULL, safe[400];

    for (;;) {
        if (n + 1 >= cap) {
            size_t more = cap ? cap * 2 : 65536;
            char *grown = realloc(buf, more);
            if (!grown) {
                free(buf);
                return savefile_fail(path, "cannot read", ENOMEM, err);
            }
            buf = grown;
            cap = more;
        }
        ssize_t got = read(fd, buf + n, cap - n - 1);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            int failed = errno;
            free(buf);
            return savefile_fail(path, "cannot read", failed, err);
        }
        if (got == 0) break;
        n += (size_t)got;
        if (n > max) {
            free(buf);
            return err_set(err, STATUS_USAGE, "%s: longer than %zu bytes, which is the limit for this kind of file",
                           text_safe(safe, sizeof(safe), path, strlen(path)), max);
        }
    }
    buf[n] = '\0';
    *data = buf;
    *len = n;
    return 0;
}

/* The kind is asked before open, because opening a device may act upon it, and again after: names can change hands. */
int savefile_read(const char *path, size_t max, char **data, size_t *len, struct err *err) {
    struct stat st;
    int fd = -1, rc = -1;

    if (stat(path, &st) != 0) return savefile_fail(path, "cannot read", errno, err);
    if (refuse_kind(path, &st, err) != 0) return -1;
    fd = open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0) {
        savefile_fail(path, "cannot read", errno, err);
        goto out;
    }
    if (refuse_kind(path, &st, err) != 0) goto out;
    rc = read_all(path, fd, max, data, len, err);
out:
    if (fd >= 0) close(fd);
    return rc;
}
