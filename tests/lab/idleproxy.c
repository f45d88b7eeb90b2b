/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stands in front of a server and closes every connection that was idle for a while, as filers do.
 *
 *   idleproxy HOST:PORT IDLE_MS
 *
 * Listens on a free port of 127.0.0.1 and prints it, on a line of its own; then a line "idle" for each connection that
 * was closed for being idle. Ends when its standard input does. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PAIRS 128
#define ROOM (64u << 10)

struct way { /* one direction: nothing is read before the last piece is written, so that pressure goes through */
    int from, to;
    size_t at, n;
    bool over;
    char buf[ROOM];
};

struct pair {
    struct way way[2];
    int64_t last; /* when bytes last moved, ms */
};

struct proxy {
    int listener;
    struct addrinfo *server;
    int64_t idle;
    struct pair *pair[PAIRS];
    unsigned n;
    struct pollfd poll[2 + 2 * PAIRS];
};

static void die(const char *what, const char *why) {
    fprintf(stderr, "idleproxy: %s: %s\n", what, why);
    exit(1);
}

static int64_t now_ms(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void say(const char *line) {
    puts(line);
    fflush(stdout);
}

/* ---- connections ---- */

static void prepare(int fd) {
    int on = 1;
    fcntl(fd, F_SETFL, O_NONBLOCK);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static void take(struct proxy *p) {
    int client = accept(p->listener, NULL, NULL);
    if (client < 0) return;
    int server = socket(p->server->ai_family, SOCK_STREAM, 0);
    struct pair *new = p->n < PAIRS ? malloc(sizeof *new) : NULL;
    if (server < 0 || !new || connect(server, p->server->ai_addr, p->server->ai_addrlen) != 0) {
        close(client);
        if (server >= 0) close(server);
        free(new);
        return;
    }
    prepare(client);
    prepare(server);
    for (int i = 0; i < 2; i++) {
        struct way *w = &new->way[i];
        w->from = i ? server : client;
        w->to = i ? client : server;
        w->at = w->n = 0;
        w->over = false;
    }
    new->last = now_ms();
    p->pair[p->n++] = new;
}

static void drop(struct proxy *p, unsigned i) {
    close(p->pair[i]->way[0].from);
    close(p->pair[i]->way[0].to);
    free(p->pair[i]);
    p->pair[i] = p->pair[--p->n];
}

/* False: the connection broke. */
static bool move(struct way *w, bool *moved) {
    if (w->n == 0) {
        ssize_t got = read(w->from, w->buf, ROOM);
        if (got < 0) return errno == EAGAIN || errno == EINTR;
        w->at = 0;
        w->n = (size_t)got;
        w->over = got == 0;
        if (w->over) shutdown(w->to, SHUT_WR);
        *moved = true;
    }
    while (w->n) {
        ssize_t put = write(w->to, w->buf + w->at, w->n);
        if (put < 0) return errno == EAGAIN || errno == EINTR;
        w->at += (size_t)put;
        w->n -= (size_t)put;
        *moved = true;
    }
    return true;
}

/* ---- the loop ---- */

static void fill_poll(struct proxy *p) {
    p->poll[0] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
    p->poll[1] = (struct pollfd){.fd = p->n < PAIRS ? p->listener : -1, .events = POLLIN};
    for (unsigned i = 0; i < 2 * p->n; i++) {
        const struct way *w = &p->pair[i / 2]->way[i % 2];
        p->poll[2 + i] = w->n ? (struct pollfd){.fd = w->to, .events = POLLOUT}
                              : (struct pollfd){.fd = w->over ? -1 : w->from, .events = POLLIN};
    }
}

static int patience(const struct proxy *p, int64_t now) {
    int64_t least = -1;
    for (unsigned i = 0; i < p->n; i++) {
        int64_t left = p->pair[i]->last + p->idle - now;
        if (left < 0) left = 0;
        if (least < 0 || left < least) least = left;
    }
    return (int)least;
}

/* True as long as the pair lives. */
static bool serve(struct proxy *p, unsigned i, int64_t now) {
    struct pair *pair = p->pair[i];
    bool moved = false;
    for (unsigned k = 0; k < 2; k++)
        if (p->poll[2 + 2 * i + k].revents && !move(&pair->way[k], &moved)) return false;
    if (moved) pair->last = now;
    if (pair->way[0].over && pair->way[1].over) return false;
    if (now - pair->last < p->idle) return true;
    say("idle");
    return false;
}

static void loop(struct proxy *p) {
    char byte;
    for (;;) {
        fill_poll(p);
        if (poll(p->poll, 2 + 2 * p->n, patience(p, now_ms())) < 0 && errno != EINTR) die("poll", strerror(errno));
        if (p->poll[0].revents && read(STDIN_FILENO, &byte, 1) <= 0) return;
        int64_t now = now_ms();
        /* From the end, as one that goes is replaced by the last; new ones have no entry in the list yet. */
        for (unsigned i = p->n; i-- > 0;)
            if (!serve(p, i, now)) drop(p, i);
        if (p->poll[1].revents) take(p);
    }
}

static void resolve(struct proxy *p, char *text) {
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    char *port = strrchr(text, ':');
    if (!port) die(text, "HOST:PORT is wanted");
    *port++ = '\0';
    int e = getaddrinfo(text, port, &hints, &p->server);
    if (e) die(text, gai_strerror(e));
}

static void listen_here(struct proxy *p) {
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof here;
    p->listener = socket(AF_INET, SOCK_STREAM, 0);
    if (p->listener < 0 || bind(p->listener, (struct sockaddr *)&here, len) != 0 || listen(p->listener, 64) != 0 ||
        getsockname(p->listener, (struct sockaddr *)&here, &len) != 0)
        die("listening", strerror(errno));
    fcntl(p->listener, F_SETFL, O_NONBLOCK);
    printf("%u\n", ntohs(here.sin_port));
    fflush(stdout);
}

int main(int argc, char **argv) {
    static struct proxy proxy;
    if (argc != 3 || atoi(argv[2]) <= 0) die("usage", "idleproxy HOST:PORT IDLE_MS");
    signal(SIGPIPE, SIG_IGN);
    proxy.idle = atoi(argv[2]);
    resolve(&proxy, argv[1]);
    listen_here(&proxy);
    loop(&proxy);
    freeaddrinfo(proxy.server);
    return 0;
}
