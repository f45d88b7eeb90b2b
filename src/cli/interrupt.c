/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/interrupt.h"

#include <stddef.h>
#include <string.h>

static const int caught[] = {SIGINT, SIGTERM, SIGHUP};

/* A handler has no argument: the flag is the one thing that has to be static. */
static volatile sig_atomic_t *interrupt_flag(void) {
    static volatile sig_atomic_t flag;
    return &flag;
}

static void on_signal(int sig) {
    (void)sig;
    *interrupt_flag() = 1;
}

static void handle_all(void (*handler)(int)) {
    for (size_t i = 0; i < sizeof caught / sizeof *caught; i++) {
        struct sigaction now, action;
        memset(&action, 0, sizeof action);
        action.sa_handler = handler; /* without SA_RESTART: a wait ends, and the flag is seen */
        if (!sigaction(caught[i], NULL, &now) && now.sa_handler == SIG_IGN) continue;
        sigaction(caught[i], &action, NULL);
    }
}

volatile sig_atomic_t *interrupt_catch(void) {
    *interrupt_flag() = 0;
    handle_all(on_signal);
    return interrupt_flag();
}

void interrupt_release(void) {
    handle_all(SIG_DFL);
}
