/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where a new backend starts: copy this file, put your name in place of "skeleton", add it to registry.c and to the
 * build, give it a row in tests/contract, and replace the memory buffer by your protocol. The comments say what each
 * function owes to the core; backend.h is the law. It is compiled and runs through the contract test, but is not
 * registered.
 *
 * Rules that hold everywhere below:
 *   - No exit, abort, assert or print. Errors of the control path go to struct err, with what was tried, the
 *     library's own words and what would help; those of the data path are negative errno and a kind.
 *   - No mutable variable at file scope: everything lives in the configuration, the handle or the context.
 *   - Of the project include only backend.h and src/base; your library's headers stay in your file.
 *   - Text that came from a server passes through text_safe before it goes into a message or a fact. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backends/backend.h"
#include "base/units.h"

/* ---- configuration: filled by configure and by the option table, never changed afterwards ---- */

struct skeleton_conf {
    uint64_t size;
};

/* The access keys, and the only place where they exist: help, manual and the echo of effective values are made from
 * it. A key that does nothing is a bug. Load keys (bs, iodepth, sync ...) belong to patterns and never stand here. */
static const struct option_entry skeleton_options[] = {
    {.name = "size", .type = OPTION_SIZE, .offset = offsetof(struct skeleton_conf, size), .min = 4096, .max = 1u << 30,
     .def = "16m", .value = "SIZE", .help = "size of the buffer"},
    {.name = NULL}
};

/* Takes host, port, path and user out of the URL. The defaults of the table are there already; the keys come later.
 * Nothing is connected here. What is allocated here is freed by conf_free (TEXT and SECRET keys are not: option_free
 * does that). */
static int skeleton_configure(const struct url *url, void *conf, struct err *err) {
    (void)conf;
    if (url->host) return err_set(err, STATUS_USAGE, "skeleton: there is no host \"%s\"; leave it out", url->host);
    return 0;
}

/* Everything that can be found wrong without a connection, once all keys are known. */
static int skeleton_check(const void *v, struct err *err) {
    const struct skeleton_conf *conf = v;
    if (conf->size % 512) return err_set(err, STATUS_USAGE, "size: must be a multiple of 512");
    return 0;
}

/* ---- the handle: one opened object; constant after open, so that threads share it without locks ---- */

struct handle {
    unsigned char *memory;
    uint64_t size;
    bool write;
};

/* Says what the object is. Facts are the truth about this object, asked of it, not wishes: the plan is checked
 * against them before any I/O. What was asked and what was answered goes to `negotiated`, what people should know to
 * `warnings`. */
static void skeleton_facts(const struct handle *h, struct facts *f) {
    char size[32];
    f->exists = true;
    f->kind = OBJECT_FILE;
    f->size = f->allocated = h->size;
    f->block = 512;            /* offsets and lengths are multiples of it, or the request fails with EINVAL */
    f->mem_align = 1;
    f->max_io = 1u << 20;      /* more than that is never submitted */
    f->max_depth = 0;          /* no limit of its own */
    f->dpofua = ANSWER_NO;     /* memory is never stable, so `stable` in completions is always false */
    f->volatile_cache = ANSWER_YES;
    f->can_flush = true;
    snprintf(f->summary, sizeof f->summary, "memory, %s", units_size_human(size, sizeof size, h->size));
    snprintf(f->engine, sizeof f->engine, "memcpy");
    kv_uint(&f->negotiated, "size", h->size);
}

/* May block. All three modes must be told apart: OPEN_READ never writes and never creates; OPEN_WRITE wants what
 * exists; OPEN_CREATE wants what does not, and makes it exclusively. On failure nothing is left behind: no
 * descriptor, no session, no half-made file. */
static int skeleton_open(const struct open_how *how, struct handle **out, struct facts *facts, struct err *err) {
    const struct skeleton_conf *conf = how->conf;
    if (how->mode == OPEN_CREATE)
        return err_set(err, STATUS_TARGET, "skeleton: cannot be created: every open has a buffer of its own");
    struct handle *h = calloc(1, sizeof *h);
    if (!h || !(h->memory = calloc(1, conf->size))) {
        free(h);
        return err_set(err, STATUS_TARGET, "skeleton: no memory for %llu bytes", (unsigned long long)conf->size);
    }
    h->size = conf->size;
    h->write = how->mode == OPEN_WRITE;
    skeleton_facts(h, facts);
    *out = h;
    return 0;
}

/* Every context has been detached by then. */
static void skeleton_close(struct handle *h) {
    if (!h) return;
    free(h->memory);
    free(h);
}

/* `remove`, `holes` and `wire_ios` are left NULL here. NULL means "cannot be done" or "not known"; there is no
 * fallback. */

/* ---- the context: one worker thread's own connections, rings and slots ---- */

