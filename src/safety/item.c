/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "safety/item.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "safety/sameobject.h"
#include "safety/space.h"

/* Where both do not fit, the reason is cut: what to type must be whole. */
void item_refuse(struct item *it, const char *advice, const char *fmt, ...) {
    struct safety_decision *d = it->decision;
    va_list ap;

    if (item_is_refused(it)) return;
    d->verdict = SAFETY_REFUSED;
    size_t keep = *advice ? strlen(advice) + 1 : 0, size = sizeof(d->text) > keep ? sizeof(d->text) - keep : 0;
    int at = snprintf(d->text, size, "%s: refused: ", it->target->label);
    if (at < 0 || (size_t)at >= size) return;
    va_start(ap, fmt);
    int n = vsnprintf(d->text + at, size - (size_t)at, fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)(at + n) >= size) memcpy(d->text + size - 4, "...", 4);
    size_t end = strlen(d->text);
    if (*advice) snprintf(d->text + end, sizeof(d->text) - end, "\n%s", advice);
}

bool item_is_refused(const struct item *it) {
    return it->decision->verdict == SAFETY_REFUSED;
}

const char *item_where(const struct item *it, char *buf, size_t len) {
    const char *url = it->member->url, *identity = it->member->facts.identity[0];
    char safe_url[160], safe_identity[120];

    text_safe(safe_url, sizeof(safe_url), url, strlen(url));
    text_safe(safe_identity, sizeof(safe_identity), identity, strlen(identity));
    snprintf(buf, len, "%s%s%s%s", safe_url, *identity ? " (" : "", safe_identity, *identity ? ")" : "");
    return buf;
}

/* ---- where files may be ---- */

static bool is_below(const char *path, const char *top) {
    size_t n = strlen(top);

    return strncmp(path, top, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

/* Where the path leads, links followed; of a file that is not there, where its folder does. */
static bool resolve(const char *path, bool exists, char *real) {
    char folder[PATH_MAX];

    if (exists) return realpath(path, real) != NULL;
    snprintf(folder, sizeof(folder), "%s", path);
    char *slash = strrchr(folder, '/');
    if (!slash) return false;
    slash[slash == folder] = '\0';
    return realpath(folder, real) != NULL;
}

static void check_path(struct item *it) {
    static const char *const forbidden[] = {"/dev", "/proc", "/sys"};
    const struct facts *f = &it->member->facts;
    char real[PATH_MAX], where[300], *path = space_local_path(it->member->url);

    if (!path) return;
    item_where(it, where, sizeof(where));
    if (!resolve(path, f->exists, real)) {
        item_refuse(it, "", "%s: its folder: %s", where, strerror(errno));
    } else {
        for (size_t i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++)
            if (is_below(real, forbidden[i]))
                item_refuse(it, "", "%s lies under %s, where no file is written or created", where, forbidden[i]);
    }
    if (!f->exists && f->root_fs && strncmp(it->member->url, "file:", 5) != 0)
        item_refuse(it, "if it is meant, spell it out: file:/PATH",
                    "%s does not exist and would be created on the root file system", where);
    free(path);
}

/* ---- one member ---- */

static void check_size(struct item *it) {
    const struct facts *f = &it->member->facts;
    char have[32], need[32], where[300];

    if (f->size >= it->needed) return;
    content_size(have, sizeof(have), f->size);
    content_size(need, sizeof(need), it->needed);
    item_refuse(it, "a smaller size= (or offset=), or a larger object; nothing is grown",
                "%s has %s (%" PRIu64 " bytes), and the plan "
                "needs %s (%" PRIu64 " bytes)",
                item_where(it, where, sizeof(where)), have, f->size, need, it->needed);
}

static void check_users(struct item *it, const struct localdisk *disks, const char *disks_error) {
    const struct facts *f = &it->member->facts;
    char where[300], why[300];

    if (f->kind == OBJECT_NULL) return;
    if (!disks) {
        if (f->kind != OBJECT_FILE) item_refuse(it, "", "%s: %s", item_where(it, where, sizeof(where)), disks_error);
        return;
    }
    if (localdisk_in_use(disks, f, why, sizeof(why), it->note, sizeof(it->note)))
        item_refuse(it, "", "%s is in use on this machine: %s", item_where(it, where, sizeof(where)), why);
}

/* A server does not say whether the export is read-only or this user has no right. */
static void refuse_read_only(struct item *it, const char *where) {
    const struct facts *f = &it->member->facts;
    char who[160] = "";

    if (kv_find(&f->negotiated, "uid"))
        snprintf(who, sizeof(who), " for uid %" PRIu64 " gid %" PRIu64 " (is the export rw? root_squash? see uid= and gid=)",
                 kv_get_uint(&f->negotiated, "uid", 0), kv_get_uint(&f->negotiated, "gid", 0));
    item_refuse(it, "", "%s cannot be written: it is read-only%s", where, who);
}

void item_check(struct item *it, const struct localdisk *disks, const char *disks_error) {
    const struct facts *f = &it->member->facts;
    char where[300], safe[300];

    item_where(it, where, sizeof(where));
    if (!f->exists && !it->wish->writes)
        item_refuse(it, "", "%s does not exist, and nothing in the plan writes: --prepare fill creates and fills it first", where);
    if (it->wish->writes && f->in_use[0])
        item_refuse(it, "", "%s is in use: %s", where, text_safe(safe, sizeof(safe), f->in_use, strlen(f->in_use)));
    if (f->exists) check_size(it);
    if (!it->wish->writes) return;
    if (f->read_only) refuse_read_only(it, where);
    if (f->kind == OBJECT_FILE || !f->exists) check_path(it);
    if (f->exists) check_users(it, disks, disks_error);
}

/* ---- two members ---- */

static bool is_block_view(const struct facts *f) {
    return f->kind == OBJECT_LUN || f->kind == OBJECT_DEVICE;
}

void item_check_pair(struct item *later, const struct item *earlier, const struct sameness_pair *pair) {
    const struct facts *a = &earlier->member->facts, *b = &later->member->facts;
    char where[300], other[300];
    bool same = pair->verdict == SAMENESS_ONE || pair->verdict == SAMENESS_SHARED;

    if (a->kind == OBJECT_NULL || b->kind == OBJECT_NULL || a->exists != b->exists) return;
    if (!a->exists) same = sameobject_same_road(earlier->member, later->member);
    item_where(later, where, sizeof(where));
    item_where(earlier, other, sizeof(other));
    if (later->target == earlier->target && pair->verdict == SAMENESS_UNCONFIRMED)
        item_refuse(later, "", "%s and %s bear one identity, and nothing tells them apart (%s): they may be one object, and "
                    "it can be a member only once", where, other, pair->how);
    if (!same) return;
    if (later->target == earlier->target)
        item_refuse(later, "", "%s and %s are one object, and it can be a member only once", where, other);
    if (!later->wish->writes || !a->exists) return;
    if (is_block_view(a) != is_block_view(b))
        item_refuse(later, "leave one of them out, or let the plan only read",
                    "%s is the same object as %s of target %s; a file and a block view of one object never both write",
                    where, other, earlier->target->label);
    if (a->rdev && a->rdev == b->rdev)
        item_refuse(later, "leave one of them out, or let the plan only read",
                    "%s is the device of target %s, which opens it exclusively to write", where,
                    earlier->target->label);
}
