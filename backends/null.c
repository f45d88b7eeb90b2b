/* SPDX-License-Identifier: GPL-2.0-or-later */
/* null: no I/O. It measures the tool itself, and is the test double: latencies, errors, short transfers and a lost
 * target on demand, in real or virtual time.
 *
 * A request is due at the time of its submit plus a latency; reap returns what is due, and waits on the attach clock
 * for the next due time, so that a virtual clock jumps exactly there. No data is kept or delivered: buffers are not
 * touched. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/backend.h"
#include "base/rng.h"
#include "base/units.h"

#define NULL_SERVERS 1024

enum null_dist { DIST_FIXED, DIST_UNIFORM, DIST_EXPONENTIAL };
static const char *const dist_names[] = {"fixed", "uniform", "exponential", NULL};

struct null_conf {
    uint64_t delay;
    uint64_t size, lat, jitter, errors, shorts, error_seed, block, max_io, max_depth, lost_after, servers;
    int dist;
    bool write_cache, read_only;
    char *identity;
};

struct handle {
    struct null_conf conf; /* `identity` is not kept */
    bool write;
};

struct pending {
    struct completion done; /* until it is returned, t_done is when it is due */
    uint64_t seq;           /* equal due times complete in order of submit */
};

struct run {                 /* requests of one submit, alike, that fall due together */
    int64_t due, result;
    unsigned n;
    uint16_t kind;
    bool stable, whole;      /* whole: all bytes were moved, and `result` is each one's length; else n is 1 */
};

struct context {
    struct request **line;   /* `fifo`: what is lent, in order of submit, which is that of the due times */
    struct run *runs;        /*         the same by runs */
    struct pending *heap;    /* else: a binary heap */
    unsigned head, n, run_head, n_runs, mask, depth;
    bool fifo, plain;        /* plain: one fixed latency, no servers, nothing injected */
    bool faults, write, write_cache;
    uint64_t size, block_mask;
    unsigned plain_ops, stable_ops; /* a bit per op and sync (op_bit): served by submit_plain; answered as stable */
    int64_t lat;
    struct clock *clock;
    uint64_t credits;        /* completions until the context is lost */
    int lost;
    struct kinds *kinds;
    struct null_conf conf;
    struct rng latency, fault;
    int64_t *server_free;    /* when each server is done with what it has; NULL: as many servers as requests */
    uint64_t seq, completed, errors, shorts;
};

static const struct option_entry null_options[] = {
    {.name = "size", .type = OPTION_SIZE, .offset = offsetof(struct null_conf, size), .min = 4096, .max = 1ULL << 62,
     .def = "1t", .value = "SIZE", .help = "size of the object"},
    {.name = "lat", .type = OPTION_TIME, .offset = offsetof(struct null_conf, lat), .max = 3600ULL * NS_PER_SEC,
     .def = "0", .value = "TIME", .help = "latency of every request (the mean, where it varies)"},
    {.name = "lat_dist", .type = OPTION_ENUM, .offset = offsetof(struct null_conf, dist), .names = dist_names,
     .def = "fixed", .value = "fixed|uniform|exponential", .help = "how latencies are distributed"},
    {.name = "jitter", .type = OPTION_TIME, .offset = offsetof(struct null_conf, jitter), .max = 3600ULL * NS_PER_SEC,
     .def = "0", .value = "TIME", .help = "lat_dist=uniform: latencies are lat minus to lat plus this"},
    {.name = "servers", .type = OPTION_UINT, .offset = offsetof(struct null_conf, servers), .max = NULL_SERVERS,
     .def = "0", .value = "N", .help = "requests served at once per context, others queue; 0: all"},
    {.name = "errors", .type = OPTION_UINT, .offset = offsetof(struct null_conf, errors), .max = 1000000,
     .def = "0", .value = "PPM", .help = "requests per million that fail with EIO"},
    {.name = "short", .type = OPTION_UINT, .offset = offsetof(struct null_conf, shorts), .max = 1000000,
     .def = "0", .value = "PPM", .help = "reads and writes per million that move only half of their bytes"},
    {.name = "error_seed", .type = OPTION_UINT, .offset = offsetof(struct null_conf, error_seed),
     .def = "1", .value = "N", .help = "seed of errors, short transfers and varying latencies"},
    {.name = "lost_after", .type = OPTION_UINT, .offset = offsetof(struct null_conf, lost_after),
     .def = "0", .value = "N", .help = "a context is lost after N completions; 0: never"},
    {.name = "block", .type = OPTION_SIZE, .offset = offsetof(struct null_conf, block), .min = 1, .max = 65536,
     .def = "512", .value = "SIZE", .help = "block size, a power of two"},
    {.name = "max_io", .type = OPTION_SIZE, .offset = offsetof(struct null_conf, max_io), .min = 512, .max = 1U << 30,
     .def = "64m", .value = "SIZE", .help = "largest request"},
    {.name = "max_depth", .type = OPTION_UINT, .offset = offsetof(struct null_conf, max_depth), .max = 1U << 20,
     .def = "0", .value = "N", .help = "largest depth per context; 0: no limit"},
    {.name = "write_cache", .type = OPTION_BOOL, .offset = offsetof(struct null_conf, write_cache),
     .def = "yes", .value = "yes|no", .help = "what is answered about a volatile write cache"},
    {.name = "read_only", .type = OPTION_BOOL, .offset = offsetof(struct null_conf, read_only),
     .def = "no", .value = "yes|no", .help = "refuses writes"},
    {.name = "delay", .type = OPTION_TIME, .offset = offsetof(struct null_conf, delay), .max = 60 * NS_PER_SEC,
     .def = "0", .value = "TIME", .help = "artificial latency, added to each I/O"},
    {.name = "identity", .type = OPTION_TEXT, .offset = offsetof(struct null_conf, identity),
     .value = "NAME", .help = "identity of the object; two targets with one identity are the same object"},
    {.name = NULL}
};

