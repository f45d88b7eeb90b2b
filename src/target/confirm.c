/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "target/confirm.h"

#include "target/blockio.h"

int confirm_object(const struct backend *backend, struct handle *h, const struct facts *facts, struct clock *clock,
                   const struct seal *seal, struct err *err) {
    struct blockio *io;

    if (blockio_open_sealed(backend, h, facts, clock, 1, facts->block, seal, &io, err) != 0) return -1;
    blockio_close(io);
    return 0;
}
