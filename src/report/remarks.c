/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/remarks.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "report/causes.h"
#include "report/figure.h"
#include "report/ping_remark.h"
#include "report/tcp_line.h"
#include "result/json.h"
#include "result/view.h"

#define REMARK_MAX 700
#define SUBMIT_PERCENT 20   /* of the window inside submit: the depth at the device is lower than asked */
#define DEPTH_REACHED  0.8  /* of the depth that was asked for */
#define CPU_PERCENT    90   /* of a core per worker, or of the host */
#define WINDOW_PERCENT 5    /* of the time in which iSCSI's command window was shut */
#define WIRE_OFF       0.01 /* requests on the wire per I/O, off from 1 */
#define WIRE_MATTERS   0.05 /* the same, where it changes how the row is to be read */
#define SHARE_MATTERS  0.05 /* of the time or the blocks */
#define TAIL_MATTERS   2    /* as long as the longest inside the window */
#define READAHEAD_OFF  0.1  /* the same, off from what a readahead sent: of the window, and the other of the run */

/* Each check returns how bad it is (0: nothing to say) and puts the words. */

static const char *safe_text(char *buf, size_t len, const char *text) {
    return text_safe(buf, len, text ? text : "", SIZE_MAX);
}

static const char *plural(uint64_t n) {
    return n == 1 ? "" : "s";
}

static double check_lost(const json_t *run, char *buf, size_t len) {
    char why[400];
    if (!view_text_is(run, "status", "lost")) return 0;
    safe_text(why, sizeof why, view_text(run, "error"));
    snprintf(buf, len, "the target was lost%s%s", why[0] ? ": " : "", why);
    return 1;
}

static double check_interrupted(const json_t *run, char *buf, size_t len) {
    char after[40];
    if (!view_text_is(run, "status", "interrupted")) return 0;
    snprintf(buf, len, "interrupted after %s of the window",
             figure_time(after, sizeof after, view_number(run, "window_ns")));
    return 1;
}

static double check_errors(const json_t *run, char *buf, size_t len) {
    json_t *kinds = view_at(run, "errors"), *count;
    const char *kind;
    uint64_t total = 0;
    json_object_foreach(kinds, kind, count) total += (uint64_t)json_integer_value(count);
    if (!total) return 0;
    size_t at = (size_t)snprintf(buf, len, "%" PRIu64 " I/O%s failed:", total, plural(total));
    json_object_foreach(kinds, kind, count) {
        char name[80], words[260];
        safe_text(name, sizeof name, kind);
        safe_text(words, sizeof words, json_string_value(json_object_get(view_at(run, "error_texts"), kind)));
        if (at < len)
            at += (size_t)snprintf(buf + at, len - at, " %" JSON_INTEGER_FORMAT " %s%s%s%s,", json_integer_value(count),
                                   name, words[0] ? " (" : "", words, words[0] ? ")" : "");
    }
    size_t n = strlen(buf);
    if (buf[n - 1] == ',') buf[n - 1] = '\0';
    return (double)total;
}

/* An error without a failed I/O: a flush that was refused, verification, ... */
static double check_run_error(const json_t *run, char *buf, size_t len) {
    char why[400];
    if (!view_text_is(run, "status", "errors") || !view_text(run, "error") || view_uint(run, "tail/abandoned")) return 0;
    snprintf(buf, len, "%s", safe_text(why, sizeof why, view_text(run, "error")));
    return 1;
}

static double check_holes(const json_t *run, char *buf, size_t len) {
    double holes = view_number(run, "holes");
    char percent[40];
    if (!(holes > 0) || !view_uint(run, "read/ios")) return 0;
    snprintf(buf, len, "%s %% of the working set has no storage behind it: reading it needs no disk",
             figure(percent, sizeof percent, 100 * holes, 3));
    return holes;
}

/* Zeros are no holes: a target that cannot tell may have stored them. */
static double check_zeros(const json_t *run, char *buf, size_t len) {
    uint64_t zeros = view_uint(run, "zeros_sampled");
    if (!zeros || !view_uint(run, "read/ios") || view_number(run, "holes") > 0) return 0;
    snprintf(buf, len, "%" PRIu64 " of %" PRIu64 " sampled blocks hold only zeros%s", zeros,
             view_uint(run, "blocks_sampled"),
             isnan(view_number(run, "holes")) ? ": whether they have storage behind them, the target does not say" : "");
    return (double)zeros / (double)view_uint(run, "blocks_sampled");
}

