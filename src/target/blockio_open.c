/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "target/blockio_context.h"

/* Backends have timeouts of their own; this one is for a backend that has lost sight of a request. */
#define GUARD_NS (120 * NS_PER_SEC)

static uint32_t piece_limit(const struct facts *facts, uint32_t max_io) {
    uint32_t block = facts->block ? facts->block : 1;

    if (facts->max_io && max_io > facts->max_io) max_io = facts->max_io;
    max_io -= max_io % block;
    return max_io ? max_io : block;
}

static int allocate(struct blockio *b, struct err *err) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), align = b->mem_align > page ? b->mem_align : page;

    b->stride = (b->max_io + align - 1) / align * align;
    b->mapped = b->stride * b->depth + align - page; /* room to align by hand what is aligned to more than a page */
    void *map = mmap(NULL, b->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    b->buffers = map == MAP_FAILED ? NULL : map;
    b->requests = calloc(b->depth, sizeof(*b->requests));
    b->pieces = calloc(b->depth, sizeof(*b->pieces));
    b->free = calloc(b->depth, sizeof(struct request *));
    b->waiting = calloc(b->depth, sizeof(struct request *));
    b->done = calloc(b->depth, sizeof(*b->done));
    if (!b->buffers || !b->requests || !b->pieces || !b->free || !b->waiting || !b->done)
        return err_set(err, STATUS_TARGET, "no memory for %u buffers of %zu bytes", b->depth, b->stride);
    return 0;
}

unsigned char *blockio_buffer(const struct blockio *b, unsigned slot) {
    uintptr_t first = (uintptr_t)b->buffers, align = b->mem_align ? b->mem_align : 1;

    return b->buffers + ((first + align - 1) / align * align - first) + slot * b->stride;
}

unsigned blockio_roads(const struct backend *backend, const struct handle *h) {
    unsigned n = backend->roads && h ? backend->roads(h) : 1;
    return n ? n : 1;
}

unsigned blockio_first_road(const struct backend *backend, const struct handle *h) {
    return blockio_roads(backend, h) > 1 ? 1 : 0;
}

static int open_how(const struct backend *backend, struct handle *h, const struct facts *facts, struct clock *clock,
                    unsigned depth, uint32_t max_io, struct attach_how how, struct blockio **out, struct err *err) {
    struct blockio *b = calloc(1, sizeof(*b));

    *out = NULL;
    if (!b) return err_set(err, STATUS_TARGET, "no memory");
    b->backend = backend;
    b->clock = clock;
    b->patience = GUARD_NS;
    b->block = facts->block ? facts->block : 1;
    b->mem_align = facts->mem_align;
    b->max_io = piece_limit(facts, max_io);
    b->stripe = kv_get_uint(&facts->negotiated, "stripe_bytes", 0);
    b->depth = depth ? depth : 1;
    if (facts->max_depth && b->depth > facts->max_depth) b->depth = facts->max_depth;
    if (allocate(b, err) != 0) goto fail;
    for (unsigned slot = 0; slot < b->depth; slot++) {
        b->requests[slot].slot = slot;
        b->free[b->n_free++] = &b->requests[slot];
    }
    how.looks = true;
    how.depth = b->depth;
    how.max_io = b->max_io;
    how.buffers = blockio_buffer(b, 0);
    how.stride = b->stride;
    how.clock = clock;
    how.kinds = &b->kinds;
    if (backend->attach(h, &how, &b->context, err) != 0) {
        b->context = NULL;
        goto fail;
    }
    *out = b;
    return 0;
fail:
    blockio_close(b);
    return -1;
}

int blockio_open(const struct backend *backend, struct handle *h, const struct facts *facts, struct clock *clock,
                 unsigned depth, uint32_t max_io, bool write, struct blockio **out, struct err *err) {
    return blockio_open_road(backend, h, facts, clock, depth, max_io, write, 0, out, err);
}

int blockio_open_road(const struct backend *backend, struct handle *h, const struct facts *facts, struct clock *clock,
                      unsigned depth, uint32_t max_io, bool write, unsigned road, struct blockio **out,
                      struct err *err) {
    const struct attach_how how = {.write = write, .road = road};
    return open_how(backend, h, facts, clock, depth, max_io, how, out, err);
}

int blockio_open_sealed(const struct backend *backend, struct handle *h, const struct facts *facts, struct clock *clock,
                        unsigned depth, uint32_t max_io, const struct seal *seal, struct blockio **out, struct err *err) {
    const struct attach_how how = {.write = true, .seal = *seal};
    if (open_how(backend, h, facts, clock, depth, max_io, how, out, err) != 0) return -1;
    struct blockio *b = *out;
    b->sealed = h, b->facts = facts, b->seal = *seal;
    return 0;
}

void blockio_close(struct blockio *b) {
    if (!b) return;
    /* First of all: until detach is over the backend may still write into the buffers. */
    if (b->context) b->backend->detach(b->context);
    if (b->buffers) munmap(b->buffers, b->mapped);
    free(b->requests);
    free(b->pieces);
    free(b->free);
    free(b->waiting);
    free(b->done);
    free(b);
}

void blockio_put_offs(struct blockio *b, uint64_t *n, uint64_t *ns) {
    struct kv counted = {0};
    if (!b->backend->counters) return;
    b->backend->counters(b->context, &counted);
    *n += kv_get_uint(&counted, "retries", 0);
    *ns += kv_get_uint(&counted, "retry_wait_ns", 0);
    kv_free(&counted);
}

void blockio_patience(struct blockio *b, int64_t ns) {
    b->patience = ns;
}

bool blockio_track(const struct blockio *b, const struct handle *h, const char *name, double *value) {
    const struct track *list = b->backend->tracks && b->backend->sample ? b->backend->tracks(h) : NULL;
    double values[BACKEND_TRACKS];

    for (unsigned i = 0; list && i < BACKEND_TRACKS && list[i].name; i++) {
        if (strcmp(list[i].name, name) != 0) continue;
        b->backend->sample(b->context, values);
        *value = values[i];
        return true;
    }
    return false;
}
