/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/iscsi/iscsi_libiscsi_guard.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

#include "backends/net/sock.h"
#include "backends/net/stuck.h"
#include "base/clock.h"

#define LOOKS 8 /* in each timeout */

struct libguard {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t change;
    const _Atomic unsigned *calls;
    int64_t timeout;
    int fd;
    bool over, fired;
};

/* It was shut down, and the library is to come back. */
static void wait_for_library(struct libguard *g, unsigned inside) {
    int64_t end = sock_now() + STUCK_NS;
    const struct timespec at = { .tv_sec = (time_t)(end / NS_PER_SEC), .tv_nsec = (long)(end % NS_PER_SEC) };
    int rc = 0;

    while (!g->over && rc == 0) rc = pthread_cond_timedwait(&g->change, &g->lock, &at);
    if (!g->over && atomic_load_explicit(g->calls, memory_order_relaxed) == inside) stuck_in("libiscsi");
}

static void *look(void *arg) {
    struct libguard *g = arg;
    int64_t now = sock_now(), since = now;
    unsigned last = 0;

    pthread_mutex_lock(&g->lock);
    while (!g->over && !g->fired) {
        int64_t next = now + g->timeout / LOOKS;
        const struct timespec at = { .tv_sec = (time_t)(next / NS_PER_SEC), .tv_nsec = (long)(next % NS_PER_SEC) };
        pthread_cond_timedwait(&g->change, &g->lock, &at);
        unsigned calls = atomic_load_explicit(g->calls, memory_order_relaxed);
        now = sock_now();
        if (!(calls & 1) || calls != last) since = now;
        last = calls;
        g->fired = !g->over && now - since >= g->timeout;
    }
    if (g->fired) {
        shutdown(g->fd, SHUT_RDWR);
        wait_for_library(g, last);
    }
    pthread_mutex_unlock(&g->lock);
    return NULL;
}

struct libguard *libguard_start(int fd, int64_t timeout, const _Atomic unsigned *calls) {
    struct libguard *g = calloc(1, sizeof *g);
    pthread_condattr_t how;
    sigset_t all, was;

    if (!g) return NULL;
    *g = (struct libguard){ .fd = fd, .timeout = timeout, .calls = calls };
    pthread_mutex_init(&g->lock, NULL);
    pthread_condattr_init(&how);
    pthread_condattr_setclock(&how, CLOCK_MONOTONIC);
    pthread_cond_init(&g->change, &how);
    pthread_condattr_destroy(&how);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &was); /* signals are the others' affair */
    int rc = pthread_create(&g->thread, NULL, look, g);
    pthread_sigmask(SIG_SETMASK, &was, NULL);
    if (rc == 0) return g;
    pthread_cond_destroy(&g->change);
    pthread_mutex_destroy(&g->lock);
    free(g);
    return NULL;
}

bool libguard_stop(struct libguard *g) {
    if (!g) return false;
    pthread_mutex_lock(&g->lock);
    g->over = true;
    pthread_cond_signal(&g->change);
    pthread_mutex_unlock(&g->lock);
    pthread_join(g->thread, NULL);
    bool fired = g->fired;
    pthread_cond_destroy(&g->change);
    pthread_mutex_destroy(&g->lock);
    free(g);
    return fired;
}
