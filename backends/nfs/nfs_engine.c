/* SPDX-License-Identifier: GPL-2.0-or-later */
/* engine=auto|native|libnfs: which one, and what the user should know about it. */
#include <stdio.h>

#include "backends/nfs/nfs.h"
#include "backends/nfs/nfs_split.h"

const char *nfsbe_needs_native(const struct nfsbe_conf *conf) {
    const struct nfsbe_native *n = &conf->native;
    if (n->nconnect > 1) return "nconnect";
    if (conf->servers) return "servers";
    if (!n->deliver) return "deliver";
    return n->wait != NFSBE_WAIT_BLOCK ? "wait" : tcp_options_given(&conf->tcp);
}

/* Native always, unless the library was asked for: nothing stands in silently. */
static int native_or_not(struct handle *h, const struct nfsbe_conf *conf, struct facts *facts, struct err *err) {
    if (nfsbe_native_probe(h, facts, err) != 0)
        return conf->engine == NFSBE_NATIVE ? err_prefix(err, "engine=native") : -1;
    h->engine = &nfsbe_engine_native;
    return 0;
}

/* What one RPC moves, and the largest I/O that may be made of several. */
static int sizes(struct handle *h, const struct nfsbe_conf *conf, struct facts *facts, struct err *err) {
    uint32_t limit = h->engine->max_io;
    if (conf->rsize > limit || conf->wsize > limit)
        return err_set(err, STATUS_TARGET, "%csize= is more than engine=%s moves with one RPC, %u bytes",
                       conf->rsize > limit ? 'r' : 'w', h->engine->name, limit);
    if (h->rsize > limit) h->rsize = limit;
    if (h->wsize > limit) h->wsize = limit;
    uint64_t most = (uint64_t)nfsbe_piece(h, true) * NFSBE_PIECES_MAX;
    facts->max_io = most < NFSBE_IO_MAX ? (uint32_t)most : NFSBE_IO_MAX;
    kv_uint(&facts->negotiated, "rsize", h->rsize);
    kv_uint(&facts->negotiated, "wsize", h->wsize);
    return 0;
}

int nfsbe_engine_choose(struct handle *h, const struct nfsbe_conf *conf, struct facts *facts, struct err *err) {
    static const char *const waits[] = { "block", "adaptive", "spin" };
    struct kv *n = &facts->negotiated;

    h->native = conf->native;
    if (h->native.nconnect == 0) h->native.nconnect = h->servers.n ? h->servers.n : 1;
    h->engine = &nfsbe_engine_libnfs;
    if (conf->engine != NFSBE_LIBNFS && native_or_not(h, conf, facts, err) != 0) return -1;
    if (sizes(h, conf, facts, err) != 0) return -1;
    snprintf(facts->engine, sizeof facts->engine, "%s", h->engine->name);
    kv_text(n, "engine", "%s", h->engine->name);
    kv_text(n, "engine_chosen_by", "%s", conf->engine == NFSBE_AUTO ? "auto" : "engine=");
    kv_uint(n, "nconnect", h->native.nconnect);
    if (h->servers.n) {
        char words[600];
        nfsbe_servers_words(&h->servers, words, sizeof words);
        kv_text(n, "servers", "%s", words);
    }
    kv_bool(n, "delivered", h->native.deliver);
    kv_text(n, "wait", "%s", waits[h->native.wait]);
    if (!h->native.deliver)
        kv_text(&facts->warnings, "not-delivered",
                "deliver=no: data that was read is dropped, not put into a buffer; no application works like this, so "
                "compare read rows only with such rows");
    return 0;
}
