/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "safety/localdisk.h"

#define NAA "naa.600601601234abcd"

struct bench {
    char root[64], sys[80], proc[80];
    struct facts facts;
    struct err err;
    char why[300], note[160];
};

static void write_file(const struct bench *b, const char *text, size_t len, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Makes the folders that are missing. */
static void write_file(const struct bench *b, const char *text, size_t len, const char *fmt, ...) {
    char path[512];
    va_list ap;
    int n = snprintf(path, sizeof(path), "%s/", b->root);

    va_start(ap, fmt);
    vsnprintf(path + n, sizeof(path) - (size_t)n, fmt, ap);
    va_end(ap);
    for (char *slash = path + n; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, len), (ssize_t)len);
    close(fd);
}

#define FILE_TEXT(b, text, ...) write_file(b, text, strlen(text), __VA_ARGS__)

static void disk(struct bench *b, const char *name, const char *dev, const char *wwid) {
    FILE_TEXT(b, dev, "sys/block/%s/dev", name);
    FILE_TEXT(b, "", "sys/block/%s/holders/.keep", name);
    if (wwid) FILE_TEXT(b, wwid, "sys/block/%s/device/wwid", name);
}

static void partition(struct bench *b, const char *name, unsigned n, const char *dev) {
    char text[8];

    snprintf(text, sizeof(text), "%u\n", n);
    FILE_TEXT(b, dev, "sys/block/%s/%s%u/dev", name, name, n);
    FILE_TEXT(b, text, "sys/block/%s/%s%u/partition", name, name, n);
}

static void hold(struct bench *b, const char *path, const char *holder) {
    FILE_TEXT(b, "", "sys/block/%s/holders/%s", path, holder);
}

static void mount_line(struct bench *b, const char *dev, const char *point, const char *type, const char *source) {
    char text[300];

    snprintf(text, sizeof(text), "29 1 %s / %s rw,relatime shared:1 - %s %s rw\n", dev, point, type, source);
    FILE_TEXT(b, text, "proc/self/mountinfo");
}

