/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Safety on real loop devices, with the real sysfs and proc: mounted, swap, partitions, a file behind a loop device,
 * and a device that is free, written and used again. Needs root; mounts stay in a mount namespace of their own. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/blkpg.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/local/devguard.h"
#include "backends/local/devwatch.h"
#include "base/url.h"
#include "safety/safety.h"
#include "target/blockio.h"
#include "tests/unit/disk_images.h"

#ifndef BLKFLSBUF
#define BLKFLSBUF _IO(0x12, 97) /* linux/fs.h and sys/mount.h do not go together everywhere */
#endif
#define MIB  (1ULL << 20)
#define SIZE (64 * MIB)

extern const struct backend backend_block, backend_file;

struct bench {
    char folder[64], image[100], loop[32], upper[32], mount_point[100];
    int image_fd, loop_fd, upper_fd;
    struct target target[2], *targets[2];
    struct clock clock;
    struct safety_wish wish;
    struct safety_destroy destroy[3];
    struct safety_report report;
    struct err err;
};

static bool may_run;

/* A loop device on what `fd` is: its name and descriptor. */
static int attach_loop_on(int fd, const char *file, char *name, size_t len, int *loop_fd) {
    struct loop_config config = {.fd = (uint32_t)fd, .block_size = 512, .info.lo_flags = LO_FLAGS_PARTSCAN};

    for (int tries = 0; tries < 20; tries++) { /* another program may be faster */
        int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
        int n = control < 0 ? -1 : ioctl(control, LOOP_CTL_GET_FREE);
        if (control >= 0) close(control);
        if (n < 0) return -1;
        snprintf(name, len, "/dev/loop%d", n);
        *loop_fd = open(name, O_RDWR | O_CLOEXEC);
        if (*loop_fd < 0) return -1;
        snprintf((char *)config.info.lo_file_name, sizeof(config.info.lo_file_name), "%.63s", file);
        if (ioctl(*loop_fd, LOOP_CONFIGURE, &config) == 0) return 0;
        int error = errno;
        close(*loop_fd);
        *loop_fd = -1;
        if (error != EBUSY) return -1;
    }
    return -1;
}

static int attach_loop(struct bench *b) {
    return attach_loop_on(b->image_fd, b->image, b->loop, sizeof(b->loop), &b->loop_fd);
}

static int attach_upper(struct bench *b, int fd) {
    return attach_loop_on(fd, "", b->upper, sizeof(b->upper), &b->upper_fd);
}

static void detach_upper(struct bench *b) {
    if (b->upper_fd < 0) return;
    ioctl(b->upper_fd, LOOP_CLR_FD);
    close(b->upper_fd);
    b->upper_fd = -1;
}

