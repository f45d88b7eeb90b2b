/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "safety/guard.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "pattern/mark.h"
#include "safety/claim.h"
#include "safety/consent.h"
#include "safety/content.h"
#include "safety/lookthrough.h"
#include "safety/recheck.h"
#include "safety/roads.h"

/* Whoever read "free" just before our record was there has written his own by then, and the later one of the two is
 * read back by both (Fischer's algorithm: the wait must be longer than reading and writing take, in one session). */
#define WAIT_LEAST (250 * NS_PER_MS)
#define WAIT_TIMES 4

struct safety_guard {
    const struct safety_wish *wish;
    struct safety_report *report;
    struct owner self;
    struct claim *claim; /* per target */
};

static bool is_borrowed(const struct target *t) {
    for (unsigned m = 0; m < t->n_members; m++)
        if (t->member[m].borrowed) return true;
    return false;
}

static bool is_block_view(const struct target *t) {
    return t->facts.kind == OBJECT_LUN || t->facts.kind == OBJECT_DEVICE;
}

/* ---- which are one ---- */

static int never_both(const struct target *t, const struct target *other, enum status status, struct err *err) {
    return err_set(err, status,
                   "%s: refused: what was written to target %s is found on it, and so it is the same storage; a file and a "
                   "block view of one object, or two parts of it that overlap, never both write\nleave one of them out, "
                   "or let the plan only read",
                   t->label, other->label);
}

/* Our own record is there already, and so was written through another target. */
static int found_ours(struct safety_guard *g, unsigned t, const struct owner *found, struct err *err) {
    struct target *const *targets = g->wish->targets;
    unsigned other = found->target < g->wish->n_targets ? found->target : 0;

    if (other == t) return 0;
    bool one = targets[t]->facts.size == targets[other]->facts.size && targets[t]->n_members == targets[other]->n_members;
    sameness_note(&g->report->same, t, other, one ? SAMENESS_ONE : SAMENESS_SHARED, 1,
                  "a record written through the one is read through the other");
    if (is_block_view(targets[t]) != is_block_view(targets[other]))
        return never_both(targets[t], targets[other], STATUS_USAGE, err);
    return 0;
}

/* Those that looked like one by name and samples, and are not: the record is not there. */
static int found_none(struct safety_guard *g, unsigned t, struct err *err) {
    struct target *const *targets = g->wish->targets;

    for (unsigned u = 0; u < g->wish->n_targets; u++) {
        if (u == t || !g->claim[u].taken || !sameness_is_one(&g->report->same, t, u)) continue;
        struct sameness_pair *p = sameness_of(&g->report->same, t, u);
        p->verdict = SAMENESS_DIFFERENT;
        p->by_content = false;
        snprintf(p->how, sizeof(p->how), "a record written through the one is not read through the other");
        if (is_borrowed(targets[t]))
            return err_set(err, STATUS_USAGE,
                           "%s: refused: it bears the identity of %s and looked the same, but is another object: a "
                           "record written to that one is not found on it\nconsent for %s is not consent for it; to "
                           "overwrite it too, add --destroy %s",
                           targets[t]->label, targets[u]->label, targets[u]->label, targets[t]->label);
    }
    return 0;
}

/* ---- taking ---- */

static int refuse_owner(const struct safety_guard *g, unsigned t, const struct owner *o, enum owner_verdict v,
                        struct err *err) {
    const char *label = g->wish->targets[t]->label;
    char who[300];

    if (v == OWNER_ELSEWHERE && consent_has_word(g->wish->destroy, g->wish->n_destroy, label, CONSENT_STALE_OWNER))
        return 0;
    err_set(err, STATUS_USAGE, "%s: refused: %s", label, owner_text(o, who, sizeof(who)));
    if (v != OWNER_ELSEWHERE) return -1;
    size_t n = strlen(err->msg);
    snprintf(err->msg + n, sizeof(err->msg) - n, CONSENT_STALE_ADVICE, label);
    return -1;
}

/* The block has changed since it was read. If another samedisk was faster, that is what the user is told; in any case
 * nothing is written. */
static int who_was_faster(const struct safety_guard *g, unsigned t, struct err *err) {
    struct claim_block now;
    struct err ignored;

    if (claim_read(&g->claim[t], &now, &ignored) != 0 || !now.has_record) return -1;
    enum owner_verdict v = owner_judge(&now.owner, &g->self, g->wish->proc);
    if (v == OWNER_RUNNING || v == OWNER_ELSEWHERE) (void)refuse_owner(g, t, &now.owner, v, err);
    return -1;
}

/* The record is the first thing that is written: what it goes over must be what consent was given for. The rest is looked
 * at once more before the first run, but by then this block would no longer tell. */
