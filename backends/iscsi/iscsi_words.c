/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The rest of iscsi_facts.h: the path of a URL, ALUA, LBA status, sense and login codes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "backends/iscsi/iscsi_facts.h"
#include "base/text.h"
#include "base/units.h"

static unsigned be16(const uint8_t *p) {
    return (unsigned)p[0] << 8 | p[1];
}

static uint32_t be32(const uint8_t *p) {
    return (uint32_t)be16(p) << 16 | be16(p + 2);
}

static uint64_t be64(const uint8_t *p) {
    return (uint64_t)be32(p) << 32 | be32(p + 4);
}

int iscsibe_parse_path(const char *path, char target[ISCSI_NAME_SIZE], unsigned *lun, struct err *err) {
    char safe[300];
    const char *name = path && *path == '/' ? path + 1 : "", *slash = strrchr(name, '/');
    uint64_t value;

    text_safe(safe, sizeof safe, name, strlen(name));
    if (!*name || !slash || slash == name || !slash[1])
        return err_set(err, STATUS_USAGE,
                       "%s: iscsi://HOST[:PORT]/IQN/LUN, as iscsi://10.0.0.1/iqn.2001-04.com.example:disk/0",
                       !*name || slash == name ? "the target's name (IQN) and the LUN are missing" : "the LUN is missing");
    size_t len = (size_t)(slash - name);
    if (len >= ISCSI_NAME_SIZE || memchr(name, '/', len))
        return err_set(err, STATUS_USAGE, "`%s`: a target's name has at most 223 bytes and no `/`", safe);
    if (strncasecmp(name, "iqn.", 4) != 0 && strncasecmp(name, "eui.", 4) != 0 && strncasecmp(name, "naa.", 4) != 0)
        return err_set(err, STATUS_USAGE, "`%s`: a target's name begins with iqn., eui. or naa.", safe);
    if (units_parse_uint(slash + 1, &value, err) != 0 || value > ISCSI_LUN_MAX)
        return err_set(err, STATUS_USAGE, "`%s`: the LUN is a number from 0 to %u", safe, ISCSI_LUN_MAX);
    memcpy(target, name, len);
    target[len] = '\0';
    *lun = (unsigned)value;
    return 0;
}

void iscsibe_cdb16(uint8_t cdb[16], uint8_t opcode, uint64_t lba, uint32_t blocks, bool fua) {
    memset(cdb, 0, 16);
    cdb[0] = opcode;
    cdb[1] = fua ? 0x08 : 0;
    for (int i = 9; i >= 2; i--, lba >>= 8) cdb[i] = (uint8_t)lba;
    for (int i = 13; i >= 10; i--, blocks >>= 8) cdb[i] = (uint8_t)blocks;
}

/* ---- ALUA ---- */

bool iscsibe_port_group(const uint8_t *p, size_t len, unsigned *group) {
    if (len < 4 || p[1] != 0x83) return false;
    size_t end = 4 + be16(p + 2);
    if (end > len) end = len;
    for (size_t at = 4; at + 4 <= end && at + 4 + p[at + 3] <= end; at += 4 + (size_t)p[at + 3]) {
        if ((p[at + 1] & 0x3f) != 0x15 || p[at + 3] < 4) continue; /* of the target port, type 5 */
        *group = be16(p + at + 6);
        return true;
    }
    return false;
}

bool iscsibe_alua_state(const uint8_t *p, size_t len, unsigned group, unsigned *state) {
    if (len < 4) return false;
    size_t end = 4 + (size_t)be32(p);
    if (end > len) end = len;
    for (size_t at = 4; at + 8 <= end; at += 8 + 4 * (size_t)p[at + 7]) {
        if (be16(p + at + 2) != group) continue;
        *state = p[at] & 0x0f;
        return true;
    }
    return false;
}

const char *iscsibe_alua_refused(unsigned state, bool nonoptimized) {
    if (state == 2 || state == 3 || state == 14) return "name a portal whose path is active";
    if (state == 1 && !nonoptimized)
        return "name a portal of the controller that owns the LUN, or set nonoptimized=yes to measure this way to it";
    return NULL;
}

