/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "engine/prepare.h"

#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "engine/seal.h"
#include "pattern/mark.h"
#include "target/blockio.h"

#define STREAM_IO    (1u << 20)
#define STREAM_DEPTH 8
#define DEDUPE_UNIT  (128u << 10) /* of the fill: storage deduplicates blocks of up to so many bytes */
#define CHECK_BLOCKS 256
#define CHECK_SIZE   4096u

struct pass {
    const struct prepare *p;
    struct data data;
    uint64_t done;
};

static int step(struct pass *pass, size_t len) {
    pass->done += len;
    if (pass->p->progress) pass->p->progress(pass->p->arg, pass->done, pass->p->to - pass->p->from);
    return *pass->p->interrupted ? 1 : 0;
}

static int make_data(void *arg, uint64_t offset, void *buf, size_t len) {
    struct pass *pass = arg;
    size_t unit = pass->p->data.dedupe ? DEDUPE_UNIT : len;
    for (size_t at = 0; at < len; at += unit)
        data_make(&pass->data, (char *)buf + at, offset + at, len - at < unit ? len - at : unit);
    return step(pass, len);
}

static int see_data(void *arg, uint64_t offset, void *buf, size_t len) {
    (void)offset;
    (void)buf;
    return step(arg, len);
}

static uint32_t stream_io(const struct facts *f) {
    return f->max_io && f->max_io < STREAM_IO ? f->max_io : STREAM_IO;
}

static int stream(const struct prepare *p, enum io_op op, struct err *err) {
    struct target *t = p->target;
    struct blockio *io;
    struct pass pass = {.p = p};
    unsigned depth = t->facts.max_depth && t->facts.max_depth < STREAM_DEPTH ? t->facts.max_depth : STREAM_DEPTH;
    /* Numbered by their places: two parts of one target that are filled apart never come to the same numbers. */
    data_init(&pass.data, p->run_tag, p->from / MARK_STEP, p->note);
    data_choose(&pass.data, &p->data);
    const struct seal seal = seal_of_note(p->note);
    int opened = op == IO_WRITE ? blockio_open_sealed(t->backend, t->handle, &t->facts, t->clock, depth,
                                                      stream_io(&t->facts), &seal, &io, err)
                                : blockio_open(t->backend, t->handle, &t->facts, t->clock, depth, stream_io(&t->facts),
                                               false, &io, err);
    if (opened != 0) return -1;
    int result =
        blockio_stream(io, op, SYNC_NONE, p->from, p->to - p->from, op == IO_WRITE ? make_data : see_data, &pass, err);
    if (result == 0 && op == IO_WRITE && t->facts.can_flush) result = blockio_flush(io, NULL, err);
    blockio_put_offs(io, &t->put_offs, &t->put_off_ns);
    blockio_close(io);
    return result;
}

int prepare_fill(const struct prepare *p, struct err *err) {
    int result = stream(p, IO_WRITE, err);
    return result < 0 ? err_prefix(err, "%s: filling the working set", p->target->label) : result;
}

int prepare_read(const struct prepare *p, struct err *err) {
    int result = stream(p, IO_READ, err);
    return result < 0 ? err_prefix(err, "%s: reading for the cache policy", p->target->label) : result;
}

int prepare_check(const struct prepare *p, unsigned *sampled, unsigned *zeros, struct err *err) {
    const struct target *t = p->target;
    uint32_t unit = t->facts.block > CHECK_SIZE ? t->facts.block : CHECK_SIZE;
    uint64_t blocks = (p->to - p->from) / unit, n = blocks < CHECK_BLOCKS ? blocks : CHECK_BLOCKS;
    struct blockio *io;
    struct rng rng;
    int result = 0;
    *sampled = *zeros = 0;
    void *buf = aligned_alloc(4096, unit < 4096 ? 4096 : unit);
    if (!buf) return err_set(err, STATUS_TARGET, "no memory");
    rng_seed(&rng, p->seed);
    if (blockio_open(t->backend, t->handle, &t->facts, t->clock, 1, unit, false, &io, err) != 0) {
        free(buf);
        return -1;
    }
    for (uint64_t i = 0; i < n && result == 0; i++) {
        uint64_t low = blocks * i / n, high = blocks * (i + 1) / n;
        uint64_t offset = p->from + (low + rng_below(&rng, high - low)) * unit;
        result = blockio_read(io, offset, buf, unit, err);
        if (result) break;
        (*sampled)++;
        *zeros += mark_is_zero(buf, unit);
        if (p->progress) p->progress(p->arg, (i + 1) * unit, n * unit);
        if (*p->interrupted) result = 1;
    }
    blockio_close(io);
    free(buf);
    return result < 0 ? err_prefix(err, "%s: looking at the working set", t->label) : result;
}

double prepare_holes(const struct target *t, uint64_t from, uint64_t to) {
    double share;
    if (t->backend->holes && t->backend->holes(t->handle, from, to - from, &share) == 0) return share;
    if (t->facts.allocated == UINT64_MAX || t->facts.size == 0) return NAN;
    /* Allocated bytes say nothing of where: a file that is wholly allocated has no holes, another may. */
    return t->facts.allocated >= t->facts.size ? 0 : NAN;
}
