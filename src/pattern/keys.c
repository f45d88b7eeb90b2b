/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of all keys of a pattern, and the short parsers. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "pattern/keys.h"
#include "pattern/pattern.h"

#define KEYS_YEAR (365ull * 24 * 3600 * 1000000000ull)
#define KEYS_LARGEST (1ull << 60) /* bytes; far from where sums of two overflow */

static const char *const keys_position[] = {"shared", "separate", NULL};
static const char *const keys_cache[] = {"asis", "warm", "cold", NULL};
static const char *const keys_prepare[] = {"auto", "fill", "check", "none", NULL};

static int keys_show_nothing(const void *field, const void *conf, char *buf, size_t len) {
    (void)field;
    (void)conf;
    (void)buf;
    (void)len;
    return 0;
}

static int keys_parse_size(const char *value, void *field, void *conf, struct err *err) {
    uint64_t bytes;
    (void)conf;
    size_t n = strlen(value);
    if (n && value[n - 1] == '%')
        return err_set(err, STATUS_USAGE, "a percentage would make the working set of each target another one; "
                       "without this key it is the whole of the smallest target");
    if (units_parse_size(value, &bytes, err) != 0) return -1;
    if (bytes > KEYS_LARGEST) return err_set(err, STATUS_USAGE, "%s is more than 1024p", value);
    if (bytes % PATTERN_SECTOR)
        return err_set(err, STATUS_USAGE, "%s is not a multiple of 512 (one sector)", value);
    *(uint64_t *)field = bytes;
    return 0;
}

static int keys_show_size(const void *field, const void *conf, char *buf, size_t len) {
    (void)conf;
    uint64_t bytes = *(const uint64_t *)field;
    return bytes ? (int)strlen(units_size(buf, len, bytes)) : 0;
}

static int keys_parse_rate(const char *value, void *field, void *conf, struct err *err) {
    (void)conf;
    if (strchr(value, ','))
        return err_set(err, STATUS_USAGE, "fio's READ,WRITE form does not keep the mix of reads and writes (a side "
                       "without a limit runs free); give one rate for both, and the mix with rwmixread=");
    return units_parse_uint(value, field, err);
}

static int keys_show_rate(const void *field, const void *conf, char *buf, size_t len) {
    (void)conf;
    return snprintf(buf, len, "%llu", (unsigned long long)*(const uint64_t *)field);
}

/* fio's meaning of a plain number, which for this key alone is not seconds. */
static int keys_parse_thinktime(const char *value, void *field, void *conf, struct err *err) {
    uint64_t ns;
    (void)conf;
    if (units_parse_time(value, &ns, err) != 0) return -1;
    if (value[strspn(value, "0123456789")] == '\0') ns /= 1000000;
    if (ns > KEYS_YEAR) return err_set(err, STATUS_USAGE, "%s is more than a year", value);
    *(uint64_t *)field = ns;
    return 0;
}

static int keys_show_time(const void *field, const void *conf, char *buf, size_t len) {
    (void)conf;
    uint64_t ns = *(const uint64_t *)field;
    return ns ? (int)strlen(units_time(buf, len, ns)) : snprintf(buf, len, "0");
}

static int keys_parse_sync(const char *value, void *field, void *conf, struct err *err) {
    static const struct { const char *word; enum io_sync sync; } words[] = {
        {"none", SYNC_NONE}, {"datastore", SYNC_DATASTORE}, {"dsync", SYNC_DSYNC}, {"sync", SYNC_SYNC},
        {"0", SYNC_NONE},    {"1", SYNC_SYNC}};
    char safe[64];
    (void)conf;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(value, words[i].word) != 0) continue;
        *(int *)field = (int)words[i].sync;
        return 0;
    }
    return err_set(err, STATUS_USAGE, "'%s' is not one of none, datastore, dsync, sync (fio's 0 is none, its 1 sync)",
                   text_safe(safe, sizeof(safe), value, strlen(value)));
}

