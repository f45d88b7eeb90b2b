/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "backends/stripe.h"
#include "target/filter.h"
#include "fake_backend.h"
#include "target/identity.h"
#include "target/target.h"

#define MIB (1ULL << 20)

struct bench {
    struct fake fake[3];
    struct clock clock;
    struct target target;
    struct err err;
};

static void add_member(struct bench *b, unsigned i, const char *url) {
    struct member *m = &b->target.member[b->target.n_members++];
    struct fake **conf = malloc(sizeof(*conf));

    *conf = &b->fake[i];
    m->url = strdup(url);
    m->backend = &fake_backend;
    m->conf = conf;
}

static int setup(void **state) {
    struct bench *b = calloc(1, sizeof(*b));

    for (unsigned i = 0; i < 3; i++) {
        fake_init(&b->fake[i], 256 * MIB);
        snprintf(b->fake[i].facts.identity[0], sizeof(b->fake[i].facts.identity[0]), "naa.%u", i);
    }
    strcpy(b->target.label, "fc");
    clock_real_init(&b->clock);
    b->target.clock = &b->clock;
    *state = b;
    return 0;
}

static int teardown(void **state) {
    struct bench *b = *state;

    target_free(&b->target);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(b->fake[i].open_handles, 0);
        fake_free(&b->fake[i]);
    }
    free(b);
    return 0;
}

static void one_member(void **state) {
    struct bench *b = *state;
    struct target *t = &b->target;

    add_member(b, 0, "/dev/a");
    assert_int_equal(target_open_read(t, &b->err), 0);
    assert_int_equal(b->fake[0].last_mode, OPEN_READ);
    assert_null(t->handle);
    assert_int_equal(target_assemble(t, &b->err), 0);
    assert_ptr_equal(t->handle, t->member[0].handle);
    assert_ptr_equal(t->backend, &fake_backend);
    assert_int_equal(t->facts.size, 256 * MIB);
    assert_string_equal(t->facts.identity[0], "naa.0");
    assert_non_null(kv_find(&t->facts.negotiated, "fake"));
    target_close(t);
    assert_null(t->handle);
    assert_null(t->member[0].handle);
    assert_int_equal(target_open_read(t, &b->err), 0); /* and again */
    assert_int_equal(target_open_read(t, &b->err), 0); /* what is open stays open */
    assert_int_equal(b->fake[0].opens, 2);
}

static void a_member_that_fails_closes_the_others(void **state) {
    struct bench *b = *state;

    add_member(b, 0, "/dev/a");
    add_member(b, 1, "/dev/b");
    b->fake[1].fail_open = true;
    assert_int_equal(target_open_read(&b->target, &b->err), -1);
    assert_string_equal(b->err.msg, "fc: open failed as told");
    assert_int_equal(b->err.status, STATUS_TARGET);
    assert_int_equal(b->fake[0].open_handles, 0);
    b->fake[1].fail_open = false;
    assert_int_equal(target_open_read(&b->target, &b->err), 0);
}

/* The delay lies over each member that asks for it, for as long as it is open. */
static void a_delay(void **state) {
    struct bench *b = *state;
    struct target *t = &b->target;
    struct filter filter;
    struct filter_load load = {.to = MIB, .workers = 1};

    b->fake[0].facts.delay_ns = 5 * NS_PER_MS;
    strcpy(b->fake[0].facts.engine, "libaio");
    add_member(b, 0, "/dev/a");
    assert_int_equal(target_open_read(t, &b->err), 0);
    assert_string_equal(t->member[0].facts.engine, "libaio + delay 5ms");
    assert_non_null(kv_find(&t->member[0].facts.warnings, "artificial-delay"));
    assert_int_equal(target_assemble(t, &b->err), 0);
    assert_string_equal(t->backend->name, "delay");
    assert_ptr_not_equal(t->handle, t->member[0].handle);
    assert_int_equal(filter_open(t, &load, &filter, &b->err), 0); /* no readahead: the target itself */
    assert_ptr_equal(filter.handle, t->handle);
    filter_close(&filter);
    load.readahead = MIB;
    assert_int_equal(filter_open(t, &load, &filter, &b->err), 0);
    assert_string_equal(filter.backend->name, "readahead");
    filter_close(&filter);
    target_close(t);
    add_member(b, 1, "/dev/b");
    assert_int_equal(target_open_read(t, &b->err), 0);
    assert_int_equal(target_assemble(t, &b->err), 0);
    assert_ptr_equal(t->backend, &backend_stripe);
    assert_int_equal(target_member_reopen(t, 0, OPEN_WRITE, 0, &b->err), 0);
    assert_int_equal(target_assemble(t, &b->err), 0);
    target_close(t);
}

