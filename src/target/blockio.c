/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target/blockio_context.h"
#include "target/confirm.h"

/* One reap waits no longer, so that the guard is looked at, and whether the user wants the end. */
#define REAP_NS (100 * NS_PER_MS)

/* One call's work. */
struct job {
    enum io_op op;
    enum io_sync sync;
    uint64_t at, end; /* what has no piece yet */
    const uint64_t *place; /* of blockio_read_places: at and end count these, each a piece of `each` bytes */
    uint32_t each;
    unsigned depth;
    int (*make)(struct job *job, uint64_t offset, void *buf, size_t len); /* before a write goes out; may be NULL */
    int (*see)(struct job *job, uint64_t offset, void *buf, size_t len);  /* after a read came; may be NULL */
    int (*fill)(void *arg, uint64_t offset, void *buf, size_t len);       /* of blockio_stream */
    void *arg;
    unsigned char *user; /* of blockio_read, blockio_write: where `start` lies in memory */
    uint64_t start;
    int64_t latency; /* of the last completion */
    int stop;        /* nonzero: make no more pieces, drain, return this */
    struct err *err;
};

/* ---- errors ---- */

static const char *op_words(enum io_op op) {
    return op == IO_READ ? "reading" : op == IO_WRITE ? "writing" : "flushing";
}

/* The first failure is the one that tells; later ones mostly follow from it. */
static void job_fail(struct job *job, enum status status, const struct piece *piece, const char *name,
                     const char *text) {
    char where[64] = "";

    if (job->stop) return;
    job->stop = -1;
    if (piece && job->op != IO_FLUSH)
        snprintf(where, sizeof(where), " %" PRIu32 " bytes at offset %" PRIu64, piece->len, piece->offset);
    err_set(job->err, status, "%s%s: %s%s%s", op_words(job->op), where, name, text && *text ? ": " : "",
            text ? text : "");
}

/* What the backend gave as the reason why it gave the context up; NULL: none. */
static const struct kind *why_lost(const struct blockio *b) {
    return b->kinds.lost ? &b->kinds.kind[b->kinds.lost - 1] : NULL;
}

bool blockio_gave_up(const struct blockio *b) {
    const struct kind *why = why_lost(b);
    return why && strcmp(why->name, "LUN unknown") == 0;
}

/* A connection that stands, and has answered all the small questions of opening, but brings no data. */
static void hint_size(const struct blockio *b, const struct job *job) {
    size_t n = strlen(job->err->msg);

    if (!b->backend->pings || b->came || job->op != IO_READ || !strstr(job->err->msg, "timeout") || strstr(job->err->msg, "MTU")) return;
    snprintf(job->err->msg + n, sizeof(job->err->msg) - n, "; small answers came, the data of a read did not: packets of full size "
             "may be lost on the way (compare the MTU of both ends and of all between)");
}

static void job_lost(struct blockio *b, struct job *job, int error) {
    const struct kind *why = why_lost(b);
    b->lost = true;
    job_fail(job, STATUS_TARGET, NULL, why ? why->name : "the connection is lost", why ? why->text : strerror(-error));
}

/* ---- the loop ---- */

/* An I/O over the end of a stripe would run on in the same member: to touch every byte, pieces end there. */
static uint32_t piece_length(const struct blockio *b, uint64_t at, uint64_t end) {
    uint64_t len = end - at < b->max_io ? end - at : b->max_io;

    if (b->stripe && len > b->stripe - at % b->stripe) len = b->stripe - at % b->stripe;
    return (uint32_t)len;
}