const char *iscsibe_alua_name(unsigned state) {
    switch (state) {
    case 0: return "active/optimized";
    case 1: return "active/non-optimized";
    case 2: return "standby";
    case 3: return "unavailable";
    case 14: return "offline";
    case 15: return "transitioning";
    default: return "unknown";
    }
}

bool iscsibe_parse_lba_status(const uint8_t *p, size_t len, uint64_t lba, uint64_t blocks, uint64_t *told,
                              uint64_t *unmapped) {
    *told = *unmapped = 0;
    if (len < 8) return false;
    size_t end = 4 + (size_t)be32(p);
    if (end > len) end = len;
    for (size_t at = 8; at + 16 <= end; at += 16) {
        uint64_t first = be64(p + at), n = be32(p + at + 8);
        /* descriptors are in order, without gaps, from the block asked for; the first may begin before it */
        if (first > lba + *told || first + n <= lba + *told) return *told > 0;
        n -= lba + *told - first;
        if (n > blocks - *told) n = blocks - *told;
        if ((p[at + 12] & 0x0f) == 1 || (p[at + 12] & 0x0f) == 2) *unmapped += n; /* deallocated, anchored */
        *told += n;
        if (*told == blocks) break;
    }
    return *told > 0;
}

/* ---- sense ---- */

const char *iscsibe_sense_key_name(unsigned key) {
    static const char *const names[16] = { "NO SENSE", "RECOVERED ERROR", "NOT READY", "MEDIUM ERROR", "HARDWARE ERROR",
        "ILLEGAL REQUEST", "UNIT ATTENTION", "DATA PROTECT", "BLANK CHECK", "VENDOR SPECIFIC", "COPY ABORTED",
        "ABORTED COMMAND", "SENSE KEY 0C", "VOLUME OVERFLOW", "MISCOMPARE", "COMPLETED" };
    return names[key & 15];
}

const char *iscsibe_sense_kind(unsigned key, unsigned ascq, char *buf, size_t len) {
    snprintf(buf, len, "%s %02X/%02X", iscsibe_sense_key_name(key), ascq >> 8 & 0xff, ascq & 0xff);
    return buf;
}

const char *iscsibe_sense_text(unsigned key, unsigned ascq) {
    switch (ascq) {
    case 0x0000: return key == 0 ? "CHECK CONDITION without sense data" : "";
    case 0x0401: return "becoming ready";
    case 0x040a: return "the path's ALUA state is changing";
    case 0x040b: case 0x040c: return "the path is not active (ALUA)";
    case 0x0c00: case 0x0c02: return "write error";
    case 0x1100: return "unrecovered read error";
    case 0x1101: return "read retries exhausted";
    case 0x1600: return "data synchronization mark error";
    case 0x2707: return "the thinly provisioned LUN has run out of space";
    case 0x4700: return "parity or CRC error on the way";
    default: return "";
    }
}

bool iscsibe_status_words(const char *words) {
    static const char *const begin[] = { "SENSE KEY:", "BUSY", "TASK_SET_FULL", "RESERVATION CONFLICT", "TASK_ABORTED",
                                         "ACA_ACTIVE" };
    for (size_t i = 0; i < sizeof begin / sizeof begin[0]; i++)
        if (strncmp(words, begin[i], strlen(begin[i])) == 0) return true;
    return false;
}

int iscsibe_sense_errno(unsigned key, unsigned ascq) {
    switch (key) {
    case 2: return (ascq >> 8) == 0x3a ? ENOMEDIUM : EBUSY;
    case 5: return (ascq >> 8) == 0x20 ? EOPNOTSUPP : EINVAL;
    case 6: return EAGAIN;
    case 7: return ascq == 0x2707 ? ENOSPC : EROFS; /* 27/07: thin provisioning has run out of space */
    default: return EIO;
    }
}

unsigned iscsibe_login_status(const char *words) {
    const char *open = words ? strrchr(words, '(') : NULL;
    char *end;
    if (!open) return 0;
    unsigned long value = strtoul(open + 1, &end, 10);
    return end != open + 1 && *end == ')' && value <= 0xffff ? (unsigned)value : 0;
}
