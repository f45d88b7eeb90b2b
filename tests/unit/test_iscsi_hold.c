/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A LUN that may have been exchanged: nothing is written before it has said again who it is. The native engine without a
 * socket; the target is this file, which answers the questions as a script says. */
#include "tests/unit/iscsi_pdus.h"

#include <errno.h>
#include <stdio.h>

static const uint8_t attention[18] = { 0x70, 0, 0x06, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x29, 0x00 },
                     no_unit[18] = { 0x70, 0, 0x05, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x25, 0x00 },
                     invalid[18] = { 0x70, 0, 0x05, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x24, 0x00 };

/* What the unit answers now. */
struct unit {
    uint8_t last_byte;              /* of its NAA name */
    uint64_t blocks;
    bool gone, nameless;
};

struct rig {
    struct bench b;
    struct pdus in;
    struct unit unit;
    uint8_t sent[200000];
    size_t at, len;                 /* what was sent, and not looked at yet */
    unsigned writes, questions;
};

static void begin(struct rig *g, unsigned depth) {
    memset(g, 0, sizeof *g);
    g->in = (struct pdus){ .stat_sn = 0x50, .exp_cmd_sn = 0x101, .max_cmd_sn = 0x2000 };
    g->unit = (struct unit){ .last_byte = 0x0b, .blocks = 2048 };
    bench_terms(&g->b.terms, 65536, 65536, 65536);
    bench_begin(&g->b, depth, -1);
    g->b.unit = (struct iscsibe_unit){ .identity = { "naa.600140500000000a000000000000000b" }, .size = 1 << 20,
                                       .block = 512, .vpd83 = true };
}

static void take(struct rig *g) {
    iscsibe_in_take(g->b.c, g->in.bytes, g->in.len, 1);
    g->in.len = 0;
}

static void sense(struct rig *g, uint32_t itt, const uint8_t *s) {
    pdus_response(&g->in, itt, 2, s, 18);
}

/* ---- the target ---- */

static void answer_question(struct rig *g, const uint8_t *h) {
    uint8_t data[96] = { 0 };
    uint32_t itt = iscsiw_get32(h + AT_ITT), n;
    const uint8_t *cdb = h + AT_CDB;

    g->questions++;
    if (cdb[0] == 0x12 && !(cdb[1] & 1)) {
        data[0] = g->unit.gone ? 0x7f : 0;
        n = 96;
    } else if (g->unit.gone) {
        sense(g, itt, no_unit);
        return;
    } else if (cdb[0] == 0x12 && cdb[2] == 0x83 && !g->unit.nameless) {
        static const uint8_t naa[] = { 0, 0x83, 0, 20, 1, 3, 0, 16, 0x60, 0x01, 0x40, 0x50, 0, 0, 0, 0x0a };
        memcpy(data, naa, sizeof naa);
        data[23] = g->unit.last_byte;
        n = 24;
    } else if (cdb[0] == 0x9e) {
        iscsiw_put64(data, g->unit.blocks - 1);
        iscsiw_put32(data + 8, 512);
        n = 32;
    } else {
        sense(g, itt, invalid);
        return;
    }
    uint8_t *p = g->in.bytes + g->in.len;
    pdus_data_in(&g->in, itt, 0, 0, data, n, true);
    p[1] |= ISCSI_UNDERFLOW;
    iscsiw_put32(p + AT_RESIDUAL, iscsiw_get32(h + AT_EXPECTED_LENGTH) - n);
}

/* Lets the engine do what it would between two receives, and answers its questions; READs and WRITEs stay out. */
static void turn(struct rig *g) {
    struct context *c = g->b.c;
    c->age += 2 * NS_PER_SEC;
    c->wall += 2 * NS_PER_SEC;
    if (iscsibe_hold_told(c)) iscsibe_hold_follow(c);
    iscsibe_hold_work(c);
    if (c->lost) return;
    iscsibe_out_fill(c);
    size_t n = bench_unsent(&g->b, g->sent, sizeof g->sent);
    if (n) iscsibe_out_sent(c, c->out.total, NULL, 0);
    for (const uint8_t *h = g->sent; h < g->sent + n; h += ISCSI_BHS + iscsiw_get24(h + AT_LENGTH)) {
        if (h[AT_CDB] == 0x8a || h[AT_CDB] == 0x91) g->writes++;
        else answer_question(g, h);
    }
    take(g);
}

static void turns(struct rig *g, unsigned n) {
    while (n-- && !g->b.c->lost) turn(g);
}

static void retry_all(struct rig *g) {
    struct context *c = g->b.c;
    for (unsigned i = 0; i < c->depth; i++) {
        if (!c->slots[i].t_retry) continue;
        c->slots[i].t_retry = 0;
        c->retrying--;
        iscsibe_out_again(c, &c->slots[i]);
    }
}

