/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/interrupt.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const int caught[] = {SIGINT, SIGTERM, SIGHUP};

/* A second signal so much later is an order: the first one may come twice, from the terminal and from a parent. */
#define TWICE_MS 200u
/* An order is carried out within this time, or the process ends where it stands. */
#define ORDER_US 700000

/* A handler has no argument: the flag is what has to be static. */
static volatile sig_atomic_t *interrupt_flag(void) {
    static volatile sig_atomic_t flag;
    return &flag;
}

static uint32_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint32_t)now.tv_sec * 1000u + (uint32_t)(now.tv_nsec / 1000000);
}

static void end_here(int sig) {
    signal(sig, SIG_DFL);
    raise(sig);
}

/* Something hangs that nobody can call off. Finished runs are on disk since they were finished. */
static void on_alarm(int sig) {
    static const char words[] = "samedisk: ended where it stood; the runs that were finished have been saved\n";
    (void)sig;
    if (write(STDERR_FILENO, words, sizeof words - 1) < 0) { /* nobody is left to tell */ }
    signal(SIGINT, SIG_DFL);
    raise(SIGINT);
}

/* The first signal asks for an orderly end, which waits a little for what is out; a second one for the end at once, with
 * what there is saved and printed; a third ends the process where it stands. */
static void on_signal(int sig) {
    static const struct itimerval soon = {.it_value = {.tv_usec = ORDER_US}};
    static volatile sig_atomic_t since;
    int saved = errno;
    volatile sig_atomic_t *flag = interrupt_flag();
    uint32_t now = now_ms();
    if (*flag == 0) {
        since = (sig_atomic_t)now;
        *flag = 1;
    } else if (*flag == 1 && now - (uint32_t)since >= TWICE_MS) {
        since = (sig_atomic_t)now;
        *flag = 2;
        signal(SIGALRM, on_alarm);
        setitimer(ITIMER_REAL, &soon, NULL);
    } else if (*flag == 2 && now - (uint32_t)since >= TWICE_MS) {
        end_here(sig);
    }
    errno = saved;
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
