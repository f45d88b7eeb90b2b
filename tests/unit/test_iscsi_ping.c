/* SPDX-License-Identifier: GPL-2.0-or-later */
/* NOP-Out and TEST UNIT READY over a socket pair: what the target sends stands in it before the ping looks, so that
 * nothing depends on time. */
#include "tests/unit/iscsi_pdus.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backends/iscsi/iscsi_ping.h"

#define SOON NS_PER_MS
#define LONG (30 * NS_PER_SEC)
enum { NOP, READY };

struct rig {
    int target;
    struct pinger *p;
    struct iscsibe_link *link;
    struct pdus out;
};

static struct rig r;

/* The first ping has the tag 8; CmdSN begins at 0x100, StatSN at 0x50. */
static void begin(bool digest) {
    int fd[2];
    memset(&r, 0, sizeof r);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    r.target = fd[1];
    r.link = calloc(1, sizeof *r.link);
    r.link->fd = fd[0];
    r.link->cmd_sn = 0x100;
    r.link->exp_stat_sn = 0x50;
    r.link->max_cmd_sn = 0x101;
    r.link->itt = 7;
    r.link->full_feature = true;
    r.link->terms.value[KEY_HEADER_DIGEST] = digest;
    r.p = iscsibe_ping_over(r.link, 3ULL << 48);
    assert_non_null(r.p);
    r.out = (struct pdus){.header_digest = digest, .stat_sn = 0x50, .exp_cmd_sn = 0x100, .max_cmd_sn = 0x102};
}

static void end(void) {
    close(r.target); /* nobody would answer a logout */
    iscsibe_ping_close(r.p);
}

static void go(void) {
    assert_int_equal(send(r.target, r.out.bytes, r.out.len, 0), (ssize_t)r.out.len);
    r.out.len = 0;
}

static void nop_in(uint32_t itt) {
    pdus_add(&r.out, ISCSI_NOP_IN, ISCSI_FINAL, itt);
    pdus_seal(&r.out, NULL, 0);
    r.out.stat_sn++;
}

/* One PDU of ours. */
static const uint8_t *sent(void) {
    static uint8_t bhs[ISCSI_BHS + 4];
    size_t len = ISCSI_BHS + (r.out.header_digest ? 4 : 0);
    assert_int_equal(recv(r.target, bhs, len, MSG_DONTWAIT), (ssize_t)len);
    if (r.out.header_digest) {
        uint8_t wanted[4];
        iscsiw_put_digest(wanted, iscsibe_crc32c(0, bhs, ISCSI_BHS));
        assert_memory_equal(bhs + ISCSI_BHS, wanted, 4);
    }
    return bhs;
}

static void both_kinds(bool digest) {
    static const uint8_t attention[18] = {0x70, [2] = 6, [7] = 10, [12] = 0x29}, zeros[16];
    begin(digest);
    nop_in(8);
    go();
    assert_true(iscsibe_ping(r.p, NOP, LONG) >= 0);
    const uint8_t *h = sent();
    assert_int_equal(h[0], ISCSI_NOP_OUT | ISCSI_IMMEDIATE);
    assert_int_equal(h[1], ISCSI_FINAL);
    assert_int_equal(iscsiw_get24(h + AT_LENGTH), 0);
    assert_int_equal(iscsiw_get32(h + AT_ITT), 8);
    assert_int_equal(iscsiw_get32(h + AT_TTT), ISCSI_NO_TAG);
    assert_int_equal(iscsiw_get32(h + AT_CMD_SN), 0x100);
    assert_int_equal(iscsiw_get32(h + AT_EXP_STAT_SN), 0x50);
    pdus_response(&r.out, 9, 2, attention, sizeof attention); /* an answer, whatever it says */
    go();
    assert_true(iscsibe_ping(r.p, READY, LONG) >= 0);
    h = sent();
    assert_int_equal(h[0], ISCSI_COMMAND); /* an immediate PDU before it used no number */
    assert_int_equal(h[1], ISCSI_FINAL | ISCSI_SIMPLE);
    assert_int_equal(iscsiw_get32(h + AT_ITT), 9);
    assert_int_equal(iscsiw_get32(h + AT_CMD_SN), 0x100);
    assert_int_equal(iscsiw_get32(h + AT_EXP_STAT_SN), 0x51);
    assert_int_equal(iscsiw_get32(h + AT_EXPECTED_LENGTH), 0);
    assert_int_equal(h[AT_LUN + 1], 3);
    assert_memory_equal(h + AT_CDB, zeros, 16);
    nop_in(10);
    go();
    assert_true(iscsibe_ping(r.p, NOP, LONG) >= 0);
    h = sent();
    assert_int_equal(iscsiw_get32(h + AT_CMD_SN), 0x101);
    assert_int_equal(iscsiw_get32(h + AT_EXP_STAT_SN), 0x52);
    end();
}

static void test_both_kinds(void **state) {
    (void)state;
    both_kinds(false);
    both_kinds(true);
}

