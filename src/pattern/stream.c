/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pattern/stream.h"

#include <string.h>

#include "base/text.h"
#include "base/units.h"

#define STREAM_KEY 0x9fb21c651e98df25ULL /* odd, bits well mixed; no other meaning */

/* ---- draws ---- */

struct stream_drawn stream_redraw(uint64_t state, uint64_t bound, uint64_t low, uint64_t high) {
    for (uint64_t floor = -bound % bound; low < floor; state += STREAM_STEP) {
        unsigned __int128 product = (unsigned __int128)stream_draw(state) * bound;
        low = (uint64_t)product;
        high = (uint64_t)(product >> 64);
    }
    return (struct stream_drawn){state, high};
}

static inline uint64_t stream_below(struct stream *s, uint64_t bound) {
    unsigned __int128 product = (unsigned __int128)stream_draw(s->state) * bound;
    s->state += STREAM_STEP;
    uint64_t low = (uint64_t)product, high = (uint64_t)(product >> 64);
    if (__builtin_expect(low >= bound, 1)) return high;
    struct stream_drawn again = stream_redraw(s->state, bound, low, high);
    s->state = again.state;
    return again.value;
}

static inline uint64_t stream_what(enum io_op op, uint32_t len) {
    return STREAM_KEY ^ ((uint64_t)len << 1 | op);
}

/* ---- set-up ---- */

static int stream_check(const struct pattern *p, uint64_t base, uint64_t size, unsigned round, unsigned worker,
                        unsigned workers, struct err *err) {
    char safe[80], have[32], need[32];
    uint64_t step = pattern_step(p);
    text_safe(safe, sizeof(safe), p->name, strlen(p->name));
    units_size(have, sizeof(have), size);
    if (p->n_rows == 0 || round == 0 || worker >= workers || base + size < base)
        return err_set(err, STATUS_USAGE, "pattern '%s': no stream for worker %u of %u in round %u over %s bytes "
                       "from %llu", safe, worker, workers, round, have, (unsigned long long)base);
    if (size < pattern_max_io(p))
        return err_set(err, STATUS_USAGE, "pattern '%s': a working set of %s is smaller than one block of %s", safe,
                       have, units_size(need, sizeof(need), pattern_max_io(p)));
    if (pattern_sequential(p) && size / step < workers)
        return err_set(err, STATUS_USAGE, "pattern '%s': a working set of %s cannot be cut into %u slices of at "
                       "least %s, one for each sequential worker; it takes size=%llu or fewer workers (numjobs)",
                           safe, have, workers,
                       units_size(need, sizeof(need), step), (unsigned long long)(step * workers));
    return 0;
}

/* The alias method in whole numbers, so that shares are exact: each of the n rows owns a bin of PATTERN_SHARES draws,
 * of which it keeps `own`, and gives the rest to one `other` row that has too many. */
static void stream_share_out(struct stream *s, const struct pattern *p) {
    uint32_t left[PATTERN_ALL_ROWS];
    bool done[PATTERN_ALL_ROWS] = {false};
    unsigned n = s->n_rows;
    for (unsigned i = 0; i < n; i++) {
        left[i] = p->row[i].share * n;
        s->row[i].own = PATTERN_SHARES;
        s->row[i].other = (uint8_t)i;
    }
    for (unsigned turn = 0; turn < n; turn++) {
        unsigned little = n, much = n;
        for (unsigned i = 0; i < n; i++) {
            if (!done[i] && left[i] < PATTERN_SHARES && little == n) little = i;
            if (!done[i] && left[i] > PATTERN_SHARES && much == n) much = i;
        }
        if (little == n || much == n) return; /* what is left fills its own bins exactly */
        s->row[little].own = (uint16_t)left[little];
        s->row[little].other = (uint8_t)much;
        left[much] -= PATTERN_SHARES - left[little];
        done[little] = true;
    }
}

static void stream_rows(struct stream *s, const struct pattern *p, uint64_t size) {
    s->n_rows = p->n_rows;
    for (unsigned i = 0; i < p->n_rows; i++) {
        const struct pattern_row *r = &p->row[i];
        s->row[i] = (struct stream_row){.slots = (size - r->size) / r->align + 1,
                                        .len = r->size,
                                        .align = r->align,
                                        .read = (uint8_t)r->read,
                                        .random = (uint8_t)r->random};
        for (unsigned k = 0; k < p->n_rows; k++)
            if (r->size % p->row[k].align || r->align % p->row[k].align) s->round = true;
    }
    stream_share_out(s, p);
}

/* Does I/O of this direction (any, if the position is shared) jump? Then its sequential I/O may be anywhere. So may that
 * of a direction without any I/O: it needs no slice. */
static bool stream_jumps(const struct pattern *p, unsigned direction) {
    if (p->position == POSITION_SEPARATE && (direction == 0 ? !pattern_reads(p) : !pattern_writes(p))) return true;
    for (unsigned i = 0; i < p->n_rows; i++) {
        bool uses = p->position == POSITION_SHARED || (direction == 0 ? p->row[i].read > 0 : p->row[i].read < 100);
        if (uses && p->row[i].random > 0) return true;
    }
    return false;
}