static double check_rate(const json_t *run, char *buf, size_t len) {
    uint64_t missed = view_uint(run, "rate_missed"), never = missed + view_uint(run, "rate_unsent");
    char given_up[100] = "";
    if (!json_is_true(json_object_get(run, "lat_lower_bound"))) return 0;
    if (missed)
        snprintf(given_up, sizeof given_up, " (%" PRIu64 " were given up: owed for longer than rate_backlog)", missed);
    snprintf(buf, len,
             "rate missed: %" PRIu64 " I/O%s due and never sent%s: until then they count in the latencies, which are "
             "lower bounds",
             never, never == 1 ? " was" : "s were", given_up);
    return (double)never;
}

/* At depth 1 a worker has nothing else to send meanwhile. */
static double check_submit(const json_t *run, char *buf, size_t len) {
    double percent = view_number(run, "submit_percent");
    char text[40];
    if (!(percent > SUBMIT_PERCENT) || view_number(run, "depth_requested") / view_number(run, "workers") < 2) return 0;
    snprintf(buf, len, "submission blocks for %s %% of the window: the depth at the device is lower",
             figure(text, sizeof text, percent, 3));
    return percent;
}

/* iSCSI: the target takes only so many commands (MaxCmdSN). From attach to detach, so over ramp and drain, too. */
static double check_command_window(const json_t *run, char *buf, size_t len) {
    double shut = view_number(run, "protocol/command_window_closed_ns"), workers = view_number(run, "workers");
    double drain = view_number(run, "tail/drain_ns"), sessions = view_number(run, "protocol/sessions");
    double time = view_number(run, "ramp_ns") + view_number(run, "window_ns") + (drain > 0 ? drain : 0);
    double percent = 100 * shut / (time * workers), depth = view_number(run, "depth_requested") / workers;
    char share[40], sessions_words[60] = "";

    if (!(percent > WINDOW_PERCENT)) return 0;
    if (sessions > 1) snprintf(sessions_words, sizeof sessions_words, " on each of %.0f sessions", sessions);
    snprintf(buf, len,
             "iodepth %.0f is beyond the target's command window of %" PRIu64 "%s: it was shut for %s %% of the time, "
             "and %" PRIu64 " commands were out at most: the depth at the target is lower",
             depth, view_uint(run, "protocol/command_window"), sessions_words,
             figure(share, sizeof share, fmin(percent, 100), 3), view_uint(run, "protocol/outstanding_max"));
    return percent;
}

/* Rows are compared as being of one depth. A rate, pauses and a readahead are meant to keep it lower; at depth 1, and in
 * few I/Os, the moments between them count too much. Blocked submission and a shut window say so themselves. */
static double check_depth(const json_t *run, char *buf, size_t len) {
    double asked = view_number(run, "depth_requested"), got = view_number(run, "depth_achieved");
    char text[40];
    char ignored[REMARK_MAX];
    if (view_true(run, "rate_limited") || view_true(run, "pauses") || json_is_object(view_at(run, "wire")) || asked < 2 ||
        !(view_number(run, "total/ios") >= 20 * asked) || !(got > 0) || !(got < DEPTH_REACHED * asked) ||
        check_submit(run, ignored, sizeof ignored) > 0 || check_command_window(run, ignored, sizeof ignored) > 0)
        return 0;
    snprintf(buf, len, "the depth was not reached: %s of %.0f I/Os were out on average; latencies are those of this depth",
             figure(text, sizeof text, got, 3), asked);
    return 1 - got / asked;
}

static double check_tail(const json_t *run, char *buf, size_t len) {
    double longest = view_number(run, "tail/longest_ns"), inside = view_number(run, "total/lat_ns/max");
    char took[40], most[40];
    if (!view_uint(run, "tail/ios") || !(longest > 0) || longest <= inside || view_uint(run, "tail/abandoned")) return 0;
    snprintf(buf, len, "an I/O that was out at the window's end took %s (inside it %s at most): counted in max",
             figure_time(took, sizeof took, longest), isnan(inside) ? "none" : figure_time(most, sizeof most, inside));
    return inside > 0 ? longest / inside : INFINITY;
}

