/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A pattern: one access specification, with every key of the load. Data only; who reads files is set.h, who makes the
 * I/O stream is stream.h. */
#ifndef PATTERN_PATTERN_H
#define PATTERN_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/io.h"
#include "option/option.h"
#include "pattern/data.h"

#define PATTERN_ROWS 64 /* lines of an access specification; entries of each list of bssplit */
#define PATTERN_ALL_ROWS (2 * PATTERN_ROWS) /* bssplit with a list for reads and another for writes */
#define PATTERN_SHARES 10000u /* a share of 100 % */
#define PATTERN_SHOWN 8200    /* a buffer in which option_show has room for any key */
#define PATTERN_SECTOR 512u   /* sizes, alignments and offsets are multiples of it */

enum pattern_rw { RW_READ, RW_WRITE, RW_RANDREAD, RW_RANDWRITE, RW_RW, RW_RANDRW };
enum pattern_position { POSITION_SHARED, POSITION_SEPARATE };
enum pattern_cache { CACHE_ASIS, CACHE_WARM, CACHE_COLD };
/* AUTO: fill where writing is agreed, else check */
enum pattern_prepare { PREPARE_AUTO, PREPARE_FILL, PREPARE_CHECK, PREPARE_NONE };

#define ROUNDS_BALANCED UINT64_MAX /* rounds=balanced: 4 for two targets, 6 for three, 2n for more, 3 for one */

#define PATTERN_READAHEAD_MAX (64u << 20)

struct pattern_row {     /* one line of an access specification */
    uint32_t size;       /* bytes per I/O */
    uint32_t share;      /* hundredths of a percent of the I/Os; all rows of a pattern sum to PATTERN_SHARES */
    uint32_t read;       /* percent of these that read */
    uint32_t random;     /* percent of these at a random position */
    uint32_t align;      /* bytes; offsets (from the working set's start) are multiples of it */
};

#define PATTERN_CPUS 64       /* in one list */
#define PATTERN_CPU_END 1024  /* as many as a cpu_set_t has */
struct pattern_cpus { unsigned n; uint16_t cpu[PATTERN_CPUS]; };

struct pattern_split { uint32_t size, share; }; /* bssplit; share in percent */

struct pattern {
    char *name;          /* the section's name or name=; owned */
    char *description;
    char *origin;        /* "vmtn.ini:12", for messages; NULL: the command line alone */
    char *section;       /* the file's name for it, where the command line has made another load of it; else NULL */
    char *changed;       /* ... by these keys: "bs=1m rw=write" */
    /* what the keys said */
    int rw;              /* enum pattern_rw */
    uint64_t bs;
    struct pattern_split read_split[PATTERN_ROWS], write_split[PATTERN_ROWS];
    unsigned n_read_split, n_write_split;
    uint64_t rwmixread;          /* percent; rwmixwrite sets it too, last one wins */
    uint64_t percentage_random;  /* percent, of a rand* rw; default 100. Sequential rw: 0 */
    uint64_t blockalign;         /* 0: the block size of each I/O */
    int position;                /* enum pattern_position */
    struct pattern_row key_rows[PATTERN_ROWS]; /* row= lines; align 0: the row's size */
    unsigned n_key_rows;
    bool rows_inherited;         /* the next row= starts a new list instead of adding to this one */
    uint64_t size, offset;       /* size 0: the smallest existing target */
    uint64_t iodepth, numjobs;
    uint64_t runtime, ramp_time; /* ns; runtime 0 after pattern_finish: only io_size or loops ends the run */
    uint64_t io_size, loops;     /* 0: time-based. bytes per target; passes over the working set */
    bool time_based;             /* fio's word; must agree with the two lines above */
    uint64_t thinktime, thinktime_blocks; /* ns; I/Os completed between two pauses */
    struct pattern_cpus cpus;    /* worker w is pinned to cpu[w % n]; n 0: the scheduler decides */
    uint64_t readahead;          /* bytes of the client's largest readahead window; 0: none */
    uint64_t rate_iops;          /* per target; 0: closed loop */
    uint64_t rate_backlog;       /* ns of I/Os that may be owed; 0: the window's length */
    struct data_choice data;     /* what is written; zeros is also set by compress 100 (pattern_finish) */
    int sync;                    /* enum io_sync */
    uint64_t fsync;              /* a flush after every N completed writes; 0: none */
    bool end_fsync;
    uint64_t randseed;           /* 0: the plan's seed */
    uint64_t rounds;             /* or ROUNDS_BALANCED */
    int prepare, cache;          /* enum pattern_prepare, pattern_cache */
    uint64_t server_cache;       /* declared; 0: not */
    uint64_t evict;              /* bytes read for cache=cold, at least server_cache */
    bool stonewall;              /* accepted: patterns always run one after another */
    uint64_t given;              /* bit i: pattern_options[i] was set, not only defaulted */
    /* what they come to (pattern_finish) */
    struct pattern_row row[PATTERN_ALL_ROWS];
    unsigned n_rows;
    uint64_t kept;       /* bytes at the range's start that its I/O leaves alone (plan_resolve) */
};

extern const struct option_entry pattern_options[];

int pattern_init(struct pattern *p, const char *name, struct err *err); /* defaults */
/* Copies everything, also owned strings. */
int pattern_copy(struct pattern *to, const struct pattern *from, struct err *err);
void pattern_free(struct pattern *p);
/* Sets one key; a key that cannot stand beside another replaces its family (bs drops bssplit, row drops rw, bs, ...),
 * and what was dropped is written to `note` (a caller's buffer of len bytes, 400 will do; "" if nothing), as is a fio
 * key that has no effect here (for one of these alone `p` may be NULL). Errors say what is wrong with key or value;
 * the caller prefixes the position. */
int pattern_set(struct pattern *p, const char *key, const char *value, char *note, size_t len, struct err *err);
/* From now on keys come from a stronger source (section after [global], command line after section). */
void pattern_next_source(struct pattern *p);
/* Checks the keys against each other and makes `row`. Errors (USAGE) name pattern and key. */
int pattern_finish(struct pattern *p, struct err *err);
/* After pattern_finish: in words, keys among `keys` (bits as in `given`) that do nothing in this pattern; "" if none */
void pattern_remarks(const struct pattern *p, uint64_t keys, char *note, size_t len);
/* Is `key` one of fio's job files that is no key here? pattern_set answers it with a note or the reason why not. */
bool pattern_is_fios(const char *key);
/* Of those, is it a switch, which fio takes without a value? The others have one. */
bool pattern_is_fios_switch(const char *key);
bool pattern_reads(const struct pattern *p);
bool pattern_writes(const struct pattern *p);
uint32_t pattern_max_io(const struct pattern *p);      /* largest row size */
/* What offsets and lengths are multiples of: gcd of aligns, sizes, and the pattern's offset. */
uint32_t pattern_min_align(const struct pattern *p);
/* Sequential streams begin, and slices are cut, at multiples of it: the largest size and alignment, so that 32k I/Os
 * aligned to 512 bytes still begin on 32k as long as all of them are sequential. */
uint64_t pattern_step(const struct pattern *p);
bool pattern_sequential(const struct pattern *p);      /* no I/O is random: workers keep to slices */

#endif
