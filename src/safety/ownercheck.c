/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "safety/ownercheck.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pattern/mark.h"
#include "safety/consent.h"
#include "target/blockio.h"

/* 1: an owner stands there; -1: the target is lost. */
static int stands_at(const struct item *it, struct blockio *io, void *buf, uint32_t unit, uint64_t at,
                     struct owner *found, struct err *err) {
    if (at > it->member->facts.size || it->member->facts.size - at < unit) return 0;
    if (blockio_read(io, at, buf, unit, err) != 0) return err->status == STATUS_TARGET ? -1 : 0;
    return owner_of_block(buf, found);
}

void ownercheck_found(struct item *it, const struct owner *self, const struct owner *found) {
    const struct safety_wish *wish = it->wish;
    enum owner_verdict v = owner_judge(found, self, wish->proc);
    char who[300], where[300], advice[200] = "";

    if (v == OWNER_FREE || v == OWNER_OURS) return;
    if (v == OWNER_ELSEWHERE) {
        if (consent_has_word(wish->destroy, wish->n_destroy, it->target->label, CONSENT_STALE_OWNER)) return;
        snprintf(advice, sizeof(advice), CONSENT_STALE_ADVICE, it->target->label);
    }
    item_refuse(it, advice + (*advice == '\n'), "%s; it is %s", owner_text(found, who, sizeof(who)),
                item_where(it, where, sizeof(where)));
}

int ownercheck_item(struct item *it, const struct owner *self, struct err *err) {
    const struct member *m = it->member;
    uint32_t unit = m->facts.block > MARK_STEP ? m->facts.block : MARK_STEP;
    /* Where a plan with our range puts it, and where most plans do. */
    uint64_t places[2] = {(it->from + unit - 1) / unit * unit, 0};
    struct owner found;
    struct blockio *io;
    struct err ignored;
    char where[300];
    int rc = 0;

    if (!m->facts.exists || m->facts.kind == OBJECT_NULL || !m->handle || item_is_refused(it)) return 0;
    void *buf = malloc(unit);
    if (!buf) return err_set(err, STATUS_TARGET, "no memory");
    if (blockio_open_road(m->backend, m->handle, &m->facts, it->target->clock, 1, unit, false,
                          blockio_first_road(m->backend, m->handle), &io, &ignored) == 0) {
        for (unsigned i = 0; i < (places[0] ? 2 : 1) && rc >= 0; i++)
            if ((rc = stands_at(it, io, buf, unit, places[i], &found, err)) > 0) ownercheck_found(it, self, &found);
        blockio_close(io);
    }
    free(buf);
    return rc < 0 ? err_prefix(err, "%s: looking whether another samedisk uses %s", it->target->label,
                               item_where(it, where, sizeof(where))) : 0;
}