/* Slices are whole steps, the last one takes the rest. A stream does not begin at its slice's start but at a step that
 * the round chooses: otherwise every round would read first what the last one left in a cache. */
static void stream_positions(struct stream *s, const struct pattern *p, uint64_t size, unsigned worker,
                             unsigned workers) {
    uint64_t step = pattern_step(p), steps = size / step;
    uint64_t first = (uint64_t)((unsigned __int128)steps * worker / workers);
    uint64_t last = (uint64_t)((unsigned __int128)steps * (worker + 1) / workers);
    uint64_t from = s->base + first * step, to = worker + 1 == workers ? s->base + size : s->base + last * step;
    uint64_t begin = from + (last > first ? stream_below(s, last - first) : 0) * step;
    for (unsigned d = 0; d < 2; d++) {
        bool jumps = stream_jumps(p, d);
        s->from[d] = jumps ? s->base : from;
        s->to[d] = jumps ? s->base + size : to;
        s->position[d] = begin;
    }
}

static uint64_t stream_round_up(uint64_t base, uint64_t position, uint32_t align) {
    uint64_t over = (position - base) % align;
    return over ? position + align - over : position;
}

/* Where alignments do not divide each other, rounding the start of a slice up may leave no room for the I/O. */
static int stream_check_wrap(const struct stream *s, const struct pattern *p, struct err *err) {
    char safe[80], size[32];
    for (unsigned i = 0; i < 2 * s->n_rows; i++) {
        const struct stream_row *r = &s->row[i / 2];
        uint64_t at = stream_round_up(s->base, s->from[i % 2], r->align);
        if (at <= s->to[i % 2] && s->to[i % 2] - at >= r->len) continue;
        return err_set(err, STATUS_USAGE, "pattern '%s': a slice of %s per sequential worker has no room for its "
                       "blocks at their alignments; it takes a larger size or fewer workers (numjobs)",
                       text_safe(safe, sizeof(safe), p->name, strlen(p->name)),
                       units_size(size, sizeof(size), s->to[i % 2] - s->from[i % 2]));
    }
    return 0;
}

static uint64_t stream_name_hash(const char *name) {
    uint64_t h = 0;
    for (; *name; name++) h = rng_mix(h ^ (unsigned char)*name);
    return h;
}

int stream_init(struct stream *s, const struct pattern *p, uint64_t base, uint64_t size, uint64_t seed, unsigned round,
                unsigned worker, unsigned workers, struct err *err) {
    memset(s, 0, sizeof(*s));
    if (stream_check(p, base, size, round, worker, workers, err) != 0) return -1;
    uint64_t mixed = rng_mix(p->randseed ? p->randseed : seed ^ stream_name_hash(p->name));
    s->state = rng_mix(mixed ^ ((uint64_t)round << 32 | worker));
    s->base = base;
    s->separate = p->position == POSITION_SEPARATE;
    s->next_mark = 1;
    stream_rows(s, p, size);
    stream_positions(s, p, size, worker, workers);
    s->plain = s->n_rows == 1 && s->row[0].random == 100 && (s->row[0].read == 0 || s->row[0].read == 100);
    s->plain_io = (struct stream_io){.op = s->row[0].read ? IO_READ : IO_WRITE, .len = s->row[0].len};
    s->plain_what = stream_what(s->plain_io.op, s->plain_io.len);
    s->chain = STREAM_KEY;
    return stream_check_wrap(s, p, err);
}

/* ---- the stream ---- */

static inline bool stream_chance(struct stream *s, unsigned percent) {
    if (percent == 100) return true;
    if (percent == 0) return false;
    return stream_below(s, 100) < percent;
}

static const struct stream_row *stream_draw_row(struct stream *s) {
    uint64_t draw = stream_below(s, (uint64_t)s->n_rows * PATTERN_SHARES);
    const struct stream_row *r = &s->row[draw / PATTERN_SHARES];
    return draw % PATTERN_SHARES < r->own ? r : &s->row[r->other];
}

static uint64_t stream_sequential(struct stream *s, const struct stream_row *r, unsigned which) {
    uint64_t at = s->position[which];
    if (s->round) at = stream_round_up(s->base, at, r->align);
    if (__builtin_expect(at > s->to[which] || s->to[which] - at < r->len, 0)) {
        at = s->from[which];
        if (s->round) at = stream_round_up(s->base, at, r->align);
    }
    return at;
}

void stream_keep_mark(struct stream *s) {
    if (s->n_marks < STREAM_MARKS) s->mark[s->n_marks++] = s->chain;
    s->next_mark <<= 1;
}

void stream_next(struct stream *s, struct stream_io *io) {
    const struct stream_row *r = s->n_rows > 1 ? stream_draw_row(s) : s->row;
    enum io_op op = stream_chance(s, r->read) ? IO_READ : IO_WRITE;
    unsigned which = op & s->separate;
    uint64_t at;
    if (stream_chance(s, r->random))
        at = s->base + stream_below(s, r->slots) * r->align;
    else
        at = stream_sequential(s, r, which);
    s->position[which] = at + r->len;
    io->op = op;
    io->len = r->len;
    io->offset = at;
    s->chain = stream_fold(s->chain ^ at, stream_what(op, r->len));
    if (__builtin_expect(++s->count == s->next_mark, 0)) stream_keep_mark(s);
}
