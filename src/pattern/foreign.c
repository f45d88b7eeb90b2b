/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keys that people bring along and that are no keys of a pattern: fio's that change nothing here, fio's that would
 * change the meaning, and those that belong to a target. Each is answered with the reason. */
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "option/option.h"
#include "pattern/keys.h"
#include "pattern/pattern.h"

struct foreign_key {
    const char *name;     /* a glob */
    const char *harmless; /* the one value that changes nothing here (a bare key is 1); "*": every value; NULL: none */
    const char *note;     /* why that changes nothing; NULL: it switches off what does not exist, which needs no word */
    const char *why;      /* why the others are refused */
};

#define FOREIGN_TARGET                                                                                                 \
    "it says what is measured, and that stands on the command line: nfs://HOST/EXPORT/FILE, "                          \
    "iscsi://HOST/IQN/LUN, /dev/NAME or /PATH"
#define FOREIGN_RANGE  "a range hides which sizes were used; name them with bssplit=SIZE/PERCENT:SIZE/PERCENT"
#define FOREIGN_DEPTH  "every slot that comes free is used at once, so that the depth is what iodepth= says"
#define FOREIGN_STEADY "the window is as long as runtime= says, so that all targets are measured equally long"
#define FOREIGN_OUTPUT "--json FILE keeps the result, and the table goes to the standard output"
#define FOREIGN_PARSED "--json FILE keeps the result, for programs"
#define FOREIGN_ETA    "progress is shown on a terminal; --quiet says nothing"
#define FOREIGN_PLAN   "--dry-run shows the plan"
#define FOREIGN_LOGS   "the series of every run is in the result"
#define FOREIGN_DATA                                                                                                   \
    "every write carries new data; it is random unless buffer_compress_percentage=, dedupe_percentage= or "            \
    "zero_buffers=1 ask for other"

