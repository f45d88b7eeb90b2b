/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/overlay.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "linux/mountinfo.h"

struct search {
    const char *inside; /* the path from the overlay's root */
    struct overlay_file *out;
    unsigned n;
};

static void look(struct search *s, const char *layer, size_t len, bool upper) {
    char path[2 * PATH_MAX];
    struct stat st;
    if (!len || s->n == OVERLAY_LAYERS_MAX) return;
    snprintf(path, sizeof path, "%.*s%s", (int)len, layer, s->inside);
    if (stat(path, &st) == 0 && S_ISREG(st.st_mode))
        s->out[s->n++] = (struct overlay_file){.dev = st.st_dev, .ino = st.st_ino, .upper = upper};
}

/* "lowerdir=A:B:C", of newer kernels "lowerdir+=A,lowerdir+=B"; data-only layers stand behind an empty one. */
static void look_lower(struct search *s, const char *options) {
    for (const char *p = options; *p;) {
        size_t n = strcspn(p, ",");
        size_t key = !strncmp(p, "lowerdir=", 9) ? 9 : !strncmp(p, "lowerdir+=", 10) ? 10 : 0;
        for (const char *at = p + key, *end = p + n; key && at < end;) {
            size_t len = strcspn(at, ":");
            if (len > (size_t)(end - at)) len = (size_t)(end - at);
            look(s, at, len, false);
            at += len + 1;
        }
        p += n + (p[n] == ',');
    }
}

/* `path` seen from the file system's root: it may be mounted in part. */
static bool inside(const struct mount *m, const char *path, char *out, size_t len) {
    size_t point = strcmp(m->point, "/") ? strlen(m->point) : 0;
    const char *root = strcmp(m->root, "/") ? m->root : "";
    return (size_t)snprintf(out, len, "%s%s", root, path + point) < len;
}

unsigned overlay_files(const char *mountinfo, const char *path, dev_t dev, struct overlay_file out[OVERLAY_LAYERS_MAX]) {
    struct mount *m = malloc(sizeof *m);
    char rest[2 * PATH_MAX], upper[PATH_MAX];
    struct search s = {rest, out, 0};
    if (m && mountinfo && mountinfo_find(mountinfo, path, dev, m) && !strcmp(m->type, "overlay") &&
        inside(m, path, rest, sizeof rest)) {
        if (mountinfo_option(m->super, "upperdir", upper, sizeof upper)) look(&s, upper, strlen(upper), true);
        look_lower(&s, m->super);
    }
    free(m);
    return s.n;
}
