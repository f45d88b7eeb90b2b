/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/iscsi/iscsi_facts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

static uint16_t be16(const uint8_t *p) {
    return (uint16_t)(p[0] << 8 | p[1]);
}

static uint32_t be32(const uint8_t *p) {
    return (uint32_t)be16(p) << 16 | be16(p + 2);
}

static uint64_t be64(const uint8_t *p) {
    return (uint64_t)be32(p) << 32 | be32(p + 4);
}

/* A blank-padded field, without the blanks at its ends. */
static void field(char *out, size_t size, const uint8_t *p, size_t len) {
    while (len > 0 && (p[len - 1] == ' ' || p[len - 1] == '\0')) len--;
    while (len > 0 && *p == ' ') p++, len--;
    text_safe(out, size, (const char *)p, len);
}

bool iscsibe_parse_inquiry(const uint8_t *p, size_t len, struct iscsibe_inquiry *out) {
    if (len < 36) return false;
    out->qualifier = p[0] >> 5;
    out->type = p[0] & 0x1f;
    out->tpgs = (p[5] >> 4) & 3;
    field(out->vendor, sizeof out->vendor, p + 8, 8);
    field(out->product, sizeof out->product, p + 16, 16);
    field(out->revision, sizeof out->revision, p + 32, 4);
    return true;
}

const char *iscsibe_type_name(unsigned type) {
    switch (type) {
    case 0x00: return "disk";
    case 0x01: return "tape";
    case 0x05: return "CD or DVD";
    case 0x07: return "optical disk";
    case 0x08: return "media changer";
    case 0x0c: return "storage array controller";
    case 0x0d: return "enclosure services";
    case 0x0e: return "reduced block commands disk";
    case 0x14: return "zoned disk";
    case 0x1e: return "well known logical unit";
    default: return "unknown device type";
    }
}

/* ---- VPD ---- */

/* Length of what a VPD page holds behind its header; 0 if it is not that page. */
static size_t vpd_payload(const uint8_t *p, size_t len, uint8_t code) {
    if (len < 4 || p[1] != code) return 0;
    size_t n = be16(p + 2);
    return n < len - 4 ? n : len - 4;
}

bool iscsibe_vpd_has(const uint8_t *page0, size_t len, uint8_t code) {
    size_t n = vpd_payload(page0, len, 0x00);
    return n > 0 && memchr(page0 + 4, code, n) != NULL;
}

struct designator { const uint8_t *data; unsigned len, type, association, code_set; };

/* The designator at *at, which moves behind it; false at the end, or where the rest is cut short. */
static bool next_designator(const uint8_t *p, size_t n, size_t *at, struct designator *d) {
    if (*at + 4 > n || *at + 4 + p[*at + 3] > n) return false;
    const uint8_t *h = p + *at;
    *d = (struct designator){ .data = h + 4, .len = h[3], .type = h[1] & 0x0f, .association = (h[1] >> 4) & 3,
                              .code_set = h[0] & 0x0f };
    *at += 4 + (size_t)h[3];
    return true;
}

/* The larger, the better; 0: not a name of the logical unit. NAA 6 and 5 and EUI-64 are unique in the world. */
static unsigned rank(const struct designator *d) {
    if (d->association != 0 || d->len == 0) return 0;
    if (d->type == 3) {
        unsigned naa = d->data[0] >> 4;
        if (naa == 6 && d->len == 16) return 9;
        if ((naa == 5 || naa == 2) && d->len == 8) return naa == 5 ? 8 : 7;
        return naa == 3 ? 2 : 0; /* locally assigned */
    }
    if (d->type == 2 && (d->len == 8 || d->len == 12 || d->len == 16)) return 6;
    return d->type == 1 ? 4 : 0;
}

static void name_of(const struct designator *d, char out[128]) {
    size_t n = 0;
    if (d->type == 1) { /* blanks inside are kept, as the kernel does */
        size_t len = d->len;
        while (len > 0 && (d->data[len - 1] == ' ' || d->data[len - 1] == '\0')) len--;
        memcpy(out, "t10.", 5);
        text_safe(out + 4, 124, (const char *)d->data, len);
        return;
    }
    n = (size_t)snprintf(out, 128, "%s", d->type == 3 ? "naa." : "eui.");
    for (unsigned i = 0; i < d->len; i++) n += (size_t)snprintf(out + n, 128 - n, "%02x", d->data[i]);
}

/* A name that begins with a company id (IEEE OUI) of zero was made up by software: other machines have the same. */
static bool weak_name(const struct designator *d) {
    if (d->type == 2) return d->data[0] == 0 && d->data[1] == 0 && d->data[2] == 0;
    if (d->type != 3 || d->data[0] >> 4 == 3) return true;
    if (d->data[0] >> 4 == 2)
        return d->data[2] == 0 && d->data[3] == 0 && d->data[4] == 0; /* vendor, then company id */
    return (be32(d->data) & 0x0ffffff0u) == 0;
}