static const struct foreign_key foreign_keys[] = {
    {"direct", "1", "I/O goes past the client's page cache wherever that can be done",
     "whether the client caches is a matter of the target (--set LABEL.direct=no), and is said beside its numbers"},
    {"buffered", "0", "I/O goes past the client's page cache wherever that can be done",
     "whether the client caches is a matter of the target (--set LABEL.direct=no), and is said beside its numbers"},
    {"group_reporting", "*", "the workers of a target are always reported together", NULL},
    {"unified_rw_reporting", "*", "reads, writes and their total are all reported", NULL},
    {"thread", "*", "workers are always threads", NULL},
    {"threads", "*", "workers are always threads", NULL},
    {"invalidate", "*", "cache= says what is in the caches before a run", NULL},
    {"randrepeat", "*", "the stream follows from randseed (or the plan's seed), the round and the worker", NULL},
    {"allrandrepeat", "*", "the stream follows from randseed (or the plan's seed), the round and the worker", NULL},
    {"random_generator", "*", "there is one generator", NULL},
    {"random_distribution", "random", "random offsets are uniform",
     "random offsets are uniform; a skewed load needs its own generator"},
    {"refill_buffers", "*", FOREIGN_DATA, NULL},
    {"scramble_buffers", "*", FOREIGN_DATA, NULL},
    {"output", NULL, NULL, FOREIGN_OUTPUT},
    {"output_format", NULL, NULL, FOREIGN_OUTPUT},
    {"eta", "*", FOREIGN_ETA, NULL},
    {"eta_*", "*", FOREIGN_ETA, NULL},
    {"status_interval", "*", "progress is shown on a terminal, and each run leaves its line", NULL},
    {"minimal", NULL, NULL, FOREIGN_PARSED},
    {"terse_version", NULL, NULL, FOREIGN_PARSED},
    {"showcmd", NULL, NULL, FOREIGN_PLAN},
    {"parse_only", NULL, NULL, FOREIGN_PLAN},
    {"section", NULL, NULL, "--only PATTERN takes some of a file's patterns"},
    {"debug", NULL, NULL, "--verbose says more"},
    {"log_avg_msec", "*", FOREIGN_LOGS, NULL},
    {"log_*_msec", "*", FOREIGN_LOGS, NULL},
    {"write_*_log", "*", FOREIGN_LOGS, NULL},
    {"per_job_logs", "*", FOREIGN_LOGS, NULL},
    {"percentile_list", "*", "the whole histogram is in the result", NULL},
    {"*_percentiles", "*", "the whole histogram is in the result", NULL},
    {"disk_util", "*", "what reached the device is always reported", NULL},
    {"clocksource", "*", "the clock is CLOCK_MONOTONIC", NULL},
    {"gtod_reduce", "0", NULL, "every I/O is timed"},
    {"create_serialize", "*", "targets are prepared one after another", NULL},
    {"create_on_open", "*", "files are created before the first run", NULL},
    {"fallocate", "*", "prepare= says how a file is filled", NULL},
    {"file_service_type", "*", "the members of a target are one address space", NULL},
    {"exitall", "*", "patterns run one after another", NULL},
    {"exitall_on_error", "*", "patterns run one after another", NULL},
    {"new_group", "*", "every pattern is reported by itself", NULL},
    {"fadvise_hint", "*", "the kernel's readahead is not in the way", NULL},

    {"filename", NULL, NULL, FOREIGN_TARGET},
    {"filename_format", NULL, NULL, FOREIGN_TARGET},
    {"directory", NULL, NULL, FOREIGN_TARGET},
    {"ioengine", NULL, NULL,
     "the target on the command line decides it: nfs://HOST/EXPORT/FILE, iscsi://HOST/IQN/LUN, "
     "/dev/NAME or /PATH"},
    {"nfs_url", NULL, NULL, FOREIGN_TARGET},
    {"hostname", NULL, NULL, FOREIGN_TARGET},
    {"nrfiles", "1", NULL, "several files are members of one target: --set LABEL.nrfiles=N"},
    {"openfiles", NULL, NULL, "several files are several members of one target: LABEL=URL LABEL=URL"},
    {"filesize", NULL, NULL, "size= is the working set, and with offset= the size of a new file"},
    {"fill_device", "0", NULL, "size= says how much, prepare=fill fills"},
    {"verify*", "0", NULL, "data is not verified during a measurement: the client's time for it would be measured"},
    {"do_verify", "0", NULL, "data is not verified during a measurement"},
    {"bsrange", NULL, NULL, FOREIGN_RANGE},
    {"blocksize_range", NULL, NULL, FOREIGN_RANGE},
    {"bs_unaligned", "0", NULL, "offsets are multiples of blockalign="},
    {"fsync_on_close", "0", NULL, "nothing is closed at the end of the window; end_fsync=1 flushes there"},
    {"fdatasync", "0", NULL, "fsync=N flushes after every N writes"},
    {"sync_file_range", NULL, NULL, "fsync=N flushes after every N writes"},
    {"iodepth_batch*", NULL, NULL, FOREIGN_DEPTH},
    {"iodepth_low", NULL, NULL, FOREIGN_DEPTH},
    {"rate", "0", NULL, "rate_iops=N sets a rate in I/Os"},
    {"rate_*", NULL, NULL, "rate_iops=N is an evenly spaced rate; what could not be kept up is reported"},
    {"latency_*", NULL, NULL, "the depth stays what iodepth= says; a search for a latency would change it in the run"},
    {"ss", NULL, NULL, FOREIGN_STEADY},
    {"ss_*", NULL, NULL, FOREIGN_STEADY},
    {"steadystate*", NULL, NULL, FOREIGN_STEADY},
    {"buffer_compress_chunk", "512", NULL, "each sector of 512 bytes has its share of zeros, and proves itself"},
    {"buffer_pattern*", NULL, NULL, FOREIGN_DATA},
    {"dedupe_mode", "repeat", NULL, "a write repeats the last one that repeated nothing"},
    {"dedupe_global", "0", NULL, "each worker repeats its own writes"},
    {"dedupe_working_set_percentage", NULL, NULL, "a write repeats the last one that repeated nothing (fio's repeat)"},
    {"zonemode", "none", NULL, "there are no zones"},
    {"zone*", "0", NULL, "there are no zones"},
    {"wait_for", NULL, NULL, "patterns run one after another, in the order of the file"},
    {"startdelay", "0", NULL, "patterns run one after another, and each begins when its target has settled"},
    {"exec_prerun", NULL, NULL, "no commands are run from a pattern file"},
    {"exec_postrun", NULL, NULL, "no commands are run from a pattern file"},
    {"read_iolog", NULL, NULL, "recorded I/O is not replayed"},
    {"write_iolog", NULL, NULL, "I/O is not recorded; the stream can be made again from the seed"},
    {"thinktime_*", NULL, NULL, "thinktime= pauses without spinning, after thinktime_blocks= I/Os"},
    {"number_ios", NULL, NULL, "io_size=SIZE ends a run after so many bytes"},
    {"cpus_allowed_policy", "split", NULL, "each worker is pinned to one CPU of cpus_allowed="},
    {"cpumask", NULL, NULL, "cpus_allowed= takes a list of CPUs"},
    {NULL, NULL, NULL, NULL}};

static const char *const foreign_switches[] = {
    "direct", "buffered", "group_reporting", "thread", "threads", "invalidate", "randrepeat", "allrandrepeat",
    "refill_buffers", "scramble_buffers", "minimal", "showcmd", "parse_only", "per_job_logs", "*_percentiles",
    "disk_util", "gtod_reduce", "create_serialize", "create_on_open", "exitall", "exitall_on_error", "new_group",
    "fill_device", "do_verify", "bs_unaligned", "fsync_on_close", "dedupe_global", NULL};

