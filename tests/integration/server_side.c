/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Is what a backend writes what lies on the server's side?  server_side URL FILE SYNC [SIZE]
 *
 * Writes known pseudo-random data over the whole object behind URL, in pieces of random sizes and in random order, 32
 * at a time, with SYNC (none, datastore, dsync, sync); flushes; reads everything back through the backend in other
 * pieces; and then compares with FILE, the same bytes as the server has them. A file that does not exist is created
 * with SIZE bytes. Every run writes other data. Exit status 0: all the same, and one line says what was done. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "backends/backend.h"
#include "base/rng.h"

#define DEPTH     32
#define PIECE_MAX (96u << 10)
#define PATIENCE  (20 * NS_PER_SEC)

struct piece {
    uint64_t offset;
    uint32_t len;
};

struct object {
    const struct backend *backend;
    void *conf;
    struct handle *handle;
    struct facts facts;
    struct context *context;
    struct clock clock;
    struct kinds kinds;
    char *buffers;
    size_t stride;
    struct rng rng;
    unsigned char *want; /* what the object must hold */
    uint64_t writes, stable, unaligned;
};

static void die(const char *what, const char *why) {
    fprintf(stderr, "server_side: %s: %s\n", what, why);
    exit(1);
}

/* ---- opening ---- */

static void configure(struct object *o, const char *text) {
    struct url url;
    struct err err;
    if (url_parse(text, &url, &err)) die(text, err.msg);
    o->backend = backend_for_url(&url, &err);
    if (!o->backend) die(text, err.msg);
    o->conf = calloc(1, o->backend->conf_size);
    if (!o->conf) die(text, "no memory");
    if (option_defaults(o->backend->options, o->conf, &err) || o->backend->configure(&url, o->conf, &err))
        die(text, err.msg);
    for (size_t i = 0; i < url.n_keys; i++)
        if (option_set(o->backend->options, o->conf, url.keys[i].name, url.keys[i].value, &err)) die(text, err.msg);
    if (o->backend->check && o->backend->check(o->conf, &err)) die(text, err.msg);
    url_free(&url);
}

static void open_object(struct object *o, enum open_mode mode, uint64_t size) {
    struct open_how how = {.conf = o->conf, .mode = mode, .create_size = size, .clock = &o->clock};
    struct err err;
    facts_free(&o->facts);
    memset(&o->facts, 0, sizeof o->facts);
    if (o->backend->open(&how, &o->handle, &o->facts, &err)) die("open", err.msg);
}

static void open_for_writing(struct object *o, uint64_t size) {
    open_object(o, OPEN_READ, 0);
    bool exists = o->facts.exists;
    o->backend->close(o->handle);
    open_object(o, exists ? OPEN_WRITE : OPEN_CREATE, size);
}

static void attach(struct object *o) {
    struct err err;
    o->stride = PIECE_MAX;
    o->buffers = aligned_alloc(4096, DEPTH * o->stride);
    if (!o->buffers) die("attach", "no memory");
    struct attach_how how = {.depth = DEPTH,
                             .max_io = PIECE_MAX,
                             .buffers = o->buffers,
                             .stride = o->stride,
                             .clock = &o->clock,
                             .kinds = &o->kinds,
                             .write = true};
    if (o->backend->attach(o->handle, &how, &o->context, &err)) die("attach", err.msg);
}

/* ---- pieces ---- */

/* The whole object, without overlap, in random order. */
static struct piece *cut(struct object *o, size_t *n) {
    uint64_t size = o->facts.size, at = 0;
    uint32_t block = o->facts.block, most = o->facts.max_io < PIECE_MAX ? o->facts.max_io : PIECE_MAX;
    struct piece *list = calloc(size / block + 1, sizeof *list);
    if (!list) die("pieces", "no memory");
    for (*n = 0; at < size; (*n)++) {
        /* Half of them are small: those reach far into the tail of the sizes. */
        uint32_t bound = rng_below(&o->rng, 2) ? most : 8192 < most ? 8192 : most;
        uint64_t len = (1 + rng_below(&o->rng, bound / block)) * block;
        list[*n] = (struct piece){at, (uint32_t)(len < size - at ? len : size - at)};
        at += list[*n].len;
    }
    for (size_t i = *n; i > 1; i--) {
        size_t k = rng_below(&o->rng, i);
        struct piece p = list[k];
        list[k] = list[i - 1];
        list[i - 1] = p;
    }
    return list;
}

/* ---- moving ---- */

static void finish(struct object *o, const struct completion *c) {
    const struct request *q = c->request;
    if (c->result < 0) die("I/O", o->kinds.kind[c->kind].text);
    if (q->op == IO_FLUSH) return;
    if (c->result != (int64_t)q->len) die("I/O", "short transfer");
    if (q->op == IO_READ && memcmp(q->buf, o->want + q->offset, q->len) != 0) {
        fprintf(stderr, "server_side: read back: other bytes in [%llu, %llu)\n", (unsigned long long)q->offset,
                (unsigned long long)(q->offset + q->len));
        exit(1);
    }
    o->writes += q->op == IO_WRITE;
    o->stable += q->op == IO_WRITE && c->stable;
    o->unaligned += q->op == IO_WRITE && ((q->offset | q->len) & 511) != 0;
}