static int null_configure(const struct url *url, void *conf, struct err *err) {
    (void)conf;
    if (url->host || (url->path && *url->path))
        return err_set(err, STATUS_USAGE, "a null target has neither host nor path: null:?size=1g&lat=100us");
    return 0;
}

static int null_check(const void *v, struct err *err) {
    const struct null_conf *conf = v;
    if (conf->block & (conf->block - 1)) return err_set(err, STATUS_USAGE, "block: must be a power of two");
    if (conf->size % conf->block) return err_set(err, STATUS_USAGE, "size: must be a multiple of block");
    if (conf->max_io < conf->block) return err_set(err, STATUS_USAGE, "max_io: must be at least block");
    if (conf->jitter && conf->dist != DIST_UNIFORM)
        return err_set(err, STATUS_USAGE, "jitter: needs lat_dist=uniform");
    if (conf->jitter > conf->lat) return err_set(err, STATUS_USAGE, "jitter: must not be more than lat");
    if (conf->errors + conf->shorts > 1000000)
        return err_set(err, STATUS_USAGE, "errors, short: together at most 1000000 per million");
    return 0;
}

static void null_facts(const struct null_conf *conf, struct facts *f) {
    f->exists = true;
    f->kind = OBJECT_NULL;
    f->size = f->allocated = conf->size;
    f->block = (uint32_t)conf->block;
    f->mem_align = 1;
    f->max_io = (uint32_t)conf->max_io;
    f->max_depth = (uint32_t)conf->max_depth;
    f->read_only = conf->read_only;
    f->dpofua = ANSWER_YES;
    f->volatile_cache = conf->write_cache ? ANSWER_YES : ANSWER_NO;
    f->can_flush = true;
    f->delay_ns = conf->delay;
    if (conf->identity) snprintf(f->identity[0], sizeof f->identity[0], "%s", conf->identity);
    char size[32], lat[32];
    snprintf(f->summary, sizeof f->summary, "null, no I/O, %s, latency %s %s",
             units_size_human(size, sizeof size, conf->size), dist_names[conf->dist],
             units_time(lat, sizeof lat, conf->lat));
    snprintf(f->engine, sizeof f->engine, "null");
    kv_uint(&f->negotiated, "lat_ns", conf->lat);
    kv_text(&f->negotiated, "lat_dist", "%s", dist_names[conf->dist]);
    if (conf->jitter) kv_uint(&f->negotiated, "jitter_ns", conf->jitter);
    if (conf->servers) kv_uint(&f->negotiated, "servers", conf->servers);
    if (conf->errors) kv_uint(&f->negotiated, "errors_ppm", conf->errors);
    if (conf->shorts) kv_uint(&f->negotiated, "short_ppm", conf->shorts);
    if (conf->lost_after) kv_uint(&f->negotiated, "lost_after", conf->lost_after);
    kv_text(&f->negotiated, "delivered_data", "none");
    kv_text(&f->warnings, "no-io",
            "null does no I/O: its numbers are those of samedisk itself, or of the latency it was "
            "told to have");
}