static unsigned taken(struct rig *g, unsigned slot) {
    g->b.list[0] = bench_request(&g->b, slot, IO_WRITE, 0, 512);
    return (unsigned)iscsibe_native_submit(g->b.c, g->b.list, 1);
}

/* ---- tests ---- */

/* The one answer fails; what is out comes back; then the same unit says so, and what waited goes. */
static void same_unit(void **state) {
    static struct rig g;
    (void)state;
    begin(&g, 3);
    for (unsigned i = 0; i < 2; i++) bench_request(&g.b, i, IO_WRITE, 512 * i, 512);
    bench_send(&g.b, 2);
    uint32_t first = bench_itt(&g.b, 0), second = bench_itt(&g.b, 1);
    sense(&g, first, no_unit);
    take(&g);
    assert_int_equal(g.b.c->reply_n, 1);
    assert_int_equal(g.b.c->reply[0].result, -EINVAL);
    assert_int_equal(taken(&g, 2), 0);
    turns(&g, 3);
    assert_int_equal(g.questions, 0); /* the other WRITE is still out */
    sense(&g, second, attention);
    take(&g);
    retry_all(&g);
    turns(&g, 1);
    assert_int_equal(g.questions, 1);
    assert_int_equal(g.writes, 0);
    turns(&g, 2);
    assert_int_equal(g.questions, 3); /* INQUIRY, VPD 83, READ CAPACITY(16) */
    assert_int_equal(g.writes, 0);
    assert_int_equal(g.b.c->aside, 0);
    turns(&g, 1);
    assert_int_equal(g.writes, 1); /* the one that waited */
    pdus_response(&g.in, bench_itt(&g.b, 1), 0, NULL, 0);
    take(&g);
    assert_int_equal(g.b.c->reply_n, 2);
    assert_int_equal(g.b.c->reply[1].result, 512);
    assert_int_equal(g.b.c->counts.holds, 1);
    bench_end(&g.b);
}

/* After each kind of doubt another name, a smaller size, no name, no unit: the session is lost, nothing was sent. */
static void not_the_same(const uint8_t *why, struct unit now, const char *kind, const char *words) {
    static struct rig g;
    begin(&g, 2);
    bench_request(&g.b, 0, IO_WRITE, 0, 512);
    bench_send(&g.b, 1);
    g.unit = now;
    sense(&g, bench_itt(&g.b, 0), why);
    take(&g);
    retry_all(&g);
    turns(&g, 40);
    assert_true(g.b.c->lost);
    assert_int_equal(g.b.c->lost_error, ESTALE);
    assert_int_equal(g.writes, 0);
    assert_int_equal(g.b.c->lent, 0);
    bool told = false;
    for (unsigned i = 0; i < g.b.kinds.n; i++)
        told |= strcmp(g.b.kinds.kind[i].name, kind) == 0 && strstr(g.b.kinds.kind[i].text, words);
    if (!told) fail_msg("%s: %s", g.b.kinds.kind[g.b.kinds.n - 1].name, g.b.kinds.kind[g.b.kinds.n - 1].text);
    bench_end(&g.b);
}

static void other_units(void **state) {
    static const uint8_t *const why[] = { attention, no_unit };
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        not_the_same(why[i], (struct unit){ .last_byte = 0x0c, .blocks = 2048 }, "LUN exchanged",
                     "was naa.600140500000000a000000000000000b, is naa.600140500000000a000000000000000c");
        not_the_same(why[i], (struct unit){ .last_byte = 0x0b, .blocks = 2047 }, "LUN shrank", "2047");
        not_the_same(why[i], (struct unit){ .nameless = true, .blocks = 2048 }, "LUN exchanged", "is without a name");
        not_the_same(why[i], (struct unit){ .gone = true }, "LUN gone", "25/00");
    }
}

static void grown(void **state) {
    static struct rig g;
    (void)state;
    begin(&g, 1);
    bench_request(&g.b, 0, IO_WRITE, 0, 512);
    bench_send(&g.b, 1);
    g.unit.blocks = 4096;
    sense(&g, bench_itt(&g.b, 0), attention);
    take(&g);
    retry_all(&g);
    turns(&g, 5);
    assert_int_equal(g.writes, 1);
    assert_false(g.b.c->lost);
    bench_end(&g.b);
}

/* It is away for a while, as while its backing object is exchanged: asked until it is there. */
static void comes_back(void **state) {
    static struct rig g;
    (void)state;
    begin(&g, 1);
    bench_request(&g.b, 0, IO_WRITE, 0, 512);
    bench_send(&g.b, 1);
    g.unit.gone = true;
    sense(&g, bench_itt(&g.b, 0), no_unit);
    take(&g);
    turns(&g, 5);
    assert_false(g.b.c->lost);
    assert_int_equal(g.questions, 5);
    g.unit.gone = false;
    turns(&g, 4);
    assert_int_equal(g.b.c->aside, 0);
    bench_end(&g.b);
}

