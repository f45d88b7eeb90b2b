/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/savefile.h"

static const struct savefile_rules any = {.kind = "result", .force = true};

struct place {
    char dir[64], file[128], other[128];
};

static int setup(void **state) {
    struct place *p = calloc(1, sizeof(*p));

    if (!p) return -1;
    strcpy(p->dir, "/tmp/samedisk-test-XXXXXX");
    if (!mkdtemp(p->dir)) return -1;
    snprintf(p->file, sizeof(p->file), "%s/result.json", p->dir);
    snprintf(p->other, sizeof(p->other), "%s/other", p->dir);
    *state = p;
    return 0;
}

/* Fails if anything but the two known names is left: no temporary file may stay. */
static int teardown(void **state) {
    struct place *p = *state;

    chmod(p->dir, 0700);
    unlink(p->file);
    unlink(p->other);
    int rc = rmdir(p->dir);
    free(p);
    return rc;
}

static void put(const char *path, const char *text, mode_t mode) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

static void holds(const char *path, const char *want) {
    char *data;
    size_t len;
    struct err err;

    if (savefile_read(path, 1 << 20, &data, &len, &err) != 0) fail_msg("%s", err.msg);
    assert_int_equal(len, strlen(want));
    assert_string_equal(data, want);
    free(data);
}

static unsigned entries(const char *dir) {
    DIR *d = opendir(dir);
    unsigned n = 0;

    assert_non_null(d);
    while (readdir(d)) n++;
    closedir(d);
    return n - 2;
}

