/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <sys/sysmacros.h>

#include "backends/local/fs.h"
#include "backends/local/mountinfo.h"

static const char table[] = "22 1 8:2 / / rw,relatime shared:1 - ext4 /dev/sda2 rw,errors=remount-ro\n"
                            "30 22 0:30 / /srv rw - tmpfs none rw,size=10k\n"
                            "31 22 0:41 / /mnt/nas rw,noatime shared:9 master:2 - nfs nas:/vol1 "
                            "rw,vers=3,rsize=65536,wsize=32768,proto=tcp,nconnect=4,hard\n"
                            "this line is none\n"
                            "32 22 0:42 / /mnt/nas\\040two rw - nfs4 nas:/v\\0402 rw,vers=4.2\n"
                            "33 22 8:17 / /data/deep/er rw - xfs /dev/sdb1 rw\n"
                            "34 22 8:33 / /data rw - ext4 /dev/sdc1 rw\n"
                            "35 22 0:50 /sub /pool rw - btrfs /dev/sdd rw,subvol=/sub\n"
                            "36 22 0:51 / /mnt/ssh ro - fuse.sshfs user@host:/ rw,user_id=0,max_read=131072\n"
                            "37 30 0:60 / /srv rw - xfs /dev/sde rw";

static void where(const char *path, dev_t dev, const char *point, const char *type) {
    struct mount m;
    assert_true(mountinfo_find(table, path, dev, &m));
    assert_string_equal(m.point, point);
    assert_string_equal(m.type, type);
}

static void deepest_with_the_device(void **state) {
    (void)state;
    where("/etc/passwd", makedev(8, 2), "/", "ext4");
    where("/mnt/nas", makedev(0, 41), "/mnt/nas", "nfs");
    where("/mnt/nas/a/b", makedev(0, 41), "/mnt/nas", "nfs");
    where("/mnt/nas two/a", makedev(0, 42), "/mnt/nas two", "nfs4");
    where("/mnt/nasty", makedev(8, 2), "/", "ext4"); /* a longer name is another folder */
    where("/mnt/ssh/x", makedev(0, 51), "/mnt/ssh", "fuse.sshfs");
}

static void mounted_over(void **state) {
    (void)state;
    /* /data was mounted over /data/deep/er: the file lies where its device number says. */
    where("/data/deep/er/f", makedev(8, 33), "/data", "ext4");
    where("/data/deep/er/f", makedev(8, 17), "/data/deep/er", "xfs");
    /* Two at one place. */
    where("/srv/f", makedev(0, 60), "/srv", "xfs");
    where("/srv/f", makedev(0, 30), "/srv", "tmpfs");
    where("/srv/f", makedev(9, 9), "/srv", "xfs");
}

static void subvolumes_have_their_own_numbers(void **state) {
    (void)state;
    where("/pool/f", makedev(0, 77), "/pool", "btrfs");
}

static void fields(void **state) {
    struct mount m;
    char value[32];
    (void)state;
    assert_true(mountinfo_find(table, "/mnt/nas/f", makedev(0, 41), &m));
    assert_string_equal(m.source, "nas:/vol1");
    assert_string_equal(m.options, "rw,noatime");
    assert_true(mountinfo_option(m.super, "rsize", value, sizeof value));
    assert_string_equal(value, "65536");
    assert_true(mountinfo_option(m.super, "hard", value, sizeof value));
    assert_string_equal(value, "");
    assert_false(mountinfo_option(m.super, "size", value, sizeof value));
    assert_false(mountinfo_option(m.super, "rsiz", value, sizeof value));
    assert_false(mountinfo_option("", "rsize", value, sizeof value));
    assert_true(mountinfo_find(table, "/mnt/nas two/f", makedev(0, 42), &m));
    assert_string_equal(m.source, "nas:/v 2");
    assert_false(mountinfo_find("", "/x", makedev(8, 2), &m));
    assert_false(mountinfo_find("garbage\n1 2 3:4", "/x", makedev(3, 4), &m));
}

