/* SPDX-License-Identifier: GPL-2.0-or-later */
/* file: what it opens, what it refuses, and what it says about it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "backends/backend.h"

#define MIB (1u << 20)

extern const struct backend backend_file;

static char folder[64];

struct opened {
    void *conf;
    struct handle *handle;
    struct facts facts;
    struct err err;
};

static const char *in(const char *name) {
    static char path[4][300];
    static unsigned next;
    char *p = path[next++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", folder, name);
    return p;
}

static int open_keys(struct opened *x, const char *path, enum open_mode mode, const char *key, const char *value) {
    struct url url = {.scheme = "file", .path = (char *)(uintptr_t)path};
    struct clock clock;
    memset(x, 0, sizeof *x);
    clock_real_init(&clock);
    x->conf = calloc(1, backend_file.conf_size);
    assert_int_equal(option_defaults(backend_file.options, x->conf, &x->err), 0);
    assert_int_equal(backend_file.configure(&url, x->conf, &x->err), 0);
    if (key) assert_int_equal(option_set(backend_file.options, x->conf, key, value, &x->err), 0);
    struct open_how how = {.conf = x->conf, .mode = mode, .create_size = MIB, .clock = &clock};
    return backend_file.open(&how, &x->handle, &x->facts, &x->err);
}

static int open_file(struct opened *x, const char *path, enum open_mode mode) {
    return open_keys(x, path, mode, NULL, NULL);
}

static void close_file(struct opened *x) {
    backend_file.close(x->handle);
    facts_free(&x->facts);
    backend_file.conf_free(x->conf);
    free(x->conf);
}

/* Opening fails, and the message has these words. */
static void refused(const char *path, enum open_mode mode, const char *words) {
    struct opened x;
    if (open_file(&x, path, mode) == 0) fail_msg("%s was opened", path);
    assert_int_equal(x.err.status, STATUS_TARGET);
    if (!strstr(x.err.msg, words)) fail_msg("\"%s\" does not say \"%s\"", x.err.msg, words);
    close_file(&x);
}

static void make(const char *path, size_t size) {
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    char *data = calloc(1, size + 1);
    memset(data, 'x', size);
    assert_int_equal(write(fd, data, size), size);
    free(data);
    close(fd);
}