static int same_block_as_examined(const struct safety_guard *g, unsigned t, const struct claim_block *found, struct err *err) {
    const struct claim *c = &g->claim[t];

    for (size_t i = 0; i < g->report->n; i++) {
        const struct safety_decision *d = &g->report->decision[i];
        if (d->target != t || c->target->n_members != 1 || c->unit != MARK_STEP || !d->content || !d->content->first_known) continue;
        if (d->content->first_sum == found->sum) continue;
        return err_set(err, STATUS_TARGET,
                       "%s: refused: what lies at offset %" PRIu64 " is not what was there when it was examined: somebody else "
                       "writes to it, or its name leads to another object by now; nothing was written to it",
                       c->target->label, c->at);
    }
    return 0;
}

static int take(struct safety_guard *g, unsigned t, struct err *err) {
    struct claim *c = &g->claim[t];
    struct claim_block found;
    enum owner_verdict v = OWNER_FREE;

    if (!c->unit && is_borrowed(c->target))
        return err_set(err, STATUS_USAGE,
                       "%s: refused: consent was given for another label of what looks like one object, and the range that "
                       "is written is too small to prove it\nto overwrite it, add --destroy %s",
                       c->target->label, c->target->label);
    if (!c->unit) return c->target->handle ? roads_prove(c->target, g->wish->write_from, g->wish->write_to, err) : 0;
    g->self.target = t;
    if (claim_read(c, &found, err) != 0) return -1;
    if (found.has_record) v = owner_judge(&found.owner, &g->self, g->wish->proc);
    if (v == OWNER_RUNNING || v == OWNER_ELSEWHERE)
        if (refuse_owner(g, t, &found.owner, v, err) != 0) return -1;
    if ((v == OWNER_OURS ? found_ours(g, t, &found.owner, err) : found_none(g, t, err)) != 0) return -1;
    if (v != OWNER_OURS && same_block_as_examined(g, t, &found, err) != 0) return -1;
    if (roads_prove(c->target, g->wish->write_from, g->wish->write_to, err) != 0) return -1;
    c->before = found.sum;
    if (claim_write(c, &g->self, &found, err) != 0) return who_was_faster(g, t, err);
    c->taken = true;
    return 0;
}

static bool is_mine(const struct safety_guard *g, const struct claim_block *b) {
    return b->has_record && memcmp(b->owner.token, g->self.token, sizeof(b->owner.token)) == 0;
}

static int refuse_other(const struct claim *c, const struct claim_block *found, bool mine, enum status status,
                        struct err *err) {
    char who[300];

    if (found->has_record && !mine)
        return err_set(err, status, "%s: refused: %s", c->target->label, owner_text(&found->owner, who, sizeof(who)));
    return err_set(err, status,
                   "%s: refused: the record of who writes to it, at offset %" PRIu64
                   ", was overwritten by somebody else since it was taken for this plan",
                   c->target->label, c->at);
}

static int read_back_as(const struct safety_guard *g, unsigned t, enum status status, struct claim_block *found,
                        struct err *err) {
    const struct claim *c = &g->claim[t];

    if (!c->taken) return 0;
    if (claim_read(c, found, err) != 0) return -1;
    bool mine = is_mine(g, found);
    return mine && found->whole ? 0 : refuse_other(c, found, mine, status, err);
}

static int read_back(const struct safety_guard *g, unsigned t, enum status status, struct err *err) {
    struct claim_block found;
    return read_back_as(g, t, status, &found, err);
}

/* The first time. Some targets keep nothing of what is written (null backing stores): there is nothing to protect, and
 * nothing to be known by. */
static int confirm(struct safety_guard *g, unsigned t, struct err *err) {
    struct claim *c = &g->claim[t];
    struct claim_block found;

    if (!c->taken) return 0;
    if (claim_read(c, &found, err) != 0) return -1;
    bool mine = is_mine(g, &found);
    if (mine && found.whole) return 0;
    if (found.sum != c->before) return refuse_other(c, &found, mine, STATUS_USAGE, err);
    c->taken = false;
    kv_text(&c->target->member[0].facts.warnings, "keeps-nothing",
            "what is written to it is not read back: nobody can see who else writes to it, or what shares its blocks");
    return 0;
}

static int take_all(struct safety_guard *g, struct err *err) {
    unsigned n = g->wish->n_targets;
    struct clock *clock = g->wish->targets[0]->clock;
    int64_t longest = 0;
    bool any = false;

    /* What was consented to by its own words first: the others are held against it. */
    for (unsigned pass = 0; pass < 2; pass++)
        for (unsigned t = 0; t < n; t++) {
            if (is_borrowed(g->wish->targets[t]) != (pass == 1)) continue;
            if (take(g, t, err) != 0) return -1;
            any = any || g->claim[t].taken;
            if (g->claim[t].took > longest) longest = g->claim[t].took;
        }
    if (!any) return 0;
    int64_t wait = WAIT_TIMES * longest > WAIT_LEAST ? WAIT_TIMES * longest : WAIT_LEAST;
    int64_t until = clock_now(clock) + wait;
    while (clock_now(clock) < until) {
        if (g->wish->interrupted && *g->wish->interrupted) return err_set(err, STATUS_INTERRUPTED, "interrupted");
        int64_t next = clock_now(clock) + 100 * NS_PER_MS;
        clock_wait_until(clock, next < until ? next : until);
    }
    for (unsigned t = 0; t < n; t++)
        if (confirm(g, t, err) != 0) return -1;
    return 0;
}

