/* SPDX-License-Identifier: GPL-2.0-or-later */
/* TCP_INFO of connections as counters, as tracks (backend.h), as single values. Its own unit, because the kernel's
 * struct tcp_info (linux/tcp.h) has the fields that matter and clashes with the C library's. */
#ifndef BACKENDS_NET_TCPINFO_H
#define BACKENDS_NET_TCPINFO_H

#include <stddef.h>
#include <stdint.h>

#include "backends/backend.h"
#include "base/kv.h"

/* The smallest round trip that this connection has seen, ns; 0: unknown. */
int64_t tcpinfo_min_rtt(int fd);
/* Bytes of data that arrived on the connection since it was made; 0: unknown (kernels before 4.1). */
uint64_t tcpinfo_received(int fd);
/* The receive window that was advertised last, bytes; 0: unknown (kernels before 6.2). */
uint32_t tcpinfo_rcv_wnd(int fd);

/* For a connection on which an answer is overdue: "; ..." what TCP says of packets that are missing; "" if nothing is. */
const char *tcpinfo_missing(int fd, char *buf, size_t len);

/* Of the connection's whole life, as far as the running kernel knows: tcp_retransmits, and the gauge tcp_min_rtt_ns. */
void tcpinfo_counters(int fd, struct kv *out);

/* The tracks, in the order of tcpinfo_sample(). Windows and times are those of one connection, counts of all of them.
 * rwnd_limited and sndbuf_limited are about what *we* send: the time in which there was more to send than the other
 * side's receive window, or our send buffer, let out. The server's retransmissions cannot be seen from here; what comes
 * out of order here (tcp_out_of_order) is their trace. */
#define TCPINFO_TRACKS 19
#define TCPINFO_TRACK_ENTRIES                                                                                          \
    { "tcp_connections", TRACK_SUM, false },                                                                           \
    { "tcp_min_rtt_ns", TRACK_MIN, false },                                                                            \
    { "tcp_rtt_ns", TRACK_MEAN, false },                                                                               \
    { "tcp_cwnd_bytes", TRACK_MEAN, false },                                                                           \
    { "tcp_rcv_wnd_bytes", TRACK_MAX, false },          /* that we advertise */                                        \
    { "tcp_snd_wnd_bytes", TRACK_MAX, false },          /* that the other side advertises */                           \
    { "tcp_retransmits", TRACK_SUM, true },             /* segments */                                                 \
    { "tcp_retransmitted_bytes", TRACK_SUM, true },                                                                    \
    { "tcp_out_of_order", TRACK_SUM, true },            /* segments that arrived so */                                 \
    { "tcp_reorderings", TRACK_SUM, true },             /* seen by the sender in us */                                 \
    { "tcp_pure_acks", TRACK_SUM, true },               /* segments sent that held no data */                          \
    { "tcp_busy_ns", TRACK_MEAN, true },                /* data of ours was unacknowledged or unsent */                \
    { "tcp_rwnd_limited_ns", TRACK_MEAN, true },                                                                       \
    { "tcp_sndbuf_limited_ns", TRACK_MEAN, true },                                                                     \
    { "tcp_data_segments_out", TRACK_SUM, true },       /* with those that were sent again */                          \
    { "tcp_data_segments_in", TRACK_SUM, true },                                                                       \
    { "tcp_mss_bytes", TRACK_MIN, false },              /* of what we send */                                          \
    { "tcp_path_mtu_bytes", TRACK_MIN, false },                                                                        \
    { "tcp_dsacks", TRACK_SUM, true }                   /* sent again, and the other side had them twice */

/* Of `n` connections (a descriptor below 0 is none) together. One system call for each, no allocation. */
void tcpinfo_sample(const int *fds, unsigned n, double *values);

/* What an engine's context is asked for, when its tracks are sampled. */
#define TCPINFO_FDS 64
struct tcpinfo_watch {
    unsigned n;
    int fd[TCPINFO_FDS];
    uint64_t outstanding;      /* requests lent */
    int64_t window_closed_ns;  /* cumulative: iSCSI's command window was closed; summed over the sessions; -1: unknown */
    int64_t r2t_waits;         /* cumulative: iSCSI, R2Ts that a write had to wait for; -1: unknown */
};

#endif
