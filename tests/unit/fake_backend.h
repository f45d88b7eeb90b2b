/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A backend over a file descriptor whose facts and faults the test sets. One struct fake is one object; it is the
 * configuration of each member that means it. Completions come in reverse order of submission. */
#ifndef TESTS_FAKE_BACKEND_H
#define TESTS_FAKE_BACKEND_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backends/backend.h"

#define FAKE_DEPTH 64

struct fake {
    int fd;
    struct facts facts;          /* what open answers */
    const char *identity_later;  /* instead of identity[0] once it is opened for writing */
    uint64_t size_later, incarnation_later;
    bool fail_open, fail_attach;
    bool fail_write_open;
    int open_handles, opens, creates, removes;
    enum open_mode last_mode;
    /* faults of the data path */
    unsigned take_at_most;       /* per submit; 0: all */
    unsigned refuse_submits;     /* so many calls take nothing */
    uint64_t error_at;           /* an I/O over this offset fails with EIO; UINT64_MAX: none */
    unsigned short_by;           /* each first try moves that much less */
    int lost_submit;             /* submit answers this negative errno after `lost_after` requests */
    unsigned lost_after;
    bool keeps_nothing;          /* writes are done, and forgotten */
    unsigned fail_from, fail_n;  /* so many reads fail with EIO after so many that work; n 0: none */
    unsigned asked, attaches;
    bool silent;                 /* nothing is ever answered */
    unsigned requests, reads, writes, flushes;
    uint64_t largest_len, last_sync;
    unsigned deepest;
    uint64_t highest_end;
};

struct handle {
    struct fake *fake;
    bool write;
};

struct context {
    struct handle *h;
    struct attach_how how;
    struct request *lent[FAKE_DEPTH];
    unsigned n;
    bool lost;
};

static inline void fake_init(struct fake *f, uint64_t size) {
    memset(f, 0, sizeof(*f));
    f->fd = memfd_create("fake", MFD_CLOEXEC);
    f->error_at = UINT64_MAX;
    f->facts.exists = true;
    f->facts.kind = OBJECT_LUN;
    f->facts.size = size;
    f->facts.allocated = UINT64_MAX;
    f->facts.block = 512;
    f->facts.mem_align = 512;
    f->facts.max_io = 1u << 20;
    if (f->fd < 0 || ftruncate(f->fd, (off_t)size) != 0) abort();
}

static inline void fake_free(struct fake *f) {
    if (f->fd >= 0) close(f->fd);
    f->fd = -1;
}

static inline int fake_open(const struct open_how *how, struct handle **out, struct facts *facts, struct err *err) {
    struct fake *f = *(struct fake *const *)how->conf;

    if (f->fail_open || (f->fail_write_open && how->mode != OPEN_READ)) return err_set(err, STATUS_TARGET, "open failed as told");
    if (how->mode == OPEN_CREATE) {
        if (f->facts.exists) return err_set(err, STATUS_TARGET, "it exists already");
        if (ftruncate(f->fd, (off_t)how->create_size) != 0) return err_set(err, STATUS_TARGET, "ftruncate");
        f->facts.exists = true;
        f->facts.size = how->create_size;
        if (!f->facts.identity[0][0]) strcpy(f->facts.identity[0], "file:9:9:1234");
        f->creates++;
    }
    *facts = f->facts;
    if (how->mode == OPEN_WRITE && f->identity_later) snprintf(facts->identity[0], sizeof(facts->identity[0]), "%s", f->identity_later);
    if (how->mode == OPEN_WRITE && f->size_later) facts->size = f->size_later;
    if (how->mode == OPEN_WRITE && f->incarnation_later) facts->incarnation = f->incarnation_later;
    kv_text(&facts->negotiated, "fake", "yes"); /* makes a leak of the lists visible */
    *out = calloc(1, sizeof(**out));
    if (!*out) abort();
    (*out)->fake = f;
    (*out)->write = how->mode != OPEN_READ;
    f->open_handles++;
    f->opens++;
    f->last_mode = how->mode;
    return 0;
}

static inline void fake_close(struct handle *h) {
    h->fake->open_handles--;
    free(h);
}

static inline int fake_remove(struct handle *h, struct err *err) {
    if (h->fake->creates == 0) return err_set(err, STATUS_TARGET, "it is another file by now");
    h->fake->removes++;
    h->fake->facts.exists = false;
    return 0;
}