static int setup(void **state) {
    struct bench *b = calloc(1, sizeof(*b));

    *state = b;
    b->image_fd = b->loop_fd = b->upper_fd = -1;
    if (!may_run) return 0;
    strcpy(b->folder, "/var/tmp/samedisk-test-XXXXXX");
    if (!mkdtemp(b->folder)) return -1;
    snprintf(b->image, sizeof(b->image), "%s/image", b->folder);
    snprintf(b->mount_point, sizeof(b->mount_point), "%s/mnt", b->folder);
    mkdir(b->mount_point, 0700);
    b->image_fd = open(b->image, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (b->image_fd < 0 || ftruncate(b->image_fd, SIZE) != 0) return -1;
    clock_real_init(&b->clock);
    for (unsigned t = 0; t < 2; t++) {
        b->targets[t] = &b->target[t];
        b->target[t].clock = &b->clock;
    }
    b->wish = (struct safety_wish){.targets = b->targets,
                                   .writes = true,
                                   .needed_size = 8 * MIB,
                                   .write_to = 8 * MIB,
                                   .destroy = b->destroy,
                                   .allow_full = true,
                                   .sysfs = "/sys",
                                   .proc = "/proc"};
    return 0;
}

static int teardown(void **state) {
    struct bench *b = *state;
    char node[200];

    safety_report_free(&b->report);
    for (unsigned t = 0; t < 2; t++) target_free(&b->target[t]);
    if (may_run) {
        umount(b->mount_point);
        detach_upper(b);
        for (int i = 1; b->loop_fd >= 0 && i <= 2; i++) {
            struct blkpg_partition p = {.pno = i};
            struct blkpg_ioctl_arg arg = {.op = BLKPG_DEL_PARTITION, .datalen = sizeof(p), .data = &p};
            ioctl(b->loop_fd, BLKPG, &arg);
        }
        if (b->loop_fd >= 0) ioctl(b->loop_fd, LOOP_CLR_FD);
        if (b->loop_fd >= 0) close(b->loop_fd);
        if (b->image_fd >= 0) close(b->image_fd);
        for (unsigned i = 1; i <= 2; i++) {
            snprintf(node, sizeof(node), "%s/p%u", b->folder, i);
            unlink(node);
        }
        unlink(b->image);
        rmdir(b->mount_point);
        rmdir(b->folder);
    }
    free(b);
    return 0;
}

#define NEED_ROOT()                                                                                                    \
    do {                                                                                                               \
        if (!may_run) skip();                                                                                          \
    } while (0)

static void member(struct bench *b, unsigned t, const char *label, const struct backend *backend, const char *url) {
    struct target *target = &b->target[t];
    struct member *m = &target->member[target->n_members++];
    struct url parsed = {.text = NULL};

    assert_int_equal(url_parse(url, &parsed, &b->err), 0);
    m->url = strdup(url);
    m->backend = backend;
    m->conf = calloc(1, backend->conf_size);
    assert_int_equal(option_defaults(backend->options, m->conf, &b->err), 0);
    assert_int_equal(backend->configure(&parsed, m->conf, &b->err), 0);
    url_free(&parsed);
    snprintf(target->label, sizeof(target->label), "%s", label);
    if (t >= b->wish.n_targets) b->wish.n_targets = t + 1;
}

static void type(struct bench *b, const char *label, const char *what) {
    b->destroy[b->wish.n_destroy++] = (struct safety_destroy){label, what};
}

static int examine(struct bench *b) {
    for (unsigned t = 0; t < b->wish.n_targets; t++) {
        target_close(&b->target[t]);
        if (target_open_read(&b->target[t], &b->err) != 0) fail_msg("%s", b->err.msg);
    }
    safety_report_free(&b->report);
    return safety_examine(&b->wish, &b->report, &b->err);
}

static void expect_refusal(struct bench *b, const char *text) {
    assert_int_equal(examine(b), -1);
    if (!strstr(b->err.msg, text)) fail_msg("wanted: %s\ngot: %s", text, b->err.msg);
    print_message("    %s\n", b->err.msg);
}

static void make_ext4(const struct bench *b, uint64_t offset, uint64_t size) {
    char command[300];

    snprintf(command, sizeof(command), "PATH=/usr/sbin:/sbin:$PATH mkfs.ext4 -F -q -L data -E offset=%llu %s %lluk",
             (unsigned long long)offset, b->image, (unsigned long long)(size / 1024));
    assert_int_equal(system(command), 0);
}

static void a_mounted_device(void **state) {
    struct bench *b = *state;
    char why[200];

    NEED_ROOT();
    make_ext4(b, 0, SIZE);
    assert_int_equal(attach_loop(b), 0);
    member(b, 0, "fc", &backend_block, b->loop);
    type(b, "fc", "ext4");
    assert_int_equal(mount(b->loop, b->mount_point, "ext4", MS_RDONLY, NULL), 0);
    snprintf(why, sizeof(why), "mounted on %s", b->mount_point);
    expect_refusal(b, why);
    assert_int_equal(umount(b->mount_point), 0);
    if (examine(b) != 0) fail_msg("%s", b->err.msg);
    assert_int_equal(b->report.decision[0].verdict, SAFETY_CONSENTED);
    assert_non_null(strstr(b->report.decision[0].text, "ext4 file system \"data\" on "));
    b->wish.n_destroy = 0;
    expect_refusal(b, "ext4 file system \"data\" was found on ");
    type(b, "fc", NULL);
    expect_refusal(b, "what was typed lacks ext4");
    /* Mounted between the look and the write: the exclusive open is the last guard. */
    b->destroy[0].what = "ext4";
    assert_int_equal(examine(b), 0);
    assert_int_equal(mount(b->loop, b->mount_point, "ext4", MS_RDONLY, NULL), 0);
    assert_int_equal(safety_apply(&b->wish, &b->report, &b->err), -1);
    assert_non_null(strstr(b->err.msg, "in use"));
}

static void a_swap_device(void **state) {
    struct bench *b = *state;
    char command[200];

    NEED_ROOT();
    assert_int_equal(attach_loop(b), 0);
    snprintf(command, sizeof(command), "PATH=/usr/sbin:/sbin:$PATH mkswap -q %s >/dev/null 2>&1", b->loop);
    assert_int_equal(system(command), 0);
    if (swapon(b->loop, 0) != 0) skip(); /* not in this container */
    member(b, 0, "fc", &backend_block, b->loop);
    type(b, "fc", "swap");
    int rc = examine(b);
    assert_int_equal(swapoff(b->loop), 0);
    assert_int_equal(rc, -1);
    assert_non_null(strstr(b->err.msg, "is swap"));
    assert_int_equal(examine(b), 0);
    assert_int_equal(b->report.decision[0].verdict, SAFETY_CONSENTED);
}

/* Tells the kernel of a partition, as partx does: not every kernel reads partition tables itself. */
static void add_partition(const struct bench *b, int n, const struct image_part *part) {
    struct blkpg_partition p = {.start = (long long)part->start, .length = (long long)part->size, .pno = n};
    struct blkpg_ioctl_arg arg = {.op = BLKPG_ADD_PARTITION, .datalen = sizeof(p), .data = &p};

    if (ioctl(b->loop_fd, BLKPG, &arg) != 0) assert_int_equal(errno, EBUSY); /* it did */
}

/* A node for partition `n` of the loop device, in our folder: not every /dev gets one. */
static void partition_node(const struct bench *b, unsigned n, char *node, size_t len) {
    char path[120], text[32] = "";
    unsigned major, minor;

    snprintf(path, sizeof(path), "/sys/block/%s/%sp%u/dev", b->loop + 5, b->loop + 5, n);
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    assert_non_null(fgets(text, sizeof(text), f));
    assert_int_equal(sscanf(text, "%u:%u", &major, &minor), 2);
    fclose(f);
    snprintf(node, len, "%s/p%u", b->folder, n);
    assert_int_equal(mknod(node, S_IFBLK | 0600, makedev(major, minor)), 0);
}

static void partitions_in_use(void **state) {
    struct bench *b = *state;
    const struct image_part part[] = {{MIB, 16 * MIB}, {24 * MIB, 16 * MIB}};
    char first[100], second[100], words[200];

    NEED_ROOT();
    image_gpt(b->image_fd, SIZE, 512, part, 2, 1);
    make_ext4(b, part[0].start, part[0].size);
    assert_int_equal(attach_loop(b), 0);
    for (int i = 0; i < 2; i++) add_partition(b, i + 1, &part[i]);
    partition_node(b, 1, first, sizeof(first));
    partition_node(b, 2, second, sizeof(second));
    member(b, 0, "fc", &backend_block, b->loop);
    type(b, "fc", "gpt,ext4");
    if (examine(b) != 0) fail_msg("%s", b->err.msg);
    assert_string_equal(b->report.decision[0].found,
                        "GPT partition table with 2 partitions; partition 1 at 1 MiB: ext4 file system "
                        "\"data\"");
    b->wish.n_destroy = 0;
    expect_refusal(b, "fc: refused: GPT partition table with 2 partitions; partition 1 at 1 MiB: ext4 file system "
                      "\"data\" was found");
    assert_int_equal(mount(first, b->mount_point, "ext4", MS_RDONLY, NULL), 0);
    type(b, "fc", "gpt,ext4");
    snprintf(words, sizeof(words), "p1 is mounted on %s", b->mount_point);
    expect_refusal(b, words); /* the whole, of which a part is mounted */
    target_free(&b->target[0]);
    member(b, 0, "fc", &backend_block, first);
    b->destroy[0].what = "ext4";
    expect_refusal(b, words); /* the part itself */
    target_free(&b->target[0]);
    member(b, 0, "fc", &backend_block, second);
    b->destroy[0].what = NULL;
    if (examine(b) != 0) fail_msg("%s", b->err.msg); /* a part beside it is free */
    assert_string_equal(b->report.decision[0].found, "all zeros (all of it was read)");
    if (safety_apply(&b->wish, &b->report, &b->err) != 0) fail_msg("%s", b->err.msg);
}

/* Another loop device on one that is mounted, or on a partition or a whole of which a part is: the second one is not
 * mounted, and has the same blocks. */
static void a_loop_device_on_a_mounted_one(void **state) {
    struct bench *b = *state;
    char words[200];

    NEED_ROOT();
    make_ext4(b, 0, SIZE);
    assert_int_equal(attach_loop(b), 0);
    assert_int_equal(attach_upper(b, b->loop_fd), 0);
    member(b, 0, "fc", &backend_block, b->upper);
    type(b, "fc", "ext4");
    if (examine(b) != 0) fail_msg("%s", b->err.msg);
    assert_int_equal(mount(b->loop, b->mount_point, "ext4", MS_RDONLY, NULL), 0);
    snprintf(words, sizeof(words), "%s is mounted on %s", b->loop, b->mount_point);
    expect_refusal(b, words);
    assert_int_equal(umount(b->mount_point), 0);
    target_free(&b->target[0]);
    member(b, 0, "fc", &backend_block, b->loop);
    snprintf(words, sizeof(words), "%s is behind loop device %s", b->loop, b->upper);
    expect_refusal(b, words); /* the lower one, whoever may want the upper */
    assert_int_equal(mount(b->upper, b->mount_point, "ext4", MS_RDONLY, NULL), 0);
    expect_refusal(b, words);
    target_free(&b->target[0]);
    char url[120]; /* and the file below both */
    snprintf(url, sizeof(url), "file:%s", b->image);
    member(b, 0, "fc", &backend_file, url);
    expect_refusal(b, words);
    assert_int_equal(umount(b->mount_point), 0);
}

static void two_loop_devices_on_one_file(void **state) {
    struct bench *b = *state;
    char words[200], away[120];

    NEED_ROOT();
    make_ext4(b, 0, SIZE);
    assert_int_equal(attach_loop(b), 0);
    assert_int_equal(attach_upper(b, b->image_fd), 0);
    member(b, 0, "fc", &backend_block, b->upper);
    type(b, "fc", "ext4");
    assert_int_equal(mount(b->loop, b->mount_point, "ext4", MS_RDONLY, NULL), 0);
    snprintf(words, sizeof(words), "%s is mounted on %s", b->loop, b->mount_point);
    expect_refusal(b, words);
    snprintf(away, sizeof(away), "%s.away", b->image); /* the driver knows the file by more than its name */
    assert_int_equal(rename(b->image, away), 0);
    expect_refusal(b, words);
    assert_int_equal(unlink(away), 0);
    expect_refusal(b, words);
    assert_int_equal(umount(b->mount_point), 0);
    if (examine(b) != 0) fail_msg("%s", b->err.msg);
}

static void a_loop_device_on_a_whole_with_a_mounted_part(void **state) {
    struct bench *b = *state;
    const struct image_part part[] = {{MIB, 16 * MIB}, {24 * MIB, 16 * MIB}};
    char first[100], second[100], words[200];

    NEED_ROOT();
    image_gpt(b->image_fd, SIZE, 512, part, 2, 1);
    make_ext4(b, part[0].start, part[0].size);
    assert_int_equal(attach_loop(b), 0);
    for (int i = 0; i < 2; i++) add_partition(b, i + 1, &part[i]);
    partition_node(b, 1, first, sizeof(first));
    partition_node(b, 2, second, sizeof(second));
    assert_int_equal(mount(first, b->mount_point, "ext4", MS_RDONLY, NULL), 0);
    assert_int_equal(attach_upper(b, b->loop_fd), 0);
    member(b, 0, "fc", &backend_block, b->upper);
    type(b, "fc", "gpt,ext4");
    snprintf(words, sizeof(words), "p1 is mounted on %s", b->mount_point);
    expect_refusal(b, words);
    detach_upper(b);
    int fd = open(first, O_RDWR | O_CLOEXEC);
    assert_int_equal(attach_upper(b, fd), 0);
    close(fd);
    target_free(&b->target[0]);
    member(b, 0, "fc", &backend_block, b->upper);
    b->destroy[0].what = "ext4";
    expect_refusal(b, words);
    detach_upper(b);
    fd = open(second, O_RDWR | O_CLOEXEC);
    assert_int_equal(attach_upper(b, fd), 0);
    close(fd);
    target_free(&b->target[0]);
    member(b, 0, "fc", &backend_block, b->upper);
    b->destroy[0].what = NULL;
    if (examine(b) != 0) fail_msg("%s", b->err.msg); /* the partition beside it is free */
}

static void a_file_behind_a_loop_device(void **state) {
    struct bench *b = *state;
    char url[120];

    NEED_ROOT();
    make_ext4(b, 0, SIZE);
    assert_int_equal(attach_loop(b), 0);
    snprintf(url, sizeof(url), "file:%s", b->image);
    member(b, 0, "file", &backend_file, url);
    type(b, "file", "ext4");
    if (examine(b) != 0) fail_msg("%s", b->err.msg);
    assert_non_null(strstr(b->report.decision[0].text, "the same object as unused /dev/loop"));
    assert_int_equal(mount(b->loop, b->mount_point, "ext4", MS_RDONLY, NULL), 0);
    expect_refusal(b, "mounted on ");
    assert_int_equal(umount(b->mount_point), 0);
    member(b, 1, "fc", &backend_block, b->loop);
    expect_refusal(b, "a file and a block view of one object never both write");
    b->wish.writes = false;
    if (examine(b) != 0) fail_msg("%s", b->err.msg);
}

static int fill(void *arg, uint64_t offset, void *buf, size_t len) {
    data_make(arg, buf, offset, len);
    return 0;
}

static void a_free_device_is_written_and_used_again(void **state) {
    struct bench *b = *state;
    struct blockio *io = NULL;
    struct data data;

    NEED_ROOT();
    data_init(&data, 1, 0, NULL);
    assert_int_equal(attach_loop(b), 0);
    member(b, 0, "fc", &backend_block, b->loop);
    expect_refusal(b, "all zeros (all of it was read) were found on");
    type(b, "fc", NULL);
    if (examine(b) != 0) fail_msg("%s", b->err.msg);
    if (safety_apply(&b->wish, &b->report, &b->err) != 0) fail_msg("%s", b->err.msg);
    const struct target *t = &b->target[0];
    assert_int_equal(blockio_open(t->backend, t->handle, &t->facts, &b->clock, 8, 256 << 10, true, &io, &b->err), 0);
    if (blockio_stream(io, IO_WRITE, SYNC_NONE, 0, 8 * MIB, fill, &data, &b->err) != 0) fail_msg("%s", b->err.msg);
    assert_int_equal(blockio_flush(io, NULL, &b->err), 0);
    blockio_close(io);
    target_close(&b->target[0]);
    b->wish.n_destroy = 0;
    if (examine(b) != 0) fail_msg("%s", b->err.msg);
    assert_int_equal(b->report.decision[0].verdict, SAFETY_OWN_DATA);
    assert_string_equal(b->report.decision[0].found, "samedisk data");
    /* More than was written before: what lies behind is zeros, and still nobody else's. */
    b->wish.write_to = b->wish.needed_size = SIZE;
    assert_int_equal(examine(b), 0);
    put(b->image_fd, 60 * MIB, "somebody else's, at the first byte of a block", 45);
    put(b->image_fd, SIZE - 4096, "x", 1);
    assert_int_equal(fsync(b->image_fd), 0);
    assert_int_equal(ioctl(b->loop_fd, BLKFLSBUF, 0), 0);
    expect_refusal(b, "unknown data");
}

/* A mount that this process cannot see leaves an exclusive claim on the device, and on nothing below it. */
/* Another program that holds the device until it is ended. */
static pid_t held_exclusively(const char *device) {
    int ready[2];
    char c = 0;
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int fd = 3; fd < 256; fd++) /* a loop device that is open goes away later */
            if (fd != ready[1]) close(fd);
        if (open(device, O_RDONLY | O_EXCL | O_CLOEXEC) >= 0 && write(ready[1], "y", 1) == 1) pause();
        _exit(1);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &c, 1), 1);
    close(ready[0]);
    return pid;
}

