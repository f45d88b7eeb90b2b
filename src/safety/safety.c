/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "safety/safety.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "safety/consent.h"
#include "safety/item.h"
#include "safety/ownercheck.h"
#include "safety/roads.h"
#include "safety/sameobject.h"
#include "safety/space.h"

/* ---- what every member is asked ---- */

static size_t count_members(const struct safety_wish *wish) {
    size_t n = 0;

    for (unsigned t = 0; t < wish->n_targets; t++) n += wish->targets[t]->n_members;
    return n;
}

static void make_items(const struct safety_wish *wish, struct item *items, struct safety_decision *decisions) {
    struct item *it = items;

    for (unsigned t = 0; t < wish->n_targets; t++) {
        for (unsigned m = 0; m < wish->targets[t]->n_members; m++, it++) {
            it->wish = wish;
            it->target = wish->targets[t];
            it->member = &it->target->member[m];
            it->decision = decisions++;
            it->decision->target = t;
            it->decision->member = m;
            it->needed = target_member_size(it->target, wish->needed_size);
            target_member_range(it->target, m, wish->write_from, wish->write_to, &it->from, &it->to);
            if (it->target->n_members > 1 && it->from < it->to) it->to += wish->overrun;
            it->decision->from = it->from;
            it->decision->to = it->to;
        }
    }
}

static void check_items(struct item *items, size_t n, const struct sameness *same) {
    const struct safety_wish *wish = items[0].wish;
    struct localdisk *disks = NULL;
    struct err err = {.msg = ""};

    if (wish->writes) localdisk_scan(wish->sysfs, wish->proc, &disks, &err);
    for (size_t i = 0; i < n; i++) item_check(&items[i], disks, err.msg);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < i; k++)
            item_check_pair(&items[i], &items[k], sameness_of(same, (unsigned)i, (unsigned)k));
    localdisk_free(disks);
}

static void tell(void *arg, uint64_t done, uint64_t total) {
    const struct item *it = arg;
    it->wish->looking(it->wish->arg, it->target->label, done, total);
}

/* Reads what lies on each member that exists and was not refused yet. */
static int look(struct item *items, size_t n, const struct owner *self, struct err *err) {
    for (size_t i = 0; i < n; i++) {
        struct item *it = &items[i];
        struct member *m = it->member;
        char where[300];
        if (!m->facts.exists || m->facts.kind == OBJECT_NULL || item_is_refused(it)) continue;
        if (roads_compare(it, err) != 0)
            return err_prefix(err, "%s: reading by each road of %s", it->target->label,
                              item_where(it, where, sizeof(where)));
        if (!it->wish->writes || item_is_refused(it)) continue;
        struct content *c = malloc(sizeof(*c));
        if (!c) return err_set(err, STATUS_TARGET, "no memory");
        const struct content_wish wish = {.backend = m->backend,
                                          .handle = m->handle,
                                          .facts = &m->facts,
                                          .clock = it->target->clock,
                                          .from = it->from,
                                          .to = it->to,
                                          .time = CONTENT_TIME,
                                          .progress = it->wish->looking ? tell : NULL,
                                          .arg = it};
        if (content_look(&wish, c, err) != 0) {
            free(c);
            return err_prefix(err, "%s: looking at what is on %s", it->target->label,
                              item_where(it, where, sizeof(where)));
        }
        it->content = c;
        for (unsigned o = 0; o < c->n_owners; o++) ownercheck_found(it, self, &c->owner[o]);
        content_describe(c, it->decision->found, sizeof(it->decision->found));
    }
    return 0;
}

/* ---- what may be done ---- */

static struct consent_party party_of(struct item *it, const struct sameness *same) {
    const struct facts *f = &it->member->facts;

    return (struct consent_party){.label = it->target->label,
                                  .facts = f,
                                  .content = it->content,
                                  .looked = it->content || !f->exists || f->kind == OBJECT_NULL,
                                  .same = same,
                                  .complaint = it->complaint,
                                  .complaint_len = sizeof(it->complaint)};
}

static void say_range(const struct item *it, char *buf, size_t len) {
    char from[32], to[32];

    snprintf(buf, len, "will be overwritten from %s to %s", content_size(from, sizeof(from), it->from),
             content_size(to, sizeof(to), it->to));
}

static void allow_create(struct item *it) {
    char size[32], where[300];

    it->decision->verdict = SAFETY_CREATE;
    it->decision->create_size = it->needed;
    snprintf(it->decision->found, sizeof(it->decision->found), "does not exist");
    snprintf(it->decision->text, sizeof(it->decision->text), "%s: %s does not exist; will be created with %s", it->target->label,
             item_where(it, where, sizeof(where)), content_size(size, sizeof(size), it->needed));
}

