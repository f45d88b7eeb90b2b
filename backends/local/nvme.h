/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The controllers that an NVMe namespace is reached by, from sysfs. */
#ifndef BACKENDS_LOCAL_NVME_H
#define BACKENDS_LOCAL_NVME_H

#include "base/kv.h"

/* "NVMe/TCP" "NVMe/FC" "NVMe/RDMA" "NVMe/PCIe", "NVMe/mixed" where controllers differ, "NVMe" where unknown; a static
 * string. Addresses, states and, under the kernel's own multipathing, paths, their ANA states and the iopolicy go to `out`
 * with names that begin with `prefix`. `disk`: the namespace's folder. */
const char *nvme_transport(const char *disk, const char *prefix, struct kv *out);

#endif
