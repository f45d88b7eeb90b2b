/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/tcp_line.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "report/figure.h"
#include "result/view.h"

/* Reads come as fast as one receive window per round trip allows, within so much: it is the window that limits. */
#define NEAR_LOW  0.8
#define NEAR_HIGH 1.1
#define LIMIT_PERCENT 5 /* of the time, from where on a limit matters */
#define FINDING_MAX   300

struct tcp {                    /* NAN: unknown */
    double min_rtt, retransmits, out_of_order, receive_window, server_window;
    double rwnd, sndbuf;        /* percent of the window, of the round with the most */
    double window_ns, read_bytes, written_bytes, connections;
    unsigned rounds;
};

static void put(char *buf, size_t len, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void put(char *buf, size_t len, const char *fmt, ...) {
    size_t at = strlen(buf);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(buf + at, len - at, fmt, ap);
    va_end(ap);
}

static double protocol(const json_t *run, const char *part, const char *name) {
    char path[100];
    snprintf(path, sizeof path, "%s/%s", part, name);
    return view_number(run, path);
}

/* The largest that was seen at any time. */
static double largest(const json_t *run, const char *name) {
    double most = fmax(protocol(run, "protocol_at_start", name), protocol(run, "protocol", name));
    char path[100];
    snprintf(path, sizeof path, "series/protocol/%s", name);
    const json_t *values = view_at(run, path);
    for (size_t i = 0; i < json_array_size(values); i++) {
        const json_t *v = json_array_get(values, i);
        if (json_is_number(v)) most = fmax(most, json_number_value(v));
    }
    return most;
}

static double plus(double sum, double value) {
    return isnan(sum) ? value : isnan(value) ? sum : sum + value;
}

static void take(struct tcp *t, const json_t *run) {
    t->connections = fmax(t->connections, protocol(run, "protocol", "tcp_connections"));
    t->min_rtt = fmin(t->min_rtt, protocol(run, "protocol", "tcp_min_rtt_ns"));
    t->retransmits = plus(t->retransmits, protocol(run, "protocol", "tcp_retransmits"));
    t->out_of_order = plus(t->out_of_order, protocol(run, "protocol", "tcp_out_of_order"));
    t->rwnd = fmax(t->rwnd, protocol(run, "protocol", "tcp_rwnd_limited_percent"));
    t->sndbuf = fmax(t->sndbuf, protocol(run, "protocol", "tcp_sndbuf_limited_percent"));
    t->receive_window = fmax(t->receive_window, largest(run, "tcp_rcv_wnd_bytes"));
    t->server_window = fmax(t->server_window, largest(run, "tcp_snd_wnd_bytes"));
    t->window_ns += view_number(run, "window_ns");
    t->read_bytes += view_number(run, "read/bytes");
    t->written_bytes += view_number(run, "write/bytes");
    t->rounds++;
}

static void put_count(char *buf, size_t len, double n, const char *what) {
    if (isnan(n)) return;
    if (n > 0) put(buf, len, ", %.0f %s%s", n, what, n > 1 ? "s" : "");
    else put(buf, len, ", no %ss", what);
}

/* What one window per round trip allows, against what came: in words where it is the limit. */
static bool read_limit(const struct tcp *t, char *buf, size_t len) {
    char window[40], rtt[40], rate[40], most[40];
    double each = t->read_bytes / t->connections * 1e9 / t->window_ns, allowed = t->receive_window * 1e9 / t->min_rtt;
    if (!(t->read_bytes > 0 && t->receive_window > 0 && each >= NEAR_LOW * allowed && each <= NEAR_HIGH * allowed))
        return false;
    snprintf(buf, len, "it is the client's receive window that limits: %s / %s = %s MiB/s%s, and %s MiB/s came",
             units_size_human(window, sizeof window, (uint64_t)t->receive_window),
             figure_time(rtt, sizeof rtt, t->min_rtt), figure_mib(most, sizeof most, allowed, 4),
             t->connections > 1 ? " for each connection" : "", figure_mib(rate, sizeof rate, each, 4));
    return true;
}

static void put_read(const struct tcp *t, char *buf, size_t len) {
    char window[40], limit[FINDING_MAX];
    if (!(t->receive_window > 0)) return;
    put(buf, len, ", receive window %s", units_size_human(window, sizeof window, (uint64_t)t->receive_window));
    if (read_limit(t, limit, sizeof limit)) put(buf, len, "; %s", limit);
}

/* window= of this target; NAN: not given. */
static double window_asked(const json_t *document, const char *target) {
    const json_t *targets = view_at(document, "targets");
    for (size_t i = 0; i < json_array_size(targets); i++) {
        const json_t *t = json_array_get(targets, i);
        if (view_text_is(t, "label", target))
            return view_number(json_array_get(view_at(t, "members"), 0), "negotiated/tcp_window_asked");
    }
    return NAN;
}

static bool not_kept_to(const json_t *document, const char *target, const struct tcp *t, char *buf, size_t len) {
    char most[40];
    if (!(t->receive_window > window_asked(document, target))) return false;
    snprintf(buf, len, "window= was not kept to: %s was advertised",
             units_size_human(most, sizeof most, (uint64_t)t->receive_window));
    return true;
}

/* " (SIZE)", or nothing where it is not known. */
static const char *servers_window(const struct tcp *t, char *buf, size_t len) {
    char size[32];
    buf[0] = '\0';
    if (t->server_window > 0)
        snprintf(buf, len, " (%s)", units_size_human(size, sizeof size, (uint64_t)t->server_window));
    return buf;
}

static void put_written(const struct tcp *t, char *buf, size_t len) {
    char window[40], number[40];
    servers_window(t, window, sizeof window);
    if (isnan(t->rwnd)) {
        if (window[0]) put(buf, len, ", server's receive window%s", window);
        return;
    }
    put(buf, len, "; limited by the server's receive window%s for %s%s %% of the time", window,
        t->rounds > 1 ? "up to " : "", figure(number, sizeof number, t->rwnd, 2));
    if (!isnan(t->sndbuf))
        put(buf, len, ", by the send buffer for %s %%", figure(number, sizeof number, t->sndbuf, 2));
}

/* False: no TCP, or nothing is known. */
static bool take_all(struct tcp *t, const json_t *document, const char *pattern, const char *target) {
    const json_t *runs = view_at(document, "runs");
    *t = (struct tcp){.min_rtt = NAN, .retransmits = NAN, .out_of_order = NAN, .receive_window = NAN,
                      .server_window = NAN, .rwnd = NAN, .sndbuf = NAN, .connections = NAN};
    for (size_t i = 0; i < json_array_size(runs); i++) {
        const json_t *run = json_array_get(runs, i);
        if (view_text_is(run, "pattern", pattern) && view_text_is(run, "target", target) &&
            protocol(run, "protocol", "tcp_connections") > 0 && view_number(run, "window_ns") > 0)
            take(t, run);
    }
    return t->rounds > 0 && !isnan(t->min_rtt);
}

bool tcp_line(const json_t *document, const char *pattern, const char *target, char *buf, size_t len) {
    struct tcp t;
    char rtt[40], words[FINDING_MAX];

    if (!take_all(&t, document, pattern, target)) return false;
    snprintf(buf, len, "TCP: min RTT %s", figure_time(rtt, sizeof rtt, t.min_rtt));
    put_count(buf, len, t.retransmits, "retransmit");
    if (t.out_of_order > 0) put(buf, len, ", %.0f segment%s out of order", t.out_of_order, t.out_of_order > 1 ? "s" : "");
    if (t.read_bytes > 0) put_read(&t, buf, len);
    if (not_kept_to(document, target, &t, words, sizeof words)) put(buf, len, "; %s", words);
    if (t.written_bytes > 0) put_written(&t, buf, len);
    return true;
}

static void emit_limit(const struct tcp *t, double percent, const char *by, const char *size, remark_fn *emit, void *arg) {
    char text[FINDING_MAX], number[40];
    if (!(t->written_bytes > 0 && percent >= LIMIT_PERCENT)) return;
    snprintf(text, sizeof text, "limited by %s%s for %s%s %% of the time", by, size, t->rounds > 1 ? "up to " : "",
             figure(number, sizeof number, percent, 2));
    emit(arg, &(struct remark){text, true});
}

void tcp_findings(const json_t *document, const char *pattern, const char *target, remark_fn *emit, void *arg) {
    struct tcp t;
    char text[FINDING_MAX], window[40];

    if (!take_all(&t, document, pattern, target)) return;
    if (read_limit(&t, text, sizeof text)) emit(arg, &(struct remark){text, true});
    if (not_kept_to(document, target, &t, text, sizeof text)) emit(arg, &(struct remark){text, true});
    emit_limit(&t, t.rwnd, "the server's receive window", servers_window(&t, window, sizeof window), emit, arg);
    emit_limit(&t, t.sndbuf, "the send buffer", "", emit, arg);
}