static int null_open(const struct open_how *how, struct handle **out, struct facts *facts, struct err *err) {
    const struct null_conf *conf = how->conf;
    if (how->mode == OPEN_CREATE)
        return err_set(err, STATUS_TARGET, "null: cannot be created, it is always there");
    if (how->mode == OPEN_WRITE && conf->read_only)
        return err_set(err, STATUS_TARGET, "null: cannot be opened for writing: it was made read-only (read_only=yes)");
    struct handle *h = malloc(sizeof *h);
    if (!h) return err_set(err, STATUS_TARGET, "null: out of memory");
    h->conf = *conf;
    h->conf.identity = NULL;
    h->write = how->mode == OPEN_WRITE;
    null_facts(conf, facts);
    *out = h;
    return 0;
}

static void null_close(struct handle *h) {
    free(h);
}

static void null_detach(struct context *c) {
    if (!c) return;
    free(c->line);
    free(c->runs);
    free(c->heap);
    free(c->server_free);
    free(c);
}

static inline unsigned op_bit(unsigned op, unsigned sync) {
    return op * 4 + sync;
}

/* Both in one load. */
static inline unsigned what_of(const struct request *r) {
    return r->op | (unsigned)r->sync << 8;
}

static void set_ops(struct context *c, bool write) {
    for (unsigned sync = SYNC_NONE; sync <= SYNC_SYNC; sync++) {
        c->plain_ops |= 1u << op_bit(IO_READ, sync) | (unsigned)write << op_bit(IO_WRITE, sync);
        if (!c->write_cache || sync >= SYNC_DSYNC) c->stable_ops |= 1u << op_bit(IO_WRITE, sync);
    }
}

static int null_attach(struct handle *h, const struct attach_how *how, struct context **out, struct err *err) {
    const struct null_conf *conf = &h->conf;
    unsigned cap = 1;
    while (cap < how->depth) cap *= 2;
    struct context *c = calloc(1, sizeof *c);
    bool fifo = conf->dist == DIST_FIXED; /* also with servers: they are taken in turn, so due times never go back */
    if (!c || (fifo && !(c->line = calloc(cap, sizeof(struct request *)))) ||
        (fifo && !(c->runs = calloc(cap, sizeof *c->runs))) ||
        (!fifo && !(c->heap = calloc(cap, sizeof *c->heap))) ||
        (conf->servers && !(c->server_free = calloc(conf->servers, sizeof *c->server_free)))) {
        null_detach(c);
        return err_set(err, STATUS_TARGET, "null: out of memory for %u requests", how->depth);
    }
    c->mask = cap - 1;
    c->depth = how->depth;
    c->conf = *conf;
    c->fifo = fifo;
    c->faults = conf->errors || conf->shorts;
    c->plain = c->fifo && !conf->servers && !c->faults;
    c->write = h->write && how->write;
    c->write_cache = conf->write_cache;
    set_ops(c, c->write);
    c->size = conf->size;
    c->block_mask = conf->block - 1;
    c->lat = (int64_t)conf->lat;
    c->clock = how->clock;
    c->kinds = how->kinds;
    c->credits = conf->lost_after ? conf->lost_after : UINT64_MAX;
    rng_seed(&c->latency, rng_mix(conf->error_seed));
    rng_seed(&c->fault, rng_mix(conf->error_seed + 1));
    *out = c;
    return 0;
}

/* ---- latencies ---- */

static int64_t draw_latency(struct context *c) {
    const struct null_conf *conf = &c->conf;
    if (conf->dist == DIST_UNIFORM && conf->jitter)
        return (int64_t)(conf->lat - conf->jitter + rng_below(&c->latency, 2 * conf->jitter + 1));
    if (conf->dist == DIST_EXPONENTIAL) {
        double u = (double)((rng_next(&c->latency) >> 11) + 1) * 0x1p-53; /* (0, 1] */
        return (int64_t)(-log(u) * (double)conf->lat);
    }
    return c->lat;
}

static int64_t due_time(struct context *c, int64_t now) {
    int64_t lat = c->fifo ? c->lat : draw_latency(c);
    if (!c->server_free) return now + lat;
    unsigned best = 0;
    if (c->fifo) {
        best = (unsigned)(c->seq % c->conf.servers);
    } else {
        for (unsigned i = 1; i < c->conf.servers; i++)
            if (c->server_free[i] < c->server_free[best]) best = i;
    }
    int64_t start = c->server_free[best] > now ? c->server_free[best] : now;
    return c->server_free[best] = start + lat;
}

