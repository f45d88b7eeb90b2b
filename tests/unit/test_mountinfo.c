/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <sys/sysmacros.h>

#include "backends/local/fs.h"
#include "linux/mountinfo.h"
#include "backends/local/nfsmount.h"

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
    assert_int_equal(f.volatile_cache, ANSWER_NO); /* O_DIRECT: FILE_SYNC, or UNSTABLE and COMMIT */
    assert_non_null(strstr(kv_find(&f.negotiated, "nfs_writes")->text, "wsize (32768 bytes) FILE_SYNC"));
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

static const char volumes[] = "NV SERVER   PORT DEV          FSID                              FSC\n"
    "v3 0a610002  801 0:32         b1eced656b24b37f:0                no \n"
    "v4 0a610002  801 0:36         e596575da53a46b1:9a257336c0d7aa00 no \n"
    "v4 0a610002  801 0:37         fe:10                             no \n"
    "v4 0a610002  801 0:38         7:0                               no \n";

static bool has_name(const struct facts *f, const char *name) {
    for (unsigned i = 0; i < FACTS_IDENTITIES; i++)
        if (!strcmp(f->identity[i], name)) return true;
    return false;
}

/* What knfsd of Linux 6.1 says of one file by NFSv3 and NFSv4.2, and by a device number and fsid=. */
static void one_file_by_two_mounts(void **state) {
    struct mount m = {.super = "rw,vers=4.2,addr=10.97.0.2"};
    struct facts f = {.identity = {"file:0:32:131137"}};
    (void)state;
    nfsmount_identities(volumes, &m, makedev(0, 32), 131137, &f);
    assert_string_equal(f.identity[1], "fsid:b1eced656b24b37f/fileid:131137/server:10.97.0.2");
    assert_string_equal(f.identity[2], "");
    f = (struct facts){.identity = {"file:0:36:131137"}};
    nfsmount_identities(volumes, &m, makedev(0, 36), 131137, &f);
    assert_string_equal(f.identity[0], "file:0:36:131137");
    assert_true(has_name(&f, "fsid:b1eced656b24b37f/fileid:131137/server:10.97.0.2"));
    f = (struct facts){.size = 0};
    nfsmount_identities(volumes, &m, makedev(0, 37), 12, &f);
    assert_true(has_name(&f, "fsid:fe10/fileid:12/server:10.97.0.2"));
    f = (struct facts){.size = 0};
    nfsmount_identities(volumes, &m, makedev(0, 38), 12, &f);
    assert_true(has_name(&f, "fsid:7/fileid:12/server:10.97.0.2"));
    f = (struct facts){.size = 0};
    nfsmount_identities(volumes, &m, makedev(0, 39), 12, &f); /* no such line */
    nfsmount_identities(NULL, &m, makedev(0, 32), 12, &f);
    nfsmount_identities("v3 x\nv4 a b 0:36 zz", &m, makedev(0, 36), 12, &f);
    strcpy(m.super, "rw,vers=3");
    nfsmount_identities(volumes, &m, makedev(0, 32), 12, &f); /* no address */
    assert_string_equal(f.identity[0], "");
}

/* What name_to_handle_at() gave on Linux 6.1 for a file of knfsd, by both versions, and the names that follow. */
static void one_file_by_its_handle(void **state) {
    static const unsigned char bytes[] = {
        0, 0, 0, 0, 0x45, 0, 2, 0, 0, 0x80, 0, 0, 36, 0, 1, 0, 7, 1, 3, 0, 2, 0, 0, 0, 0, 0, 0xe5, 0x96, 0x57, 0x5d,
        0xa5, 0x3a, 0x46, 0xb1, 0x9a, 0x25, 0x73, 0x36, 0xc0, 0xd7, 0xaa, 0, 0x45, 0, 2, 0, 0x77, 3, 0x70, 0x28, 0, 0
    };
    struct nfsname n = {.fileid = 131141, .ctime_ns = 1796069566108000000, .size = 33554432};
    struct facts by3 = {.size = 0}, by4 = {.size = 0};
    (void)state;
    n.handle_len = nfsmount_server_handle(bytes, sizeof bytes, 131141, &n.handle);
    assert_int_equal(n.handle_len, 36);
    assert_ptr_equal(n.handle, bytes + 14);
    nfsmount_handle_name(volumes, makedev(0, 32), &n, &by3);
    nfsmount_handle_name(volumes, makedev(0, 36), &n, &by4);
    assert_memory_equal(by3.identity[0], "nfs-handle:", 11);
    assert_string_equal(by3.identity[0], by4.identity[0]);
    n.size++; /* somebody wrote */
    nfsmount_handle_name(volumes, makedev(0, 36), &n, &by4);
    assert_string_not_equal(by4.identity[1], by3.identity[0]);
    assert_int_equal(nfsmount_server_handle(bytes, sizeof bytes, 131142, &n.handle), 0);
    assert_int_equal(nfsmount_server_handle(bytes, 49, 131141, &n.handle), 0);
    assert_int_equal(nfsmount_server_handle(bytes, 13, 131141, &n.handle), 0);
}

static const char stats[] = "device nas:/v mounted on /mnt/v with fstype nfs4 statvers=1.1\n"
    "\topts:\trw,vers=4.2\n\tnfsv4:\tbm0=0x1,sessions,pnfs=LAYOUT_NFSV4_1_FILES,lease_time=90\n"
    "device nas:/v2 mounted on /mnt/v2 with fstype nfs4 statvers=1.1\n"
    "\tnfsv4:\tbm0=0x1,sessions,pnfs=not configured,lease_time=90\n";

static void durability_of_nfs(void **state) {
    static const struct {
        const char *super, *point;
        bool direct;
        enum answer wanted;
    } cases[] = {
        {"rw,vers=3,wsize=262144", "/mnt/v3", true, ANSWER_NO},
        {"rw,vers=3,wsize=262144", "/mnt/v3", false, ANSWER_YES},
        {"rw,sync,vers=3,wsize=262144", "/mnt/v3", false, ANSWER_NO},
        {"rw,vers=4.2,wsize=262144", "/mnt/v2", true, ANSWER_NO},
        {"rw,vers=4.2,wsize=262144", "/mnt/v", true, ANSWER_UNKNOWN},  /* its layouts decide */
        {"rw,vers=4.2,wsize=262144", "/mnt/v9", true, ANSWER_UNKNOWN}, /* nobody says */
        {"rw,vers=4.0,wsize=262144", "/mnt/v9", true, ANSWER_NO},
        {"rw", "/mnt/v9", true, ANSWER_UNKNOWN},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct mount m = {.type = "nfs4"};
        struct facts f = {.size = 0};
        strcpy(m.super, cases[i].super);
        strcpy(m.point, cases[i].point);
        nfsmount_pnfs(stats, &m, &f.negotiated);
        fs_facts(FS_NFS, &m, cases[i].direct, &f);
        assert_int_equal(f.volatile_cache, cases[i].wanted);
        facts_free(&f);
    }
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
        cmocka_unit_test(options_become_facts), cmocka_unit_test(barriers), cmocka_unit_test(one_file_by_two_mounts),
        cmocka_unit_test(one_file_by_its_handle), cmocka_unit_test(durability_of_nfs), cmocka_unit_test(classes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