static void room_for_readahead(void **state) {
    struct bench *b = *state;
    struct facts f = {.max_io = MIB, .max_depth = 32};

    assert_int_equal(filter_check(&f, 0, 32, &b->err), 0);
    assert_int_equal(filter_check(&f, MIB, 8, &b->err), 0);
    assert_int_equal(filter_check(&f, MIB, 31, &b->err), -1);
    assert_int_equal(b->err.status, STATUS_USAGE);
    assert_non_null(strstr(b->err.msg, "readahead=1m needs requests of its own, and of the 32"));
    f.max_depth = 0;
    assert_int_equal(filter_check(&f, MIB, 4096, &b->err), 0);
}

static void no_members(void **state) {
    struct bench *b = *state;

    assert_int_equal(target_open_read(&b->target, &b->err), -1);
    assert_non_null(strstr(b->err.msg, "0 members"));
}

static void reopening_for_writing(void **state) {
    struct bench *b = *state;
    struct target *t = &b->target;

    add_member(b, 0, "/dev/a");
    assert_int_equal(target_open_read(t, &b->err), 0);
    assert_int_equal(target_assemble(t, &b->err), 0);
    assert_int_equal(target_member_reopen(t, 0, OPEN_WRITE, 0, &b->err), 0);
    assert_null(t->handle); /* the old whole is gone */
    assert_int_equal(b->fake[0].open_handles, 1);
    assert_int_equal(b->fake[0].last_mode, OPEN_WRITE);
    assert_false(t->member[0].created);
    assert_int_equal(target_assemble(t, &b->err), 0);
    assert_true(t->handle->write);
}

static void another_object_behind_the_name_is_not_written(void **state) {
    struct bench *b = *state;
    struct target *t = &b->target;

    add_member(b, 0, "/dev/a");
    b->fake[0].identity_later = "naa.7";
    assert_int_equal(target_open_read(t, &b->err), 0);
    assert_int_equal(target_member_reopen(t, 0, OPEN_WRITE, 0, &b->err), -1);
    assert_int_equal(b->err.status, STATUS_TARGET);
    assert_string_equal(b->err.msg, "fc: /dev/a was naa.0 when it was examined, and is naa.7 now");
    assert_null(t->member[0].handle);
    b->fake[0].identity_later = "";
    assert_int_equal(target_open_read(t, &b->err), 0);
    assert_int_equal(target_member_reopen(t, 0, OPEN_WRITE, 0, &b->err), -1);
    assert_non_null(strstr(b->err.msg, "without an identity now"));
    /* one name in common is not enough, and the first is not all */
    strcpy(b->fake[0].facts.identity[1], "serial.A");
    b->fake[0].identity_later = "naa.7";
    assert_int_equal(target_open_read(t, &b->err), 0);
    assert_int_equal(target_member_reopen(t, 0, OPEN_WRITE, 0, &b->err), -1);
    b->fake[0].identity_later = NULL;
    assert_int_equal(target_open_read(t, &b->err), 0);
    strcpy(b->fake[0].facts.identity[1], "serial.B");
    assert_int_equal(target_member_reopen(t, 0, OPEN_WRITE, 0, &b->err), -1);
    assert_non_null(strstr(b->err.msg, "was serial.A when it was examined, and is serial.B now"));
    assert_int_equal(target_open_read(t, &b->err), 0);
    strcpy(b->fake[0].facts.identity[1], "t10.SERIAL B"); /* a name of another kind contradicts nothing */
    assert_int_equal(target_member_reopen(t, 0, OPEN_WRITE, 0, &b->err), 0);
    target_close(t);
    b->fake[0].facts.identity[1][0] = '\0';
    b->fake[0].size_later = 4096;
    assert_int_equal(target_open_read(t, &b->err), 0);
    assert_int_equal(target_member_reopen(t, 0, OPEN_WRITE, 0, &b->err), -1);
    assert_non_null(strstr(b->err.msg, "had 268435456 bytes when it was examined, and has 4096 now"));
    b->fake[0].size_later = 0;
    strcpy(b->fake[0].facts.identity[1], "dev:8:0"); /* in common, and worth less than the name */
    b->fake[0].identity_later = "naa.7";
    assert_int_equal(target_open_read(t, &b->err), 0);
    assert_int_equal(target_member_reopen(t, 0, OPEN_WRITE, 0, &b->err), -1);
    assert_non_null(strstr(b->err.msg, "was naa.0 when it was examined, and is naa.7 now"));
    b->fake[0].identity_later = NULL;
    strcpy(b->fake[0].facts.identity[0], "dev:8:0"); /* all that there is: then it must not have come anew */
    b->fake[0].facts.incarnation = 5;
    b->fake[0].incarnation_later = 6;
    assert_int_equal(target_open_read(t, &b->err), 0);
    assert_int_equal(target_member_reopen(t, 0, OPEN_WRITE, 0, &b->err), -1);
    assert_non_null(strstr(b->err.msg, "another device under the same name"));
    b->fake[0].incarnation_later = 0;
    assert_int_equal(target_open_read(t, &b->err), 0);
    assert_int_equal(target_member_reopen(t, 0, OPEN_WRITE, 0, &b->err), 0);
}

