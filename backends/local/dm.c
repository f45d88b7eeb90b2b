/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/local/dm.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/dm-ioctl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "backends/local/blockdev.h"
#include "base/text.h"

#define TABLE_MAX 65536u
#define WORDS_MAX 256u  /* of one count: features, arguments, groups, paths */

/* ---- the table's words ---- */

struct words {
    const char *at;
    bool bad;
};

static void word(struct words *w, char *buf, size_t len) {
    w->at += strspn(w->at, " ");
    size_t n = strcspn(w->at, " ");
    if (!n || n >= len) w->bad = true;
    snprintf(buf, len, "%.*s", (int)(n < len ? n : len - 1), w->at);
    w->at += n;
}

static unsigned count(struct words *w) {
    char text[16], *end;
    word(w, text, sizeof text);
    unsigned long n = strtoul(text, &end, 10);
    if (!*text || *end || n > WORDS_MAX) w->bad = true;
    return w->bad ? 0 : (unsigned)n;
}

static void append(char *buf, size_t len, const char *between, const char *text) {
    size_t at = strlen(buf);
    snprintf(buf + at, len - at, "%s%s", at ? between : "", text);
}

/* As many words as the count before them says, joined. */
static void list(struct words *w, char *buf, size_t len) {
    char one[128];
    *buf = 0;
    for (unsigned n = count(w); n && !w->bad; n--) {
        word(w, one, sizeof one);
        append(buf, len, " ", one);
    }
}

/* SELECTOR N ARGUMENTS... PATHS ARGUMENTS-PER-PATH (DEVICE ARGUMENTS...)... */
static void group(struct words *w, char *selectors, size_t selectors_len, char *groups, size_t groups_len) {
    char selector[64], arguments[256], device[64], skip[64];
    word(w, selector, sizeof selector);
    list(w, arguments, sizeof arguments);
    unsigned paths = count(w), extra = count(w);
    if (!strstr(selectors, selector)) append(selectors, selectors_len, ", ", selector);
    for (unsigned p = 0; p < paths && !w->bad; p++) {
        word(w, device, sizeof device);
        append(groups, groups_len, p ? " " : "; ", device);
        for (unsigned i = 0; i < extra && !w->bad; i++) word(w, skip, sizeof skip);
    }
}

bool dm_multipath_table(const char *params, struct kv *out) {
    struct words w = {.at = params};
    char features[512], handler[256], selectors[256] = "", groups[1024] = "", next[16], safe[1100];
    list(&w, features, sizeof features);
    list(&w, handler, sizeof handler);
    unsigned n = count(&w);
    word(&w, next, sizeof next); /* the group to try first */
    for (unsigned i = 0; i < n && !w.bad; i++) group(&w, selectors, sizeof selectors, groups, sizeof groups);
    if (w.bad || w.at[strspn(w.at, " ")]) return false;
    kv_text(out, "multipath_policy", "%s", text_safe(safe, sizeof safe, selectors, strlen(selectors)));
    kv_uint(out, "multipath_groups", n);
    kv_text(out, "multipath_group_paths", "%s", text_safe(safe, sizeof safe, groups, strlen(groups)));
    if (*handler) kv_text(out, "multipath_handler", "%s", text_safe(safe, sizeof safe, handler, strlen(handler)));
    if (*features) kv_text(out, "multipath_features", "%s", text_safe(safe, sizeof safe, features, strlen(features)));
    return true;
}

/* ---- the status's words ---- */

struct map_status {
    char text[1024];
    unsigned failed, paths, active;
};

/* DEVICE A|F FAILURES ARGUMENTS... */
static void path_status(struct words *w, const char *sys, unsigned extra, bool first, struct map_status *s) {
    char device[64], state[8], failures[16], name[64] = "", one[160], skip[64];
    unsigned maj, min;
    word(w, device, sizeof device);
    word(w, state, sizeof state);
    word(w, failures, sizeof failures);
    for (unsigned i = 0; i < extra && !w->bad; i++) word(w, skip, sizeof skip);
    if (w->bad) return;
    if (sscanf(device, "%u:%u", &maj, &min) == 2) blockdev_name(sys, makedev(maj, min), name, sizeof name);
    bool failed = !strcmp(state, "F");
    s->failed += failed;
    s->paths++;
    snprintf(one, sizeof one, "%s%s%s%s%s", *name ? name : device, failed ? " failed" : " ok",
             strcmp(failures, "0") ? " (" : "", strcmp(failures, "0") ? failures : "",
             strcmp(failures, "0") ? " failures)" : "");
    append(s->text, sizeof s->text, first ? " " : ", ", one);
}

/* A|E|D N SELECTOR-STATUS... PATHS ARGUMENTS-PER-PATH (PATH)... */
static void group_status(struct words *w, const char *sys, unsigned number, struct map_status *s) {
    char state[8], selector[256], head[48];
    word(w, state, sizeof state);
    list(w, selector, sizeof selector);
    unsigned paths = count(w), extra = count(w);
    if (*state == 'A') s->active = number;
    snprintf(head, sizeof head, "group %u %s:", number,
             *state == 'A' ? "active" : *state == 'D' ? "disabled" : *state == 'E' ? "enabled" : "in an unknown state");
    append(s->text, sizeof s->text, "; ", head);
    for (unsigned p = 0; p < paths && !w->bad; p++) path_status(w, sys, extra, p == 0, s);
}