static void test_late(void **state) {
    (void)state;
    begin(false);
    assert_int_equal(iscsibe_ping(r.p, NOP, SOON), -ETIMEDOUT);
    assert_int_equal(iscsibe_ping(r.p, READY, SOON), -ETIMEDOUT);
    nop_in(8);
    pdus_response(&r.out, 9, 0, NULL, 0);
    go();
    assert_int_equal(iscsibe_ping(r.p, NOP, SOON), -ETIMEDOUT); /* tag 10 */
    pdus_response(&r.out, 11, 0, NULL, 0); /* the right tag with the wrong opcode is no answer */
    nop_in(10);
    nop_in(11);
    go();
    assert_true(iscsibe_ping(r.p, NOP, LONG) >= 0);
    end();
}

/* An answer in pieces of one byte each, the last one missing at first. */
static void test_pieces(void **state) {
    (void)state;
    begin(true);
    nop_in(8);
    nop_in(9);
    assert_int_equal(send(r.target, r.out.bytes, 51, 0), 51);
    assert_int_equal(iscsibe_ping(r.p, NOP, SOON), -ETIMEDOUT);
    for (size_t i = 51; i < r.out.len; i++) assert_int_equal(send(r.target, r.out.bytes + i, 1, 0), 1);
    assert_true(iscsibe_ping(r.p, NOP, LONG) >= 0);
    end();
}

/* The window has room for two commands; a third waits until the first is answered after all. */
static void test_window(void **state) {
    (void)state;
    begin(false);
    assert_int_equal(iscsibe_ping(r.p, READY, SOON), -ETIMEDOUT);
    assert_int_equal(iscsibe_ping(r.p, READY, SOON), -ETIMEDOUT);
    sent();
    sent();
    assert_int_equal(iscsibe_ping(r.p, READY, SOON), -ETIMEDOUT);
    uint8_t none;
    assert_int_equal(recv(r.target, &none, 1, MSG_DONTWAIT), -1); /* was not sent */
    pdus_response(&r.out, 8, 0, NULL, 0);
    go();
    pdus_response(&r.out, 10, 0, NULL, 0);
    go();
    shutdown(r.target, SHUT_WR);
    assert_int_equal(iscsibe_ping(r.p, READY, LONG), -ECONNRESET); /* both came while it waited for the window */
    assert_int_equal(iscsiw_get32(sent() + AT_CMD_SN), 0x102);
    end();
}

static void test_targets_nop(void **state) {
    (void)state;
    begin(false);
    pdus_nop_in(&r.out, 0x1234);       /* asks for an answer */
    pdus_nop_in(&r.out, ISCSI_NO_TAG); /* does not */
    nop_in(8);
    go();
    assert_true(iscsibe_ping(r.p, NOP, LONG) >= 0);
    sent();
    const uint8_t *h = sent();
    assert_int_equal(h[0], ISCSI_NOP_OUT | ISCSI_IMMEDIATE);
    assert_int_equal(iscsiw_get32(h + AT_ITT), ISCSI_NO_TAG);
    assert_int_equal(iscsiw_get32(h + AT_TTT), 0x1234);
    assert_int_equal(iscsiw_get32(h + AT_EXP_STAT_SN), 0x50); /* the target's own NOP-In uses no number */
    uint8_t none;
    assert_int_equal(recv(r.target, &none, 1, MSG_DONTWAIT), -1);
    end();
}

static void expect_broken(int error, uint8_t opcode, uint8_t event) {
    begin(false);
    pdus_add(&r.out, opcode, ISCSI_FINAL, ISCSI_NO_TAG)[AT_EVENT] = event;
    pdus_seal(&r.out, NULL, 0);
    go();
    assert_int_equal(iscsibe_ping(r.p, NOP, error == ETIMEDOUT ? SOON : LONG), -error);
    end();
}

static void test_broken(void **state) {
    (void)state;
    expect_broken(ESHUTDOWN, ISCSI_ASYNC, 1);
    expect_broken(ETIMEDOUT, ISCSI_ASYNC, 0); /* the unit's affair, not the session's */
    expect_broken(EPROTO, ISCSI_REJECT, 0);
    expect_broken(EPROTO, ISCSI_R2T, 0);
    begin(true);
    nop_in(8);
    r.out.bytes[ISCSI_BHS] ^= 1;
    go();
    assert_int_equal(iscsibe_ping(r.p, NOP, LONG), -EPROTO);
    end();
    begin(false);
    shutdown(r.target, SHUT_WR);
    assert_int_equal(iscsibe_ping(r.p, NOP, LONG), -ECONNRESET);
    end();
    begin(false);
    iscsibe_ping_abort(r.p);
    assert_true(iscsibe_ping(r.p, READY, LONG) < 0);
    end();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_kinds), cmocka_unit_test(test_late),        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_window),     cmocka_unit_test(test_targets_nop), cmocka_unit_test(test_broken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
