/* SPDX-License-Identifier: GPL-2.0-or-later */
/* latency_truth URL DEPTH N: reads N blocks of 4 KiB, each at an offset of its own, at this depth through the backend's
 * contract, stamped as the engine stamps them, and prints "offset submitted_ns done_ns" for each. A server that records
 * offsets and times on the same clock can then be held against it, request by request. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/backend.h"

#define BLOCK 4096u
#define PATIENCE (10 * NS_PER_SEC)

struct object {
    const struct backend *backend;
    void *conf;
    struct handle *handle;
    struct facts facts;
};

struct load {
    struct context *context;
    unsigned depth, n_free, n_batch;
    size_t n, begun, finished;
    struct request *requests, **free, **batch;
    struct completion *done;
    int64_t *times; /* submitted and done of each block */
};

static int complain(const struct err *err) {
    fprintf(stderr, "latency_truth: %s\n", err->msg);
    return 1;
}

static int configure(struct object *o, const struct url *url, struct err *err) {
    const struct backend *b = o->backend;
    o->conf = calloc(1, b->conf_size);
    if (!o->conf) return err_set(err, STATUS_TARGET, "out of memory");
    if (option_defaults(b->options, o->conf, err) < 0 || b->configure(url, o->conf, err) < 0) return -1;
    for (size_t i = 0; i < url->n_keys; i++)
        if (option_set(b->options, o->conf, url->keys[i].name, url->keys[i].value, err) < 0) return -1;
    return b->check ? b->check(o->conf, err) : 0;
}

static int open_object(struct object *o, const char *text, struct clock *clock, struct err *err) {
    struct url url;
    if (url_parse(text, &url, err) < 0) return -1;
    o->backend = backend_for_url(&url, err);
    int rc = o->backend ? configure(o, &url, err) : -1;
    url_free(&url);
    struct open_how how = {.conf = o->conf, .mode = OPEN_READ, .clock = clock};
    return rc < 0 ? rc : o->backend->open(&how, &o->handle, &o->facts, err);
}

static void close_object(struct object *o) {
    if (o->handle) o->backend->close(o->handle);
    facts_free(&o->facts);
    if (!o->conf) return;
    if (o->backend->conf_free) o->backend->conf_free(o->conf);
    option_free(o->backend->options, o->conf);
    free(o->conf);
}

static bool fill(struct load *l, const struct backend *b, struct clock *clock) {
    while (l->n_free && l->begun < l->n) {
        struct request *r = l->free[--l->n_free];
        r->offset = BLOCK * (uint64_t)l->begun++;
        l->batch[l->n_batch++] = r;
    }
    if (!l->n_batch) return true;
    int64_t t = clock_now(clock);
    for (unsigned i = 0; i < l->n_batch; i++) l->batch[i]->t_submit = t;
    int took = b->submit(l->context, l->batch, l->n_batch);
    if (took < 0) return false;
    l->n_batch -= (unsigned)took;
    memmove(l->batch, l->batch + took, l->n_batch * sizeof *l->batch);
    return true;
}

static bool run(struct load *l, const struct backend *b, struct clock *clock) {
    while (l->finished < l->n) {
        if (!fill(l, b, clock)) return false;
        int n = b->reap(l->context, l->done, l->depth, 1, l->n_batch ? NS_PER_MS : PATIENCE);
        if (n < 0 || (n == 0 && !l->n_batch)) return false;
        for (int i = 0; i < n; i++) {
            const struct completion *c = &l->done[i];
            int64_t *t = &l->times[2 * (c->request->offset / BLOCK)];
            if (c->result != BLOCK) return false;
            t[0] = c->request->t_submit;
            t[1] = c->t_done;
            l->free[l->n_free++] = c->request;
        }
        l->finished += (size_t)n;
    }
    return true;
}

static bool allocate(struct load *l, unsigned char *buffers) {
    l->requests = calloc(l->depth, sizeof *l->requests);
    l->free = calloc(l->depth, sizeof *l->free);
    l->batch = calloc(l->depth, sizeof *l->batch);
    l->done = calloc(l->depth, sizeof *l->done);
    l->times = calloc(2 * l->n, sizeof *l->times);
    if (!buffers || !l->requests || !l->free || !l->batch || !l->done || !l->times) return false;
    memset(buffers, 0, (size_t)l->depth * BLOCK);
    memset(l->times, 0xff, 2 * l->n * sizeof *l->times); /* pages are there before the clock starts */
    for (unsigned i = 0; i < l->depth; i++) {
        l->requests[i] =
            (struct request){.buf = buffers + (size_t)i * BLOCK, .len = BLOCK, .slot = i, .op = IO_READ};
        l->free[l->n_free++] = &l->requests[i];
    }
    return true;
}

static int measure(struct object *o, struct load *l, struct clock *clock) {
    static struct kinds kinds;
    struct err err = {0};
    unsigned char *buffers = aligned_alloc(4096, (size_t)l->depth * BLOCK);
    struct attach_how how = {.depth = l->depth, .max_io = BLOCK, .buffers = buffers, .stride = BLOCK, .clock = clock,
                             .kinds = &kinds};
    int rc = 1;
    if (!allocate(l, buffers)) fputs("latency_truth: out of memory\n", stderr);
    else if (o->backend->attach(o->handle, &how, &l->context, &err) < 0) complain(&err);
    else if (!run(l, o->backend, clock)) {
        fprintf(stderr, "latency_truth: a read failed or never came back%s%s\n", kinds.n ? ": " : "",
                kinds.n ? kinds.kind[0].text : "");
    } else rc = 0;
    if (l->context) o->backend->detach(l->context);
    for (size_t i = 0; rc == 0 && i < l->n; i++)
        printf("%zu %lld %lld\n", i * BLOCK, (long long)l->times[2 * i], (long long)l->times[2 * i + 1]);
    free(buffers);
    free(l->requests);
    free(l->free);
    free(l->batch);
    free(l->done);
    free(l->times);
    return rc;
}

int main(int argc, char **argv) {
    struct object o = {0};
    struct err err = {0};
    struct clock clock;
    struct load load = {0};
    if (argc == 4) load = (struct load){.depth = (unsigned)atoi(argv[2]), .n = (size_t)atol(argv[3])};
    if (load.depth < 1 || load.n < 1) {
        fputs("usage: latency_truth URL DEPTH N\n", stderr);
        return 1;
    }
    clock_real_init(&clock);
    int rc = open_object(&o, argv[1], &clock, &err) < 0 ? complain(&err) : 0;
    if (rc == 0 && o.facts.size / BLOCK < load.n) {
        fputs("latency_truth: the target is too small for so many blocks\n", stderr);
        rc = 1;
    }
    if (rc == 0) rc = measure(&o, &load, &clock);
    close_object(&o);
    return rc;
}
