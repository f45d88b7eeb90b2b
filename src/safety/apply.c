/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What safety_examine allowed is done here: reopening to write, creating, and removing what was created. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "safety/content.h"
#include "safety/safety.h"
#include "safety/sameobject.h"

#define REMOVE_LOOK (20 * NS_PER_SEC)

static const char *show_url(const struct member *m, char *buf, size_t len) {
    return text_safe(buf, len, m->url, strlen(m->url));
}

/* Two labels may mean one file that does not exist yet: the first creates it, the second then finds it. */
static struct member *created_before(const struct safety_wish *wish, const struct member *m) {
    for (unsigned t = 0; t < wish->n_targets; t++)
        for (unsigned i = 0; i < wish->targets[t]->n_members; i++) {
            struct member *other = &wish->targets[t]->member[i];
            if (other != m && other->created && other->handle && sameobject_same_road(other, m)) return other;
        }
    return NULL;
}

static int open_twin(struct target *t, unsigned m, const struct member *twin, struct err *err) {
    char url[300];

    if (target_member_reopen(t, m, OPEN_READ, 0, err) != 0) return -1;
    if (!t->member[m].facts.exists || facts_kinship(&t->member[m].facts, &twin->facts) == KINSHIP_NONE)
        return err_set(err, STATUS_TARGET,
                       "%s: %s was created under another label, and is not the file that is found now", t->label,
                       show_url(&t->member[m], url, sizeof(url)));
    return target_member_reopen(t, m, OPEN_WRITE, 0, err);
}

static int apply_one(const struct safety_wish *wish, const struct safety_decision *d, struct err *err) {
    struct target *t = wish->targets[d->target];
    struct member *m = &t->member[d->member];
    char url[300], in_use[300];
    int rc = 0;

    switch (d->verdict) {
    case SAFETY_READ: return 0;
    case SAFETY_REFUSED:
        return err_set(err, STATUS_USAGE, "%s: %s was refused", t->label, show_url(m, url, sizeof(url)));
    case SAFETY_CREATE: {
        const struct member *twin = created_before(wish, m);
        rc = twin ? open_twin(t, d->member, twin, err)
                  : target_member_reopen(t, d->member, OPEN_CREATE, d->create_size, err);
        break;
    }
    case SAFETY_OWN_DATA:
    case SAFETY_CONSENTED: rc = target_member_reopen(t, d->member, OPEN_WRITE, 0, err); break;
    }
    if (rc != 0) return -1;
    if (m->facts.in_use[0])
        return err_set(err, STATUS_USAGE, "%s: refused: %s is in use: %s", t->label, show_url(m, url, sizeof(url)),
                       text_safe(in_use, sizeof(in_use), m->facts.in_use, strlen(m->facts.in_use)));
    m->consented = true;
    m->borrowed = d->borrowed;
    t->unfilled = t->unfilled || m->created;
    return 0;
}

/* What was created holds nothing yet; left behind it would stand in the way of the next try. */
static void undo(const struct safety_wish *wish, struct err *err) {
    char url[300];

    for (unsigned t = 0; t < wish->n_targets; t++)
        for (unsigned i = 0; i < wish->targets[t]->n_members; i++) {
            struct member *m = &wish->targets[t]->member[i];
            struct err why;
            if (!m->created || !m->handle || !m->backend->remove) continue;
            if (m->backend->remove(m->handle, &why) == 0) {
                m->created = false;
                continue;
            }
            size_t n = strlen(err->msg);
            snprintf(err->msg + n, sizeof(err->msg) - n, "; %s, just created, could not be removed: %s",
                     show_url(m, url, sizeof(url)), why.msg);
        }
}

int safety_apply(const struct safety_wish *wish, const struct safety_report *report, struct err *err) {
    int rc = report->refused ? err_set(err, STATUS_USAGE, "%u members were refused", report->refused) : 0;

    for (size_t i = 0; rc == 0 && i < report->n; i++) rc = apply_one(wish, &report->decision[i], err);
    for (unsigned t = 0; rc == 0 && t < wish->n_targets; t++) rc = target_assemble(wish->targets[t], err);
    if (rc != 0) undo(wish, err);
    return rc;
}

/* What was created is removed only while it holds what this program wrote: somebody may have put his own there since. */
static int only_ours(const struct target *t, const struct member *m, struct err *err) {
    struct content *now = malloc(sizeof(*now));
    char found[400];
    const struct content_wish look = {.backend = m->backend, .handle = m->handle, .facts = &m->facts, .clock = t->clock,
                                      .to = m->facts.size, .time = REMOVE_LOOK};
    int rc = now ? content_look(&look, now, err) : err_set(err, STATUS_TARGET, "no memory");

    if (rc == 0 && (now->n || now->foreign || now->cut))
        rc = err_set(err, STATUS_TARGET, "%s was found in it, which is not of this program: look at it before you remove it",
                     content_describe(now, found, sizeof(found)));
    free(now);
    return rc;
}

static bool remove_member(struct target *t, struct member *m, char *line, size_t len) {
    struct err why;
    char url[300];

    show_url(m, url, sizeof(url));
    if (!m->handle || !m->backend->remove) {
        snprintf(line, len, "%s: not removed: %s: %s", t->label, url,
                 m->handle ? "it cannot be" : "it is not open any more");
        return false;
    }
    if (only_ours(t, m, &why) != 0 || m->backend->remove(m->handle, &why) != 0) {
        snprintf(line, len, "%s: not removed: %s: %.700s", t->label, url, why.msg);
        return false;
    }
    m->created = false;
    snprintf(line, len, "%s: removed: %s", t->label, url);
    return true;
}

int safety_cleanup(struct target **targets, unsigned n_targets, void (*say)(void *arg, const char *line), void *arg,
                   struct err *err) {
    char line[1100];
    int rc = 0;

    for (unsigned t = 0; t < n_targets; t++)
        for (unsigned i = 0; i < targets[t]->n_members; i++) {
            if (!targets[t]->member[i].created) continue;
            bool removed = remove_member(targets[t], &targets[t]->member[i], line, sizeof(line));
            if (say) say(arg, line);
            if (!removed && rc == 0) rc = err_set(err, STATUS_TARGET, "%s", line);
        }
    return rc;
}

void safety_remove_unfilled(struct target *t, bool keep, void (*say)(void *arg, const char *line), void *arg) {
    char line[1200], removed[1100], url[300];

    for (unsigned i = 0; t->unfilled && i < t->n_members; i++) {
        struct member *m = &t->member[i];
        if (!m->created) continue;
        if (keep) {
            snprintf(line, sizeof(line), "%s: %s was created and not filled to the end; --keep-partial leaves it", t->label,
                     show_url(m, url, sizeof(url)));
        } else {
            remove_member(t, m, removed, sizeof(removed));
            snprintf(line, sizeof(line), "%s, which was created and not filled to the end (--keep-partial leaves it)", removed);
        }
        if (say) say(arg, line);
    }
    t->unfilled = false;
}