/* All pieces, as many at a time as there are slots. */
static void move(struct object *o, enum io_op op, enum io_sync sync, const struct piece *piece, size_t n) {
    struct request request[DEPTH], *ready[DEPTH];
    struct completion done[DEPTH];
    unsigned spare[DEPTH], n_free = 0, n_ready = 0, lent = 0;
    size_t next = 0;
    int64_t last = clock_now(&o->clock);
    for (unsigned i = 0; i < DEPTH; i++) spare[n_free++] = i;
    while (next < n || n_ready || lent) {
        while (next < n && n_free) {
            unsigned slot = spare[--n_free];
            const struct piece *p = &piece[next++];
            request[slot] = (struct request){.buf = op == IO_FLUSH ? NULL : o->buffers + slot * o->stride,
                                             .offset = p->offset,
                                             .len = p->len,
                                             .slot = slot,
                                             .op = (uint8_t)op,
                                             .sync = (uint8_t)sync};
            if (op == IO_WRITE) memcpy(request[slot].buf, o->want + p->offset, p->len);
            if (op == IO_READ) memset(request[slot].buf, 0xee, p->len);
            ready[n_ready++] = &request[slot];
        }
        int took = n_ready ? o->backend->submit(o->context, ready, n_ready) : 0;
        if (took < 0) die("submit", strerror(-took));
        memmove(ready, ready + took, (n_ready - (unsigned)took) * sizeof *ready);
        n_ready -= (unsigned)took;
        lent += (unsigned)took;
        int got = o->backend->reap(o->context, done, DEPTH, lent ? 1 : 0, NS_PER_SEC);
        if (got < 0) die("reap", strerror(-got));
        for (int i = 0; i < got; i++) {
            finish(o, &done[i]);
            spare[n_free++] = done[i].request->slot;
        }
        lent -= (unsigned)got;
        if (got) last = clock_now(&o->clock);
        if (clock_now(&o->clock) - last > PATIENCE) die("I/O", "nothing comes back");
    }
}

/* ---- the server's side ---- */

static void compare_file(const struct object *o, const char *path) {
    static unsigned char buf[64 << 10];
    FILE *f = fopen(path, "rb");
    uint64_t at = 0;
    size_t n;
    if (!f) die(path, "cannot be read");
    while ((n = fread(buf, 1, sizeof buf, f)) > 0 && at + n <= o->facts.size) {
        for (size_t i = 0; i < n; i++)
            if (buf[i] != o->want[at + i]) {
                fprintf(stderr, "server_side: %s: byte %llu is %02x, %02x was written\n", path,
                        (unsigned long long)(at + i), buf[i], o->want[at + i]);
                exit(1);
            }
        at += n;
    }
    if (n || at != o->facts.size) die(path, "its size is another one");
    fclose(f);
}

static enum io_sync sync_of(const char *word) {
    for (int s = SYNC_NONE; s <= SYNC_SYNC; s++)
        if (strcmp(io_sync_name((enum io_sync)s), word) == 0) return (enum io_sync)s;
    die(word, "no sync mode");
    return SYNC_NONE;
}

int main(int argc, char **argv) {
    static struct object o;
    uint64_t seed;
    size_t writes, reads;
    if (argc < 4 || argc > 5) die("usage", "server_side URL FILE SYNC [SIZE]");
    enum io_sync sync = sync_of(argv[3]);
    if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed) die("seed", "no random bytes");
    rng_seed(&o.rng, seed);
    configure(&o, argv[1]);
    open_for_writing(&o, argc > 4 ? strtoull(argv[4], NULL, 10) : 0);
    if (o.facts.size == 0 || o.facts.size > 256u << 20) die(argv[1], "its size does not fit this test");
    attach(&o);
    o.want = malloc(o.facts.size);
    if (!o.want) die("data", "no memory");
    rng_fill(&o.rng, o.want, o.facts.size);

    struct piece *out = cut(&o, &writes), *in = cut(&o, &reads);
    move(&o, IO_WRITE, sync, out, writes);
    if (o.facts.can_flush) move(&o, IO_FLUSH, SYNC_NONE, &(struct piece){0, 0}, 1);
    move(&o, IO_READ, SYNC_NONE, in, reads);
    o.backend->detach(o.context);
    o.backend->close(o.handle);
    compare_file(&o, argv[2]);
    printf("writes=%zu stable=%llu unaligned=%llu reads=%zu seed=%llu\n", writes, (unsigned long long)o.stable,
           (unsigned long long)o.unaligned, reads, (unsigned long long)seed);

    free(out);
    free(in);
    free(o.want);
    free(o.buffers);
    facts_free(&o.facts);
    if (o.backend->conf_free) o.backend->conf_free(o.conf);
    option_free(o.backend->options, o.conf);
    free(o.conf);
    return 0;
}
