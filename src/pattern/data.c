/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pattern/data.h"

#include <endian.h>
#include <pthread.h>
#include <string.h>

#include "base/rng.h"
#include "pattern/mark.h"

#define WORDS      (DATA_SECTOR / 8) /* of a sector; the last one is the tag */
#define TAG        (WORDS - 1)
#define PIECE      (MARK_STEP / DATA_SECTOR) /* sectors under one key */
#define BASE_BITS  5                         /* of the choice where in the base a piece begins */
#define BASE       DATA_BASE                 /* 20 KiB stay in the first cache */
#define SEED       0x6a09e667f3bcc908ULL
#define TAG_KEY    0xc3a5c85c97cb3127ULL /* so that neither zeros nor small numbers carry their tag by chance */
#define SPREAD     0x9e3779b97f4a7c15ULL
#define NOTE_MAGIC 0x7e15b2d90c46ULL
#define NOTE_AT    DATA_NOTE_AT /* behind the mark: a word of magic and length, then the note */

_Static_assert(NOTE_AT == MARK_SIZE + 8, "behind the mark, and a word of magic and length");
_Static_assert(BASE == (1u << BASE_BITS) + PIECE - 1, "a piece may begin at each of the places");
_Static_assert(NOTE_AT + DATA_NOTE_MAX <= 8 * TAG, "a note lies in its block's first sector");

/* ---- the base ---- */

static struct {
    uint64_t word[BASE * WORDS] __attribute__((aligned(64)));
    uint64_t sum[BASE]; /* of each sector, see below */
    data_fill *fill;
} base;
static pthread_once_t base_once = PTHREAD_ONCE_INIT;

/* The tag comes from a sum without carries (xor) of the sector's words, each times a polynomial of its own over GF(2),
 * modulo x^64 - 1: word i times 1 + x^(1 + i % 8) + x^(10 + i % 8 + i / 8), which is the word and two rotations of it.
 * Any one or two changed bytes change the sum (a test goes through them); bytes that others wrote over random ones leave
 * it as it was with a chance of one in 2^64. It is linear: of words base ^ key it is the base's sum and the key times the
 * sum of all polynomials, and nobody has to go over the bytes again. */
static inline uint64_t rotate(uint64_t x, unsigned n) {
    return x << (n & 63) | x >> (-n & 63);
}

static inline uint64_t part(uint64_t word, unsigned i) {
    return word ^ rotate(word, 1 + i % 8) ^ rotate(word, 10 + i % 8 + i / 8);
}

/* The sum of part(words[i], i); words with the same rotation go together. */
static uint64_t sum_words(const void *sector) {
    uint64_t words[WORDS], all = 0, first[8] = {0}, second[15] = {0}, sum;
    memcpy(words, sector, sizeof(words));
    for (unsigned i = 0; i < TAG; i++) {
        all ^= words[i];
        first[i % 8] ^= words[i];
        second[i % 8 + i / 8] ^= words[i];
    }
    sum = all;
    for (unsigned i = 0; i < 8; i++) sum ^= rotate(first[i], 1 + i);
    for (unsigned i = 0; i < 15; i++) sum ^= rotate(second[i], 10 + i);
    return sum;
}

/* What words that are all this key add to a sum; `keys`: the sum of their polynomials. */
static inline uint64_t sum_of_key(uint64_t keys, uint64_t key) {
    uint64_t sum = 0;
    for (uint64_t left = keys; left; left &= left - 1) sum ^= rotate(key, (unsigned)__builtin_ctzll(left));
    return sum;
}

static inline uint64_t tag_of(uint64_t sum) {
    return rng_mix(sum ^ TAG_KEY);
}

/* The sector of the base where the piece of this key begins. */
static inline size_t begin_of(uint64_t key) {
    return (size_t)(key * SPREAD >> (64 - BASE_BITS));
}

/* The same of all words of a sector but the tag. Their polynomials come to 1 + x^8 + x^10 + x^12 + ... + x^22, for most
 * powers occur an even number of times. */
static inline uint64_t sum_of_all(uint64_t key) {
    uint64_t sum = key ^ rotate(key, 8);
    for (unsigned n = 10; n <= 22; n += 2) sum ^= rotate(key, n);
    return sum;
}

/* Fills whole sectors, tags and all, and returns the first one's sum.
 *
 * Four words at once, for which the compiler takes what the function may use; buffers have any alignment. */
typedef uint64_t words4 __attribute__((vector_size(32), aligned(1), may_alias));
typedef uint64_t word1 __attribute__((aligned(1), may_alias));

