/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From consent to the writes: records of who writes, what came meanwhile, which targets are one, over the fake backend. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <ftw.h>
#include <sys/stat.h>

#include "disk_images.h"
#include "fake_backend.h"
#include "safety/guard.h"
#include "safety/owner.h"

#define MIB  (1ULL << 20)
#define SIZE (8 * MIB)
#define NAA  "naa.600601601234"

struct bench {
    struct fake fake[2];
    struct target target[2], *targets[2];
    struct clock clock;
    struct safety_wish wish;
    struct safety_destroy destroy[4];
    struct safety_report report;
    struct safety_guard *guard;
    uint32_t tag[2];
    struct err err;
    char said[2048];
};

/* Target `t` means fake `i`. */
static void target(struct bench *b, unsigned t, unsigned i, const char *label, const char *url, const char *identity) {
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
}

static int setup(void **state) {
    struct bench *b = calloc(1, sizeof(*b));

    for (unsigned i = 0; i < 2; i++) {
        fake_init(&b->fake[i], SIZE);
        b->fake[i].facts.kind = OBJECT_FILE;
        b->fake[i].facts.allocated = SIZE;
        b->targets[i] = &b->target[i];
        b->target[i].clock = &b->clock;
        b->tag[i] = 1000 + i;
    }
    clock_real_init(&b->clock);
    b->wish = (struct safety_wish){.targets = b->targets,
                                   .writes = true,
                                   .needed_size = SIZE,
                                   .write_to = 4 * MIB,
                                   .destroy = b->destroy,
                                   .allow_full = true,
                                   .sysfs = "/nowhere",
                                   .proc = "/proc"};
    *state = b;
    return 0;
}

static int teardown(void **state) {
    struct bench *b = *state;

    safety_guard_end(b->guard);
    safety_report_free(&b->report);
    for (unsigned i = 0; i < 2; i++) target_free(&b->target[i]);
    for (unsigned i = 0; i < 2; i++) fake_free(&b->fake[i]);
    free(b);
    return 0;
}

static void type(struct bench *b, const char *label, const char *what) {
    b->destroy[b->wish.n_destroy++] = (struct safety_destroy){label, what};
}

static int examine(struct bench *b) {
    for (unsigned t = 0; t < b->wish.n_targets; t++) assert_int_equal(target_open_read(&b->target[t], &b->err), 0);
    safety_report_free(&b->report);
    return safety_examine(&b->wish, &b->report, &b->err);
}

static int begin(struct bench *b) {
    if (examine(b) != 0 || safety_apply(&b->wish, &b->report, &b->err) != 0) fail_msg("%s", b->err.msg);
    return safety_guard_begin(&b->wish, &b->report, &b->guard, &b->err);
}

static void expect_error(struct bench *b, enum status status, const char *text) {
    assert_int_equal(b->err.status, status);
    if (!strstr(b->err.msg, text)) fail_msg("wanted: %s\ngot: %s", text, b->err.msg);
}

static bool record_of(const struct bench *b, unsigned i, uint64_t at, struct owner *o) {
    unsigned char block[4096];

    assert_int_equal(pread(b->fake[i].fd, block, sizeof(block), (off_t)at), sizeof(block));
    return owner_of_block(block, o);
}

/* Somebody's record at `at` of fake `i`. */
static void leave_record(struct bench *b, unsigned i, uint64_t at, const struct owner *o) {
    unsigned char block[4096], bytes[OWNER_SIZE];
    struct data_note note = {.offset = at, .bytes = bytes, .len = OWNER_SIZE};
    struct data data;

    owner_encode(o, bytes);
    data_init(&data, 7, 0, &note);
    data_make(&data, block, at, sizeof(block));
    put(b->fake[i].fd, at, block, sizeof(block));
}

/* What the session does when it fills [from, to) of fake `i`. */
static void fill(struct bench *b, unsigned i, uint32_t tag, uint64_t from, uint64_t to, const struct data_note *note) {
    static unsigned char buf[MIB];
    struct data data;

    data_init(&data, tag, from / 4096, note);
    for (uint64_t at = from; at < to; at += sizeof(buf)) {
        data_make(&data, buf, at, sizeof(buf));
        put(b->fake[i].fd, at, buf, sizeof(buf));
    }
}

static int before(struct bench *b, unsigned t) {
    return safety_guard_before_write(b->guard, t, true, b->tag, &b->err);
}

/* ---- who writes ---- */

