/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "safety/content.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/rng.h"
#include "base/units.h"
#include "pattern/data.h"
#include "pattern/mark.h"
#include "safety/probe.h"

#define READ_DEPTH BLOCKIO_LOOK_DEPTH
#define READ_SIZE  (256u << 10)
/* Samples come in batches of CONTENT_SAMPLES: at least one, more while there is time, at most so many. */
#define BATCHES     8
#define SAMPLE_TIME (2 * NS_PER_SEC)
/* A range up to this is read whole without sampling it first. */
#define SMALL (64u << 20)
/* All samples were ours: the rest is read for so long. */
#define OWN_TIME (3 * NS_PER_SEC)

struct look {
    const struct content_wish *wish;
    struct probe_image *image;
    uint64_t from, to;
    uint64_t head, tail; /* what lies before `head` and from `tail` on has been read for signatures, and was counted */
    struct rng rng;
    struct content *out; /* what the counts go to */
    int64_t until;       /* when to stop reading; INT64_MAX: never */
    int64_t limit;       /* when to stop without having seen what must be seen; INT64_MAX: never */
    int64_t told;        /* when progress was */
};

/* ---- blocks ---- */

static void count_block(struct content *c, const unsigned char *block, size_t len, uint64_t offset) {
    c->looked += len;
    switch (data_look(block, offset, len)) {
    case DATA_ZEROS: c->zeros++; break;
    case DATA_OURS:
        c->ours++;
        if (c->n_owners < CONTENT_OWNERS && owner_of_block(block, &c->owner[c->n_owners]))
            c->n_owners += c->owner[c->n_owners].state == OWNER_ACTIVE;
        break;
    case DATA_FOREIGN:
        if (c->foreign == 0 || offset < c->first_foreign) c->first_foreign = offset;
        c->foreign++;
        break;
    }
}

uint64_t content_sum(const void *block, size_t len) {
    uint64_t sum = 0, word;

    for (size_t i = 0; i + sizeof(word) <= len; i += sizeof(word)) {
        memcpy(&word, (const char *)block + i, sizeof(word));
        sum = rng_mix(sum ^ word);
    }
    return sum;
}

static void keep_first(struct look *l, const unsigned char *block, uint64_t at, size_t len) {
    if (l->out->first_known || len != MARK_STEP || at != (l->from + MARK_STEP - 1) / MARK_STEP * MARK_STEP) return;
    l->out->first_sum = content_sum(block, len);
    l->out->first_known = true;
}

/* What of the len bytes at `offset` lies in the range, by blocks. Both ends of a block that is cut stay what they are.
 */
static void count_bytes(struct look *l, const unsigned char *buf, uint64_t offset, size_t len) {
    uint64_t end = offset + len < l->to ? offset + len : l->to;

    for (uint64_t at = offset > l->from ? offset : l->from; at < end;) {
        uint64_t next = (at / MARK_STEP + 1) * MARK_STEP;
        if (next > end) next = end;
        count_block(l->out, buf + (at - offset), (size_t)(next - at), at);
        keep_first(l, buf + (at - offset), at, (size_t)(next - at));
        at = next;
    }
}

static void tell(struct look *l) {
    if (!l->wish->progress) return;
    int64_t now = clock_now(l->wish->clock);
    if (now - l->told < NS_PER_SEC) return;
    l->told = now;
    l->wish->progress(l->wish->arg, l->out->looked, l->to - l->from);
}

static int see_bytes(void *arg, uint64_t offset, void *buf, size_t len) {
    struct look *l = arg;

    count_bytes(l, buf, offset, len);
    tell(l);
    if (l->wish->interrupted && *l->wish->interrupted) return CONTENT_INTERRUPTED;
    if (l->until == INT64_MAX && l->limit == INT64_MAX) return 0;
    int64_t now = clock_now(l->wish->clock);
    if (now >= l->limit) l->out->cut = true;
    return now >= l->limit || now >= l->until ? CONTENT_NO_TIME : 0;
}

/* ---- samples ---- */

static uint32_t unit_of(const struct look *l) {
    return l->image->block > MARK_STEP ? l->image->block : MARK_STEP;
}

static int look_at(struct look *l, uint64_t at, struct err *err) {
    uint32_t unit = unit_of(l);

    at -= at % unit;
    size_t len = l->image->size - at < unit ? (size_t)(l->image->size - at) : unit;
    if (blockio_read(l->image->io, at, l->image->buf, len, err) != 0) return -1;
    return see_bytes(l, at, l->image->buf, len);
}

