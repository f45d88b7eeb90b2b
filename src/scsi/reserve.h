/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Persistent reservations: the replies of PERSISTENT RESERVE IN (SPC-4) and of NVMe's Reservation Report, and what they
 * mean to who would write. Pure; the bytes may be short or nonsense. */
#ifndef SCSI_RESERVE_H
#define SCSI_RESERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct reserve {
    bool known;       /* at least one of the questions was answered */
    unsigned keys;    /* registered */
    uint64_t first;   /* of the keys */
    bool reserved;
    uint64_t key;     /* of the reservation's holder; 0 where all registrants hold it */
    unsigned type;
};

#define RESERVE_UNKNOWN "whether others have reserved it could not be found out" /* why it is not to be written then */
#define RESERVE_CDB 10
#define RESERVE_KEYS_LEN 4096u
#define RESERVE_HELD_LEN 64u
/* READ KEYS, READ RESERVATION; the buffers have the lengths above. */
extern const uint8_t reserve_cdb_keys[RESERVE_CDB], reserve_cdb_held[RESERVE_CDB];

/* Number of registered keys and the first of them. False: too short to tell. */
bool reserve_parse_keys(const uint8_t *p, size_t len, unsigned *n, uint64_t *first);
/* Is there a reservation, its key and type. */
bool reserve_parse_held(const uint8_t *p, size_t len, bool *reserved, uint64_t *key, unsigned *type);
/* NVMe Reservation Report; `extended`: it has the form for host identifiers of 128 bits. */
bool reserve_parse_nvme(const uint8_t *p, size_t len, bool extended, struct reserve *out);
/* Why this is never to be written: "it has a persistent reservation ...: a cluster uses it"; "" if nobody uses it. */
const char *reserve_words(const struct reserve *r, char *buf, size_t len);

#endif
