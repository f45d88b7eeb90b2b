/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/dirs.h"

#include <stdlib.h>

void dirs_of_patterns(const char *dirs[DIRS_MAX]) {
    const char *own = getenv("SAMEDISK_PATTERNS");
    unsigned n = 0;
    if (own && own[0]) dirs[n++] = own;
    dirs[n++] = PATTERN_DIR;
#ifdef PATTERN_SOURCE_DIR
    dirs[n++] = PATTERN_SOURCE_DIR;
#endif
    dirs[n] = NULL;
}