/* ---- the heap, for latencies that vary ---- */

static bool earlier(const struct pending *a, const struct pending *b) {
    return a->done.t_done != b->done.t_done ? a->done.t_done < b->done.t_done : a->seq < b->seq;
}

static void heap_push(struct context *c, const struct pending *p) {
    unsigned i = c->n;
    for (; i && earlier(p, &c->heap[(i - 1) / 2]); i = (i - 1) / 2) c->heap[i] = c->heap[(i - 1) / 2];
    c->heap[i] = *p;
}

/* Drops the root; c->n is the number of entries before the call. */
static void heap_pop(struct context *c) {
    struct pending *h = c->heap, last = h[c->n - 1];
    unsigned n = c->n - 1, i = 0;
    for (unsigned child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && earlier(&h[child + 1], &h[child])) child++;
        if (!earlier(&h[child], &last)) break;
        h[i] = h[child];
    }
    h[i] = last;
}

/* ---- data path ---- */

static void fail(struct context *c, struct completion *done, int error, const char *name, const char *text) {
    done->result = -error;
    done->kind = (uint16_t)kinds_note(c->kinds, name, text);
    done->stable = false;
}

static void answer(struct context *c, const struct request *r, struct completion *done) {
    if (r->op == IO_FLUSH) {
        done->result = 0;
    } else if ((r->offset | r->len) & c->block_mask) {
        fail(c, done, EINVAL, "EINVAL", "offset or length is no multiple of the block size");
    } else if (r->op == IO_WRITE && !c->write) {
        fail(c, done, EBADF, "EBADF", "a write on a target that was opened for reading");
    } else if (r->offset >= c->size || r->len > c->size - r->offset) {
        if (r->op == IO_WRITE) fail(c, done, ENOSPC, "ENOSPC", "a write beyond the end");
        else done->result = r->offset >= c->size ? 0 : (int64_t)(c->size - r->offset);
    }
}

static void inject(struct context *c, const struct request *r, struct completion *done) {
    uint64_t dice = rng_below(&c->fault, 1000000);
    if (done->result < 0) return;
    if (dice < c->conf.errors) {
        fail(c, done, EIO, "EIO", "an error that errors= asked for");
        c->errors++;
    } else if (dice < c->conf.errors + c->conf.shorts && r->op != IO_FLUSH) {
        done->result = (int64_t)(((uint64_t)done->result / 2) & ~c->block_mask);
        c->shorts++;
    }
}

static void submit_one(struct context *c, struct request *r, int64_t now) {
    struct pending p = {.done = {.request = r, .result = r->len}};
    p.done.stable = c->stable_ops >> op_bit(r->op, r->sync) & 1;
    answer(c, r, &p.done);
    if (c->faults) inject(c, r, &p.done);
    p.done.t_done = due_time(c, now);
    p.seq = c->seq++;
    if (c->fifo) {
        c->line[(c->head + c->n) & c->mask] = r;
        c->runs[(c->run_head + c->n_runs++) & c->mask] = (struct run){
            .due = p.done.t_done, .result = p.done.result, .n = 1, .kind = p.done.kind, .stable = p.done.stable};
    } else {
        heap_push(c, &p);
    }
    c->n++;
}

/* The short way, for a run of requests that are alike and move all their bytes: what measures the tool itself should
 * cost next to nothing. Returns how many it did; the next one begins another run, or needs the long way. */
static unsigned submit_run(struct context *c, struct request *const *requests, unsigned n, int64_t now) {
    /* No whole blocks, or so far out that the sum below would wrap. */
    const uint64_t size = c->size, bad_bits = c->block_mask | 1ULL << 63;
    const unsigned mask = c->mask, what = what_of(requests[0]), bit = op_bit(requests[0]->op, requests[0]->sync);
    struct request **line = c->line;
    unsigned at = c->head + c->n, i = 0;
    if (!(c->plain_ops >> bit & 1)) return 0;
    for (; i < n; i++) {
        struct request *r = requests[i];
        uint64_t offset = r->offset, len = r->len;
        if (what_of(r) != what || ((offset | len) & bad_bits) || offset + len > size) break;
        line[at++ & mask] = r;
    }
    if (!i) return 0;
    c->runs[(c->run_head + c->n_runs++) & mask] =
        (struct run){.due = now + c->lat, .n = i, .stable = c->stable_ops >> bit & 1, .whole = true};
    c->n += i;
    return i;
}