static int keys_show_sync(const void *field, const void *conf, char *buf, size_t len) {
    (void)conf;
    return snprintf(buf, len, "%s", io_sync_name((enum io_sync)*(const int *)field));
}

static int keys_parse_rounds(const char *value, void *field, void *conf, struct err *err) {
    uint64_t n;
    (void)conf;
    if (strcmp(value, "balanced") == 0) {
        *(uint64_t *)field = ROUNDS_BALANCED;
        return 0;
    }
    if (units_parse_uint(value, &n, err) != 0)
        return err_set(err, STATUS_USAGE, "'%.40s' is no number of rounds: a whole number between 1 and 1000, or balanced", value);
    if (n < 1 || n > 1000) return err_set(err, STATUS_USAGE, "%s rounds: between 1 and 1000, or balanced", value);
    *(uint64_t *)field = n;
    return 0;
}

static int keys_show_rounds(const void *field, const void *conf, char *buf, size_t len) {
    uint64_t n = *(const uint64_t *)field;
    (void)conf;
    if (n == ROUNDS_BALANCED) return snprintf(buf, len, "balanced");
    return snprintf(buf, len, "%llu", (unsigned long long)n);
}

static int keys_parse_norandommap(const char *value, void *field, void *conf, struct err *err) {
    int on = 1;
    (void)field;
    (void)conf;
    if (units_parse_bool(value, &on, err) != 0) return -1;
    if (!on)
        return err_set(err, STATUS_USAGE, "a map of the blocks already used is never kept (it would bend the mix of "
                       "sizes); norandommap=1 is the only mode");
    return 0;
}

static int keys_parse_flag(const char *value, void *field, void *conf, struct err *err) {
    int on;
    (void)conf;
    if (units_parse_bool(value, &on, err) != 0) return -1;
    *(bool *)field = on != 0;
    return 0;
}

#define KEY(field) offsetof(struct pattern, field)

/* Bits of pattern.given follow this order: at most 64 entries.
 * iodepth: every slot has a buffer of the largest block and all are lent at once; what servers and devices take at a
 * time ends far below 4096. */
