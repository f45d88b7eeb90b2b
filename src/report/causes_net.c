/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Causes that lie between the client and the server. */
#include "report/causes.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/units.h"
#include "report/figure.h"
#include "result/view.h"

#define R2T_SHARE     0.2  /* of a write's latency in round trips for R2Ts */
#define PATHS_USED    1.5  /* paths that work at a time, at most, of several */
#define SILENT_NS     NS_PER_SEC
#define SILENT_TIMES  5    /* as long as any other connection was silent */
#define LOSS_PERCENT  0.02 /* of the segments sent: a healthy network has next to none */
#define LOSS_LEAST    5    /* segments: what one hiccup of the machine makes TCP send again */
#define ORDER_PERCENT 0.1  /* of the segments received */
#define ORDER_LEAST   20
#define LOOPBACK_MTU  65000 /* no card, cable or switch has one: both ends are this machine */

static uint64_t pings(const json_t *run, const char *what) {
    const char *by = view_text(run, "ping/by");
    return by ? view_uint(json_object_get(view_at(run, "ping/kinds"), by), what) : 0;
}

/* Of how much use it is that the pings go by a connection of their own. */
static void put_pings(const json_t *run, char *buf, size_t len) {
    uint64_t answered = 0, lost = 0;
    size_t at = strlen(buf);
    const char *kind;
    json_t *counts;
    json_object_foreach((json_t *)(uintptr_t)view_at(run, "ping/kinds"), kind, counts) {
        answered += view_uint(counts, "n");
        lost += view_uint(counts, "lost");
    }
    if (answered && at < len)
        snprintf(buf + at, len - at, "; %" PRIu64 " of the run's %" PRIu64 " pings, on a connection of their own, were answered",
                 answered, answered + lost);
}

double cause_r2t(const json_t *run, char *buf, size_t len) {
    double ns = view_number(run, "protocol/r2t_ns_per_write"), mean = view_number(run, "write/clat_ns/mean");
    double share = ns / mean;
    char n[40], each[40], all[40], whole[40], first[40], burst[40];

    if (!(share >= R2T_SHARE)) return 0;
    snprintf(buf, len,
             "R2Ts: a write waits for %s of them, a round trip of %s each: %s of its mean of %s is that (an estimate from "
             "pings takes it for the server's); fewer come with a larger first_burst= (%s is agreed on), max_burst= (%s) "
             "or max_outstanding_r2t= (%" PRIu64 "), as far as the target allows",
             figure(n, sizeof n, view_number(run, "protocol/r2t_waits_per_write"), 2),
             figure_time(each, sizeof each, view_number(run, "protocol/tcp_min_rtt_ns")),
             figure_time(all, sizeof all, ns), figure_time(whole, sizeof whole, mean),
             units_size_human(first, sizeof first, view_uint(run, "protocol/first_burst")),
             units_size_human(burst, sizeof burst, view_uint(run, "protocol/max_burst")),
             view_uint(run, "protocol/max_outstanding_r2t"));
    return share;
}

/* I/Os go to one path until its turn of rr= is over: all that is out at a time lies in a stretch of iodepth of them. At
 * depth 1 nothing else could be. */
double cause_one_path(const json_t *run, char *buf, size_t len) {
    double sessions = view_number(run, "protocol/sessions"), rr = view_number(run, "protocol/rr");
    double workers = view_number(run, "workers"), depth = view_number(run, "depth_requested") / workers;
    double used = 1 + (depth - 1) / rr;

    if (!(sessions > 1 && depth > 1 && used < PATHS_USED)) return 0;
    snprintf(buf, len,
             "rr=%.0f at iodepth %.0f: %sone path works at a time, of %.0f, and the others wait; rr=1, or any below the "
             "iodepth, keeps all of them busy", rr, depth, workers > 1 ? "for each worker " : "", sessions);
    return sessions / used;
}

/* ---- one connection of several ---- */

struct silences {
    double most, second;
    unsigned n, number; /* the most silent one */
};

static void take_silence(struct silences *s, double ns, unsigned number) {
    s->n++;
    if (!(ns > s->most)) {
        s->second = fmax(s->second, ns);
        return;
    }
    s->second = s->most;
    s->most = ns;
    s->number = number;
}