static void taken_and_given_back(void **state) {
    struct bench *b = *state;
    struct owner o;

    target(b, 0, 0, "a", "nfs://h/e/f", "file:1:2:3");
    b->wish.write_from = 4608; /* the first whole block behind it */
    type(b, "a", NULL);
    if (begin(b) != 0) fail_msg("%s", b->err.msg);
    assert_true(record_of(b, 0, 8192, &o));
    assert_int_equal(o.state, OWNER_ACTIVE);
    assert_int_equal(o.pid, getpid());
    assert_true(o.start > 0 && o.since > 0);
    const struct data_note *note = safety_guard_note(b->guard, 0);
    assert_int_equal(note->offset, 8192);
    assert_int_equal(before(b, 0), 0);
    fill(b, 0, b->tag[0], 0, 4 * MIB, note);
    assert_int_equal(safety_guard_before_write(b->guard, 0, false, b->tag, &b->err), 0);
    safety_guard_end(b->guard);
    b->guard = NULL;
    assert_true(record_of(b, 0, 8192, &o));
    assert_int_equal(o.state, OWNER_RELEASED);
    target_close(&b->target[0]);
    if (examine(b) != 0) fail_msg("%s", b->err.msg); /* free again */
    assert_int_equal(b->report.decision[0].verdict, SAFETY_CONSENTED);
}

static void others(void **state) {
    struct bench *b = *state;
    struct owner other, self;

    target(b, 0, 0, "a", "nfs://h/e/f", "file:1:2:3");
    owner_self(&other, "/proc");
    owner_self(&self, "/proc");
    assert_int_equal(owner_judge(&self, &self, "/proc"), OWNER_OURS);
    assert_int_equal(owner_judge(&other, &self, "/proc"), OWNER_RUNNING); /* this process lives, under another token */
    leave_record(b, 0, 0, &other);
    assert_int_equal(examine(b), -1);
    expect_error(b, STATUS_USAGE, "a: refused: samedisk on host ");
    assert_non_null(strstr(b->err.msg, ", writes to it since 20"));
    type(b, "a", "stale-owner");
    assert_int_equal(examine(b), -1); /* it can be seen to live */
    b->wish.writes = false;
    assert_int_equal(examine(b), -1); /* to read beside it measures nonsense */
    b->wish.writes = true;
    b->wish.n_destroy = 0;

    other.start++; /* the number was given to another process */
    leave_record(b, 0, 0, &other);
    assert_int_equal(examine(b), 0);
    other.start--;
    other.state = OWNER_RELEASED;
    leave_record(b, 0, 0, &other);
    assert_int_equal(examine(b), 0);

    other.state = OWNER_ACTIVE;
    other.boot[3] ^= 1; /* another host */
    strcpy(other.host, "filer\x1b[m");
    leave_record(b, 0, 0, &other);
    assert_int_equal(examine(b), -1);
    expect_error(b, STATUS_USAGE, "samedisk on host filer\\x1B[m, process ");
    assert_non_null(strstr(b->err.msg, "\nif that run is known to be over, type: --destroy a=stale-owner"));
    type(b, "a", "stale-owner");
    assert_int_equal(examine(b), 0);
    if (begin(b) != 0) fail_msg("%s", b->err.msg);
    assert_true(record_of(b, 0, 0, &other));
    assert_int_equal(other.pid, getpid());
}

static void a_record_that_was_overwritten(void **state) {
    struct bench *b = *state;
    struct owner other;

    target(b, 0, 0, "a", "nfs://h/e/f", "file:1:2:3");
    type(b, "a", NULL);
    if (begin(b) != 0) fail_msg("%s", b->err.msg);
    owner_self(&other, "/proc");
    leave_record(b, 0, 0, &other);
    assert_int_equal(safety_guard_before_write(b->guard, 0, false, b->tag, &b->err), -1);
    expect_error(b, STATUS_TARGET, "a: refused: samedisk on host");
    put(b->fake[0].fd, 1024, "a superblock, say", 17); /* behind the record, in its block */
    assert_int_equal(safety_guard_before_write(b->guard, 0, false, b->tag, &b->err), -1);
    safety_guard_end(b->guard); /* it is his now */
    b->guard = NULL;
    assert_true(record_of(b, 0, 0, &other));
    assert_int_equal(other.state, OWNER_ACTIVE);
}

/* Between the examination and the record, which is the first thing that is written. */
static void another_block_than_was_examined(void **state) {
    struct bench *b = *state;
    unsigned char block[4096];
    struct owner o;

    target(b, 0, 0, "a", "iscsi://h/iqn.x/0", "naa.1");
    memset(block, 1, sizeof(block));
    put(b->fake[0].fd, 0, block, sizeof(block));
    type(b, "a", "unknown-data");
    if (examine(b) != 0 || safety_apply(&b->wish, &b->report, &b->err) != 0) fail_msg("%s", b->err.msg);
    put(b->fake[0].fd, 1024, "\x53\xef", 2);
    assert_int_equal(safety_guard_begin(&b->wish, &b->report, &b->guard, &b->err), -1);
    expect_error(b, STATUS_TARGET, "a: refused: what lies at offset 0 is not what was there when it was examined");
    assert_false(record_of(b, 0, 0, &o));
}

