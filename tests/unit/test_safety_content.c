/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "disk_images.h"
#include "fake_backend.h"
#include "base/rng.h"
#include "pattern/mark.h"
#include "safety/content.h"

#define MIB  (1ULL << 20)
#define SIZE (64 * MIB)

struct bench {
    struct fake fake;
    struct fake *conf;
    struct clock_virtual clock;
    struct content c;
    struct err err;
    char text[400];
};

static int setup(void **state) {
    struct bench *b = calloc(1, sizeof(*b));

    fake_init(&b->fake, SIZE);
    b->conf = &b->fake;
    clock_virtual_init(&b->clock, 0);
    *state = b;
    return 0;
}

static int teardown(void **state) {
    struct bench *b = *state;

    assert_int_equal(b->fake.open_handles, 0);
    assert_int_equal(b->fake.writes, 0); /* looking never writes */
    fake_free(&b->fake);
    free(b);
    return 0;
}

static int examine(struct bench *b, uint64_t from, uint64_t to) {
    struct open_how how = {.conf = &b->conf, .mode = OPEN_READ, .clock = &b->clock.clock};
    struct handle *h;
    struct facts facts;

    assert_int_equal(fake_open(&how, &h, &facts, &b->err), 0);
    int rc = content_examine(&fake_backend, h, &facts, &b->clock.clock, from, to, &b->c, &b->err);
    if (rc == 0) content_describe(&b->c, b->text, sizeof(b->text));
    fake_close(h);
    facts_free(&facts);
    return rc;
}

static bool has(const struct bench *b, const char *name, unsigned partition) {
    for (unsigned i = 0; i < b->c.n; i++)
        if (strcmp(b->c.signature[i].name, name) == 0 && b->c.signature[i].partition == partition) return true;
    return false;
}

/* One signature of this name, and this description. */
static void expect_one(struct bench *b, const char *name, const char *text) {
    assert_int_equal(examine(b, 0, SIZE), 0);
    assert_int_equal(content_kind(&b->c), CONTENT_KNOWN);
    assert_int_equal(b->c.n, 1);
    assert_string_equal(b->c.signature[0].name, name);
    assert_string_equal(b->text, text);
}

static void zeros(void **state) {
    struct bench *b = *state;

    assert_int_equal(examine(b, 0, SIZE), 0);
    assert_int_equal(content_kind(&b->c), CONTENT_ZEROS);
    assert_int_equal(b->c.ours + b->c.foreign, 0);
    assert_int_equal(b->c.zeros, SIZE / 4096);
    assert_string_equal(b->text, "all zeros (all of it was read)");
}

static void own_data(void **state) {
    struct bench *b = *state;

    image_ours(b->fake.fd, 0, SIZE);
    assert_int_equal(examine(b, 0, SIZE), 0);
    assert_int_equal(content_kind(&b->c), CONTENT_OWN);
    assert_int_equal(b->c.zeros + b->c.foreign, 0);
    assert_string_equal(b->text, "samedisk data");
}

static void own_data_with_untouched_parts(void **state) {
    struct bench *b = *state;

    image_ours(b->fake.fd, 32 * MIB, 33 * MIB);
    assert_int_equal(examine(b, 32 * MIB, 40 * MIB), 0);
    assert_int_equal(content_kind(&b->c), CONTENT_OWN);
    assert_true(b->c.zeros > 0 && b->c.ours > 0);
}

static void own_data_whose_first_sectors_nobody_wrote(void **state) {
    struct bench *b = *state;

    image_ours(b->fake.fd, 8192 + 1536, 8192 + 2048);
    assert_int_equal(examine(b, 0, SIZE), 0);
    assert_int_equal(content_kind(&b->c), CONTENT_OWN);
}

static void a_range_that_begins_between_marks(void **state) {
    struct bench *b = *state;

    image_ours(b->fake.fd, 8 * MIB + 512, 16 * MIB);
    assert_int_equal(examine(b, 8 * MIB + 512, 16 * MIB), 0);
    assert_int_equal(content_kind(&b->c), CONTENT_OWN);
    assert_int_equal(examine(b, 8 * MIB + 512, 8 * MIB + 4096), 0);
    assert_int_equal(content_kind(&b->c), CONTENT_OWN);
    put(b->fake.fd, 8 * MIB + 512, "random bytes without a proof", 28);
    assert_int_equal(examine(b, 8 * MIB + 512, 16 * MIB), 0);
    assert_int_equal(content_kind(&b->c), CONTENT_UNKNOWN);
    assert_int_equal(b->c.first_foreign, 8 * MIB + 512);
}

