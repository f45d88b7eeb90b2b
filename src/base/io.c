/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/io.h"

const char *io_op_name(enum io_op op) {
    switch (op) {
    case IO_READ: return "read";
    case IO_WRITE: return "write";
    case IO_FLUSH: return "flush";
    }
    return "";
}

const char *io_sync_name(enum io_sync sync) {
    switch (sync) {
    case SYNC_NONE: return "none";
    case SYNC_DATASTORE: return "datastore";
    case SYNC_DSYNC: return "dsync";
    case SYNC_SYNC: return "sync";
    }
    return "";
}

const char *io_durability_name(enum io_durability durability) {
    switch (durability) {
    case DURABILITY_NO_WRITES: return "";
    case DURABILITY_VOLATILE: return "volatile";
    case DURABILITY_CLAIMS_STABLE: return "claims-stable";
    case DURABILITY_FLUSHED: return "flushed";
    }
    return "";
}
