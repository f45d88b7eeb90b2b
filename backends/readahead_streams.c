/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/readahead_streams.h"

#include "base/rng.h"

#define PIECE_LEAST (256u << 10)
#define PIECE_MOST  RASTREAMS_REGION

/* ---- sizes ---- */

static uint64_t power_of_two(uint64_t n) {
    uint64_t p = 1;
    while (p < n) p *= 2;
    return p;
}

uint32_t rastreams_piece_bytes(uint64_t window, uint32_t max_io) {
    uint64_t bytes = power_of_two(window / 16);
    if (bytes < PIECE_LEAST) bytes = PIECE_LEAST;
    if (bytes > PIECE_MOST) bytes = PIECE_MOST;
    while (bytes > window || bytes > max_io) bytes /= 2;
    return (uint32_t)bytes;
}

/* Two windows, neither of which need begin at a multiple of a piece. */
unsigned rastreams_pieces(uint64_t window, uint32_t piece_bytes) {
    return 2 * ((unsigned)((window + piece_bytes - 1) / piece_bytes) + 1);
}

/* The kernel's rules: page_cache_ra of Linux, in bytes. The first window counts the request that it follows. */
static uint64_t first_window(const struct streams *s, uint32_t len) {
    uint64_t size = power_of_two(len);
    if (size <= s->window / 32) return 4 * size;
    return size <= s->window / 4 ? 2 * size : s->window;
}

static uint64_t next_window(const struct streams *s, uint64_t size) {
    if (size < s->window / 16) return 4 * size;
    return size <= s->window / 2 ? 2 * size : s->window;
}

/* ---- writes of others ---- */

static unsigned region_of(uint64_t offset) {
    return (unsigned)rng_mix(offset / RASTREAMS_REGION) & (RASTREAMS_REGIONS - 1);
}

static uint32_t foreign_writes(const struct streams *s, uint64_t offset) {
    unsigned r = region_of(offset);
    if (!s->writes) return 0;
    return atomic_load_explicit(&s->writes->region[r], memory_order_acquire) - s->own_writes[r];
}

static void count_write(struct streams *s, uint64_t offset, uint32_t len) {
    if (!s->writes || !len) return;
    for (uint64_t at = offset / RASTREAMS_REGION; at <= (offset + len - 1) / RASTREAMS_REGION; at++) {
        unsigned r = region_of(at * RASTREAMS_REGION);
        s->own_writes[r]++;
        atomic_fetch_add_explicit(&s->writes->region[r], 1, memory_order_release);
    }
}

/* ---- pieces ---- */

static uint64_t piece_end(const struct piece *p) {
    return p->request.offset + p->request.len;
}

static bool usable(const struct streams *s, const struct piece *p) {
    return !p->dropped && p->state != PIECE_FAILED && p->state != PIECE_FREE && p->lo < p->hi &&
           p->writes == foreign_writes(s, p->request.offset);
}

static bool finished(const struct stream *t, const struct piece *p) {
    if (p->state == PIECE_FREE) return true;
    if (p->users || (p->state != PIECE_FILLED && p->state != PIECE_FAILED)) return false;
    return p->dropped || p->state == PIECE_FAILED || p->lo == p->hi || piece_end(p) <= t->next;
}

void rastreams_trim(struct streams *s, struct stream *t) {
    for (; t->n; t->n--, t->first = (t->first + 1) % s->pieces) {
        struct piece *p = &t->ring[t->first];
        if (!finished(t, p)) return;
        if (p->state == PIECE_FILLED && p->used < p->request.len) s->wasted += p->request.len - p->used;
        p->state = PIECE_FREE;
    }
}

static void append(struct streams *s, struct stream *t, uint64_t offset, uint32_t len) {
    struct piece *p = rastreams_piece(s, t, t->first + t->n++);
    p->request.offset = p->lo = offset;
    p->request.len = len;
    p->hi = offset + len;
    p->used = 0;
    p->users = 0;
    p->waiting = RASTREAMS_NONE;
    p->writes = foreign_writes(s, offset);
    p->state = PIECE_QUEUED;
    p->dropped = false;
    s->queue[(s->queue_first + s->queue_n++) & s->queue_mask] = p;
}

unsigned rastreams_queued(struct streams *s, struct request **list) {
    unsigned n = 0;
    for (unsigned i = 0; i < s->queue_n; i++) {
        struct piece *p = s->queue[(s->queue_first + i) & s->queue_mask];
        if (p->dropped && !p->users) { /* it has read nothing, and need not any more */
            p->state = PIECE_FREE;
            rastreams_trim(s, &s->stream[p->stream]);
            continue;
        }
        list[n] = &p->request;
        s->queue[(s->queue_first + n++) & s->queue_mask] = p;
    }
    return s->queue_n = n;
}

void rastreams_sent(struct streams *s, unsigned n) {
    s->queue_first = (s->queue_first + n) & s->queue_mask;
    s->queue_n -= n;
}

static bool covers(struct streams *s, const struct stream *t, unsigned at, uint64_t offset, uint32_t len) {
    uint64_t end = offset + len;
    for (unsigned i = at; i < t->first + t->n; i++) {
        const struct piece *p = rastreams_piece(s, t, i);
        if (!usable(s, p) || p->lo > offset || p->hi <= offset) return false;
        if (p->hi >= end) return true;
        offset = p->hi;
    }
    return false;
}