static double check_abandoned(const json_t *run, char *buf, size_t len) {
    uint64_t n = view_uint(run, "tail/abandoned");
    char age[40];
    if (n)
        snprintf(buf, len, "%" PRIu64 " I/O%s still out after %s, when the wait for %s was given up: counted in max", n,
                 n == 1 ? " was" : "s were", figure_time(age, sizeof age, view_number(run, "tail/abandoned_ns")),
                 n == 1 ? "it" : "them");
    return (double)n;
}

/* Answers that mean "not now" (backends/net/again.h), of both protocols. Over the ramp and the drain, too. */
static double check_retries(const json_t *run, char *buf, size_t len) {
    static const struct { const char *key, *name; } kinds[] = {
        { "protocol/retries_jukebox", "JUKEBOX" },
        { "protocol/retries_busy", "BUSY" },
        { "protocol/retries_task_set_full", "TASK SET FULL" },
        { "protocol/retries_unit_attention", "UNIT ATTENTION" },
        { "protocol/retries_transition", "ALUA transition" },
    };
    uint64_t total = view_uint(run, "protocol/retries");
    char list[200] = "", waited[40];
    size_t at = 0;

    if (!total) return 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        uint64_t n = view_uint(run, kinds[i].key);
        if (n)
            at += (size_t)snprintf(list + at, sizeof list - at, "%s%" PRIu64 " %s", at ? ", " : " (", n, kinds[i].name);
    }
    snprintf(buf, len,
             "%" PRIu64 " answer%s of \"try again later\"%s%s: the I/Os waited %s in all for it, which is in their "
             "latencies%s",
             total, plural(total), list, at ? ")" : "",
             figure_time(waited, sizeof waited, view_number(run, "protocol/retry_wait_ns")),
             view_uint(run, "protocol/retries_task_set_full") > total / 2
                 ? "; the target's queue is shorter than what is out: a lower iodepth= shows its own rate" : "");
    return (double)total;
}

/* The same before the run: while the target was filled, and its record of who writes was made. */
static double check_prepare_retries(const json_t *run, char *buf, size_t len) {
    uint64_t n = view_uint(run, "prepare_retries");
    char waited[40];
    if (n)
        snprintf(buf, len,
                 "%" PRIu64 " answer%s of \"try again later\" while the target was prepared: %s were spent waiting, before "
                 "the run",
                 n, plural(n), figure_time(waited, sizeof waited, view_number(run, "prepare_retry_ns")));
    return (double)n;
}

/* READs and WRITEs that the server answered in part (NFS). */
static double check_parts(const json_t *run, char *buf, size_t len) {
    uint64_t reads = view_uint(run, "protocol/short_reads"), writes = view_uint(run, "protocol/short_writes");
    if (reads + writes)
        snprintf(buf, len,
                 "the server moved only a part of %" PRIu64 " READ%s and %" PRIu64 " WRITE%s: the rest was asked for "
                 "again, within the I/O's latency",
                 reads, plural(reads), writes, plural(writes));
    return (double)(reads + writes);
}

/* NFS exports with `secure` want source ports below 1024, and there are 512 of them for each server. */
static double check_reserved_ports(const json_t *run, char *buf, size_t len) {
    uint64_t n = view_uint(run, "protocol/reserved_ports_short"), of = view_uint(run, "protocol/connections");
    if (n)
        snprintf(buf, len, "%" PRIu64 " of %" PRIu64 " connections have no reserved source port, because all 512 are in use "
                 "towards this server: an export with `secure` refuses them", n, of);
    return (double)n;
}

/* What is more than one request per I/O is the rest of those that were answered in part: check_parts says it. */
static bool parts_explain(const json_t *run, double per_io) {
    double sent = view_number(run, "protocol/wire_ios"), ios = sent / per_io;
    double parts = (double)(view_uint(run, "protocol/short_reads") + view_uint(run, "protocol/short_writes"));
    return parts > 0 && per_io > 1 && sent - ios <= parts + WIRE_OFF * ios;
}

