/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/local/path.h"

#include <stddef.h>
#include <string.h>

bool path_top_is(const char *path, const char *top) {
    const char *first = NULL;
    size_t first_len = 0, depth = 0;
    while (*path) {
        size_t len = strcspn(path, "/");
        if (len == 2 && !strncmp(path, "..", 2)) {
            if (depth) depth--;
        } else if (len && !(len == 1 && *path == '.')) {
            if (depth++ == 0) {
                first = path;
                first_len = len;
            }
        }
        path += len;
        if (*path) path++;
    }
    return depth && first_len == strlen(top) && !strncmp(first, top, first_len);
}

bool path_is_system(const char *path) {
    return path_top_is(path, "dev") || path_top_is(path, "proc") || path_top_is(path, "sys");
}
