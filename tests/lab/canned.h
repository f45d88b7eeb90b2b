/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What canned_nfsd.c and canned_iscsid.c share: connections, batches of replies, delays, the record of times, options.
 * Included in the middle of each, behind what it works on: HEAD, PROGRAM, the enum and table of hostile modes, struct config,
 * struct session. */
#ifndef LAB_CANNED_H
#define LAB_CANNED_H

#define IN_SIZE   ((size_t)2 << 20)  /* of a connection's receive buffer */
#define SKIP_MIN  ((size_t)64 << 10) /* a missing payload at least this long is dropped inside the kernel */
#define OUT_LIMIT ((size_t)256 << 20)
#define PERIOD    1052672u /* 257 * 4096: content repeats after this, and no 4 KiB block straddles it */
#define MIX       0x9e3779b97f4a7c15u
#define VECTORS   1024

enum { ONE_BYTE = 1, CLOSE_AFTER = 2 };

struct piece {                 /* of the reply stream */
    const unsigned char *data; /* NULL: the next bytes of the connection's `out` */
    size_t len;
    unsigned flags;
};

struct conn {
    struct conn *next, *next_dirty;
    int fd;           /* -1: closed, waits to be freed */
    bool dirty, last; /* last: close once all is sent */
    unsigned id, events;
    unsigned held; /* delayed requests that point here */
    unsigned char *in, *out;
    size_t in_len, skip, skip_total;
    size_t out_at, out_len, out_cap; /* unsent bytes are out[out_at .. out_len) */
    struct piece *piece;
    size_t first, pieces, piece_cap; /* unsent pieces are piece[first .. pieces) */
    uint64_t queued, sent;           /* bytes of the stream */
    size_t rec_head, rec_tail;       /* records that wait for their stamp; 0: none */
    struct session p;
};

struct held {
    struct held *next;
    struct conn *conn;
    uint64_t received, due;
    size_t kept, total;
    unsigned char request[];
};

struct rec {
    uint64_t received, sent, end; /* end: stream position behind the reply */
    uint64_t offset;              /* of a read or write */
    size_t next;
    uint32_t id, op, conn;
};

struct server {
    int ep, listener, signals;
    const char *bind, *record, *store_name;
    uint16_t port;
    bool until_stdin, spin, zeros, hostile_all, quit, closed;
    uint64_t delay[2], percent, seed, stop_above, sndbuf, rcvbuf; /* delay[1] for `percent` of the requests */
    enum mode hostile;
    uint64_t every, after, seen, hits;
    struct conn *conns, *dirty;
    struct held *head[2], *tail[2]; /* one queue per delay, so each is in order of `due` */
    unsigned char *content, *store;
    uint64_t store_len;
    struct rec *rec; /* [0] is not used */
    size_t recs, rec_max;
    uint64_t rec_lost, requests, errors, accepted;
    struct config p;
};

/* The protocol's part. frame: the bytes of the request at `p`, 0 when `have` bytes do not tell, SIZE_MAX: nonsense.
 * arrived: a request is complete; it calls submit(). serve: answers; `kept` of the `total` bytes are there. */
static size_t frame(struct conn *c, const unsigned char *p, size_t have);
static void arrived(struct server *s, struct conn *c, const unsigned char *p, size_t kept, size_t total, uint64_t t);
static void serve(struct server *s, struct conn *c, const unsigned char *p, size_t kept, size_t total, uint64_t t);
static void forget(struct conn *c);

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

__attribute__((format(printf, 1, 2), noreturn)) static void die(const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    fputs(PROGRAM ": ", stderr);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    exit(1);
}

static void *grow(void *old, size_t bytes) {
    void *p = realloc(old, bytes);
    if (!p) die("out of memory");
    return p;
}

static uint32_t load32(const void *p) {
    uint32_t v;
    memcpy(&v, p, 4);
    return be32toh(v);
}

static uint64_t load64(const void *p) {
    return (uint64_t)load32(p) << 32 | load32((const char *)p + 4);
}