static void used_where_nobody_sees_it(void **state) {
    struct bench *b = *state;
    char url[120], words[120];

    NEED_ROOT();
    make_ext4(b, 0, SIZE);
    assert_int_equal(attach_loop(b), 0);
    assert_int_equal(attach_upper(b, b->loop_fd), 0);
    member(b, 0, "fc", &backend_block, b->upper);
    type(b, "fc", "ext4");
    pid_t other = held_exclusively(b->loop);
    snprintf(words, sizeof(words), "%s is opened exclusively by another program", b->loop);
    expect_refusal(b, words);
    detach_upper(b);
    target_free(&b->target[0]);
    snprintf(url, sizeof(url), "file:%s", b->image);
    member(b, 0, "fc", &backend_file, url);
    expect_refusal(b, words);
    assert_int_equal(kill(other, SIGKILL), 0);
    assert_int_equal(waitpid(other, NULL, 0), other);
    if (examine(b) != 0) fail_msg("%s", b->err.msg);
}

/* A device that is taken away and comes back, with another file behind it or with the same, has its old name and number,
 * and is told from what it was. */
static void a_device_that_came_back(void **state) {
    struct bench *b = *state;
    uint64_t before;

    NEED_ROOT();
    assert_int_equal(attach_loop(b), 0);
    member(b, 0, "fc", &backend_block, b->loop);
    assert_int_equal(target_open_read(&b->target[0], &b->err), 0);
    before = b->target[0].member[0].facts.incarnation;
    target_close(&b->target[0]);
    assert_int_equal(target_open_read(&b->target[0], &b->err), 0);
    assert_true(b->target[0].member[0].facts.incarnation == before);
    target_close(&b->target[0]);
    if (!before) skip(); /* a kernel that does not count */
    struct loop_config config = {.fd = (uint32_t)b->image_fd, .block_size = 512};
    assert_int_equal(ioctl(b->loop_fd, LOOP_CLR_FD), 0);
    close(b->loop_fd);
    b->loop_fd = open(b->loop, O_RDWR | O_CLOEXEC);
    assert_int_equal(ioctl(b->loop_fd, LOOP_CONFIGURE, &config), 0);
    assert_int_equal(target_open_read(&b->target[0], &b->err), 0);
    assert_true(b->target[0].member[0].facts.incarnation > before);
}

