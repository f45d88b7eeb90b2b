/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The whole way from what was typed to what may be done, over the fake backend. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <ftw.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "disk_images.h"
#include "fake_backend.h"
#include "safety/safety.h"

#define MIB  (1ULL << 20)
#define GIB  (1ULL << 30)
#define SIZE (16 * MIB)
#define NAA  "naa.600601601234"

struct bench {
    char root[64], sys[80], proc[80];
    struct fake fake[4];
    struct target target[3], *targets[3];
    struct clock clock;
    struct safety_wish wish;
    struct safety_destroy destroy[4];
    struct safety_report report;
    struct err err;
    char said[1024];
};

static void text_file(const struct bench *b, const char *name, const char *text) {
    char path[300];

    snprintf(path, sizeof(path), "%s/%s", b->root, name);
    for (char *slash = path + strlen(b->root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static int setup(void **state) {
    struct bench *b = calloc(1, sizeof(*b));

    strcpy(b->root, "/tmp/samedisk-test-XXXXXX");
    if (!mkdtemp(b->root)) return -1;
    snprintf(b->sys, sizeof(b->sys), "%s/sys", b->root);
    snprintf(b->proc, sizeof(b->proc), "%s/proc", b->root);
    text_file(b, "sys/block/sdxb/dev", "250:16\n");
    text_file(b, "sys/block/sdxb/device/wwid", NAA "\n");
    text_file(b, "proc/self/mountinfo", "");
    for (unsigned i = 0; i < 4; i++) fake_init(&b->fake[i], SIZE);
    clock_real_init(&b->clock);
    for (unsigned t = 0; t < 3; t++) {
        b->targets[t] = &b->target[t];
        b->target[t].clock = &b->clock;
    }
    b->wish = (struct safety_wish){.targets = b->targets,
                                   .writes = true,
                                   .needed_size = 8 * MIB,
                                   .write_to = 8 * MIB,
                                   .destroy = b->destroy,
                                   .sysfs = b->sys,
                                   .proc = b->proc};
    *state = b;
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw) {
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

static int teardown(void **state) {
    struct bench *b = *state;

    safety_report_free(&b->report);
    for (unsigned t = 0; t < 3; t++) target_free(&b->target[t]);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(b->fake[i].open_handles, 0);
        assert_int_equal(b->fake[i].writes, 0);
        fake_free(&b->fake[i]);
    }
    nftw(b->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(b);
    return 0;
}

/* Fake `i` as a member of target `t`. */
static struct facts *member(struct bench *b, unsigned t, const char *label, unsigned i, const char *url,
                            const char *identity) {
    struct target *target = &b->target[t];
    struct member *m = &target->member[target->n_members++];
    struct fake **conf = malloc(sizeof(*conf));

    *conf = &b->fake[i];
    m->url = strdup(url);
    m->backend = &fake_backend;
    m->conf = conf;
    snprintf(target->label, sizeof(target->label), "%s", label);
    snprintf(b->fake[i].facts.identity[0], sizeof(b->fake[i].facts.identity[0]), "%s", identity);
    if (t >= b->wish.n_targets) b->wish.n_targets = t + 1;
    return &b->fake[i].facts;
}

static struct facts *lun(struct bench *b) {
    return member(b, 0, "fc", 0, "iscsi://10.0.0.1/iqn.2026-01.x:t/3", NAA);
}

static void missing(struct facts *f) {
    f->exists = false;
    f->kind = OBJECT_FILE;
    f->size = 0;
    f->block = f->mem_align = 1;
    f->fs_total = 1000 * GIB;
    f->fs_free = 500 * GIB;
    f->identity[0][0] = '\0';
}

static void type(struct bench *b, const char *label, const char *what) {
    b->destroy[b->wish.n_destroy++] = (struct safety_destroy){label, what};
}

static int examine(struct bench *b) {
    for (unsigned t = 0; t < b->wish.n_targets; t++) assert_int_equal(target_open_read(&b->target[t], &b->err), 0);
    safety_report_free(&b->report);
    memset(&b->err, 0, sizeof(b->err));
    int rc = safety_examine(&b->wish, &b->report, &b->err);
    assert_true(rc == 0 || b->err.msg[0]);
    return rc;
}

static void expect_refusal(struct bench *b, const char *text) {
    assert_int_equal(examine(b), -1);
    assert_int_equal(b->err.status, STATUS_USAGE);
    assert_true(b->report.refused > 0);
    if (!strstr(b->err.msg, text)) fail_msg("wanted: %s\ngot: %s", text, b->err.msg);
    assert_int_equal(safety_apply(&b->wish, &b->report, &b->err), -1); /* nobody gets past a refusal */
    for (unsigned i = 0; i < 4; i++) assert_int_equal(b->fake[i].last_mode, OPEN_READ);
}

static void expect_verdict(struct bench *b, enum safety_verdict verdict, const char *text) {
    if (examine(b) != 0) fail_msg("%s", b->err.msg);
    assert_int_equal(b->report.decision[0].verdict, verdict);
    assert_string_equal(b->report.decision[0].text, text);
}

/* ---- content ---- */

static void zeros(void **state) {
    struct bench *b = *state;

    lun(b);
    expect_refusal(b, "fc: refused: all zeros (all of it was read) were found on iscsi://10.0.0.1/iqn.2026-01.x:t/3 (" NAA ")\n"
                      "to overwrite it, type: --destroy fc (safest: --destroy fc=" NAA ")");
    type(b, "fc", NULL);
    expect_verdict(b, SAFETY_CONSENTED,
                   "fc: all zeros (all of it was read) on iscsi://10.0.0.1/iqn.2026-01.x:t/3 (" NAA "), the same object as unused "
                   "/dev/sdxb; will be overwritten from 0 to 8 MiB, agreed by --destroy fc");
    assert_string_equal(b->report.decision[0].found, "all zeros (all of it was read)");
    assert_int_equal(safety_apply(&b->wish, &b->report, &b->err), 0);
    assert_true(b->target[0].member[0].consented);
    assert_false(b->target[0].member[0].created);
    assert_true(b->target[0].handle->write);
}

static void own_data(void **state) {
    struct bench *b = *state;

    lun(b);
    image_ours(b->fake[0].fd, 0, 8 * MIB);
    put(b->fake[0].fd, 12 * MIB, "not in the range", 16);
    b->wish.needed_size = SIZE + 1; /* used again only after the size check */
    expect_refusal(b, "has 16 MiB (16777216 bytes), and the plan needs 16.0 MiB (16777217 bytes)");
    b->wish.needed_size = SIZE;
    expect_verdict(b, SAFETY_OWN_DATA,
                   "fc: samedisk data on iscsi://10.0.0.1/iqn.2026-01.x:t/3 (" NAA "), the same object as "
                   "unused /dev/sdxb; will be overwritten from 0 to 8 MiB");
    assert_int_equal(safety_apply(&b->wish, &b->report, &b->err), 0);
    assert_true(b->target[0].member[0].consented);
}

static void unknown_data(void **state) {
    struct bench *b = *state;

    lun(b);
    image_ours(b->fake[0].fd, 0, 8 * MIB);
    put(b->fake[0].fd, 4096, "a database, say", 15);
    expect_refusal(b, "fc: refused: unknown data (");
    assert_non_null(strstr(b->report.decision[0].text,
                           "\nto overwrite it, type: --destroy fc=unknown-data (safest: --destroy "
                           "fc=" NAA " --destroy fc=unknown-data)"));
    type(b, "fc", NAA);
    expect_refusal(b, "\nwhat was typed lacks unknown-data; to overwrite it, type: --destroy fc=unknown-data");
    type(b, "fc", "unknown-data");
    assert_int_equal(examine(b), 0);
    assert_int_equal(b->report.decision[0].verdict, SAFETY_CONSENTED);
}

static void signatures(void **state) {
    struct bench *b = *state;
    const struct image_part part[] = {{MIB, 4 * MIB}, {8 * MIB, 4 * MIB}};

    lun(b);
    image_gpt(b->fake[0].fd, SIZE, 512, part, 2, 1);
    image_ext4(b->fake[0].fd, part[0].start, part[0].size, "data");
    expect_refusal(
        b,
        "fc: refused: GPT partition table with 2 partitions; partition 1 at 1 MiB: ext4 file system \"data\" was found "
        "on iscsi://10.0.0.1/iqn.2026-01.x:t/3 (" NAA ")\nto overwrite it, type: --destroy fc=gpt,ext4 (safest: "
        "--destroy fc=" NAA " --destroy fc=gpt,ext4)");
    type(b, "fc", "gpt");
    expect_refusal(b, "\nwhat was typed lacks ext4; to overwrite");
    type(b, "fc", "xfs");
    expect_refusal(b, "\n--destroy fc=xfs names what is not there: found was GPT partition table");
    b->destroy[1].what = "EXT4";
    assert_int_equal(examine(b), 0);
    assert_non_null(strstr(b->report.decision[0].text, "agreed by --destroy fc=gpt --destroy fc=EXT4"));
}

static void identity_of_another_object(void **state) {
    struct bench *b = *state;

    lun(b);
    type(b, "fc", "naa.600601609999");
    expect_refusal(b, "--destroy fc=naa.600601609999 means another object: fc is " NAA);
    image_ours(b->fake[0].fd, 0, SIZE); /* also where no word was needed */
    expect_refusal(b, "--destroy fc=naa.600601609999 means another object: fc is " NAA);
}

static void label_that_no_target_has(void **state) {
    struct bench *b = *state;

    lun(b);
    type(b, "nfs", NULL);
    assert_int_equal(examine(b), -1);
    assert_int_equal(b->err.status, STATUS_USAGE);
    assert_string_equal(b->err.msg, "--destroy nfs: no target has this label; there are: fc");
}

static void a_read_that_fails(void **state) {
    struct bench *b = *state;

    lun(b);
    b->fake[0].error_at = 0;
    type(b, "fc", NULL);
    assert_int_equal(examine(b), -1);
    assert_int_equal(b->err.status, STATUS_TARGET);
    assert_non_null(
        strstr(b->err.msg, "fc: looking at what is on iscsi://10.0.0.1/iqn.2026-01.x:t/3 (" NAA "): reading"));
}

/* ---- use ---- */

/* A target that does not answer the first read is not asked again: each read may wait for the whole timeout. */
static void lost_at_the_first_read(void **state) {
    struct bench *b = *state;

    lun(b);
    type(b, "fc", NULL);
    b->fake[0].lost_submit = -ETIMEDOUT;
    assert_int_equal(examine(b), -1);
    assert_int_equal(b->err.status, STATUS_TARGET);
    assert_non_null(strstr(b->err.msg, "fc: looking whether another samedisk uses iscsi://10.0.0.1/"));
    assert_int_equal(b->fake[0].attaches, 1);
}

static void in_use_whatever_was_typed(void **state) {
    struct bench *b = *state;

    strcpy(lun(b)->in_use, "a reservation of iqn.\x1b[1m");
    type(b, "fc", NULL);
    expect_refusal(b, "fc: refused: iscsi://10.0.0.1/iqn.2026-01.x:t/3 (" NAA
                      ") is in use: a reservation of iqn.\\x1B[1m");
    assert_int_equal(b->fake[0].reads, 0); /* it is not even looked at */
}

static void a_lun_that_is_a_mounted_local_disk(void **state) {
    struct bench *b = *state;

    lun(b);
    type(b, "fc", NULL);
    text_file(b, "proc/self/mountinfo", "29 1 250:16 / /srv rw - ext4 /dev/sdxb rw\n");
    expect_refusal(b, "is in use on this machine: /dev/sdxb is mounted on /srv");
}

static void without_sysfs_no_lun_is_written(void **state) {
    struct bench *b = *state;
    struct facts *f = lun(b);

    b->wish.sysfs = "/nowhere";
    type(b, "fc", NULL);
    expect_refusal(b, "/nowhere/block: No such file or directory");
    target_close(&b->target[0]);
    f->kind = OBJECT_FILE; /* of a server: nobody here can have it */
    assert_int_equal(examine(b), 0);
}

static void write_protected(void **state) {
    struct bench *b = *state;

    lun(b)->read_only = true;
    type(b, "fc", NULL);
    expect_refusal(b, "cannot be written: it is read-only");
}

/* ---- creating ---- */

static void would_create(void **state) {
    struct bench *b = *state;

    missing(member(b, 0, "nfs", 0, "nfs://10.0.0.1/vol1/vm.dat", ""));
    b->wish.needed_size = b->wish.write_to = GIB;
    expect_verdict(b, SAFETY_CREATE, "nfs: nfs://10.0.0.1/vol1/vm.dat does not exist; will be created with 1 GiB");
    assert_int_equal(b->report.decision[0].create_size, GIB);
    assert_int_equal(b->fake[0].creates, 0);
    assert_int_equal(safety_apply(&b->wish, &b->report, &b->err), 0);
    assert_int_equal(b->fake[0].creates, 1);
    assert_true(b->target[0].member[0].created && b->target[0].member[0].consented);
    assert_int_equal(b->target[0].facts.size, GIB);
}

static void a_directory_with_locks(void **state) {
    struct bench *b = *state;
    struct facts *f = member(b, 0, "nfs", 0, "nfs://10.0.0.1/vol1/vm.dat", "");

    missing(f);
    strcpy(f->in_use, "the directory holds .lck-ab");
    expect_refusal(b, "nfs: refused: nfs://10.0.0.1/vol1/vm.dat is in use: the directory holds .lck-ab");
}

static void forbidden_folders(void **state) {
    struct bench *b = *state;
    char link[200], url[250];

    snprintf(link, sizeof(link), "%s/link", b->root);
    assert_int_equal(symlink("/proc/self", link), 0);
    snprintf(url, sizeof(url), "file:%s/link/x", b->root);
    const struct {
        const char *url, *says;
    } cases[] = {{"/dev/shm/x", "lies under /dev"},
                 {"file:/proc/x", "lies under /proc"},
                 {"file:/sys/kernel/x", "lies under /sys"},
                 {"file:/tmp/../sys/x", "lies under /sys"},
                 {url, "lies under /proc"},
                 {"file:/no/such/folder/x", "its folder: No such file or directory"}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        target_free(&b->target[0]);
        missing(member(b, 0, "file", 0, cases[i].url, ""));
        expect_refusal(b, cases[i].says);
    }
    /* Also what exists there is no file of ours to write. */
    target_free(&b->target[0]);
    missing(member(b, 0, "file", 0, "file:/proc/version", ""));
    b->fake[0].facts.exists = true;
    b->fake[0].facts.size = SIZE;
    type(b, "file", NULL);
    expect_refusal(b, "lies under /proc");
}

static void root_file_system_must_be_spelled_out(void **state) {
    struct bench *b = *state;
    struct facts *f;
    char path[100], url[120];

    snprintf(path, sizeof(path), "%s/new", b->root);
    snprintf(url, sizeof(url), "file:%s/new", b->root);
    missing(f = member(b, 0, "file", 0, path, ""));
    f->root_fs = 1;
    expect_refusal(
        b, "does not exist and would be created on the root file system\nif it is meant, spell it out: file:/PATH");
    target_free(&b->target[0]);
    missing(f = member(b, 0, "file", 0, url, ""));
    f->root_fs = 1;
    assert_int_equal(examine(b), 0);
    assert_int_equal(b->report.decision[0].verdict, SAFETY_CREATE);
}

/* ---- space ---- */

static void space(void **state) {
    struct bench *b = *state;
    struct facts *f = member(b, 0, "nfs", 0, "nfs://10.0.0.1/vol1/a", "");
    static const struct {
        uint64_t total, free, size;
        bool full, ok;
    } cases[] = {
        {1000 * GIB, 200 * GIB, 100 * GIB, false, true}, /* 10 % of 1000 remain */
        {1000 * GIB, 200 * GIB, 100 * GIB + 1, false, false},
        {1000 * GIB, 200 * GIB, 100 * GIB + 1, true, true},
        {50 * GIB, 20 * GIB, 10 * GIB, false, true}, /* 10 GiB remain, of which 10 % were only 5 */
        {50 * GIB, 20 * GIB, 10 * GIB + 1, false, false},
        {GIB, GIB, 8 * MIB, false, false},
        {GIB, GIB, 8 * MIB, true, true}, /* a small test file system */
        {GIB, 8 * MIB, 8 * MIB, true, true},
        {GIB, 8 * MIB, 8 * MIB + 1, true, false}, /* it must fit in any case */
        {0, 0, 8 * MIB, false, false},
        {0, 0, 8 * MIB, true, true} /* unknown */
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        missing(f);
        f->fs_total = cases[i].total;
        f->fs_free = cases[i].free;
        b->wish.needed_size = b->wish.write_to = cases[i].size;
        b->wish.allow_full = cases[i].full;
        target_close(&b->target[0]);
        if ((examine(b) == 0) != cases[i].ok) fail_msg("case %zu: %s", i, b->err.msg);
    }
    assert_int_equal(b->err.msg[0], 0);
    missing(f);
    f->fs_free = 104 * GIB;
    b->wish.needed_size = b->wish.write_to = 5 * GIB;
    b->wish.allow_full = false;
    target_close(&b->target[0]);
    expect_refusal(
        b, "5 GiB would be allocated; of the 104 GiB free on its file system (1000 GiB in all) 100 GiB must remain");
}

static void files_on_one_file_system_add_up(void **state) {
    struct bench *b = *state;

    missing(member(b, 0, "nfs", 0, "nfs://10.0.0.1/vol1/a", ""));
    missing(member(b, 1, "nfs-2", 1, "nfs://10.0.0.1/vol1/b", ""));
    b->fake[0].facts.fs_free = b->fake[1].facts.fs_free = 160 * GIB;
    b->wish.needed_size = b->wish.write_to = 40 * GIB;
    expect_refusal(b, "80 GiB would be allocated by 2 files together");
    assert_int_equal(b->report.refused, 2);
    b->wish.needed_size = b->wish.write_to = 30 * GIB;
    assert_int_equal(examine(b), 0);
    /* Two servers are two file systems; one file by two labels is one file. */
    b->wish.needed_size = b->wish.write_to = 40 * GIB;
    target_free(&b->target[1]);
    missing(member(b, 1, "nfs-2", 1, "nfs://10.0.0.2/vol1/b", ""));
    b->fake[1].facts.fs_free = 160 * GIB;
    assert_int_equal(examine(b), 0);
    target_free(&b->target[1]);
    missing(member(b, 1, "nfs-2", 1, "nfs://10.0.0.1/vol1/a?nconnect=4", ""));
    b->fake[1].facts.fs_free = 160 * GIB;
    assert_int_equal(examine(b), 0);
}

static void holes_need_space_too(void **state) {
    struct bench *b = *state;
    struct facts *f = member(b, 0, "nfs", 0, "nfs://10.0.0.1/vol1/a", "fsid:1/fileid:2");

    f->kind = OBJECT_FILE;
    f->allocated = MIB;
    f->fs_total = 1000 * GIB;
    f->fs_free = 100 * GIB + 7 * MIB; /* one too few: 16 - 1 MiB of holes, of which 8 MiB are written */
    type(b, "nfs", NULL);
    expect_refusal(b, "8 MiB would be allocated");
    target_close(&b->target[0]);
    f->fs_free += MIB;
    assert_int_equal(examine(b), 0);
    target_close(&b->target[0]);
    f->fs_free = 0;
    f->allocated = SIZE; /* nothing more is needed */
    assert_int_equal(examine(b), 0);
}

/* ---- several ---- */

static void one_object_under_two_labels(void **state) {
    struct bench *b = *state;
    struct facts *f = member(b, 0, "iscsi", 0, "iscsi://10.0.0.1/iqn.x:t/0", NAA);

    member(b, 1, "fc", 1, "/dev/sdxb", NAA)->kind = OBJECT_DEVICE;
    b->fake[1].facts.rdev = makedev(250, 16);
    expect_refusal(b, "iscsi: refused: all zeros");
    assert_int_equal(b->report.refused, 2);
    type(b, "fc", NULL);
    expect_refusal(b, "iscsi: refused: all zeros"); /* with nothing on them a common name proves nothing */
    assert_int_equal(b->report.refused, 1);
    assert_int_equal(sameness_of(&b->report.same, 0, 1)->verdict, SAMENESS_UNCONFIRMED);
    for (unsigned i = 0; i < 2; i++) put(b->fake[i].fd, 8192, "one", 3);
    b->wish.write_from = 8192;
    type(b, "fc", "unknown-data");
    assert_int_equal(examine(b), 0); /* agreed to once */
    assert_int_equal(b->report.decision[0].verdict, SAFETY_CONSENTED);
    assert_int_equal(b->report.decision[1].verdict, SAFETY_CONSENTED);
    assert_true(b->report.decision[0].borrowed);
    assert_false(b->report.decision[1].borrowed);
    assert_true(sameness_of(&b->report.same, 0, 1)->by_content);
    put(b->fake[0].fd, 0, "another", 7); /* one name, two objects: each has its own consent */
    expect_refusal(b, "iscsi: refused: unknown data");
    assert_int_equal(b->report.refused, 1);
    assert_int_equal(sameness_of(&b->report.same, 0, 1)->verdict, SAMENESS_DIFFERENT);
    assert_string_equal(sameness_of(&b->report.same, 0, 1)->how, "they differ at offset 0");
    put(b->fake[0].fd, 0, "\0\0\0\0\0\0\0", 7);
    /* A file and a block view never both write. */
    target_close(&b->target[0]);
    f->kind = OBJECT_FILE;
    expect_refusal(b, "fc: refused: /dev/sdxb (" NAA ") is the same object as iscsi://10.0.0.1/iqn.x:t/0 (" NAA
                      ") of target iscsi; a "
                      "file and a block view of one object never both write");
    b->wish.writes = false;
    assert_int_equal(examine(b), 0);
}

static void one_device_twice(void **state) {
    struct bench *b = *state;

    for (unsigned i = 0; i < 2; i++) {
        struct facts *f = member(b, i, i ? "fc-2" : "fc", i, "/dev/sdxb", "dev:250:16");
        f->kind = OBJECT_DEVICE;
        f->rdev = makedev(250, 16);
    }
    type(b, "fc", NULL);
    expect_refusal(
        b, "fc-2: refused: /dev/sdxb (dev:250:16) is the device of target fc, which opens it exclusively to write");
}

static void a_member_twice(void **state) {
    struct bench *b = *state;

    member(b, 0, "fc", 0, "iscsi://10.0.0.1/iqn.x:t/0", NAA);
    member(b, 0, "fc", 1, "iscsi://10.0.0.2/iqn.x:t/0", NAA);
    b->wish.writes = false;
    b->wish.needed_size = MIB;
    expect_refusal(b, "nothing tells them apart (all 68 sampled blocks of both are zeros)");
    for (unsigned i = 0; i < 2; i++) put(b->fake[i].fd, 0, "one", 3);
    expect_refusal(b, "are one object, and it can be a member only once");
    target_free(&b->target[0]);
    missing(member(b, 0, "nfs", 0, "nfs://h/e/f", ""));
    missing(member(b, 0, "nfs", 1, "nfs://h/e/f?nconnect=2", ""));
    b->wish.writes = true;
    expect_refusal(b, "are one object, and it can be a member only once");
}

static void members_are_judged_by_their_part(void **state) {
    struct bench *b = *state;

    for (unsigned i = 0; i < 2; i++) {
        char url[32], identity[32];
        snprintf(url, sizeof(url), "iscsi://h/iqn.x:t/%u", i);
        snprintf(identity, sizeof(identity), "naa.%u", i);
        member(b, 0, "fc", i, url, identity)->max_io = MIB;
    }
    b->wish.needed_size = b->wish.write_to = 3 * MIB; /* stripes 0, 2 on the first, 1 on the second */
    image_ours(b->fake[0].fd, 0, 2 * MIB);
    image_ours(b->fake[1].fd, 0, MIB);
    put(b->fake[0].fd, 2 * MIB, "behind", 6);
    put(b->fake[1].fd, MIB, "behind", 6);
    assert_int_equal(examine(b), 0);
    assert_int_equal(b->report.n, 2);
    assert_int_equal(b->report.decision[0].verdict, SAFETY_OWN_DATA);
    assert_int_equal(b->report.decision[1].verdict, SAFETY_OWN_DATA);
    assert_non_null(strstr(b->report.decision[1].text, "from 0 to 1 MiB"));
    b->wish.overrun = 4096; /* I/Os that run on behind their stripe would hit it */
    expect_refusal(b, "unknown data");
    assert_int_equal(b->report.refused, 2);
}

static void one_new_file_by_two_labels(void **state) {
    struct bench *b = *state;

    missing(member(b, 0, "nfs", 0, "nfs://h/e/f", ""));
    missing(member(b, 1, "nfs4", 0, "nfs://h/e/f?nconnect=4", "")); /* the same fake: the same file */
    assert_int_equal(examine(b), 0);
    if (safety_apply(&b->wish, &b->report, &b->err) != 0) fail_msg("%s", b->err.msg);
    assert_int_equal(b->fake[0].creates, 1);
    assert_true(b->target[0].member[0].created);
    assert_false(b->target[1].member[0].created);
    assert_true(b->target[1].member[0].consented && b->target[1].member[0].handle->write);
}

static void all_refusals_are_told(void **state) {
    struct bench *b = *state;

    lun(b);
    image_swap(b->fake[1].fd, 0, SIZE);
    member(b, 1, "san", 1, "/dev/sdxq", "naa.77");
    missing(member(b, 2, "file", 2, "/dev/x", ""));
    assert_int_equal(examine(b), -1);
    assert_int_equal(b->report.refused, 3);
    assert_non_null(strstr(b->err.msg, "fc: refused: all zeros"));
    assert_non_null(strstr(b->err.msg, "\nsan: refused: swap space (swap)"));
    assert_non_null(strstr(b->err.msg, "\nfile: refused: /dev/x lies under /dev"));
}

static void what_to_type_is_never_cut(void **state) {
    struct bench *b = *state;
    char url[400], label[64];

    snprintf(url, sizeof(url), "iscsi://h/%0300d/1", 7);
    snprintf(label, sizeof(label), "%063d", 1);
    char name[100];
    snprintf(name, sizeof(name), "t10.%090d", 5);
    member(b, 0, label, 0, url, name);
    image_ext4(b->fake[0].fd, 0, SIZE, "0123456789abcdef");
    assert_int_equal(examine(b), -1);
    assert_string_equal(b->report.decision[0].text + strlen(b->report.decision[0].text) - 6, "=ext4)");
}

/* ---- reading plans ---- */

static void reading_plans_only_check_sizes(void **state) {
    struct bench *b = *state;

    strcpy(lun(b)->in_use, "a cluster");
    b->fake[0].facts.read_only = true;
    image_ext4(b->fake[0].fd, 0, SIZE, "");
    b->wish.writes = false;
    b->wish.sysfs = b->wish.proc = "/nowhere";
    expect_verdict(b, SAFETY_READ, "fc: iscsi://10.0.0.1/iqn.2026-01.x:t/3 (" NAA "), 16 MiB: only read");
    assert_int_equal(b->fake[0].reads, 1); /* who writes to it */
    assert_int_equal(safety_apply(&b->wish, &b->report, &b->err), 0);
    assert_int_equal(b->fake[0].opens, 1); /* as it was opened */
    assert_false(b->target[0].member[0].consented);
    assert_non_null(b->target[0].handle);
    b->wish.needed_size = SIZE + 512;
    expect_refusal(b, "nothing is grown");
    target_free(&b->target[0]);
    missing(member(b, 0, "nfs", 0, "nfs://h/e/f", ""));
    expect_refusal(b, "does not exist, and nothing in the plan writes");
}

static void null_needs_no_consent(void **state) {
    struct bench *b = *state;

    lun(b)->kind = OBJECT_NULL;
    b->wish.sysfs = "/nowhere";
    assert_int_equal(examine(b), 0);
    assert_int_equal(b->report.decision[0].verdict, SAFETY_OWN_DATA);
    assert_int_equal(b->fake[0].reads, 0);
    type(b, "fc", NULL);
    assert_int_equal(examine(b), 0);
}

/* ---- applying and cleaning up ---- */

static void failing_to_apply_leaves_nothing_behind(void **state) {
    struct bench *b = *state;

    missing(member(b, 0, "nfs", 0, "nfs://h/e/f", ""));
    member(b, 1, "fc", 1, "iscsi://h/iqn.x/0", NAA);
    type(b, "fc", NULL);
    assert_int_equal(examine(b), 0);
    b->fake[1].identity_later = "naa.5"; /* the LUN number means another LUN by now */
    assert_int_equal(safety_apply(&b->wish, &b->report, &b->err), -1);
    assert_non_null(strstr(b->err.msg, "fc: iscsi://h/iqn.x/0 was " NAA " when it was examined, and is naa.5 now"));
    assert_int_equal(b->fake[0].creates, 1);
    assert_int_equal(b->fake[0].removes, 1);
    assert_false(b->target[0].member[0].created);
    assert_false(b->target[1].member[0].consented);
}

static void in_use_at_last(void **state) {
    struct bench *b = *state;

    lun(b);
    type(b, "fc", NULL);
    assert_int_equal(examine(b), 0);
    strcpy(b->fake[0].facts.in_use, "a key of another host");
    assert_int_equal(safety_apply(&b->wish, &b->report, &b->err), -1);
    assert_non_null(strstr(b->err.msg, "is in use: a key of another host"));
    assert_false(b->target[0].member[0].consented);
}

static void say(void *arg, const char *line) {
    struct bench *b = arg;
    size_t n = strlen(b->said);

    snprintf(b->said + n, sizeof(b->said) - n, "%s\n", line);
}

static void cleaning_up(void **state) {
    struct bench *b = *state;

    missing(member(b, 0, "nfs", 0, "nfs://h/e/f", ""));
    missing(member(b, 1, "nfs-2", 1, "nfs://h/e/g", ""));
    member(b, 2, "fc", 2, "iscsi://h/iqn.x/0", NAA);
    type(b, "fc", NULL);
    assert_int_equal(examine(b), 0);
    assert_int_equal(safety_apply(&b->wish, &b->report, &b->err), 0);
    b->fake[1].creates = 0; /* somebody put another file in its place */
    assert_int_equal(safety_cleanup(b->targets, 3, say, b, &b->err), -1);
    assert_string_equal(b->said,
                        "nfs: removed: nfs://h/e/f\nnfs-2: not removed: nfs://h/e/g: it is another file by now\n");
    assert_string_equal(b->err.msg, "nfs-2: not removed: nfs://h/e/g: it is another file by now");
    assert_int_equal(b->fake[0].removes, 1);
    assert_int_equal(b->fake[2].removes, 0); /* was there before */
    b->said[0] = '\0';
    b->target[1].member[0].created = false;
    assert_int_equal(safety_cleanup(b->targets, 3, say, b, &b->err), 0); /* nothing is left to do */
    assert_string_equal(b->said, "");
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {T(zeros),
                                       T(own_data),
                                       T(unknown_data),
                                       T(signatures),
                                       T(identity_of_another_object),
                                       T(label_that_no_target_has),
                                       T(a_read_that_fails),
                                       T(lost_at_the_first_read),
                                       T(in_use_whatever_was_typed),
                                       T(a_lun_that_is_a_mounted_local_disk),
                                       T(without_sysfs_no_lun_is_written),
                                       T(write_protected),
                                       T(would_create),
                                       T(a_directory_with_locks),
                                       T(forbidden_folders),
                                       T(root_file_system_must_be_spelled_out),
                                       T(space),
                                       T(files_on_one_file_system_add_up),
                                       T(holes_need_space_too),
                                       T(one_object_under_two_labels),
                                       T(one_device_twice),
                                       T(a_member_twice),
                                       T(members_are_judged_by_their_part),
                                       T(one_new_file_by_two_labels),
                                       T(all_refusals_are_told),
                                       T(what_to_type_is_never_cut),
                                       T(reading_plans_only_check_sizes),
                                       T(null_needs_no_consent),
                                       T(failing_to_apply_leaves_nothing_behind),
                                       T(in_use_at_last),
                                       T(cleaning_up)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