/* Connections of a kind, "conn" or "path", that are numbered from `first`. */
static struct silences silences(const json_t *run, const char *kind, unsigned first) {
    struct silences s = {.most = 0};
    char key[60];
    for (unsigned i = first;; i++) {
        snprintf(key, sizeof key, "protocol/%s%u_silent_max_ns", kind, i);
        double ns = view_number(run, key);
        if (isnan(ns)) return s;
        take_silence(&s, ns, i);
    }
}

static const char *road(const json_t *run, bool conn, unsigned number, char *buf, size_t len) {
    char key[60];
    snprintf(key, sizeof key, conn ? "protocol/conn%u_road" : "protocol/path%u_portal", number);
    const char *text = view_text(run, key);
    return text ? text_safe(buf, len, text, SIZE_MAX) : NULL;
}

double cause_stuck_connection(const json_t *run, char *buf, size_t len) {
    struct silences conns = silences(run, "conn", 0), paths = silences(run, "path", 1);
    const struct silences *s = conns.n ? &conns : &paths;
    char where[120], most[40], second[40];

    if (s->n < 2 || !(s->most >= SILENT_NS && s->most >= SILENT_TIMES * s->second)) return 0;
    unsigned number = s->number + (s == &conns);
    const char *words = road(run, s == &conns, s->number, where, sizeof where);
    snprintf(buf, len, "%s %u of %u%s%s%s was stuck: nothing came on it for %s while answers were due (%s at most on the "
             "others)", s == &conns ? "connection" : "path", number, s->n, words ? " (" : "", words ? words : "",
             words ? ")" : "", figure_time(most, sizeof most, s->most), figure_time(second, sizeof second, s->second));
    put_pings(run, buf, len);
    return s->most;
}

/* ---- packets ---- */

static void put_share(char *buf, size_t len, double part, double all, double share, const char *words) {
    size_t at = strlen(buf);
    char percent[40];
    if (at < len)
        snprintf(buf + at, len - at, "%s%.0f of %.0f segments %s (%s %%)", at ? ", " : "", part, all, words,
                 figure(percent, sizeof percent, share, 2));
}

double cause_loss(const json_t *run, char *buf, size_t len) {
    double lost = view_number(run, "protocol/tcp_lost_segments"), lost_share = view_number(run, "protocol/tcp_lost_percent");
    double late = view_number(run, "protocol/tcp_out_of_order");
    double late_share = view_number(run, "protocol/tcp_out_of_order_percent"), bad = 0;
    char what[300] = "";

    /* The machine's own CPUs put segments of a loopback connection out of order, and TCP sends some of them again. */
    if (view_number(run, "protocol/tcp_path_mtu_bytes") >= LOOPBACK_MTU) return 0;
    bool again = lost >= LOSS_LEAST && lost_share >= LOSS_PERCENT;
    if (again) {
        put_share(what, sizeof what, lost, view_number(run, "protocol/tcp_data_segments_out"), lost_share, "were sent again");
        bad = lost_share;
    }
    if (late >= ORDER_LEAST && late_share >= ORDER_PERCENT) {
        put_share(what, sizeof what, late, view_number(run, "protocol/tcp_data_segments_in"), late_share,
                  "came out of order, behind a missing one");
        bad = fmax(bad, late_share);
    }
    if (bad > 0)
        snprintf(buf, len, "packets are lost%s on the way: %s; TCP slows down and waits for each: look for errors and drops at "
                 "cards, cables and switch ports", again ? "" : ", or overtake one another,", what);
    return bad;
}

/* Nothing at all came back, but the server is there, and TCP shows that packets are missing. */
double cause_black_hole(const json_t *run, char *buf, size_t len) {
    double again = view_number(run, "protocol/tcp_retransmits"), late = view_number(run, "protocol/tcp_out_of_order");
    double mss = view_number(run, "protocol/tcp_mss_bytes"), mtu = view_number(run, "protocol/tcp_path_mtu_bytes");

    if (view_uint(run, "total/ios") || view_number(run, "io_align") < mss || !pings(run, "n")) return 0;
    if (!(again > 0 || late > 0) || isnan(mss)) return 0;
    snprintf(buf, len, "packets of full size do not arrive (an MTU black hole): the server answers %" PRIu64 " small pings, "
             "and not one I/O, %s; TCP sends segments of %.0f bytes (MSS), for an MTU of %.0f: compare the MTU of both "
             "ends and of all between; mss=%.0f would be a way round", pings(run, "n"),
             again > 0 ? "what is sent to it is sent again and again" : "and of its answers only the ends come", mss, mtu,
             floor(mss * 0.85));
    return 1;
}