/* One block in each of equal parts of [low, high), whole blocks, at random places. */
static int look_at_some(struct look *l, uint64_t low, uint64_t high, struct err *err) {
    uint64_t place[CONTENT_SAMPLES], unit = unit_of(l), blocks = (high - low) / unit;
    unsigned n = blocks < CONTENT_SAMPLES ? (unsigned)blocks : CONTENT_SAMPLES;

    for (unsigned i = 0; i < n; i++) {
        uint64_t first = (uint64_t)((unsigned __int128)blocks * i / n);
        uint64_t next = (uint64_t)((unsigned __int128)blocks * (i + 1) / n);
        place[i] = low + (first + rng_below(&l->rng, next - first)) * unit;
    }
    return blockio_read_places(l->image->io, place, n, (uint32_t)unit, see_bytes, l, err);
}

/* The range's first and last block, where [low, high) has them. */
static int look_at_ends(struct look *l, uint64_t low, uint64_t high, struct err *err) {
    uint64_t place[2], unit = unit_of(l), last = (high - 1) - (high - 1) % unit;
    unsigned n = 0;
    int rc = 0;

    if (low == l->from) place[n++] = low - low % unit;
    if (high == l->to && l->image->size - last < unit) rc = look_at(l, last, err); /* cut by the object's end */
    else if (high == l->to && (n == 0 || place[0] != last)) place[n++] = last;
    return rc == 0 && n ? blockio_read_places(l->image->io, place, n, (uint32_t)unit, see_bytes, l, err) : rc;
}

/* The first block, the last one, and some of those between; but none that has been counted. */
static int look_at_samples(struct look *l, struct err *err) {
    uint64_t unit = unit_of(l), low = l->from > l->head ? l->from : l->head, high = l->to < l->tail ? l->to : l->tail;
    int64_t enough = clock_now(l->wish->clock) + SAMPLE_TIME;
    int rc = 0;

    if (low >= high) return 0;
    rc = look_at_ends(l, low, high, err);
    if (low == l->from) low = low - low % unit + unit;
    if (high == l->to) high = (high - 1) - (high - 1) % unit;
    for (unsigned i = 0; i < BATCHES && rc == 0 && low < high; i++) {
        rc = look_at_some(l, low, high, err);
        if (clock_now(l->wish->clock) >= enough) break;
    }
    return rc;
}

/* ---- the whole range ---- */

/* Every block of the range. What had been sampled is counted anew, unless there was no time to get to the end. */
static int look_at_all(struct look *l, struct err *err) {
    struct content all = {.n = 0}, *samples = l->out;
    uint64_t unit = unit_of(l), low = l->from - l->from % unit, high = l->to + (unit - 1);

    high -= high % unit;
    if (high > l->image->size) high = l->image->size;
    l->out = &all;
    int rc = blockio_stream(l->image->io, IO_READ, SYNC_NONE, low, high - low, see_bytes, l, err);
    l->out = samples;
    samples->cut = all.cut;
    if (rc != 0 && rc != CONTENT_NO_TIME) return rc;
    if (rc == 0 || all.foreign > 0 || all.looked > samples->looked) {
        samples->ours = all.ours;
        samples->zeros = all.zeros;
        samples->foreign = all.foreign;
        samples->looked = all.looked;
        samples->first_foreign = all.first_foreign;
    }
    for (unsigned i = 0; i < all.n_owners && samples->n_owners < CONTENT_OWNERS; i++)
        samples->owner[samples->n_owners++] = all.owner[i];
    return 0;
}

/* A foreign block decides it, but what is ours beside it may hold the record of who writes there now. Otherwise a range
 * of up to CONTENT_DENSE is read whole, as long as it takes where zeros are in question: what somebody has begun to write
 * there may be small. */
static int look_at_range(struct look *l, struct err *err) {
    bool small = l->to - l->from <= SMALL;
    struct content *c = l->out;
    int rc = 0;

    if (l->from >= l->to) return 0;
    if (!small) rc = look_at_samples(l, err);
    if (rc == CONTENT_NO_TIME) return 0;
    if (rc != 0 || l->to - l->from > CONTENT_DENSE || (c->foreign > 0 && c->ours == 0 && !small)) return rc;
    if (c->n > 0 && !small) return 0; /* it has a name already */
    if (c->ours > 0 && c->zeros == 0 && !small) {
        l->until = clock_now(l->wish->clock) + OWN_TIME;
        l->limit = INT64_MAX; /* what had to be seen has been */
    }
    return look_at_all(l, err);
}

/* ---- the examination ---- */

static int copy_end(struct look *l, uint64_t from, uint64_t to, struct err *err) {
    if (probe_copy(l->image, from, (size_t)(to - from), err) != 0) return -1;
    count_bytes(l, l->image->buf, from, (size_t)(to - from));
    return 0;
}

static int examine(struct look *l, struct err *err) {
    uint64_t size = l->image->size, end = size > CONTENT_TAIL ? size - CONTENT_TAIL : 0;

    l->head = size < CONTENT_HEAD ? size : CONTENT_HEAD;
    l->tail = end - end % unit_of(l);
    if (l->tail < l->head) l->tail = l->head;
    if (copy_end(l, 0, l->head, err) != 0 || (l->tail < size && copy_end(l, l->tail, size, err) != 0)) return -1;
    if (probe_run(l->image, l->out, err) != 0) return -1;
    return look_at_range(l, err);
}

