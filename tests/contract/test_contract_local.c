/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The contract over everything that needs no server: null, skeleton, files on several file systems, a loop device,
 * stripes. What needs root (mounts, loop devices) happens in a mount namespace of its own, and is left out with a
 * word without. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/delay.h"
#include "backends/readahead.h"
#include "backends/stripe.h"
#include "tests/contract/contract.h"
#include "tests/contract/filtered.h"

#define MIB (1u << 20)

/* liburing maps its rings by system calls of its own, which ThreadSanitizer does not see: where a thread's ring lies in
 * memory that another thread's had, it would report a race that is none. */
#if defined(HAVE_LIBURING) && !defined(__SANITIZE_THREAD__)
#define WITH_IO_URING 1
#endif

extern const struct backend backend_skeleton;

static char folder[400];
static int failures, skipped;

static void skip_line(const char *what, const char *why) {
    printf("# skipped: %s (%s)\n", what, why);
    skipped++;
}

static void run(const char *name, const char *url, struct contract_subject s) {
    s.name = name;
    s.url = url;
    failures += contract_run(&s);
}

static void run_file(const char *name, const char *where, const char *keys) {
    char url[600];
    snprintf(url, sizeof url, "file:%s/contract.dat%s", where, keys);
    run(name, url, (struct contract_subject){.create_size = 64 * MIB});
}

/* ---- stripes ---- */

struct stripe_set {
    struct handle *stripe;
    struct object member[3];
    unsigned n;
};
static struct stripe_set sets[4];

static int open_stripe(const struct contract_subject *s, enum open_mode mode, struct handle **out, struct facts *f,
                       struct err *err) {
    struct stripe_set *set = sets;
    struct stripe_member members[3];
    char urls[1200], *save = NULL;
    if (mode == OPEN_CREATE) return err_set(err, STATUS_TARGET, "a stripe is not created, its members are");
    while (set->stripe) set++;
    set->n = 0;
    snprintf(urls, sizeof urls, "%s", s->url);
    for (char *url = strtok_r(urls, " ", &save); url; url = strtok_r(NULL, " ", &save), set->n++) {
        struct contract_subject *one = calloc(1, sizeof *one);
        one->url = strdup(url);
        if (object_open(&set->member[set->n], one, mode, err) < 0) return -1;
        members[set->n] = (struct stripe_member){set->member[set->n].backend, set->member[set->n].handle,
                                                 &set->member[set->n].facts};
    }
    if (stripe_open(members, set->n, out, f, err) < 0) return -1;
    set->stripe = *out;
    return 0;
}

static void close_stripe(const struct contract_subject *s, struct handle *h) {
    struct stripe_set *set = sets;
    (void)s;
    while (set->stripe != h) set++;
    backend_stripe.close(h);
    for (unsigned i = 0; i < set->n; i++) {
        struct contract_subject *one = (void *)(uintptr_t)set->member[i].s;
        object_close(&set->member[i]);
        free((void *)(uintptr_t)one->url);
        free(one);
    }
    memset(set, 0, sizeof *set);
}

static void run_stripe(const char *name, const char *urls, struct contract_subject s) {
    s.backend = &backend_stripe;
    s.open = open_stripe;
    s.close = close_stripe;
    run(name, urls, s);
}

static void make_file(const char *path, off_t size) {
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, size) < 0) abort();
    close(fd);
}

static void stripes(void) {
    char urls[1200], a[500], b[500];
    run_stripe("stripe of null", "null:?size=64m null:?size=80m null:?size=64m&lat=20us",
               (struct contract_subject){.loses_data = true});
    run_stripe("stripe of null, virtual clock", "null:?size=64m&lat=100us null:?size=64m&lat=70us",
               (struct contract_subject){.loses_data = true, .virtual_clock = true});
    snprintf(a, sizeof a, "%s/stripe-a", folder);
    snprintf(b, sizeof b, "%s/stripe-b", folder);
    make_file(a, 48 * MIB);
    make_file(b, 40 * MIB);
    snprintf(urls, sizeof urls, "file:%s file:%s", a, b);
    run_stripe("stripe of files", urls, (struct contract_subject){0});
    snprintf(urls, sizeof urls, "file:%s file:%s?engine=threads", a, b);
    run_stripe("stripe of unlike files", urls, (struct contract_subject){.ios = 800});
    unlink(a);
    unlink(b);
}