static void make_pieces(struct blockio *b, struct job *job) {
    while (!job->stop && job->at < job->end && b->n_free > 0 && b->lent + b->n_waiting < job->depth) {
        struct request *r = b->free[--b->n_free];
        struct piece *piece = &b->pieces[r->slot];

        *piece = (struct piece){.offset = job->place ? job->place[job->at] : job->at};
        piece->len = job->place ? job->each : piece_length(b, job->at, job->end);
        r->op = (uint8_t)job->op;
        r->sync = (uint8_t)job->sync;
        r->buf = job->op == IO_FLUSH ? NULL : blockio_buffer(b, r->slot);
        r->offset = job->op == IO_FLUSH ? 0 : piece->offset;
        r->len = job->op == IO_FLUSH ? 0 : piece->len;
        int stop = job->make ? job->make(job, piece->offset, r->buf, piece->len) : 0;
        if (stop) {
            job->stop = stop;
            b->free[b->n_free++] = r;
            return;
        }
        job->at += job->place ? 1 : piece->len;
        b->waiting[b->n_waiting++] = r;
    }
}

/* True if the backend took something. */
static bool send_waiting(struct blockio *b, struct job *job) {
    if (b->n_waiting == 0) return false;
    int64_t now = clock_now(b->clock);
    for (unsigned i = 0; i < b->n_waiting; i++) b->waiting[i]->t_submit = now;
    int k = b->backend->submit(b->context, b->waiting, b->n_waiting);
    if (k < 0) {
        job_lost(b, job, k);
        return false;
    }
    b->lent += (unsigned)k;
    b->n_waiting -= (unsigned)k;
    memmove(b->waiting, b->waiting + k, b->n_waiting * sizeof(struct request *));
    return k > 0;
}

static void give_back(struct blockio *b, struct request *r) {
    b->free[b->n_free++] = r;
}

/* What never went out is dropped when the job has stopped. */
static void drop_waiting(struct blockio *b) {
    while (b->n_waiting > 0) give_back(b, b->waiting[--b->n_waiting]);
}

/* A target may move less than was asked for; the rest is asked for again. True if there is such a rest. */
static bool continue_piece(struct blockio *b, struct job *job, struct request *r, int64_t moved) {
    uint32_t align = b->block > b->mem_align ? b->block : b->mem_align;

    if (job->stop || moved <= 0 || moved >= (int64_t)r->len || (align > 1 && moved % align != 0)) return false;
    b->pieces[r->slot].moved += (uint32_t)moved;
    r->buf = (unsigned char *)r->buf + moved;
    r->offset += (uint64_t)moved;
    r->len -= (uint32_t)moved;
    b->waiting[b->n_waiting++] = r;
    return true;
}

static void complete(struct blockio *b, struct job *job, const struct completion *c) {
    struct request *r = c->request;
    struct piece *piece = &b->pieces[r->slot];

    b->lent--;
    job->latency = c->t_done - r->t_submit;
    if (c->result < 0) {
        const char *name = strerror((int)-c->result), *text = NULL;
        if (c->kind < b->kinds.n) name = b->kinds.kind[c->kind].name, text = b->kinds.kind[c->kind].text;
        job_fail(job, STATUS_IO, piece, name, text);
        hint_size(b, job);
    } else if (job->op != IO_FLUSH && c->result != (int64_t)r->len) {
        if (continue_piece(b, job, r, c->result)) return;
        char text[96];
        snprintf(text, sizeof(text), "only %" PRIu64 " bytes were moved", piece->moved + (uint64_t)c->result);
        job_fail(job, STATUS_IO, piece, job->op == IO_READ ? "short read" : "short write", text);
    } else if (!job->stop && job->see) {
        int stop = job->see(job, piece->offset, job->op == IO_FLUSH ? NULL : blockio_buffer(b, r->slot), piece->len);
        if (stop) job->stop = stop;
    }
    b->came = b->came || (c->result > 0 && job->op == IO_READ);
    give_back(b, r);
}

static int reap(struct blockio *b, struct job *job) {
    int n = b->backend->reap(b->context, b->done, b->depth, 1, REAP_NS);

    if (n < 0) {
        job_lost(b, job, n);
        return n;
    }
    for (int i = 0; i < n; i++) complete(b, job, &b->done[i]);
    return n;
}