static void allow_existing(struct item *it, enum safety_verdict verdict, const char *by) {
    char range[100], where[300];

    it->decision->verdict = verdict;
    say_range(it, range, sizeof(range));
    snprintf(it->decision->text, sizeof(it->decision->text), "%s: %s on %s%s%s; %s%s%s", it->target->label,
             it->decision->found, item_where(it, where, sizeof(where)),
             it->note[0] ? ", the same object as unused " : "", it->note, range, *by ? ", agreed by " : "", by);
}

static void refuse_content(struct item *it, const struct consent_party *p, const char *missing) {
    char found[300], where[300], offer[200], safest[300], advice[700];
    bool zeros = content_kind(it->content) == CONTENT_ZEROS;

    consent_offer(p, false, offer, sizeof(offer));
    consent_offer(p, true, safest, sizeof(safest));
    bool same = strcmp(offer, safest) == 0; /* it has no identity */
    snprintf(advice, sizeof(advice), "%s%s%sto overwrite it, type: %s%s%s%s", *missing ? "what was typed lacks " : "",
             missing, *missing ? "; " : "", offer, same ? "" : " (safest: ", same ? "" : safest, same ? "" : ")");
    item_refuse(it, advice, "%s %s found on %s", content_describe(it->content, found, sizeof(found)),
                zeros ? "were" : "was", item_where(it, where, sizeof(where)));
}

static void decide(struct item *items, const struct consent_party *parties, size_t n, size_t i) {
    struct item *it = &items[i];
    const struct safety_wish *wish = it->wish;
    const struct facts *f = &it->member->facts;
    char by[200], missing[120], where[300], size[32];

    if (!wish->writes) {
        it->decision->verdict = SAFETY_READ;
        snprintf(it->decision->text, sizeof(it->decision->text), "%s: %s, %s: only read", it->target->label,
                 item_where(it, where, sizeof(where)), content_size(size, sizeof(size), f->size));
    } else if (!f->exists) {
        allow_create(it);
    } else if (f->kind == OBJECT_NULL) {
        snprintf(it->decision->found, sizeof(it->decision->found), "no storage");
        allow_existing(it, SAFETY_OWN_DATA, "");
    } else if (consent_covers(wish->destroy, wish->n_destroy, parties, n, i, &it->decision->borrowed, by, sizeof(by),
                              missing, sizeof(missing)) &&
               !(it->decision->borrowed && it->target->n_members > 1)) { /* which proves to be one by one record only */
        allow_existing(it, SAFETY_CONSENTED, by);
    } else if (content_kind(it->content) == CONTENT_OWN && !*missing) {
        allow_existing(it, SAFETY_OWN_DATA, "");
    } else {
        refuse_content(it, &parties[i], missing);
    }
}

/* -1: a label that no target has. */
static int decide_all(struct item *items, size_t n, const struct sameness *same, struct err *err) {
    const struct safety_wish *wish = items[0].wish;
    struct consent_party *parties = calloc(n, sizeof(*parties));
    int rc = -1;

    if (!parties) return err_set(err, STATUS_TARGET, "no memory");
    for (size_t i = 0; i < n; i++) parties[i] = party_of(&items[i], same);
    if (wish->writes && consent_check_words(wish->destroy, wish->n_destroy, parties, n, err) < 0) goto out;
    for (size_t i = 0; i < n; i++) {
        struct item *it = &items[i];
        if (it->complaint[0]) {
            char where[300];
            item_refuse(it, it->complaint, "what was typed does not fit %s", item_where(it, where, sizeof(where)));
        }
        if (!item_is_refused(it)) decide(items, parties, n, i);
    }
    rc = 0;
out:
    free(parties);
    return rc;
}

/* ---- space ---- */

/* A file with holes is filled too. */
static uint64_t will_allocate(const struct item *it) {
    const struct facts *f = &it->member->facts;

    if (it->decision->verdict == SAFETY_CREATE) return it->decision->create_size;
    if (f->kind != OBJECT_FILE || f->allocated == UINT64_MAX || f->allocated >= f->size) return 0;
    uint64_t holes = f->size - f->allocated, range = it->to - it->from;
    return holes < range ? holes : range;
}