/* Behind a name that says nothing another object may stand: what was written is what counts. */
static void a_device_by_what_was_written(void **state) {
    static const char written[16] = "0123456789abcde";
    struct bench *b = *state;
    const struct seal seal = {.offset = 8192 + 72, .bytes = written, .len = sizeof(written)};
    struct blockio *io;

    NEED_ROOT();
    assert_int_equal(attach_loop(b), 0);
    member(b, 0, "fc", &backend_block, b->loop);
    assert_int_equal(target_open_read(&b->target[0], &b->err), 0);
    assert_int_equal(target_member_reopen(&b->target[0], 0, OPEN_WRITE, 0, &b->err), 0);
    const struct member *m = &b->target[0].member[0];
    assert_int_equal(pwrite(b->image_fd, written, sizeof(written), (off_t)seal.offset), sizeof(written));
    assert_int_equal(ioctl(b->loop_fd, BLKFLSBUF), 0);
    assert_int_equal(blockio_open_sealed(m->backend, m->handle, &m->facts, b->target[0].clock, 1, 4096, &seal, &io, &b->err), 0);
    blockio_close(io);
    assert_int_equal(pwrite(b->image_fd, "x", 1, (off_t)seal.offset), 1);
    assert_int_equal(blockio_open_sealed(m->backend, m->handle, &m->facts, b->target[0].clock, 1, 4096, &seal, &io, &b->err), -1);
    assert_non_null(strstr(b->err.msg, "another disk now"));
}

