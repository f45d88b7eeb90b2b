/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is read from sysfs, on made-up machines: an FC disk with a partition, a multipath map, kernel iSCSI, NVMe,
 * loop, zram. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "backends/local/blockdev.h"
#include "backends/local/blockid.h"
#include "backends/local/devguard.h"
#include "backends/local/devwatch.h"
#include "backends/local/dm.h"
#include "backends/local/nvme.h"
#include "backends/local/reservations.h"
#include "backends/local/sgio.h"

static char sys[64];

/* ---- the made-up sysfs ---- */

static void make_folders(char *path) {
    for (char *p = path + strlen(sys) + 1; (p = strchr(p, '/')); p++) {
        *p = 0;
        (void)mkdir(path, 0700);
        *p = '/';
    }
}

static void put_bytes(const char *name, const void *data, size_t len) {
    char path[600];
    snprintf(path, sizeof path, "%s/%s", sys, name);
    make_folders(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, len), len);
    close(fd);
}

static void put(const char *folder, const char *name, const char *text) {
    char path[500], line[300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    snprintf(line, sizeof line, "%s\n", text);
    put_bytes(path, line, strlen(line));
}

static void put_link(const char *name, const char *folder) {
    char path[600], to[600];
    snprintf(path, sizeof path, "%s/%s", sys, name);
    make_folders(path);
    snprintf(to, sizeof to, "%s/%s", sys, folder);
    assert_int_equal(symlink(to, path), 0);
}

static void make_disk(const char *folder, const char *number) {
    char name[64];
    put(folder, "dev", number);
    put(folder, "stat", "  100 5 800 10 200 6 1600 20 0 30 40");
    put(folder, "queue/logical_block_size", "512");
    put(folder, "queue/physical_block_size", "4096");
    put(folder, "queue/max_sectors_kb", "512");
    put(folder, "queue/scheduler", "mq-deadline [none] kyber");
    put(folder, "queue/nr_requests", "64");
    put(folder, "queue/nomerges", "2");
    put(folder, "queue/rotational", "0");
    put(folder, "queue/write_cache", "write back");
    snprintf(name, sizeof name, "dev/block/%s", number);
    put_link(name, folder);
}

#define FC_DISK "devices/pci0000:00/0000:00:05.0/host2/rport-2:0-1/target2:0:0/2:0:0:7/block/sda"

static void make_fc(void) {
    char folder[300];
    make_disk(FC_DISK, "8:0");
    put(FC_DISK, "device/vendor", "NETAPP  ");
    put(FC_DISK, "device/model", "LUN C-Mode      ");
    put(FC_DISK, "device/wwid", "naa.600a098038303053453f463045727654");
    put(FC_DISK, "device/state", "running");
    put(FC_DISK, "device/queue_depth", "30");
    put("class/fc_remote_ports/rport-2:0-1", "port_name", "0x2001d039ea123456");
    put("class/fc_remote_ports/rport-2:0-1", "port_state", "Online");
    put("class/fc_host/host2", "port_name", "0x10000090faf00001");
    put("class/fc_host/host2", "speed", "8 Gbit");
    snprintf(folder, sizeof folder, "%s/sda1", FC_DISK);
    put(folder, "dev", "8:1");
    put(folder, "partition", "1");
    put(folder, "stat", "7 0 0 0 8 0 0 0 0 0 0");
    put(folder, "alignment_offset", "3584");
    put(folder, "ro", "1");
    put(folder, "holders/dm-9", "");
    put_link("dev/block/8:1", FC_DISK "/sda1");
}

static void make_multipath(void) {
    make_disk("devices/virtual/block/dm-0", "253:0");
    put("devices/virtual/block/dm-0", "dm/name", "mpatha");
    put("devices/virtual/block/dm-0", "dm/uuid", "mpath-3600a098038303053453f463045727654");
    put_link("devices/virtual/block/dm-0/slaves/sda", FC_DISK);
    make_disk("devices/virtual/block/dm-1", "253:1");
    put("devices/virtual/block/dm-1", "dm/uuid", "LVM-abc");
}

static void make_others(void) {
    make_disk("devices/platform/host5/session3/target5:0:0/5:0:0:1/block/sdb", "8:16");
    put("class/iscsi_session/session3", "targetname", "iqn.2003-01.org.example:lun");
    put("class/iscsi_connection/connection3:0", "persistent_address", "10.0.0.9");
    put("class/iscsi_connection/connection3:0", "persistent_port", "3260");
    make_disk("devices/pci0000:00/nvme/nvme0/nvme0n1", "259:0");
    make_disk("devices/pci0000:00/ata1/host1/target1:0:0/1:0:0:0/block/sdc", "8:32");
    put("devices/pci0000:00/ata1/host1/target1:0:0/1:0:0:0/block/sdc", "device/vendor", "ATA     ");
    put("devices/pci0000:00/ata1/host1/target1:0:0/1:0:0:0/block/sdc", "device/model", "Disk 9");
    put_bytes("devices/pci0000:00/ata1/host1/target1:0:0/1:0:0:0/block/sdc/device/vpd_pg80", "\0\x80\0\x06  AB1 ", 10);
    put("devices/pci0000:00/nvme/nvme0/nvme0n1", "wwid", "eui.0025385b71b00e01");
    put("devices/pci0000:00/nvme/nvme0/nvme0n1", "device/transport", "tcp");
    put("devices/pci0000:00/nvme/nvme0/nvme0n1", "queue/write_cache", "write through");
    make_disk("devices/virtual/block/zram0", "252:0");
    put("devices/virtual/block/zram0", "queue/write_cache", "write through");
    put("devices/virtual/block/zram0", "queue/iostats", "0");
    make_disk("devices/virtual/block/loop3", "7:3");
    char file[200];
    put("", "image", "x");
    snprintf(file, sizeof file, "%s/image", sys);
    put("devices/virtual/block/loop3", "loop/backing_file", file);
    put("devices/virtual/block/loop3", "loop/dio", "0");
}

static int make_all(void **state) {
    (void)state;
    strcpy(sys, "/tmp/samedisk-sysfs.XXXXXX");
    assert_non_null(mkdtemp(sys));
    make_fc();
    make_multipath();
    make_others();
    return 0;
}

static int drop(const char *path, const struct stat *st, int flag, struct FTW *ftw) {
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

static int drop_all(void **state) {
    (void)state;
    return nftw(sys, drop, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- tests ---- */

static struct facts ask(unsigned maj, unsigned min) {
    struct facts f = {.size = 1ULL << 40};
    blockdev_facts(sys, makedev(maj, min), &f);
    return f;
}

static void text_is(const struct kv *kv, const char *key, const char *text) {
    const struct kv_item *item = kv_find(kv, key);
    if (!item || item->type != KV_TEXT) fail_msg("no text %s", key);
    else assert_string_equal(item->text, text);
}

static void fibre_channel(void **state) {
    (void)state;
    struct facts f = ask(8, 0);
    assert_string_equal(f.identity[0], "naa.600a098038303053453f463045727654");
    assert_string_equal(f.identity[1], "dev:8:0");
    assert_string_equal(f.identity[2], "");
    assert_int_equal(f.volatile_cache, ANSWER_YES);
    assert_string_equal(f.summary, "FC device sda NETAPP LUN C-Mode, 1.00 TiB");
    text_is(&f.negotiated, "transport", "FC");
    text_is(&f.negotiated, "target_wwpn", "0x2001d039ea123456");
    text_is(&f.negotiated, "host_wwpn", "0x10000090faf00001");
    text_is(&f.negotiated, "fc_speed", "8 Gbit");
    text_is(&f.negotiated, "scheduler", "none");
    assert_int_equal(kv_get_uint(&f.negotiated, "queue_depth", 0), 30);
    assert_int_equal(kv_get_uint(&f.negotiated, "max_sectors_kb", 0), 512);
    assert_int_equal(kv_get_uint(&f.negotiated, "nomerges", 9), 2);
    assert_null(kv_find(&f.negotiated, "optimal_io_size")); /* not there: not made up */
    assert_false(f.read_only);
    assert_int_equal(f.warnings.n, 0);
    facts_free(&f);
}

static void partition(void **state) {
    uint64_t ios;
    (void)state;
    struct facts f = ask(8, 1);
    assert_string_equal(f.identity[0], "dev:8:1"); /* not its disk's: it is another object */
    assert_string_equal(f.identity[1], "");
    text_is(&f.negotiated, "partition_of", "naa.600a098038303053453f463045727654");
    text_is(&f.negotiated, "scheduler", "none");
    assert_true(f.read_only);
    assert_non_null(kv_find(&f.warnings, "alignment"));
    facts_free(&f);
    assert_int_equal(blockdev_ios(sys, makedev(8, 1), &ios), 0);
    assert_int_equal(ios, 15);
    assert_int_equal(blockdev_ios(sys, makedev(8, 0), &ios), 0);
    assert_int_equal(ios, 300);
    assert_int_equal(blockdev_logical(sys, makedev(8, 1)), 512);
    assert_int_equal(blockdev_logical(sys, makedev(9, 9)), 0);
    assert_int_equal(blockdev_ios(sys, makedev(9, 9), &ios), -1);
    assert_int_equal(blockdev_ios(sys, makedev(252, 0), &ios), -1); /* iostats is off: zeros would be a lie */
}

static void multipath(void **state) {
    (void)state;
    struct facts f = ask(253, 0);
    assert_string_equal(f.identity[0], "naa.600a098038303053453f463045727654");
    text_is(&f.negotiated, "dm_name", "mpatha");
    text_is(&f.negotiated, "paths", "sda FC running");
    assert_int_equal(kv_get_uint(&f.negotiated, "sda_queue_depth", 0), 30);
    assert_int_equal(kv_get_uint(&f.negotiated, "path_count", 0), 1);
    text_is(&f.negotiated, "sda_target_wwpn", "0x2001d039ea123456");
    facts_free(&f);
    f = ask(253, 1);
    assert_string_equal(f.identity[0], "dev:253:1");
    facts_free(&f);
}

static void other_transports(void **state) {
    (void)state;
    struct facts f = ask(8, 16);
    text_is(&f.negotiated, "transport", "iSCSI");
    text_is(&f.negotiated, "iqn", "iqn.2003-01.org.example:lun");
    text_is(&f.negotiated, "portal", "10.0.0.9:3260");
    facts_free(&f);
    f = ask(259, 0);
    text_is(&f.negotiated, "transport", "NVMe/TCP");
    text_is(&f.negotiated, "nvme_transport", "tcp");
    assert_string_equal(f.identity[0], "eui.0025385b71b00e01");
    assert_int_equal(f.volatile_cache, ANSWER_NO);
    facts_free(&f);
    f = ask(8, 32);
    text_is(&f.negotiated, "transport", "SATA");
    assert_string_equal(f.identity[0], "serial.ATA.Disk 9.AB1");
    facts_free(&f);
    f = ask(252, 0);
    assert_non_null(kv_find(&f.warnings, "memory"));
    assert_int_equal(f.volatile_cache, ANSWER_YES);
    facts_free(&f);
}

static void loop(void **state) {
    struct stat st;
    char path[200], identity[128];
    (void)state;
    struct facts f = ask(7, 3);
    snprintf(path, sizeof path, "%s/image", sys);
    assert_int_equal(stat(path, &st), 0);
    snprintf(identity, sizeof identity, "file:%u:%u:%llu", major(st.st_dev), minor(st.st_dev),
             (unsigned long long)st.st_ino);
    assert_string_equal(f.identity[0], "dev:7:3");
    assert_string_equal(f.identity[1], identity);
    assert_non_null(kv_find(&f.warnings, "page-cache"));
    facts_free(&f);
}

static void nothing_known(void **state) {
    (void)state;
    struct facts f = ask(9, 9);
    assert_string_equal(f.identity[0], "dev:9:9");
    assert_int_equal(f.volatile_cache, ANSWER_UNKNOWN);
    facts_free(&f);
}

static void users(void **state) {
    static const char mounts[] =
        "40 1 8:1 / /data\\040one rw - ext4 /dev/sda1 rw\n41 1 8:16 / /b rw - ext4 /dev/sdb rw\n";
    static const char swaps[] = "Filename Type Size\n/dev/sda12\tpartition 1\n/dev/sda1 \tpartition 1\n";
    char buf[256], small[20];
    (void)state;
    blockdev_users(sys, mounts, NULL, makedev(8, 0), buf, sizeof buf);
    assert_string_equal(buf, "/dev/sda1 is mounted on /data one; /dev/sda1 is held by dm-9");
    blockdev_users(sys, NULL, swaps, makedev(8, 1), buf, sizeof buf);
    assert_string_equal(buf, "/dev/sda1 is swap; /dev/sda1 is held by dm-9");
    blockdev_users(sys, NULL, swaps, makedev(8, 16), buf, sizeof buf);
    assert_string_equal(buf, "");
    blockdev_users(sys, mounts, swaps, makedev(8, 0), small, sizeof small);
    assert_int_equal(strlen(small), sizeof small - 1);
}

/* The kernel mends an error without a word, and counts it. */
static void errors_are_watched(void **state) {
    struct devwatch *watch;
    struct kinds kinds = {.n = 0};
    struct err err;
    char why[200];
    unsigned seen = 0;
    (void)state;
    put(FC_DISK, "device/ioerr_cnt", "0x3");
    struct devguard *guard = devguard_new("/nonexistent", 0, -1, why, sizeof why); /* says that it is gone when asked */
    assert_int_equal(devwatch_start(sys, makedev(253, 0), guard, &watch, &err), 0); /* a map: its path */
    assert_non_null(watch);
    assert_int_equal(devguard_admit(guard, &seen, &kinds), 0);
    put(FC_DISK, "device/ioerr_cnt", "0x4");
    for (int tries = 0; tries < 500 && !kinds.n; tries++) {
        (void)devguard_admit(guard, &seen, &kinds);
        usleep(10000);
    }
    devwatch_stop(watch);
    assert_string_equal(kinds.kind[0].name, "another disk");
    devguard_free(guard);
    assert_int_equal(devwatch_start(sys, makedev(7, 3), NULL, &watch, &err), 0); /* no SCSI disk */
    assert_null(watch);
    devwatch_stop(watch);
}

static void commands_that_are_sent_again(void **state) {
    static const uint8_t attention[18] = {0x70, 0, 6, [12] = 0x3f, [13] = 0x0e}, medium[18] = {0x70, 0, 3, [12] = 0x11},
                         transition[8] = {0x72, 2, 0x04, 0x0a}, no_medium[18] = {0x70, 0, 2, [12] = 0x3a};
    bool pause;
    (void)state;
    assert_true(sgio_again(2, 0, attention, sizeof attention, &pause) && !pause);
    assert_true(sgio_again(2, 0, transition, sizeof transition, &pause) && pause);
    assert_true(sgio_again(0x08, 0, NULL, 0, &pause) && pause); /* BUSY, TASK SET FULL */
    assert_true(sgio_again(0x28, 0, NULL, 0, &pause) && pause);
    assert_true(sgio_again(0, 0x0e, NULL, 0, &pause) && pause); /* the session is gone for a while */
    assert_false(sgio_again(2, 0, medium, sizeof medium, &pause));
    assert_false(sgio_again(2, 0, no_medium, sizeof no_medium, &pause));
    assert_false(sgio_again(0x18, 0, NULL, 0, &pause)); /* RESERVATION CONFLICT */
    assert_false(sgio_again(0, 0x01, NULL, 0, &pause)); /* no such device any more */
}

static void what_a_failure_means(void **state) {
    static const uint8_t opcode[18] = {0x70, 0, 5, [12] = 0x20}, field[8] = {0x72, 5, 0x24, 0}, unit[18] = {0x70, 0, 5, [12] = 0x25},
                         attention[18] = {0x70, 0, 6, [12] = 0x29}, hardware[18] = {0x70, 0, 4, [12] = 0x44};
    (void)state;
    assert_int_equal(sgio_failure(2, 0, opcode, sizeof opcode), -EOPNOTSUPP);
    assert_int_equal(sgio_failure(2, 0, field, sizeof field), -EOPNOTSUPP);
    assert_int_equal(sgio_failure(2, 0, unit, sizeof unit), -EIO);
    assert_int_equal(sgio_failure(2, 0, hardware, sizeof hardware), -EIO);
    assert_int_equal(sgio_failure(2, 0, attention, sizeof attention), -EBUSY);
    assert_int_equal(sgio_failure(0x08, 0, NULL, 0), -EBUSY);
    assert_int_equal(sgio_failure(0x18, 0, NULL, 0), -EBADE);
    assert_int_equal(sgio_failure(0, 0x01, NULL, 0), -EIO);
}

static const char *judged(struct reservations_answer *all, unsigned n) {
    static struct facts f;
    memset(&f, 0, sizeof f);
    reservations_judge(all, n, makedev(253, 0), &f);
    facts_free(&f);
    return f.in_use;
}

/* Nobody is known to use a disk only where it says so: no answer is not "nobody". */
static void reservations_that_are_not_known(void **state) {
    const struct road sdb = {.name = "sdb", .dev = makedev(8, 16)}, sdc = {.name = "sdc", .dev = makedev(8, 32)};
    struct reservations_answer paths[2] = {{.road = &sdb, .unit = "naa.6001"}, {.road = &sdc, .unit = "naa.6001"}};
    static const int unanswered[] = {-EIO, -EBUSY, -EBADMSG, -EPERM, -ENXIO};
    (void)state;
    assert_string_equal(judged(paths, 2), "");
    for (unsigned i = 0; i < sizeof unanswered / sizeof *unanswered; i++) {
        paths[0].rc = paths[1].rc = unanswered[i];
        assert_non_null(strstr(judged(paths, 2), "/dev/sdb, on which it stands: whether others have reserved it could not be"));
        paths[1].rc = 0; /* the other path to the same disk says it */
        assert_string_equal(judged(paths, 2), "");
        strcpy(paths[1].unit, "naa.6002"); /* of another disk */
        assert_non_null(strstr(judged(paths, 2), "could not be found out"));
        strcpy(paths[1].unit, "naa.6001");
    }
    paths[0].rc = -EBADE;
    assert_non_null(strstr(judged(paths, 2), "RESERVATION CONFLICT"));
    paths[0].rc = paths[1].rc = -EOPNOTSUPP;
    assert_string_equal(judged(paths, 2), "");
    paths[0].rc = paths[1].rc = -ENOTTY;
    assert_string_equal(judged(paths, 2), "");
    paths[0].rc = -EIO; /* keys were told, the reservation was not */
    paths[0].r.keys = 1;
    assert_non_null(strstr(judged(paths, 2), "keys are registered"));
}

static void vpd83(void **state) {
    /* T10 name, a port's NAA (not the unit's), the unit's EUI-64 and NAA. */
    static const unsigned char page[] = {
        0, 0x83, 0, 0, 2, 1, 0, 6, 'A', 'C', 'M', 'E', ' ', ' ', 1, 0x13, 0, 2, 9, 9,
        1, 2, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8, 1, 3, 0, 8, 0x60, 0xab, 0, 1, 2, 3, 4, 5
    };
    unsigned char copy[sizeof page];
    char buf[64];
    (void)state;
    memcpy(copy, page, sizeof page);
    copy[3] = sizeof page - 4;
    assert_true(blockid_vpd83(copy, sizeof copy, buf, sizeof buf));
    assert_string_equal(buf, "naa.60ab000102030405");
    copy[3] = 28; /* without the last */
    assert_true(blockid_vpd83(copy, sizeof copy, buf, sizeof buf));
    assert_string_equal(buf, "eui.0102030405060708");
    copy[3] = 10;
    assert_true(blockid_vpd83(copy, sizeof copy, buf, sizeof buf));
    assert_string_equal(buf, "t10.ACME");
    copy[3] = 0;
    assert_false(blockid_vpd83(copy, sizeof copy, buf, sizeof buf));
    copy[2] = 0xff; /* lengths that lie */
    copy[7] = 0xff;
    assert_false(blockid_vpd83(copy, sizeof copy, buf, sizeof buf));
    copy[1] = 0x80;
    assert_false(blockid_vpd83(copy, sizeof copy, buf, sizeof buf));
    assert_false(blockid_vpd83(copy, 2, buf, sizeof buf));
}

/* Lines as the device mapper gives them, and lines that lie. */
static void multipath_policy(void **state) {
    static const char *const bad[] = {
        "", "1", "0 0", "0 0 1 1 service-time 0 1", "0 0 1 1 service-time 0 1 1 8:16", "0 0 2 1 service-time 0 1 1 8:16 1",
        "0 0 1 1 service-time 0 1 1 8:16 1 surplus", "9999 a", "x 0 0 0", "0 0 1 1 queue-length 0 3 1 8:16 1",
    };
    struct kv kv = {0};
    (void)state;
    assert_true(dm_multipath_table("2 queue_if_no_path retain_attached_hw_handler 1 alua 2 1 service-time 0 2 2 8:16 1 1 "
                                "8:32 1 1 service-time 0 1 2 8:48 1 1 ",
                                &kv));
    text_is(&kv, "multipath_policy", "service-time");
    assert_int_equal(kv_get_uint(&kv, "multipath_groups", 0), 2);
    text_is(&kv, "multipath_group_paths", "8:16 8:32; 8:48");
    text_is(&kv, "multipath_handler", "alua");
    text_is(&kv, "multipath_features", "queue_if_no_path retain_attached_hw_handler");
    kv_free(&kv);
    assert_true(dm_multipath_table("0 0 2 1 round-robin 0 1 1 8:16 1000 queue-length 1 x 1 0 8:32", &kv));
    text_is(&kv, "multipath_policy", "round-robin, queue-length");
    assert_null(kv_find(&kv, "multipath_handler"));
    kv_free(&kv);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(dm_multipath_table(bad[i], &kv));
        assert_int_equal(kv.n, 0);
    }
}

/* Status lines as the device mapper of Linux 6.1 gives them. */
static void multipath_status(void **state) {
    static const char *const bad[] = {
        "", "2 0 0 0 1 1", "2 0 0 0 1 1 A", "2 0 0 0 1 1 A 0 1 2 8:0 A 0", "2 0 0 0 2 1 A 0 1 0 8:0 A 0",
        "2 0 0 0 1 1 A 0 1 0 8:0 A 0 surplus",
    };
    struct kv kv = {0};
    (void)state;
    assert_true(dm_multipath_status(sys, "2 0 0 0 2 1 A 0 1 2 8:0 A 0 0 1 E 0 2 2 8:16 F 3 0 1 8:48 A 0 0 1 ", &kv));
    text_is(&kv, "multipath_status", "group 1 active: sda ok; group 2 enabled: sdb failed (3 failures), 8:48 ok");
    assert_int_equal(kv_get_uint(&kv, "multipath_active_group", 0), 1);
    assert_int_equal(kv_get_uint(&kv, "paths_failed", 9), 1);
    kv_free(&kv);
    assert_true(dm_multipath_status(sys, "2 0 0 0 2 2 D 0 1 0 8:0 A 0 E 0 1 0 8:16 A 1", &kv));
    text_is(&kv, "multipath_status", "group 1 disabled: sda ok; group 2 enabled: sdb ok (1 failures)");
    assert_null(kv_find(&kv, "multipath_active_group")); /* nothing was sent yet */
    assert_int_equal(kv_get_uint(&kv, "paths_failed", 9), 0);
    kv_free(&kv);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(dm_multipath_status(sys, bad[i], &kv));
        assert_int_equal(kv.n, 0);
    }
}

/* The device mapper cannot be asked: what its programs' names say. */
static void device_mapper(void **state) {
    (void)state;
    struct facts f = ask(253, 0);
    text_is(&f.negotiated, "transport", "FC"); /* of its paths */
    dm_facts(sys, "/nonexistent/control", makedev(253, 0), &f);
    text_is(&f.negotiated, "dm_targets", "multipath");
    text_is(&f.negotiated, "multipath_policy", "unknown: the map's table could not be read from /nonexistent/control: No "
            "such file or directory");
    assert_string_equal(f.summary, "dm-multipath on FC device dm-0 mpatha, 1.00 TiB");
    facts_free(&f);
    f = ask(253, 1);
    dm_facts(sys, "/dev/null", makedev(253, 1), &f);
    text_is(&f.negotiated, "dm_targets", "LVM volume");
    assert_null(kv_find(&f.negotiated, "multipath_policy"));
    facts_free(&f);
    f = ask(8, 0);
    dm_facts(sys, "/dev/null", makedev(8, 0), &f);
    assert_null(kv_find(&f.negotiated, "dm_targets"));
    facts_free(&f);
}

#define SUBSYSTEM "devices/virtual/nvme-subsystem/nvme-subsys3"

static void nvme_path(const char *controller, const char *transport, const char *address, const char *state_, const char *ana) {
    char folder[200], from[250];
    snprintf(folder, sizeof folder, "devices/virtual/nvme-fabrics/ctl/%s", controller);
    put(folder, "transport", transport);
    put(folder, "address", address);
    put(folder, "state", state_);
    snprintf(from, sizeof from, "%s/nvme3c%sn1", folder, controller + 4);
    put(from, "ana_state", ana);
    snprintf(from, sizeof from, SUBSYSTEM "/%s", controller);
    put_link(from, folder);
}

/* Under the kernel's own multipathing the namespace belongs to a subsystem, and that has the controllers. */
static void nvme_multipath(void **state) {
    struct kv kv = {0};
    (void)state;
    make_disk(SUBSYSTEM "/nvme3n1", "259:7");
    put_link(SUBSYSTEM "/nvme3n1/device", SUBSYSTEM);
    put(SUBSYSTEM, "iopolicy", "round-robin");
    put(SUBSYSTEM, "subsysnqn", "nqn.2026-01.org:x");
    nvme_path("nvme4", "tcp", "traddr=10.0.0.1,trsvcid=4420", "live", "optimized");
    struct facts f = ask(259, 7);
    text_is(&f.negotiated, "transport", "NVMe/TCP");
    text_is(&f.negotiated, "paths", "nvme4 tcp traddr=10.0.0.1,trsvcid=4420 live optimized");
    text_is(&f.negotiated, "nvme_iopolicy", "round-robin");
    text_is(&f.negotiated, "nvme_subsystem", "nqn.2026-01.org:x");
    assert_null(kv_find(&f.warnings, "paths-failed"));
    assert_string_equal(f.summary, "NVMe/TCP device nvme3n1, 1.00 TiB");
    facts_free(&f);
    nvme_path("nvme5", "tcp", "traddr=10.0.1.1,trsvcid=4420", "connecting", "inaccessible");
    f = ask(259, 7);
    assert_int_equal(kv_get_uint(&f.negotiated, "path_count", 0), 2);
    text_is(&f.warnings, "paths-failed", "1 of the paths failed (nvme4 tcp traddr=10.0.0.1,trsvcid=4420 live optimized; "
            "nvme5 tcp traddr=10.0.1.1,trsvcid=4420 connecting inaccessible): what is measured is what is left of it");
    facts_free(&f);
    nvme_path("nvme6", "rdma", "traddr=10.0.2.1", "live", "optimized");
    f = ask(259, 7);
    text_is(&f.negotiated, "transport", "NVMe/mixed");
    facts_free(&f);
    assert_string_equal(nvme_transport("/nonexistent", "", &kv), "NVMe");
    kv_free(&kv);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fibre_channel), cmocka_unit_test(partition), cmocka_unit_test(multipath), cmocka_unit_test(multipath_policy),
        cmocka_unit_test(multipath_status), cmocka_unit_test(device_mapper), cmocka_unit_test(nvme_multipath),
        cmocka_unit_test(other_transports), cmocka_unit_test(loop), cmocka_unit_test(nothing_known),
        cmocka_unit_test(users), cmocka_unit_test(errors_are_watched),
        cmocka_unit_test(commands_that_are_sent_again),
        cmocka_unit_test(what_a_failure_means), cmocka_unit_test(reservations_that_are_not_known), cmocka_unit_test(vpd83),
    };
    return cmocka_run_group_tests(tests, make_all, drop_all);
}