static int set_up(void **state) {
    (void)state;
    strcpy(folder, "/tmp/samedisk-file.XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int drop(const char *path, const struct stat *st, int flag, struct FTW *ftw) {
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

static int tear_down(void **state) {
    (void)state;
    return nftw(folder, drop, 16, FTW_DEPTH | FTW_PHYS);
}

static void existing(void **state) {
    struct opened x;
    struct stat st;
    char identity[128];
    (void)state;
    make(in("plain"), 3 * 4096 + 100);
    assert_int_equal(open_file(&x, in("plain"), OPEN_READ), 0);
    assert_int_equal(stat(in("plain"), &st), 0);
    assert_true(x.facts.exists && x.facts.kind == OBJECT_FILE);
    assert_int_equal(x.facts.size, 3 * 4096 + 100);
    assert_int_equal(x.facts.allocated, st.st_blocks * 512);
    snprintf(identity, sizeof identity, "file:%u:%u:%llu", major(st.st_dev), minor(st.st_dev),
             (unsigned long long)st.st_ino);
    assert_string_equal(x.facts.identity[0], identity);
    assert_true(x.facts.fs_total > 0 && x.facts.fs_free <= x.facts.fs_total);
    assert_non_null(kv_find(&x.facts.negotiated, "fs_type"));
    assert_string_equal(x.facts.in_use, "");
    assert_int_equal(backend_file.remove(x.handle, &x.err), -1);
    close_file(&x);
    assert_int_equal(access(in("plain"), F_OK), 0);
}

static void missing(void **state) {
    struct opened x;
    struct err err;
    struct context *c;
    struct attach_how how = {.depth = 1};
    (void)state;
    assert_int_equal(open_file(&x, in("none"), OPEN_READ), 0);
    assert_false(x.facts.exists);
    assert_true(x.facts.fs_total > 0);
    assert_non_null(strstr(x.facts.summary, "does not exist"));
    assert_int_equal(backend_file.attach(x.handle, &how, &c, &err), -1);
    close_file(&x);
    assert_int_equal(access(in("none"), F_OK), -1);
    refused(in("none"), OPEN_WRITE, "No such file");
    refused(in("no/such/folder/f"), OPEN_READ, "folder");
    refused(in("no/such/folder/f"), OPEN_CREATE, "folder");
}

static void created(void **state) {
    struct opened x;
    struct stat st;
    (void)state;
    assert_int_equal(open_file(&x, in("new"), OPEN_CREATE), 0);
    assert_int_equal(stat(in("new"), &st), 0);
    assert_int_equal(st.st_size, MIB);
    assert_int_equal(st.st_mode & 0777, 0600);
    refused(in("new"), OPEN_CREATE, "exists already");
    double share = -1;
    assert_int_equal(backend_file.holes(x.handle, 0, MIB, INT64_MAX, &share), 0);
    assert_true(share == 1.0);
    assert_int_equal(backend_file.remove(x.handle, &x.err), 0);
    assert_int_equal(backend_file.remove(x.handle, &x.err), -1); /* once */
    assert_int_equal(access(in("new"), F_OK), -1);
    close_file(&x);
}

/* Under the same name is another file by now: it stays. */
static void replaced(void **state) {
    struct opened x;
    (void)state;
    assert_int_equal(open_file(&x, in("mine"), OPEN_CREATE), 0);
    make(in("theirs"), 10);
    assert_int_equal(rename(in("theirs"), in("mine")), 0);
    assert_int_equal(backend_file.remove(x.handle, &x.err), -1);
    assert_non_null(strstr(x.err.msg, "another file"));
    assert_int_equal(access(in("mine"), F_OK), 0);
    close_file(&x);
}

static void links_and_others(void **state) {
    (void)state;
    make(in("real"), 4096);
    assert_int_equal(symlink("real", in("link")), 0);
    assert_int_equal(symlink("nowhere", in("dangling")), 0);
    assert_int_equal(mkfifo(in("pipe"), 0600), 0);
    assert_int_equal(mkdir(in("sub"), 0700), 0);
    refused(in("link"), OPEN_READ, "symbolic link");
    refused(in("link"), OPEN_WRITE, "symbolic link");
    refused(in("link"), OPEN_CREATE, "exists");
    refused(in("dangling"), OPEN_READ, "symbolic link");
    refused(in("dangling"), OPEN_CREATE, "exists");
    assert_int_equal(access(in("nowhere"), F_OK), -1);
    refused(in("pipe"), OPEN_READ, "pipe"); /* and does not hang */
    refused(in("sub"), OPEN_READ, "folder");
    refused(in("sub/"), OPEN_READ, "folder");
    refused(in("sub/.."), OPEN_READ, "folder");
}

/* Never under /dev, /proc, /sys: by name, through a link, or through "..". */
static void system_folders(void **state) {
    (void)state;
    assert_int_equal(symlink("/dev", in("devices")), 0);
    assert_int_equal(symlink("/proc/self", in("self")), 0);
    refused(in("devices/null"), OPEN_WRITE, "never targets");
    refused(in("devices/samedisk-test"), OPEN_CREATE, "never targets");
    refused(in("devices/shm/samedisk-test"), OPEN_CREATE, "never targets");
    refused(in("self/status"), OPEN_READ, "never targets");
    refused("/tmp/../proc/version", OPEN_READ, "never targets");
    refused("/sys/kernel/x", OPEN_CREATE, "never targets");
}

static void locked_folder(void **state) {
    struct opened x;
    (void)state;
    assert_int_equal(mkdir(in("vm"), 0700), 0);
    make(in("vm/disk"), 4096);
    make(in("vm/.lck-0123"), 1);
    assert_int_equal(open_file(&x, in("vm/disk"), OPEN_READ), 0);
    assert_non_null(strstr(x.facts.in_use, ".lck-0123"));
    close_file(&x);
    assert_int_equal(open_file(&x, in("vm/other"), OPEN_READ), 0); /* also where a file would be created */
    assert_non_null(strstr(x.facts.in_use, "ESXi"));
    close_file(&x);
}

static void sparse(void **state) {
    struct opened x;
    double share;
    int fd = open(in("sparse"), O_RDWR | O_CREAT, 0600);
    char data[65536];
    (void)state;
    memset(data, 1, sizeof data);
    assert_int_equal(ftruncate(fd, 4 * MIB), 0);
    assert_int_equal(pwrite(fd, data, sizeof data, MIB), sizeof data);
    assert_int_equal(fsync(fd), 0);
    close(fd);
    assert_int_equal(open_file(&x, in("sparse"), OPEN_READ), 0);
    assert_non_null(kv_find(&x.facts.warnings, "sparse"));
    assert_int_equal(backend_file.holes(x.handle, 0, 4 * MIB, INT64_MAX, &share), 0);
    assert_true(share > 0.98 && share < 0.99);
    assert_int_equal(backend_file.holes(x.handle, MIB, 65536, INT64_MAX, &share), -1); /* no hole seen, yet storage is missing */
    assert_int_equal(backend_file.holes(x.handle, MIB, 131072, INT64_MAX, &share), 0);
    assert_true(share == 0.5);
    assert_int_equal(backend_file.holes(x.handle, 8 * MIB, 65536, INT64_MAX, &share), -1);
    close_file(&x);
}

static void engines(void **state) {
    struct opened x;
    (void)state;
    make(in("data"), 65536);
    assert_int_equal(open_keys(&x, in("data"), OPEN_READ, "engine", "threads"), 0);
    assert_non_null(strstr(x.facts.engine, "helper threads"));
    assert_int_equal(x.facts.max_depth, 256);
    assert_non_null(kv_find(&x.facts.warnings, "helper-threads"));
    close_file(&x);
    assert_int_equal(open_keys(&x, in("data"), OPEN_READ, "direct", "no"), 0);
    assert_string_equal(x.facts.engine, "helper threads page cache");
    assert_int_equal(x.facts.block, 1);
    assert_non_null(kv_find(&x.facts.warnings, "page-cache"));
    assert_int_equal(x.facts.volatile_cache, ANSWER_YES);
    /* libaio without O_DIRECT would not be asynchronous */
    assert_int_equal(option_set(backend_file.options, x.conf, "engine", "libaio", &x.err), 0);
    assert_int_equal(backend_file.check(x.conf, &x.err), -1);
    assert_int_equal(x.err.status, STATUS_USAGE);
    close_file(&x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(existing), cmocka_unit_test(missing), cmocka_unit_test(created), cmocka_unit_test(replaced),
        cmocka_unit_test(links_and_others), cmocka_unit_test(system_folders), cmocka_unit_test(locked_folder),
        cmocka_unit_test(sparse), cmocka_unit_test(engines),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
