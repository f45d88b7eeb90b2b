/* SPDX-License-Identifier: GPL-2.0-or-later */
/* TCP_INFO of one connection as counters and gauges. Its own unit, because the kernel's struct tcp_info (linux/tcp.h)
 * has the fields that matter and clashes with the C library's. */
#ifndef BACKENDS_NET_TCPINFO_H
#define BACKENDS_NET_TCPINFO_H

#include "base/kv.h"

/* Adds what the running kernel knows. Cumulative: tcp_retransmits, tcp_rwnd_limited_us, tcp_sndbuf_limited_us.
 * Gauges (not to be added up over connections): tcp_min_rtt_us, tcp_rcv_space, tcp_snd_cwnd, tcp_snd_wnd, tcp_rcv_wnd.
 */
void tcpinfo_counters(int fd, struct kv *out);

#endif