static void store32(void *p, uint32_t v) {
    v = htobe32(v);
    memcpy(p, &v, 4);
}

static void store64(void *p, uint64_t v) {
    v = htobe64(v);
    memcpy(p, &v, 8);
}

static uint64_t draw(struct server *s) /* splitmix64 */
{
    uint64_t z = s->seed += MIX;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static void drop(struct server *s, struct conn *c) {
    if (c->fd < 0) return;
    close(c->fd);
    c->fd = -1;
    s->closed = true;
}

/* The client broke the protocol: a test must see that, so it is told, counted, and the connection ends. */
__attribute__((format(printf, 3, 4))) static void violation(struct server *s, struct conn *c, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    fprintf(stderr, PROGRAM ": connection %u: ", c->id);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    s->errors++;
    drop(s, c);
}

/* Room for `len` bytes at the end of `out`, valid until the next call; put(c, NULL, ...) then takes them. */
static unsigned char *room(struct conn *c, size_t len) {
    if (c->out_len + len > c->out_cap) {
        if (c->out_at && c->out_at >= c->out_len - c->out_at) {
            memcpy(c->out, c->out + c->out_at, c->out_len - c->out_at);
            c->out_len -= c->out_at;
            c->out_at = 0;
        }
        if (c->out_len + len > c->out_cap) c->out = grow(c->out, c->out_cap = 2 * c->out_cap + len + 65536);
    }
    return c->out + c->out_len;
}

static void put(struct conn *c, const unsigned char *data, size_t len, unsigned flags) {
    struct piece *last = c->pieces > c->first ? &c->piece[c->pieces - 1] : NULL;
    if (!data) c->out_len += len;
    c->queued += len;
    if (last && !data && !last->data && !last->flags && !flags) {
        last->len += len;
        return;
    }
    if (c->pieces == c->piece_cap && c->first > c->pieces / 2) {
        memcpy(c->piece, c->piece + c->first, (c->pieces - c->first) * sizeof *c->piece);
        c->pieces -= c->first;
        c->first = 0;
    }
    if (c->pieces == c->piece_cap) {
        c->piece_cap = 2 * c->piece_cap + 1024;
        c->piece = grow(c->piece, c->piece_cap * sizeof *c->piece);
    }
    c->piece[c->pieces++] = (struct piece){data, len, flags};
}

static void put_copy(struct conn *c, const void *data, size_t len, unsigned flags) {
    if (!len) return;
    memcpy(room(c, len), data, len);
    put(c, NULL, len, flags);
}

static void put_content(struct server *s, struct conn *c, bool stored, uint64_t offset, size_t len, unsigned flags) {
    while (len) {
        size_t at = offset % PERIOD;
        size_t n = stored || PERIOD - at > len ? len : PERIOD - at;
        put(c, stored ? s->store + offset : s->content + at, n, flags);
        offset += n;
        len -= n;
    }
}

/* Is this reply one of the every-Nth that go wrong? `op` is a bit of modes[].ops. */
static enum mode choose_mode(struct server *s, uint32_t op) {
    if (s->hostile == NONE || (!s->hostile_all && !(modes[s->hostile].ops & op))) return NONE;
    if (++s->seen <= s->after || (s->seen - s->after) % s->every) return NONE;
    s->hits++;
    return s->hostile;
}

/* To be called when the reply is in the stream. */
static void note(struct server *s, struct conn *c, uint32_t id, uint32_t op, uint64_t offset, uint64_t received) {
    s->requests++;
    if (!s->record) return;
    if (s->recs == s->rec_max) {
        s->rec_lost++;
        return;
    }
    size_t n = ++s->recs;
    s->rec[n] = (struct rec){
        .received = received, .end = c->queued, .offset = offset, .id = id, .op = op, .conn = c->id};
    if (c->rec_head)
        s->rec[c->rec_tail].next = n;
    else
        c->rec_head = n;
    c->rec_tail = n;
}

static void write_record(const struct server *s) {
    if (!s->record) return;
    FILE *f = fopen(s->record, "w");
    if (!f) die("cannot write %s: %s", s->record, strerror(errno));
    fprintf(f, "# clock=CLOCK_MONOTONIC not_recorded=%" PRIu64 "\n", s->rec_lost);
    fputs("# connection id op received_ns sent_ns held_ns offset\n", f);
    for (size_t i = 1; i <= s->recs; i++) {
        const struct rec *r = &s->rec[i];
        if (!r->sent) continue;
        fprintf(f, "%u 0x%08x 0x%02x %" PRIu64 " %" PRIu64, r->conn, r->id, r->op, r->received, r->sent);
        fprintf(f, " %" PRIu64 " %" PRIu64 "\n", r->sent - r->received, r->offset);
    }
    if (fclose(f)) die("cannot write %s: %s", s->record, strerror(errno));
}

static void advance(struct server *s, struct conn *c, size_t n, uint64_t t) {
    c->sent += n;
    while (c->rec_head && s->rec[c->rec_head].end <= c->sent) {
        s->rec[c->rec_head].sent = t;
        c->rec_head = s->rec[c->rec_head].next;
    }
    while (n && c->fd >= 0) {
        struct piece *p = &c->piece[c->first];
        size_t part = n < p->len ? n : p->len;
        if (p->data)
            p->data += part;
        else
            c->out_at += part;
        p->len -= part;
        n -= part;
        if (p->len) break;
        if (p->flags & CLOSE_AFTER) drop(s, c);
        c->first++;
    }
    if (c->first == c->pieces) c->first = c->pieces = c->out_at = c->out_len = 0;
}

static int gather(const struct conn *c, struct iovec *iov) {
    int n = 0;
    size_t at = c->out_at;
    for (size_t i = c->first; i < c->pieces && n < VECTORS; i++) {
        const struct piece *p = &c->piece[i];
        if (n && (p->flags & ONE_BYTE)) break;
        iov[n].iov_base = p->data ? (void *)(uintptr_t)p->data : c->out + at;
        iov[n++].iov_len = p->flags & ONE_BYTE ? 1 : p->len;
        if (p->flags) break;
        if (!p->data) at += p->len;
    }
    return n;
}

static void watch(struct server *s, struct conn *c) {
    uint64_t unsent = c->queued - c->sent;
    unsigned events = (unsent > s->stop_above ? 0 : EPOLLIN) | (unsent ? EPOLLOUT : 0u);
    if (c->fd < 0 || events == c->events) return;
    c->events = events;
    struct epoll_event e = {.events = events, .data.ptr = c};
    if (epoll_ctl(s->ep, EPOLL_CTL_MOD, c->fd, &e)) die("epoll_ctl: %s", strerror(errno));
}

static void flush(struct server *s, struct conn *c) {
    struct iovec iov[VECTORS];
    while (c->fd >= 0 && c->first < c->pieces) {
        int n = gather(c, iov);
        uint64_t t = s->record ? now() : 0;
        ssize_t r = writev(c->fd, iov, n);
        if (r < 0 && errno == EINTR) continue;
        if (r < 0 && errno == EAGAIN) break;
        if (r < 0)
            drop(s, c);
        else
            advance(s, c, (size_t)r, t);
    }
    if (c->last && c->first == c->pieces) drop(s, c);
    if (c->fd >= 0 && c->out_len > OUT_LIMIT) violation(s, c, "it sends requests and does not read the replies");
    watch(s, c);
}

static void submit(struct server *s, struct conn *c, const unsigned char *p, size_t kept, size_t total, uint64_t t) {
    if (!s->delay[0] && !s->delay[1]) {
        serve(s, c, p, kept, total, t);
        return;
    }
    unsigned q = s->percent && draw(s) % 100 < s->percent;
    size_t keep = s->store || kept < HEAD ? kept : HEAD;
    struct held *h = grow(NULL, sizeof *h + keep);
    *h = (struct held){.conn = c, .received = t, .due = t + s->delay[q], .kept = keep, .total = total};
    memcpy(h->request, p, keep);
    if (s->head[q])
        s->tail[q]->next = h;
    else
        s->head[q] = h;
    s->tail[q] = h;
    c->held++;
}

static uint64_t next_due(const struct server *s, unsigned *q) {
    uint64_t due[2] = {s->head[0] ? s->head[0]->due : UINT64_MAX, s->head[1] ? s->head[1]->due : UINT64_MAX};
    *q = due[1] < due[0];
    return due[*q];
}

static void release(struct server *s) {
    unsigned q;
    uint64_t t = 0;
    while (next_due(s, &q) != UINT64_MAX && (next_due(s, &q) <= t || next_due(s, &q) <= (t = now()))) {
        struct held *h = s->head[q];
        struct conn *c = h->conn;
        s->head[q] = h->next;
        c->held--;
        if (c->fd >= 0 && h->kept) serve(s, c, h->request, h->kept, h->total, h->received); /* kept = 0: aborted */
        free(h);
        if (!c->dirty) {
            c->dirty = true;
            c->next_dirty = s->dirty;
            s->dirty = c;
        }
    }
    while (s->dirty) {
        struct conn *c = s->dirty;
        s->dirty = c->next_dirty;
        c->dirty = false;
        flush(s, c);
    }
}

/* Takes the complete requests out of `in`. Of a long one that is not complete only the head is kept, and the rest is to
 * be skipped, unless it has to be stored. */
static void take(struct server *s, struct conn *c, uint64_t t) {
    size_t at = 0, need = 0;
    while (c->fd >= 0 && (need = frame(c, c->in + at, c->in_len - at)) && need <= c->in_len - at) {
        arrived(s, c, c->in + at, need, need, t);
        at += need;
    }
    if (c->fd < 0) return;
    size_t rest = c->in_len - at;
    if (need == SIZE_MAX || (s->store && need > IN_SIZE)) {
        violation(s, c, "the length of a request makes no sense");
        return;
    }
    if (need > rest && need - rest >= SKIP_MIN && rest >= HEAD && !s->store) {
        c->skip = need - rest;
        c->skip_total = need;
        rest = HEAD;
    }
    if (at && rest) memmove(c->in, c->in + at, rest);
    c->in_len = rest;
}

static void receive(struct server *s, struct conn *c) {
    size_t start = c->skip ? HEAD : c->in_len, len = IN_SIZE - start;
    ssize_t n = recv(c->fd, c->in + start, c->skip && c->skip < len ? c->skip : len, c->skip ? MSG_TRUNC : 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    uint64_t t = now();
    if (n <= 0) {
        flush(s, c);
        drop(s, c);
    } else if (c->skip) {
        c->skip -= (size_t)n;
        if (c->skip) return;
        c->in_len = 0;
        arrived(s, c, c->in, HEAD, c->skip_total, t);
    } else {
        c->in_len += (size_t)n;
        take(s, c, t);
    }
    flush(s, c);
}

static void set_buffers(const struct server *s, int fd) {
    int rcv = (int)s->rcvbuf, snd = (int)s->sndbuf;
    if (rcv && setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &rcv, sizeof rcv)) die("SO_RCVBUF: %s", strerror(errno));
    if (snd && setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &snd, sizeof snd)) die("SO_SNDBUF: %s", strerror(errno));
}

