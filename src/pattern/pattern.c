/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pattern/pattern.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "pattern/keys.h"

int pattern_init(struct pattern *p, const char *name, struct err *err) {
    memset(p, 0, sizeof(*p));
    p->name = strdup(name);
    if (!p->name) return err_set(err, STATUS_USAGE, "out of memory");
    if (option_defaults(pattern_options, p, err) == 0) return 0;
    pattern_free(p);
    return -1;
}

static bool pattern_dup(char **to, const char *from) {
    *to = from ? strdup(from) : NULL;
    return *to || !from;
}

int pattern_copy(struct pattern *to, const struct pattern *from, struct err *err) {
    *to = *from;
    bool name = pattern_dup(&to->name, from->name);
    bool description = pattern_dup(&to->description, from->description);
    bool origin = pattern_dup(&to->origin, from->origin);
    bool section = pattern_dup(&to->section, from->section), changed = pattern_dup(&to->changed, from->changed);
    if (name && description && origin && section && changed) return 0;
    pattern_free(to);
    return err_set(err, STATUS_USAGE, "out of memory");
}

void pattern_free(struct pattern *p) {
    option_free(pattern_options, p);
    free(p->origin);
    free(p->section);
    free(p->changed);
    memset(p, 0, sizeof(*p));
}

/* ---- setting one key ---- */

/* Who replaces whom. Keys that row replaces go back to their defaults, so that nothing of an earlier source comes back
 * when a later one replaces the rows in turn. */
#define PATTERN_DROPS 8
static const struct { const char *key, *drops[PATTERN_DROPS]; } pattern_families[] = {
    {"bs", {"bssplit", "row"}},
    {"bssplit", {"bs", "row"}},
    {"rwmixread", {"rwmixwrite", "row"}},
    {"rwmixwrite", {"rwmixread", "row"}},
    {"rw", {"row"}},
    {"percentage_random", {"row"}},
    {"blockalign", {"row"}},
    {"row", {"rw", "bs", "bssplit", "rwmixread", "rwmixwrite", "percentage_random", "blockalign"}}};

__attribute__((format(printf, 3, 4))) static void pattern_note(char *note, size_t len, const char *fmt, ...) {
    size_t at = strlen(note);
    va_list ap;
    if (at + 3 > len) return;
    if (at) at += (size_t)snprintf(note + at, len - at, "; ");
    va_start(ap, fmt);
    vsnprintf(note + at, len - at, fmt, ap);
    va_end(ap);
}

/* Forgets that `key` was given, and its value where it is not the same field that the new key has just filled. */
static bool pattern_drop(struct pattern *p, const char *key, bool to_rows, struct err *err) {
    const struct option_entry *e = option_find(pattern_options, key);
    uint64_t bit = 1ull << (e - pattern_options);
    if (!(p->given & bit)) return false;
    p->given &= ~bit;
    if (strcmp(key, "row") == 0) p->n_key_rows = 0;
    if (!to_rows) return true;
    if (strcmp(key, "bssplit") == 0) p->n_read_split = p->n_write_split = 0;
    if (strcmp(key, "rwmixwrite") == 0) e = option_find(pattern_options, "rwmixread"); /* one field, two names */
    if (e->def) option_set(pattern_options, p, e->name, e->def, err);
    return true;
}

static void pattern_drop_family(struct pattern *p, const char *key, char *note, size_t len, struct err *err) {
    bool to_rows = strcmp(key, "row") == 0;
    for (size_t i = 0; i < sizeof(pattern_families) / sizeof(pattern_families[0]); i++) {
        if (strcmp(pattern_families[i].key, key) != 0) continue;
        for (unsigned k = 0; k < PATTERN_DROPS && pattern_families[i].drops[k]; k++) {
            const char *drop = pattern_families[i].drops[k];
            if (!pattern_drop(p, drop, to_rows, err)) continue;
            pattern_note(note, len, "%s replaces %s%s", key, drop,
                         strcmp(drop, "row") == 0 ? " (what rows said and no other key says has its default now)" : "");
        }
    }
}