static void writes_and_replaces(void **state) {
    struct place *p = *state;
    struct err err;
    struct stat st;

    mode_t old = umask(027);
    assert_int_equal(savefile_write(p->file, &any, "one", 3, &err), 0);
    umask(old);
    holds(p->file, "one");
    assert_int_equal(stat(p->file, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0640);
    assert_int_equal(savefile_write(p->file, &any, "", 0, &err), 0);
    holds(p->file, "");
    assert_int_equal(entries(p->dir), 1);
}

static void a_file_that_is_replaced_keeps_its_mode(void **state) {
    struct place *p = *state;
    struct err err;
    struct stat before, after;

    put(p->file, "old", 0604);
    assert_int_equal(stat(p->file, &before), 0);
    int fd = open(p->file, O_RDONLY);
    assert_int_equal(savefile_write(p->file, &any, "newer", 5, &err), 0);
    assert_int_equal(stat(p->file, &after), 0);
    assert_int_equal(after.st_mode & 07777, 0604);
    assert_int_not_equal(before.st_ino, after.st_ino); /* who has the old one open still reads it whole */
    char buf[8];
    assert_int_equal(read(fd, buf, sizeof(buf)), 3);
    close(fd);
    holds(p->file, "newer");
}

static void a_link_stays_a_link(void **state) {
    struct place *p = *state;
    struct err err;
    struct stat st;

    put(p->other, "old", 0600);
    assert_int_equal(symlink("other", p->file), 0);
    assert_int_equal(savefile_write(p->file, &any, "new", 3, &err), 0);
    assert_int_equal(lstat(p->file, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    holds(p->other, "new");
}

static void a_name_without_a_folder(void **state) {
    struct place *p = *state;
    struct err err;
    int here = open(".", O_RDONLY | O_DIRECTORY);

    assert_int_equal(chdir(p->dir), 0);
    int checked = savefile_check("result.json", &any, &err), wrote = savefile_write("result.json", &any, "x", 1, &err);
    assert_int_equal(fchdir(here), 0);
    close(here);
    assert_int_equal(checked, 0);
    assert_int_equal(wrote, 0);
    holds(p->file, "x");
}

static void a_pipe_is_written_directly(void **state) {
    struct err err;
    char path[64], buf[8] = "";
    int fds[2];

    (void)state;
    assert_int_equal(pipe(fds), 0);
    snprintf(path, sizeof(path), "/dev/fd/%d", fds[1]);
    assert_int_equal(savefile_check(path, &any, &err), 0);
    assert_int_equal(savefile_write(path, &any, "data", 4, &err), 0);
    assert_int_equal(read(fds[0], buf, sizeof(buf)), 4);
    assert_string_equal(buf, "data");
    close(fds[0]);
    close(fds[1]);
}

/* As with /dev/stdout after > FILE: what was written there before stays, and the file keeps its identity. */
static void an_open_file_is_appended_to(void **state) {
    struct place *p = *state;
    struct err err;
    char path[64];
    int fd = open(p->file, O_RDWR | O_CREAT, 0600);

    assert_int_equal(write(fd, "head ", 5), 5);
    snprintf(path, sizeof(path), "/dev/fd/%d", fd);
    assert_int_equal(savefile_write(path, &any, "data", 4, &err), 0);
    close(fd);
    holds(p->file, "head data");
}

static void fails(int rc, const struct err *err, const char *path, const char *words) {
    assert_int_equal(rc, -1);
    assert_int_equal(err->status, STATUS_USAGE);
    if (!strstr(err->msg, words)) fail_msg("%s", err->msg);
    assert_memory_equal(err->msg, path, strlen(path));
}

static void what_cannot_be_written(void **state) {
    struct place *p = *state;
    struct err err;
    char path[200];

    fails(savefile_write(p->dir, &any, "x", 1, &err), &err, p->dir, "Is a directory");
    fails(savefile_check(p->dir, &any, &err), &err, p->dir, "Is a directory");
    fails(savefile_write("", &any, "x", 1, &err), &err, "", "empty");
    snprintf(path, sizeof(path), "%s/none/file", p->dir);
    fails(savefile_write(path, &any, "x", 1, &err), &err, path, "No such file or directory");
    fails(savefile_check(path, &any, &err), &err, path, "No such file or directory");
    snprintf(path, sizeof(path), "%s/none/", p->dir);
    fails(savefile_check(path, &any, &err), &err, path, "Is a directory");
    put(p->other, "", 0600);
    snprintf(path, sizeof(path), "%s/file", p->other);
    fails(savefile_write(path, &any, "x", 1, &err), &err, path, "Not a directory");
    fails(savefile_write("/dev/full", &any, "x", 1, &err), &err, "/dev/full", "No space left on device");
}

/* As on a full disk: the file that was there stays as it was, and nothing half-written stays beside it. */
static void a_failed_write_changes_nothing(void **state) {
    struct place *p = *state;
    static const char data[100000];
    struct rlimit before, small;
    struct err err;

    put(p->file, "keep", 0600);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 65536;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    int rc = savefile_write(p->file, &any, data, sizeof(data), &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_DFL);
    fails(rc, &err, p->file, "File too large");
    holds(p->file, "keep");
    assert_int_equal(entries(p->dir), 1);
}

#define NOBODY 65534

static void permissions(void **state) {
    struct place *p = *state;
    struct err err;

    bool root = geteuid() == 0; /* who may write everywhere: be somebody else meanwhile */
    if (root) {
        assert_int_equal(chown(p->dir, NOBODY, NOBODY), 0);
        assert_int_equal(seteuid(NOBODY), 0);
    }
    put(p->file, "keep", 0400);
    fails(savefile_write(p->file, &any, "x", 1, &err), &err, p->file, "Permission denied");
    fails(savefile_check(p->file, &any, &err), &err, p->file, "Permission denied");
    holds(p->file, "keep");
    assert_int_equal(chmod(p->dir, 0500), 0);
    fails(savefile_check(p->other, &any, &err), &err, p->other, "Permission denied");
    fails(savefile_write(p->other, &any, "x", 1, &err), &err, p->other, "Permission denied");
    if (root) assert_int_equal(seteuid(0), 0);
}

static void checking_leaves_nothing(void **state) {
    struct place *p = *state;
    struct err err;

    assert_int_equal(savefile_check(p->file, &any, &err), 0);
    assert_int_equal(entries(p->dir), 0);
    put(p->file, "keep", 0600);
    assert_int_equal(savefile_check(p->file, &any, &err), 0);
    holds(p->file, "keep");
    assert_int_equal(entries(p->dir), 1);
    assert_int_equal(savefile_check("/dev/null", &any, &err), 0);
}

static void temporary_names_do_not_collide(void **state) {
    struct place *p = *state;
    struct err err;

    snprintf(p->other, sizeof(p->other), "%s/.samedisk-%ld-0.tmp", p->dir, (long)getpid());
    put(p->other, "someone's", 0600);
    assert_int_equal(savefile_write(p->file, &any, "x", 1, &err), 0);
    holds(p->file, "x");
    holds(p->other, "someone's");
}

static void long_names(void **state) {
    struct place *p = *state;
    struct err err;
    char name[256], path[400];

    memset(name, 'n', 255);
    name[255] = '\0';
    snprintf(path, sizeof(path), "%s/%s", p->dir, name);
    assert_int_equal(savefile_write(path, &any, "x", 1, &err), 0);
    holds(path, "x");
    unlink(path);
}

static bool begins_with_ours(const char *head, size_t n) {
    return n >= 4 && memcmp(head, "ours", 4) == 0;
}

static void only_what_is_ours_is_replaced(void **state) {
    static const struct savefile_rules ours = {.ours = begins_with_ours, .kind = "result"};
    struct place *p = *state;
    struct err err;

    put(p->file, "a thesis", 0600);
    fails(savefile_check(p->file, &ours, &err), &err, p->file, "no result");
    fails(savefile_write(p->file, &ours, "x", 1, &err), &err, p->file, "--force-output");
    holds(p->file, "a thesis");
    assert_int_equal(symlink("result.json", p->other), 0);
    fails(savefile_write(p->other, &ours, "x", 1, &err), &err, p->other, "no result");
    holds(p->file, "a thesis");
    put(p->file, "ours, the first", 0600);
    assert_int_equal(savefile_check(p->file, &ours, &err), 0);
    assert_int_equal(savefile_write(p->file, &ours, "ours, the second", 16, &err), 0);
    holds(p->file, "ours, the second");
    put(p->file, "", 0600);
    assert_int_equal(savefile_write(p->file, &ours, "ours", 4, &err), 0);
    assert_int_equal(entries(p->dir), 2);
}

/* Not even with force. Device 1:1 is a RAM disk, which need not exist: the kind of the node decides. */
static void devices_are_never_written(void **state) {
    struct place *p = *state;
    struct err err;

    if (mknod(p->file, S_IFBLK | 0600, makedev(1, 1)) != 0) skip(); /* not root, or no devices in this container */
    fails(savefile_check(p->file, &any, &err), &err, p->file, "block device");
    fails(savefile_write(p->file, &any, "x", 1, &err), &err, p->file, "block device");
    assert_int_equal(mknod(p->other, S_IFCHR | 0600, makedev(1, 5)), 0); /* zero: as a tape, it is none of the few */
    fails(savefile_check(p->other, &any, &err), &err, p->other, "this is no file");
    fails(savefile_write(p->other, &any, "x", 1, &err), &err, p->other, "this is no file");
}

/* Nobody may ever read from it, and opening it would wait until somebody does. */
static void pipes_and_sockets_by_name_are_refused(void **state) {
    static const struct savefile_rules forced = {.kind = "result", .force = true};
    struct place *p = *state;
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    struct err err;
    int s = socket(AF_UNIX, SOCK_STREAM, 0);

    assert_int_equal(mkfifo(p->file, 0600), 0);
    fails(savefile_check(p->file, &forced, &err), &err, p->file, "named pipe");
    fails(savefile_write(p->file, &forced, "x", 1, &err), &err, p->file, "named pipe");
    assert_true(strlen(p->other) < sizeof(a.sun_path));
    memcpy(a.sun_path, p->other, strlen(p->other));
    assert_int_equal(bind(s, (struct sockaddr *)&a, sizeof(a)), 0);
    fails(savefile_check(p->other, &forced, &err), &err, p->other, "socket");
    fails(savefile_write(p->other, &forced, "x", 1, &err), &err, p->other, "socket");
    close(s);
}

static void a_link_to_nothing_stays(void **state) {
    struct place *p = *state;
    struct err err;
    struct stat st;

    assert_int_equal(symlink("other", p->file), 0);
    fails(savefile_check(p->file, &any, &err), &err, p->file, "symbolic link");
    fails(savefile_write(p->file, &any, "x", 1, &err), &err, p->file, "symbolic link");
    assert_int_equal(lstat(p->file, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(entries(p->dir), 1);
}

/* Only what stands for a descriptor is written as it is, and only one that was opened for that. */
static void names_of_descriptors(void **state) {
    struct place *p = *state;
    struct err err;
    char path[300], buf[8] = "";
    int fds[2], fd = open("/dev/null", O_RDONLY);

    put(p->file, "keep", 0600);
    snprintf(path, sizeof(path), "/dev/fd/../..%s", p->file); /* /proc/self/fd/../..: /proc */
    assert_int_equal(savefile_check(path, &any, &err), -1);
    snprintf(path, sizeof(path), "/dev/fd/%d", fd);
    fails(savefile_check(path, &any, &err), &err, path, "Bad file descriptor");
    close(fd);
    fails(savefile_check(path, &any, &err), &err, path, "Bad file descriptor");
    assert_true(savefile_is_stream("/dev/stdout"));
    assert_true(savefile_is_stream("/dev/fd/1"));
    assert_true(savefile_is_stream("/dev/null"));
    assert_false(savefile_is_stream(p->file));
    assert_false(savefile_is_stream("/dev/fd/../1"));
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0); /* which has no name that could be opened */
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fds[1]);
    assert_int_equal(savefile_check(path, &any, &err), 0);
    assert_int_equal(savefile_write(path, &any, "data", 4, &err), 0);
    assert_int_equal(read(fds[0], buf, sizeof(buf)), 4);
    close(fds[0]);
    close(fds[1]);
    holds(p->file, "keep");
}

static void reading_is_whole_and_bounded(void **state) {
    struct place *p = *state;
    struct err err;
    enum { N = 200000 };
    char *text = malloc(N), *data;
    size_t len;

    assert_non_null(text);
    for (size_t i = 0; i < N; i++) text[i] = (char)(i * 7); /* NUL bytes too */
    assert_int_equal(savefile_write(p->file, &any, text, N, &err), 0);
    assert_int_equal(savefile_read(p->file, N, &data, &len, &err), 0);
    assert_int_equal(len, N);
    assert_memory_equal(data, text, N);
    assert_int_equal(data[N], '\0');
    free(data);
    fails(savefile_read(p->file, N - 1, &data, &len, &err), &err, p->file, "longer than 199999 bytes");
    fails(savefile_read(p->file, 0, &data, &len, &err), &err, p->file, "longer than 0 bytes");
    free(text);
}

static void reading_a_pipe(void **state) {
    int fds[2];
    char path[64];

    (void)state;
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(write(fds[1], "piped", 5), 5);
    close(fds[1]);
    snprintf(path, sizeof(path), "/dev/fd/%d", fds[0]);
    holds(path, "piped");
    close(fds[0]);
}

static void what_cannot_be_read(void **state) {
    struct place *p = *state;
    struct err err;
    char *data;
    size_t len;

    fails(savefile_read(p->file, 10, &data, &len, &err), &err, p->file, "No such file or directory");
    fails(savefile_read(p->dir, 10, &data, &len, &err), &err, p->dir, "this is a folder");
    fails(savefile_read("/dev/zero", 10, &data, &len, &err), &err, "/dev/zero", "this is a character device");
}

static void names_in_errors_are_safe(void **state) {
    struct err err;
    char *data;
    size_t len;

    (void)state;
    assert_int_equal(savefile_read("/none/\033[2J", 10, &data, &len, &err), -1);
    assert_string_equal(err.msg, "/none/\\x1B[2J: cannot read: No such file or directory");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(writes_and_replaces),
        TEST(a_file_that_is_replaced_keeps_its_mode),
        TEST(a_link_stays_a_link),
        TEST(a_name_without_a_folder),
        TEST(a_pipe_is_written_directly),
        TEST(an_open_file_is_appended_to),
        TEST(what_cannot_be_written),
        TEST(a_failed_write_changes_nothing),
        TEST(permissions),
        TEST(checking_leaves_nothing),
        TEST(temporary_names_do_not_collide),
        TEST(only_what_is_ours_is_replaced),
        TEST(devices_are_never_written),
        TEST(pipes_and_sockets_by_name_are_refused),
        TEST(a_link_to_nothing_stays),
        TEST(names_of_descriptors),
        TEST(long_names),
        TEST(reading_is_whole_and_bounded),
        TEST(reading_a_pipe),
        TEST(what_cannot_be_read),
        TEST(names_in_errors_are_safe),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