struct answer_due {
    struct request *request;
    int64_t result;            /* bytes, or negative errno */
};

struct context {
    struct handle *handle;
    struct answer_due *due;    /* a ring of depth entries: answers that reap has not returned yet, oldest first */
    unsigned depth, head, n;
    struct clock *clock;
    struct kinds *kinds;
    uint64_t ios;
};

static void skeleton_detach(struct context *c);

/* In the thread that will use it; may block (connect, login). Everything that submit and reap need is allocated here.
 * Several contexts of one handle may exist at once, in different threads. */
static int skeleton_attach(struct handle *h, const struct attach_how *how, struct context **out, struct err *err) {
    struct context *c = calloc(1, sizeof *c);
    if (!c || !(c->due = calloc(how->depth, sizeof *c->due))) {
        skeleton_detach(c);
        return err_set(err, STATUS_TARGET, "skeleton: out of memory for %u requests", how->depth);
    }
    c->handle = h;
    c->depth = how->depth;
    c->clock = how->clock;
    c->kinds = how->kinds;
    *out = c;
    return 0;
}

/* Cancels what can be cancelled and waits for the rest: after this no lent request and no buffer is touched any more.
 * Also called for contexts that were lost. */
static void skeleton_detach(struct context *c) {
    if (!c) return;
    free(c->due);
    free(c);
}

/* ---- data path: no malloc, no lock, no system call per I/O where one per batch will do ---- */

static int64_t perform(struct context *c, const struct request *r) {
    struct handle *h = c->handle;
    if (r->op == IO_FLUSH) return 0; /* a flush has no buf, offset, len: they may hold anything */
    if ((r->offset | r->len) % 512) return -EINVAL;
    if (r->op == IO_WRITE && !h->write) return -EBADF; /* a handle of OPEN_READ never writes */
    if (r->offset >= h->size) return r->op == IO_READ ? 0 : -ENOSPC;
    uint64_t len = r->len < h->size - r->offset ? r->len : h->size - r->offset;
    if (r->op == IO_READ) memcpy(r->buf, h->memory + r->offset, len);
    else memcpy(h->memory + r->offset, r->buf, len);
    return (int64_t)len; /* short transfers are told, never hidden or repeated */
}

/* Takes the first k of n and returns k. Never waits: what cannot be sent now is not taken. There is no limit to keep
 * beyond the depth, for the engine never lends more than that; a target with a window of its own (CmdSN) takes fewer
 * and returns 0 when it is full. A request that is wrong by itself (EINVAL) is taken and comes back with its error: a
 * negative return is for a context that is lost. */
static int skeleton_submit(struct context *c, struct request *const *requests, unsigned n) {
    unsigned k = 0;
    for (; k < n && c->n < c->depth; k++, c->n++)
        c->due[(c->head + c->n) % c->depth] = (struct answer_due){requests[k], perform(c, requests[k])};
    return (int)k;
}

/* Returns up to `max` completions; waits for `min` of them, `timeout_ns` at most, also when signals come. Every lent
 * request comes back exactly once. `t_done` is clock_now() taken once, right after the system call that brought the
 * answers. With nothing to come it waits all the same: the engine sleeps in here until the next I/O is due. */
static int skeleton_reap(struct context *c, struct completion *out, unsigned max, unsigned min, int64_t timeout_ns) {
    int64_t now = clock_now(c->clock);
    unsigned got = 0;
    for (; got < max && c->n; got++, c->n--) {
        struct answer_due *a = &c->due[c->head];
        out[got] = (struct completion){.request = a->request, .result = a->result, .t_done = now};
        if (a->result < 0) /* a kind: a short stable name, and the words of who refused it */
            out[got].kind = (uint16_t)kinds_note(c->kinds, strerrorname_np((int)-a->result),
                                                 strerrordesc_np((int)-a->result));
        c->head = (c->head + 1) % c->depth;
    }
    c->ios += got;
    if (got < min && timeout_ns > 0)
        clock_wait_until(c->clock, timeout_ns < INT64_MAX - now ? now + timeout_ns : INT64_MAX);
    return (int)got;
}

/* Cumulative counts, asked for at most once a second by the owner. With wire_ios NULL, "wire_ios" is among them. */
static void skeleton_counters(struct context *c, struct kv *out) {
    kv_uint(out, "wire_ios", c->ios);
}

extern const struct backend backend_skeleton;
const struct backend backend_skeleton = {
    .name = "skeleton",
    .summary = "where a new backend starts",
    .options = skeleton_options,
    .conf_size = sizeof(struct skeleton_conf),
    .configure = skeleton_configure,
    .check = skeleton_check,
    .open = skeleton_open,
    .close = skeleton_close,
    .attach = skeleton_attach,
    .detach = skeleton_detach,
    .submit = skeleton_submit,
    .reap = skeleton_reap,
    .counters = skeleton_counters,
};
