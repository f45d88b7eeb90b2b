/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Replies about persistent reservations, as disks send them, cut short, and lying. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "backends/local/blockid.h"
#include "scsi/reserve.h"

static void scsi(void **state) {
    uint8_t keys[24] = {0, 0, 0, 5, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0xab, 0xcd};
    uint8_t held[24] = {0, 0, 0, 5, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0x12, 0x34, [21] = 0x05};
    uint64_t key;
    unsigned n, type;
    bool reserved;
    (void)state;
    assert_true(reserve_parse_keys(keys, sizeof keys, &n, &key));
    assert_int_equal(n, 2);
    assert_true(key == 0xabcd);
    assert_true(reserve_parse_keys(keys, 8, &n, &key)); /* more keys than were sent count all the same */
    assert_int_equal(n, 2);
    assert_false(reserve_parse_keys(keys, 7, &n, &key));
    assert_true(reserve_parse_held(held, sizeof held, &reserved, &key, &type));
    assert_true(reserved && key == 0x1234 && type == 5);
    held[7] = 0;
    assert_true(reserve_parse_held(held, sizeof held, &reserved, &key, &type));
    assert_false(reserved);
    assert_int_equal(reserve_cdb_keys[0], 0x5e);
    assert_int_equal(reserve_cdb_keys[7] << 8 | reserve_cdb_keys[8], RESERVE_KEYS_LEN);
    assert_int_equal(reserve_cdb_held[1], 1);
}

static void nvme(void **state) {
    /* Two controllers; the second one's host holds it, type 1 (write exclusive). */
    uint8_t extended[64 + 128] = {7, 0, 0, 0, 1, 2, 0, [64] = 1, [72] = 0xcd, 0xab, [128] = 2, [130] = 1, [136] = 0x34, 0x12};
    uint8_t plain[24 + 24] = {7, 0, 0, 0, 0, 1, 0, [24] = 1, [40] = 0x77};
    struct reserve r;
    (void)state;
    assert_true(reserve_parse_nvme(extended, sizeof extended, true, &r));
    assert_true(r.known && r.reserved && r.keys == 2 && r.first == 0xabcd && r.key == 0x1234 && r.type == 1);
    assert_true(reserve_parse_nvme(plain, sizeof plain, false, &r));
    assert_true(r.known && !r.reserved && r.keys == 1 && r.first == 0x77);
    plain[6] = 0xff; /* more controllers than there is room for */
    assert_true(reserve_parse_nvme(plain, sizeof plain, false, &r));
    assert_int_equal(r.keys, 0xff01);
    assert_false(reserve_parse_nvme(plain, 23, false, &r));
    memset(extended, 0, sizeof extended);
    assert_true(reserve_parse_nvme(extended, sizeof extended, true, &r));
    assert_true(!r.reserved && !r.keys);
}

static void words(void **state) {
    char buf[200];
    (void)state;
    struct reserve r = {.known = true};
    assert_string_equal(reserve_words(&r, buf, sizeof buf), "");
    r.keys = 2;
    r.first = 0xabcd;
    assert_string_equal(reserve_words(&r, buf, sizeof buf), "2 persistent reservation keys are registered (the first: "
                        "000000000000abcd): a cluster uses it");
    r.reserved = true;
    r.key = 0x1234;
    r.type = 5;
    assert_string_equal(reserve_words(&r, buf, sizeof buf), "it has a persistent reservation (key 0000000000001234, type "
                        "5) and 2 registered keys: a cluster uses it");
}

/* Leaves a page 83h on the stack, wherever the callee's buffer will lie. */
static __attribute__((noinline)) void stain_the_stack(void) {
    static const unsigned char page[16] = {0, 0x83, 0, 12, 1, 3, 0, 8, 0x60, 1, 2, 3, 4, 5, 6, 7};
    _Alignas(16) unsigned char stain[32768];
    for (size_t i = 0; i < sizeof stain; i += sizeof page) memcpy(stain + i, page, sizeof page);
    __asm__ volatile("" : : "r"(stain) : "memory");
}

/* A virtio disk, a loop device: sysfs keeps no page of it. */
static void a_disk_without_a_page(void **state) {
    char name[64];
    (void)state;
    stain_the_stack();
    assert_false(blockid_unit("/nowhere", name, sizeof name));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(scsi), cmocka_unit_test(nvme), cmocka_unit_test(words),
                                       cmocka_unit_test(a_disk_without_a_page)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