static void accept_one(struct server *s) {
    int one = 1, fd = accept4(s->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct conn *c = grow(NULL, sizeof *c);
    *c = (struct conn){.next = s->conns, .fd = fd, .id = (unsigned)++s->accepted, .events = EPOLLIN};
    c->in = grow(NULL, IN_SIZE);
    s->conns = c;
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
    if (epoll_ctl(s->ep, EPOLL_CTL_ADD, fd, &e)) die("epoll_ctl: %s", strerror(errno));
}

static void free_closed(struct server *s, bool all) {
    for (struct conn **at = &s->conns, *c; (c = *at);) {
        if (all) drop(s, c);
        if (c->fd >= 0 || c->held) {
            at = &c->next;
            continue;
        }
        *at = c->next;
        forget(c);
        free(c->in);
        free(c->out);
        free(c->piece);
        free(c);
    }
    s->closed = false;
}

static void on_signal(struct server *s) {
    struct signalfd_siginfo info;
    if (read(s->signals, &info, sizeof info) != sizeof info) return;
    if (info.ssi_signo == SIGUSR1)
        write_record(s);
    else
        s->quit = true;
}

static void on_stdin(struct server *s) {
    char buf[4096];
    if (read(STDIN_FILENO, buf, sizeof buf) <= 0) s->quit = true;
}

/* Waits for events until the next held reply is due; a spinning server does not wait. */
static int wait_events(struct server *s, struct epoll_event *ev, int max) {
    unsigned q;
    uint64_t due = next_due(s, &q), t;
    if (s->spin) return epoll_wait(s->ep, ev, max, 0);
    if (due == UINT64_MAX) return epoll_wait(s->ep, ev, max, -1);
    if (due > (t = now())) { /* not epoll_pwait2(), which valgrind 3.19 does not know */
        struct timespec left = {(time_t)((due - t) / 1000000000u), (long)((due - t) % 1000000000u)};
        struct pollfd any = {.fd = s->ep, .events = POLLIN};
        ppoll(&any, 1, &left, NULL);
    }
    return epoll_wait(s->ep, ev, max, 0);
}

static void run(struct server *s) {
    struct epoll_event ev[64];
    while (!s->quit) {
        int n = wait_events(s, ev, 64);
        if (n < 0 && errno != EINTR) die("epoll_wait: %s", strerror(errno));
        for (int i = 0; i < n; i++) {
            struct conn *c = ev[i].data.ptr;
            if (ev[i].data.ptr == &s->listener)
                accept_one(s);
            else if (ev[i].data.ptr == &s->signals)
                on_signal(s);
            else if (ev[i].data.ptr == &s->until_stdin)
                on_stdin(s);
            else if (c->fd < 0)
                continue;
            else if (ev[i].events & EPOLLIN)
                receive(s, c);
            else if (ev[i].events & EPOLLOUT)
                flush(s, c);
            else
                drop(s, c);
        }
        release(s);
        if (s->closed) free_closed(s, false);
    }
}

static void add_watch(struct server *s, int fd, void *tag, const char *what) {
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = tag};
    if (epoll_ctl(s->ep, EPOLL_CTL_ADD, fd, &e)) die("cannot wait for %s: %s", what, strerror(errno));
}