static void one_foreign_block_among_ours(void **state) {
    struct bench *b = *state;
    unsigned char foreign[4096];

    memset(foreign, 'x', sizeof(foreign));
    image_ours(b->fake.fd, 0, SIZE);
    put(b->fake.fd, 2 * MIB + 4096, foreign, 4096); /* within the first 4 MiB all blocks are looked at */
    assert_int_equal(examine(b, 0, SIZE), 0);
    assert_int_equal(content_kind(&b->c), CONTENT_UNKNOWN);
    assert_int_equal(b->c.first_foreign, 2 * MIB + 4096);
    assert_non_null(strstr(b->text, "unknown data"));
    assert_non_null(strstr(b->text, "the first at offset 2101248"));
}

static void the_last_block_counts(void **state) {
    struct bench *b = *state;

    put(b->fake.fd, 32 * MIB - 512, "x", 1);
    assert_int_equal(examine(b, 0, 32 * MIB), 0);
    assert_int_equal(content_kind(&b->c), CONTENT_UNKNOWN);
    assert_int_equal(b->c.first_foreign, 32 * MIB - 4096);
}

static void the_middle_is_read(void **state) {
    struct bench *b = *state;
    unsigned char foreign[65536];

    memset(foreign, 'x', sizeof(foreign));
    for (uint64_t at = 8 * MIB; at < 56 * MIB; at += sizeof(foreign)) put(b->fake.fd, at, foreign, sizeof(foreign));
    assert_int_equal(examine(b, 0, SIZE), 0);
    assert_int_equal(content_kind(&b->c), CONTENT_UNKNOWN);
    assert_int_equal(b->c.foreign, 48 * MIB / 4096);
    assert_int_equal(b->c.first_foreign, 8 * MIB);
}

static void what_is_outside_the_range_is_not_unknown_data(void **state) {
    struct bench *b = *state;

    put(b->fake.fd, 9000, "somebody's", 10);
    assert_int_equal(examine(b, 16 * MIB, 32 * MIB), 0);
    assert_int_equal(content_kind(&b->c), CONTENT_ZEROS);
}

static void a_signature_outweighs_our_marks(void **state) {
    struct bench *b = *state;

    image_ours(b->fake.fd, 0, SIZE);
    image_lvm(b->fake.fd, 0);
    expect_one(b, "LVM2_member", "LVM physical volume (LVM2_member)");
    assert_int_equal(b->c.foreign, 1); /* its sector is not ours any more */
}

static void our_random_data_holds_no_signature(void **state) {
    struct bench *b = *state;

    for (unsigned i = 0; i < 8; i++) {
        unsigned char buf[65536];
        struct data data;
        data_init(&data, 1000 + i, i << 20, NULL);
        for (uint64_t at = 0; at < SIZE; at += sizeof(buf)) {
            if (at >= 4 * MIB && at < SIZE - 2 * MIB) continue;
            data_make(&data, buf, at, sizeof(buf));
            put(b->fake.fd, at, buf, sizeof(buf));
        }
        assert_int_equal(examine(b, 0, SIZE), 0);
        assert_int_equal(content_kind(&b->c), CONTENT_OWN);
    }
}

/* Earlier versions proved a block by 16 bytes at its start: with anything behind them it is not ours. */
static void marks_alone_prove_nothing(void **state) {
    struct bench *b = *state;
    unsigned char buf[4096];
    struct rng rng;

    rng_seed(&rng, 8);
    for (uint64_t at = 0; at < SIZE; at += sizeof(buf)) {
        rng_fill(&rng, buf, sizeof(buf));
        mark_put(buf, 5, at / 4096);
        put(b->fake.fd, at, buf, sizeof(buf));
    }
    assert_int_equal(examine(b, 0, SIZE), 0);
    assert_int_equal(content_kind(&b->c), CONTENT_UNKNOWN);
}

/* 1 KiB at 20 MiB of 48 MiB that are zero or ours. */
static void a_little_that_is_foreign_is_found(void **state) {
    struct bench *b = *state;
    unsigned char foreign[1024];

    memset(foreign, 'x', sizeof(foreign));
    for (unsigned ours = 0; ours < 2; ours++) {
        if (ours) image_ours(b->fake.fd, 0, SIZE);
        put(b->fake.fd, 20 * MIB + 512, foreign, sizeof(foreign));
        assert_int_equal(examine(b, 0, 48 * MIB), 0);
        assert_int_equal(content_kind(&b->c), CONTENT_UNKNOWN);
        assert_int_equal(b->c.first_foreign, 20 * MIB);
        assert_int_equal(b->c.foreign, 1);
    }
}

