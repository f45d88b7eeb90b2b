/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/iscsi/iscsi_facts.h"

static void path(void **state) {
    static const char *const bad[] = { "",
                                       "/",
                                       "/iqn.2001-04.com.example:a",
                                       "/iqn.2001-04.com.example:a/",
                                       "/example/1",
                                       "/iqn.a/b/1",
                                       "/iqn.a/x",
                                       "/iqn.a/16777216",
                                       "/iqn.a/-1",
                                       "iqn.a/1",
                                       NULL };
    char target[ISCSI_NAME_SIZE], longest[400];
    unsigned lun;
    struct err err;
    (void)state;
    assert_int_equal(iscsibe_parse_path("/iqn.2001-04.com.example:storage.disk2/7", target, &lun, &err), 0);
    assert_string_equal(target, "iqn.2001-04.com.example:storage.disk2");
    assert_int_equal(lun, 7);
    assert_int_equal(iscsibe_parse_path("/eui.02004567A425678D/16383", target, &lun, &err), 0);
    assert_int_equal(lun, 16383);
    for (size_t i = 0; bad[i]; i++) {
        assert_int_equal(iscsibe_parse_path(bad[i], target, &lun, &err), -1);
        assert_int_equal(err.status, STATUS_USAGE);
    }
    memset(longest, 'a', sizeof longest);
    memcpy(longest, "/iqn.", 5);
    memcpy(longest + 300, "/1", 3);
    assert_int_equal(iscsibe_parse_path(longest, target, &lun, &err), -1);
    assert_true(iscsibe_lun_wire(0) == 0);
    assert_true(iscsibe_lun_wire(255) == 0x00ffULL << 48);
    assert_true(iscsibe_lun_wire(256) == 0x4100ULL << 48);
}

static void cdb(void **state) {
    uint8_t c[16];
    static const uint8_t want[16] = { 0x8a, 0x08, 1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x22, 0x33, 0x44, 0, 0 };
    (void)state;
    memset(c, 0xff, sizeof c);
    iscsibe_cdb16(c, 0x8a, 0x0102030405060708ULL, 0x11223344, true);
    assert_memory_equal(c, want, 16);
    iscsibe_cdb16(c, 0x88, 0, 1, false);
    assert_int_equal(c[1], 0);
    assert_int_equal(c[13], 1);
}

static void inquiry(void **state) {
    uint8_t p[36] = { 0x60, [5] = 0x10 };
    struct iscsibe_inquiry i;
    (void)state;
    memcpy(p + 8, "ACME    Fast\x01 Disk      1.0 ", 28);
    assert_true(iscsibe_parse_inquiry(p, sizeof p, &i));
    assert_int_equal(i.qualifier, 3);
    assert_int_equal(i.type, 0);
    assert_int_equal(i.tpgs, 1);
    assert_string_equal(i.vendor, "ACME");
    assert_string_equal(i.product, "Fast\\x01 Disk");
    assert_string_equal(i.revision, "1.0");
    assert_false(iscsibe_parse_inquiry(p, 35, &i));
}

/* A VPD 83 page from designators, one after the other. */
struct page { uint8_t data[512]; size_t len; };

static void add(struct page *p, unsigned code_set, unsigned association, unsigned type, const void *data,
                unsigned len) {
    if (p->len == 0) {
        p->data[1] = 0x83;
        p->len = 4;
    }
    p->data[p->len] = (uint8_t)code_set;
    p->data[p->len + 1] = (uint8_t)(association << 4 | type);
    p->data[p->len + 3] = (uint8_t)len;
    memcpy(p->data + p->len + 4, data, len);
    p->len += 4 + len;
    p->data[2] = (uint8_t)((p->len - 4) >> 8);
    p->data[3] = (uint8_t)(p->len - 4);
}

static const uint8_t naa6[16] = { 0x60, 0x06, 0x01, 0x60, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };
static const uint8_t naa6_made_up[16] = { 0x60, 0, 0, 0, 0, 0, 0, 0, 0x0e, 0, 0, 0, 0, 1, 0, 1 };
static const uint8_t naa5[8] = { 0x50, 0x01, 0x43, 0x80, 1, 2, 3, 4 }, naa3[8] = { 0x30, 0, 0, 1, 0, 0, 0, 1 };
static const uint8_t eui[8] = { 0x00, 0x25, 0x38, 1, 2, 3, 4, 5 };

