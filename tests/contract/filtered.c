/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/contract/filtered.h"

#include <string.h>

#include "backends/delay.h"
#include "backends/readahead.h"
#include "backends/stripe.h"

#define WINDOW (128u << 10)
#define DELAY (30 * NS_PER_US)

/* An object may be open several times at once. */
struct filtered {
    struct handle *filter;
    struct object below;
};

struct filtered_subject {
    struct contract_subject self; /* first: what the contract has a pointer to */
    const struct contract_subject *below;
    struct filtered open[4];
};

static struct filtered *unused(const struct contract_subject *s) {
    struct filtered *x = ((struct filtered_subject *)(uintptr_t)s)->open;
    while (x->filter) x++;
    return x;
}

static int open_readahead(struct filtered *x, struct facts *f, struct err *err) {
    struct readahead_how how = {.backend = x->below.backend, .handle = x->below.handle, .facts = f, .window = WINDOW,
                                .to = f->size, .shared_writes = true};
    if (x->below.backend == &backend_stripe) how.boundary = STRIPE_BYTES;
    if (readahead_open(&how, &x->filter, err) < 0) return -1;
    if (f->max_depth) f->max_depth -= readahead_requests(f, WINDOW, 1);
    return 0;
}

static int open_delay(struct filtered *x, struct err *err) {
    struct delay_how how = {.backend = x->below.backend, .handle = x->below.handle, .delay_ns = DELAY};
    return delay_open(&how, &x->filter, err);
}

static int open_filter(const struct contract_subject *s, enum open_mode mode, struct handle **out, struct facts *f,
                       struct err *err) {
    struct filtered *x = unused(s);
    if (mode == OPEN_CREATE) return err_set(err, STATUS_TARGET, "a filter is not created");
    if (object_open(&x->below, ((const struct filtered_subject *)s)->below, mode, err) < 0) return -1;
    *f = x->below.facts;
    memset(&x->below.facts, 0, sizeof x->below.facts); /* its lists have a new owner */
    int rc = s->backend == &backend_delay ? open_delay(x, err) : open_readahead(x, f, err);
    *out = x->filter;
    return rc;
}

static void close_filter(const struct contract_subject *s, struct handle *h) {
    struct filtered *x = ((struct filtered_subject *)(uintptr_t)s)->open;
    while (x->filter != h) x++;
    s->backend->close(h);
    object_close(&x->below);
    memset(x, 0, sizeof *x);
}

int filtered_run(const char *name, const struct backend *filter, const struct contract_subject *below) {
    struct filtered_subject s = {.self = *below, .below = below};
    s.self.name = name;
    s.self.backend = filter;
    s.self.open = open_filter;
    s.self.close = close_filter;
    return contract_run(&s.self);
}
