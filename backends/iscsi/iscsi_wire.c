/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/iscsi/iscsi_wire.h"

#include "backends/iscsi/iscsi_crc32c.h"

void iscsiw_sense(const uint8_t *data, size_t len, unsigned *key, unsigned *ascq) {
    *key = *ascq = 0;
    if (len < 2) return;
    size_t n = iscsiw_get16(data);
    const uint8_t *s = data + 2;
    if (n > len - 2) n = len - 2;
    if (n < 4) return;
    switch (s[0] & 0x7f) {
    case 0x70: case 0x71: /* fixed format */
        *key = s[2] & 0x0f;
        if (n >= 14) *ascq = iscsiw_get16(s + 12);
        break;
    case 0x72: case 0x73: /* descriptors */
        *key = s[1] & 0x0f;
        *ascq = iscsiw_get16(s + 2);
        break;
    default: break;
    }
}

enum iscsiw_event iscsiw_in_head_checked(struct iscsiw_in *w, const uint8_t *p, size_t header) {
    if (w->header_digest) {
        uint32_t told;
        memcpy(&told, p + header - 4, 4);
        if (le32toh(told) != iscsibe_crc32c(0, p, header - 4)) return WIRE_HEADER_DIGEST;
    }
    w->digest_left = w->data_digest && w->data_left ? 4 : 0;
    w->tail_left = iscsiw_padding(w->data_left) + w->digest_left;
    w->crc = w->digest = 0;
    return WIRE_HEADER;
}

void iscsiw_in_digest(struct iscsiw_in *w, const uint8_t *p, size_t len) {
    w->crc = iscsibe_crc32c(w->crc, p, len);
}

enum iscsiw_event iscsiw_in_tail(struct iscsiw_in *w, const uint8_t *p, size_t len, size_t *used) {
    size_t n = len < w->tail_left ? len : w->tail_left;
    for (size_t i = 0; i < n; i++) {
        if (w->tail_left > w->digest_left) {
            if (w->data_digest) iscsiw_in_digest(w, p + i, 1); /* it covers the padding, too */
        } else {
            w->digest |= (uint32_t)p[i] << 8 * (4 - w->digest_left);
            w->digest_left--;
        }
        w->tail_left--;
    }
    *used = n;
    if (w->tail_left) return WIRE_MORE;
    w->at = WIRE_AT_HEADER;
    if (w->data_digest && w->digest != w->crc) return WIRE_DATA_DIGEST;
    return WIRE_END;
}
