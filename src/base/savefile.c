/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/savefile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
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
    int fd;       /* -1: to be opened by its name; else it is open already (/dev/stdout), and written as it is */
    bool direct;  /* no regular file, or one that is open already: written in place */
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

/* The descriptor that a name stands for, of this process's own; -1: the name is one of a file. */
static int open_file(const char *path) {
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};

    if (strcmp(path, "/dev/stdout") == 0) return STDOUT_FILENO;
    if (strcmp(path, "/dev/stderr") == 0) return STDERR_FILENO;
    for (unsigned i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        const char *number = path + strlen(folders[i]);
        if (strncmp(path, folders[i], strlen(folders[i])) != 0) continue;
        size_t digits = strspn(number, "0123456789");
        if (digits > 0 && digits < 7 && number[digits] == '\0') return atoi(number);
    }
    return -1;
}

bool savefile_is_stream(const char *path) {
    struct stat st;
    return open_file(path) >= 0 || (stat(path, &st) == 0 && !S_ISREG(st.st_mode));
}

/* ---- what may be written ---- */

static bool may_be_written(const struct stat *st, bool open) {
    if (open && (S_ISFIFO(st->st_mode) || S_ISSOCK(st->st_mode))) return true;
    if (!S_ISCHR(st->st_mode)) return false;
    return open || st->st_rdev == makedev(1, 3) /* null */ || st->st_rdev == makedev(1, 7) /* full */ ||
           st->st_rdev == makedev(5, 0) /* tty */;
}

/* `st` is of what would be written. `open`: it is already, by whoever started this. */
static int refuse_special(const char *path, const struct stat *st, bool open, struct err *err) {
    char safe[400];

    text_safe(safe, sizeof(safe), path, strlen(path));
    if (S_ISBLK(st->st_mode))
        return err_set(err, STATUS_USAGE, "%s: this is a block device, and no output is ever written to one", safe);
    if (S_ISREG(st->st_mode) || may_be_written(st, open)) return 0;
    if (S_ISFIFO(st->st_mode) || S_ISSOCK(st->st_mode))
        return err_set(err, STATUS_USAGE,
                       "%s: this is a %s, and nobody may ever read from it: outputs go to files, /dev/stdout, /dev/fd/N "
                       "and /dev/null", safe, S_ISFIFO(st->st_mode) ? "named pipe" : "socket");
    return err_set(err, STATUS_USAGE, "%s: this is no file: outputs go to files, /dev/stdout, /dev/fd/N and /dev/null",
                   safe);
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

/* A new file in place of the link would not be where the link says, and what the link names may be meant for others. */
static int refuse_dangling(const char *path, struct err *err) {
    struct stat st;
    char safe[400];

    if (lstat(path, &st) != 0 || !S_ISLNK(st.st_mode)) return 0;
    return err_set(err, STATUS_USAGE, "%s: this is a symbolic link to what does not exist: name the file itself, or remove the link",
                   text_safe(safe, sizeof(safe), path, strlen(path)));
}

static int find_open(const char *path, struct place *place, struct err *err) {
    struct stat st;
    int flags = fcntl(place->fd, F_GETFL);

    if (flags < 0 || fstat(place->fd, &st) != 0) return savefile_fail(path, "cannot write", errno, err);
    if (S_ISDIR(st.st_mode)) return savefile_fail(path, "cannot write", EISDIR, err);
    if (refuse_special(path, &st, true, err) != 0) return -1;
    if ((flags & O_ACCMODE) == O_RDONLY) return savefile_fail(path, "cannot write", EBADF, err);
    place->direct = true;
    return 0;
}

static int find_named(const char *path, const struct savefile_rules *rules, struct place *place, struct err *err) {
    struct stat st;

    if (stat(path, &st) == 0) {
        if (S_ISDIR(st.st_mode)) return savefile_fail(path, "cannot write", EISDIR, err);
        if (refuse_special(path, &st, false, err) != 0) return -1;
        if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) != 0) return savefile_fail(path, "cannot write", errno, err);
        place->direct = !S_ISREG(st.st_mode);
        if (!place->direct && !rules->force && refuse_foreign(path, rules, err) != 0) return -1;
        place->mode = st.st_mode & 07777;
        place->goal = place->direct ? strdup(path) : realpath(path, NULL);
    } else if (errno == ENOENT) {
        if (path[strlen(path) - 1] == '/') return savefile_fail(path, "cannot write", EISDIR, err);
        if (refuse_dangling(path, err) != 0) return -1;
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
    return place->folder ? 0 : savefile_fail(path, "cannot write", ENOMEM, err);
}

static int place_find(const char *path, const struct savefile_rules *rules, struct place *place, struct err *err) {
    *place = (struct place){.fd = open_file(path)};
    if (*path == '\0') return err_set(err, STATUS_USAGE, "the name of the file to write is empty");
    int rc = place->fd >= 0 ? find_open(path, place, err) : find_named(path, rules, place, err);
    if (rc != 0) place_free(place);
    return rc;
}

static int write_all(int fd, const void *data, size_t len) {
    const char *p = data;

    while (len > 0) {
        ssize_t n = write(fd, p, len);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) { /* a pipe that its owner made so */
            poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
            continue;
        }
        if (n < 0) return -1;
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

/* What is open already goes on where it is: what was printed to it before stays. A name may have come to mean something
 * else, and opening must not wait for a reader. */
static int write_direct(const struct place *place, const char *path, const void *data, size_t len, struct err *err) {
    int fd = place->fd >= 0 ? fcntl(place->fd, F_DUPFD_CLOEXEC, 0)
                            : open(path, O_WRONLY | O_APPEND | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    struct stat st;

    if (fd < 0) return savefile_fail(path, "cannot open for writing", errno, err);
    if (place->fd < 0 && (fstat(fd, &st) != 0 || refuse_special(path, &st, false, err) != 0)) {
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
    int rc = place.direct ? write_direct(&place, path, data, len, err) : write_replace(&place, path, data, len, err);
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