static void creating(void **state) {
    struct bench *b = *state;
    struct target *t = &b->target;

    add_member(b, 0, "nfs://h/e/f");
    b->fake[0].facts.exists = false;
    b->fake[0].facts.size = 0;
    assert_int_equal(target_open_read(t, &b->err), 0);
    assert_int_equal(target_assemble(t, &b->err), -1);
    assert_string_equal(b->err.msg, "fc: nfs://h/e/f does not exist");
    assert_int_equal(target_member_reopen(t, 0, OPEN_CREATE, 3 * MIB, &b->err), 0);
    assert_true(t->member[0].created);
    assert_int_equal(target_assemble(t, &b->err), 0);
    assert_int_equal(t->facts.size, 3 * MIB);
    /* A second exclusive creation fails, and says so. */
    assert_int_equal(target_member_reopen(t, 0, OPEN_CREATE, 3 * MIB, &b->err), -1);
    assert_string_equal(b->err.msg, "fc: it exists already");
    assert_int_equal(target_assemble(t, &b->err), -1);
    assert_string_equal(b->err.msg, "fc: nfs://h/e/f is not open");
}

static void several_members_are_striped(void **state) {
    struct bench *b = *state;
    struct target *t = &b->target;

    for (unsigned i = 0; i < 3; i++) add_member(b, i, "/dev/x");
    b->fake[1].facts.block = b->fake[1].facts.mem_align = 4096;
    b->fake[2].facts.max_depth = 7;
    assert_int_equal(target_open_read(t, &b->err), 0);
    assert_int_equal(target_assemble(t, &b->err), 0);
    assert_ptr_equal(t->backend, &backend_stripe);
    assert_int_equal(t->facts.block, 4096);
    assert_int_equal(t->facts.max_depth, 7);
    assert_true(t->facts.size > 700 * MIB && t->facts.size <= 768 * MIB);
    assert_int_equal(target_member_reopen(t, 1, OPEN_WRITE, 0, &b->err), 0);
    assert_null(t->handle);
    for (unsigned i = 0; i < 3; i++) assert_int_equal(b->fake[i].open_handles, 1);
    b->fake[1].facts.block = 12345; /* does not divide a stripe */
    target_close(t);
    assert_int_equal(target_open_read(t, &b->err), 0);
    assert_int_equal(target_assemble(t, &b->err), -1);
    assert_non_null(strstr(b->err.msg, "fc: members with blocks of 12345 bytes"));
}

/* Where the stripe really puts bytes is what the ranges say. */
static void ranges_of_members(void **state) {
    struct bench *b = *state;
    struct target *t = &b->target;
    uint64_t from, to, sum = 0;

    add_member(b, 0, "/dev/a");
    target_member_range(t, 0, 12345, 5 * MIB, &from, &to);
    assert_true(from == 12345 && to == 5 * MIB);
    assert_int_equal(target_member_size(t, 12345), 12345);
    add_member(b, 1, "/dev/b");
    add_member(b, 2, "/dev/c");
    static const uint64_t want[3][2] = {{MIB, 3 * MIB}, {MIB / 2, 2 * MIB + 4096}, {0, 2 * MIB}};
    for (unsigned m = 0; m < 3; m++) { /* [1.5 MiB, 7 MiB + 4096): stripes 1 (half) 2 | 3 4 5 | 6 7 (4 KiB) */
        target_member_range(t, m, MIB + MIB / 2, 7 * MIB + 4096, &from, &to);
        assert_int_equal(from, want[m][0]);
        assert_int_equal(to, want[m][1]);
        sum += to - from;
    }
    assert_int_equal(sum, 7 * MIB + 4096 - MIB - MIB / 2);
}

