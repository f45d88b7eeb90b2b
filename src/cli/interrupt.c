/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/interrupt.h"

#include <stddef.h>
#include <string.h>
#include <time.h>

static const int caught[] = {SIGINT, SIGTERM, SIGHUP};

/* A second signal so much later is an order: the first one may come twice, from the terminal and from a parent. */
#define PATIENCE 2 /* seconds */

/* A handler has no argument: the flag is what has to be static. */
static volatile sig_atomic_t *interrupt_flag(void) {
    static volatile sig_atomic_t flag;
    return &flag;
}

/* The first signal asks for an orderly end, in which a server that hangs may keep us; a later one ends the process
 * where it stands. Finished runs are on disk in either case. */
static void on_signal(int sig) {
    static volatile sig_atomic_t since;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (*interrupt_flag() && (sig_atomic_t)now.tv_sec - since >= PATIENCE) {
        signal(sig, SIG_DFL);
        raise(sig);
    }
    if (!*interrupt_flag()) since = (sig_atomic_t)now.tv_sec;
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
