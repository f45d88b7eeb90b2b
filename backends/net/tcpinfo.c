/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/net/tcpinfo.h"

#include <linux/tcp.h>
#include <math.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "backends/track.h"

struct answer_tcp {
    socklen_t len;
    union {
        struct tcp_info info;
        unsigned char bytes[512]; /* room for the fields of kernels newer than the headers */
    } u;
};

static bool ask(int fd, struct answer_tcp *a) {
    memset(&a->u, 0, sizeof a->u);
    a->len = sizeof a->u;
    return fd >= 0 && getsockopt(fd, IPPROTO_TCP, TCP_INFO, &a->u, &a->len) == 0;
}

/* An older kernel returns a shorter struct: what it did not fill is not reported, rather than reported as 0. */
#define FILLED(a, field) ((a)->len >= offsetof(struct tcp_info, field) + sizeof (a)->u.info.field)
#define FIELD(a, field)  (FILLED(a, field) ? (double)(a)->u.info.field : NAN)

/* ~0: no round trip was measured yet. */
static double min_rtt(const struct answer_tcp *a) {
    return a->u.info.tcpi_min_rtt == ~0u ? NAN : 1000 * FIELD(a, tcpi_min_rtt);
}

/* tcpi_rcv_wnd (kernel 6.2) follows tcpi_snd_wnd; the headers of the build machine may not have it yet. */
static double rcv_wnd(const struct answer_tcp *a) {
    size_t at = offsetof(struct tcp_info, tcpi_snd_wnd) + sizeof a->u.info.tcpi_snd_wnd;
    uint32_t bytes;
    if (a->len < at + sizeof bytes) return NAN;
    memcpy(&bytes, a->u.bytes + at, sizeof bytes);
    return bytes;
}

int64_t tcpinfo_min_rtt(int fd) {
    struct answer_tcp a;
    if (!ask(fd, &a)) return 0;
    double ns = min_rtt(&a);
    return isnan(ns) ? 0 : (int64_t)ns;
}

uint32_t tcpinfo_rcv_wnd(int fd) {
    struct answer_tcp a;
    if (!ask(fd, &a)) return 0;
    double bytes = rcv_wnd(&a);
    return isnan(bytes) ? 0 : (uint32_t)bytes;
}

uint64_t tcpinfo_received(int fd) {
    struct answer_tcp a;
    return ask(fd, &a) && FILLED(&a, tcpi_bytes_received) ? a.u.info.tcpi_bytes_received : 0;
}

void tcpinfo_counters(int fd, struct kv *out) {
    struct answer_tcp a;
    if (!ask(fd, &a)) return;
    if (FILLED(&a, tcpi_total_retrans)) kv_uint(out, "tcp_retransmits", a.u.info.tcpi_total_retrans);
    double ns = min_rtt(&a);
    if (!isnan(ns)) kv_gauge(out, "tcp_min_rtt_ns", (uint64_t)ns);
}

/* In a row, not answered: more than a moment's loss. */
#define MANY_RETRANSMITS 3

const char *tcpinfo_missing(int fd, char *buf, size_t len) {
    struct answer_tcp a;
    bool there, back;

    buf[0] = '\0';
    if (!ask(fd, &a)) return buf;
    const struct tcp_info *i = &a.u.info;
    there = i->tcpi_unacked && i->tcpi_retransmits >= MANY_RETRANSMITS;
    back = FILLED(&a, tcpi_rcv_ooopack) && i->tcpi_rcv_ooopack;
    if (there || back)
        snprintf(buf, len, "; %s: packets are lost, perhaps all of full size (MSS %u, path MTU %u)",
                 there ? "what was sent is not acknowledged" : "of answers only later parts came",
                 (unsigned)i->tcpi_snd_mss, (unsigned)i->tcpi_pmtu);
    return buf;
}

static const struct track entries[TCPINFO_TRACKS] = { TCPINFO_TRACK_ENTRIES };

/* In the order of the entries. */
static void values_of(const struct answer_tcp *a, double v[TCPINFO_TRACKS]) {
    *v++ = 1;
    *v++ = min_rtt(a);
    *v++ = 1000 * FIELD(a, tcpi_rtt);
    *v++ = FIELD(a, tcpi_snd_cwnd) * FIELD(a, tcpi_snd_mss);
    *v++ = rcv_wnd(a);
    *v++ = FIELD(a, tcpi_snd_wnd);
    *v++ = FIELD(a, tcpi_total_retrans);
    *v++ = FIELD(a, tcpi_bytes_retrans);
    *v++ = FIELD(a, tcpi_rcv_ooopack);
    *v++ = FIELD(a, tcpi_reord_seen);
    *v++ = FIELD(a, tcpi_segs_out) - FIELD(a, tcpi_data_segs_out);
    *v++ = 1000 * FIELD(a, tcpi_busy_time);
    *v++ = 1000 * FIELD(a, tcpi_rwnd_limited);
    *v++ = 1000 * FIELD(a, tcpi_sndbuf_limited);
    *v++ = FIELD(a, tcpi_data_segs_out);
    *v++ = FIELD(a, tcpi_data_segs_in);
    *v++ = FIELD(a, tcpi_snd_mss);
    *v++ = FIELD(a, tcpi_pmtu);
    *v++ = FIELD(a, tcpi_dsack_dups);
}

void tcpinfo_sample(const int *fds, unsigned n, double *values) {
    struct track_sum sum[TCPINFO_TRACKS] = { { 0 } };
    double one[TCPINFO_TRACKS];
    struct answer_tcp a;

    for (unsigned i = 0; i < n; i++) {
        if (!ask(fds[i], &a)) continue;
        values_of(&a, one);
        for (unsigned k = 0; k < TCPINFO_TRACKS; k++) track_add(&sum[k], entries[k].merge, one[k]);
    }
    for (unsigned k = 0; k < TCPINFO_TRACKS; k++) values[k] = track_value(&sum[k], entries[k].merge);
}