/* Does a size in `value` have the full spelling KiB, MiB, ... that fio takes for powers of 1000? */
static bool pattern_has_ib(const struct option_entry *e, const char *value) {
    static const char *const keys[] = {"bs", "bssplit", "row", "blockalign", "size", "offset", NULL};
    bool size = e->type == OPTION_SIZE;
    for (const char *const *k = keys; *k; k++) size |= strcmp(*k, e->name) == 0;
    for (; size && *value; value++)
        if (strchr("kmgtpKMGTP", value[0]) && (value[1] | 32) == 'i' && (value[2] | 32) == 'b') return true;
    return false;
}

int pattern_set(struct pattern *p, const char *key, const char *value, char *note, size_t len, struct err *err) {
    const struct option_entry *e = option_find(pattern_options, key);
    note[0] = '\0';
    if (!e) return foreign_set(key, value, note, len, err);
    if (!value && keys_is_switch(e)) value = "1";
    if (option_set(pattern_options, p, key, value, err) != 0) return -1;
    pattern_drop_family(p, e->name, note, len, err);
    p->given |= 1ull << (e - pattern_options);
    if (value && pattern_has_ib(e, value))
        pattern_note(note, len, "%s=%.40s is a power of 1024 here; fio takes KiB, MiB, GiB for powers of 1000",
                     e->name, value);
    return 0;
}

void pattern_next_source(struct pattern *p) {
    p->rows_inherited = p->n_key_rows > 0;
}

/* ---- from keys to rows ---- */

static void pattern_add_row(struct pattern *p, uint32_t size, uint32_t share, uint32_t read, uint32_t random,
                            uint32_t align) {
    if (share == 0) return;
    p->row[p->n_rows++] = (struct pattern_row){
        .size = size, .share = share, .read = read, .random = random, .align = align ? align : size};
}

static void pattern_rows_from_keys(struct pattern *p) {
    const struct pattern_split whole = {(uint32_t)p->bs, 100};
    const struct pattern_split *reads = p->n_read_split ? p->read_split : &whole;
    const struct pattern_split *writes = p->n_write_split ? p->write_split : &whole;
    unsigned n_reads = p->n_read_split ? p->n_read_split : 1, n_writes = p->n_write_split ? p->n_write_split : 1;
    bool rand = p->rw == RW_RANDREAD || p->rw == RW_RANDWRITE || p->rw == RW_RANDRW;
    bool mixed = p->rw == RW_RW || p->rw == RW_RANDRW;
    uint32_t random = keys_given(p, "percentage_random") ? (uint32_t)p->percentage_random : rand ? 100 : 0;
    uint32_t read = mixed ? (uint32_t)p->rwmixread : p->rw == RW_READ || p->rw == RW_RANDREAD ? 100 : 0;
    bool same = n_reads == n_writes && memcmp(reads, writes, n_reads * sizeof(*reads)) == 0;
    uint32_t align = (uint32_t)p->blockalign;

    p->percentage_random = random;
    if (same) {
        for (unsigned i = 0; i < n_reads; i++)
            pattern_add_row(p, reads[i].size, reads[i].share * 100, read, random, align);
        return;
    }
    for (unsigned i = 0; i < n_reads; i++) pattern_add_row(p, reads[i].size, reads[i].share * read, 100, random, align);
    for (unsigned i = 0; i < n_writes; i++)
        pattern_add_row(p, writes[i].size, writes[i].share * (100 - read), 0, random, align);
}

static int pattern_make_rows(struct pattern *p, struct err *err) {
    unsigned sum = 0;
    p->n_rows = 0;
    if (!p->n_key_rows) {
        pattern_rows_from_keys(p);
        return 0;
    }
    for (unsigned i = 0; i < p->n_key_rows; i++) {
        const struct pattern_row *r = &p->key_rows[i];
        sum += r->share;
        pattern_add_row(p, r->size, r->share, r->read, r->random, r->align);
    }
    if (sum != PATTERN_SHARES)
        return err_set(err, STATUS_USAGE, "row: the shares of the %u rows come to %u percent, not to 100",
                       p->n_key_rows, sum / (PATTERN_SHARES / 100));
    return 0;
}