static void identities(void **state) {
    static const struct iscsibe_inquiry who = { .vendor = "ACME", .product = "Disk" };
    uint8_t vpd80[] = { 0, 0x80, 0, 6, ' ', 'S', 'N', '1', ' ', ' ' };
    char out[4][128];
    bool weak;
    struct page p = { .len = 0 };
    (void)state;

    add(&p, 2, 0, 1, "ACME    disk 1  ", 16);
    add(&p, 1, 0, 2, eui, 8);
    add(&p, 1, 0, 3, naa3, 8);
    add(&p, 1, 1, 3, naa5, 8); /* of the port: not the unit's name */
    add(&p, 1, 0, 3, naa6, 16);
    assert_int_equal(iscsibe_identities(p.data, p.len, vpd80, sizeof vpd80, &who, out, 4, &weak), 4);
    assert_string_equal(out[0], "naa.6006016001020304" "05060708090a0b0c");
    assert_string_equal(out[1], "eui.0025380102030405");
    assert_string_equal(out[2], "t10.ACME    disk 1");
    assert_string_equal(out[3], "naa.3000000100000001");
    assert_false(weak);
    assert_int_equal(iscsibe_identities(p.data, p.len, vpd80, sizeof vpd80, &who, out, 1, &weak), 1);

    assert_int_equal(iscsibe_identities(NULL, 0, vpd80, sizeof vpd80, &who, out, 4, &weak), 1);
    assert_string_equal(out[0], "serial.ACME.Disk.SN1");
    assert_true(weak);
    assert_int_equal(iscsibe_identities(NULL, 0, NULL, 0, &who, out, 4, &weak), 0);
}

static void identities_weak(void **state) {
    static const struct iscsibe_inquiry who = { .vendor = "" };
    char out[4][128];
    bool weak;
    struct page p = { .len = 0 }, same = { .len = 0 }, locally = { .len = 0 };
    (void)state;
    add(&p, 1, 0, 3, naa6_made_up, 16);
    assert_int_equal(iscsibe_identities(p.data, p.len, NULL, 0, &who, out, 4, &weak), 1);
    assert_true(weak);
    add(&same, 1, 0, 3, naa6, 16);
    add(&same, 1, 0, 3, naa6, 16); /* listed once */
    assert_int_equal(iscsibe_identities(same.data, same.len, NULL, 0, &who, out, 4, &weak), 1);
    add(&locally, 1, 0, 3, naa3, 8);
    assert_int_equal(iscsibe_identities(locally.data, locally.len, NULL, 0, &who, out, 4, &weak), 1);
    assert_true(weak);
}

/* A page that ends anywhere, and one that lies about its lengths, must not be read past its end (ASan, valgrind). */
static void identities_cut(void **state) {
    static const struct iscsibe_inquiry who = { .vendor = "" };
    char out[4][128];
    bool weak;
    unsigned group;
    struct page p = { .len = 0 };
    (void)state;
    add(&p, 1, 0, 3, naa6, 16);
    add(&p, 1, 1, 5, "\0\0\0\7", 4);
    for (size_t len = 0; len <= p.len; len++) {
        uint8_t *copy = malloc(len ? len : 1);
        memcpy(copy, p.data, len);
        unsigned n = iscsibe_identities(copy, len, copy, len, &who, out, 4, &weak);
        assert_int_equal(n, len >= 24 ? 1 : 0);
        assert_int_equal(iscsibe_port_group(copy, len, &group), len == p.len);
        free(copy);
    }
    assert_true(iscsibe_port_group(p.data, p.len, &group));
    assert_int_equal(group, 7);
    p.data[2] = p.data[3] = 0xff;
    assert_int_equal(iscsibe_identities(p.data, p.len, NULL, 0, &who, out, 4, &weak), 1);
}

