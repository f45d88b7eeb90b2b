/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/backend.h"

void facts_free(struct facts *f) {
    if (!f) return;
    kv_free(&f->negotiated);
    kv_free(&f->warnings);
}
