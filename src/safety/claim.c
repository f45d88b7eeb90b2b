/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "safety/claim.h"

#include <stdlib.h>
#include <string.h>

#include "pattern/mark.h"
#include "safety/content.h"
#include "target/blockio.h"

#define WRITE_TRIES 3

void claim_place(struct claim *c, struct target *t, uint64_t from, uint64_t to) {
    uint32_t unit = t->facts.block > MARK_STEP ? t->facts.block : MARK_STEP;

    memset(c, 0, sizeof(*c));
    c->target = t;
    c->at = (from + unit - 1) / unit * unit;
    if (t->lost || !t->handle || t->facts.kind == OBJECT_NULL || c->at >= to || to - c->at < unit) return;
    c->unit = unit;
    c->note = (struct data_note){.offset = c->at, .bytes = c->bytes, .len = OWNER_SIZE,
                                .known_at = OWNER_TOKEN_AT, .known_len = sizeof(((struct owner *)0)->token)};
}

static int open_io(const struct claim *c, bool write, struct blockio **io, unsigned char **buf, struct err *err) {
    const struct target *t = c->target;
    /* One member is reached without the latency that delay= adds. */
    bool single = t->n_members == 1;
    const struct backend *backend = single ? t->member[0].backend : t->backend;
    struct handle *h = single ? t->member[0].handle : t->handle;

    *buf = malloc(c->unit);
    if (!*buf) return err_set(err, STATUS_TARGET, "no memory");
    if (blockio_open_road(backend, h, &t->facts, t->clock, 1, c->unit, write, blockio_first_road(backend, h), io, err) == 0) return 0;
    free(*buf);
    return -1;
}

static int failed(const struct claim *c, const char *what, struct err *err) {
    if (err->status != STATUS_INTERRUPTED) err->status = STATUS_TARGET;
    return err_prefix(err, "%s: %s the record of who writes to it", c->target->label, what);
}

static void look(const struct claim *c, const unsigned char *buf, struct claim_block *out) {
    out->whole = true;
    out->has_record = owner_of_block(buf, &out->owner);
    for (uint32_t i = 0; i < c->unit; i += MARK_STEP)
        if (data_look(buf + i, c->at + i, MARK_STEP) == DATA_FOREIGN) out->whole = false;
    out->sum = content_sum(buf, c->unit);
}

int claim_read(const struct claim *c, struct claim_block *out, struct err *err) {
    struct blockio *io;
    unsigned char *buf;

    memset(out, 0, sizeof(*out));
    if (open_io(c, false, &io, &buf, err) != 0) return failed(c, "reading", err);
    int rc = blockio_read(io, c->at, buf, c->unit, err);
    blockio_put_offs(io, &c->target->put_offs, &c->target->put_off_ns);
    blockio_close(io);
    if (rc == 0) look(c, buf, out);
    free(buf);
    return rc == 0 ? 0 : failed(c, "reading", err);
}

/* The record that is to be written: a write that failed may have arrived. */
static bool is_this(const struct claim_block *found, const struct claim *c) {
    return found->has_record && memcmp(found->owner.token, c->bytes + OWNER_TOKEN_AT, sizeof(found->owner.token)) == 0;
}

/* One session: reads the block, and writes over it if it is what it was. */
static int write_once(struct claim *c, const struct claim_block *as, struct data *data, bool *doubted, struct err *err) {
    struct claim_block now = {.sum = 0};
    struct blockio *io;
    unsigned char *buf;

    *doubted = false;
    if (open_io(c, true, &io, &buf, err) != 0) return -1;
    int64_t from = clock_now(c->target->clock);
    int rc = blockio_read(io, c->at, buf, c->unit, err);
    if (rc == 0) look(c, buf, &now);
    if (rc == 0 && now.sum != as->sum && !is_this(&now, c))
        rc = err_set(err, STATUS_TARGET, "its block was overwritten meanwhile, or another object by the same name is reached now");
    data_make(data, buf, c->at, c->unit);
    if (rc == 0) {
        rc = blockio_write(io, c->at, buf, c->unit, err);
        *doubted = rc != 0 && blockio_gave_up(io);
    }
    if (rc == 0 && c->target->facts.can_flush) rc = blockio_flush(io, NULL, err);
    c->took = clock_now(c->target->clock) - from;
    blockio_put_offs(io, &c->target->put_offs, &c->target->put_off_ns);
    blockio_close(io);
    free(buf);
    return rc;
}

int claim_write(struct claim *c, const struct owner *o, const struct claim_block *as, struct err *err) {
    struct data data;
    uint32_t run;
    uint64_t counter;
    bool doubted;
    int rc;

    memcpy(&run, o->token, sizeof(run));
    memcpy(&counter, o->token + sizeof(run), sizeof(counter));
    owner_encode(o, c->bytes);
    data_init(&data, run, counter >> 9, &c->note);
    /* A unit attention at the very first write: nothing of ours is on the object yet by which that session could know it
     * again. A new one reads the block again. */
    for (unsigned tries = 0; tries < WRITE_TRIES; tries++)
        if ((rc = write_once(c, as, &data, &doubted, err)) == 0 || !doubted) break;
    return rc == 0 ? 0 : failed(c, "writing", err);
}