static void options_become_facts(void **state) {
    struct facts f = {0};
    struct mount m;
    (void)state;
    assert_true(mountinfo_find(table, "/mnt/nas/f", makedev(0, 41), &m));
    fs_facts(FS_NFS, &m, true, &f);
    assert_int_equal(kv_get_uint(&f.negotiated, "mount_rsize", 0), 65536);
    assert_int_equal(kv_get_uint(&f.negotiated, "mount_wsize", 0), 32768);
    assert_int_equal(kv_get_uint(&f.negotiated, "mount_nconnect", 0), 4);
    assert_string_equal(kv_find(&f.negotiated, "mount_proto")->text, "tcp");
    assert_non_null(kv_find(&f.warnings, "kernel-nfs"));
    assert_null(kv_find(&f.warnings, "page-cache"));
    assert_int_equal(f.volatile_cache, ANSWER_UNKNOWN);
    assert_int_equal(f.dpofua, ANSWER_YES);
    facts_free(&f);

    memset(&f, 0, sizeof f);
    assert_true(mountinfo_find(table, "/mnt/ssh/f", makedev(0, 51), &m));
    fs_facts(FS_FUSE, &m, false, &f);
    assert_string_equal(kv_find(&f.negotiated, "fuse_subtype")->text, "sshfs");
    assert_int_equal(kv_get_uint(&f.negotiated, "mount_max_read", 0), 131072);
    assert_non_null(kv_find(&f.warnings, "fuse"));
    assert_non_null(kv_find(&f.warnings, "page-cache"));
    assert_int_equal(f.dpofua, ANSWER_UNKNOWN);
    assert_int_equal(f.volatile_cache, ANSWER_YES);
    facts_free(&f);

    memset(&f, 0, sizeof f);
    fs_facts(FS_MEMORY, NULL, true, &f);
    assert_non_null(kv_find(&f.warnings, "memory"));
    assert_int_equal(f.dpofua, ANSWER_NO);
    assert_false(f.can_flush);
    facts_free(&f);
}

static void barriers(void **state) {
    struct facts f = {0};
    struct mount m = {.type = "ext4", .super = "rw,barrier=0,data=journal"};
    (void)state;
    fs_facts(FS_LOCAL, &m, true, &f);
    assert_non_null(kv_find(&f.warnings, "no-barrier"));
    assert_non_null(kv_find(&f.warnings, "data-journal"));
    assert_int_equal(f.dpofua, ANSWER_UNKNOWN);
    facts_free(&f);
    memset(&f, 0, sizeof f);
    strcpy(m.super, "rw,barrier=1,data=ordered");
    fs_facts(FS_LOCAL, &m, true, &f);
    assert_int_equal(f.warnings.n, 0);
    assert_int_equal(f.dpofua, ANSWER_YES);
    facts_free(&f);
}

static void classes(void **state) {
    (void)state;
    assert_int_equal(fs_classify(0x01021994, "tmpfs"), FS_MEMORY);
    assert_int_equal(fs_classify(0x01021994, "devtmpfs"), FS_PSEUDO);
    assert_int_equal(fs_classify(0x6969, "nfs"), FS_NFS);
    assert_int_equal(fs_classify(0x65735546, "fuse.sshfs"), FS_FUSE);
    assert_int_equal(fs_classify(0x65735546, "virtiofs"), FS_NETWORK);
    assert_int_equal(fs_classify(0x9fa0, ""), FS_PSEUDO);
    assert_int_equal(fs_classify(0xef53, "ext4"), FS_LOCAL);
    assert_int_equal(fs_classify(0xffffffffff534d42ULL, "cifs"), FS_NETWORK); /* f_type is signed on some machines */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deepest_with_the_device), cmocka_unit_test(mounted_over),
        cmocka_unit_test(subvolumes_have_their_own_numbers), cmocka_unit_test(fields),
        cmocka_unit_test(options_become_facts), cmocka_unit_test(barriers), cmocka_unit_test(classes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
