/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The login of one session as a conversation: the PDU to send, and what follows from the answer. Pure: the caller has
 * the socket, the time and the random numbers. */
#ifndef BACKENDS_ISCSI_ISCSI_LOGIN_H
#define BACKENDS_ISCSI_ISCSI_LOGIN_H

#include "backends/iscsi/iscsi_chap.h"
#include "backends/iscsi/iscsi_keys.h"
#include "backends/iscsi/iscsi_wire.h"

#define LOGIN_DATA_MAX 16384u /* of one answer; a target has to keep to 8192 */
#define LOGIN_NAME_MAX 256u
#define CHALLENGE_SIZE 16u
#define LOGIN_WANTS_CHAP 0x0201u /* as if it had refused us: for one that insists on CHAP, and there is no user */

/* Names and secrets stay the caller's, and are not kept. Target "": a discovery session. User "": no CHAP. Target user
 * "": CHAP in one direction. */
struct iscsibe_credentials {
    const char *initiator, *target, *user, *password, *target_user, *target_password;
};

struct iscsibe_talk {
    /* given */
    const struct iscsibe_credentials *who;
    uint8_t isid[6];
    uint8_t challenge[CHALLENGE_SIZE], challenge_id; /* for the target, when it has to prove itself: random */
    /* the next PDU to send */
    uint8_t out[ISCSI_BHS + sizeof(((struct iscsibe_text *)0)->bytes) + 4];
    size_t out_len;
    /* results */
    struct iscsibe_terms terms;
    uint32_t cmd_sn, exp_stat_sn, max_cmd_sn; /* for the full feature phase */
    uint16_t tsih;
    unsigned status;                /* of a refusal or redirection: class << 8 | detail; LOGIN_WANTS_CHAP; 0: none was told */
    char auth[24];                  /* "None", "CHAP MD5", "mutual SHA3-256" */
    char address[LOGIN_NAME_MAX];   /* TargetAddress */
    char alias[LOGIN_NAME_MAX], portal_group[16];
    /* the talk's own */
    enum { TALK_AUTH, TALK_CHAP_ASKED, TALK_CHAP_TOLD, TALK_OPERATIONAL } step;
    uint32_t itt;
    unsigned rounds;
    char text[2 * LOGIN_DATA_MAX];  /* of an answer, which may come in several PDUs */
    size_t text_len;
    struct iscsibe_text say;        /* of the next PDU */
    char method[32], chap_a[16], chap_i[16], chap_n[LOGIN_NAME_MAX];
    char chap_c[2 * CHAP_CHALLENGE_MAX + 8], chap_r[2 * CHAP_RESPONSE_MAX + 8];
    unsigned algorithm;
};

enum iscsibe_talk_next { TALK_FAILED = -1, TALK_SEND, TALK_DONE, TALK_REDIRECTED };

/* Zeroes `t` but for what is given in it, and makes the first PDU. */
void iscsibe_talk_begin(struct iscsibe_talk *t, const struct iscsibe_credentials *who,
                        const struct iscsibe_offer *offer, const uint8_t isid[6],
                        const uint8_t challenge[CHALLENGE_SIZE], uint8_t challenge_id);
/* A PDU from the target, with a data segment of `len` bytes. TALK_SEND: `out` is to be sent. */
enum iscsibe_talk_next iscsibe_talk_answer(struct iscsibe_talk *t, const uint8_t bhs[ISCSI_BHS], const uint8_t *data,
                                           size_t len, struct err *err);
const char *iscsibe_login_status_words(unsigned status);

#endif