/* Above 64 MiB samples come first, but zeros are read to the last block, and so is what is partly ours. */
static void a_gibibyte_is_read_whole(void **state) {
    struct bench *b = *state;
    const uint64_t size = 1024 * MIB;

    b->fake.facts.size = size;
    assert_int_equal(ftruncate(b->fake.fd, (off_t)size), 0);
    for (unsigned ours = 0; ours < 2; ours++) {
        if (ours) image_ours(b->fake.fd, 0, 100 * MIB);
        assert_int_equal(examine(b, 0, size), 0);
        assert_int_equal(content_kind(&b->c), ours ? CONTENT_OWN : CONTENT_ZEROS);
        assert_int_equal(b->c.looked, size);
        assert_string_equal(b->text, ours ? "samedisk data and zeros" : "all zeros (all of it was read)");
        put(b->fake.fd, 777 * MIB + 100, "x", 1);
        assert_int_equal(examine(b, 0, size), 0);
        assert_int_equal(content_kind(&b->c), CONTENT_UNKNOWN);
        assert_int_equal(b->c.first_foreign, 777 * MIB);
        put(b->fake.fd, 777 * MIB + 100, "\0", 1);
    }
}

static void the_share_of_samples_is_said(void **state) {
    struct bench *b = *state;

    b->fake.facts.size = 40ULL << 40;
    assert_int_equal(ftruncate(b->fake.fd, (off_t)b->fake.facts.size), 0);
    assert_int_equal(examine(b, 0, 2048 * MIB), 0);
    assert_int_equal(content_kind(&b->c), CONTENT_ZEROS);
    assert_in_range(b->c.zeros, 1024 + CONTENT_SAMPLES, 1024 + 8 * CONTENT_SAMPLES + 2); /* the first 4 MiB are read */
    assert_string_equal(b->text, "all zeros (only 0.58 % of it was read)");
    assert_int_equal(examine(b, 0, b->fake.facts.size), 0);
    assert_string_equal(b->text, "all zeros (only 0.000033 % of it was read)");
    image_ours(b->fake.fd, 2048 * MIB, 2049 * MIB);
    image_ours(b->fake.fd, 4096 * MIB - 4096, 4096 * MIB);
    assert_int_equal(examine(b, 2048 * MIB, 4096 * MIB), 0);
    assert_int_equal(content_kind(&b->c), CONTENT_OWN);
    assert_string_equal(b->text, "samedisk data and zeros (only 0.39 % of it was read)");
}

static int look(struct bench *b, uint64_t from, uint64_t to, uint64_t seed, volatile sig_atomic_t *interrupted) {
    struct open_how how = {.conf = &b->conf, .mode = OPEN_READ, .clock = &b->clock.clock};
    struct handle *h;
    struct facts facts;

    assert_int_equal(fake_open(&how, &h, &facts, &b->err), 0);
    const struct content_wish wish = {.backend = &fake_backend, .handle = h, .facts = &facts, .clock = &b->clock.clock,
                                      .from = from, .to = to, .seed = seed, .interrupted = interrupted};
    int rc = content_look(&wish, &b->c, &b->err);
    fake_close(h);
    facts_free(&facts);
    return rc;
}

/* Of 8 GiB the first and the last block, and others at each time: a tenth that is foreign is always found. */
static void samples_are_random_and_reach_both_ends(void **state) {
    struct bench *b = *state;
    const uint64_t from = 1024 * MIB, to = from + 2048 * MIB;
    unsigned places = 0;
    uint64_t last = 0;

    b->fake.facts.size = 8192 * MIB;
    assert_int_equal(ftruncate(b->fake.fd, (off_t)b->fake.facts.size), 0);
    for (unsigned i = 0; i < 2; i++) {
        uint64_t at = i ? to - 4096 : from;
        put(b->fake.fd, at + 4095, "x", 1);
        assert_int_equal(look(b, from, to, 0, NULL), 0);
        assert_int_equal(b->c.foreign, 1);
        assert_int_equal(b->c.first_foreign, at);
        put(b->fake.fd, at + 4095, "\0", 1);
    }
    for (uint64_t at = from + 300 * MIB; at < from + 500 * MIB; at += 4096) put(b->fake.fd, at, "x", 1);
    for (unsigned i = 0; i < 8; i++) {
        assert_int_equal(look(b, from, to, 0, NULL), 0);
        assert_int_equal(content_kind(&b->c), CONTENT_UNKNOWN);
        places += b->c.first_foreign != last;
        last = b->c.first_foreign;
    }
    assert_true(places > 4);
    for (unsigned i = 0; i < 2; i++) { /* a test may say where */
        assert_int_equal(look(b, from, to, 42, NULL), 0);
        assert_true(i == 0 || b->c.first_foreign == last);
        last = b->c.first_foreign;
    }
}