/* ---- filters ---- */

static void run_filter(const char *name, const struct backend *filter, const char *url, struct contract_subject s) {
    bool stripe = strchr(url, ' ') != NULL;
    s.name = name;
    s.url = url;
    if (stripe) {
        s.backend = &backend_stripe;
        s.open = open_stripe;
        s.close = close_stripe;
    }
    failures += filtered_run(name, filter, &s);
}

static void filters(void) {
    const struct contract_subject null = {.loses_data = true};
    const struct contract_subject virtual = {.loses_data = true, .virtual_clock = true};
    char file[500], url[1100], other[500];
    run_filter("readahead over null", &backend_readahead, "null:?size=64m&lat=20us", null);
    run_filter("readahead over null, virtual clock", &backend_readahead, "null:?size=64m&lat=100us&servers=8", virtual);
    run_filter("delay over null, virtual clock", &backend_delay, "null:?size=64m&lat=100us&lat_dist=exponential",
               virtual);
    snprintf(file, sizeof file, "%s/filter-a", folder);
    snprintf(other, sizeof other, "%s/filter-b", folder);
    make_file(file, 48 * MIB);
    make_file(other, 48 * MIB);
    snprintf(url, sizeof url, "file:%s", file);
    run_filter("readahead over a file", &backend_readahead, url, (struct contract_subject){0});
    run_filter("delay over a file", &backend_delay, url, (struct contract_subject){0});
    snprintf(url, sizeof url, "file:%s?engine=threads", file);
    run_filter("readahead over a file by threads", &backend_readahead, url, (struct contract_subject){.ios = 800});
    run_filter("delay over a file by threads", &backend_delay, url, (struct contract_subject){.ios = 800});
    snprintf(url, sizeof url, "file:%s file:%s", file, other);
    run_filter("readahead over a stripe of files", &backend_readahead, url, (struct contract_subject){0});
    unlink(file);
    unlink(other);
}

/* ---- with root ---- */

static bool private_mounts(void) {
    if (geteuid() != 0 || unshare(CLONE_NEWNS) != 0) return false;
    /* EINVAL: in a chroot "/" is no mount point, and its mounts are private already. */
    return mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) == 0 || errno == EINVAL;
}

static char *place(char *buf, size_t len, const char *name) {
    snprintf(buf, len, "%s/%s", folder, name);
    (void)mkdir(buf, 0700);
    return buf;
}

static void on_tmpfs(void) {
    char dir[500];
    if (mount("tmpfs", place(dir, sizeof dir, "tmpfs"), "tmpfs", 0, "size=128m") < 0) {
        skip_line("tmpfs", strerror(errno));
    } else {
        run_file("file on tmpfs", dir, "");
        run_file("file on tmpfs by threads", dir, "?engine=threads");
#ifdef WITH_IO_URING
        run_file("file on tmpfs by io_uring", dir, "?engine=io_uring");
#endif
        umount2(dir, MNT_DETACH);
    }
    rmdir(dir);
}

static void on_overlay(void) {
    char dir[500], lower[500], upper[500], work[500], options[2000];
    snprintf(options, sizeof options, "lowerdir=%s,upperdir=%s,workdir=%s", place(lower, sizeof lower, "lower"),
             place(upper, sizeof upper, "upper"), place(work, sizeof work, "workdir"));
    if (mount("overlay", place(dir, sizeof dir, "overlay"), "overlay", 0, options) < 0) {
        skip_line("overlay", strerror(errno));
    } else {
        run_file("file on overlay", dir, "");
        umount2(dir, MNT_DETACH);
    }
    strcat(work, "/work");
    rmdir(work);
    *strrchr(work, '/') = 0;
    rmdir(work);
    rmdir(upper);
    rmdir(lower);
    rmdir(dir);
}

