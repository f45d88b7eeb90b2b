/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which targets does a portal offer? SendTargets in a discovery session, for errors. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "backends/iscsi/iscsi_session.h"
#include "backends/net/sock.h"
#include "base/text.h"

#define DISCOVER_NS (5 * NS_PER_SEC) /* the user waits for an error */
#define ROUNDS_MAX 64u
#define LIST_MAX 65536u

/* One Text Request and its response; `ttt`: what the target gave for the rest of its answer, ISCSI_NO_TAG: a first request.
 * 1: there is more. */
static int exchange(struct iscsibe_link *l, const char *text, uint32_t len, uint32_t *ttt, char *list, size_t *n,
                    int64_t end, struct err *err) {
    uint8_t bhs[ISCSI_BHS] = { ISCSI_TEXT | ISCSI_IMMEDIATE, ISCSI_FINAL };
    uint32_t got;

    iscsiw_put32(bhs + AT_ITT, ++l->itt);
    iscsiw_put32(bhs + AT_TTT, *ttt);
    if (iscsibe_link_send(l, bhs, text, len, end, err) != 0) return -1;
    do {
        if (iscsibe_link_recv(l, bhs, l->segment, LINK_DATA_MAX, &got, end, err) != 0) return -1;
    } while ((bhs[0] & ISCSI_OPCODE) == ISCSI_NOP_IN);
    if ((bhs[0] & ISCSI_OPCODE) != ISCSI_TEXT_RESPONSE || iscsiw_get32(bhs + AT_ITT) != l->itt)
        return err_set(err, STATUS_TARGET, "it is not answered (opcode %02Xh)", bhs[0] & ISCSI_OPCODE);
    l->exp_stat_sn = iscsiw_get32(bhs + AT_STAT_SN) + 1;
    if (got > LIST_MAX - *n) got = (uint32_t)(LIST_MAX - *n);
    memcpy(list + *n, l->segment, got);
    *n += got;
    *ttt = iscsiw_get32(bhs + AT_TTT);
    return !(bhs[AT_FLAGS] & ISCSI_FINAL) && *n < LIST_MAX;
}

/* The names in "TargetName=...", with a comma between them. */
static void names(const char *list, size_t n, char *buf, size_t size) {
    static const char key[] = "TargetName=";
    const size_t key_len = sizeof key - 1;
    unsigned left_out = 0;
    size_t used = 0;

    snprintf(buf, size, "none");
    for (const char *p = list, *end = list + n; p < end; p += strlen(p) + 1) {
        char safe[ISCSI_NAME_SIZE];
        size_t len = strlen(p);
        if (len <= key_len || memcmp(p, key, key_len) != 0) continue;
        text_safe(safe, sizeof safe, p + key_len, len - key_len);
        if (used + strlen(safe) + 40 > size) left_out++;
        else used += (size_t)snprintf(buf + used, size - used, "%s%s", used ? ", " : "", safe);
    }
    if (left_out) snprintf(buf + used, size - used, " and %u more", left_out);
}

int iscsibe_discover(const struct iscsibe_login *from, char *buf, size_t len, struct err *err) {
    static const char ask[] = "SendTargets=All"; /* with its NUL */
    struct iscsibe_login login = *from;
    struct iscsibe_link *l;
    uint32_t ttt = ISCSI_NO_TAG;
    uint8_t isid[6];
    unsigned status;
    size_t n = 0;
    int more = 1;

    *login.target = '\0';
    if (login.timeout > DISCOVER_NS) login.timeout = DISCOVER_NS;
    char *list = calloc(1, LIST_MAX + 1); /* it ends with a NUL in any case */
    if (!list || getrandom(isid, sizeof isid, 0) != (ssize_t)sizeof isid) {
        free(list);
        iscsibe_login_wipe(&login);
        return err_set(err, STATUS_TARGET, "discovery: no memory or no random numbers");
    }
    isid[0] = 0x80;
    int rc = iscsibe_link_open(&login, isid, &l, &status, err);
    int64_t end = sock_now() + login.timeout;
    for (unsigned i = 0; rc == 0 && more == 1 && i < ROUNDS_MAX; i++)
        more = i ? exchange(l, NULL, 0, &ttt, list, &n, end, err) : exchange(l, ask, sizeof ask, &ttt, list, &n, end, err);
    if (more < 0) rc = err_prefix(err, "SendTargets");
    if (rc == 0) names(list, n, buf, len);
    if (l) iscsibe_link_close(l, rc == 0);
    iscsibe_login_wipe(&login);
    free(list);
    return rc == 0 ? 0 : err_prefix(err, "discovery");
}
