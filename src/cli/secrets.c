/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/secrets.h"

#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "base/url.h"

/* The kernel's switch also covers core_pattern pipes, which do not care for the size limit. */
static void forbid_cores(void) {
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

char **secrets_take(int argc, char **argv) {
    bool any = false;
    char **copy = calloc((size_t)argc + 1, sizeof *copy);
    for (int i = 0; copy && i < argc; i++) {
        copy[i] = strdup(argv[i]);
        if (!copy[i]) {
            secrets_free(i, copy);
            return NULL;
        }
        url_scrub(argv[i]);
        if (strcmp(copy[i], argv[i]) != 0) any = true;
    }
    if (any) forbid_cores();
    return copy;
}

void secrets_free(int argc, char **copy) {
    for (int i = 0; copy && i < argc; i++) {
        explicit_bzero(copy[i], strlen(copy[i]));
        free(copy[i]);
    }
    free(copy);
}
