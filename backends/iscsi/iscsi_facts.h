/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What SCSI replies mean (SPC-4, SBC-3): parsers over the bytes a target sent, which may be short or nonsense. Pure. */
#ifndef BACKENDS_ISCSI_ISCSI_FACTS_H
#define BACKENDS_ISCSI_ISCSI_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define ISCSI_NAME_SIZE 256 /* libiscsi's own limit, with the NUL */
#define ISCSI_LUN_MAX 0xffffffu /* 24 bits of extended flat space */

/* "/IQN/LUN" of a URL. Errors: USAGE. */
int iscsibe_parse_path(const char *path, char target[ISCSI_NAME_SIZE], unsigned *lun, struct err *err);
/* ---- iscsi_luns.c ---- */
/* The eight bytes of a LUN field as one number (their first is its highest): peripheral addressing below 256, flat space,
 * extended flat space. What a target is asked by that has no list of its LUNs. */
uint64_t iscsibe_lun_wire(unsigned lun);
/* The entry of REPORT LUNS that means this number, in peripheral addressing before flat before extended. How many there
 * are: 0, and *wire is left alone; more than 1: the target has it in several forms. */
unsigned iscsibe_luns_find(const uint8_t *p, size_t len, unsigned lun, uint64_t *wire);
/* REPORT LUNS as words "0, 1, 5"; how many there are. */
unsigned iscsibe_luns_words(const uint8_t *p, size_t len, char *buf, size_t size);

/* READ(16), WRITE(16) (with FUA), SYNCHRONIZE CACHE(16) (IMMED 0). */
void iscsibe_cdb16(uint8_t cdb[16], uint8_t opcode, uint64_t lba, uint32_t blocks, bool fua);

struct iscsibe_inquiry { unsigned qualifier, type, tpgs; char vendor[9], product[17], revision[5]; };
bool iscsibe_parse_inquiry(const uint8_t *p, size_t len, struct iscsibe_inquiry *out);
const char *iscsibe_type_name(unsigned type); /* peripheral device type */

bool iscsibe_vpd_has(const uint8_t *page0, size_t len, uint8_t code); /* VPD 00 lists `code` */
/* Names of the logical unit in VPD 83, the best first, as the kernel writes them ("naa.60...", "eui....", "t10...."),
 * then "serial.VENDOR.PRODUCT.SERIAL" from VPD 80. How many; at most `max`. *weak: the best is not unique in the world.
 */
unsigned iscsibe_identities(const uint8_t *vpd83, size_t len83, const uint8_t *vpd80, size_t len80,
                            const struct iscsibe_inquiry *inquiry, char out[][128], unsigned max, bool *weak);

struct iscsibe_limits {
    uint32_t max_transfer, optimal, max_unmap;
    uint16_t granularity;
}; /* in blocks; 0: no limit said */
bool iscsibe_parse_limits(const uint8_t *vpdb0, size_t len, struct iscsibe_limits *out);
bool iscsibe_parse_rotation(const uint8_t *vpdb1, size_t len, unsigned *rate);              /* 1: not rotating */

struct iscsibe_provisioning { bool unmap, write_same, read_zeros; unsigned type; };
bool iscsibe_parse_provisioning(const uint8_t *vpdb2, size_t len, struct iscsibe_provisioning *out);

struct iscsibe_capacity { uint64_t blocks; uint32_t block; unsigned physical_exponent; unsigned lowest_aligned; bool thin; };
bool iscsibe_parse_capacity16(const uint8_t *p, size_t len, struct iscsibe_capacity *out);
bool iscsibe_parse_capacity10(const uint8_t *p, size_t len, struct iscsibe_capacity *out);

struct iscsibe_mode { bool write_protected, dpofua, has_caching, wce, rcd; };
bool iscsibe_parse_mode(const uint8_t *p, size_t len, bool ten, struct iscsibe_mode *out); /* MODE SENSE(6) or (10) */


/* The target port group that this path belongs to (VPD 83), and its state from REPORT TARGET PORT GROUPS. */
bool iscsibe_port_group(const uint8_t *vpd83, size_t len, unsigned *group);
bool iscsibe_alua_state(const uint8_t *rtpg, size_t len, unsigned group, unsigned *state);
const char *iscsibe_alua_name(unsigned state);
/* Why a path in this state is not used: words, or NULL if it is. `nonoptimized`: the user asked for such paths. */
const char *iscsibe_alua_refused(unsigned state, bool nonoptimized);

/* GET LBA STATUS: of [lba, lba+blocks), how many blocks the reply speaks of, and how many of these are not mapped. */
bool iscsibe_parse_lba_status(const uint8_t *p, size_t len, uint64_t lba, uint64_t blocks, uint64_t *told,
                              uint64_t *unmapped);

const char *iscsibe_sense_key_name(unsigned key);                                    /* "MEDIUM ERROR" */
const char *iscsibe_sense_kind(unsigned key, unsigned ascq, char *buf, size_t len);  /* "MEDIUM ERROR 11/00" */
const char *iscsibe_sense_text(unsigned key, unsigned ascq); /* what libiscsi has no words for; "" otherwise */
bool iscsibe_status_words(
    const char *words); /* are these libiscsi's words for a SCSI status, not for a broken session? */
int iscsibe_sense_errno(unsigned key, unsigned ascq);

/* libiscsi tells a login's status only in words, "... Target not found(515)". The number in the last parentheses, or 0.
 */
unsigned iscsibe_login_status(const char *words);
enum {
    ISCSI_LOGIN_AUTH = 0x0201,
    ISCSI_LOGIN_FORBIDDEN = 0x0202,
    ISCSI_LOGIN_NOT_FOUND = 0x0203,
    ISCSI_LOGIN_REMOVED = 0x0204,
    ISCSI_LOGIN_UNAVAILABLE = 0x0301
};

#endif