/* When a connection is lost, every request comes back as failed first, and the loss itself is said only when asked
 * again. It was the target, not an I/O: the first failure's words stay only where there is no reason of the loss. */
static void see_loss(struct blockio *b, struct job *job) {
    if (b->lost || b->backend->reap(b->context, b->done, b->depth, 0, 0) >= 0) return;
    const struct kind *why = why_lost(b);
    b->lost = true;
    job->err->status = STATUS_TARGET;
    if (!why) return;
    err_set(job->err, STATUS_TARGET, "%s: %s: %s", op_words(job->op), why->name, why->text);
    hint_size(b, job);
}

/* Somebody wants the end. True: what is out has been waited for long enough; detach will fetch it. */
static bool has_no_patience(struct blockio *b, struct job *job, int64_t *since) {
    if (!backend_stopped()) return false;
    if (!job->stop) {
        job->stop = 1;
        err_set(job->err, STATUS_INTERRUPTED, "interrupted");
    }
    if (*since == 0) *since = clock_now(b->clock);
    if (b->lent == 0 || clock_now(b->clock) - *since < BLOCKIO_PATIENCE) return false;
    b->lost = true;
    return true;
}

/* Before anything more is written, where this client stood still. */
static void stood_still(struct blockio *b, struct job *job) {
    struct err err;
    if (!b->sealed || job->op != IO_WRITE || b->backend->asks_after_standstill ||
        confirm_object(b->backend, b->sealed, b->facts, b->clock, &b->seal, &err) == 0)
        return;
    job_fail(job, STATUS_TARGET, NULL, "after this client stood still", err.msg);
    b->lost = true;
}

static int run(struct blockio *b, struct job *job) {
    int64_t since = 0, last = clock_now(b->clock), now, guard = last + b->patience;

    if (b->lost) return err_set(job->err, STATUS_TARGET, "%s: the connection was lost before", op_words(job->op));
    for (;;) {
        if (has_no_patience(b, job, &since)) {
            drop_waiting(b);
            return job->stop;
        }
        if ((now = clock_now(b->clock)) - last >= CONFIRM_STANDSTILL) stood_still(b, job);
        last = now;
        make_pieces(b, job);
        bool moved = !job->stop && send_waiting(b, job);
        if (job->stop) drop_waiting(b);
        if (b->lent == 0 && b->n_waiting == 0) {
            if (job->stop < 0) see_loss(b, job);
            if (job->stop || job->at >= job->end) return job->stop;
            continue;
        }
        int n = reap(b, job);
        if (n < 0) { /* nothing is lent any more */
            drop_waiting(b);
            return job->stop;
        }
        if (n > 0 || moved) {
            guard = clock_now(b->clock) + b->patience;
        } else if (clock_now(b->clock) >= guard) {
            char text[96], name[40];
            snprintf(text, sizeof(text), "%u requests are without an answer", b->lent + b->n_waiting);
            snprintf(name, sizeof(name), "nothing moved for %d s", (int)(b->patience / NS_PER_SEC));
            job_fail(job, STATUS_TARGET, NULL, name, text);
            b->lost = true;
            drop_waiting(b);
            return job->stop;
        }
    }
}

/* ---- what others call ---- */

static int check_range(const struct blockio *b, enum io_op op, uint64_t offset, uint64_t len, struct err *err) {
    if (offset % b->block == 0 && len % b->block == 0 && len <= UINT64_MAX - offset) return 0;
    return err_set(err, STATUS_IO,
                   "%s %" PRIu64 " bytes at offset %" PRIu64 ": both must be multiples of the block, %" PRIu32 " bytes",
                   op_words(op), len, offset, b->block);
}

static int check_length(const struct blockio *b, uint32_t len, struct err *err) {
    if (len > 0 && len <= b->max_io) return 0;
    return err_set(err, STATUS_IO, "reading %" PRIu32 " bytes at once: from %" PRIu32 " to %" PRIu32 " are possible",
                   len, b->block, b->max_io);
}