/* The statistics of a device count a flush as one request more. */
static bool flushes_explain(const json_t *run, double per_io) {
    double flushes = (double)view_uint(run, "flush/ios"), ios = (double)view_uint(run, "total/ios");
    return flushes > 0 && ios > 0 && per_io > 1 && fabs(per_io - 1 - flushes / ios) <= WIRE_OFF;
}

static double check_wire(const json_t *run, char *buf, size_t len) {
    double per_io = view_number(run, "protocol/wire_ios_per_io");
    uint64_t split = view_uint(run, "protocol/split_ios");
    char text[40];
    if (json_is_object(view_at(run, "wire")) || !(fabs(per_io - 1) > WIRE_OFF)) return 0;
    if (per_io > 1 && split) {
        snprintf(buf, len, "%s requests on the wire per I/O: %" PRIu64 " I/O%s larger than one RPC (rsize, wsize)",
                 figure(text, sizeof text, per_io, 3), split, split == 1 ? " was" : "s were");
        return fabs(log(per_io));
    }
    if (parts_explain(run, per_io) || flushes_explain(run, per_io)) return 0;
    if (per_io < 1 && view_number(run, "holes") > 0) return 0; /* these have a line */
    snprintf(buf, len, "%s requests on the wire per I/O: %s", figure(text, sizeof text, per_io, 3),
             per_io < 1 ? "merged on the way" : "split on the way, or others use it too");
    return fabs(log(per_io));
}

/* The same where the client's page cache stands before the device. What it sends later is its own affair. */
static double check_page_cache(const json_t *run, char *buf, size_t len) {
    double per_io = view_number(run, "protocol/wire_ios_per_io");
    char text[40];
    if (json_is_object(view_at(run, "wire")) || !(1 - per_io > WIRE_OFF) || view_number(run, "holes") > 0) return 0;
    snprintf(buf, len, "the client's page cache took the I/Os: %s requests reached the device per I/O",
             figure(text, sizeof text, per_io, 3));
    return 1 - per_io;
}

static bool through_page_cache(const json_t *document, const char *target) {
    const json_t *targets = view_at(document, "targets");
    for (size_t i = 0; i < json_array_size(targets); i++) {
        const json_t *t = json_array_get(targets, i);
        const char *engine = view_text(t, "engine");
        if (view_text_is(t, "label", target)) return engine && strstr(engine, "page cache");
    }
    return false;
}

static double check_littles_law(const json_t *run, char *buf, size_t len) {
    double off = view_number(run, "littles_law/deviation"), allowed = view_number(run, "littles_law/allowed");
    char from[40], measured[40], percent[40];
    if (!(fabs(off) > allowed)) return 0;
    snprintf(buf, len,
             "Little's law: the latencies make a depth of %s, %s was measured (%s %% apart): do not trust this row",
             figure(from, sizeof from, view_number(run, "littles_law/depth"), 4),
             figure(measured, sizeof measured, view_number(run, "depth_achieved"), 4),
             figure(percent, sizeof percent, 100 * fabs(off), 2));
    return fabs(off);
}

/* With a readahead the wire sees other I/Os than the application makes: rate, latency and depth there, and what it was
 * good for. */
static double check_readahead(const json_t *run, char *buf, size_t len) {
    double hits = view_number(run, "wire/readahead/hits"), misses = view_number(run, "wire/readahead/misses");
    double own = view_number(run, "wire/ios_per_io"), really = view_number(run, "protocol/wire_ios_per_io");
    char rate[40], lat[40], depth[40], per_io[40], share[40], wasted[40];
    if (!json_is_object(view_at(run, "wire"))) return 0;
    int at = snprintf(buf, len,
                      "readahead: below it %s IOPS (%s per I/O), mean %s, depth %s; %s %% of the reads from memory, %s "
                      "read in vain",
                      figure(rate, sizeof rate, view_number(run, "wire/iops"), 4),
                      figure(per_io, sizeof per_io, own, 3),
                      figure_time(lat, sizeof lat, view_number(run, "wire/lat_mean_ns")),
                      figure(depth, sizeof depth, view_number(run, "wire/depth_achieved"), 3),
                      figure(share, sizeof share, hits + misses > 0 ? 100 * hits / (hits + misses) : 0, 3),
                      units_size_human(wasted, sizeof wasted, view_uint(run, "wire/readahead/wasted_bytes")));
    if (fabs(really / own - 1) > READAHEAD_OFF && at > 0 && (size_t)at < len)
        snprintf(buf + at, len - (size_t)at, "; its requests were %s on the way, to %s per I/O",
                 really > own ? "split" : "merged", figure(per_io, sizeof per_io, really, 3));
    return 1;
}

