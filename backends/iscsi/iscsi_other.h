/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BACKENDS_ISCSI_ISCSI_OTHER_H
#define BACKENDS_ISCSI_ISCSI_OTHER_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/net/tcp.h"

/* Does what is at this port answer an RPC, as NFS servers do, within a second? On a connection of its own. */
bool iscsibe_speaks_rpc(const struct tcp_how *how);

#endif
