/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "target/target.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "backends/stripe.h"
#include "base/text.h"
#include "target/filter.h"
#include "target/identity.h"

static const char *show_url(const struct member *m, char *buf, size_t len) {
    return text_safe(buf, len, m->url, strlen(m->url));
}

/* ---- members ---- */

static void member_close(struct member *m) {
    filter_undelay(m);
    if (m->handle) m->backend->close(m->handle);
    m->handle = NULL;
    facts_free(&m->facts);
    memset(&m->facts, 0, sizeof(m->facts));
}

static int member_open(struct target *t, struct member *m, enum open_mode mode, uint64_t create_size, struct err *err) {
    struct open_how how = {.conf = m->conf, .mode = mode, .create_size = create_size, .clock = t->clock};

    memset(&m->facts, 0, sizeof(m->facts));
    if (m->backend->open(&how, &m->handle, &m->facts, err) == 0) {
        filter_facts(&m->facts);
        return 0;
    }
    m->handle = NULL;
    member_close(m);
    return err_prefix(err, "%s", t->label);
}

/* The whole goes before its members do. */
static void disassemble(struct target *t) {
    if (t->handle && t->backend == &backend_stripe) t->backend->close(t->handle);
    t->handle = NULL;
    t->backend = NULL;
    facts_free(&t->facts);
    memset(&t->facts, 0, sizeof(t->facts));
}

int target_open_read(struct target *t, struct err *err) {
    bool opened[TARGET_MEMBERS] = {false};

    if (t->n_members == 0 || t->n_members > TARGET_MEMBERS)
        return err_set(err, STATUS_USAGE, "%s: %u members; 1 to %d can be one target", t->label, t->n_members,
                       TARGET_MEMBERS);
    int64_t from = t->clock ? clock_now(t->clock) : 0;
    for (unsigned i = 0; i < t->n_members; i++) {
        if (t->member[i].handle) continue;
        if (member_open(t, &t->member[i], OPEN_READ, 0, err) != 0) {
            while (i-- > 0)
                if (opened[i]) member_close(&t->member[i]);
            return -1;
        }
        opened[i] = true;
    }
    if (t->clock) t->open_ns = clock_now(t->clock) - from;
    return 0;
}

/* "naa.", "eui.", "dev:": up to and with the first '.' or ':', which begins the name proper. */
static size_t kind_length(const char *identity) {
    size_t n = strcspn(identity, ".:");
    return identity[n] ? n + 1 : n;
}

static bool same_kind(const char *a, const char *b) {
    size_t n = kind_length(a);
    return n == kind_length(b) && strncasecmp(a, b, n) == 0;
}

/* If `list` has names of this name's kind and this is not among them: the first of them. Else NULL. */
static const char *contradiction(const char *name, const char list[][IDENTITY_SIZE]) {
    const char *other = NULL;
    if (strncmp(name, "nfs-handle:", 11) == 0) return NULL; /* holds the file's times: a hint, which each write changes */
    for (unsigned i = 0; *name && i < FACTS_IDENTITIES; i++) {
        if (identity_equal(name, list[i])) return NULL;
        if (!other && list[i][0] && same_kind(name, list[i])) other = list[i];
    }
    return other;
}

/* The same object: the name that consent was given for is the first one again, and no name of a kind that both have is
 * another one. One name in common is not enough: a LUN's serial number may outlive its exchange. The first that differs
 * into *was and *is. */
static bool same_names(const struct facts *before, const struct facts *now, const char **was, const char **is) {
    *was = before->identity[0];
    *is = now->identity[0];
    if (!**was) return true; /* it had none: only the size can be compared */
    if (!identity_equal(*was, *is)) return false;
    for (unsigned i = 1; i < FACTS_IDENTITIES; i++) {
        *was = before->identity[i];
        if ((*is = contradiction(*was, now->identity)) != NULL) return false;
        *is = now->identity[i];
        if ((*was = contradiction(*is, before->identity)) != NULL) return false;
    }
    return true;
}

/* What was examined must be what is written: between closing and opening a path, a LUN number or a name may have come
 * to mean something else. */
static int check_unchanged(const struct target *t, const struct member *m, const struct facts *before,
                           struct err *err) {
    const struct facts *now = &m->facts;
    const char *was, *is;
    char url[300], safe_was[160], safe_is[160];

    if (!now->exists)
        return err_set(err, STATUS_TARGET, "%s: %s is gone since it was examined", t->label,
                       show_url(m, url, sizeof(url)));
    if (!same_names(before, now, &was, &is))
        return err_set(err, STATUS_TARGET, "%s: %s was %s when it was examined, and is %s now", t->label,
                       show_url(m, url, sizeof(url)),
                       text_safe(safe_was, sizeof(safe_was), was, strlen(was)),
                       *is ? text_safe(safe_is, sizeof(safe_is), is, strlen(is)) : "without an identity");
    if (strncmp(before->identity[0], "dev:", 4) == 0 && before->incarnation != now->incarnation)
        return err_set(err, STATUS_TARGET, "%s: %s is another device under the same name than the one that was examined",
                       t->label, show_url(m, url, sizeof(url)));
    if (before->size != now->size)
        return err_set(err, STATUS_TARGET, "%s: %s had %" PRIu64 " bytes when it was examined, and has %" PRIu64 " now",
                       t->label, show_url(m, url, sizeof(url)), before->size, now->size);
    return 0;
}

