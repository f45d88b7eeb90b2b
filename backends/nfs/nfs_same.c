/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/nfs/nfs.h"

#define TYPE_REGULAR 1u

int nfsbe_same_file(const struct handle *h, unsigned type, uint64_t fsid, uint64_t fileid, uint64_t size,
                    struct err *err) {
    if (type != TYPE_REGULAR || fsid != h->fsid || fileid != h->fileid)
        return err_set(err, STATUS_TARGET, "%s is another file by now (fsid:%llx/fileid:%llu, it was fsid:%llx/fileid:%llu)",
                       h->where, (unsigned long long)fsid, (unsigned long long)fileid, (unsigned long long)h->fsid,
                       (unsigned long long)h->fileid);
    if (size < h->size)
        return err_set(err, STATUS_TARGET, "%s has shrunk from %llu to %llu bytes since it was opened", h->where,
                       (unsigned long long)h->size, (unsigned long long)size);
    return 0;
}
