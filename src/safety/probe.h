/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The copy of an object's ends that libblkid looks at: a sparse memfd of the object's true size. */
#ifndef SAFETY_PROBE_H
#define SAFETY_PROBE_H

#include "safety/content.h"
#include "target/blockio.h"

#define PROBE_REGIONS 512

struct probe_image {
    struct blockio *io;
    int fd;
    uint64_t size;
    uint32_t block;
    unsigned char *buf;            /* CONTENT_HEAD bytes */
    uint64_t start[PROBE_REGIONS]; /* of the partitions that were copied */
    unsigned n_starts;
    struct clock *clock;
    int64_t limit; /* partitions are not looked into any more; INT64_MAX: never */
    bool cut;      /* so it was */
    bool foreign; /* there are bytes in the copy that are neither zero nor ours */
};

/* Copies [offset, offset+len), as far as the object has it, into the memfd; the bytes stay in buf until the next call.
 */
int probe_copy(struct probe_image *image, uint64_t offset, size_t len, struct err *err);
/* Looks for signatures on the whole and in each partition, which are copied as they are found. */
int probe_run(struct probe_image *image, struct content *out, struct err *err);

#endif