static void a_member_size_that_is_just_enough(void **state) {
    struct bench *b = *state;
    struct target *t = &b->target;
    static const uint64_t needs[] = {1, 2 * MIB, 100 * MIB, 700 * MIB, 10000 * MIB + 1};

    for (unsigned i = 0; i < 3; i++) add_member(b, i, "/dev/x");
    assert_int_equal(target_open_read(t, &b->err), 0);
    for (unsigned large = 0; large < 2; large++)
        for (unsigned i = 0; i < 5; i++) {
            for (unsigned m = 0; m < 3; m++) t->member[m].facts.max_io = large ? 64 * MIB : MIB;
            uint64_t size = target_member_size(t, needs[i]);
            assert_int_equal(size % MIB, 0);
            for (unsigned m = 0; m < 3; m++) t->member[m].facts.size = size;
            if (target_assemble(t, &b->err) != 0)
                fail_msg("%llu, %u: %s", (unsigned long long)needs[i], large, b->err.msg);
            assert_true(t->facts.size >= needs[i]);
            for (unsigned m = 0; m < 3; m++) t->member[m].facts.size = size - MIB;
            if (target_assemble(t, &b->err) == 0) assert_true(t->facts.size < needs[i]);
        }
}

static void same_objects(void **state) {
    (void)state;
    static const struct {
        const char *a, *b;
        enum kinship kin;
    } cases[] = {{"naa.6001", "naa.6001", KINSHIP_NAME},
                 {"naa.6001AB", "NAA.6001ab", KINSHIP_NAME},
                 {"naa.6001", "naa.6002", KINSHIP_NONE},
                 {"naa.6001", "naa.60011", KINSHIP_NONE},
                 {"", "", KINSHIP_NONE},
                 {"dev:8:1", "dev:8:16", KINSHIP_NONE},
                 {"t10.ATA     DISK_7  ", "t10.ATA DISK 7", KINSHIP_NAME},
                 {"fsid:1/fileid:2/server:h", "fsid:1/fileid:2/server:h", KINSHIP_NAME},
                 {"file:8:1:77", "file:8:1:77", KINSHIP_ONE}};
    struct facts a, b;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        memset(&a, 0, sizeof(a));
        memset(&b, 0, sizeof(b));
        strcpy(a.identity[0], cases[i].a);
        strcpy(b.identity[2], cases[i].b);
        assert_int_equal(facts_kinship(&a, &b), cases[i].kin);
        assert_int_equal(facts_kinship(&b, &a), cases[i].kin);
    }
    b.kind = OBJECT_DEVICE; /* a loop device and the file behind it */
    assert_int_equal(facts_kinship(&a, &b), KINSHIP_STORAGE);
    a = (struct facts){.rdev = 5};
    b = (struct facts){.rdev = 5};
    assert_int_equal(facts_kinship(&a, &b), KINSHIP_ONE);
}

#define KIN(a, b) (facts_kinship(a, b) != KINSHIP_NONE)

static void serial_numbers_yield_to_names(void **state) {
    (void)state;
    struct facts a = {.identity = {"naa.1", "serial.S"}}, b = {.identity = {"serial.S"}};
    struct facts c = {.identity = {"naa.2", "serial.S"}}, d = {.identity = {"eui.3", "serial.S"}};

    assert_true(KIN(&a, &b));
    assert_false(KIN(&a, &c)); /* one array, two LUNs */
    assert_true(KIN(&a, &d));  /* names of two kinds say nothing about each other */
}

static void made_up_names_need_target_and_lun(void **state) {
    (void)state;
    struct facts a = {.identity = {"naa.3000000100000001"}}, b = a;

    assert_true(KIN(&a, &b));
    kv_text(&b.warnings, "weak-identity", "made up");
    assert_false(KIN(&a, &b) || KIN(&b, &a));
    kv_text(&a.negotiated, "target_name", "iqn.2026-01.x:One");
    kv_text(&b.negotiated, "target_name", "iqn.2026-01.x:one");
    kv_uint(&a.negotiated, "lun", 1);
    assert_false(KIN(&a, &b));
    kv_uint(&b.negotiated, "lun", 1);
    assert_true(KIN(&a, &b));
    kv_uint(&b.negotiated, "lun", 2);
    assert_false(KIN(&a, &b));
    facts_free(&a);
    facts_free(&b);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {T(one_member),
                                       T(a_member_that_fails_closes_the_others),
                                       T(no_members),
                                       T(reopening_for_writing),
                                       T(another_object_behind_the_name_is_not_written),
                                       T(creating),
                                       T(several_members_are_striped),
                                       T(ranges_of_members),
                                       T(a_member_size_that_is_just_enough),
                                       T(a_delay), T(room_for_readahead), cmocka_unit_test(same_objects),
                                       cmocka_unit_test(serial_numbers_yield_to_names),
                                       cmocka_unit_test(made_up_names_need_target_and_lun)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