static inline int fake_attach(struct handle *h, const struct attach_how *how, struct context **out, struct err *err) {
    if (h->fake->fail_attach) return err_set(err, STATUS_TARGET, "attach failed as told");
    if (how->depth > FAKE_DEPTH || (uintptr_t)how->buffers % 4096 != 0 || how->stride % 4096 != 0) abort();
    *out = calloc(1, sizeof(**out));
    if (!*out) abort();
    (*out)->h = h;
    (*out)->how = *how;
    h->fake->attaches++;
    return 0;
}

static inline void fake_detach(struct context *c) { free(c); }

static inline int fake_submit(struct context *c, struct request *const *requests, unsigned n) {
    struct fake *f = c->h->fake;

    if (f->lost_submit && f->requests >= f->lost_after) {
        c->lost = true;
        return f->lost_submit;
    }
    if (f->refuse_submits > 0) {
        f->refuse_submits--;
        return 0;
    }
    if (f->take_at_most && n > f->take_at_most) n = f->take_at_most;
    for (unsigned i = 0; i < n; i++) {
        const struct request *r = requests[i];
        bool more = c->how.more && r->slot >= c->how.first_more;
        size_t stride = more ? c->how.more_stride : c->how.stride;
        const unsigned char *base = more ? (unsigned char *)c->how.more + (r->slot - c->how.first_more) * stride
                                         : (unsigned char *)c->how.buffers + r->slot * stride;
        if (c->n >= c->how.depth || r->slot >= c->how.depth) abort();
        if (r->op != IO_FLUSH && ((const unsigned char *)r->buf < base ||
                                  (const unsigned char *)r->buf + r->len > base + stride)) abort();
        c->lent[c->n++] = requests[i];
        f->requests++;
    }
    if (c->n > f->deepest) f->deepest = c->n;
    return (int)n;
}

static inline int64_t fake_do(struct context *c, const struct request *r) {
    struct fake *f = c->h->fake;
    uint32_t len = r->len;

    if (r->op == IO_FLUSH) return f->flushes++, 0;
    if (r->offset % f->facts.block || r->len % f->facts.block || r->len == 0) return -EINVAL;
    if (f->error_at >= r->offset && f->error_at < r->offset + r->len) return -EIO;
    if (r->op == IO_READ && f->fail_n && f->asked++ - f->fail_from < f->fail_n) return -EIO;
    if (f->short_by && len > f->short_by && (uintptr_t)r->buf % 4096 == 0) len -= f->short_by;
    if (r->len > f->largest_len) f->largest_len = r->len;
    if (r->offset + len > f->highest_end) f->highest_end = r->offset + len;
    if (r->op == IO_READ) {
        f->reads++;
        return pread(f->fd, r->buf, len, (off_t)r->offset);
    }
    f->writes++;
    f->last_sync = r->sync;
    if (!c->h->write || !c->how.write) return -EBADF;
    if (f->keeps_nothing) return len;
    return pwrite(f->fd, r->buf, len, (off_t)r->offset);
}

static inline int fake_reap(struct context *c, struct completion *out, unsigned max, unsigned min, int64_t timeout_ns) {
    unsigned got = 0;

    if (c->h->fake->silent) {
        clock_wait_until(c->how.clock, clock_now(c->how.clock) + timeout_ns);
        return 0;
    }
    if (c->n == 0 && c->lost) return -ENOTCONN;
    if (min > max) abort();
    if (c->how.clock->now) clock_wait_until(c->how.clock, clock_now(c->how.clock) + 1000); /* virtual: 1 us an I/O */
    while (got < max && c->n > 0) {
        struct request *r = c->lent[--c->n];
        struct completion *done = &out[got++];
        *done = (struct completion){ .request = r, .t_done = clock_now(c->how.clock) };
        done->result = c->lost ? -ENOTCONN : fake_do(c, r);
        if (done->result < 0)
            done->kind = (uint16_t)kinds_note(c->how.kinds, c->lost ? "CONNECTION LOST" : "FAKE ERROR", "in the server's own words");
    }
    return (int)got;
}

static const struct backend fake_backend = {
    .name = "fake", .summary = "for tests", .conf_size = sizeof(struct fake *), .open = fake_open, .close = fake_close,
    .remove = fake_remove, .attach = fake_attach, .detach = fake_detach, .submit = fake_submit, .reap = fake_reap
};

#endif
