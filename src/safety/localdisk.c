/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "safety/localdisk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "safety/localdisk_table.h"

/* Maps over maps; more than any machine stacks. */
#define DEPTH_MAX 8

/* One question. */
struct ask {
    const struct localdisk *l;
    const struct facts *facts;
    bool *chain; /* of each disk: does the target stand on it, or is it the target? */
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

static bool in_chain(const struct ask *ask, const struct localdisk_disk *d) {
    return ask->chain[d - ask->l->disk];
}

static bool stands_on(const struct localdisk *l, const struct localdisk_disk *upper, const struct localdisk_disk *d) {
    for (unsigned i = 0; i < upper->n_under; i++)
        if (upper->under[i] == d - l->disk) return true;
    return false;
}

/* Unused as it may be: who attached it means to use it. */
static bool behind_loop(const struct ask *ask, const struct localdisk_disk *d) {
    const struct localdisk *l = ask->l;

    for (size_t i = 0; i < l->n; i++)
        if (l->disk[i].loop && !in_chain(ask, &l->disk[i]) && stands_on(l, &l->disk[i], d))
            return say_used(ask, d, "behind loop device /dev/", l->disk[i].name);
    return false;
}

static bool used(const struct ask *ask, const struct localdisk_disk *d, bool strict, unsigned depth) {
    if (d->use[0]) return say_used(ask, d, d->use, "");
    if (behind_loop(ask, d)) return true;
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

/* Another program's exclusive open, of which sysfs knows nothing: zfs, a file system's journal, a mount in another mount
 * namespace. Asked of what a loop device stands on and of other roads to the object: a target's own device is opened
 * exclusively by its backend, which finds out itself. */
static bool opened_exclusively(const struct ask *ask, const struct localdisk_disk *d) {
    char node[80];
    struct stat st;

    snprintf(node, sizeof(node), "/dev/%s", d->name);
    if (stat(node, &st) != 0 || !S_ISBLK(st.st_mode) || st.st_rdev != d->dev) return false;
    int fd = open(node, O_RDONLY | O_EXCL | O_NONBLOCK | O_CLOEXEC), error = errno;
    if (fd >= 0) close(fd);
    return fd < 0 && error == EBUSY && say_used(ask, d, "opened exclusively by another program", "");
}

/* The same partition by another road to the same LUN. */
static bool twin_partition_used(const struct ask *ask, const struct localdisk_disk *d) {
    const struct localdisk *l = ask->l;
    const struct localdisk_disk *whole = &l->disk[d->parent];

    for (size_t i = 0; i < l->n; i++) {
        const struct localdisk_disk *t = &l->disk[i];
        if (t->parent >= 0 && t->parent != d->parent && t->partition == d->partition &&
            same_lun(&l->disk[t->parent], whole) && (used(ask, t, false, 0) || opened_exclusively(ask, t)))
            return true;
        if (t->parent < 0 && t != whole && same_lun(t, whole) && used(ask, t, false, 0)) return true;
    }
    return false;
}

/* ---- what the target stands on ---- */

/* Volumes of one volume manager, or partitions that kpartx made, have parts of their own of what they stand on. */
static bool keep_apart(const struct localdisk_disk *a, const struct localdisk_disk *b) {
    size_t n = strncmp(a->dm_uuid, "LVM-", 4) == 0 ? 4 : strncmp(a->dm_uuid, "part", 4) == 0 ? strcspn(a->dm_uuid, "-") : 0;

    if (n == 4 && a->dm_uuid[0] == 'L') return strncmp(b->dm_uuid, "LVM-", 4) == 0;
    return n > 4 && strncmp(b->dm_uuid, "part", 4) == 0 && strncmp(a->dm_uuid, b->dm_uuid, n + 1) != 0;
}

/* Something that stands on the same device as `own` does, and may have the same blocks: does anybody use it? */
static bool busy(const struct ask *ask, const struct localdisk_disk *d, unsigned depth) {
    const struct localdisk *l = ask->l;
    int index = (int)(d - l->disk);

    if (d->use[0]) return say_used(ask, d, d->use, "");
    if (behind_loop(ask, d)) return true;
    if (depth >= DEPTH_MAX) return say_used(ask, d, "below too many others", "");
    for (size_t i = 0; i < l->n; i++)
        if ((l->disk[i].parent == index || stands_on(l, &l->disk[i], d)) && !in_chain(ask, &l->disk[i]) &&
            busy(ask, &l->disk[i], depth + 1))
            return true;
    return false;
}

/* `d` is below `own`: used by others than those between the two? */
static bool shared(const struct ask *ask, const struct localdisk_disk *d, const struct localdisk_disk *own) {
    const struct localdisk *l = ask->l;

    if (d->use[0]) return say_used(ask, d, d->use, "");
    if (behind_loop(ask, d)) return true;
    for (size_t i = 0; i < l->n; i++)
        if (stands_on(l, &l->disk[i], d) && !in_chain(ask, &l->disk[i]) && !keep_apart(own, &l->disk[i]) &&
            busy(ask, &l->disk[i], 0))
            return true;
    return false;
}

static bool opened_here(dev_t dev) {
    char path[300];
    struct stat st;
    bool found = false;
    DIR *dir = opendir("/proc/self/fd");
    for (struct dirent *e; dir && !found && (e = readdir(dir));) {
        snprintf(path, sizeof(path), "/proc/self/fd/%s", e->d_name);
        found = stat(path, &st) == 0 && S_ISBLK(st.st_mode) && st.st_rdev == dev;
    }
    if (dir) closedir(dir);
    return found;
}

/* What a map holds is opened exclusively by it; then it counts who uses the map. A disk may be a target of this plan, too,
 * and then this process opens it exclusively itself; two loop devices on one file are looked at before either is. */
static bool road_used(const struct ask *ask, const struct localdisk_disk *d) {
    if (used_with_parts(ask, d, false, 0)) return true;
    return !d->n_holders && (d->loop || !opened_here(d->dev)) && opened_exclusively(ask, d);
}

static bool other_roads_used(const struct ask *ask, const struct localdisk_disk *d) {
    const struct localdisk *l = ask->l;

    for (size_t i = 0; i < l->n; i++)
        if (&l->disk[i] != d && l->disk[i].parent < 0 && !in_chain(ask, &l->disk[i]) && same_lun(&l->disk[i], d) &&
            road_used(ask, &l->disk[i]))
            return true;
    return false;
}

static bool below_used(const struct ask *ask, const struct localdisk_disk *own, unsigned depth);

/* A loop device has all the blocks of what it stands on, so what is there must be as free as a target itself. */
static bool below_loop_used(const struct ask *ask, const struct localdisk_disk *d, unsigned depth) {
    if (used_with_parts(ask, d, true, 0) || opened_exclusively(ask, d)) return true;
    if (d->parent < 0 && other_roads_used(ask, d)) return true;
    if (d->parent >= 0 && twin_partition_used(ask, d)) return true;
    return below_used(ask, d, depth);
}

static bool below_held_used(const struct ask *ask, const struct localdisk_disk *d, const struct localdisk_disk *own,
                            unsigned depth) {
    const struct localdisk *l = ask->l;
    int index = (int)(d - l->disk);

    if (shared(ask, d, own)) return true;
    for (size_t i = 0; i < l->n; i++)
        if (l->disk[i].parent == index && shared(ask, &l->disk[i], own)) return true;
    return below_used(ask, d, depth);
}

static bool below_used(const struct ask *ask, const struct localdisk_disk *own, unsigned depth) {
    const struct localdisk *l = ask->l;

    ask->chain[own - l->disk] = true;
    if (own->unknown_under) return say_used(ask, own, "on something that nobody can name", "");
    if (depth >= DEPTH_MAX) return say_used(ask, own, "above too many others", "");
    if (own->parent >= 0) { /* its siblings may be in use, what it is a part of may not */
        const struct localdisk_disk *whole = &l->disk[own->parent];
        ask->chain[own->parent] = true;
        if (used(ask, whole, true, 0) || below_used(ask, whole, depth + 1)) return true;
    }
    for (unsigned i = 0; i < own->n_under; i++) ask->chain[own->under[i]] = true;
    for (unsigned i = 0; i < own->n_under; i++) {
        const struct localdisk_disk *d = &l->disk[own->under[i]];
        if (own->loop ? below_loop_used(ask, d, depth + 1) : below_held_used(ask, d, own, depth + 1)) return true;
    }
    return false;
}

/* The device that would be written. */
static bool device_used(const struct ask *ask, const struct localdisk_disk *d) {
    ask->chain[d - ask->l->disk] = true;
    return used_with_parts(ask, d, true, 0) || (d->parent >= 0 && twin_partition_used(ask, d)) || below_used(ask, d, 0);
}

/* ---- the question ---- */

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

/* A file behind a loop device that is below the target counts as well. */
static bool file_used(const struct ask *ask) {
    const struct localdisk *l = ask->l;

    for (size_t i = 0; i < l->n_files; i++) {
        bool same = identity_common(&l->file[i].identity, 1, ask->facts->identity, FACTS_IDENTITIES);
        for (size_t k = 0; k < l->n && !same; k++)
            same = ask->chain[k] && identity_common(&l->file[i].identity, 1, l->disk[k].identity, l->disk[k].n_identities);
        if (!same) continue;
        snprintf(ask->why, ask->why_len, "it is %s", l->file[i].use);
        return true;
    }
    return false;
}

static bool ask_all(const struct ask *ask, char *note, size_t note_len) {
    const struct localdisk *l = ask->l;
    const struct facts *facts = ask->facts;
    const struct localdisk_disk *own = facts->rdev ? localdisk_by_dev(l, facts->rdev) : NULL;

    if (facts->kind == OBJECT_DEVICE && !own) {
        snprintf(ask->why, ask->why_len, "sysfs does not list device %u:%u, so nobody can say whether it is in use",
                 major(facts->rdev), minor(facts->rdev));
        return true;
    }
    if (own && device_used(ask, own)) return true;
    if (file_used(ask)) return true;
    /* A loop device below the target may have a twin: another one on the same file. */
    for (size_t i = 0; i < l->n; i++)
        if (ask->chain[i] && l->disk[i].loop && !(own && (&l->disk[i] == own || own->parent == (int)i)) &&
            other_roads_used(ask, &l->disk[i]))
            return true;
    if (own && own->parent >= 0)
        return false; /* other roads to it were asked about; the whole's siblings do not matter */
    for (size_t i = 0; i < l->n; i++) {
        const struct localdisk_disk *d = &l->disk[i];
        if (d == own || d->parent >= 0 || !same_object(d, own, facts)) continue;
        if (road_used(ask, d)) return true;
        add_note(note, note_len, d->name);
    }
    return false;
}

bool localdisk_in_use(const struct localdisk *l, const struct facts *facts, char *why, size_t why_len, char *note,
                      size_t note_len) {
    struct ask ask = {l, facts, calloc(l->n + 1, sizeof(bool)), why, why_len};

    why[0] = note[0] = '\0';
    if (!ask.chain) {
        snprintf(why, why_len, "no memory to ask who uses it");
        return true;
    }
    bool in_use = ask_all(&ask, note, note_len);
    free(ask.chain);
    return in_use;
}

bool localdisk_file_used(const char *path, char *why, size_t why_len) {
    struct facts facts = {.kind = OBJECT_FILE};
    struct localdisk *l;
    struct stat st;
    struct err ignored;
    char note[160];

    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode) || localdisk_scan("/sys", "/proc", &l, &ignored) != 0) return false;
    snprintf(facts.identity[0], sizeof(facts.identity[0]), "file:%u:%u:%ju", major(st.st_dev), minor(st.st_dev),
             (uintmax_t)st.st_ino);
    bool in_use = localdisk_in_use(l, &facts, why, why_len, note, sizeof(note));
    if (!in_use && note[0]) snprintf(why, why_len, "it is behind %s", note);
    localdisk_free(l);
    return in_use || note[0];
}
