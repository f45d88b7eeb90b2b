/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/phase.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define FIRST (5 * NS_PER_SEC)
#define AGAIN (30 * NS_PER_SEC)

struct phase {
    FILE *out;
    struct clock clock;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    char what[300]; /* "": nothing */
    int64_t since, due, known;
    bool over;
};

static void *watch(void *arg) {
    struct phase *p = arg;
    pthread_mutex_lock(&p->lock);
    while (!p->over) {
        int64_t now = clock_now(&p->clock);
        if (p->what[0] && now >= p->due) {
            /* A progress line may stand there; it is drawn anew soon. */
            fprintf(p->out, "%ssamedisk: %s: for %lld s so far\n", isatty(fileno(p->out)) ? "\r\033[K" : "", p->what,
                    (long long)((now - p->since) / NS_PER_SEC));
            fflush(p->out);
            p->due = now + AGAIN;
        }
        if (!p->what[0]) {
            pthread_cond_wait(&p->changed, &p->lock);
        } else {
            struct timespec ts = {.tv_sec = p->due / NS_PER_SEC, .tv_nsec = p->due % NS_PER_SEC};
            pthread_cond_timedwait(&p->changed, &p->lock, &ts);
        }
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

struct phase *phase_begin(FILE *out, bool quiet) {
    struct phase *p = quiet ? NULL : calloc(1, sizeof *p);
    pthread_condattr_t attr;
    sigset_t all, before;
    if (!p) return NULL;
    p->out = out;
    clock_real_init(&p->clock);
    pthread_mutex_init(&p->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&p->changed, &attr);
    pthread_condattr_destroy(&attr);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&p->thread, NULL, watch, p);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!failed) return p;
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    free(p);
    return NULL;
}

void phase_lasts(struct phase *p, const char *what, int64_t ns) {
    if (!p) return;
    pthread_mutex_lock(&p->lock);
    bool other = strcmp(p->what, what ? what : "") != 0;
    if (other) {
        snprintf(p->what, sizeof p->what, "%s", what ? what : "");
        p->since = clock_now(&p->clock);
    }
    if (other || p->known != ns) {
        p->known = ns;
        p->due = p->since + ns + FIRST;
        pthread_cond_signal(&p->changed);
    }
    pthread_mutex_unlock(&p->lock);
}

void phase_is(struct phase *p, const char *what) {
    phase_lasts(p, what, 0);
}

void phase_end(struct phase *p) {
    if (!p) return;
    pthread_mutex_lock(&p->lock);
    p->over = true;
    pthread_cond_signal(&p->changed);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    free(p);
}