static int copy_in(struct job *job, uint64_t offset, void *buf, size_t len) {
    memcpy(buf, job->user + (offset - job->start), len);
    return 0;
}

static int copy_out(struct job *job, uint64_t offset, void *buf, size_t len) {
    memcpy(job->user + (offset - job->start), buf, len);
    return 0;
}

static int call_fill(struct job *job, uint64_t offset, void *buf, size_t len) {
    return job->fill(job->arg, offset, buf, len);
}

int blockio_read(struct blockio *b, uint64_t offset, void *buf, size_t len, struct err *err) {
    struct job job = {.op = IO_READ, .at = offset, .end = offset + len, .depth = b->depth, .see = copy_out,
                      .user = buf, .start = offset, .err = err};

    return check_range(b, IO_READ, offset, len, err) != 0 ? -1 : run(b, &job);
}

int blockio_write(struct blockio *b, uint64_t offset, const void *buf, size_t len, struct err *err) {
    /* The cast only drops const: a write job reads from `user`. */
    struct job job = {.op = IO_WRITE, .at = offset, .end = offset + len, .depth = b->depth, .make = copy_in,
                      .user = (unsigned char *)(uintptr_t)buf, .start = offset, .err = err};

    return check_range(b, IO_WRITE, offset, len, err) != 0 ? -1 : run(b, &job);
}

/* Where the target moves less at once. */
static int read_in_parts(struct blockio *b, const uint64_t *place, size_t n, uint32_t len,
                         int (*see)(void *arg, uint64_t offset, void *buf, size_t len), void *arg, struct err *err) {
    void *buf = malloc(len);
    int rc = buf ? 0 : err_set(err, STATUS_TARGET, "no memory");

    for (size_t i = 0; i < n && rc == 0; i++) {
        rc = blockio_read(b, place[i], buf, len, err);
        if (rc == 0) rc = see(arg, place[i], buf, len);
    }
    free(buf);
    return rc;
}

int blockio_read_places(struct blockio *b, const uint64_t *place, size_t n, uint32_t len,
                        int (*see)(void *arg, uint64_t offset, void *buf, size_t len), void *arg, struct err *err) {
    struct job job = {.op = IO_READ, .end = n, .place = place, .each = len, .depth = b->depth,
                      .see = call_fill, .fill = see, .arg = arg, .err = err};

    for (size_t i = 0; i < n; i++)
        if (check_range(b, IO_READ, place[i], len, err) != 0) return -1;
    if (len > b->max_io) return read_in_parts(b, place, n, len, see, arg, err);
    return run(b, &job);
}

int blockio_ping(struct blockio *b, uint64_t offset, uint32_t len, int64_t *latency, struct err *err) {
    struct job job = {.op = IO_READ, .at = offset, .end = offset + len, .depth = 1, .err = err};

    if (check_range(b, IO_READ, offset, len, err) != 0 || check_length(b, len, err) != 0) return -1;
    if (run(b, &job) != 0) return -1;
    *latency = job.latency;
    return 0;
}

int blockio_flush(struct blockio *b, int64_t *latency, struct err *err) {
    /* One byte of nowhere: a single piece, whose range the request does not carry. */
    struct job job = {.op = IO_FLUSH, .at = 0, .end = 1, .depth = 1, .err = err};

    if (run(b, &job) != 0) return -1;
    if (latency) *latency = job.latency;
    return 0;
}

int blockio_stream(struct blockio *b, enum io_op op, enum io_sync sync, uint64_t offset, uint64_t len,
                   int (*fill)(void *arg, uint64_t offset, void *buf, size_t len), void *arg, struct err *err) {
    struct job job = {.op = op, .sync = sync, .at = offset, .end = offset + len, .depth = b->depth,
                      .fill = fill, .arg = arg, .err = err};

    if (check_range(b, op, offset, len, err) != 0) return -1;
    if (fill && op == IO_WRITE) job.make = call_fill;
    if (fill && op == IO_READ) job.see = call_fill;
    return run(b, &job);
}