static double check_wire_law(const json_t *run, char *buf, size_t len) {
    double off = view_number(run, "wire/littles_law/deviation"), allowed = view_number(run, "wire/littles_law/allowed");
    char from[40], measured[40], percent[40];
    if (!(fabs(off) > allowed)) return 0;
    snprintf(buf, len,
             "Little's law: the latencies on the wire make a depth of %s, %s was measured (%s %% apart): do not trust "
             "this row",
             figure(from, sizeof from, view_number(run, "wire/littles_law/depth"), 4),
             figure(measured, sizeof measured, view_number(run, "wire/depth_achieved"), 4),
             figure(percent, sizeof percent, 100 * fabs(off), 2));
    return fabs(off);
}

static double check_cpu(const json_t *run, char *buf, size_t len) {
    double per_worker = view_number(run, "cpu/percent") / view_number(run, "workers");
    double host = view_number(run, "cpu/host_percent");
    char text[40];
    if (per_worker >= CPU_PERCENT)
        snprintf(buf, len, "the client's CPU was the limit: %s %% of a core per worker",
                 figure(text, sizeof text, per_worker, 3));
    else if (host >= CPU_PERCENT)
        snprintf(buf, len, "the client's CPUs were %s %% busy, all programs together",
                 figure(text, sizeof text, host, 3));
    else
        return 0;
    return fmax(per_worker, isnan(host) ? 0 : host);
}

static double check_settled(const json_t *run, char *buf, size_t len) {
    double idle = view_number(run, "idle_read_ns"), last = view_number(run, "settle_read_ns");
    char a[40], b[40], c[40];
    if (view_true(run, "settled")) return 0;
    if (idle == 0 && view_number(run, "window_ns") > 0) {
        snprintf(buf, len, "not waited for it to settle: no read at depth 1 worked before, so its idle latency is not known");
        return 1;
    }
    if (!(idle > 0)) return 0;
    snprintf(buf, len, "not settled before the run: a read at depth 1 took %s after %s of waiting, %s when idle",
             figure_time(a, sizeof a, last), figure_time(b, sizeof b, view_number(run, "settle_ns")),
             figure_time(c, sizeof c, idle));
    return last;
}

static double check_flush(const json_t *run, char *buf, size_t len) {
    uint64_t n = view_uint(run, "flush/ios");
    char mean[40], max[40];
    if (n)
        snprintf(buf, len, "%" PRIu64 " flush%s, mean %s, longest %s", n, n == 1 ? "" : "es",
                 figure_time(mean, sizeof mean, view_number(run, "flush/lat_ns/mean")),
                 figure_time(max, sizeof max, view_number(run, "flush/lat_ns/max")));
    /* Of the time that all slots had. */
    double slots = view_number(run, "window_ns") * view_number(run, "depth_requested");
    double share = (double)n * view_number(run, "flush/lat_ns/mean") / slots;
    return n ? share > 0 ? share : 1e-9 : 0;
}

static double check_end_flush(const json_t *run, char *buf, size_t len) {
    double ns = view_number(run, "end_flush_ns");
    char took[40];
    if (!(ns > 0)) return 0;
    snprintf(buf, len, "the flush at the end took %s", figure_time(took, sizeof took, ns));
    return ns / view_number(run, "window_ns");
}

static double check_grown(const json_t *run, char *buf, size_t len) {
    uint64_t by = view_uint(run, "protocol/lun_grown_bytes");
    char size[24];
    if (by)
        snprintf(buf, len, "the LUN has grown by %s since it was opened, and was used as large as it was",
                 units_size_human(size, sizeof size, by));
    return (double)by;
}