static inline __attribute__((always_inline)) uint64_t fill_sectors(void *buf, size_t sectors, uint64_t key) {
    const size_t from = begin_of(key);
    const words4 *in = (const words4 *)(const void *)(base.word + from * WORDS);
    const uint64_t *sum = base.sum + from, keys = sum_of_all(key);
    words4 *out = buf;

    for (size_t s = 0; s < sectors; s++, in += WORDS / 4, out += WORDS / 4) {
#pragma GCC unroll 16
        for (unsigned i = 0; i < WORDS / 4; i++) out[i] = in[i] ^ key;
        ((word1 *)(void *)out)[TAG] = tag_of(sum[s] ^ keys);
    }
    return *sum ^ keys;
}

static uint64_t fill_any(void *buf, size_t sectors, uint64_t key) {
    return fill_sectors(buf, sectors, key);
}

#ifdef __x86_64__
__attribute__((target("avx2"))) static uint64_t fill_avx2(void *buf, size_t sectors, uint64_t key) {
    return fill_sectors(buf, sectors, key);
}
#endif

static void make_base(void) {
    struct rng rng;
    rng_seed(&rng, SEED);
    rng_fill(&rng, base.word, sizeof(base.word));
    for (unsigned s = 0; s < BASE; s++) base.sum[s] = sum_words(base.word + s * WORDS);
    base.fill = fill_any;
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2")) base.fill = fill_avx2;
#endif
}

/* ---- making ---- */

void data_init(struct data *d, uint32_t run, uint64_t counter, const struct data_note *note) {
    pthread_once(&base_once, make_base);
    *d = (struct data){.fill = base.fill,
                       .note = note,
                       .note_at = note ? note->offset : UINT64_MAX,
                       .seed = rng_mix(run ^ SEED),
                       .counter = counter,
                       .run = run};
}

/* The tag goes with the change of the first two words. */
static inline void put_mark(void *sector, uint32_t run, uint64_t counter, uint64_t sum) {
    word1 *word = sector;
    sum ^= part(word[0], 0) ^ part(word[1], 1);
    mark_put(sector, run, counter);
    word[TAG] = tag_of(sum ^ part(word[0], 0) ^ part(word[1], 1));
}

static __attribute__((noinline)) void fill_rest(struct data *d, void *buf, size_t len, uint64_t key) {
    unsigned char last[DATA_SECTOR];
    d->fill(last, 1, ~key);
    memcpy(buf, last, len);
}

/* ---- other data than random ---- */

void data_choose(struct data *d, const struct data_choice *choice) {
    unsigned random = (unsigned)((100 - choice->compress) * WORDS + 50) / 100; /* words of a sector, with its tag */

    d->choice = *choice;
    d->chosen = choice->zeros || choice->compress || choice->dedupe;
    d->words = random < 2 ? 1 : random - 1;
    d->keys = 0;
    for (unsigned i = 0; i < d->words; i++) d->keys ^= part(1, i);
    for (unsigned s = 0; s < BASE; s++) {
        d->sum[s] = 0;
        for (unsigned i = 0; i < d->words; i++) d->sum[s] ^= part(base.word[s * WORDS + i], i);
    }
}

/* As fill_sectors, with zeros behind the first words. */
static uint64_t fill_compressible(const struct data *d, void *buf, size_t sectors, uint64_t key) {
    const uint64_t *sum = d->sum + begin_of(key), keys = sum_of_key(d->keys, key);
    word1 *out = buf;

    uint64_t first = d->fill(buf, sectors, key);
    if (d->words == TAG) return first;
    for (size_t s = 0; s < sectors; s++, out += WORDS) {
        memset(out + d->words, 0, 8 * (TAG - d->words));
        out[TAG] = tag_of(sum[s] ^ keys);
    }
    return *sum ^ keys;
}

/* Does the next write repeat an earlier one? The same for the same number of it. */
static bool repeats(struct data *d) {
    uint64_t draw = rng_mix(d->seed ^ ~++d->writes) >> 32;
    return d->fresh_end > d->fresh && draw * 100 >> 32 < d->choice.dedupe;
}

/* The block with the note is always ours. */
static void make_noted(struct data *d, void *at, size_t piece) {
    size_t random = d->choice.zeros ? DATA_SECTOR : piece;
    uint64_t sum = d->fill(at, random / DATA_SECTOR, rng_mix(d->seed + d->counter));
    put_mark(at, d->run, d->counter++, sum);
    data_put_note(at, d->note->bytes, d->note->len);
    memset((unsigned char *)at + random / DATA_SECTOR * DATA_SECTOR, 0, piece - random / DATA_SECTOR * DATA_SECTOR);
}