bool dm_multipath_status(const char *sys, const char *params, struct kv *out) {
    struct words w = {.at = params};
    struct map_status s = {.text = ""};
    char skip[256], next[16], safe[1100];
    list(&w, skip, sizeof skip); /* is I/O queued, path initialisations */
    list(&w, skip, sizeof skip); /* the handler's */
    unsigned n = count(&w);
    word(&w, next, sizeof next);
    for (unsigned i = 1; i <= n && !w.bad; i++) group_status(&w, sys, i, &s);
    if (w.bad || w.at[strspn(w.at, " ")]) return false;
    kv_text(out, "multipath_status", "%s", text_safe(safe, sizeof safe, s.text, strlen(s.text)));
    if (s.active) kv_uint(out, "multipath_active_group", s.active);
    kv_uint(out, "paths_failed", s.failed);
    return true;
}

/* ---- asking the device mapper ---- */

/* Table or (flags 0) status of every target into `io`, TABLE_MAX bytes. 0, or a positive errno. */
static int ask(const char *control, dev_t dev, unsigned flags, struct dm_ioctl *io) {
    int fd = open(control, O_RDWR | O_CLOEXEC);
    if (fd < 0) return errno;
    memset(io, 0, TABLE_MAX);
    *io = (struct dm_ioctl){.version = {DM_VERSION_MAJOR, 0, 0}, .data_size = TABLE_MAX, .data_start = sizeof *io,
                            .flags = flags, .dev = dev};
    int error = ioctl(fd, DM_TABLE_STATUS, io) < 0 ? errno : 0;
    close(fd);
    return error || (io->target_count && !(io->flags & DM_BUFFER_FULL_FLAG)) ? error : ENODATA;
}

/* Target `i` of what came, NULL beyond the end. Each says where the next one begins, counted from the first. */
static const struct dm_target_spec *target(const struct dm_ioctl *io, unsigned i) {
    size_t first = io->data_start, at = first;
    for (; i < io->target_count; i--) {
        if (at + sizeof(struct dm_target_spec) >= TABLE_MAX) return NULL;
        const struct dm_target_spec *t = (const void *)((const char *)io + at);
        if (!i) return t;
        if (first + t->next <= at) return NULL;
        at = first + t->next;
    }
    return NULL;
}

/* "linear, striped": each kind once. */
static void kinds_of(const struct dm_ioctl *io, char *buf, size_t len) {
    const struct dm_target_spec *t;
    char kind[DM_MAX_TYPE_NAME + 1];
    *buf = 0;
    for (unsigned i = 0; (t = target(io, i)); i++) {
        snprintf(kind, sizeof kind, "%.*s", DM_MAX_TYPE_NAME, t->target_type);
        if (!strstr(buf, kind)) append(buf, len, ", ", kind);
    }
}

/* By the name that the program gave it which made it, where the device mapper cannot be asked. */
static const char *kind_by_uuid(const char *uuid) {
    static const struct { const char *begin, *kind; } known[] = {
        {"mpath-", "multipath"}, {"LVM-", "LVM volume"}, {"CRYPT-", "crypt"}, {"part", "partition"}
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strncmp(uuid, known[i].begin, strlen(known[i].begin))) return known[i].kind;
    return "";
}

static const char *text_of(const struct kv *kv, const char *key) {
    const struct kv_item *item = kv_find(kv, key);
    return item && item->type == KV_TEXT ? item->text : "";
}

/* "block device dm-0 ..." or "iSCSI device dm-0 ..." becomes "dm-crypt on iSCSI, device dm-0 ...". */
static void name_kind(const char *kinds, struct facts *f) {
    char old[sizeof f->summary];
    const char *transport = text_of(&f->negotiated, "transport"), *rest = strstr(f->summary, " device ");
    if (!*kinds || !rest) return;
    snprintf(old, sizeof old, "%s", rest + 1);
    snprintf(f->summary, sizeof f->summary, "dm-%.60s%s%.40s %.160s", kinds, *transport ? " on " : "", transport, old);
}

static void multipath_facts(const char *sys, const char *control, dev_t dev, struct dm_ioctl *io, int error,
                            struct facts *f) {
    struct kv *out = &f->negotiated;
    const struct dm_target_spec *t = error ? NULL : target(io, 0);
    if (error)
        kv_text(out, "multipath_policy", "unknown: the map's table could not be read from %s: %s", control,
                strerrordesc_np(error));
    else if (!t || !dm_multipath_table((const char *)(t + 1), out))
        kv_text(out, "multipath_policy", "unknown: the map's table has a form that samedisk does not know");
    if (error || ask(control, dev, 0, io) != 0 || !(t = target(io, 0))) return;
    if (!dm_multipath_status(sys, (const char *)(t + 1), out))
        kv_text(out, "multipath_status", "unknown: the map's status has a form that samedisk does not know");
    uint64_t failed = kv_get_uint(out, "paths_failed", 0);
    if (failed)
        kv_text(&f->warnings, "paths-failed", "%llu of the map's paths failed (%s): what is measured is what is left of it",
                (unsigned long long)failed, text_of(out, "multipath_status"));
}

void dm_facts(const char *sys, const char *control, dev_t dev, struct facts *f) {
    const char *uuid = text_of(&f->negotiated, "dm_uuid");
    char kinds[128];
    if (!kv_find(&f->negotiated, "dm_name") && !*uuid) return;
    struct dm_ioctl *io = malloc(TABLE_MAX);
    int error = io ? ask(control, dev, DM_STATUS_TABLE_FLAG, io) : ENOMEM;
    snprintf(kinds, sizeof kinds, "%s", kind_by_uuid(uuid));
    if (!error) kinds_of(io, kinds, sizeof kinds);
    if (*kinds) kv_text(&f->negotiated, "dm_targets", "%s", kinds);
    name_kind(kinds, f);
    /* Whoever made the map by hand gave it no such name. */
    if (!strncmp(uuid, "mpath-", 6) || !strcmp(kinds, "multipath")) multipath_facts(sys, control, dev, io, error, f);
    free(io);
}