bool rastreams_find(struct streams *s, uint64_t offset, uint32_t len, struct place *place) {
    place->partial = false;
    for (unsigned k = 0; k < s->n_streams; k++) {
        struct stream *t = &s->stream[k];
        if (!t->live || offset >= t->end) continue;
        for (unsigned i = t->first; i < t->first + t->n; i++) {
            const struct piece *p = rastreams_piece(s, t, i);
            if (p->lo >= offset + len || p->hi <= offset || !usable(s, p)) continue;
            place->stream = t;
            place->at = i;
            if (covers(s, t, i, offset, len)) return true;
            place->partial = true;
            break;
        }
    }
    return false;
}

/* ---- streams ---- */

void rastreams_drop(struct streams *s, struct stream *t) {
    t->live = false;
    for (unsigned i = 0; i < t->n; i++) rastreams_piece(s, t, t->first + i)->dropped = true;
    rastreams_trim(s, t);
}

void rastreams_drop_all(struct streams *s) {
    for (unsigned i = 0; i < s->n_streams; i++) rastreams_drop(s, &s->stream[i]);
}

/* Queues [at, to), as much of it as the ring has room for. */
static void queue_window(struct streams *s, struct stream *t, uint64_t at, uint64_t to) {
    if (to > s->to) to = s->to;
    while (at < to && t->n < s->pieces) {
        uint64_t piece_to = (at / s->piece_bytes + 1) * s->piece_bytes;
        if (piece_to > to) piece_to = to;
        append(s, t, at, (uint32_t)(piece_to - at));
        t->end = at = piece_to;
    }
}

/* False: nothing more can be read ahead now. The first window that is larger than a piece ends where a piece does, so
 * that from there on all requests are whole ones. */
static bool send_window(struct streams *s, struct stream *t) {
    uint64_t at = t->end > t->next ? t->end : t->next, size = next_window(s, t->size), to = at + size;
    if (at >= s->to || t->n == s->pieces) return false;
    if (size >= s->piece_bytes && s->window % s->piece_bytes == 0 && to / s->piece_bytes > at / s->piece_bytes)
        to -= to % s->piece_bytes;
    t->size = size;
    t->marker = at;
    queue_window(s, t, at, to);
    return true;
}

static void follow(struct streams *s, struct stream *t, uint64_t next) {
    if (next > t->next) t->next = next;
    t->tick = ++s->tick;
    rastreams_trim(s, t);
    while (t->next > t->marker && send_window(s, t)) {}
}

/* The stream that is taken for a new one: a dead one, else the one used longest ago. */
static struct stream *make_room(struct streams *s) {
    struct stream *oldest = &s->stream[0];
    for (unsigned i = 0; i < s->n_streams; i++) {
        if (!s->stream[i].live) return &s->stream[i];
        if (s->stream[i].tick < oldest->tick) oldest = &s->stream[i];
    }
    rastreams_drop(s, oldest);
    return oldest;
}

static void start(struct streams *s, uint64_t offset, uint32_t len) {
    struct stream *t = make_room(s);
    uint64_t end = offset + len, size = first_window(s, len);
    t->live = true;
    t->tick = ++s->tick;
    t->next = t->end = t->marker = end;
    t->size = size;
    if (size <= len) {
        t->marker = offset; /* the request is a window by itself: the next one follows at once */
        follow(s, t, end);
        return;
    }
    queue_window(s, t, end, end + (size - len));
}

static struct stream *stream_at(struct streams *s, uint64_t offset) {
    for (unsigned i = 0; i < s->n_streams; i++) {
        struct stream *t = &s->stream[i];
        if (t->live && (offset == t->next || (offset > t->next && offset < t->end))) return t;
    }
    return NULL;
}

/* The place in `recent` of a read that ended here; the one to overwrite next if there was none. */
static bool seen(struct streams *s, uint64_t offset, unsigned *at) {
    for (unsigned i = 0; i < RASTREAMS_RECENT; i++) {
        if (s->recent[i] != offset) continue;
        *at = i;
        return true;
    }
    *at = s->next_recent++ % RASTREAMS_RECENT;
    return false;
}

void rastreams_read(struct streams *s, uint64_t offset, uint32_t len) {
    struct stream *t = stream_at(s, offset);
    unsigned at;
    if (t) {
        follow(s, t, offset + len);
    } else if (seen(s, offset, &at)) {
        s->recent[at] = UINT64_MAX;
        start(s, offset, len);
    } else {
        s->recent[at] = offset + len;
    }
}

void rastreams_write(struct streams *s, uint64_t offset, uint32_t len) {
    for (unsigned i = 0; i < s->n_streams; i++)
        if (s->stream[i].live && s->stream[i].next == offset) {
            s->stream[i].next = offset + len;
            rastreams_trim(s, &s->stream[i]);
            return;
        }
    for (unsigned i = 0; i < RASTREAMS_RECENT; i++)
        if (s->recent[i] == offset) s->recent[i] = offset + len;
}

/* Of what is left on both sides of the write, the longer part stays. */
static void cut(struct piece *p, uint64_t from, uint64_t to) {
    if (from >= p->hi || to <= p->lo) return;
    uint64_t before = from > p->lo ? from - p->lo : 0, behind = to < p->hi ? p->hi - to : 0;
    if (behind >= before) p->lo = behind ? to : p->hi;
    else p->hi = from;
}

void rastreams_written(struct streams *s, uint64_t offset, uint32_t len) {
    count_write(s, offset, len);
    for (unsigned k = 0; k < s->n_streams; k++) {
        struct stream *t = &s->stream[k];
        if (!t->n) continue;
        for (unsigned i = 0; i < t->n; i++) cut(rastreams_piece(s, t, t->first + i), offset, offset + len);
        rastreams_trim(s, t);
    }
}