static __attribute__((noinline)) void make_chosen(struct data *d, void *buf, uint64_t offset, size_t len) {
    const bool again = d->choice.dedupe && !d->choice.zeros && repeats(d);
    uint64_t old = d->fresh, begin = d->counter;
    unsigned char *at = buf;

    for (size_t left = len; left > 0;) {
        size_t piece = MARK_STEP - (offset & (MARK_STEP - 1));
        if (piece > left) piece = left;
        if (offset == d->note_at && piece >= DATA_SECTOR) {
            make_noted(d, at, piece);
        } else if (d->choice.zeros) {
            memset(at, 0, piece);
        } else {
            uint64_t counter = again && old < d->fresh_end ? old++ : d->counter++;
            uint64_t key = rng_mix(d->seed + counter);
            uint64_t sum = fill_compressible(d, at, piece / DATA_SECTOR, key);
            if ((offset & (MARK_STEP - 1)) == 0 && piece >= DATA_SECTOR) put_mark(at, d->run, counter, sum);
            if (piece % DATA_SECTOR) fill_rest(d, at + piece - piece % DATA_SECTOR, piece % DATA_SECTOR, key);
        }
        at += piece;
        offset += piece;
        left -= piece;
    }
    if (again) return;
    d->fresh = begin;
    d->fresh_end = d->counter;
}

void data_make(struct data *d, void *buf, uint64_t offset, size_t len) {
    unsigned char *at = buf;

    if (__builtin_expect(d->chosen, 0)) {
        make_chosen(d, buf, offset, len);
        return;
    }
    for (size_t left = len; left > 0;) {
        size_t piece = MARK_STEP - (offset & (MARK_STEP - 1));
        if (piece > left) piece = left;
        uint64_t key = rng_mix(d->seed + d->counter);
        uint64_t sum = d->fill(at, piece / DATA_SECTOR, key);
        if ((offset & (MARK_STEP - 1)) == 0 && piece >= DATA_SECTOR) put_mark(at, d->run, d->counter, sum);
        if (__builtin_expect(piece % DATA_SECTOR != 0, 0))
            fill_rest(d, at + piece - piece % DATA_SECTOR, piece % DATA_SECTOR, key);
        if (__builtin_expect(offset == d->note_at, 0) && piece >= DATA_SECTOR)
            data_put_note(at, d->note->bytes, d->note->len);
        d->counter++;
        at += piece;
        offset += piece;
        left -= piece;
    }
}

/* ---- a note ---- */

void data_put_note(void *block, const void *note, size_t len) {
    unsigned char *bytes = block;
    if (len > DATA_NOTE_MAX) len = DATA_NOTE_MAX;
    uint64_t head = htole64(NOTE_MAGIC << 16 | len);
    memcpy(bytes + MARK_SIZE, &head, sizeof(head));
    memcpy(bytes + NOTE_AT, note, len);
    uint64_t tag = data_tag(block);
    memcpy(bytes + 8 * TAG, &tag, sizeof(tag));
}

const void *data_note(const void *block, size_t *len) {
    const unsigned char *bytes = block;
    uint64_t head;
    memcpy(&head, bytes + MARK_SIZE, sizeof(head));
    head = le64toh(head);
    if (head >> 16 != NOTE_MAGIC || (head & 0xffff) > DATA_NOTE_MAX) return NULL;
    if (!mark_read(block, NULL, NULL) || !data_sector_is_ours(block)) return NULL;
    *len = (size_t)(head & 0xffff);
    return bytes + NOTE_AT;
}

/* ---- looking ---- */

uint64_t data_tag(const void *sector) {
    return tag_of(sum_words(sector));
}

bool data_sector_is_ours(const void *sector) {
    uint64_t tag = data_tag(sector);
    return memcmp((const char *)sector + 8 * TAG, &tag, sizeof(tag)) == 0;
}

enum data_kind data_look(const void *buf, uint64_t offset, size_t len) {
    const char *at = buf;
    bool ours = false;

    for (size_t i = 0; i < len; i += DATA_SECTOR) {
        size_t n = len - i < DATA_SECTOR ? len - i : DATA_SECTOR;
        if (mark_is_zero(at + i, n)) continue;
        if (n < DATA_SECTOR || !data_sector_is_ours(at + i)) return DATA_FOREIGN;
        if ((offset + i) % MARK_STEP == 0 && !mark_read(at + i, NULL, NULL)) return DATA_FOREIGN;
        ours = true;
    }
    return ours ? DATA_OURS : DATA_ZEROS;
}

bool data_is_ours(const void *block, size_t len) {
    return data_look(block, 0, len) == DATA_OURS;
}

bool data_run_of(const void *block, size_t len, uint32_t *run, uint64_t *counter) {
    return len >= DATA_SECTOR && data_sector_is_ours(block) && mark_read(block, run, counter);
}