const char *const foreign_access_keys[] = {"engine",
                                           "nconnect",
                                           "rsize",
                                           "wsize",
                                           "rcvbuf",
                                           "sndbuf",
                                           "window",
                                           "quickack",
                                           "congestion",
                                           "mss",
                                           "bind",
                                           "uid",
                                           "gid",
                                           "nfsport",
                                           "mountport",
                                           "export",
                                           "sessions",
                                           "portals",
                                           "rr",
                                           "header_digest",
                                           "initiator",
                                           "user",
                                           "password",
                                           "password_file",
                                           "target_user",
                                           "target_password_file",
                                           "nonoptimized",
                                           "data_digest",
                                           "immediate_data",
                                           "initial_r2t",
                                           "first_burst",
                                           "max_burst",
                                           "max_recv",
                                           "max_outstanding_r2t",
                                           "deliver",
                                           "wait",
                                           "ping",
                                           "nrfiles",
                                           "link",
                                           "same",
                                           "identity",
                                           "servers",
                                           "stripe",
                                           "lat",
                                           "lat_dist",
                                           "jitter",
                                           "delay",
                                           "kernel_readahead",
                                           "nomerges",
                                           "errors",
                                           "error_seed",
                                           "short",
                                           "lost_after",
                                           "block",
                                           "max_depth",
                                           "max_io",
                                           "read_only",
                                           "write_cache",
                                           NULL};

/* Says what would be right for a key that nobody knows. */
static int foreign_unknown(const char *key, struct err *err) {
    char safe[64], lower[64];
    size_t n = strlen(key);
    text_safe(safe, sizeof(safe), key, n);
    for (size_t i = 0; i <= n && n < sizeof(lower); i++) lower[i] = (char)tolower((unsigned char)key[i]);
    if (n < sizeof(lower) && strcmp(lower, key) != 0 && option_find(pattern_options, lower))
        return err_set(err, STATUS_USAGE, "unknown key '%s'; keys are written in lower case: %s", safe, lower);
    const char *near = option_nearest(pattern_options, key);
    return err_set(err, STATUS_USAGE, "unknown key '%s'%s%s%s", safe, near ? "; did you mean " : "", near ? near : "",
                   near ? "?" : "; samedisk-patterns(5) has all of them");
}

static int foreign_answer(const struct foreign_key *f, const char *key, const char *value, char *note, size_t len,
                          struct err *err) {
    char safe[64];
    bool any = f->harmless && strcmp(f->harmless, "*") == 0;
    if (any || (f->harmless && strcmp(f->harmless, value ? value : "1") == 0)) {
        bool shown = any && value && !pattern_is_fios_switch(key); /* that it was taken for its value must be seen */
        text_safe(safe, sizeof(safe), shown ? value : "", SIZE_MAX);
        if (f->note) snprintf(note, len, "%s%s%s has no effect here: %s", key, shown ? "=" : "", safe, f->note);
        return 0;
    }
    if (!f->harmless) return err_set(err, STATUS_USAGE, "%s is fio's and not taken here: %s", key, f->why);
    return err_set(err, STATUS_USAGE, "%s%s%s is not taken here (only %s=%s): %s", key, value ? "=" : "",
                   value ? text_safe(safe, sizeof(safe), value, strlen(value)) : "", key, f->harmless, f->why);
}

/* With '_' where `key` has '-'; false: longer than any. */
static bool foreign_word(const char *key, char word[64]) {
    size_t n = strlen(key);
    if (n >= 64) return false;
    for (size_t i = 0; i <= n; i++) word[i] = key[i] == '-' ? '_' : key[i];
    return true;
}

bool pattern_is_fios_switch(const char *key) {
    char word[64];
    if (!foreign_word(key, word)) return false;
    for (const char *const *s = foreign_switches; *s; s++)
        if (text_glob(*s, word)) return true;
    return false;
}

bool pattern_is_fios(const char *key) {
    char word[64];
    if (!foreign_word(key, word)) return false;
    for (const struct foreign_key *f = foreign_keys; f->name; f++)
        if (text_glob(f->name, word)) return true;
    return false;
}

int foreign_set(const char *key, const char *value, char *note, size_t len, struct err *err) {
    char word[64];
    note[0] = '\0';
    if (!foreign_word(key, word)) return foreign_unknown(key, err);
    for (const struct foreign_key *f = foreign_keys; f->name; f++)
        if (text_glob(f->name, word)) return foreign_answer(f, word, value, note, len, err);
    for (const char *const *a = foreign_access_keys; *a; a++) {
        if (strcmp(*a, word) != 0) continue;
        return err_set(err, STATUS_USAGE,
                       "%s belongs to a target, not to a pattern: write --set LABEL.%s=VALUE, or "
                       "?%s=VALUE behind the target's URL",
                       word, word, word);
    }
    return foreign_unknown(key, err);
}
