/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/net/stuck.h"

#include <stdio.h>
#include <unistd.h>

#include "base/err.h"

void stuck_in(const char *library) {
    char text[400];
    int n = snprintf(text, sizeof text,
                     "samedisk: %s does not come back from a call, and its connection was shut down %d s ago: the server has sent "
                     "what it cannot handle; samedisk ends (runs that were over are in the result, where --json was given); "
                     "engine=native has no such calls\n", library, (int)(STUCK_NS / NS_PER_SEC));
    if (n > 0 && write(STDERR_FILENO, text, (size_t)n) < 0) _exit(STATUS_TARGET);
    _exit(STATUS_TARGET);
}
