/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/net/nfsname.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/rng.h"

const char *nfsname(const struct nfsname *n, char *buf, size_t len) {
    uint64_t hash = rng_mix(n->fsid) ^ rng_mix(n->fileid + 1);
    for (size_t i = 0; i < n->handle_len; i++) hash = rng_mix(hash ^ n->handle[i]);
    hash = rng_mix(hash ^ n->ctime_ns);
    hash = rng_mix(hash ^ n->size);
    snprintf(buf, len, "nfs-handle:%016" PRIx64, hash);
    return buf;
}
