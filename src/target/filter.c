/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "target/filter.h"

#include <stdio.h>
#include <string.h>

#include "backends/delay.h"
#include "backends/readahead.h"
#include "backends/stripe.h"
#include "base/units.h"

/* ---- delay ---- */

void filter_facts(struct facts *f) {
    char time[32];
    if (!f->delay_ns) return;
    size_t at = strlen(f->engine);
    units_time(time, sizeof(time), f->delay_ns);
    snprintf(f->engine + at, sizeof(f->engine) - at, "%s+ delay %s", at ? " " : "", time);
    kv_uint(&f->negotiated, "delay_ns", f->delay_ns);
    kv_text(&f->warnings, "artificial-delay",
            "%s of artificial delay are added to every I/O (delay=): these are not the latencies of the storage", time);
}

int filter_delay(struct member *m, struct err *err) {
    struct delay_how how = {.backend = m->backend, .handle = m->handle, .delay_ns = m->facts.delay_ns};
    if (!how.delay_ns || m->delayed) return 0;
    return delay_open(&how, &m->delayed, err);
}

void filter_undelay(struct member *m) {
    if (m->delayed) backend_delay.close(m->delayed);
    m->delayed = NULL;
}

const struct backend *filter_backend(const struct member *m) {
    return m->delayed ? &backend_delay : m->backend;
}

struct handle *filter_handle(const struct member *m) {
    return m->delayed ? m->delayed : m->handle;
}

/* ---- readahead ---- */

int filter_check(const struct facts *f, uint64_t readahead, unsigned depth, struct err *err) {
    char size[32];
    if (!readahead || readahead_requests(f, readahead, depth)) return 0;
    return err_set(err, STATUS_USAGE,
                   "readahead=%s needs requests of its own, and of the %u that there may be at a time a depth of %u "
                   "leaves too few: use a smaller --readahead or --iodepth",
                   units_size(size, sizeof(size), readahead), f->max_depth, depth);
}

uint64_t filter_memory(uint64_t readahead) {
    return readahead ? 2 * READAHEAD_STREAMS * (readahead + (1u << 20)) : 0;
}

int filter_open(const struct target *t, const struct filter_load *load, struct filter *out, struct err *err) {
    struct readahead_how how = {.backend = t->backend,
                                .handle = t->handle,
                                .facts = &t->facts,
                                .window = load->readahead,
                                .to = load->to,
                                .boundary = t->backend == &backend_stripe ? STRIPE_BYTES : 0,
                                .shared_writes = load->workers > 1 && load->writes};
    *out = (struct filter){t->backend, t->handle, false};
    if (!load->readahead) return 0;
    if (readahead_open(&how, &out->handle, err) != 0) return err_prefix(err, "%s", t->label);
    out->backend = &backend_readahead;
    out->own = true;
    return 0;
}

void filter_close(struct filter *f) {
    if (f->own) f->backend->close(f->handle);
    *f = (struct filter){NULL, NULL, false};
}