static void looking_can_be_interrupted(void **state) {
    struct bench *b = *state;
    volatile sig_atomic_t interrupted = 1;

    assert_int_equal(look(b, 0, SIZE, 0, &interrupted), CONTENT_INTERRUPTED);
    interrupted = 0;
    assert_int_equal(look(b, 0, SIZE, 0, &interrupted), 0);
}

static void a_target_that_moves_little_at_once(void **state) {
    struct bench *b = *state;

    b->fake.facts.max_io = 512;
    b->fake.facts.size = 4096 * MIB;
    assert_int_equal(ftruncate(b->fake.fd, (off_t)b->fake.facts.size), 0);
    assert_int_equal(examine(b, 0, 2048 * MIB), 0);
    assert_int_equal(content_kind(&b->c), CONTENT_ZEROS);
}

static void file_systems_and_members(void **state) {
    struct bench *b = *state;
    static const struct {
        const char *name, *text;
    } cases[] = {{"ext4", "ext4 file system \"data\""},
                 {"LVM2_member", "LVM physical volume (LVM2_member)"},
                 {"swap", "swap space (swap)"},
                 {"linux_raid_member", "member of a Linux RAID (linux_raid_member) \"host:7\""},
                 {"zfs_member", "member of a ZFS pool (zfs_member) \"tank\""},
                 {"crypto_LUKS", "LUKS encrypted volume (crypto_LUKS)"},
                 {"VMFS", "VMFS datastore (VMFS)"}};

    for (unsigned i = 0; i < 7; i++) {
        int fd = b->fake.fd;
        assert_int_equal(ftruncate(fd, 0), 0);
        assert_int_equal(ftruncate(fd, SIZE), 0);
        switch (i) {
        case 0: image_ext4(fd, 0, SIZE, "data"); break;
        case 1: image_lvm(fd, 0); break;
        case 2: image_swap(fd, 0, SIZE); break;
        case 3: image_md10(fd, 0, SIZE); break;
        case 4: image_zfs(fd, 0); break;
        case 5: image_luks(fd, 0); break;
        default: image_vmfs(fd, 0); break;
        }
        expect_one(b, cases[i].name, cases[i].text);
    }
}

static void vmfs_by_its_other_byte_order(void **state) {
    struct bench *b = *state;

    put(b->fake.fd, MIB, "\xc0\x01\xd0\x0d", 4); /* libblkid does not know it */
    expect_one(b, "VMFS", "VMFS datastore (VMFS)");
}

static void two_signatures_are_both_found(void **state) {
    struct bench *b = *state;

    image_ext4(b->fake.fd, 0, SIZE, "");
    image_md10(b->fake.fd, 0, SIZE);
    assert_int_equal(examine(b, 0, SIZE), 0);
    assert_int_equal(b->c.n, 2);
    assert_true(has(b, "ext4", 0) && has(b, "linux_raid_member", 0));
}

static void label_is_made_safe(void **state) {
    struct bench *b = *state;

    image_ext4(b->fake.fd, 0, SIZE, "a\x1b[31mb");
    expect_one(b, "ext4", "ext4 file system \"a\\x1B[31mb\"");
}

static void gpt_and_what_is_in_it(void **state) {
    struct bench *b = *state;
    const struct image_part part[] = {{MIB, 16 * MIB}, {24 * MIB, 32 * MIB}};

    for (unsigned sector = 512; sector <= 4096; sector *= 8) {
        assert_int_equal(ftruncate(b->fake.fd, 0), 0);
        assert_int_equal(ftruncate(b->fake.fd, SIZE), 0);
        for (unsigned block = 512; block <= 4096; block *= 8) { /* also a disk that was made elsewhere */
            b->fake.facts.block = block;
            image_gpt(b->fake.fd, SIZE, sector, part, 2, 1);
            image_ext4(b->fake.fd, part[0].start, part[0].size, "data");
            image_swap(b->fake.fd, part[1].start, part[1].size);
            assert_int_equal(examine(b, 0, SIZE), 0);
            assert_string_equal(
                b->text, "GPT partition table with 2 partitions; partition 1 at 1 MiB: ext4 file system \"data\"; "
                         "partition 2 at 24 MiB: swap space (swap)");
            assert_int_equal(b->c.n, 3);
            assert_true(has(b, "gpt", 0) && has(b, "ext4", 1) && has(b, "swap", 2));
        }
    }
}