static int setup(void **state) {
    struct bench *b = calloc(1, sizeof(*b));

    strcpy(b->root, "/tmp/samedisk-test-XXXXXX");
    if (!mkdtemp(b->root)) return -1;
    snprintf(b->sys, sizeof(b->sys), "%s/sys", b->root);
    snprintf(b->proc, sizeof(b->proc), "%s/proc", b->root);
    FILE_TEXT(b, "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n", "proc/swaps");
    mount_line(b, "0:25", "/proc", "proc", "proc");
    disk(b, "sdxa", "250:0\n", "naa.5000c500aaaaaaaa\n");
    partition(b, "sdxa", 1, "250:1\n");
    partition(b, "sdxa", 2, "250:2\n");
    disk(b, "sdxb", "250:16\n", NAA "\n");
    partition(b, "sdxb", 1, "250:17\n");
    b->facts.exists = true;
    *state = b;
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw) {
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

static int teardown(void **state) {
    struct bench *b = *state;

    nftw(b->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(b);
    return 0;
}

static void set_device(struct bench *b, unsigned major, unsigned minor) {
    memset(&b->facts, 0, sizeof(b->facts));
    b->facts.exists = true;
    b->facts.kind = OBJECT_DEVICE;
    b->facts.rdev = makedev(major, minor);
    snprintf(b->facts.identity[0], sizeof(b->facts.identity[0]), "dev:%u:%u", major, minor);
}

static void set_lun(struct bench *b, const char *identity) {
    memset(&b->facts, 0, sizeof(b->facts));
    b->facts.exists = true;
    b->facts.kind = OBJECT_LUN;
    snprintf(b->facts.identity[0], sizeof(b->facts.identity[0]), "%s", identity);
}

static bool in_use(struct bench *b) {
    struct localdisk *l = NULL;

    assert_int_equal(localdisk_scan(b->sys, b->proc, &l, &b->err), 0);
    bool used = localdisk_in_use(l, &b->facts, b->why, sizeof(b->why), b->note, sizeof(b->note));
    localdisk_free(l);
    assert_true(used == (b->why[0] != '\0'));
    return used;
}

static void expect_use(struct bench *b, const char *why) {
    assert_true(in_use(b));
    assert_string_equal(b->why, why);
}

static void nobody(void **state) {
    struct bench *b = *state;

    set_device(b, 250, 16);
    assert_false(in_use(b));
    assert_string_equal(b->note, "");
    set_lun(b, "naa.6001405000000001");
    assert_false(in_use(b));
    assert_string_equal(b->note, "");
    set_lun(b, "NAA.600601601234ABCD"); /* here, and unused */
    assert_false(in_use(b));
    assert_string_equal(b->note, "/dev/sdxb");
}

static void mounted(void **state) {
    struct bench *b = *state;

    mount_line(b, "250:16", "/srv/a\\040b\\033", "ext4", "/dev/sdxb");
    set_device(b, 250, 16);
    expect_use(b, "/dev/sdxb is mounted on /srv/a b\\x1B");
    set_device(b, 250, 17);
    expect_use(b, "/dev/sdxb is mounted on /srv/a b\\x1B"); /* the whole that it is a part of */
    set_device(b, 250, 0);
    assert_false(in_use(b));
    set_lun(b, NAA);
    expect_use(b, "/dev/sdxb is mounted on /srv/a b\\x1B");
}

static void a_partition_is_mounted(void **state) {
    struct bench *b = *state;

    mount_line(b, "250:1", "/boot", "ext4", "/dev/sdxa1");
    set_device(b, 250, 0);
    expect_use(b, "/dev/sdxa1 is mounted on /boot");
    set_device(b, 250, 1);
    expect_use(b, "/dev/sdxa1 is mounted on /boot");
    set_device(b, 250, 2); /* a sibling is free */
    assert_false(in_use(b));
    set_lun(b, "naa.5000c500aaaaaaaa");
    expect_use(b, "/dev/sdxa1 is mounted on /boot");
}

static void mounted_under_another_number(void **state) {
    struct bench *b = *state;

    mount_line(b, "0:44", "/data", "btrfs", "/dev/sdxa2");
    FILE_TEXT(b, "", "sys/fs/btrfs/1111-2222/devices/sdxb1");
    set_device(b, 250, 2);
    expect_use(b, "/dev/sdxa2 is mounted on /data");
    set_device(b, 250, 17);
    expect_use(b, "/dev/sdxb1 is part of mounted btrfs 1111-2222");
}

static void mounted_in_another_namespace(void **state) {
    struct bench *b = *state;

    FILE_TEXT(b, "29 1 250:16 / /inside rw - ext4 /dev/sdxb rw\n", "proc/1/mountinfo");
    set_device(b, 250, 16);
    expect_use(b, "/dev/sdxb is mounted on /inside");
}

static void swap(void **state) {
    struct bench *b = *state;

    FILE_TEXT(b, "/dev/sdxb1                              partition\t1024\t0\t-2\n", "proc/swaps");
    set_device(b, 250, 17);
    expect_use(b, "/dev/sdxb1 is swap");
    set_device(b, 250, 16);
    expect_use(b, "/dev/sdxb1 is swap");
    set_lun(b, NAA);
    expect_use(b, "/dev/sdxb1 is swap");
}

static void swap_file(void **state) {
    struct bench *b = *state;
    char line[200], path[100];
    struct stat st;

    FILE_TEXT(b, "x", "swap file");
    snprintf(path, sizeof(path), "%s/swap file", b->root);
    snprintf(line, sizeof(line), "%s/swap\\040file file 1024 0 -2\n", b->root);
    FILE_TEXT(b, line, "proc/swaps");
    assert_int_equal(stat(path, &st), 0);
    memset(&b->facts, 0, sizeof(b->facts));
    b->facts.kind = OBJECT_FILE;
    snprintf(b->facts.identity[0], sizeof(b->facts.identity[0]), "file:%u:%u:%ju", major(st.st_dev), minor(st.st_dev),
             (uintmax_t)st.st_ino);
    expect_use(b, "it is a swap file of this machine");
}

static void a_file_that_is_served(void **state) {
    struct bench *b = *state;
    char text[300], path[100];
    struct stat st;

    FILE_TEXT(b, "x", "lun 0");
    FILE_TEXT(b, "x", "namespace");
    snprintf(text, sizeof(text), "Status: ACTIVATED  SectorSize: 512\n        TCM FILEIO ID: 0        File: %s/lun 0  Size: 1  "
             "Mode: O_DSYNC\n",
             b->root);
    FILE_TEXT(b, text, "sys/kernel/config/target/core/fileio_0/one/info");
    FILE_TEXT(b, "4\n", "sys/kernel/config/target/core/fileio_0/hba_info");
    snprintf(text, sizeof(text), "%s/namespace\n", b->root);
    FILE_TEXT(b, text, "sys/kernel/config/nvmet/subsystems/nqn.a/namespaces/1/device_path");
    memset(&b->facts, 0, sizeof(b->facts));
    b->facts.kind = OBJECT_FILE;
    snprintf(path, sizeof(path), "%s/lun 0", b->root);
    assert_int_equal(stat(path, &st), 0);
    snprintf(b->facts.identity[0], sizeof(b->facts.identity[0]), "file:%u:%u:%ju", major(st.st_dev), minor(st.st_dev),
             (uintmax_t)st.st_ino);
    expect_use(b, "it is served as a LUN by this machine (LIO fileio_0/one)");
    snprintf(path, sizeof(path), "%s/namespace", b->root);
    assert_int_equal(stat(path, &st), 0);
    snprintf(b->facts.identity[0], sizeof(b->facts.identity[0]), "file:%u:%u:%ju", major(st.st_dev), minor(st.st_dev),
             (uintmax_t)st.st_ino);
    expect_use(b, "it is served as a LUN by this machine (NVMe namespaces/1)");
}

static void held(void **state) {
    struct bench *b = *state;

    disk(b, "dm-97", "251:0\n", NULL);
    FILE_TEXT(b, "LVM-abcdef\n", "sys/block/dm-97/dm/uuid");
    hold(b, "sdxb/sdxb1", "dm-97");
    set_device(b, 250, 17);
    expect_use(b, "/dev/sdxb1 is held by /dev/dm-97");
    set_device(b, 250, 16);
    expect_use(b, "/dev/sdxb1 is held by /dev/dm-97");
    set_lun(b, NAA);
    expect_use(b, "/dev/sdxb1 is held by /dev/dm-97");
    set_device(b, 251, 0); /* the logical volume itself is free */
    assert_false(in_use(b));
    mount_line(b, "251:0", "/lv", "xfs", "/dev/mapper/vg-lv");
    expect_use(b, "/dev/dm-97 is mounted on /lv");
}

/* sdxb and sdxc are two paths of one LUN, dm-98 is their map. */
static void make_multipath(struct bench *b) {
    disk(b, "sdxc", "250:32\n", NAA "\n");
    partition(b, "sdxc", 1, "250:33\n");
    disk(b, "dm-98", "251:1\n", NULL);
    FILE_TEXT(b, "mpath-3600601601234abcd\n", "sys/block/dm-98/dm/uuid");
    hold(b, "sdxb", "dm-98");
    hold(b, "sdxc", "dm-98");
}

static void a_multipath_map_is_no_user(void **state) {
    struct bench *b = *state;

    make_multipath(b);
    set_device(b, 251, 1); /* written by the map: its paths are held by it, of course */
    assert_false(in_use(b));
    assert_string_equal(b->note, "/dev/sdxb, /dev/sdxc");
    set_lun(b, NAA); /* by iSCSI, and nobody uses the map */
    assert_false(in_use(b));
    set_device(b, 250, 16); /* by one path, behind the map's back */
    expect_use(b, "/dev/sdxb is held by /dev/dm-98");
}

static void but_the_maps_users_are(void **state) {
    struct bench *b = *state;

    make_multipath(b);
    mount_line(b, "251:1", "/vmfs", "ext4", "/dev/mapper/mpatha");
    set_lun(b, NAA);
    expect_use(b, "/dev/dm-98 is mounted on /vmfs");
    set_device(b, 251, 1);
    expect_use(b, "/dev/dm-98 is mounted on /vmfs");
}

static void a_path_that_is_mounted_behind_the_map(void **state) {
    struct bench *b = *state;

    make_multipath(b);
    mount_line(b, "250:33", "/oops", "ext4", "/dev/sdxc1");
    set_device(b, 251, 1);
    expect_use(b, "/dev/sdxc1 is mounted on /oops");
}

static void the_same_partition_by_another_path(void **state) {
    struct bench *b = *state;

    disk(b, "sdxc", "250:32\n", NAA "\n");
    partition(b, "sdxc", 1, "250:33\n");
    partition(b, "sdxc", 2, "250:34\n");
    partition(b, "sdxb", 2, "250:18\n");
    mount_line(b, "250:33", "/twin", "ext4", "/dev/sdxc1");
    set_device(b, 250, 17);
    expect_use(b, "/dev/sdxc1 is mounted on /twin");
    set_device(b, 250, 18);
    assert_false(in_use(b));
}

static void behind_a_loop_device(void **state) {
    struct bench *b = *state;
    char path[100];
    struct stat st;

    disk(b, "loop97", "7:97\n", NULL);
    FILE_TEXT(b, "/dev/sdxb1\n", "sys/block/loop97/loop/backing_file");
    set_device(b, 250, 17);
    expect_use(b, "/dev/sdxb1 is behind loop device /dev/loop97");
    disk(b, "loop98", "7:98\n", NULL);
    FILE_TEXT(b, "x", "image");
    snprintf(path, sizeof(path), "%s/image", b->root);
    FILE_TEXT(b, path, "sys/block/loop98/loop/backing_file");
    assert_int_equal(stat(path, &st), 0);
    memset(&b->facts, 0, sizeof(b->facts));
    b->facts.kind = OBJECT_FILE;
    snprintf(b->facts.identity[0], sizeof(b->facts.identity[0]), "file:%u:%u:%ju", major(st.st_dev), minor(st.st_dev),
             (uintmax_t)st.st_ino);
    assert_false(in_use(b)); /* attached, and nobody uses it */
    assert_string_equal(b->note, "/dev/loop98");
    mount_line(b, "7:98", "/image", "ext4", "/dev/loop98");
    expect_use(b, "/dev/loop98 is mounted on /image");
}

static void loop_over(struct bench *b, const char *name, const char *dev, const char *backing) {
    disk(b, name, dev, NULL);
    FILE_TEXT(b, backing, "sys/block/%s/loop/backing_file", name);
}

/* loop90 on sdxa, whose first partition is mounted; loop91 on loop90; loop92 on the second partition. */
static void a_loop_over_a_disk_with_a_mounted_partition(void **state) {
    struct bench *b = *state;

    loop_over(b, "loop90", "7:90\n", "/dev/sdxa\n");
    loop_over(b, "loop91", "7:91\n", "/dev/loop90\n");
    set_device(b, 7, 91);
    assert_false(in_use(b));
    set_device(b, 7, 90);
    expect_use(b, "/dev/loop90 is behind loop device /dev/loop91");
    mount_line(b, "250:1", "/boot", "ext4", "/dev/sdxa1");
    set_device(b, 7, 91);
    expect_use(b, "/dev/sdxa1 is mounted on /boot");
    loop_over(b, "loop92", "7:92\n", "/dev/sdxa2\n");
    set_device(b, 7, 92);
    expect_use(b, "/dev/sdxa is behind loop device /dev/loop90"); /* which has the same blocks */
}

static void a_loop_over_something_mounted(void **state) {
    struct bench *b = *state;

    loop_over(b, "loop90", "7:90\n", "/dev/sdxb1\n");
    set_device(b, 7, 90);
    assert_false(in_use(b));
    mount_line(b, "250:17", "/srv", "ext4", "/dev/sdxb1");
    expect_use(b, "/dev/sdxb1 is mounted on /srv");
    FILE_TEXT(b, "7:901\n", "sys/block/loop90/loop90p1/dev");
    FILE_TEXT(b, "1\n", "sys/block/loop90/loop90p1/partition");
    set_device(b, 7, 901); /* a part of it */
    expect_use(b, "/dev/sdxb1 is mounted on /srv");
}

static void a_loop_over_what_another_road_uses(void **state) {
    struct bench *b = *state;

    disk(b, "sdxc", "250:32\n", NAA "\n");
    loop_over(b, "loop90", "7:90\n", "/dev/sdxb\n");
    set_device(b, 7, 90);
    assert_false(in_use(b));
    mount_line(b, "250:32", "/other", "ext4", "/dev/sdxc");
    expect_use(b, "/dev/sdxc is mounted on /other");
}

static void a_loop_over_nobody_knows_what(void **state) {
    struct bench *b = *state;

    loop_over(b, "loop90", "7:90\n", "/no/such/file (deleted)\n");
    set_device(b, 7, 90);
    expect_use(b, "/dev/loop90 is on something that nobody can name");
}

/* dm-90 and dm-91 are both on sdxb1. */
static void beside_a_mounted_map(void **state) {
    struct bench *b = *state;

    disk(b, "dm-90", "251:90\n", NULL);
    disk(b, "dm-91", "251:91\n", NULL);
    hold(b, "sdxb/sdxb1", "dm-90");
    hold(b, "sdxb/sdxb1", "dm-91");
    set_device(b, 251, 90);
    assert_false(in_use(b));
    mount_line(b, "251:91", "/m", "ext4", "/dev/mapper/m");
    expect_use(b, "/dev/dm-91 is mounted on /m"); /* maybe the same blocks */
    FILE_TEXT(b, "LVM-aaaa\n", "sys/block/dm-90/dm/uuid");
    expect_use(b, "/dev/dm-91 is mounted on /m");
    FILE_TEXT(b, "LVM-bbbb\n", "sys/block/dm-91/dm/uuid"); /* other blocks: the volume manager sees to it */
    assert_false(in_use(b));
    mount_line(b, "250:16", "/whole", "ext4", "/dev/sdxb");
    expect_use(b, "/dev/sdxb is mounted on /whole");
}

/* md97 on sdxa2 and sdxb1, dm-90 (encrypted) on md97, dm-92 on md97 as well, loop90 on dm-92. */
static void far_down_a_chain(void **state) {
    struct bench *b = *state;

    disk(b, "md97", "9:97\n", NULL);
    disk(b, "dm-90", "251:90\n", NULL);
    disk(b, "dm-92", "251:92\n", NULL);
    hold(b, "sdxa/sdxa2", "md97");
    hold(b, "sdxb/sdxb1", "md97");
    hold(b, "md97", "dm-90");
    mount_line(b, "250:1", "/boot", "ext4", "/dev/sdxa1"); /* beside it: nothing to do with it */
    set_device(b, 251, 90);
    assert_false(in_use(b));
    set_device(b, 9, 97);
    expect_use(b, "/dev/md97 is held by /dev/dm-90");
    hold(b, "md97", "dm-92");
    loop_over(b, "loop90", "7:90\n", "/dev/dm-92\n");
    set_device(b, 251, 90);
    expect_use(b, "/dev/dm-92 is behind loop device /dev/loop90");
    mount_line(b, "9:97", "/md", "ext4", "/dev/md97");
    set_device(b, 7, 90);
    expect_use(b, "/dev/md97 is mounted on /md");
}

static void two_loops_on_one_file(void **state) {
    struct bench *b = *state;
    char path[100], line[200];

    FILE_TEXT(b, "x", "image");
    snprintf(path, sizeof(path), "%s/image", b->root);
    loop_over(b, "loop90", "7:90\n", path);
    loop_over(b, "loop91", "7:91\n", path);
    loop_over(b, "loop92", "7:92\n", "/dev/loop90\n");
    set_device(b, 7, 92);
    assert_false(in_use(b));
    mount_line(b, "7:91", "/image", "ext4", "/dev/loop91");
    expect_use(b, "/dev/loop91 is mounted on /image"); /* two steps down, and up the other way */
    set_device(b, 7, 90);
    assert_true(in_use(b));
    disk(b, "loop93", "7:93\n", NULL);
    FILE_TEXT(b, "y", "pages");
    snprintf(path, sizeof(path), "%s/pages", b->root);
    FILE_TEXT(b, path, "sys/block/loop93/loop/backing_file");
    set_device(b, 7, 93);
    assert_false(in_use(b));
    snprintf(line, sizeof(line), "%s file 1024 0 -2\n", path);
    FILE_TEXT(b, line, "proc/swaps");
    expect_use(b, "it is a swap file of this machine");
}

/* A page of designators: one of a port, a T10 name, an EUI, a NAA name, a SCSI name string. */
static const unsigned char page83[] = {0,    0x83, 0,    12 + 20 + 12 + 20 + 24,
                                       0x61, 0x93, 0,    8,
                                       0x50, 0,    0,    0,
                                       0,    0,    0,    1,
                                       0x02, 0x01, 0,    16,
                                       'A',  'C',  'M',  'E',
                                       ' ',  ' ',  ' ',  ' ',
                                       'd',  'i',  's',  'k',
                                       ' ',  '7',  ' ',  ' ',
                                       0x01, 0x02, 0,    8,
                                       0,    0x25, 0x38, 1,
                                       2,    3,    4,    5,
                                       0x01, 0x03, 0,    16,
                                       0x60, 0x0a, 0x09, 0x80,
                                       0,    0,    0,    0,
                                       0,    0,    0,    0,
                                       0,    0,    0,    0x42,
                                       0x03, 0x08, 0,    20,
                                       'e',  'u',  'i',  '.',
                                       'A',  'B',  'C',  'D',
                                       '0',  '0',  '0',  '0',
                                       '0',  '0',  '0',  '0',
                                       '0',  '0',  '0',  '1'};

static void every_designator_of_the_page_counts(void **state) {
    struct bench *b = *state;
    static const char *const names[] = {"naa.600a0980000000000000000000000042", "t10.ACME disk 7",
                                        "eui.0025380102030405", "eui.ABCD000000000001"};

    disk(b, "sdxd", "250:48\n", NULL);
    write_file(b, (const char *)page83, sizeof(page83), "sys/block/sdxd/device/vpd_pg83");
    mount_line(b, "250:48", "/d", "ext4", "/dev/sdxd");
    for (unsigned i = 0; i < 4; i++) {
        set_lun(b, names[i]);
        expect_use(b, "/dev/sdxd is mounted on /d");
    }
    set_lun(b, "naa.5000000000000001"); /* the port's name is not the LUN's */
    assert_false(in_use(b));
}

static void pages_that_are_cut(void **state) {
    struct bench *b = *state;

    for (unsigned n = 0; n < sizeof(page83); n++) {
        char name[16], dev[16];
        snprintf(name, sizeof(name), "sdy%u", n);
        snprintf(dev, sizeof(dev), "252:%u\n", n);
        disk(b, name, dev, NULL);
        write_file(b, (const char *)page83, n, "sys/block/%s/device/vpd_pg83", name);
        write_file(b, (const char *)page83, n, "sys/block/%s/device/vpd_pg80", name);
    }
    set_lun(b, "eui.ABCD000000000001");
    assert_false(in_use(b));
    assert_string_equal(b->note, "");
}

static void serial_numbers(void **state) {
    struct bench *b = *state;

    disk(b, "sdxd", "250:48\n", NULL);
    write_file(b, "\0\x80\0\x08  SN0042", 12, "sys/block/sdxd/device/vpd_pg80");
    disk(b, "sdxe", "250:64\n", "naa.6001\n");
    write_file(b, "\0\x80\0\x08  SN0042", 12, "sys/block/sdxe/device/vpd_pg80");
    disk(b, "sdxf", "250:80\n", NULL);
    write_file(b, "\0\x80\0\x04    ", 8, "sys/block/sdxf/device/vpd_pg80"); /* blank: names nothing */
    set_lun(b, "serial.SN0042");
    assert_false(in_use(b));
    assert_string_equal(b->note, "/dev/sdxd, /dev/sdxe");
    strcpy(b->facts.identity[1], "naa.6002"); /* its name says that it is not sdxe */
    assert_false(in_use(b));
    assert_string_equal(b->note, "/dev/sdxd");
    FILE_TEXT(b, "ACME    \n", "sys/block/sdxd/device/vendor");
    FILE_TEXT(b, "Disk 7  \n", "sys/block/sdxd/device/model");
    set_lun(b, "serial.ACME.Disk 7.SN0042");
    assert_false(in_use(b));
    assert_string_equal(b->note, "/dev/sdxd");
    set_lun(b, "serial.");
    assert_false(in_use(b));
    assert_string_equal(b->note, "");
}

static void nvme(void **state) {
    struct bench *b = *state;

    FILE_TEXT(b, "259:0\n", "sys/block/nvme9n1/dev");
    FILE_TEXT(b, "eui.0025385b71b00a01\n", "sys/block/nvme9n1/wwid");
    FILE_TEXT(b, "x\n", "sys/block/nvme9c0n1/wwid"); /* a hidden path has no device number */
    mount_line(b, "259:0", "/n", "ext4", "/dev/nvme9n1");
    set_lun(b, "eui.0025385b71b00a01");
    expect_use(b, "/dev/nvme9n1 is mounted on /n");
}

static void what_sysfs_does_not_list_is_not_written(void **state) {
    struct bench *b = *state;

    set_device(b, 250, 160);
    expect_use(b, "sysfs does not list device 250:160, so nobody can say whether it is in use");
}

static void what_cannot_be_read_is_an_error(void **state) {
    struct bench *b = *state;
    struct localdisk *l = (struct localdisk *)1;

    assert_int_equal(localdisk_scan("/nowhere", b->proc, &l, &b->err), -1);
    assert_null(l);
    assert_int_equal(b->err.status, STATUS_USAGE);
    assert_non_null(strstr(b->err.msg, "/nowhere/block: No such file or directory; without it"));
    assert_int_equal(localdisk_scan(b->sys, "/nowhere", &l, &b->err), -1);
    assert_non_null(strstr(b->err.msg, "/nowhere/self/mountinfo"));
}

static void this_machine(void **state) {
    struct bench *b = *state;
    struct localdisk *l = NULL;

    if (access("/sys/block", R_OK) != 0 || access("/proc/self/mountinfo", R_OK) != 0) skip();
    assert_int_equal(localdisk_scan("/sys", "/proc", &l, &b->err), 0);
    set_lun(b, "naa.0000000000000000");
    assert_false(localdisk_in_use(l, &b->facts, b->why, sizeof(b->why), b->note, sizeof(b->note)));
    localdisk_free(l);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {T(nobody),
                                       T(mounted),
                                       T(a_partition_is_mounted),
                                       T(mounted_under_another_number),
                                       T(mounted_in_another_namespace),
                                       T(swap),
                                       T(swap_file), T(a_file_that_is_served),
                                       T(held),
                                       T(a_multipath_map_is_no_user),
                                       T(but_the_maps_users_are),
                                       T(a_path_that_is_mounted_behind_the_map),
                                       T(the_same_partition_by_another_path),
                                       T(behind_a_loop_device),
                                       T(a_loop_over_a_disk_with_a_mounted_partition),
                                       T(a_loop_over_something_mounted),
                                       T(a_loop_over_what_another_road_uses),
                                       T(a_loop_over_nobody_knows_what),
                                       T(beside_a_mounted_map),
                                       T(far_down_a_chain),
                                       T(two_loops_on_one_file),
                                       T(every_designator_of_the_page_counts),
                                       T(pages_that_are_cut),
                                       T(serial_numbers),
                                       T(nvme),
                                       T(what_sysfs_does_not_list_is_not_written),
                                       T(what_cannot_be_read_is_an_error),
                                       T(this_machine)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