static void a_target_that_keeps_nothing(void **state) {
    struct bench *b = *state;

    target(b, 0, 0, "a", "iscsi://h/iqn.x:t/1", NAA);
    b->fake[0].keeps_nothing = true;
    type(b, "a", NULL);
    if (begin(b) != 0) fail_msg("%s", b->err.msg);
    assert_null(safety_guard_note(b->guard, 0));
    assert_non_null(kv_find(&b->target[0].member[0].facts.warnings, "keeps-nothing"));
    assert_int_equal(before(b, 0), 0);
}

/* ---- what came meanwhile ---- */

static void text_file(const char *root, const char *name, const char *text) {
    char path[300];

    snprintf(path, sizeof(path), "%s/%s", root, name);
    for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw) {
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

static void came_into_use(void **state) {
    struct bench *b = *state;
    char root[] = "/tmp/samedisk-test-XXXXXX", sys[80], proc[80];

    assert_non_null(mkdtemp(root));
    snprintf(sys, sizeof(sys), "%s/sys", root);
    snprintf(proc, sizeof(proc), "%s/proc", root);
    text_file(root, "sys/block/sdxb/dev", "250:16\n");
    text_file(root, "sys/block/sdxb/device/wwid", NAA "\n");
    text_file(root, "proc/self/mountinfo", "");
    b->wish.sysfs = sys;
    b->wish.proc = proc;
    target(b, 0, 0, "a", "iscsi://h/iqn.x:t/1", NAA);
    b->fake[0].facts.kind = OBJECT_LUN;
    type(b, "a", NULL);
    if (begin(b) != 0) fail_msg("%s", b->err.msg);
    assert_int_equal(before(b, 0), 0);
    text_file(root, "proc/self/mountinfo", "36 1 250:16 / /mnt rw - ext4 /dev/sdxb rw\n");
    assert_int_equal(before(b, 0), -1);
    expect_error(b, STATUS_TARGET, "came into use on this machine: /dev/sdxb is mounted on /mnt");
    nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    b->wish.sysfs = b->wish.proc = "/nowhere";
}

static void new_content(void **state) {
    struct bench *b = *state;

    target(b, 0, 0, "a", "nfs://h/e/f", "file:1:2:3");
    type(b, "a", NULL);
    if (begin(b) != 0) fail_msg("%s", b->err.msg);
    assert_int_equal(before(b, 0), 0);
    put(b->fake[0].fd, MIB, "a database, say", 15);
    assert_int_equal(before(b, 0), -1);
    expect_error(b, STATUS_TARGET, "a: not written: unknown data");
    assert_non_null(strstr(b->err.msg, "when the plan was made there was all zeros"));
}

static void new_signature(void **state) {
    struct bench *b = *state;

    target(b, 0, 0, "a", "nfs://h/e/f", "file:1:2:3");
    b->wish.write_from = 2 * MIB;
    put(b->fake[0].fd, 3 * MIB, "a database, say", 15);
    type(b, "a", "unknown-data");
    if (begin(b) != 0) fail_msg("%s", b->err.msg);
    assert_int_equal(before(b, 0), 0); /* what was consented to */
    image_ext4(b->fake[0].fd, 0, SIZE, "new");
    assert_int_equal(before(b, 0), -1);
    expect_error(b, STATUS_TARGET, "a: not written: ext4 file system \"new\"");
}

/* ---- which are one ---- */

static void a_copy_is_another_object(void **state) {
    struct bench *b = *state;

    for (unsigned i = 0; i < 2; i++) put(b->fake[i].fd, MIB, "the same", 8);
    target(b, 0, 0, "a", "iscsi://h/iqn.x:t/1", NAA);
    target(b, 1, 1, "b", "iscsi://h2/iqn.x:t/1", NAA);
    b->wish.write_from = MIB;
    type(b, "b", "unknown-data"); /* the owner's words for the second: it is taken first all the same */
    assert_int_equal(begin(b), -1);
    expect_error(b, STATUS_USAGE, "a: refused: it bears the identity of b and looked the same, but is another object");
    assert_int_equal(b->fake[0].writes, 0);
    assert_int_equal(sameness_of(&b->report.same, 0, 1)->verdict, SAMENESS_DIFFERENT);
}

static void two_roads_to_one(void **state) {
    struct bench *b = *state;

    target(b, 0, 0, "a", "iscsi://h/iqn.x:t/1", NAA);
    target(b, 1, 0, "b", "iscsi://h2/iqn.x:t/1", NAA);
    type(b, "a", NULL);
    type(b, "b", NULL); /* all zeros: nothing confirms that they are one */
    if (begin(b) != 0) fail_msg("%s", b->err.msg);
    assert_int_equal(sameness_of(&b->report.same, 0, 1)->verdict, SAMENESS_ONE); /* the record was found */
    assert_int_equal(before(b, 0), 0);
    fill(b, 0, b->tag[0], 0, 4 * MIB, safety_guard_note(b->guard, 0));
    b->target[0].filled = true;
    assert_int_equal(before(b, 1), 0);
    assert_true(sameness_is_one(&b->report.same, 0, 1));
}

static void file_and_block_view(void **state) {
    struct bench *b = *state;

    target(b, 0, 0, "a", "nfs://h/e/f", "fsid:1/fileid:2");
    target(b, 1, 1, "b", "iscsi://h/iqn.x:t/1", NAA);
    b->fake[1].facts.kind = OBJECT_LUN;
    b->wish.sysfs = "/sys";
    dup2(b->fake[0].fd, b->fake[1].fd); /* the LUN is the file */
    type(b, "a", NULL);
    type(b, "b", NULL);
    assert_int_equal(begin(b), -1);
    expect_error(b, STATUS_USAGE, "b: refused: what was written to target a is found on it");
}

static void found_at_other_places(void **state) {
    struct bench *b = *state;

    target(b, 0, 0, "a", "nfs://h/e/f", "file:1:2:3");
    target(b, 1, 1, "b", "nfs://h/e/g", "file:1:2:4");
    type(b, "a", NULL);
    type(b, "b", NULL);
    if (begin(b) != 0) fail_msg("%s", b->err.msg);
    b->target[0].filled = true;
    assert_int_equal(before(b, 1), 0);
    struct sameness_pair *p = sameness_of(&b->report.same, 0, 1);
    assert_int_equal(p->verdict, SAMENESS_NO_SIGN);
    assert_true(p->blocks >= 256);
    fill(b, 1, b->tag[0], 5 * MIB, 8 * MIB, NULL); /* a's blocks lie in b */
    assert_int_equal(before(b, 1), -1);
    expect_error(b, STATUS_TARGET, "b: refused: what was written to target a is found on it");
    assert_int_equal(p->verdict, SAMENESS_SHARED);
}

/* ---- what could not be filled ---- */

static void say(void *arg, const char *line) {
    struct bench *b = arg;
    size_t n = strlen(b->said);
    snprintf(b->said + n, sizeof(b->said) - n, "%s\n", line);
}

static void unfilled_files_are_removed(void **state) {
    struct bench *b = *state;

    for (unsigned i = 0; i < 2; i++) {
        struct facts *f = &b->fake[i].facts;
        f->exists = false;
        f->size = 0;
        f->fs_total = f->fs_free = 1000 << 20;
    }
    target(b, 0, 0, "a", "nfs://h/e/f", "");
    target(b, 1, 1, "b", "nfs://h/e/g", "");
    if (begin(b) != 0) fail_msg("%s", b->err.msg);
    assert_true(b->target[0].unfilled && b->target[1].unfilled);
    b->target[1].unfilled = false;
    safety_remove_unfilled(&b->target[1], false, say, b);
    assert_int_equal(b->fake[1].removes, 0);
    safety_remove_unfilled(&b->target[0], true, say, b);
    assert_int_equal(b->fake[0].removes, 0);
    assert_string_equal(b->said,
                        "a: nfs://h/e/f was created and not filled to the end; --keep-partial leaves it\n");
    b->target[0].unfilled = true;
    safety_remove_unfilled(&b->target[0], false, say, b);
    assert_int_equal(b->fake[0].removes, 1);
    assert_non_null(strstr(b->said, "a: removed: nfs://h/e/f, which was created and not filled to the end"));
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(taken_and_given_back),
        T(others),
        T(a_record_that_was_overwritten),
        T(another_block_than_was_examined), T(a_target_that_keeps_nothing),
        T(new_content),
        T(came_into_use),
        T(new_signature),
        T(two_roads_to_one),
        T(a_copy_is_another_object),
        T(file_and_block_view),
        T(found_at_other_places),
        T(unfilled_files_are_removed),
    };
    return cmocka_run_group_tests_name("safety_guard", tests, NULL, NULL);
}
