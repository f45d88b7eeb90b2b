/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/net/tcpinfo.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

/* An older kernel returns a shorter struct: what it did not fill is not reported, rather than reported as 0. */
#define FILLED(field) (len >= offsetof(struct tcp_info, field) + sizeof a.info.field)

void tcpinfo_counters(int fd, struct kv *out) {
    union {
        struct tcp_info info;
        unsigned char bytes[512]; /* room for the fields of kernels newer than the headers */
    } a;
    socklen_t len = sizeof a;
    memset(&a, 0, sizeof a);
    if (fd < 0 || getsockopt(fd, IPPROTO_TCP, TCP_INFO, &a, &len) != 0) return;
    if (FILLED(tcpi_total_retrans)) kv_uint(out, "tcp_retransmits", a.info.tcpi_total_retrans);
    if (FILLED(tcpi_snd_cwnd)) kv_gauge(out, "tcp_snd_cwnd", a.info.tcpi_snd_cwnd);
    if (FILLED(tcpi_rcv_space)) kv_gauge(out, "tcp_rcv_space", a.info.tcpi_rcv_space);
    /* ~0: no round trip was measured yet */
    if (FILLED(tcpi_min_rtt) && a.info.tcpi_min_rtt != ~0u) kv_gauge(out, "tcp_min_rtt_us", a.info.tcpi_min_rtt);
    if (FILLED(tcpi_rwnd_limited)) kv_uint(out, "tcp_rwnd_limited_us", a.info.tcpi_rwnd_limited);
    if (FILLED(tcpi_sndbuf_limited)) kv_uint(out, "tcp_sndbuf_limited_us", a.info.tcpi_sndbuf_limited);
    if (!FILLED(tcpi_snd_wnd)) return;
    kv_gauge(out, "tcp_snd_wnd", a.info.tcpi_snd_wnd);

    /* tcpi_rcv_wnd (kernel 6.2) follows it; the headers of the build machine may not have it yet. */
    size_t at = offsetof(struct tcp_info, tcpi_snd_wnd) + sizeof(uint32_t);
    uint32_t rcv_wnd;
    if (len < at + sizeof rcv_wnd) return;
    memcpy(&rcv_wnd, a.bytes + at, sizeof rcv_wnd);
    kv_gauge(out, "tcp_rcv_wnd", rcv_wnd);
}
