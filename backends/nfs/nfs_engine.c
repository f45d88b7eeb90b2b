/* SPDX-License-Identifier: GPL-2.0-or-later */
/* engine=auto|native|libnfs: which one, and what the user should know about it. */
#include <stdio.h>

#include "backends/nfs/nfs.h"

bool nfsbe_only_native(const struct nfsbe_native *n) {
    return n->nconnect > 1 || !n->deliver || n->wait != NFSBE_WAIT_BLOCK;
}

/* Native where it works. With engine=auto libnfs stands in, unless something was asked for that it cannot do. */
static int native_or_not(struct handle *h, const struct nfsbe_conf *conf, struct facts *facts, struct err *err) {
    struct err why = { .status = STATUS_OK };
    if (nfsbe_native_probe(h, &facts->negotiated, &why) == 0) {
        h->engine = &nfsbe_engine_native;
        return 0;
    }
    *err = why;
    if (conf->engine == NFSBE_NATIVE) return err_prefix(err, "engine=native");
    if (nfsbe_only_native(&conf->native)) return err_prefix(err, "nconnect=, deliver=no and wait= need engine=native");
    kv_text(&facts->warnings, "engine-libnfs", "engine=native does not work here, so libnfs drives the load: %.900s",
            why.msg);
    kv_text(&facts->negotiated, "engine_why", "%.900s", why.msg);
    h->engine = &nfsbe_engine_libnfs;
    return 0;
}

int nfsbe_engine_choose(struct handle *h, const struct nfsbe_conf *conf, struct facts *facts, struct err *err) {
    static const char *const waits[] = { "block", "adaptive", "spin" };
    struct kv *n = &facts->negotiated;

    h->native = conf->native;
    h->engine = &nfsbe_engine_libnfs;
    if (conf->engine != NFSBE_LIBNFS && native_or_not(h, conf, facts, err) != 0) return -1;
    if (facts->max_io > h->engine->max_io) facts->max_io = h->engine->max_io;
    snprintf(facts->engine, sizeof facts->engine, "%s", h->engine->name);
    kv_text(n, "engine", "%s", h->engine->name);
    kv_text(n, "engine_chosen_by", "%s", conf->engine == NFSBE_AUTO ? "auto" : "engine=");
    kv_uint(n, "nconnect", h->native.nconnect);
    kv_bool(n, "delivered", h->native.deliver);
    kv_text(n, "wait", "%s", waits[h->native.wait]);
    if (!h->native.deliver)
        kv_text(&facts->warnings, "not-delivered",
                "deliver=no: data that was read is dropped, not put into a buffer; no application works like this, so "
                "compare read rows only with such rows");
    return 0;
}
