/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/local/blockid.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/local/nvme.h"
#include "backends/local/sysfs.h"
#include "base/text.h"

/* ---- identity ---- */

static void put_hex(char *buf, size_t len, const char *prefix, const unsigned char *p, size_t n) {
    size_t at = (size_t)snprintf(buf, len, "%s", prefix);
    for (size_t i = 0; i < n && at + 3 <= len; i++) at += (size_t)snprintf(buf + at, len - at, "%02x", p[i]);
}

/* Text without the blanks and NULs at its ends; those inside stay, as in the kernel's wwid. */
static bool put_text(char *buf, size_t len, const char *prefix, const unsigned char *p, size_t n) {
    while (n && (p[n - 1] == ' ' || !p[n - 1])) n--;
    while (n && *p == ' ') p++, n--;
    size_t at = (size_t)snprintf(buf, len, "%s", prefix);
    text_safe(buf + at, len - at, (const char *)p, n);
    return n > 0;
}

/* A serial number is unique among the disks of one make only. */
static bool put_serial(const char *disk, char *buf, size_t len, const unsigned char *p, size_t n) {
    char vendor[64], model[64], prefix[150] = "serial.";
    if (sysfs_text(vendor, sizeof vendor, "%s/device/vendor", disk) &&
        sysfs_text(model, sizeof model, "%s/device/model", disk))
        snprintf(prefix, sizeof prefix, "serial.%s.%s.", vendor, model);
    return put_text(buf, len, prefix, p, n);
}

bool blockid_vpd83(const unsigned char *page, size_t n, char *buf, size_t len) {
    if (n < 4 || page[1] != 0x83) return false;
    size_t end = 4 + ((size_t)page[2] << 8 | page[3]);
    int best = 0;
    if (end > n) end = n;
    for (size_t at = 4; at + 4 <= end; at += 4 + (size_t)page[at + 3]) {
        const unsigned char *d = page + at;
        size_t d_len = d[3];
        if (at + 4 + d_len > end) break;
        bool logical_unit = (d[1] & 0x30) == 0, binary = (d[0] & 0x0f) == 1;
        int type = d[1] & 0x0f;
        if (!logical_unit || !d_len || type <= best || type > 3) continue;
        if (type == 3 && binary) put_hex(buf, len, "naa.", d + 4, d_len);
        else if (type == 2 && binary) put_hex(buf, len, "eui.", d + 4, d_len);
        else if (type != 1 || !put_text(buf, len, "t10.", d + 4, d_len)) continue;
        best = type;
    }
    return best > 0;
}

bool blockid_unit(const char *disk, char *buf, size_t len) {
    unsigned char page[1024];
    ssize_t n = sysfs_bytes(page, sizeof page, "%s/device/vpd_pg83", disk);
    return n > 0 && blockid_vpd83(page, (size_t)n, buf, len);
}

/* "mpath-" and what scsi_id makes: the designator's type as a digit, then its value; NVMe names stand as they are. */
static bool multipath_wwid(const char *uuid, char *buf, size_t len) {
    if (strncmp(uuid, "mpath-", 6)) return false;
    uuid += 6;
    if (*uuid == '3') snprintf(buf, len, "naa.%s", uuid + 1);
    else if (*uuid == '2') snprintf(buf, len, "eui.%s", uuid + 1);
    else if (*uuid == '1') snprintf(buf, len, "t10.%s", uuid + 1);
    else snprintf(buf, len, "%s", uuid);
    return true;
}

bool blockid_wwid(const char *disk, char *buf, size_t len) {
    char text[256];
    unsigned char page[1024];
    ssize_t n;
    if (sysfs_text(text, sizeof text, "%s/dm/uuid", disk)) return multipath_wwid(text, buf, len);
    if ((sysfs_text(text, sizeof text, "%s/wwid", disk) && *text) ||
        (sysfs_text(text, sizeof text, "%s/device/wwid", disk) && *text)) {
        snprintf(buf, len, "%s", text);
        return true;
    }
    if (blockid_unit(disk, buf, len)) return true;
    n = sysfs_bytes(page, sizeof page, "%s/device/vpd_pg80", disk);
    if (n > 4 && page[1] == 0x80) return put_serial(disk, buf, len, page + 4, (size_t)n - 4);
    if ((sysfs_text(text, sizeof text, "%s/serial", disk) && *text) ||
        (sysfs_text(text, sizeof text, "%s/device/serial", disk) && *text))
        return put_serial(disk, buf, len, (unsigned char *)text, strlen(text));
    return false;
}

