/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Another host of a cluster: registers a key at a LUN, reserves it, or takes both back.
 *   reserve URL register|reserve|clear       URL: iscsi://HOST[:PORT]/IQN/LUN */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <iscsi/iscsi.h>
#include <iscsi/scsi-lowlevel.h>

#define KEY 0x5e21a11ceb0bULL

static void out(struct iscsi_context *iscsi, int lun, int action, uint64_t new_key) {
    struct scsi_persistent_reserve_out_basic p = {.reservation_key = KEY, .service_action_reservation_key = new_key};
    if (action == SCSI_PERSISTENT_RESERVE_REGISTER_AND_IGNORE_EXISTING_KEY) p.reservation_key = 0;
    struct scsi_task *task = iscsi_persistent_reserve_out_sync(iscsi, lun, action, SCSI_PERSISTENT_RESERVE_SCOPE_LU,
                                                               SCSI_PERSISTENT_RESERVE_TYPE_WRITE_EXCLUSIVE, &p);
    if (!task || task->status != SCSI_STATUS_GOOD) {
        fprintf(stderr, "reserve: %s\n", iscsi_get_error(iscsi));
        exit(1);
    }
    scsi_free_scsi_task(task);
}

int main(int argc, char **argv) {
    struct iscsi_context *iscsi = iscsi_create_context("iqn.2026-01.org.samedisk:other-host");
    struct iscsi_url *url = argc == 3 && iscsi ? iscsi_parse_full_url(iscsi, argv[1]) : NULL;
    if (!url) {
        fprintf(stderr, "usage: reserve URL register|reserve|clear\n");
        return 1;
    }
    iscsi_set_targetname(iscsi, url->target);
    iscsi_set_session_type(iscsi, ISCSI_SESSION_NORMAL);
    if (iscsi_full_connect_sync(iscsi, url->portal, url->lun) != 0) {
        fprintf(stderr, "reserve: %s\n", iscsi_get_error(iscsi));
        return 1;
    }
    out(iscsi, url->lun, SCSI_PERSISTENT_RESERVE_REGISTER_AND_IGNORE_EXISTING_KEY, KEY);
    if (strcmp(argv[2], "reserve") == 0) out(iscsi, url->lun, SCSI_PERSISTENT_RESERVE_RESERVE, 0);
    if (strcmp(argv[2], "clear") == 0) out(iscsi, url->lun, SCSI_PERSISTENT_RESERVE_CLEAR, 0);
    iscsi_logout_sync(iscsi);
    iscsi_destroy_url(url);
    iscsi_destroy_context(iscsi);
    return 0;
}