static void fill_content(struct server *s) {
    s->content = grow(NULL, PERIOD);
    for (uint64_t i = 0; i < PERIOD; i += 8) {
        uint64_t v = s->zeros ? 0 : htole64((i + 1) * MIX);
        memcpy(s->content + i, &v, 8);
    }
}

static void open_store(struct server *s, uint64_t len) {
    if (!s->store_name) return;
    int fd = open(s->store_name, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0 || ftruncate(fd, (off_t)len)) die("cannot store in %s: %s", s->store_name, strerror(errno));
    void *p = len ? mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (p == MAP_FAILED) die("cannot store %" PRIu64 " bytes in %s: %s", len, s->store_name, strerror(errno));
    close(fd);
    s->store = p;
    s->store_len = len;
}

static void start(struct server *s) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(s->port)};
    socklen_t len = sizeof at;
    int one = 1;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_TIMERSLACK, 1); /* 50 us by default, which would show in every delay */
    s->ep = epoll_create1(EPOLL_CLOEXEC);
    s->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (s->ep < 0 || s->signals < 0 || s->listener < 0) die("cannot start: %s", strerror(errno));
    if (inet_pton(AF_INET, s->bind, &at.sin_addr) != 1) die("--bind %s: not an IPv4 address", s->bind);
    setsockopt(s->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    set_buffers(s, s->listener); /* before the handshake, which fixes the window scale; accepted sockets inherit it */
    if (bind(s->listener, (struct sockaddr *)&at, sizeof at) || listen(s->listener, 1024))
        die("cannot listen on %s port %u: %s", s->bind, s->port, strerror(errno));
    if (getsockname(s->listener, (struct sockaddr *)&at, &len)) die("getsockname: %s", strerror(errno));
    s->port = ntohs(at.sin_port);
    add_watch(s, s->listener, &s->listener, "connections");
    add_watch(s, s->signals, &s->signals, "signals");
    if (s->until_stdin) add_watch(s, STDIN_FILENO, &s->until_stdin, "the end of stdin (a pipe or a socket)");
    fill_content(s);
    if (s->record) {
        s->rec = grow(NULL, (s->rec_max + 1) * sizeof *s->rec);
        memset(s->rec, 0xff, (s->rec_max + 1) * sizeof *s->rec); /* so that no page is new during a measurement */
    }
}

