/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool no_output;

static int fill_one(int fd, struct err *err) {
    int flags = fcntl(fd, F_GETFL);
    bool closed = flags < 0, unwritable = fd != STDIN_FILENO && !closed && (flags & O_ACCMODE) == O_RDONLY;
    if (!closed && !unwritable) return 0;
    if (fd == STDOUT_FILENO) no_output = true;
    int null = open("/dev/null", O_RDWR); /* the lowest free one: `fd` itself if it is closed, as those below are not */
    if (null == fd) return 0;
    int error = errno, rc = null < 0 ? -1 : dup2(null, fd);
    if (null > STDERR_FILENO) close(null);
    if (rc == fd) return 0;
    return err_set(err, STATUS_USAGE, "descriptor %d is closed, and /dev/null cannot be opened in its place: %s", fd,
                   strerrordesc_np(error));
}

static bool is_disk(int fd) {
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISBLK(st.st_mode);
}

int descriptors_fill(struct err *err) {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fill_one(fd, err) < 0) return -1;
    if (is_disk(STDERR_FILENO)) { /* there is nowhere to say it */
        *err = (struct err){.status = STATUS_USAGE};
        return -1;
    }
    if (is_disk(STDOUT_FILENO))
        return err_set(err, STATUS_USAGE, "standard output is a block device: what is printed would be written over "
                       "its data");
    return 0;
}

bool descriptors_no_output(void) {
    return no_output;
}