static void vpd(void **state) {
    static const uint8_t page0[] = { 0, 0, 0, 3, 0x00, 0x83, 0xb0 };
    uint8_t b0[64] = { 0, 0xb0, 0, 60, 0, 0, 0, 8, 0, 0, 0x20, 0, 0, 0, 1, 0, [20] = 0, 0, 0x40, 0 };
    static const uint8_t b1[] = { 0, 0xb1, 0, 4, 0x1c, 0x20, 0, 0 }, b2[] = { 0, 0xb2, 0, 4, 0, 0xc4, 2, 0 };
    struct iscsibe_limits l;
    struct iscsibe_provisioning v;
    unsigned rate;
    (void)state;
    assert_true(iscsibe_vpd_has(page0, sizeof page0, 0xb0));
    assert_false(iscsibe_vpd_has(page0, sizeof page0, 0xb2));
    assert_false(iscsibe_vpd_has(page0, 5, 0xb0)); /* cut short */
    assert_false(iscsibe_vpd_has(b1, sizeof b1, 0x1c));
    assert_true(iscsibe_parse_limits(b0, sizeof b0, &l));
    assert_int_equal(l.max_transfer, 8192);
    assert_int_equal(l.optimal, 256);
    assert_int_equal(l.granularity, 8);
    assert_int_equal(l.max_unmap, 0x4000);
    assert_false(iscsibe_parse_limits(b0, 15, &l));
    assert_false(iscsibe_parse_limits(b1, sizeof b1, &l));
    assert_true(iscsibe_parse_rotation(b1, sizeof b1, &rate));
    assert_int_equal(rate, 7200);
    assert_true(iscsibe_parse_provisioning(b2, sizeof b2, &v));
    assert_true(v.unmap && v.write_same && v.read_zeros);
    assert_int_equal(v.type, 2);
}

static void capacity(void **state) {
    uint8_t p[32] = { 0, 0, 0, 1, 0, 0, 0, 0xff, 0, 0, 0x10, 0, 0, 3, 0x80 };
    static const uint8_t ten[8] = { 0, 0, 0xff, 0xff, 0, 0, 2, 0 }, large[8] = { 0xff, 0xff, 0xff, 0xff, 0, 0, 2, 0 };
    struct iscsibe_capacity c;
    (void)state;
    assert_true(iscsibe_parse_capacity16(p, sizeof p, &c));
    assert_true(c.blocks == 0x100000100ULL);
    assert_int_equal(c.block, 4096);
    assert_int_equal(c.physical_exponent, 3);
    assert_true(c.thin);
    assert_false(iscsibe_parse_capacity16(p, 15, &c));
    p[10] = 0x02, p[11] = 0x08; /* 520 bytes: a formatted protection type, nothing to do I/O with */
    assert_false(iscsibe_parse_capacity16(p, sizeof p, &c));
    memset(p, 0xff, 8);
    p[10] = 0x02, p[11] = 0;
    assert_false(iscsibe_parse_capacity16(p, sizeof p, &c));
    assert_true(iscsibe_parse_capacity10(ten, sizeof ten, &c));
    assert_int_equal(c.blocks, 65536);
    assert_int_equal(c.block, 512);
    assert_false(iscsibe_parse_capacity10(large, sizeof large, &c));
}

static void mode(void **state) {
    /* header, a block descriptor of 8, page 0x0a, page 0x08 with WCE */
    uint8_t ten[8 + 8 + 12 + 20] = { 0, 46, 0, 0x90, 0, 0, 0, 8, [16] = 0x0a, 10, [28] = 0x08, 18, 0x05 };
    uint8_t six[4 + 20] = { 23, 0, 0x10, 0, 0x88, 18, 0x00 }; /* the page may be savable (0x80) */
    struct iscsibe_mode m;
    (void)state;
    assert_true(iscsibe_parse_mode(ten, sizeof ten, true, &m));
    assert_true(m.write_protected && m.dpofua && m.has_caching && m.wce && m.rcd);
    assert_true(iscsibe_parse_mode(ten, 20, true, &m)); /* cut before the caching page */
    assert_false(m.has_caching);
    assert_true(iscsibe_parse_mode(six, sizeof six, false, &m));
    assert_true(m.dpofua && m.has_caching);
    assert_false(m.write_protected || m.wce);
    assert_false(iscsibe_parse_mode(six, 3, false, &m));
}

