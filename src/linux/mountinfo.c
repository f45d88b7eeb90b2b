/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/mountinfo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/savefile.h"

#define MOUNTINFO_MAX (16u << 20)

/* Copies the next blank-separated field of a line, decoding \040 and the like; NULL when the line has no more. */
static const char *field(const char *p, const char *end, char *out, size_t len) {
    while (p < end && *p == ' ') p++;
    if (p == end) return NULL;
    size_t n = 0;
    while (p < end && *p != ' ') {
        unsigned char c = (unsigned char)*p++;
        if (c == '\\' && end - p >= 3 && p[0] >= '0' && p[0] <= '3' && p[1] >= '0' && p[1] <= '7' && p[2] >= '0' &&
            p[2] <= '7') {
            c = (unsigned char)((p[0] - '0') << 6 | (p[1] - '0') << 3 | (p[2] - '0'));
            p += 3;
        }
        if (n + 1 < len) out[n++] = (char)c;
    }
    out[n] = 0;
    return p;
}

/* id parent major:minor root point options [optional fields] - type source super */
static bool parse_line(const char *p, const char *end, struct mount *m) {
    char word[64], device[32];
    if (!(p = field(p, end, word, sizeof word)) || !(p = field(p, end, word, sizeof word)) ||
        !(p = field(p, end, device, sizeof device)) || !(p = field(p, end, m->root, sizeof m->root)) ||
        !(p = field(p, end, m->point, sizeof m->point)) || !(p = field(p, end, m->options, sizeof m->options)))
        return false;
    if (sscanf(device, "%u:%u", &m->major, &m->minor) != 2) return false;
    do {
        if (!(p = field(p, end, word, sizeof word))) return false;
    } while (strcmp(word, "-"));
    if (!(p = field(p, end, m->type, sizeof m->type)) || !(p = field(p, end, m->source, sizeof m->source)))
        return false;
    if (!field(p, end, m->super, sizeof m->super)) m->super[0] = 0;
    return m->point[0] == '/';
}

bool mountinfo_next(const char **text, struct mount *m) {
    while (**text) {
        const char *line = *text;
        size_t len = strcspn(line, "\n");
        *text += len + (line[len] != 0);
        if (parse_line(line, line + len, m)) return true;
    }
    return false;
}

/* Is `path` the mount point or below it? Returns the length of the match plus one, 0 for no. */
static size_t covers(const char *point, const char *path) {
    size_t len = strlen(point);
    if (len == 1) return 2; /* "/" */
    return !strncmp(path, point, len) && (path[len] == '/' || !path[len]) ? len + 1 : 0;
}

bool mountinfo_find(const char *text, const char *path, dev_t dev, struct mount *m) {
    struct mount *one = malloc(sizeof *one);
    size_t best = 0;
    bool best_dev = false;
    if (!one) return false;
    while (mountinfo_next(&text, one)) {
        size_t len = covers(one->point, path);
        bool same = one->major == major(dev) && one->minor == minor(dev);
        if (!len || same < best_dev || (same == best_dev && len < best)) continue;
        best = len;
        best_dev = same;
        *m = *one;
    }
    free(one);
    return best > 0;
}

bool mountinfo_option(const char *options, const char *key, char *value, size_t len) {
    size_t key_len = strlen(key);
    for (const char *p = options; *p;) {
        size_t n = strcspn(p, ",");
        if (n >= key_len && !strncmp(p, key, key_len) && (n == key_len || p[key_len] == '=')) {
            const char *from = p + key_len + (n > key_len);
            snprintf(value, len, "%.*s", (int)(p + n - from), from);
            return true;
        }
        p += n + (p[n] == ',');
    }
    return false;
}

char *mountinfo_read(void) {
    struct err err;
    char *text;
    size_t len;
    return savefile_read("/proc/self/mountinfo", MOUNTINFO_MAX, &text, &len, &err) < 0 ? NULL : text;
}
