/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a portal may be that is silent: NFS servers wait for the rest of what they take for a long record. */
#include "backends/iscsi/iscsi_other.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backends/net/sock.h"
#include "base/clock.h"

#define PATIENCE NS_PER_SEC

/* NULL of NFS version 3 (RFC 5531): record mark, xid, call, RPC 2, program, version, procedure, two empty credentials. */
static const uint8_t null_call[] = {0x80, 0, 0, 40, 's', 'd', 'i', 's', 0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0x86, 0xa3, 0, 0,
                                    0,    3, 0, 0,  0,   0,   0,   0,   0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,    0,    0, 0};

bool iscsibe_speaks_rpc(const struct tcp_how *how) {
    struct tcp_how brief = *how;
    struct err ignored;
    uint8_t head[12];
    int64_t end = sock_now() + PATIENCE;
    size_t n = 0;

    brief.timeout = PATIENCE;
    int fd = tcp_connect(&brief, &ignored);
    if (fd < 0) return false;
    if (sock_send_all(fd, null_call, sizeof null_call, end) == 0)
        while (n < sizeof head && sock_wait(fd, POLLIN, end - sock_now()) > 0) {
            ssize_t got = recv(fd, head + n, sizeof head - n, MSG_DONTWAIT);
            if (got <= 0) break;
            n += (size_t)got;
        }
    close(fd);
    /* The last fragment of a record, our xid, a reply. */
    return n == sizeof head && head[0] & 0x80 && memcmp(head + 4, null_call + 4, 4) == 0 && head[11] == 1;
}
