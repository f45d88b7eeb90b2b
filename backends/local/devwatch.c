/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/local/devwatch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "backends/local/roads.h"

#define INTERVAL_MS 100
#define CHECK_EVERY 10 /* intervals: what gives no sign at all, an exchange between two commands, is asked for */
#define TEXT        32

struct counter {
    int fd;
    char last[TEXT];
};

struct devwatch {
    struct devguard *guard;
    pthread_t thread;
    int stop;                /* eventfd */
    unsigned n;
    struct counter counter[];
};

static void read_counter(const struct counter *c, char text[TEXT]) {
    ssize_t n = pread(c->fd, text, TEXT - 1, 0);
    text[n > 0 ? n : 0] = 0; /* a disk that has gone has none: that is a change too */
}

static void *watch(void *arg) {
    struct devwatch *w = arg;
    struct pollfd stop = {.fd = w->stop, .events = POLLIN};
    char now[TEXT];
    for (unsigned turn = 1; poll(&stop, 1, INTERVAL_MS) <= 0; turn++) {
        if (turn % CHECK_EVERY == 0) devguard_check(w->guard);
        for (unsigned i = 0; i < w->n; i++) {
            read_counter(&w->counter[i], now);
            if (!strcmp(now, w->counter[i].last)) continue;
            strcpy(w->counter[i].last, now);
            devguard_doubt(w->guard);
        }
    }
    return NULL;
}

static void add(struct devwatch *w, const struct road *road) {
    char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/device/ioerr_cnt", road->folder);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    w->counter[w->n].fd = fd;
    read_counter(&w->counter[w->n], w->counter[w->n].last);
    w->n++;
}

static void release(struct devwatch *w) {
    if (!w) return;
    for (unsigned i = 0; i < w->n; i++) close(w->counter[i].fd);
    if (w->stop >= 0) close(w->stop);
    free(w);
}

int devwatch_start(const char *sys, dev_t dev, struct devguard *guard, struct devwatch **out, struct err *err) {
    struct roads *roads = roads_find(sys, dev);
    struct devwatch *w = roads ? calloc(1, sizeof *w + roads->n * sizeof *w->counter) : NULL;
    sigset_t all, old;
    int rc = w ? 0 : ENOMEM;
    *out = NULL;
    if (w) {
        w->guard = guard;
        for (unsigned i = 0; i < roads->n; i++) add(w, &roads->road[i]);
        w->stop = w->n ? eventfd(0, EFD_CLOEXEC) : -1;
        if (w->n && w->stop < 0) rc = errno;
    }
    free(roads);
    if (!rc && w->n) {
        sigfillset(&all); /* signals are for the program's own threads */
        pthread_sigmask(SIG_SETMASK, &all, &old);
        rc = pthread_create(&w->thread, NULL, watch, w);
        pthread_sigmask(SIG_SETMASK, &old, NULL);
        if (!rc) *out = w;
    }
    if (!*out) release(w);
    return rc ? err_set(err, STATUS_TARGET, "watching the disk's errors: %s", strerrordesc_np(rc)) : 0;
}

void devwatch_stop(struct devwatch *w) {
    uint64_t one = 1;
    if (!w) return;
    while (write(w->stop, &one, sizeof one) < 0 && errno == EINTR) continue;
    pthread_join(w->thread, NULL);
    release(w);
}