int safety_guard_begin(const struct safety_wish *wish, struct safety_report *report, struct safety_guard **out,
                       struct err *err) {
    struct safety_guard *g = calloc(1, sizeof(*g));

    *out = NULL;
    if (g) g->claim = calloc(wish->n_targets + 1, sizeof(*g->claim));
    if (!g || !g->claim) {
        free(g);
        return err_set(err, STATUS_TARGET, "no memory");
    }
    g->wish = wish;
    g->report = report;
    owner_self(&g->self, wish->proc);
    for (unsigned t = 0; wish->writes && t < wish->n_targets; t++)
        claim_place(&g->claim[t], wish->targets[t], wish->write_from, wish->write_to);
    if (wish->writes && take_all(g, err) != 0) {
        safety_guard_end(g);
        return -1;
    }
    *out = g;
    return 0;
}

const struct data_note *safety_guard_note(const struct safety_guard *g, unsigned t) {
    return g && g->claim[t].taken ? &g->claim[t].note : NULL;
}

/* Only what is still ours is given back: another's record stays his. */
void safety_guard_end(struct safety_guard *g) {
    if (!g) return;
    for (unsigned t = 0; t < g->wish->n_targets; t++) {
        struct claim *c = &g->claim[t];
        struct claim_block found;
        struct err ignored;
        if (!c->taken || !c->target->handle) continue;
        if (c->target->silent && g->wish->interrupted && *g->wish->interrupted) continue; /* nobody would answer */
        if (read_back_as(g, t, STATUS_TARGET, &found, &ignored) != 0) continue;
        g->self.state = OWNER_RELEASED;
        g->self.target = t;
        (void)claim_write(c, &g->self, &found, &ignored);
    }
    free(g->claim);
    free(g);
}

/* ---- before a write ---- */

static const char *say_found(const struct lookthrough *l, char *buf, size_t len) {
    snprintf(buf, len, "%u of %" PRIu64 " blocks looked at hold what was just written through the other",
             l->same + l->elsewhere, l->blocks);
    return buf;
}

static int judge_found(struct safety_guard *g, unsigned t, const struct lookthrough *found, struct err *err) {
    struct target *const *targets = g->wish->targets;
    char how[160];

    for (unsigned u = 0; u < g->wish->n_targets; u++) {
        const struct lookthrough *l = &found[u];
        if (u == t || !targets[u]->filled || targets[u]->facts.kind == OBJECT_NULL) continue;
        if (l->same + l->elsewhere == 0) {
            sameness_note(&g->report->same, t, u, SAMENESS_NO_SIGN, l->blocks, "");
            continue;
        }
        /* All of what was written stands at its place, and the sizes agree: one object. */
        bool one = l->same > l->places / 2 && targets[t]->facts.size == targets[u]->facts.size;
        sameness_note(&g->report->same, t, u, one ? SAMENESS_ONE : SAMENESS_SHARED, l->blocks,
                      say_found(l, how, sizeof(how)));
        if (!one || is_block_view(targets[t]) != is_block_view(targets[u]))
            return never_both(targets[t], targets[u], STATUS_TARGET, err);
    }
    return 0;
}

/* Is anything that was filled before found in the target that comes next? */
static int look_through(struct safety_guard *g, unsigned t, const uint32_t *fill_tag, struct err *err) {
    struct target *const *targets = g->wish->targets;
    bool any = false;

    for (unsigned u = 0; u < g->wish->n_targets; u++) any = any || (u != t && targets[u]->filled);
    if (!any || targets[t]->facts.kind == OBJECT_NULL) return 0;
    struct lookthrough *found = calloc(g->wish->n_targets, sizeof(*found));
    if (!found) return err_set(err, STATUS_TARGET, "no memory");
    int rc = lookthrough(targets[t], fill_tag, g->wish->n_targets, g->wish->write_from, g->wish->write_to, found, err);
    if (rc == 0) rc = judge_found(g, t, found, err);
    free(found);
    return rc;
}

int safety_guard_before_write(struct safety_guard *g, unsigned t, bool first, const uint32_t *fill_tag,
                              struct err *err) {
    if (read_back(g, t, STATUS_TARGET, err) != 0) return -1;
    if (!first) return 0;
    if (recheck_use(g->wish->targets[t], g->wish->sysfs, g->wish->proc, err) != 0) return -1;
    for (size_t i = 0; i < g->report->n; i++) {
        const struct safety_decision *d = &g->report->decision[i];
        struct target *target = g->wish->targets[t];
        if (d->target != t || target->member[d->member].facts.kind == OBJECT_NULL) continue;
        int rc = recheck_member(target, d, g->wish->interrupted, err);
        if (rc != 0) return rc;
    }
    /* One that was filled has been looked through before that; by now runs have overwritten what there was to find. */
    return g->wish->targets[t]->filled ? 0 : look_through(g, t, fill_tag, err);
}