const struct option_entry pattern_options[] = {
    {.name = "name", .type = OPTION_TEXT, .offset = KEY(name), .value = "TEXT",
     .help = "name of the pattern, if not that of its section"},
    {.name = "description", .type = OPTION_TEXT, .offset = KEY(description), .value = "TEXT",
     .help = "what it imitates"},
    {.name = "rw", .alias = "readwrite", .type = OPTION_CUSTOM, .offset = KEY(rw), .def = "read",
     .value = "read|write|randread|randwrite|rw|randrw", .help = "direction, and sequential or random",
     .parse = shape_parse_rw, .show = shape_show_rw},
    {.name = "bs", .alias = "blocksize", .type = OPTION_CUSTOM, .offset = KEY(bs), .def = "4k", .value = "SIZE[,SIZE]",
     .help = "bytes per I/O, up to 64m; or READ,WRITE", .parse = shape_parse_bs, .show = shape_show_bs},
    {.name = "bssplit", .type = OPTION_CUSTOM, .offset = KEY(read_split),
     .value = "SIZE/PERCENT:...[,SIZE/PERCENT:...]",
     .help = "several block sizes and their shares of the I/Os; or READ,WRITE lists", .parse = shape_parse_bssplit,
     .show = shape_show_bssplit},
    {.name = "rwmixread", .type = OPTION_CUSTOM, .offset = KEY(rwmixread), .def = "50", .value = "PERCENT",
     .help = "share of reads with rw and randrw", .parse = shape_parse_percent, .show = shape_show_rwmixread},
    {.name = "rwmixwrite", .type = OPTION_CUSTOM, .offset = KEY(rwmixread), .value = "PERCENT",
     .help = "the same from the other side: the last of the two wins", .parse = shape_parse_rwmixwrite,
     .show = keys_show_nothing},
    {.name = "percentage_random", .type = OPTION_CUSTOM, .offset = KEY(percentage_random), .value = "PERCENT",
     .help = "share of I/Os at a random offset (default 100 with rand*, else 0)", .parse = shape_parse_percent,
     .show = shape_show_percentage_random},
    {.name = "blockalign", .alias = "ba", .type = OPTION_CUSTOM, .offset = KEY(blockalign), .def = "0", .value = "SIZE",
     .help = "offsets are multiples of it; 0: of each I/O's own size", .parse = shape_parse_blockalign,
     .show = shape_show_blockalign},
    {.name = "row", .type = OPTION_CUSTOM, .offset = KEY(key_rows),
     .value = "'SIZE share=P read=P random=P align=SIZE'",
     .help = "a line of an Iometer access specification; several add up; instead of rw, bs, ...",
     .parse = shape_parse_row, .show = shape_show_row},
    {.name = "position", .type = OPTION_ENUM, .offset = KEY(position), .def = "shared", .names = keys_position,
     .value = "shared|separate",
     .help = "where sequential I/O goes on: one position (Iometer) or one per direction (fio)"},
    {.name = "size", .type = OPTION_CUSTOM, .offset = KEY(size), .value = "SIZE",
     .help = "working set of each target (default the smallest existing target)", .parse = keys_parse_size,
     .show = keys_show_size},
    {.name = "offset", .type = OPTION_CUSTOM, .offset = KEY(offset), .def = "0", .value = "SIZE",
     .help = "where the working set begins", .parse = keys_parse_size, .show = keys_show_size},
    {.name = "iodepth", .type = OPTION_UINT, .offset = KEY(iodepth), .min = 1, .max = 4096, .def = "1", .value = "N",
     .help = "outstanding I/Os of each worker"},
    {.name = "numjobs", .type = OPTION_UINT, .offset = KEY(numjobs), .min = 1, .max = 256, .def = "1", .value = "N",
     .help = "workers of each target"},
    {.name = "runtime", .alias = "timeout", .type = OPTION_TIME, .offset = KEY(runtime), .max = KEYS_YEAR, .def = "30s",
     .value = "TIME", .help = "the measured window, after the ramp; with io_size or loops a limit, none by default"},
    {.name = "ramp_time", .type = OPTION_TIME, .offset = KEY(ramp_time), .max = KEYS_YEAR, .def = "2s", .value = "TIME",
     .help = "load before the window, not counted"},
    {.name = "time_based", .type = OPTION_CUSTOM, .offset = KEY(time_based), .value = "0|1",
     .help = "fio's word for a run of runtime=; 0 is loops=1", .parse = keys_parse_flag, .show = keys_show_nothing},
    {.name = "io_size", .type = OPTION_SIZE, .offset = KEY(io_size), .max = KEYS_LARGEST, .def = "0", .value = "SIZE",
     .help = "ends the window after so many bytes of each target"},
    {.name = "loops", .type = OPTION_UINT, .offset = KEY(loops), .max = 1000000, .def = "0", .value = "N",
     .help = "ends the window after N times the working set"},
    {.name = "thinktime", .type = OPTION_CUSTOM, .offset = KEY(thinktime), .def = "0", .value = "TIME",
     .help = "pause of a worker; a plain number is microseconds, as in fio", .parse = keys_parse_thinktime,
     .show = keys_show_time},
    {.name = "thinktime_blocks", .type = OPTION_UINT, .offset = KEY(thinktime_blocks), .min = 1, .max = 1ull << 40,
     .def = "1", .value = "N", .help = "I/Os completed between two pauses"},
    {.name = "rate_iops", .type = OPTION_CUSTOM, .offset = KEY(rate_iops), .def = "0", .value = "N",
     .help = "I/Os per second of each target at evenly spaced times; 0: as fast as they complete",
     .parse = keys_parse_rate, .show = keys_show_rate},
    {.name = "rate_backlog", .type = OPTION_TIME, .offset = KEY(rate_backlog), .max = KEYS_YEAR, .def = "0",
     .value = "TIME", .help = "with rate_iops, I/Os that are later than this are given up; 0: as long as the window"},
    {.name = "cpus_allowed", .type = OPTION_CUSTOM, .offset = KEY(cpus), .value = "LIST",
     .help = "CPUs that the workers are pinned to, one each in turn: 0-3,8", .parse = cpus_parse, .show = cpus_show},
    {.name = "readahead", .type = OPTION_SIZE, .offset = KEY(readahead), .max = PATTERN_READAHEAD_MAX, .def = "0",
     .value = "SIZE", .help = "client-side readahead of sequential reads, up to 64m; 0: none"},
    {.name = "buffer_compress_percentage", .type = OPTION_UINT, .offset = KEY(data.compress), .max = 100, .def = "0",
     .value = "PERCENT", .help = "share of each written sector that is zeros (fio's chunk of 512 bytes)"},
    {.name = "dedupe_percentage", .type = OPTION_UINT, .offset = KEY(data.dedupe), .max = 100, .def = "0",
     .value = "PERCENT", .help = "share of the writes that repeat the data of an earlier one"},
    {.name = "zero_buffers", .type = OPTION_BOOL, .offset = KEY(data.zeros), .def = "0", .value = "0|1",
     .help = "zeros are written, which many arrays do not store"},
    {.name = "sync", .type = OPTION_CUSTOM, .offset = KEY(sync), .def = "none", .value = "none|datastore|dsync|sync",
     .help = "durability asked of each write", .parse = keys_parse_sync, .show = keys_show_sync},
    {.name = "fsync", .type = OPTION_UINT, .offset = KEY(fsync), .max = 1ull << 40, .def = "0", .value = "N",
     .help = "a flush after every N completed writes of a worker; 0: none"},
    {.name = "end_fsync", .type = OPTION_BOOL, .offset = KEY(end_fsync), .def = "0", .value = "0|1",
     .help = "a flush at the end of the run"},
    {.name = "randseed", .type = OPTION_UINT, .offset = KEY(randseed), .def = "0", .value = "N",
     .help = "seed of this pattern's stream; 0: from the plan's seed and the pattern's name"},
    {.name = "rounds", .type = OPTION_CUSTOM, .offset = KEY(rounds), .def = "1", .value = "N|balanced",
     .help = "passes over all targets; balanced: every order of the targets", .parse = keys_parse_rounds,
     .show = keys_show_rounds},
    {.name = "prepare", .type = OPTION_ENUM, .offset = KEY(prepare), .def = "auto", .names = keys_prepare,
     .value = "auto|fill|check|none", .help = "before the first run; auto: fill where writing was agreed, else check"},
    {.name = "cache", .type = OPTION_ENUM, .offset = KEY(cache), .def = "asis", .names = keys_cache,
     .value = "asis|warm|cold", .help = "the server's cache before each run"},
    {.name = "server_cache", .type = OPTION_SIZE, .offset = KEY(server_cache), .max = KEYS_LARGEST, .def = "0",
     .value = "SIZE", .help = "declared size of the server's cache; 0: not declared"},
    {.name = "evict", .type = OPTION_SIZE, .offset = KEY(evict), .max = KEYS_LARGEST, .def = "0", .value = "SIZE",
     .help = "bytes that cache=cold reads outside the working set (default server_cache)"},
    {.name = "norandommap", .type = OPTION_CUSTOM, .offset = KEY(given), .value = "1",
     .help = "fio's word for what is always so: random offsets are drawn independently",
     .parse = keys_parse_norandommap, .show = keys_show_nothing},
    {.name = "stonewall", .type = OPTION_CUSTOM, .offset = KEY(stonewall), .value = "1",
     .help = "fio's word for what is always so: patterns run one after another", .parse = keys_parse_flag,
     .show = keys_show_nothing},
    {.name = NULL}};

bool keys_given(const struct pattern *p, const char *key) {
    for (unsigned i = 0; pattern_options[i].name; i++)
        if (strcmp(pattern_options[i].name, key) == 0) return p->given >> i & 1;
    return false;
}

bool keys_is_switch(const struct option_entry *e) {
    return e->parse == keys_parse_flag || e->parse == keys_parse_norandommap;
}
