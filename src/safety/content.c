/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "safety/content.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/rng.h"
#include "base/units.h"
#include "pattern/data.h"
#include "pattern/mark.h"
#include "safety/probe.h"

#define READ_DEPTH 8
#define READ_SIZE  (256u << 10)

/* ---- blocks ---- */

static void count_block(struct content *c, const unsigned char *block, size_t len, uint64_t offset) {
    switch (data_look(block, offset, len)) {
    case DATA_ZEROS: c->zeros++; break;
    case DATA_OURS: c->ours++; break;
    case DATA_FOREIGN:
        if (c->foreign == 0 || offset < c->first_foreign) c->first_foreign = offset;
        c->foreign++;
        break;
    }
}

/* What of the len bytes at `offset` lies in [from, to), by blocks. Both ends of a block that is cut stay what they are.
 */
static void count_bytes(struct content *c, const unsigned char *buf, uint64_t offset, size_t len, uint64_t from,
                        uint64_t to) {
    uint64_t end = offset + len < to ? offset + len : to;

    for (uint64_t at = offset > from ? offset : from; at < end;) {
        uint64_t next = (at / MARK_STEP + 1) * MARK_STEP;
        if (next > end) next = end;
        count_block(c, buf + (at - offset), (size_t)(next - at), at);
        at = next;
    }
}

static int count_sample(struct probe_image *image, uint64_t at, uint64_t from, uint64_t to, struct content *c,
                        struct err *err) {
    uint32_t unit = image->block > MARK_STEP ? image->block : MARK_STEP;

    at -= at % unit;
    size_t len = image->size - at < unit ? (size_t)(image->size - at) : unit;
    if (blockio_read(image->io, at, image->buf, len, err) != 0) return -1;
    count_bytes(c, image->buf, at, len, from, to);
    return 0;
}

/* One block in each of 256 equal parts, at a place that is random but the same each time, and the first and the last.
 */
static int count_samples(struct probe_image *image, uint64_t from, uint64_t to, struct content *c, struct err *err) {
    uint64_t first = from / MARK_STEP, blocks = (to - 1) / MARK_STEP - first + 1;
    unsigned samples = blocks < CONTENT_SAMPLES ? (unsigned)blocks : CONTENT_SAMPLES;
    struct rng rng;

    rng_seed(&rng, image->size ^ from);
    for (unsigned i = 0; i < samples; i++) {
        uint64_t low = (uint64_t)((unsigned __int128)blocks * i / samples);
        uint64_t high = (uint64_t)((unsigned __int128)blocks * (i + 1) / samples);
        uint64_t block = low + rng_below(&rng, high - low);
        if (count_sample(image, (first + block) * MARK_STEP, from, to, c, err) != 0) return -1;
    }
    if (count_sample(image, from, from, to, c, err) != 0) return -1;
    return count_sample(image, to - 1, from, to, c, err);
}

/* The piece before the first multiple of 4096 may be ours and have no mark: it is foreign only if nothing else is ours.
 */
static int count_first_piece(struct probe_image *image, uint64_t from, uint64_t to, struct content *c,
                             struct err *err) {
    struct content piece = {.n = 0};

    if (count_sample(image, from, from, to, &piece, err) != 0) return -1;
    c->zeros += piece.zeros;
    c->ours += piece.ours;
    if (c->ours > 0 || piece.foreign == 0) return 0;
    c->foreign += piece.foreign;
    c->first_foreign = from;
    return 0;
}

/* ---- the examination ---- */

static int examine(struct probe_image *image, uint64_t from, uint64_t to, struct content *out, struct err *err) {
    size_t head = image->size < CONTENT_HEAD ? (size_t)image->size : CONTENT_HEAD;
    uint64_t rest = image->size - head, begin = (from + MARK_STEP - 1) / MARK_STEP * MARK_STEP;
    size_t tail = rest < CONTENT_TAIL ? (size_t)rest : CONTENT_TAIL;

    if (probe_copy(image, 0, head, err) != 0) return -1;
    count_bytes(out, image->buf, 0, head, begin, to);
    if (tail > 0) {
        /* Copied from a multiple of 4096 on, so that blocks are counted whole. */
        uint64_t at = (image->size - tail) / MARK_STEP * MARK_STEP;
        if (at < head) at = head;
        if (probe_copy(image, at, (size_t)(image->size - at), err) != 0) return -1;
        count_bytes(out, image->buf, at, (size_t)(image->size - at), begin, to);
    }
    if (probe_run(image, out, err) != 0) return -1;
    if (begin < to && count_samples(image, begin, to, out, err) != 0) return -1;
    if (from < begin && from < to && count_first_piece(image, from, begin < to ? begin : to, out, err) != 0) return -1;
    return 0;
}