int target_member_reopen(struct target *t, unsigned i, enum open_mode mode, uint64_t create_size, struct err *err) {
    struct member *m = &t->member[i];
    struct facts before = m->facts; /* its lists are not looked at */
    bool was_open = m->handle != NULL;

    disassemble(t);
    member_close(m);
    if (member_open(t, m, mode, create_size, err) != 0) return -1;
    if (mode == OPEN_CREATE) m->created = true;
    if (was_open && before.exists && mode == OPEN_WRITE && check_unchanged(t, m, &before, err) != 0) {
        member_close(m);
        return -1;
    }
    return 0;
}

/* ---- the whole ---- */

static unsigned stripe_list(const struct target *t, const struct facts *facts, struct stripe_member *list) {
    for (unsigned i = 0; i < t->n_members; i++)
        list[i] =
            (struct stripe_member){filter_backend(&t->member[i]), filter_handle(&t->member[i]), facts ? &facts[i] : &t->member[i].facts};
    return t->n_members;
}

/* Size of the target if every member had `size` bytes; 0: does not work. Only the stripe knows what it keeps for
 * itself. */
static uint64_t size_with(const struct target *t, struct facts *member_facts, uint64_t size) {
    struct stripe_member list[TARGET_MEMBERS];
    struct facts whole = {.exists = false};
    struct handle *h;
    struct err err;
    uint64_t result = 0;

    for (unsigned i = 0; i < t->n_members; i++) {
        member_facts[i].size = size;
        member_facts[i].exists = true;
    }
    if (stripe_open(list, stripe_list(t, member_facts, list), &h, &whole, &err) == 0) {
        result = whole.size;
        backend_stripe.close(h);
    }
    facts_free(&whole);
    return result;
}

uint64_t target_member_size(const struct target *t, uint64_t needed) {
    if (t->n_members <= 1 || needed == 0) return needed;
    uint64_t row = (uint64_t)t->n_members * STRIPE_BYTES, rows = needed / row + (needed % row != 0);
    struct facts *facts = malloc(t->n_members * sizeof(*facts));
    /* What the stripe keeps is at most one largest I/O, 64 MiB, and a little. */
    for (uint64_t more = 0; facts && more <= 256; more++) {
        for (unsigned i = 0; i < t->n_members; i++) facts[i] = t->member[i].facts;
        if (size_with(t, facts, (rows + more) * STRIPE_BYTES) < needed) continue;
        free(facts);
        return (rows + more) * STRIPE_BYTES;
    }
    free(facts);
    return rows * STRIPE_BYTES; /* members that do not fit together: target_assemble says why */
}

/* Bytes of member `m` below byte `end` of the target. */
static uint64_t member_end(const struct target *t, unsigned m, uint64_t end) {
    uint64_t row = (uint64_t)t->n_members * STRIPE_BYTES, rest = end % row, before = (uint64_t)m * STRIPE_BYTES;
    uint64_t mine = rest <= before ? 0 : rest - before < STRIPE_BYTES ? rest - before : STRIPE_BYTES;

    return end / row * STRIPE_BYTES + mine;
}

void target_member_range(const struct target *t, unsigned m, uint64_t from, uint64_t to, uint64_t *member_from,
                         uint64_t *member_to) {
    *member_from = t->n_members <= 1 ? from : member_end(t, m, from);
    *member_to = t->n_members <= 1 ? to : member_end(t, m, to);
}

int target_assemble(struct target *t, struct err *err) {
    disassemble(t);
    for (unsigned i = 0; i < t->n_members; i++) {
        struct member *m = &t->member[i];
        char url[300];
        if (!m->handle || !m->facts.exists)
            return err_set(err, STATUS_TARGET, "%s: %s %s", t->label, show_url(m, url, sizeof(url)),
                           m->handle ? "does not exist" : "is not open");
        if (filter_delay(m, err) != 0) return err_prefix(err, "%s", t->label);
    }
    if (t->n_members == 1) {
        const struct facts *f = &t->member[0].facts;
        t->backend = filter_backend(&t->member[0]);
        t->handle = filter_handle(&t->member[0]);
        t->facts = *f;
        memset(&t->facts.negotiated, 0, sizeof(t->facts.negotiated));
        memset(&t->facts.warnings, 0, sizeof(t->facts.warnings));
        kv_copy(&t->facts.negotiated, &f->negotiated);
        kv_copy(&t->facts.warnings, &f->warnings);
        return 0;
    }
    struct stripe_member list[TARGET_MEMBERS];
    if (stripe_open(list, stripe_list(t, NULL, list), &t->handle, &t->facts, err) != 0) {
        t->handle = NULL;
        disassemble(t);
        return err_prefix(err, "%s", t->label);
    }
    t->backend = &backend_stripe;
    return 0;
}

int target_adjust(struct target *t, struct err *err) {
    for (unsigned i = 0; i < t->n_members; i++) {
        struct member *m = &t->member[i];
        if (m->handle && m->backend->adjust && m->backend->adjust(m->handle, &m->facts, err) != 0)
            return err_prefix(err, "%s", t->label);
    }
    return 0;
}

void target_close(struct target *t) {
    disassemble(t);
    for (unsigned i = 0; i < t->n_members && i < TARGET_MEMBERS; i++) member_close(&t->member[i]);
}

void target_free(struct target *t) {
    target_close(t);
    for (unsigned i = 0; i < t->n_members && i < TARGET_MEMBERS; i++) {
        struct member *m = &t->member[i];
        if (m->conf) {
            if (m->backend->options) option_free(m->backend->options, m->conf);
            if (m->backend->conf_free) m->backend->conf_free(m->conf);
            free(m->conf);
        }
        free(m->url);
        m->conf = NULL;
        m->url = NULL;
    }
    t->n_members = 0;
}