static int check_space(struct item *items, size_t n, struct err *err) {
    struct space_claim *claims = calloc(n, sizeof(*claims));
    char where[300];

    if (!claims) return err_set(err, STATUS_TARGET, "no memory");
    for (size_t i = 0; i < n; i++) {
        claims[i].member = items[i].member;
        if (items[i].wish->writes && !item_is_refused(&items[i])) claims[i].bytes = will_allocate(&items[i]);
    }
    space_check(claims, n, items[0].wish->allow_full);
    for (size_t i = 0; i < n; i++)
        if (claims[i].refused)
            item_refuse(&items[i], "", "%s: %s", item_where(&items[i], where, sizeof(where)), claims[i].why);
    free(claims);
    return 0;
}

/* ---- which are one ---- */

/* Of two targets, from their members: one object only if each member is one with its counterpart. */
static void sum_up_pair(const struct item *a, const struct item *b, const struct item *first,
                        const struct sameness *same, struct sameness_pair *out) {
    unsigned n = a->target->n_members, m = b->target->n_members, one = 0;

    for (unsigned i = 0; i < n; i++)
        for (unsigned k = 0; k < m; k++) {
            const struct sameness_pair *p = sameness_of(same, (unsigned)(a - first) + i, (unsigned)(b - first) + k);
            out->blocks += p->blocks;
            one += p->verdict == SAMENESS_ONE && i == k;
            out->by_content = out->by_content || p->by_content;
            if (p->verdict <= out->verdict) continue;
            out->verdict = p->verdict;
            snprintf(out->how, sizeof(out->how), "%s", p->how);
        }
    if (out->verdict == SAMENESS_ONE && (one != n || n != m)) out->verdict = SAMENESS_SHARED;
}

static int sum_up(const struct item *items, const struct sameness *same, struct sameness *out, struct err *err) {
    const struct safety_wish *wish = items[0].wish;
    const struct item *a = items, *b;

    if (sameness_init(out, wish->n_targets) != 0) return err_set(err, STATUS_TARGET, "no memory");
    for (unsigned t = 0; t < wish->n_targets; a += wish->targets[t++]->n_members) {
        b = items;
        for (unsigned u = 0; u < t; b += wish->targets[u++]->n_members)
            sum_up_pair(a, b, items, same, sameness_of(out, t, u));
    }
    return 0;
}

/* ---- the whole ---- */

/* Refusals, whole ones as long as they fit. */
static int join_refusals(struct safety_report *report, struct err *err) {
    char msg[sizeof(err->msg)] = "";
    size_t at = 0;
    unsigned left = 0;

    report->refused = 0;
    for (size_t i = 0; i < report->n; i++) {
        const struct safety_decision *d = &report->decision[i];
        if (d->verdict != SAFETY_REFUSED) continue;
        report->refused++;
        if (left > 0 || at + strlen(d->text) + 40 > sizeof(msg)) {
            left++;
            continue;
        }
        at += (size_t)snprintf(msg + at, sizeof(msg) - at, "%s%s", at ? "\n" : "", d->text);
    }
    if (left > 0) snprintf(msg + at, sizeof(msg) - at, "%sand %u refusals more", at ? "\n" : "", left);
    return report->refused == 0 ? 0 : err_set(err, STATUS_USAGE, "%s", msg);
}

int safety_examine(const struct safety_wish *wish, struct safety_report *report, struct err *err) {
    size_t n = count_members(wish);
    struct item *items = calloc(n ? n : 1, sizeof(*items));
    struct sameness same = {.n = 0};
    struct owner self;
    int rc = -1;

    memset(report, 0, sizeof(*report));
    report->decision = calloc(n ? n : 1, sizeof(*report->decision));
    if (!items || !report->decision) {
        err_set(err, STATUS_TARGET, "no memory");
        goto out;
    }
    if (n == 0) {
        err_set(err, STATUS_USAGE, "there is no target");
        goto out;
    }
    report->n = n;
    make_items(wish, items, report->decision);
    if (sameobject_compare(items, (unsigned)n, &same, err) != 0 || sum_up(items, &same, &report->same, err) != 0)
        goto out;
    check_items(items, n, &same);
    owner_self(&self, wish->proc);
    for (size_t i = 0; i < n; i++)
        if (ownercheck_item(&items[i], &self, err) != 0) goto out;
    if (look(items, n, &self, err) != 0) goto out;
    if (decide_all(items, n, &same, err) != 0 || check_space(items, n, err) != 0) goto out;
    rc = join_refusals(report, err);
out:
    for (size_t i = 0; items && report->decision && i < report->n; i++) report->decision[i].content = items[i].content;
    sameness_free(&same);
    free(items);
    return rc;
}

void safety_report_free(struct safety_report *report) {
    for (size_t i = 0; report->decision && i < report->n; i++) free(report->decision[i].content);
    sameness_free(&report->same);
    free(report->decision);
    memset(report, 0, sizeof(*report));
}