static void finish(struct server *s) {
    write_record(s);
    for (unsigned q = 0; q < 2; q++)
        for (struct held *h; (h = s->head[q]); free(h)) {
            s->head[q] = h->next;
            h->conn->held--;
        }
    free_closed(s, true);
    if (s->store) munmap(s->store, s->store_len);
    free(s->content);
    free(s->rec);
    close(s->ep);
    close(s->signals);
    close(s->listener);
}

static uint64_t number(const char *option, const char *text, uint64_t min, uint64_t max) {
    static const char suffix[] = "kmgt";
    char *end;
    errno = 0;
    uint64_t v = *text >= '0' && *text <= '9' ? strtoull(text, &end, 0) : (end = NULL, 0);
    const char *unit = end && *end ? strchr(suffix, *end | 0x20) : NULL;
    unsigned shift = unit ? 10 * (unsigned)(unit - suffix + 1) : 0;
    if (!end || errno || (*end && (!unit || end[1])) || v > max >> shift || v << shift < min)
        die("--%s %s: a number from %" PRIu64 " to %" PRIu64 " (k, m, g, t may follow)", option, text, min, max);
    return v << shift;
}

static enum mode find_mode(const char *name) {
    enum mode m = 0;
    while (modes[m].name && strcmp(modes[m].name, name)) m++;
    if (m == NONE) die("--hostile %s: there is no such mode; --help lists them", name);
    return m;
}