static int null_submit(struct context *c, struct request *const *requests, unsigned n) {
    if (__builtin_expect(c->lost, 0)) return c->lost;
    if (n > c->depth - c->n) n = c->depth - c->n;
    int64_t now = clock_now(c->clock);
    for (unsigned i = 0; i < n;) {
        unsigned k = c->plain ? submit_run(c, requests + i, n - i, now) : 0;
        if (!k) submit_one(c, requests[i++], now);
        i += k;
    }
    return (int)n;
}

/* Up to `max` of the first run. */
static unsigned collect_run(struct context *c, struct run *run, struct completion *out, unsigned max, int64_t now) {
    const unsigned mask = c->mask, n = run->n < max ? run->n : max, head = c->head;
    struct completion one = {.result = run->result, .t_done = now, .kind = run->kind, .stable = run->stable};
    for (unsigned i = 0; i < n; i++) {
        one.request = c->line[(head + i) & mask];
        out[i] = one;
        out[i].result = one.request->len;
    }
    if (!run->whole) out->result = run->result;
    c->head = (head + n) & mask;
    c->n -= n;
    run->n -= n;
    if (run->n) return n;
    c->run_head = (c->run_head + 1) & mask;
    c->n_runs--;
    return n;
}

static unsigned collect(struct context *c, struct completion *out, unsigned max, int64_t now) {
    if (max > c->credits) max = (unsigned)c->credits;
    if (max > c->n) max = c->n;
    unsigned got = 0;
    if (c->fifo) {
        while (got < max && c->runs[c->run_head].due <= now)
            got += collect_run(c, &c->runs[c->run_head], out + got, max - got, now);
    } else {
        for (; got < max && c->heap[0].done.t_done <= now; got++, c->n--) {
            out[got] = c->heap[0].done;
            out[got].t_done = now;
            heap_pop(c);
        }
    }
    c->credits -= got;
    c->completed += got;
    if (__builtin_expect(!c->credits, 0)) c->lost = -ENOTCONN;
    return got;
}

/* The rest of a lost context: what was lent comes back at once, due or not. */
static unsigned give_back(struct context *c, struct completion *out, unsigned max, int64_t now) {
    unsigned got = 0;
    for (; got < max && c->n; got++, c->n--) {
        out[got] = (struct completion){.request = c->fifo ? c->line[c->head] : c->heap[c->n - 1].done.request,
                                       .t_done = now};
        fail(c, &out[got], ENOTCONN, "ENOTCONN", "the target was lost, as lost_after= asked for");
        if (c->fifo) c->head = (c->head + 1) & c->mask;
    }
    return got;
}

static int null_reap(struct context *c, struct completion *out, unsigned max, unsigned min, int64_t timeout_ns) {
    unsigned got = 0;
    int64_t deadline = INT64_MAX, waited_for = INT64_MIN;
    for (;;) {
        int64_t now = clock_now(c->clock); /* the stamp: right after the wait */
        if (!c->lost) got += collect(c, out + got, max - got, now);
        if (__builtin_expect(c->lost, 0)) {
            if (!got && !c->n) return c->lost;
            return (int)(got + give_back(c, out + got, max - got, now));
        }
        if (got >= min || timeout_ns <= 0) return (int)got;
        if (deadline == INT64_MAX && timeout_ns < INT64_MAX - now) deadline = now + timeout_ns;
        if (now >= deadline || now < waited_for) return (int)got; /* time is up, or a signal ended the sleep */
        waited_for = deadline;
        if (c->n) {
            int64_t next = c->fifo ? c->runs[c->run_head].due : c->heap[0].done.t_done;
            if (next < waited_for) waited_for = next;
        }
        clock_wait_until(c->clock, waited_for);
    }
}

static void null_counters(struct context *c, struct kv *out) {
    uint64_t failed = c->errors < c->completed ? c->errors : c->completed;
    kv_uint(out, "wire_ios", c->completed - failed); /* there is no wire: those that ended well */
    if (c->conf.errors) kv_uint(out, "injected_errors", c->errors);
    if (c->conf.shorts) kv_uint(out, "injected_shorts", c->shorts);
}

extern const struct backend backend_null;
const struct backend backend_null = {
    .name = "null",
    .summary = "no I/O: measures samedisk itself",
    .options = null_options,
    .conf_size = sizeof(struct null_conf),
    .configure = null_configure,
    .check = null_check,
    .open = null_open,
    .close = null_close,
    .attach = null_attach,
    .detach = null_detach,
    .submit = null_submit,
    .reap = null_reap,
    .counters = null_counters,
};