static void luns(void **state) {
    uint8_t p[8 + 32] = { 0, 0, 0, 32, [9] = 0, [17] = 7, [24] = 0x41, 0x00, [32] = 0xc1, 0x01 };
    char buf[80], small[12];
    (void)state;
    assert_int_equal(iscsibe_luns_words(p, sizeof p, buf, sizeof buf), 4);
    assert_string_equal(buf, "0, 7, 256"); /* the last is a well known one */
    assert_int_equal(iscsibe_luns_words(p, 7, buf, sizeof buf), 0);
    assert_string_equal(buf, "none");
    iscsibe_luns_words(p, sizeof p, small, sizeof small);
    assert_string_equal(small, "0, 7 ...");
}

static uint64_t lun_in(unsigned lun, unsigned n, const uint64_t *list, unsigned *found) {
    uint8_t p[8 + 8 * 8] = { [3] = (uint8_t)(8 * n) };
    uint64_t wire = 0x77;
    for (unsigned i = 0; i < n; i++)
        for (unsigned k = 0; k < 8; k++) p[8 + 8 * i + k] = (uint8_t)(list[i] >> (56 - 8 * k));
    *found = iscsibe_luns_find(p, 8 + 8 * n, lun, &wire);
    return wire;
}

static void lun_forms(void **state) {
    static const uint64_t lio[] = { 0, 1ULL << 48, 0x012cULL << 48 }, flat[] = { 0, 0x412cULL << 48 },
                          both[] = { 0x412cULL << 48, 0x012cULL << 48, 0x412cULL << 48 },
                          other[] = { 0xd20493e000000000, 0x4005000000000000, 0x0001000200000000, 0xc101000000000000,
                                      0xe200000001000000 };
    uint8_t cut[15] = { [3] = 0xff, [9] = 5 };
    uint64_t wire = 0x77;
    unsigned n;
    char buf[120];
    (void)state;
    assert_true(lun_in(300, 3, lio, &n) == 0x012cULL << 48 && n == 1); /* peripheral, with a bus number */
    assert_true(lun_in(44, 3, lio, &n) == 0x77 && n == 0);             /* and no LUN 44 */
    assert_true(lun_in(1, 3, lio, &n) == 1ULL << 48 && n == 1);
    assert_true(lun_in(300, 2, flat, &n) == 0x412cULL << 48 && n == 1);
    assert_true(lun_in(0x412c, 2, flat, &n) == 0x412cULL << 48 && n == 1); /* as Linux numbers it */
    assert_true(lun_in(300, 3, both, &n) == 0x012cULL << 48 && n > 1);
    assert_true(lun_in(300000, 5, other, &n) == 0xd20493e000000000 && n == 1);
    assert_true(lun_in(5, 5, other, &n) == 0x4005000000000000 && n == 1); /* flat below 256 */
    assert_true(lun_in(2, 5, other, &n) == 0x77 && n == 0); /* of two levels: no number means it */
    assert_int_equal(iscsibe_luns_find(cut, sizeof cut, 5, &wire), 0);
    assert_int_equal(iscsibe_luns_find(cut, 7, 5, &wire), 0);
    assert_true(iscsibe_lun_wire(300000) == 0xd20493e000000000);
    uint8_t p[8 + 24] = { 0, 0, 0, 24, [8] = 0x01, 0x2c, [16] = 0xd2, 0x04, 0x93, 0xe0, [25] = 1, [27] = 2 };
    assert_int_equal(iscsibe_luns_words(p, sizeof p, buf, sizeof buf), 3);
    assert_string_equal(buf, "300, 300000, 0001000200000000h");
}