int content_examine(const struct backend *backend, struct handle *h, const struct facts *facts, struct clock *clock,
                    uint64_t from, uint64_t to, struct content *out, struct err *err) {
    struct probe_image *image = calloc(1, sizeof(*image));
    int rc = -1;

    memset(out, 0, sizeof(*out));
    if (!image) return err_set(err, STATUS_TARGET, "no memory");
    image->fd = memfd_create("samedisk-content", MFD_CLOEXEC);
    image->size = facts->size;
    image->block = facts->block ? facts->block : 1;
    image->buf = malloc(CONTENT_HEAD > image->block ? CONTENT_HEAD : image->block);
    if (to > facts->size) to = facts->size;
    if (!image->buf) {
        err_set(err, STATUS_TARGET, "no memory for %u bytes", CONTENT_HEAD);
    } else if (image->fd < 0 || facts->size > INT64_MAX || ftruncate(image->fd, (off_t)facts->size) != 0) {
        err_set(err, STATUS_TARGET, "a sparse copy of %" PRIu64 " bytes in memory, to look for signatures: %s",
                facts->size, facts->size > INT64_MAX ? strerror(EFBIG) : strerror(errno));
    } else if (blockio_open(backend, h, facts, clock, READ_DEPTH, READ_SIZE, false, &image->io, err) == 0) {
        rc = examine(image, from, to, out, err);
    }
    if (rc != 0 && err->status == STATUS_IO)
        err->status = STATUS_TARGET; /* nothing was measured yet: it just cannot be read */
    blockio_close(image->io);
    if (image->fd >= 0) close(image->fd);
    free(image->buf);
    free(image);
    return rc;
}

/* ---- words ---- */

enum content_kind content_kind(const struct content *c) {
    if (c->n > 0) return CONTENT_KNOWN;
    if (c->foreign > 0) return CONTENT_UNKNOWN;
    return c->ours > 0 ? CONTENT_OWN : CONTENT_ZEROS;
}

const char *content_size(char *buf, size_t len, uint64_t bytes) {
    static const char *const names[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    unsigned unit = 0;
    uint64_t value = bytes;

    while (unit < 4 && value >= 1024 && value % 1024 == 0) value /= 1024, unit++;
    if (bytes == 0)
        snprintf(buf, len, "0");
    else if (value < 100000)
        snprintf(buf, len, "%" PRIu64 " %s", value, names[unit]);
    else
        units_size_human(buf, len, bytes);
    return buf;
}

/* Appends as much as fits as a whole; false if it did not. Keeps room for the words that say so. */
static bool append(char *buf, size_t len, const char *text) {
    static const size_t room = sizeof("; and more");
    size_t n = strlen(buf), add = strlen(text) + (n ? 2 : 0);

    if (n + add + room >= len) return false;
    snprintf(buf + n, len - n, "%s%s", n ? "; " : "", text);
    return true;
}

static const char *describe_signatures(const struct content *c, char *buf, size_t len) {
    char text[256], at[32];
    bool more = c->more;

    buf[0] = '\0';
    for (unsigned i = 0; i < c->n; i++) {
        const struct content_signature *s = &c->signature[i];
        if (s->partition)
            snprintf(text, sizeof(text), "partition %u at %s: %s", s->partition, content_size(at, sizeof(at), s->start),
                     s->text);
        else
            snprintf(text, sizeof(text), "%s", s->text);
        if (!append(buf, len, text)) more = true;
    }
    if (more) {
        size_t n = strlen(buf);
        snprintf(buf + n, len - n, "; and more");
    }
    return buf;
}

const char *content_describe(const struct content *c, char *buf, size_t len) {
    switch (content_kind(c)) {
    case CONTENT_KNOWN: return describe_signatures(c, buf, len);
    case CONTENT_ZEROS: snprintf(buf, len, "all zeros (%u blocks read)", c->zeros); break;
    case CONTENT_OWN: snprintf(buf, len, "samedisk data"); break;
    case CONTENT_UNKNOWN:
        snprintf(buf, len, "unknown data (%u of %u blocks read, the first at offset %" PRIu64 ")", c->foreign,
                 c->foreign + c->ours + c->zeros, c->first_foreign);
        break;
    }
    return buf;
}

bool content_is_named(const struct content_signature *s, const char *word) {
    static const char *const other[][2] = {{"mbr", "dos"}, {"msdos", "dos"}, {"vmfs_volume_member", "VMFS"}};

    if (strcasecmp(s->name, word) == 0) return true;
    for (unsigned i = 0; i < sizeof(other) / sizeof(other[0]); i++)
        if (strcasecmp(word, other[i][0]) == 0 && strcmp(s->name, other[i][1]) == 0) return true;
    return false;
}