/* ---- checks ---- */

static int pattern_check_end(struct pattern *p, struct err *err) {
    bool amount = p->io_size || p->loops;
    if (p->io_size && p->loops)
        return err_set(err, STATUS_USAGE, "io_size and loops both end the run; give one of them");
    if (keys_given(p, "time_based") && p->time_based && amount)
        return err_set(err, STATUS_USAGE, "time_based=1 says that runtime ends the run, %s that an amount of data "
                       "does; drop one", p->io_size ? "io_size" : "loops");
    if (keys_given(p, "time_based") && !p->time_based && !amount) {
        p->loops = 1;
        amount = true;
    }
    if (amount && !keys_given(p, "runtime")) p->runtime = 0;
    if (!amount && p->runtime == 0)
        return err_set(err, STATUS_USAGE, "runtime=0 would never end; give a time such as 30s, or io_size or loops");
    if (p->thinktime && p->rate_iops)
        return err_set(err, STATUS_USAGE, "thinktime and rate_iops both pace the I/Os; give one of them");
    if (p->thinktime_blocks != 1 && !p->thinktime)
        return err_set(err, STATUS_USAGE, "thinktime_blocks says how often to pause, but thinktime says no pause");
    return 0;
}

static int pattern_check_cache(struct pattern *p, struct err *err) {
    char evict[32], cache[32];
    if (p->cache == CACHE_COLD && !p->evict) {
        if (!p->server_cache)
            return err_set(err, STATUS_USAGE, "cache=cold needs evict=SIZE, the bytes to read outside the working "
                           "set: at least the server's cache, which server_cache=SIZE declares");
        p->evict = p->server_cache;
    }
    if (p->evict && p->evict < p->server_cache)
        return err_set(err, STATUS_USAGE, "evict=%s is less than server_cache=%s and would leave the cache partly as "
                       "it is",
                       units_size(evict, sizeof(evict), p->evict), units_size(cache, sizeof(cache), p->server_cache));
    return 0;
}

static int pattern_check_data(struct pattern *p, struct err *err) {
    if (p->data.compress == 100) p->data.zeros = true;
    if (!p->data.zeros || (!p->data.dedupe && p->data.compress % 100 == 0)) return 0;
    return err_set(err, STATUS_USAGE, "%s leaves nothing but zeros to write, which %s does not go with; drop one",
                   p->data.compress == 100 ? "buffer_compress_percentage=100" : "zero_buffers=1",
                   p->data.dedupe ? "dedupe_percentage" : "buffer_compress_percentage");
}

static int pattern_check_readahead(const struct pattern *p, struct err *err) {
    char size[32], block[32];
    if (!p->readahead || p->readahead >= pattern_max_io(p)) return 0;
    return err_set(err, STATUS_USAGE, "readahead=%s is less than the largest block, %s; a window is at least that, and "
                   "usually several times as large",
                   units_size(size, sizeof(size), p->readahead), units_size(block, sizeof(block), pattern_max_io(p)));
}

static int pattern_check_size(const struct pattern *p, struct err *err) {
    char size[32], step[32];
    if (p->size == 0) return 0;
    units_size(size, sizeof(size), p->size);
    units_size(step, sizeof(step), pattern_max_io(p));
    if (p->size < pattern_max_io(p))
        return err_set(err, STATUS_USAGE, "size=%s is smaller than one block of %s", size, step);
    units_size(step, sizeof(step), pattern_step(p));
    if (pattern_sequential(p) && p->size / pattern_step(p) < p->numjobs)
        return err_set(err, STATUS_USAGE, "size=%s cannot be cut into %llu slices (numjobs) of at least %s, one for "
                       "each sequential worker", size, (unsigned long long)p->numjobs, step);
    return 0;
}

int pattern_finish(struct pattern *p, struct err *err) {
    char safe[80];
    if (!p->name || !*p->name) return err_set(err, STATUS_USAGE, "name: a pattern needs a name");
    if (pattern_make_rows(p, err) == 0 && pattern_check_end(p, err) == 0 && pattern_check_cache(p, err) == 0 &&
        pattern_check_size(p, err) == 0 && pattern_check_readahead(p, err) == 0 && pattern_check_data(p, err) == 0)
        return 0;
    return err_prefix(err, "pattern '%s'", text_safe(safe, sizeof(safe), p->name, strlen(p->name)));
}