static int command(const char *const *argv) {
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    return pid < 0 || waitpid(pid, &status, 0) < 0 || !WIFEXITED(status) ? -1 : WEXITSTATUS(status);
}

static void on_fuse(void) {
    char dir[500], source[500];
    place(dir, sizeof dir, "fuse");
    place(source, sizeof source, "fuse-source");
    if (command((const char *const[]){"bindfs", source, dir, NULL}) != 0) {
        skip_line("FUSE", "no bindfs, or no /dev/fuse");
    } else {
        run_file("file on FUSE", dir, "");
        run_file("file on FUSE by threads, page cache", dir, "?engine=threads&direct=no");
        umount2(dir, MNT_DETACH);
    }
    rmdir(dir);
    rmdir(source);
}

#ifdef HAVE_LIBAIO
static int loop_device(const char *file, char *path, size_t len) {
    int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC), backing = open(file, O_RDWR | O_CLOEXEC), loop = -1;
    int n = control < 0 ? -1 : ioctl(control, LOOP_CTL_GET_FREE);
    struct loop_config config = {.fd = (unsigned)backing,
                                 .info = {.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO}};
    snprintf(path, len, "/dev/loop%d", n);
    if (n >= 0 && backing >= 0) loop = open(path, O_RDWR | O_CLOEXEC);
    if (loop >= 0 && ioctl(loop, LOOP_CONFIGURE, &config) < 0) {
        close(loop);
        loop = -1;
    }
    if (control >= 0) close(control);
    if (backing >= 0) close(backing);
    return loop;
}

static void on_loop(void) {
    char file[500], path[64];
    snprintf(file, sizeof file, "%s/loop.img", folder);
    make_file(file, 64 * MIB);
    int loop = loop_device(file, path, sizeof path);
    if (loop < 0) {
        skip_line("loop device", strerror(errno));
    } else {
        run("loop device", path, (struct contract_subject){0});
#ifdef WITH_IO_URING
        char url[100];
        snprintf(url, sizeof url, "file:%s?engine=io_uring", path);
        run("loop device by io_uring", url, (struct contract_subject){0});
#endif
        run("loop device, page cache", path, (struct contract_subject){.key = "direct", .value = "no"});
        close(loop);
    }
    unlink(file);
}
#endif

int main(void) {
    const char *tmp = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/contract.XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(folder)) {
        perror(folder);
        return 1;
    }
    run("null", "null:", (struct contract_subject){.loses_data = true});
    run("null with latency", "null:?lat=50us", (struct contract_subject){.loses_data = true});
    run("null, virtual clock", "null:?lat=100us&servers=8",
        (struct contract_subject){.loses_data = true, .virtual_clock = true});
    run("null, exponential, virtual clock", "null:?lat=100us&lat_dist=exponential&block=4k&max_depth=64&write_cache=no",
        (struct contract_subject){.loses_data = true, .virtual_clock = true});
    run("skeleton", "null:", (struct contract_subject){.backend = &backend_skeleton, .loses_data = true});
    run_file("file", folder, "");
    run_file("file by threads", folder, "?engine=threads");
#ifdef WITH_IO_URING
    run_file("file by io_uring", folder, "?engine=io_uring");
#endif
    run_file("file by threads, page cache", folder, "?engine=threads&direct=no");
    stripes();
    filters();
    if (private_mounts()) {
        on_tmpfs();
        on_overlay();
        on_fuse();
#ifdef HAVE_LIBAIO
        on_loop();
#endif
    } else {
        skip_line("tmpfs, overlay, FUSE, loop device", "needs root and a mount namespace");
    }
    if (rmdir(folder) < 0) {
        printf("# left behind: %s\n", folder);
        failures++;
    }
    printf("# %d failures, %d parts skipped\n", failures, skipped);
    return failures != 0;
}