static void second_gpt_alone(void **state) {
    struct bench *b = *state;
    const struct image_part part = {8 * MIB, 16 * MIB};

    image_gpt(b->fake.fd, SIZE, 512, &part, 1, 0);
    image_ext4(b->fake.fd, part.start, part.size, "");
    assert_int_equal(examine(b, 0, SIZE), 0);
    assert_true(has(b, "gpt", 0));
    assert_true(has(b, "ext4", 1));
}

static void raid_at_the_end_and_vmfs_inside_of_partitions(void **state) {
    struct bench *b = *state;
    const struct image_part part[] = {{MIB, 31 * MIB}, {40 * MIB, 16 * MIB}};

    image_gpt(b->fake.fd, SIZE, 512, part, 2, 1);
    image_md10(b->fake.fd, part[0].start, part[0].size);
    image_vmfs(b->fake.fd, part[1].start);
    assert_int_equal(examine(b, 0, SIZE), 0);
    assert_int_equal(b->c.n, 3);
    assert_true(has(b, "linux_raid_member", 1));
    assert_true(has(b, "VMFS", 2));
}

static void logical_partitions_of_an_mbr(void **state) {
    struct bench *b = *state;
    int fd = b->fake.fd;

    mbr_entry(fd, 0, 0, 0x83, MIB, 8 * MIB);
    mbr_entry(fd, 0, 1, 0x05, 16 * MIB, 40 * MIB);
    mbr_entry(fd, 16 * MIB, 0, 0x83, MIB, 8 * MIB);       /* relative to the EBR */
    mbr_entry(fd, 16 * MIB, 1, 0x05, 16 * MIB, 20 * MIB); /* relative to the extended partition */
    mbr_entry(fd, 32 * MIB, 0, 0x8e, MIB, 8 * MIB);
    image_ext4(fd, MIB, 8 * MIB, "one");
    image_luks(fd, 17 * MIB);
    image_lvm(fd, 33 * MIB);
    assert_int_equal(examine(b, 0, SIZE), 0);
    assert_true(has(b, "dos", 0) && has(b, "ext4", 1) && has(b, "crypto_LUKS", 5) && has(b, "LVM2_member", 6));
    assert_int_equal(b->c.n, 4);
}

static void partitions_that_lie_about_the_size(void **state) {
    struct bench *b = *state;

    mbr_entry(b->fake.fd, 0, 0, 0x83, 60 * MIB, 500 * MIB);
    mbr_entry(b->fake.fd, 0, 1, 0x83, 900 * MIB, 500 * MIB);
    image_ext4(b->fake.fd, 60 * MIB, 4 * MIB, "cut");
    assert_int_equal(examine(b, 0, SIZE), 0);
    assert_true(has(b, "dos", 0) && has(b, "ext4", 1));
}

static void a_real_file_system(void **state) {
    struct bench *b = *state;
    char command[200];

    if (access("/usr/sbin/mkfs.ext4", X_OK) != 0 && access("/sbin/mkfs.ext4", X_OK) != 0) skip();
    snprintf(command, sizeof(command), "PATH=/usr/sbin:/sbin:$PATH mkfs.ext4 -F -q -L real /proc/%d/fd/%d",
             (int)getpid(), b->fake.fd);
    assert_int_equal(system(command), 0);
    expect_one(b, "ext4", "ext4 file system \"real\"");
}

static void small_objects(void **state) {
    struct bench *b = *state;
    static const uint64_t sizes[] = {1,       100,     511,         512,           4096,   5000,
                                     MIB - 1, 4 * MIB, 4 * MIB + 1, 5 * MIB + 777, 6 * MIB};

    b->fake.facts.block = b->fake.facts.mem_align = 1;
    for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        assert_int_equal(ftruncate(b->fake.fd, 0), 0);
        assert_int_equal(ftruncate(b->fake.fd, (off_t)sizes[i]), 0);
        b->fake.facts.size = sizes[i];
        assert_int_equal(examine(b, 0, sizes[i]), 0);
        assert_int_equal(content_kind(&b->c), CONTENT_ZEROS);
        put(b->fake.fd, sizes[i] - 1, "x", 1);
        assert_int_equal(examine(b, 0, sizes[i]), 0);
        assert_int_equal(content_kind(&b->c), CONTENT_UNKNOWN);
    }
}

