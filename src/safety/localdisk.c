/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "safety/localdisk.h"

#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "safety/localdisk_table.h"

/* Maps over maps; more than any machine stacks. */
#define DEPTH_MAX 8

/* One question. */
struct ask {
    const struct localdisk *l;
    const struct facts *facts;
    char *why;
    size_t why_len;
};

static bool say_used(const struct ask *ask, const struct localdisk_disk *d, const char *how, const char *by) {
    snprintf(ask->why, ask->why_len, "/dev/%s is %s%s", d->name, how, by);
    return true;
}

static bool same_lun(const struct localdisk_disk *a, const struct localdisk_disk *b) {
    return identity_common(a->identity, a->n_identities, b->identity, b->n_identities);
}

static bool used_with_parts(const struct ask *ask, const struct localdisk_disk *d, bool strict, unsigned depth);

/* Holds `holder` the disk `d` for somebody? A multipath map of the same LUN does not: what counts is who uses the map.
 * That only goes for other roads to the target (strict is false); the device that would be written itself must be free.
 */
static bool held(const struct ask *ask, const struct localdisk_disk *d, const char *holder, bool strict,
                 unsigned depth) {
    const struct localdisk_disk *h = localdisk_by_name(ask->l, holder);

    if (strict || !h || !h->multipath || !same_lun(h, d) || depth >= DEPTH_MAX)
        return say_used(ask, d, "held by /dev/", holder);
    if (ask->facts->rdev && h->dev == ask->facts->rdev) return false; /* the target, asked about on its own */
    return used_with_parts(ask, h, false, depth + 1);
}

static bool used(const struct ask *ask, const struct localdisk_disk *d, bool strict, unsigned depth) {
    if (d->use[0]) return say_used(ask, d, d->use, "");
    for (unsigned i = 0; i < d->n_holders; i++)
        if (held(ask, d, d->holder[i], strict, depth)) return true;
    return false;
}

static bool used_with_parts(const struct ask *ask, const struct localdisk_disk *d, bool strict, unsigned depth) {
    const struct localdisk *l = ask->l;
    int index = (int)(d - l->disk);

    if (used(ask, d, strict, depth)) return true;
    for (size_t i = 0; i < l->n; i++)
        if (l->disk[i].parent == index && used(ask, &l->disk[i], strict, depth)) return true;
    return false;
}

/* The same partition by another road to the same LUN. */
static bool twin_partition_used(const struct ask *ask, const struct localdisk_disk *d) {
    const struct localdisk *l = ask->l;
    const struct localdisk_disk *whole = &l->disk[d->parent];

    for (size_t i = 0; i < l->n; i++) {
        const struct localdisk_disk *t = &l->disk[i];
        if (t->parent >= 0 && t->parent != d->parent && t->partition == d->partition &&
            same_lun(&l->disk[t->parent], whole) && used(ask, t, false, 0))
            return true;
        if (t->parent < 0 && t != whole && same_lun(t, whole) && used(ask, t, false, 0)) return true;
    }
    return false;
}

/* The device that would be written. Its siblings may be in use, what it is a part of may not. */
static bool device_used(const struct ask *ask, const struct localdisk_disk *d) {
    if (used_with_parts(ask, d, true, 0)) return true;
    if (d->parent < 0) return false;
    return used(ask, &ask->l->disk[d->parent], true, 0) || twin_partition_used(ask, d);
}

static void add_note(char *note, size_t note_len, const char *name) {
    size_t n = strlen(note);

    snprintf(note + n, note_len - n, "%s/dev/%s", n ? ", " : "", name);
}

/* Another road to the object: by what the target says of itself, or by what the kernel says of the target's own device.
 */
static bool same_object(const struct localdisk_disk *d, const struct localdisk_disk *own, const struct facts *facts) {
    if (identity_common(d->identity, d->n_identities, facts->identity, FACTS_IDENTITIES)) return true;
    return own && own->parent < 0 && same_lun(d, own);
}

bool localdisk_in_use(const struct localdisk *l, const struct facts *facts, char *why, size_t why_len, char *note,
                      size_t note_len) {
    struct ask ask = {l, facts, why, why_len};
    const struct localdisk_disk *own = facts->rdev ? localdisk_by_dev(l, facts->rdev) : NULL;

    why[0] = note[0] = '\0';
    for (size_t i = 0; i < l->n_swap_files; i++) {
        if (!identity_common(&l->swap_file[i], 1, facts->identity, FACTS_IDENTITIES)) continue;
        snprintf(why, why_len, "it is a swap file of this machine");
        return true;
    }
    if (facts->kind == OBJECT_DEVICE && !own) {
        snprintf(why, why_len, "sysfs does not list device %u:%u, so nobody can say whether it is in use",
                 major(facts->rdev), minor(facts->rdev));
        return true;
    }
    if (own && device_used(&ask, own)) return true;
    if (own && own->parent >= 0)
        return false; /* other roads to it were asked about; the whole's siblings do not matter */
    for (size_t i = 0; i < l->n; i++) {
        const struct localdisk_disk *d = &l->disk[i];
        if (d == own || d->parent >= 0 || !same_object(d, own, facts)) continue;
        if (used_with_parts(&ask, d, false, 0)) return true;
        add_note(note, note_len, d->name);
    }
    return false;
}