static void alua(void **state) {
    static const uint8_t rtpg[] = { 0, 0, 0,    24, 0x80, 0, 0, 1, 0, 0, 0, 1, 0, 0,
                                    0, 1, 0x02, 0,  0,    2, 0, 0, 0, 1, 0, 0, 0, 2 };
    unsigned s;
    (void)state;
    assert_true(iscsibe_alua_state(rtpg, sizeof rtpg, 1, &s));
    assert_string_equal(iscsibe_alua_name(s), "active/optimized");
    assert_true(iscsibe_alua_state(rtpg, sizeof rtpg, 2, &s));
    assert_string_equal(iscsibe_alua_name(s), "standby");
    assert_false(iscsibe_alua_state(rtpg, sizeof rtpg, 3, &s));
    assert_false(iscsibe_alua_state(rtpg, 18, 2, &s));

    assert_null(iscsibe_alua_refused(0, false));
    assert_non_null(strstr(iscsibe_alua_refused(1, false), "nonoptimized=yes"));
    assert_null(iscsibe_alua_refused(1, true));
    assert_non_null(iscsibe_alua_refused(2, true)); /* standby serves nobody */
    assert_non_null(iscsibe_alua_refused(14, true));
}

static void lba_status(void **state) {
    uint8_t p[8 + 32] = { 0, 0, 0, 36, [15] = 0x60, [19] = 0x40, [20] = 1, [31] = 0xa0, [35] = 0x20 };
    uint64_t told, unmapped;
    (void)state;
    /* from 0x60: 0x40 blocks without storage; from 0xa0: 0x20 blocks with */
    assert_true(iscsibe_parse_lba_status(p, sizeof p, 0x60, 0x50, &told, &unmapped));
    assert_true(told == 0x50 && unmapped == 0x40);
    assert_true(iscsibe_parse_lba_status(p, sizeof p, 0x70, 0x1000, &told, &unmapped)); /* begins inside the first */
    assert_true(told == 0x50 && unmapped == 0x30);
    assert_false(iscsibe_parse_lba_status(p, sizeof p, 0x50, 0x10, &told, &unmapped)); /* speaks of something else */
    assert_false(iscsibe_parse_lba_status(p, 20, 0x60, 0x10, &told, &unmapped));
}

static void sense(void **state) {
    char buf[48];
    (void)state;
    assert_string_equal(iscsibe_sense_kind(3, 0x1100, buf, sizeof buf), "MEDIUM ERROR 11/00");
    assert_string_equal(iscsibe_sense_kind(6, 0x2a09, buf, sizeof buf), "UNIT ATTENTION 2A/09");
    assert_int_equal(iscsibe_sense_errno(3, 0x1100), EIO);
    assert_int_equal(iscsibe_sense_errno(7, 0x2700), EROFS);
    assert_int_equal(iscsibe_sense_errno(7, 0x2707), ENOSPC);
    assert_int_equal(iscsibe_sense_errno(5, 0x2000), EOPNOTSUPP);
    assert_int_equal(iscsibe_sense_errno(5, 0x2100), EINVAL);
    assert_string_equal(iscsibe_sense_text(3, 0x1100), "unrecovered read error");
    assert_string_equal(iscsibe_sense_text(3, 0x0000), "");
    assert_true(iscsibe_status_words("SENSE KEY:UNIT_ATTENTION(6)"));
    assert_false(iscsibe_status_words("read from socket failed"));
}

static void login(void **state) {
    (void)state;
    assert_int_equal(iscsibe_login_status("Failed to log in to target. Status: Target not found(515)"), 515);
    assert_int_equal(iscsibe_login_status("... Authentication failure(513)"), ISCSI_LOGIN_AUTH);
    assert_int_equal(iscsibe_login_status("socket error Connection refused(111) while connecting."), 111);
    assert_int_equal(iscsibe_login_status("no number (x)"), 0);
    assert_int_equal(iscsibe_login_status("nothing"), 0);
    assert_int_equal(iscsibe_login_status("(99999999)"), 0);
    assert_int_equal(iscsibe_login_status("(12"), 0);
    assert_int_equal(iscsibe_login_status(NULL), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(path),         cmocka_unit_test(cdb),    cmocka_unit_test(inquiry),
        cmocka_unit_test(identities),   cmocka_unit_test(identities_weak),
        cmocka_unit_test(identities_cut), cmocka_unit_test(vpd),  cmocka_unit_test(capacity),
        cmocka_unit_test(mode),
        cmocka_unit_test(luns),
        cmocka_unit_test(lun_forms),         cmocka_unit_test(alua),   cmocka_unit_test(lba_status),
        cmocka_unit_test(sense),        cmocka_unit_test(login),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
