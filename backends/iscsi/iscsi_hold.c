/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The native engine asks who the unit is (iscsi_recheck.h). With a reason to doubt it, what is out may come back, no
 * other command goes, and what waits goes when the unit is known to be the same; once a second, beside the I/O, where
 * there is no reason. */
#include <errno.h>
#include <stdio.h>

#include "backends/iscsi/iscsi_native.h"

static bool all_back(const struct context *c) {
    if (c->lent == c->again_n + c->retrying) return true; /* none else waits */
    for (unsigned i = 0; i < c->depth; i++)
        if (c->slots[i].out) return false;
    return true;
}

static void hold(struct context *c, const char *why) {
    if (!(c->aside & ASIDE_HOLD)) {
        c->counts.holds++;
        c->held_since = c->wall;
        iscsibe_out_unsend(c);
    }
    c->aside = (c->aside | ASIDE_HOLD) & ~(unsigned)ASIDE_ASK;
    c->check_due = false;
    iscsibe_recheck_ask(&c->check, c->age, c->timeout, why);
}

void iscsibe_hold_doubt(struct context *c, const char *why) {
    if (c->lost) return;
    c->check.doubts = atomic_fetch_add(&c->check.unit->doubts, 1) + 1;
    hold(c, why);
}

void iscsibe_hold_stood_still(struct context *c) {
    if (c->may_write && c->wall - c->asked >= RECHECK_EVERY_NS && iscsibe_recheck_can_ask(&c->check))
        iscsibe_hold_doubt(c, "this client stood still");
}

void iscsibe_hold_follow(struct context *c) {
    c->check.doubts = atomic_load(&c->check.unit->doubts);
    hold(c, "another session had a reason to");
}

void iscsibe_hold_ask(struct context *c) {
    if (c->aside || !iscsibe_recheck_can_ask(&c->check)) return;
    c->aside = ASIDE_ASK;
    iscsibe_recheck_ask(&c->check, c->age, c->timeout, NULL);
}

static void judge(struct context *c, enum recheck_verdict v) {
    char why[sizeof c->check.why];

    switch (v) {
    case RECHECK_MORE:
        return;
    case RECHECK_SAME:
        if (c->aside & ASIDE_HOLD) c->counts.hold_ns += (uint64_t)(c->wall - c->held_since);
        c->aside &= ~(unsigned)(ASIDE_HOLD | ASIDE_ASK);
        c->asked = c->wall;
        return;
    case RECHECK_DOUBT:
        snprintf(why, sizeof why, "%s", c->check.why);
        iscsibe_hold_doubt(c, why);
        return;
    case RECHECK_LOST:
        c->aside = 0;
        iscsibe_native_lose(c, ESTALE, c->check.kind, c->check.text);
    }
}

void iscsibe_hold_work(struct context *c) {
    if (!(c->aside & (ASIDE_HOLD | ASIDE_ASK)) || c->lost) return;
    judge(c, iscsibe_recheck_late(&c->check, c->age));
    c->check_due = !c->lost && !c->slots[c->depth].out && iscsibe_recheck_due(&c->check, c->age) &&
                   (!(c->aside & ASIDE_HOLD) || all_back(c));
}

void iscsibe_hold_answered(struct context *c, const uint8_t *bhs, const uint8_t *segment, size_t len) {
    unsigned status = 0xff, key = 0, ascq = 0;

    if (bhs && ((bhs[0] & ISCSI_OPCODE) != ISCSI_RESPONSE || bhs[AT_RESPONSE] == 0)) status = bhs[AT_STATUS];
    if (status == 0x02) iscsiw_sense(segment, len, &key, &ascq);
    if (status == 0x02 && key == 6) {
        c->counts.attentions++;
        if (ascq >> 8 == 0x29) c->counts.resets++;
    }
    judge(c, iscsibe_recheck_answer(&c->check, c->age, status, key, ascq, c->check_request.buf,
                                    c->slots[c->depth].moved));
}

void iscsibe_hold_counters(const struct context *c, struct kv *out) {
    kv_uint(out, "identity_checks", c->counts.checks);
    kv_uint(out, "identity_holds", c->counts.holds);
    kv_uint(out, "identity_hold_ns", c->counts.hold_ns);
}