static void parse_bimodal(struct server *s, char *text) {
    char *slow = strchr(text, ','), *percent = slow ? strchr(slow + 1, ',') : NULL;
    if (!percent) die("--bimodal %s: FAST_US,SLOW_US,PERCENT is needed", text);
    *slow++ = *percent++ = '\0';
    s->delay[0] = 1000 * number("bimodal", text, 0, UINT32_MAX);
    s->delay[1] = 1000 * number("bimodal", slow, 0, UINT32_MAX);
    s->percent = number("bimodal", percent, 0, 100);
}

enum {
    O_BIND = 256,
    O_PORT,
    O_UNTIL_STDIN,
    O_DELAY,
    O_BIMODAL,
    O_SPIN,
    O_RECORD,
    O_RECORD_MAX,
    O_STOP_READING,
    O_HOSTILE,
    O_EVERY,
    O_AFTER,
    O_HOSTILE_ALL,
    O_ZEROS,
    O_STORE,
    O_SEED,
    O_SNDBUF,
    O_RCVBUF,
    O_HELP,
    O_OWN
};
#define COMMON_OPTIONS                                                                                                 \
    {"bind", 1, NULL, O_BIND}, {"port", 1, NULL, O_PORT}, {"until-stdin-closes", 0, NULL, O_UNTIL_STDIN},              \
        {"delay-us", 1, NULL, O_DELAY}, {"bimodal", 1, NULL, O_BIMODAL}, {"spin", 0, NULL, O_SPIN},                    \
        {"record", 1, NULL, O_RECORD}, {"record-max", 1, NULL, O_RECORD_MAX}, {"sndbuf", 1, NULL, O_SNDBUF},           \
        {"rcvbuf", 1, NULL, O_RCVBUF}, {"stop-reading-until-read", 2, NULL, O_STOP_READING},                           \
        {"hostile", 1, NULL, O_HOSTILE}, {"every", 1, NULL, O_EVERY}, {"after", 1, NULL, O_AFTER},                     \
        {"hostile-all", 0, NULL, O_HOSTILE_ALL}, {"zeros", 0, NULL, O_ZEROS}, {"store", 1, NULL, O_STORE},             \
        {"seed", 1, NULL, O_SEED}, {                                                                                   \
        "help", 0, NULL, O_HELP                                                                                        \
    }

