/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The words that patterns, backends and results share: what an I/O is, and how durable it is asked to be. */
#ifndef BASE_IO_H
#define BASE_IO_H

enum io_op { IO_READ, IO_WRITE, IO_FLUSH };
#define IO_OPS 3

/* What the user asked for (pattern key sync=); what it means on the wire is each backend's to know:
 *            NFS                 iSCSI                        block, file
 * NONE       WRITE UNSTABLE      WRITE(16)                    plain write
 * DATASTORE  WRITE FILE_SYNC     WRITE(16)                    plain write      (as ESXi does)
 * DSYNC      WRITE DATA_SYNC     WRITE(16) with FUA           RWF_DSYNC
 * SYNC       WRITE FILE_SYNC     WRITE(16) with FUA           RWF_SYNC */
enum io_sync { SYNC_NONE, SYNC_DATASTORE, SYNC_DSYNC, SYNC_SYNC };

/* The durability class of a run's writes, from what the target answered. NO_WRITES when there were none. */
enum io_durability { DURABILITY_NO_WRITES, DURABILITY_VOLATILE, DURABILITY_CLAIMS_STABLE, DURABILITY_FLUSHED };

/* Static strings, as they stand in results: "read" "write" "flush"; "none" ...; "volatile" ... ("" for no writes). */
const char *io_op_name(enum io_op op);
const char *io_sync_name(enum io_sync sync);
const char *io_durability_name(enum io_durability durability);

#endif
