/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/delay.h"

#include <stdlib.h>

struct handle {
    struct delay_how how;
};

struct context {
    const struct backend *below;
    struct context *inner;
    int64_t delay;
    struct completion *late;    /* what waits, in order of its time: a ring */
    unsigned mask, first, n;
    unsigned depth, lent;       /* lent: below; the n that wait are back from there */
    int lost;
    struct clock *clock;
};

int delay_open(const struct delay_how *how, struct handle **out, struct err *err) {
    struct handle *h = malloc(sizeof *h);
    if (!h) return err_set(err, STATUS_TARGET, "delay: out of memory");
    h->how = *how;
    *out = h;
    return 0;
}

static void delay_close(struct handle *h) {
    free(h);
}

static int delay_holes(struct handle *h, uint64_t offset, uint64_t len, int64_t until, double *share) {
    return h->how.backend->holes ? h->how.backend->holes(h->how.handle, offset, len, until, share) : -1;
}

static int delay_wire_ios(struct handle *h, uint64_t *ios) {
    return h->how.backend->wire_ios ? h->how.backend->wire_ios(h->how.handle, ios) : -1;
}

/* ---- attach ---- */

static void delay_detach(struct context *c) {
    if (!c) return;
    if (c->inner) c->below->detach(c->inner);
    free(c->late);
    free(c);
}

static int delay_attach(struct handle *h, const struct attach_how *how, struct context **out, struct err *err) {
    struct context *c = calloc(1, sizeof *c);
    unsigned cap = 1;
    while (cap < how->depth) cap *= 2;
    if (!c || !(c->late = calloc(cap, sizeof *c->late))) {
        delay_detach(c);
        return err_set(err, STATUS_TARGET, "delay: out of memory for %u requests", how->depth);
    }
    c->below = h->how.backend;
    c->delay = (int64_t)h->how.delay_ns;
    c->mask = cap - 1;
    c->depth = how->depth;
    c->clock = how->clock;
    if (c->below->attach(h->how.handle, how, &c->inner, err) == 0) return *out = c, 0;
    c->inner = NULL;
    delay_detach(c);
    return -1;
}

/* ---- data path ---- */

static int delay_submit(struct context *c, struct request *const *requests, unsigned n) {
    if (c->lost) return c->lost;
    if (n > c->depth - c->lent - c->n) n = c->depth - c->lent - c->n;
    int took = n ? c->below->submit(c->inner, requests, n) : 0;
    if (took < 0) c->lost = took;
    else c->lent += (unsigned)took;
    return took;
}

/* Free places of the caller's array serve for what comes from below, on its way into the ring. */
static unsigned fetch(struct context *c, struct completion *room, unsigned max, unsigned min, int64_t timeout_ns) {
    int n = c->below->reap(c->inner, room, max, min, timeout_ns);
    if (n < 0) {
        c->lost = n;
        return 0;
    }
    for (int i = 0; i < n; i++) {
        struct completion *late = &c->late[(c->first + c->n++) & c->mask];
        *late = room[i];
        late->t_done += c->delay; /* due */
    }
    c->lent -= (unsigned)n;
    return (unsigned)n;
}

static unsigned hand_over(struct context *c, struct completion *out, unsigned max, int64_t now) {
    unsigned got = 0;
    for (; got < max && c->n && c->late[c->first].t_done <= now; got++, c->n--) {
        out[got] = c->late[c->first];
        out[got].t_done = now;
        c->first = (c->first + 1) & c->mask;
    }
    return got;
}

/* Waits until something is due, comes from below, or `deadline`. False: a signal ended the wait. */
static bool wait(struct context *c, struct completion *room, unsigned max, int64_t now, int64_t deadline) {
    int64_t until = c->n && c->late[c->first].t_done < deadline ? c->late[c->first].t_done : deadline;
    if (c->lent || (!c->n && !c->lost)) {
        if (fetch(c, room, max, 1, until - now) || c->lost) return true;
    } else {
        clock_wait_until(c->clock, until);
    }
    return clock_now(c->clock) >= until;
}

static int delay_reap(struct context *c, struct completion *out, unsigned max, unsigned min, int64_t timeout_ns) {
    unsigned got = 0;
    int64_t deadline = 0;
    for (bool whole = true;;) {
        /* As many as there is room for: a call may bring more than `max` has. */
        while (c->lent && got < max && fetch(c, out + got, max - got, 0, 0) == max - got) {}
        int64_t now = clock_now(c->clock); /* the stamp: right after the wait */
        got += hand_over(c, out + got, max - got, now);
        if (got >= min || timeout_ns <= 0 || !whole) break;
        if (!deadline) deadline = timeout_ns < INT64_MAX - now ? now + timeout_ns : INT64_MAX;
        if (now >= deadline || (c->lost && !c->lent && !c->n)) break;
        whole = wait(c, out + got, max - got, now, deadline);
    }
    if (!got && !c->lent && !c->n) {
        if (!c->lost && min) fetch(c, out, max, 0, 0); /* nothing is out: has it been lost meanwhile? */
        if (c->lost) return c->lost;
    }
    return (int)got;
}

static void delay_counters(struct context *c, struct kv *out) {
    if (c->below->counters) c->below->counters(c->inner, out);
}

static const struct track *delay_tracks(const struct handle *h) {
    return h->how.backend->tracks ? h->how.backend->tracks(h->how.handle) : NULL;
}

static void delay_sample(struct context *c, double *values) {
    if (c->below->sample) c->below->sample(c->inner, values);
}

const struct backend backend_delay = {
    .name = "delay",
    .summary = "added latency over another backend",
    .close = delay_close,
    .holes = delay_holes,
    .wire_ios = delay_wire_ios,
    .attach = delay_attach,
    .detach = delay_detach,
    .submit = delay_submit,
    .reap = delay_reap,
    .counters = delay_counters,
    .tracks = delay_tracks,
    .sample = delay_sample,
};
