/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "engine/prepare.h"

#include <math.h>

#include "base/rng.h"
#include "engine/seal.h"
#include "pattern/mark.h"
#include "target/blockio.h"
#include "target/confirm.h"

#define STREAM_IO    (1u << 20)
#define STREAM_DEPTH 8
#define DEDUPE_UNIT  (128u << 10) /* of the fill: storage deduplicates blocks of up to so many bytes */
#define CHECK_BLOCKS 256
#define CHECK_SIZE   4096u
#define CHECK_TIME   (10 * NS_PER_SEC)

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

/* After the last write, and after one that failed: an object that is another one by now is the reason to give. */
static int confirm_filled(const struct target *t, const struct seal *seal, int result, struct err *err) {
    struct err other;
    if (result < 0 && err->status != STATUS_IO) return result;
    if (backend_stopped() || confirm_object(t->backend, t->handle, &t->facts, t->clock, seal, &other) == 0) return result;
    if (other.status == STATUS_INTERRUPTED) return result;
    *err = other;
    return -1;
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
    return op == IO_WRITE && result <= 0 ? confirm_filled(t, &seal, result, err) : result;
}

int prepare_fill(const struct prepare *p, struct err *err) {
    int result = stream(p, IO_WRITE, err);
    return result < 0 ? err_prefix(err, "%s: filling the working set", p->target->label) : result;
}

int prepare_read(const struct prepare *p, struct err *err) {
    int result = stream(p, IO_READ, err);
    return result < 0 ? err_prefix(err, "%s: reading for the cache policy", p->target->label) : result;
}

struct check {
    const struct prepare *p;
    unsigned n, sampled, zeros;
    int64_t until;
};

enum { CHECK_NO_TIME = 2 };

static int see_sample(void *arg, uint64_t offset, void *buf, size_t len) {
    struct check *c = arg;
    (void)offset;
    c->sampled++;
    c->zeros += mark_is_zero(buf, len);
    if (c->p->progress) c->p->progress(c->p->arg, c->sampled * len, c->n * len);
    return clock_now(c->p->target->clock) >= c->until ? CHECK_NO_TIME : 0;
}

int prepare_check(const struct prepare *p, unsigned *sampled, unsigned *zeros, struct err *err) {
    const struct target *t = p->target;
    uint32_t unit = t->facts.block > CHECK_SIZE ? t->facts.block : CHECK_SIZE;
    uint64_t blocks = (p->to - p->from) / unit, place[CHECK_BLOCKS];
    struct check c = {.p = p, .n = blocks < CHECK_BLOCKS ? (unsigned)blocks : CHECK_BLOCKS};
    struct blockio *io;
    struct rng rng;
    rng_seed(&rng, p->seed);
    for (uint64_t i = 0; i < c.n; i++) {
        uint64_t low = blocks * i / c.n, high = blocks * (i + 1) / c.n;
        place[i] = p->from + (low + rng_below(&rng, high - low)) * unit;
    }
    if (blockio_open(t->backend, t->handle, &t->facts, t->clock, BLOCKIO_LOOK_DEPTH, unit, false, &io, err) != 0)
        return err_prefix(err, "%s: looking at the working set", t->label);
    c.until = clock_now(t->clock) + CHECK_TIME;
    int result = blockio_read_places(io, place, c.n, unit, see_sample, &c, err);
    blockio_close(io);
    *sampled = c.sampled;
    *zeros = c.zeros;
    if (result == CHECK_NO_TIME) result = 0;
    return result < 0 ? err_prefix(err, "%s: looking at the working set", t->label) : result;
}

bool prepare_holes(const struct target *t, uint64_t from, uint64_t to, double *share) {
    struct clock clock;
    clock_real_init(&clock);
    int64_t until = clock_now(&clock) + PREPARE_HOLES_TIME;
    if (t->backend->holes && t->backend->holes(t->handle, from, to - from, until, share) == 0) return true;
    *share = NAN;
    if (clock_now(&clock) >= until) return false;
    if (t->facts.allocated == UINT64_MAX || t->facts.size == 0) return true;
    /* Allocated bytes say nothing of where: a file that is wholly allocated has no holes, another may. */
    if (t->facts.allocated >= t->facts.size) *share = 0;
    return true;
}
