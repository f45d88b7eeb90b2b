/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/ping_remark.h"

#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "report/figure.h"
#include "result/view.h"

/* The round of the largest mean latency; *rounds: of how many. */
static const json_t *slowest(const json_t *document, const char *pattern, const char *target, unsigned *rounds) {
    const json_t *runs = view_at(document, "runs"), *found = NULL;
    double most = -1;
    *rounds = 0;
    for (size_t i = 0; i < json_array_size(runs); i++) {
        const json_t *run = json_array_get(runs, i);
        double mean = view_number(run, "total/clat_ns/mean");
        if (!view_text_is(run, "pattern", pattern) || !view_text_is(run, "target", target)) continue;
        (*rounds)++;
        if (!json_is_object(view_at(run, "ping")) || (found && !(mean > most))) continue;
        found = run;
        most = mean;
    }
    return found;
}

static bool several_members(const json_t *document, const char *target) {
    const json_t *targets = view_at(document, "targets");
    for (size_t i = 0; i < json_array_size(targets); i++) {
        const json_t *t = json_array_get(targets, i);
        if (view_text_is(t, "label", target)) return json_array_size(view_at(t, "members")) > 1;
    }
    return false;
}

/* What people call it. */
static const char *name_of(const json_t *run, char *buf, size_t len) {
    const char *kind = view_text(run, "ping/by");
    if (!kind) return "protocol";
    if (!strcmp(kind, "null_rpc")) return "NULL";
    if (!strcmp(kind, "nop_out")) return "NOP-Out";
    return text_safe(buf, len, kind, SIZE_MAX);
}

static const json_t *first_kind(const json_t *run) {
    const char *by = view_text(run, "ping/by");
    return by ? json_object_get(view_at(run, "ping/kinds"), by) : NULL;
}

/* False: too few pings for words. */
static bool put_words(const json_t *run, const char *name, char *buf, size_t len) {
    const json_t *kind = first_kind(run);
    uint64_t n = view_uint(kind, "n"), lost = view_uint(kind, "lost");
    double front = view_number(run, "ping/front_ns"), server = view_number(run, "ping/server_ns");
    double mean = view_number(run, "total/clat_ns/mean");
    char a[40], b[40], c[40], d[40];

    if (n + lost == 0 || isnan(mean)) return false;
    if (isnan(front))
        snprintf(buf, len, "%" PRIu64 " of %" PRIu64 " %s pings were not answered until the next was due", lost,
                 n + lost, name);
    else if (isnan(server))
        snprintf(buf, len, "%" PRIu64 " %s ping%s took %s, longer than an I/O (%s): the server's share is too small for them",
                 n, name, n == 1 ? "" : "s", figure_time(a, sizeof a, view_number(kind, "median_ns")),
                 figure_time(b, sizeof b, mean));
    else
        snprintf(buf, len,
                 "estimate from %" PRIu64 " %s ping%s: network %s, queues %s, server and transfer %s of a mean of %s", n, name,
                 n == 1 ? "" : "s", figure_time(a, sizeof a, view_number(run, "ping/network_ns")),
                 figure_time(b, sizeof b, front), figure_time(c, sizeof c, server), figure_time(d, sizeof d, mean));
    if (lost && !isnan(front)) {
        size_t at = strlen(buf);
        if (at < len) snprintf(buf + at, len - at, "; %" PRIu64 " more had no answer in time", lost);
    }
    return true;
}

bool ping_remark(const json_t *document, const char *pattern, const char *target, char *buf, size_t len, bool *finding) {
    unsigned rounds;
    char kind[60], why[300];
    const json_t *run = slowest(document, pattern, target, &rounds);
    if (!run) return false;
    const char *error = view_text(run, "ping/error");
    bool words = put_words(run, name_of(run, kind, sizeof kind), buf, len);
    if (!words && !error) return false;
    *finding = words && isnan(view_number(run, "ping/front_ns"));
    if (!words) snprintf(buf, len, "no estimate of network and server time");
    size_t at = strlen(buf);
    if (words && several_members(document, target) && at < len)
        at += (size_t)snprintf(buf + at, len - at, "; the first member's server was asked");
    if (error && at < len) at += (size_t)snprintf(buf + at, len - at, "; %s", text_safe(why, sizeof why, error, SIZE_MAX));
    if (rounds > 1 && at < len) snprintf(buf + at, len - at, " (the slowest of %u rounds)", rounds);
    return true;
}
