/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The eight bytes of a LUN (SAM-5, 4.7), and the number that people call it by. One number has several forms: targets take
 * only the one that their list (REPORT LUNS) has. LIO lists LUN 300 as 012C (peripheral device addressing, whose bus number
 * it takes for more of the LUN), others as 412C (flat space addressing). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "backends/iscsi/iscsi_facts.h"

static uint32_t be32(const uint8_t *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static uint64_t be64(const uint8_t *p) {
    return (uint64_t)be32(p) << 32 | be32(p + 4);
}

uint64_t iscsibe_lun_wire(unsigned lun) {
    if (lun > 0x3fff) return 0xd2ULL << 56 | (uint64_t)lun << 32; /* extended flat space, 24 bits */
    return (uint64_t)(lun < 256 ? lun : 0x4000u | lun) << 48;
}

/* In the order in which a number is looked for. */
enum form { FORM_PERIPHERAL, FORM_FLAT, FORM_EXTENDED, FORM_RAW, FORM_OTHER };

static enum form form_of(uint64_t wire, uint64_t *number) {
    unsigned method = (unsigned)(wire >> 62);
    bool one_level = (wire & 0xffffffffffffULL) == 0; /* nothing behind the first two bytes */

    *number = wire >> 48 & 0x3fff;
    if (method == 0 && one_level) return FORM_PERIPHERAL;
    if (method == 1 && one_level) return FORM_FLAT;
    *number = wire >> 32 & 0xffffff;
    if (wire >> 56 == 0xd2 && (uint32_t)wire == 0) return FORM_EXTENDED;
    *number = wire >> 16 & 0xffffffffffULL;
    return wire >> 56 == 0xe2 && (wire & 0xffff) == 0 ? FORM_EXTENDED : FORM_OTHER;
}

/* FORM_OTHER: it does not mean this number. The raw form is how Linux numbers what is not peripheral: 16684 is 412C. */
static enum form meant(uint64_t wire, unsigned lun) {
    uint64_t number;
    enum form form = form_of(wire, &number);
    if (form != FORM_OTHER && number == lun) return form;
    return lun > 0x3fff && (uint64_t)lun << 48 == wire ? FORM_RAW : FORM_OTHER;
}

unsigned iscsibe_luns_find(const uint8_t *p, size_t len, unsigned lun, uint64_t *wire) {
    enum form best = FORM_OTHER;
    unsigned found = 0;

    if (len < 8) return 0;
    size_t end = 8 + (size_t)be32(p);
    for (size_t at = 8; at + 8 <= end && at + 8 <= len; at += 8) {
        uint64_t entry = be64(p + at);
        enum form form = meant(entry, lun);
        if (form == FORM_OTHER || (found && entry == *wire)) continue;
        found++;
        if (form >= best) continue;
        best = form;
        *wire = entry;
    }
    return found;
}

unsigned iscsibe_luns_words(const uint8_t *p, size_t len, char *buf, size_t size) {
    unsigned n, i;
    size_t used = 0;

    snprintf(buf, size, "none");
    if (len < 8) return 0;
    n = be32(p) / 8;
    for (i = 0; i < n && 16 + 8 * (size_t)i <= len; i++) {
        uint64_t wire = be64(p + 8 + 8 * (size_t)i), number;
        enum form form = form_of(wire, &number);
        char one[24];
        if (wire >> 56 == 0xc1) continue; /* well known: no disk */
        if (form == FORM_OTHER) snprintf(one, sizeof one, "%016" PRIx64 "h", wire);
        else snprintf(one, sizeof one, "%" PRIu64, number);
        if (used + strlen(one) + sizeof ",  ..." > size) break;
        used += (size_t)snprintf(buf + used, size - used, "%s%s", used ? ", " : "", one);
    }
    if (i < n && used) snprintf(buf + used, size - used, " ...");
    return n;
}
