/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whoever waits for a server on the control path has no call of the user's at hand, but a thread. */
#include <stddef.h>

#include "backends/backend.h"

static const volatile sig_atomic_t **flag_of_thread(void) {
    static _Thread_local const volatile sig_atomic_t *flag;
    return &flag;
}

void backend_heed(const volatile sig_atomic_t *stop) {
    *flag_of_thread() = stop;
}

bool backend_stopped(void) {
    const volatile sig_atomic_t *flag = *flag_of_thread();
    return flag && *flag;
}