/* ---- transport ---- */

/* A copy of the path component that begins with `start` and a digit: "rport-2:0-1" of ".../rport-2:0-1/target...". */
static bool component(const char *path, const char *start, char *buf, size_t len) {
    size_t n = strlen(start);
    for (const char *p = path; (p = strchr(p, '/')); p++) {
        if (strncmp(p + 1, start, n) || !isdigit((unsigned char)p[1 + n])) continue;
        snprintf(buf, len, "%.*s", (int)strcspn(p + 1, "/"), p + 1);
        return true;
    }
    return false;
}

static void note(struct kv *out, const char *prefix, const char *name, const char *value) {
    char key[48];
    snprintf(key, sizeof key, "%s%s", prefix, name);
    if (*value) kv_text(out, key, "%s", value);
}

static void fibre_channel(const char *sys, const char *path, const char *rport, const char *prefix, struct kv *out) {
    char text[128], host[64];
    if (sysfs_text(text, sizeof text, "%s/class/fc_remote_ports/%s/port_name", sys, rport))
        note(out, prefix, "target_wwpn", text);
    if (sysfs_text(text, sizeof text, "%s/class/fc_remote_ports/%s/port_state", sys, rport))
        note(out, prefix, "target_port_state", text);
    if (!component(path, "host", host, sizeof host)) return;
    if (sysfs_text(text, sizeof text, "%s/class/fc_host/%s/port_name", sys, host)) note(out, prefix, "host_wwpn", text);
    if (sysfs_text(text, sizeof text, "%s/class/fc_host/%s/speed", sys, host)) note(out, prefix, "fc_speed", text);
}

static void kernel_iscsi(const char *sys, const char *session, const char *prefix, struct kv *out) {
    char text[256], port[32];
    if (sysfs_text(text, sizeof text, "%s/class/iscsi_session/%s/targetname", sys, session))
        note(out, prefix, "iqn", text);
    const char *number = session + strlen("session");
    if (!sysfs_text(text, sizeof text, "%s/class/iscsi_connection/connection%s:0/persistent_address", sys, number))
        return;
    if (sysfs_text(port, sizeof port, "%s/class/iscsi_connection/connection%s:0/persistent_port", sys, number))
        snprintf(text + strlen(text), sizeof text - strlen(text), ":%s", port);
    note(out, prefix, "portal", text);
}

const char *blockid_transport(const char *sys, const char *disk, const char *prefix, struct kv *out) {
    static const struct { const char *component, *name; } others[] = {
        {"end_device-", "SAS"}, {"ata", "SATA"}, {"usb", "USB"}, {"virtio", "virtio"}, {"vbd-", "Xen"},
    };
    char path[PATH_MAX], *real = realpath(disk, NULL), word[64];
    if (!real) return "";
    snprintf(path, sizeof path, "%s", real);
    free(real);
    const char *name = strrchr(path, '/') + 1, *transport = "";
    if (!strncmp(name, "loop", 4)) return "loop";
    if (!strncmp(name, "zram", 4) || !strncmp(name, "ram", 3)) return "memory";
    if (!strncmp(name, "nbd", 3)) return "NBD";
    if (!strncmp(name, "rbd", 3)) return "RBD";
    if (!strncmp(name, "nvme", 4)) return nvme_transport(disk, prefix, out);
    if (component(path, "rport-", word, sizeof word)) {
        fibre_channel(sys, path, word, prefix, out);
        return "FC";
    }
    if (component(path, "session", word, sizeof word)) {
        kernel_iscsi(sys, word, prefix, out);
        return "iSCSI";
    }
    for (size_t i = 0; i < sizeof others / sizeof *others && !*transport; i++)
        if (component(path, others[i].component, word, sizeof word)) transport = others[i].name;
    return transport;
}
