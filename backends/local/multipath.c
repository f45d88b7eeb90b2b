/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/local/multipath.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/dm-ioctl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

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

bool multipath_table(const char *params, struct kv *out) {
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

/* ---- asking the device mapper ---- */

/* 0, or a positive errno. On success the first line's parameters stand in *params, within `io`. */
static int ask(const char *control, dev_t dev, struct dm_ioctl *io, const char **params) {
    int fd = open(control, O_RDWR | O_CLOEXEC);
    if (fd < 0) return errno;
    *io = (struct dm_ioctl){.version = {DM_VERSION_MAJOR, 0, 0}, .data_size = TABLE_MAX, .data_start = sizeof *io,
                            .flags = DM_STATUS_TABLE_FLAG, .dev = dev};
    int error = ioctl(fd, DM_TABLE_STATUS, io) < 0 ? errno : 0;
    close(fd);
    if (error) return error;
    const struct dm_target_spec *line = (const void *)((const char *)io + io->data_start);
    if (!io->target_count || (io->flags & DM_BUFFER_FULL_FLAG) || strncmp(line->target_type, "multipath", 10))
        return ENODATA;
    *params = (const char *)(line + 1);
    return 0;
}

void multipath_facts(const char *control, dev_t dev, struct kv *out) {
    const struct kv_item *uuid = kv_find(out, "dm_uuid");
    const char *params = NULL;
    if (!uuid || uuid->type != KV_TEXT || strncmp(uuid->text, "mpath-", 6)) return;
    struct dm_ioctl *io = calloc(1, TABLE_MAX);
    int error = io ? ask(control, dev, io, &params) : ENOMEM;
    if (error)
        kv_text(out, "multipath_policy", "unknown: the map's table could not be read from %s: %s", control,
                strerrordesc_np(error));
    else if (!multipath_table(params, out))
        kv_text(out, "multipath_policy", "unknown: the map's table has a form that samedisk does not know");
    free(io);
}