static const char common_help[] =
    "  --bind ADDR                 IPv4 address to listen on (127.0.0.1)\n"
    "  --port N                    0: a free one; \"port=N\" on stdout says that the server is ready (0)\n"
    "  --until-stdin-closes        exit when stdin ends; SIGTERM and SIGINT always do\n"
    "  --delay-us N                hold each reply until N us after its request was complete\n"
    "  --bimodal N,M,PERCENT       N us, but M us for PERCENT of the requests\n"
    "  --spin                      busy wait\n"
    "  --record FILE               write each request's times there, at exit and on SIGUSR1\n"
    "  --record-max N              requests that can be recorded (1m)\n"
    "  --sndbuf N, --rcvbuf N      socket buffers (the kernel's choice)\n"
    "  --stop-reading-until-read[=N]  read no request while more than N reply bytes wait to be sent (64k)\n"
    "  --zeros                     content is zeros\n"
    "  --store FILE                keep what is written in FILE, and read it back\n"
    "  --seed N                    of --bimodal and of random sizes (1)\n"
    "  --hostile MODE              what goes wrong, with reads and writes; modes are below\n"
    "  --every N, --after N        in every Nth reply (1) after the first N (0)\n"
    "  --hostile-all               not with reads and writes only\n";

static void usage(const char *own_help) {
    printf("usage: " PROGRAM " [OPTION ...]\n%s%smodes:", common_help, own_help);
    for (enum mode m = 0; modes[m].name; m++) printf(" %s", modes[m].name);
    putchar('\n');
    exit(0);
}

static bool common_option(struct server *s, int opt) {
    switch (opt) {
    case O_BIND: s->bind = optarg; break;
    case O_PORT: s->port = (uint16_t)number("port", optarg, 0, UINT16_MAX); break;
    case O_UNTIL_STDIN: s->until_stdin = true; break;
    case O_DELAY: s->delay[0] = 1000 * number("delay-us", optarg, 0, UINT32_MAX); break;
    case O_BIMODAL: parse_bimodal(s, optarg); break;
    case O_SPIN: s->spin = true; break;
    case O_RECORD: s->record = optarg; break;
    case O_RECORD_MAX: s->rec_max = number("record-max", optarg, 1, 1u << 28); break;
    case O_STOP_READING: s->stop_above = optarg ? number("stop-reading-until-read", optarg, 0, 1u << 30) : 65536; break;
    case O_HOSTILE: s->hostile = find_mode(optarg); break;
    case O_EVERY: s->every = number("every", optarg, 1, UINT32_MAX); break;
    case O_AFTER: s->after = number("after", optarg, 0, UINT32_MAX); break;
    case O_HOSTILE_ALL: s->hostile_all = true; break;
    case O_ZEROS: s->zeros = true; break;
    case O_STORE: s->store_name = optarg; break;
    case O_SEED: s->seed = number("seed", optarg, 0, UINT64_MAX); break;
    case O_SNDBUF: s->sndbuf = number("sndbuf", optarg, 1, INT_MAX); break;
    case O_RCVBUF: s->rcvbuf = number("rcvbuf", optarg, 1, INT_MAX); break;
    default: return false;
    }
    return true;
}

static void common_defaults(struct server *s) {
    s->bind = "127.0.0.1";
    s->rec_max = 1u << 20;
    s->stop_above = UINT64_MAX;
    s->hostile = NONE;
    s->every = s->seed = 1;
}

#endif
