/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/local/sgio.h"

#include <errno.h>
#include <linux/nvme_ioctl.h>
#include <scsi/sg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "backends/local/blockid.h"
#include "backends/local/sysfs.h"

#define TIMEOUT_MS 5000
#define TRIES      8     /* unit attentions in a row, or pauses of this length, each twice the last: 2.5 s */
#define PAUSE_US   10000

enum { SENSE_NOT_READY = 2, SENSE_ILLEGAL_REQUEST = 5, SENSE_UNIT_ATTENTION = 6 };
enum { STATUS_BUSY = 0x08, STATUS_RESERVATION_CONFLICT = 0x18, STATUS_TASK_SET_FULL = 0x28 };

bool sgio_may_ask(const char *folder) {
    uint8_t page[8];
    return sysfs_bytes(page, sizeof page, "%s/device/vpd_pg83", folder) > 4;
}

static unsigned sense_key(const uint8_t *sense, unsigned len) {
    unsigned code = len ? sense[0] & 0x7f : 0;
    if (code >= 0x72) return len > 1 ? sense[1] & 15 : 0;
    return len > 2 ? sense[2] & 15 : 0;
}

/* Additional sense code and qualifier. */
static unsigned sense_ascq(const uint8_t *sense, unsigned len) {
    unsigned at = len && (sense[0] & 0x7f) >= 0x72 ? 2 : 12;
    return len > at + 1 ? (unsigned)sense[at] << 8 | sense[at + 1] : 0;
}

/* How the kernel says that a command should be sent again: bus busy, reset, soft error, "again", session gone. */
static bool host_again(unsigned host) {
    return host == 0x02 || host == 0x08 || (host >= 0x0b && host <= 0x0e);
}

bool sgio_again(unsigned status, unsigned host, const uint8_t *sense, unsigned len, bool *pause) {
    unsigned key = sense_key(sense, len), code = sense_ascq(sense, len) >> 8;
    *pause = key != SENSE_UNIT_ATTENTION;
    return status == STATUS_BUSY || status == STATUS_TASK_SET_FULL || host_again(host) || key == SENSE_UNIT_ATTENTION ||
           (key == SENSE_NOT_READY && code == 0x04); /* becoming ready, or between two states of its paths */
}

int sgio_failure(unsigned status, unsigned host, const uint8_t *sense, unsigned len) {
    unsigned ascq = sense_ascq(sense, len);
    bool pause;
    if (status == STATUS_RESERVATION_CONFLICT) return -EBADE;
    if (sense_key(sense, len) == SENSE_ILLEGAL_REQUEST && (ascq == 0x2000 || ascq == 0x2400))
        return -EOPNOTSUPP; /* invalid operation code; invalid field in the CDB */
    return sgio_again(status, host, sense, len, &pause) ? -EBUSY : -EIO;
}

int sgio_ask(int fd, const uint8_t *cdb, unsigned cdb_len, void *buf, unsigned len) {
    uint8_t command[16], sense[64];
    bool pause;
    int rc = -EIO;
    memcpy(command, cdb, cdb_len);
    for (int tries = 0; tries < TRIES; tries++) {
        struct sg_io_hdr io = {.interface_id = 'S', .dxfer_direction = SG_DXFER_FROM_DEV, .cmdp = command,
                               .cmd_len = (unsigned char)cdb_len, .dxferp = buf, .dxfer_len = len, .sbp = sense,
                               .mx_sb_len = sizeof sense, .timeout = TIMEOUT_MS};
        if (ioctl(fd, SG_IO, &io) < 0) return -errno;
        if (!io.status && !io.host_status && !(io.driver_status & 0x0f))
            return io.resid >= 0 && (unsigned)io.resid <= len ? (int)(len - (unsigned)io.resid) : (int)len;
        rc = sgio_failure(io.status, io.host_status, sense, io.sb_len_wr);
        if (!sgio_again(io.status, io.host_status, sense, io.sb_len_wr, &pause)) return rc;
        if (pause) usleep(PAUSE_US << tries);
    }
    return rc;
}

int sgio_unit(int fd, char *buf, unsigned len) {
    uint8_t page[1024] = {0};
    const uint8_t inquiry[6] = {0x12, 1, 0x83, sizeof page >> 8, sizeof page & 255};
    int n = sgio_ask(fd, inquiry, sizeof inquiry, page, sizeof page);
    *buf = 0;
    if (n < 0) return n;
    if (page[0] >> 5) return -ENODEV; /* no unit is connected there */
    if (!blockid_vpd83(page, (size_t)n, buf, len)) *buf = 0;
    return 0;
}

/* Of Identify Controller: optional commands, bit 5 is reservations. */
#define ONCS 520
#define ONCS_RESERVATIONS 0x20
enum { NVME_INVALID_OPCODE = 1, NVME_INVALID_FIELD = 2 };

int sgio_nvme_report(int fd, void *buf, unsigned len, bool *extended) {
    uint8_t id[4096];
    int nsid = ioctl(fd, NVME_IOCTL_ID);
    if (nsid <= 0) return nsid < 0 ? -errno : -ENOTTY;
    struct nvme_passthru_cmd identify = {.opcode = 0x06, .addr = (uintptr_t)id, .data_len = sizeof id, .cdw10 = 1,
                                         .timeout_ms = TIMEOUT_MS};
    int rc = ioctl(fd, NVME_IOCTL_ADMIN_CMD, &identify);
    if (rc) return rc < 0 ? -errno : -EIO;
    if (!(id[ONCS] & ONCS_RESERVATIONS)) return -EOPNOTSUPP;
    for (int eds = 1; eds >= 0; eds--) { /* the form must be that of the host's own identifier */
        struct nvme_passthru_cmd report = {.opcode = 0x0e, .nsid = (uint32_t)nsid, .addr = (uintptr_t)buf,
                                           .data_len = len, .cdw10 = len / 4 - 1, .cdw11 = (uint32_t)eds,
                                           .timeout_ms = TIMEOUT_MS};
        memset(buf, 0, len);
        rc = ioctl(fd, NVME_IOCTL_IO_CMD, &report);
        *extended = eds;
        if (rc == 0) return (int)len;
        if (rc < 0) return -errno;
    }
    rc &= 0x7ff;
    return rc == NVME_INVALID_OPCODE || rc == NVME_INVALID_FIELD ? -EOPNOTSUPP : -EIO; /* not of this namespace */
}