/* Nothing fails, as when the exchange falls between two commands: the question of each second finds it. */
static void unnoticed(void **state) {
    static struct rig g;
    (void)state;
    begin(&g, 2);
    bench_request(&g.b, 0, IO_WRITE, 0, 512);
    bench_send(&g.b, 1);
    iscsibe_hold_ask(g.b.c);
    turns(&g, 2);
    assert_int_equal(g.questions, 1); /* VPD 83 alone */
    assert_int_equal(g.b.c->aside, 0);
    bench_end(&g.b);
    begin(&g, 2);
    bench_request(&g.b, 0, IO_WRITE, 0, 512);
    bench_send(&g.b, 1);
    g.unit.last_byte++;
    iscsibe_hold_ask(g.b.c);
    turns(&g, 2);
    assert_true(g.b.c->lost);
    assert_string_equal(g.b.kinds.kind[0].name, "LUN exchanged");
    bench_end(&g.b);
}

/* What one session is told holds for the others to the unit. */
static void other_session(void **state) {
    static struct rig g;
    (void)state;
    begin(&g, 2);
    atomic_fetch_add(&g.b.unit.doubts, 1);
    assert_int_equal(taken(&g, 0), 0);
    assert_true(g.b.c->aside & ASIDE_HOLD);
    turns(&g, 4);
    assert_int_equal(g.questions, 3);
    assert_int_equal(g.b.c->aside, 0);
    bench_end(&g.b);
}

/* Commands that were built again, but of which no byte has gone, are taken out of what is to be sent. */
static void unsent_commands_wait(void **state) {
    static struct rig g;
    (void)state;
    begin(&g, 4);
    for (unsigned i = 0; i < 4; i++) bench_request(&g.b, i, IO_WRITE, 512 * i, 512);
    bench_send(&g.b, 4);
    for (unsigned i = 0; i < 3; i++) pdus_response(&g.in, bench_itt(&g.b, i), 8, NULL, 0); /* BUSY */
    take(&g);
    retry_all(&g);
    struct context *c = g.b.c;
    uint32_t cmd_sn = c->cmd_sn;
    iscsibe_out_fill(c);
    assert_int_equal(c->out.total, 3 * (48 + 512));
    iscsibe_out_sent(c, 48 + 512 + 10, NULL, 0); /* the first, and the beginning of the second */
    sense(&g, bench_itt(&g.b, 3), attention);
    take(&g);
    assert_int_equal(c->out.total, 48 + 512 - 10); /* the rest of the second has to go */
    assert_int_equal(c->cmd_sn, cmd_sn + 2);
    assert_int_equal(c->again_n, 1);
    assert_int_equal(bench_unsent(&g.b, g.sent, sizeof g.sent), 48 + 512 - 10);
    assert_memory_equal(g.sent + 38, g.b.request[1].buf, 512);
    iscsibe_out_sent(c, c->out.total, NULL, 0);
    bench_end(&g.b);
    begin(&g, 2);
    for (unsigned i = 0; i < 2; i++) bench_request(&g.b, i, IO_WRITE, 512 * i, 512);
    bench_send(&g.b, 2);
    pdus_response(&g.in, bench_itt(&g.b, 0), 8, NULL, 0);
    take(&g);
    retry_all(&g);
    c = g.b.c;
    cmd_sn = c->cmd_sn;
    iscsibe_out_fill(c); /* and the socket takes nothing */
    sense(&g, bench_itt(&g.b, 1), attention);
    take(&g);
    assert_int_equal(c->out.n, 0);
    assert_int_equal(c->cmd_sn, cmd_sn);
    bench_end(&g.b);
}

/* A unit without a name cannot say who it is: a session that may write is given up after a doubt. */
static void nameless(void **state) {
    static struct rig g;
    (void)state;
    begin(&g, 1);
    g.b.unit = (struct iscsibe_unit){ .size = 1 << 20, .block = 512 };
    bench_request(&g.b, 0, IO_WRITE, 0, 512);
    bench_send(&g.b, 1);
    sense(&g, bench_itt(&g.b, 0), attention);
    take(&g);
    turns(&g, 5);
    assert_true(g.b.c->lost);
    bench_end(&g.b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_unit),     cmocka_unit_test(other_units),   cmocka_unit_test(grown),
        cmocka_unit_test(comes_back),    cmocka_unit_test(unnoticed),     cmocka_unit_test(other_session),
        cmocka_unit_test(unsent_commands_wait), cmocka_unit_test(nameless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