/* Nothing fails, nothing is counted as an error: the disk is asked all the same, and past the page cache. */
static void a_device_exchanged_without_a_sign(void **state) {
    static const char written[] = "what was written";
    struct bench *b = *state;
    const struct seal seal = {.offset = 8192 + 24, .bytes = written, .len = sizeof(written)};
    struct devwatch *watch;
    struct kinds kinds = {.n = 0};
    char sys[120], path[600], why[240];
    unsigned seen = 0;

    NEED_ROOT();
    assert_int_equal(attach_loop(b), 0);
    assert_int_equal(pwrite(b->image_fd, written, sizeof(written), (off_t)seal.offset), sizeof(written));
    snprintf(sys, sizeof(sys), "%s/sys", b->folder);
    snprintf(path, sizeof(path), "mkdir -p %s/dev/block/8:0/device && echo 0x0 >%s/dev/block/8:0/device/ioerr_cnt", sys, sys);
    assert_int_equal(system(path), 0);
    struct devguard *guard = devguard_new("/nonexistent", 0, b->loop_fd, why, sizeof(why)); /* this descriptor is buffered */
    assert_non_null(guard);
    devguard_seal(guard, &seal);
    assert_true(devguard_same(guard, why, sizeof(why)));
    assert_int_equal(devwatch_start(sys, makedev(8, 0), guard, &watch, &b->err), 0);
    assert_non_null(watch);
    assert_int_equal(pwrite(b->image_fd, "x", 1, (off_t)seal.offset), 1);
    for (int tries = 0; tries < 1000 && devguard_admit(guard, &seen, &kinds) == 0; tries++) usleep(10000);
    devwatch_stop(watch);
    assert_int_equal(kinds.n, 1);
    assert_non_null(strstr(kinds.kind[0].text, "another disk now, by the same name"));
    assert_true(devguard_reads(guard) >= 3);
    devguard_free(guard);
    snprintf(path, sizeof(path), "rm -r %s", sys);
    assert_int_equal(system(path), 0);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {T(a_mounted_device), T(a_swap_device), T(partitions_in_use),
                                       T(a_loop_device_on_a_mounted_one), T(two_loop_devices_on_one_file),
                                       T(a_loop_device_on_a_whole_with_a_mounted_part),
                                       T(a_file_behind_a_loop_device), T(a_free_device_is_written_and_used_again),
                                       T(used_where_nobody_sees_it),
                                       T(a_device_that_came_back), T(a_device_by_what_was_written),
                                       T(a_device_exchanged_without_a_sign)};
    may_run = geteuid() == 0 && access("/dev/loop-control", R_OK | W_OK) == 0 && unshare(CLONE_NEWNS) == 0 &&
              /* EINVAL: in a chroot "/" is no mount point, and its mounts are private already */
              (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 || errno == EINVAL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