static bool listed(char out[][128], unsigned n, const char *name) {
    for (unsigned i = 0; i < n; i++)
        if (strcmp(out[i], name) == 0) return true;
    return false;
}

unsigned iscsibe_identities(const uint8_t *vpd83, size_t len83, const uint8_t *vpd80, size_t len80,
                            const struct iscsibe_inquiry *inquiry, char out[][128], unsigned max, bool *weak) {
    size_t n83 = vpd_payload(vpd83, len83, 0x83), n80 = vpd_payload(vpd80, len80, 0x80);
    unsigned n = 0;
    char serial[64], name[128];

    *weak = true;
    for (unsigned want = 9; n83 > 0 && want > 0 && n < max; want--) {
        struct designator d;
        for (size_t at = 0; n < max && next_designator(vpd83 + 4, n83, &at, &d);) {
            if (rank(&d) != want) continue;
            name_of(&d, name);
            if (listed(out, n, name)) continue;
            if (n == 0) *weak = weak_name(&d);
            snprintf(out[n++], 128, "%s", name);
        }
    }
    if (n80 == 0 || n >= max) return n;
    field(serial, sizeof serial, vpd80 + 4, n80);
    if (*serial) snprintf(out[n++], 128, "serial.%s.%s.%s", inquiry->vendor, inquiry->product, serial);
    return n;
}

bool iscsibe_parse_limits(const uint8_t *p, size_t len, struct iscsibe_limits *out) {
    size_t n = vpd_payload(p, len, 0xb0);
    if (n < 12) return false;
    *out = (struct iscsibe_limits){ .granularity = be16(p + 6), .max_transfer = be32(p + 8), .optimal = be32(p + 12),
                                    .max_unmap = n >= 20 ? be32(p + 20) : 0 };
    return true;
}

bool iscsibe_parse_rotation(const uint8_t *p, size_t len, unsigned *rate) {
    if (vpd_payload(p, len, 0xb1) < 2) return false;
    *rate = be16(p + 4);
    return true;
}

bool iscsibe_parse_provisioning(const uint8_t *p, size_t len, struct iscsibe_provisioning *out) {
    size_t n = vpd_payload(p, len, 0xb2);
    if (n < 2) return false;
    *out = (struct iscsibe_provisioning){ .unmap = p[5] & 0x80, .write_same = p[5] & 0x40, .read_zeros = p[5] & 0x1c,
                                          .type = n >= 3 ? p[6] & 7u : 0 };
    return true;
}

/* ---- capacity, mode ---- */

bool iscsibe_parse_capacity16(const uint8_t *p, size_t len, struct iscsibe_capacity *out) {
    if (len < 16) return false;
    uint64_t last = be64(p);
    *out = (struct iscsibe_capacity){ .blocks = last + 1, .block = be32(p + 8), .physical_exponent = p[13] & 0x0f,
                                      .lowest_aligned = (p[14] & 0x3fu) << 8 | p[15],
                                      .thin = p[14] & 0x80 };
    return last != UINT64_MAX && out->block >= 512 && (out->block & (out->block - 1)) == 0 &&
           out->blocks <= UINT64_MAX / out->block;
}

bool iscsibe_parse_capacity10(const uint8_t *p, size_t len, struct iscsibe_capacity *out) {
    if (len < 8 || be32(p) == UINT32_MAX) return false; /* larger than it can say */
    *out = (struct iscsibe_capacity){ .blocks = (uint64_t)be32(p) + 1, .block = be32(p + 4) };
    return out->block >= 512 && (out->block & (out->block - 1)) == 0;
}

bool iscsibe_parse_mode(const uint8_t *p, size_t len, bool ten, struct iscsibe_mode *out) {
    size_t header = ten ? 8 : 4;
    if (len < header) return false;
    uint8_t device = ten ? p[3] : p[2];
    size_t end = ten ? be16(p) + 2u : p[0] + 1u, at = header + (ten ? be16(p + 6) : p[3]);
    if (end > len) end = len;
    *out = (struct iscsibe_mode){ .write_protected = device & 0x80, .dpofua = device & 0x10 };
    while (at + 2 <= end) {
        bool sub = p[at] & 0x40; /* a subpage has a longer header */
        if (sub && at + 4 > end) break;
        size_t size = sub ? 4u + be16(p + at + 2) : 2u + p[at + 1];
        if (!sub && (p[at] & 0x3f) == 0x08 && at + 3 <= end) {
            out->has_caching = true;
            out->wce = p[at + 2] & 0x04;
            out->rcd = p[at + 2] & 0x01;
        }
        at += size;
    }
    return true;
}
