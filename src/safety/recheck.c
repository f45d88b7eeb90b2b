/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "safety/recheck.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "safety/content.h"
#include "safety/localdisk.h"

static bool had_signature(const struct content *before, const struct content_signature *s) {
    for (unsigned i = 0; before && i < before->n; i++) {
        const struct content_signature *had = &before->signature[i];
        if (strcmp(had->name, s->name) == 0 && strcmp(had->text, s->text) == 0 && had->start == s->start) return true;
    }
    return false;
}

/* What was consented to may have become less, never more or other. */
static bool still_covered(const struct content *before, const struct content *now) {
    enum content_kind was = before ? content_kind(before) : CONTENT_ZEROS;

    for (unsigned i = 0; i < now->n; i++)
        if (!had_signature(before, &now->signature[i])) return false;
    return (now->foreign == 0 && !now->cut) || was == CONTENT_UNKNOWN || was == CONTENT_KNOWN;
}

int recheck_member(const struct target *t, const struct safety_decision *d, volatile sig_atomic_t *interrupted,
                   struct err *err) {
    const struct member *m = &t->member[d->member];
    struct content *now = malloc(sizeof(*now));
    char url[300], found[400], before[400] = "nothing";
    const struct content_wish look = {.backend = m->backend,
                                      .handle = m->handle,
                                      .facts = &m->facts,
                                      .clock = t->clock,
                                      .from = d->from,
                                      .to = d->to,
                                      .interrupted = interrupted};

    if (!now) return err_set(err, STATUS_TARGET, "no memory");
    text_safe(url, sizeof(url), m->url, strlen(m->url));
    int rc = content_look(&look, now, err);
    if (rc < 0) {
        err->status = STATUS_TARGET;
        rc = err_prefix(err, "%s: looking once more at what is on %s", t->label, url);
    } else if (rc == 0 && !still_covered(d->content, now)) {
        if (d->content) content_describe(d->content, before, sizeof(before));
        rc = err_set(err, STATUS_TARGET,
                     "%s: not written: %s was found on %s right before its first write; when the plan was made there "
                     "was %s, and only that was consented to",
                     t->label, content_describe(now, found, sizeof(found)), url, before);
    }
    free(now);
    return rc;
}

int recheck_use(const struct target *t, const char *sysfs, const char *proc, struct err *err) {
    struct localdisk *disks;
    struct err ignored;
    char url[300], why[300], note[160];
    int rc = 0;

    /* That it cannot be asked refused the plan, where that matters. */
    if (localdisk_scan(sysfs, proc, &disks, &ignored) != 0) return 0;
    for (unsigned m = 0; m < t->n_members && rc == 0; m++) {
        const struct member *x = &t->member[m];
        if (x->facts.kind != OBJECT_LUN && x->facts.kind != OBJECT_FILE) continue;
        if (localdisk_in_use(disks, &x->facts, why, sizeof(why), note, sizeof(note)))
            rc = err_set(err, STATUS_TARGET, "%s: not written: since the plan was made, %s came into use on this machine: %s",
                         t->label, text_safe(url, sizeof(url), x->url, strlen(x->url)), why);
    }
    localdisk_free(disks);
    return rc;
}