static void only_ends_and_samples_are_read(void **state) {
    struct bench *b = *state;

    b->fake.facts.size = 40ULL << 40; /* 40 TiB, sparse, and so is the copy */
    assert_int_equal(ftruncate(b->fake.fd, (off_t)b->fake.facts.size), 0);
    image_md10(b->fake.fd, 0, b->fake.facts.size);
    assert_int_equal(examine(b, 0, b->fake.facts.size), 0);
    assert_true(has(b, "linux_raid_member", 0));
    assert_true(b->fake.reads < 16 + 8 + 8 * CONTENT_SAMPLES + 8);
    assert_int_equal(content_kind(&b->c), CONTENT_KNOWN);
}

static void an_error_of_the_target(void **state) {
    struct bench *b = *state;

    b->fake.error_at = 5000;
    assert_int_equal(examine(b, 0, SIZE), -1);
    assert_int_equal(b->err.status, STATUS_TARGET);
    assert_non_null(strstr(b->err.msg, "FAKE ERROR"));
    b->fake.error_at = UINT64_MAX;
    b->fake.fail_attach = true;
    assert_int_equal(examine(b, 0, SIZE), -1);
    assert_int_equal(b->err.status, STATUS_TARGET);
}

static void words_for_names(void **state) {
    (void)state;
    const struct content_signature dos = {.name = "dos"}, vmfs = {.name = "VMFS"}, lvm = {.name = "LVM2_member"};

    assert_true(content_is_named(&dos, "MBR") && content_is_named(&dos, "dos") && content_is_named(&dos, "msdos"));
    assert_true(content_is_named(&vmfs, "vmfs") && content_is_named(&vmfs, "VMFS_volume_member"));
    assert_true(content_is_named(&lvm, "lvm2_MEMBER"));
    assert_false(content_is_named(&lvm, "lvm") || content_is_named(&lvm, "") || content_is_named(&vmfs, "mbr"));
}

static void sizes_in_words(void **state) {
    (void)state;
    char buf[32];

    assert_string_equal(content_size(buf, sizeof(buf), 0), "0");
    assert_string_equal(content_size(buf, sizeof(buf), 1ULL << 30), "1 GiB");
    assert_string_equal(content_size(buf, sizeof(buf), 4096), "4 KiB");
    assert_string_equal(content_size(buf, sizeof(buf), 1536), "1536 bytes");
    assert_string_equal(content_size(buf, sizeof(buf), 999999999999ULL), "931 GiB");
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {T(zeros),
                                       T(own_data),
                                       T(own_data_with_untouched_parts),
                                       T(own_data_whose_first_sectors_nobody_wrote),
                                       T(a_range_that_begins_between_marks),
                                       T(one_foreign_block_among_ours),
                                       T(the_last_block_counts),
                                       T(the_middle_is_read),
                                       T(what_is_outside_the_range_is_not_unknown_data),
                                       T(a_signature_outweighs_our_marks),
                                       T(our_random_data_holds_no_signature),
                                       T(marks_alone_prove_nothing),
                                       T(a_little_that_is_foreign_is_found),
                                       T(a_gibibyte_is_read_whole),
                                       T(the_share_of_samples_is_said),
                                       T(samples_are_random_and_reach_both_ends),
                                       T(looking_can_be_interrupted),
                                       T(a_target_that_moves_little_at_once),
                                       T(file_systems_and_members),
                                       T(vmfs_by_its_other_byte_order),
                                       T(two_signatures_are_both_found),
                                       T(label_is_made_safe),
                                       T(gpt_and_what_is_in_it),
                                       T(second_gpt_alone),
                                       T(raid_at_the_end_and_vmfs_inside_of_partitions),
                                       T(logical_partitions_of_an_mbr),
                                       T(partitions_that_lie_about_the_size),
                                       T(a_real_file_system),
                                       T(small_objects),
                                       T(only_ends_and_samples_are_read),
                                       T(an_error_of_the_target),
                                       cmocka_unit_test(words_for_names),
                                       cmocka_unit_test(sizes_in_words)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