struct check {
    double (*look)(const json_t *run, char *buf, size_t len);
    double finding_from; /* as bad as this, it changes how the row is to be read */
};

static const struct check checks[] = {
    {check_lost, 0},
    {check_interrupted, 0},
    {check_errors, 0},
    {check_run_error, 0},
    {check_holes, 0},
    {check_zeros, SHARE_MATTERS},
    {check_rate, 0},
    {check_submit, 0},
    {check_depth, 0},
    {check_command_window, 0},
    {check_tail, TAIL_MATTERS},
    {check_abandoned, 0},
    {check_retries, 0},
    {check_prepare_retries, 0},
    {check_parts, 0},
    {check_reserved_ports, 0},
    {check_wire, WIRE_MATTERS},
    {check_littles_law, 0},
    {check_cpu, 0},
    {check_settled, 0},
    {check_flush, SHARE_MATTERS},
    {check_end_flush, SHARE_MATTERS},
    {check_readahead, 0},
    {check_wire_law, 0},
    {check_grown, 0},
};

/* Those of single runs: the worst one is quoted. */
static void remark_of_runs(const json_t *document, const char *pattern, const char *target,
                           double (*look)(const json_t *, char *, size_t), double finding_from, remark_fn *emit,
                           void *arg) {
    const json_t *runs = view_at(document, "runs");
    char worst[REMARK_MAX], text[REMARK_MAX], line[REMARK_MAX + 40];
    double most = 0;
    unsigned hits = 0, n = 0;
    for (size_t i = 0; i < json_array_size(runs); i++) {
        const json_t *run = json_array_get(runs, i);
        if (!view_text_is(run, "pattern", pattern) || !view_text_is(run, "target", target)) continue;
        n++;
        double bad = look(run, text, sizeof text);
        if (!(bad > 0)) continue;
        hits++;
        if (bad > most) {
            most = bad;
            memcpy(worst, text, sizeof worst);
        }
    }
    if (!hits) return;
    if (n > 1)
        snprintf(line, sizeof line, "%s (%u of %u rounds)", worst, hits, n);
    else
        snprintf(line, sizeof line, "%s", worst);
    emit(arg, &(struct remark){line, most >= finding_from});
}

void remarks_of_row(const json_t *document, const char *pattern, const char *target, remark_fn *emit, void *arg) {
    char line[REMARK_MAX];
    bool finding;
    bool cached = through_page_cache(document, target);
    for (size_t c = 0; c < sizeof checks / sizeof *checks; c++)
        remark_of_runs(document, pattern, target,
                       cached && checks[c].look == check_wire ? check_page_cache : checks[c].look, checks[c].finding_from,
                       emit, arg);
    for (const struct cause *c = causes; c->look; c++)
        remark_of_runs(document, pattern, target, c->look, c->finding_from, emit, arg);
    tcp_findings(document, pattern, target, emit, arg);
    if (ping_remark(document, pattern, target, line, sizeof line, &finding)) emit(arg, &(struct remark){line, finding});
    if (tcp_line(document, pattern, target, line, sizeof line)) emit(arg, &(struct remark){line, false});
}

/* ---- in the result ---- */

struct collected {
    json_t *list;
    const char *pattern, *target;
    bool failed;
};

static void collect(void *arg, const struct remark *r) {
    struct collected *c = arg;
    json_t *j = json_pack("{s:s, s:s, s:b, s:o}", "pattern", c->pattern, "target", c->target, "finding", (int)r->finding,
                          "text", json_of_text(r->text));
    if (!j || json_array_append_new(c->list, j)) c->failed = true;
}

json_t *remarks_json(const json_t *document) {
    const json_t *summary = view_at(document, "summary");
    struct collected c = {.list = json_array()};
    if (!c.list) return NULL;
    for (size_t i = 0; i < json_array_size(summary); i++) {
        c.pattern = view_text(json_array_get(summary, i), "pattern");
        c.target = view_text(json_array_get(summary, i), "target");
        if (c.pattern && c.target) remarks_of_row(document, c.pattern, c.target, collect, &c);
    }
    if (!c.failed) return c.list;
    json_decref(c.list);
    return NULL;
}