int content_look(const struct content_wish *wish, struct content *out, struct err *err) {
    const struct facts *facts = wish->facts;
    struct probe_image *image = calloc(1, sizeof(*image));
    struct look l = {.wish = wish, .image = image, .from = wish->from, .to = wish->to, .out = out, .until = INT64_MAX, .limit = INT64_MAX};
    uint64_t seed = wish->seed;
    int rc = -1;

    memset(out, 0, sizeof(*out));
    if (!image) return err_set(err, STATUS_TARGET, "no memory");
    /* Without random numbers of the kernel's the places could be foreseen; that is no reason not to look. */
    if (seed == 0 && getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != (ssize_t)sizeof(seed))
        seed = (uint64_t)clock_now(wish->clock);
    rng_seed(&l.rng, seed);
    l.told = clock_now(wish->clock);
    if (wish->time) l.limit = l.told + wish->time;
    image->clock = wish->clock;
    image->limit = l.limit;
    image->fd = memfd_create("samedisk-content", MFD_CLOEXEC);
    image->size = facts->size;
    image->block = facts->block ? facts->block : 1;
    image->buf = malloc(CONTENT_HEAD > image->block ? CONTENT_HEAD : image->block);
    if (l.to > facts->size) l.to = facts->size;
    out->range = l.from < l.to ? l.to - l.from : 0;
    if (!image->buf) {
        err_set(err, STATUS_TARGET, "no memory for %u bytes", CONTENT_HEAD);
    } else if (image->fd < 0 || facts->size > INT64_MAX || ftruncate(image->fd, (off_t)facts->size) != 0) {
        err_set(err, STATUS_TARGET, "a sparse copy of %" PRIu64 " bytes in memory, to look for signatures: %s",
                facts->size, facts->size > INT64_MAX ? strerror(EFBIG) : strerror(errno));
    } else if (blockio_open_road(wish->backend, wish->handle, facts, wish->clock, READ_DEPTH, READ_SIZE, false,
                                 blockio_first_road(wish->backend, wish->handle), &image->io, err) == 0) {
        rc = examine(&l, err);
        out->cut = (out->cut && out->looked < out->range) || image->cut;
    }
    if (rc == -1 && err->status == STATUS_INTERRUPTED) rc = CONTENT_INTERRUPTED;
    if (rc == -1 && err->status == STATUS_IO)
        err->status = STATUS_TARGET; /* nothing was measured yet: it just cannot be read */
    blockio_close(image->io);
    if (image->fd >= 0) close(image->fd);
    free(image->buf);
    free(image);
    return rc;
}

int content_examine(const struct backend *backend, struct handle *h, const struct facts *facts, struct clock *clock,
                    uint64_t from, uint64_t to, struct content *out, struct err *err) {
    const struct content_wish wish = {
        .backend = backend, .handle = h, .facts = facts, .clock = clock, .from = from, .to = to};

    return content_look(&wish, out, err);
}

/* ---- words ---- */

enum content_kind content_kind(const struct content *c) {
    if (c->n > 0) return CONTENT_KNOWN;
    if (c->foreign > 0 || c->cut) return CONTENT_UNKNOWN;
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

/* How much of the range was read, if not all of it: two figures, and rounded down. */
static const char *share_words(const struct content *c, char *buf, size_t len) {
    double percent = c->range ? 100.0 * (double)c->looked / (double)c->range : 0;
    int digits = 0;

    buf[0] = '\0';
    if (c->looked >= c->range) return buf;
    for (double p = percent; p < 10 && digits < 9; p *= 10) digits++;
    double step = pow(10, -digits);
    snprintf(buf, len, " (only %.*f %% of it was read)", digits, floor(percent / step) * step);
    return buf;
}

const char *content_describe(const struct content *c, char *buf, size_t len) {
    char share[64];

    switch (content_kind(c)) {
    case CONTENT_KNOWN: return describe_signatures(c, buf, len);
    case CONTENT_ZEROS:
        snprintf(buf, len, "all zeros%s", c->range && c->looked >= c->range ? " (all of it was read)"
                                                                          : share_words(c, share, sizeof(share)));
        break;
    case CONTENT_OWN:
        snprintf(buf, len, "samedisk data%s%s", c->zeros ? " and zeros" : "", share_words(c, share, sizeof(share)));
        break;
    case CONTENT_UNKNOWN:
        if (c->foreign == 0) {
            snprintf(buf, len, "unknown data (it answers so slowly that in %d s not all was read that has to be)",
                     (int)(CONTENT_TIME / NS_PER_SEC));
            break;
        }
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
