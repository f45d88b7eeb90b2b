/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/nfs/nfs_export.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define COMPONENT_MAX 255
#define SEEN_MAX 1000 /* so many before it are looked at for the same one */

int nfsbe_path_normal(const char *in, char out[NFS_PATH_MAX], struct err *err) {
    size_t n = 0;
    char safe[300];
    const char *p = in;
    if (!in || strlen(in) >= NFS_PATH_MAX) return err_set(err, STATUS_USAGE, "the path is missing or too long");
    while (*p) {
        size_t len = strcspn(p, "/");
        if (len == 2 && p[0] == '.' && p[1] == '.')
            return err_set(err, STATUS_USAGE, "the path holds `..`: write it out from the export on");
        if (len > COMPONENT_MAX)
            return err_set(err, STATUS_USAGE, "`%s`: a name has at most %d bytes", text_safe(safe, sizeof safe, p, len),
                           COMPONENT_MAX);
        if (len > 0 && !(len == 1 && p[0] == '.')) {
            out[n++] = '/';
            memcpy(out + n, p, len);
            n += len;
        }
        p += len;
        if (*p == '/') p++;
    }
    out[n] = '\0';
    if (n == 0) return err_set(err, STATUS_USAGE, "no path: nfs://HOST/EXPORT/PATH names a file below an export");
    if (in[strlen(in) - 1] == '/')
        return err_set(err, STATUS_USAGE, "`%s/` names a directory: name a file in it",
                       text_safe(safe, sizeof safe, out, n));
    return 0;
}

/* Length of `dir` without '/' at both ends. */
static size_t trimmed(const char **dir) {
    while (**dir == '/') (*dir)++;
    size_t n = strlen(*dir);
    while (n > 0 && (*dir)[n - 1] == '/') n--;
    return n;
}

int nfsbe_export_match(const struct nfsbe_exports *exports, const char *path, const char **rest) {
    int best = -1;
    size_t best_len = 0;
    const char *p = path + 1;
    for (size_t i = 0; i < exports->n; i++) {
        const char *dir = exports->dir[i];
        if (*dir != '/') continue; /* no path: it cannot be said what it stands for */
        size_t n = trimmed(&dir);
        if (best >= 0 && n <= best_len) continue;
        if (n > 0 && (strncmp(p, dir, n) != 0 || (p[n] != '/' && p[n] != '\0'))) continue;
        best = (int)i;
        best_len = n;
    }
    if (best < 0) return -1;
    *rest = p + best_len;
    if (**rest == '/') (*rest)++;
    return best;
}

int nfsbe_exports_add(struct nfsbe_exports *exports, const char *dir) {
    if (exports->n >= NFS_EXPORTS_MAX) return -1;
    for (size_t i = 0; i < exports->n && i < SEEN_MAX; i++)
        if (strcmp(exports->dir[exports->n - 1 - i], dir) == 0) return 0;
    if ((exports->n & (exports->n - 1)) == 0) { /* full at every power of two */
        char **grown = realloc(exports->dir, (exports->n ? exports->n * 2 : 1) * sizeof *grown);
        if (!grown) return -1;
        exports->dir = grown;
    }
    exports->dir[exports->n] = strdup(dir);
    if (!exports->dir[exports->n]) return -1;
    exports->n++;
    return 0;
}

void nfsbe_exports_free(struct nfsbe_exports *exports) {
    for (size_t i = 0; i < exports->n; i++) free(exports->dir[i]);
    free(exports->dir);
    exports->dir = NULL;
    exports->n = 0;
}

const char *nfsbe_exports_words(const struct nfsbe_exports *exports, char *buf, size_t len) {
    size_t used = 0, i;
    char safe[200];
    snprintf(buf, len, "%s", exports->n ? "" : "none");
    for (i = 0; i < exports->n; i++) {
        text_safe(safe, sizeof safe, exports->dir[i], strlen(exports->dir[i]));
        if (used + strlen(safe) + 24 > len) break; /* room for ", " and the words below */
        used += (size_t)snprintf(buf + used, len - used, "%s%s", i ? ", " : "", safe);
    }
    if (i < exports->n) snprintf(buf + used, len - used, "%s%zu more", i ? " and " : "", exports->n - i);
    return buf;
}