void pattern_remarks(const struct pattern *p, uint64_t keys, char *note, size_t len) {
    struct pattern asked = {.given = p->given & keys};
    bool mixed = p->rw == RW_RW || p->rw == RW_RANDRW, writes = pattern_writes(p);
    note[0] = '\0';
    for (unsigned i = 0; !p->n_key_rows && !mixed && i < 2; i++) {
        const char *key = i ? "rwmixwrite" : "rwmixread";
        if (keys_given(&asked, key)) pattern_note(note, len, "%s has no effect: rw= has one direction", key);
    }
    if (keys_given(&asked, "sync") && p->sync != SYNC_NONE && !writes)
        pattern_note(note, len, "sync has no effect: nothing is written");
    if (keys_given(&asked, "fsync") && p->fsync && !writes)
        pattern_note(note, len, "fsync has no effect: nothing is written");
    if (keys_given(&asked, "end_fsync") && p->end_fsync && !writes)
        pattern_note(note, len, "end_fsync has no effect: nothing is written");
    const struct { const char *key; bool set; } data[] = {{"zero_buffers", p->data.zeros && p->data.compress != 100},
                                                          {"dedupe_percentage", p->data.dedupe > 0},
                                                          {"buffer_compress_percentage", p->data.compress > 0}};
    for (unsigned i = 0; !writes && p->prepare != PREPARE_FILL && i < 3; i++)
        if (keys_given(&asked, data[i].key) && data[i].set)
            pattern_note(note, len, "%s has no effect on what is read: it says what is written", data[i].key);
    if (keys_given(&asked, "buffer_compress_percentage") && p->data.compress == 100 && writes)
        pattern_note(note, len, "buffer_compress_percentage=100 is zero_buffers=1");
    if (keys_given(&asked, "rate_backlog") && !p->rate_iops)
        pattern_note(note, len, "rate_backlog has no effect without rate_iops");
    if (keys_given(&asked, "evict") && p->evict && p->cache != CACHE_COLD)
        pattern_note(note, len, "evict has no effect without cache=cold");
    if (keys_given(&asked, "readahead") && p->readahead && !pattern_reads(p))
        pattern_note(note, len, "readahead has no effect: nothing is read");
    if (keys_given(&asked, "time_based") && !p->time_based && !keys_given(p, "loops") && p->loops)
        pattern_note(note, len, "time_based=0 is loops=1: one pass over the working set");
}

/* ---- queries ---- */

bool pattern_reads(const struct pattern *p) {
    for (unsigned i = 0; i < p->n_rows; i++)
        if (p->row[i].read > 0) return true;
    return false;
}

bool pattern_writes(const struct pattern *p) {
    for (unsigned i = 0; i < p->n_rows; i++)
        if (p->row[i].read < 100) return true;
    return false;
}

bool pattern_sequential(const struct pattern *p) {
    for (unsigned i = 0; i < p->n_rows; i++)
        if (p->row[i].random > 0) return false;
    return true;
}

uint32_t pattern_max_io(const struct pattern *p) {
    uint32_t max = 0;
    for (unsigned i = 0; i < p->n_rows; i++)
        if (p->row[i].size > max) max = p->row[i].size;
    return max;
}

static uint64_t pattern_gcd(uint64_t a, uint64_t b) {
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

uint32_t pattern_min_align(const struct pattern *p) {
    uint64_t g = p->offset;
    for (unsigned i = 0; i < p->n_rows; i++) g = pattern_gcd(pattern_gcd(g, p->row[i].size), p->row[i].align);
    return (uint32_t)g;
}

uint64_t pattern_step(const struct pattern *p) {
    uint64_t align = 1;
    for (unsigned i = 0; i < p->n_rows; i++)
        if (p->row[i].align > align) align = p->row[i].align;
    return (pattern_max_io(p) + align - 1) / align * align;
}
